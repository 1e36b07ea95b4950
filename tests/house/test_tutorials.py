"""Every block of code in the tutorials runs as printed and prints what the page shows below it."""

import contextlib
import importlib.util
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    file
    for part in ("start", "tour", "howto", "website")
    for file in (ROOT / "docs" / part).glob("*.md")
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
COMMAND = "from penchant.cli import app; app()"
pytestmark = [  # warnings of Lightning and Transformers about their own code and the data of a page
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*"),
    pytest.mark.filterwarnings("ignore:.*num_workers.*"),
    pytest.mark.filterwarnings("ignore:.*pin_memory.*"),
    pytest.mark.filterwarnings("ignore:.*lr_scheduler.step.*"),
]


def missing(code):
    """The libraries that a block imports and that are not installed."""
    names = re.findall(r"^(?:import|from) (\w+)", code, re.M)
    return [name for name in names if not importlib.util.find_spec(name)]


def ran(blocks):
    """Run the blocks of a page one after the other; the libraries that some of them lack."""
    space, printed, lacking = {"__name__": "page"}, "", []
    for language, code in blocks:
        if language == "python" and (lost := missing(code)):
            lacking, printed = [*lacking, *lost], None
        elif language == "python" and (name := re.match(r"# (\w+\.py)\n", code)):
            Path(name[1]).write_text(code)
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(code, "page", "exec"), space)
            printed = out.getvalue()
        elif language == "bash":
            for line in code.splitlines():
                program, *words = shlex.split(line)
                assert program == "penchant"
                subprocess.run([sys.executable, "-c", COMMAND, *words], check=True)
        elif language == "text" and printed is not None:
            assert printed == code
    return lacking


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_the_code_of_a_page_runs_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    matplotlib.use("agg")
    lacking = ran(BLOCK.findall(page.read_text(encoding="utf-8")))
    if lacking:
        pytest.skip(f"{', '.join(lacking)} not installed; the other blocks of the page ran")


def test_a_wrong_output_is_noticed():
    with pytest.raises(AssertionError):
        ran([("python", "print(1)\n"), ("text", "2\n")])
    assert ran([("python", "import no_such_library\n")]) == ["no_such_library"]
