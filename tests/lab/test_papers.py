"""Papers of other packages: found by their entry point, listed, judged, drawn and run."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from penchant.lab import Paper

CLAIM = """
import numpy as np
from penchant.lab import Evidence, Experiment, Plot, Series, sized, within


def cell(terms):
    return {"total": float(sum(1 / k**2 for k in range(1, terms + 1)))}


def check(dataset):
    error = np.abs(dataset.total.values - np.pi**2 / 6)
    curve = Series("partial sums", dataset.terms.values, error)
    return Evidence(
        ran="partial sums",
        checks={"distance": within(error[-1], tolerance=1e-2)},
        controls={"pi^2 / 8": abs(dataset.total.values[-1] - np.pi**2 / 8)},
        plots=[Plot("error", "terms", "distance", [curve], "log", "log")],
    )


study = sized("EULER-1", function=cell, grid={"terms": [10, 100, 1000]})
experiment = Experiment("EULER-1", "The sum of 1/k^2 is pi^2/6.", "chapter 1", study, check)
"""
PACKAGE = """
from penchant.lab import Paper

paper = Paper(
    "EULER", "On sums", package=__name__, statements={"EULER-1": "basel"},
    authors=("Leonhard Euler",), year=1740,
)
papers = (paper,)
"""
TABLE = 'title = "a table of sums"\nfunction = "euler_claims.basel:cell"\ngrid.terms = [1, 2]\n'


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder on the path with a package and its metadata, as an installation leaves them."""
    folder = tmp_path_factory.mktemp("site")
    files = {
        "euler_claims/__init__.py": PACKAGE,
        "euler_claims/basel.py": CLAIM,
        "euler_claims/sums-table.toml": TABLE,
        "euler_claims-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: euler-claims\n"
        "Version: 1.0\n",
        "euler_claims-1.0.dist-info/entry_points.txt": "[penchant.papers]\n"
        "euler = euler_claims:papers\nbroken = euler_claims:nothing\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))
    return folder


# one process for all commands: its start takes longer than any of them
COMMANDS = """
import json, sys
from typer.testing import CliRunner
from penchant.cli import app

for words in json.loads(sys.argv[1]):
    ended = CliRunner().invoke(app, words)
    print(json.dumps([ended.exit_code, ended.output]))
"""


def penchant(folder, where, *commands):
    """(exit code, output) of every command, in a process that finds the package."""
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "160"}
    words = json.dumps([command.split() for command in commands])
    command = [sys.executable, "-W", "ignore", "-c", COMMANDS, words]
    ran = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_the_claims_of_another_package_are_listed_judged_drawn_and_run(installed, tmp_path):
    listed, studies, judged, drawn, ran, kept = penchant(
        installed,
        tmp_path,
        "list euler",
        "list studies",
        "verify EULER --jobs 1",
        "figure EULER-1 --format png",
        "run sums-table --engine here",
        "verify EULER-1 --no-report --record",
    )
    assert "EULER-1" in listed[1]
    assert "sums-table" in studies[1]
    assert judged[0] == 0, judged[1]
    assert "1 holds" in judged[1]
    page = (tmp_path / "penchant-report" / "index.html").read_text(encoding="utf-8")
    assert "On sums" in page
    assert "Leonhard Euler. 1740, paper." in page
    assert Path(tmp_path, "penchant-figures", "EULER-1.png").stat().st_size > 10_000, drawn[1]
    assert "2 cells, 2 computed now, 0 failed" in ran[1]
    assert kept[0] == 0, kept[1]
    assert (installed / "euler_claims" / "record" / "EULER-1.json").is_file()


def test_an_entry_point_that_cannot_be_loaded_is_named_and_the_others_count(installed, tmp_path):
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    }
    probe = "from penchant.lab.paper import papers; print(*[p.letters for p in papers()])"
    ran = subprocess.run(
        [sys.executable, "-c", probe], env=environment, capture_output=True, text=True
    )
    assert ran.stdout.split()[:2] == ["W", "M"]
    assert ran.stdout.split()[-1] == "EULER"
    assert "papers: euler_claims:nothing cannot be used" in ran.stderr


def test_a_paper_says_who_wrote_it_and_refuses_ids_of_others():
    two = Paper("T", "A title", "t", authors=("A. One", "B. Two"), year=2024)
    assert two.short == "One and Two 2024"
    assert Paper("T", "Own claims", "t").short == "Own claims"
    with pytest.raises(ValueError, match="'W-1' does not begin with T-"):
        Paper("T", "A title", "t", statements={"W-1": "one"})
    with pytest.raises(ValueError, match=r"penchant\.store is no package"):
        Paper("T", "A title", "penchant.store").folder  # noqa: B018
