"""The `penchant` command: exit codes, tables, files, complaints in one line."""

from __future__ import annotations

import dataclasses
import importlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import little_papers
import penchant
from child_processes import FOLDERS, HEED_CTRL_C
from commands import penchant_command
from penchant.lab import Experiment, Registry, record
from penchant.lab.reading import presets


@pytest.fixture(autouse=True)
def little_world(monkeypatch, tmp_path):
    """The little experiments in place of the real ones, in an empty working directory."""
    for command in ("verify", "listing", "figure"):
        module = importlib.import_module(f"penchant.cli.{command}")
        monkeypatch.setattr(module, "all_claims", lambda: little_papers.library)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")


def only(monkeypatch, *experiments):
    """These experiments in place of all others."""
    book = Registry(experiments=list(experiments))
    monkeypatch.setattr(importlib.import_module("penchant.cli.verify"), "all_claims", lambda: book)


def files():
    return sorted(str(path) for path in Path().rglob("*"))


# --- verify --------------------------------------------------------------------------------


def test_verify_prints_a_line_a_claim_and_writes_the_report():
    code, printed = penchant_command("verify", "A", "--jobs", 1)
    assert code == 0
    assert re.search(r"^ ✓ A-SUM  section 1 +5e-05 ≤ 0.0001 as printed none$", printed, re.M)
    assert re.search(r"^ ✎ A-MEAN section 2, equation \(3\) 0 ≤ 0 ", printed, re.M)
    assert "n(n + 1)/2" not in printed  # corrections are for those who ask
    assert "1 holds; 1 holds as corrected" in printed
    assert f"report: {Path('penchant-report/index.html')}" in printed
    written = [path.as_posix() for path in map(Path, files()) if path.is_file()]
    cells = [
        name for name in written if re.fullmatch(r"penchant-studies/A-\w+\.cells/.*\.cell", name)
    ]
    assert len(cells) == 2
    assert [name for name in written if name not in cells] == [
        "penchant-report/index.html",
        "penchant-report/verdicts.json",
        "penchant-studies/pictures/A-SUM.quick.webp",
    ]
    stored = json.loads(Path("penchant-report/verdicts.json").read_text(encoding="utf-8"))
    assert [verdict["status"] for verdict in stored["verdicts"]] == ["holds as corrected", "holds"]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("ids", "code"),
    [
        (["A-SUM"], 0),
        (["a-mean"], 0),
        (["B-FALSE"], 1),
        (["B-VAGUE"], 1),
        (["B-STOP"], 1),
        (["A-SUM", "B-FALSE"], 1),
        ([], 1),
        (["A-SUN"], 2),
        (["A-SUM", "X"], 2),
    ],
)
def test_the_exit_code_says_whether_anything_fails(ids, code):
    assert penchant_command("verify", *ids, "--no-report", "--jobs", 1)[0] == code
    folders = {name.split("/")[0] for name in files()}  # cells are kept, and nothing else
    assert folders == (set() if code == 2 else {"penchant-studies"})


def test_an_unknown_id_touches_no_file_and_offers_the_nearest():
    code, printed = penchant_command("verify", "A-SUM", "a-men", "--out", "report")
    assert code == 2
    assert printed.splitlines() == ["error: verify: unknown claim id 'a-men'; did you mean A-MEAN?"]
    assert files() == []


def test_a_folder_that_is_a_file_is_refused_before_anything_runs():
    Path("taken").write_text("mine")
    code, printed = penchant_command("verify", "A", "--out", "taken")
    assert code == 2
    assert "must be a directory" in printed
    assert "A-SUM" not in printed
    assert Path("taken").read_text() == "mine"


def test_size_and_out_are_obeyed():
    code, _ = penchant_command(
        "verify", "A-SUM", "--size", "printed", "--out", "deep/er", "--jobs", 1
    )
    assert code == 0
    stored = json.loads(Path("deep/er/verdicts.json").read_text(encoding="utf-8"))
    assert stored["verdicts"][0]["size"] == "printed"


def test_shifted_seeds_are_counted_against_the_record(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "file_of", lambda id: tmp_path / "record" / f"{id}.json")
    code, printed = penchant_command("verify", "A", "--record", "--jobs", 1)
    assert code == 0
    assert re.search(r"✓ A-SUM .* as printed ✓ quick$", printed, re.M)
    code, printed = penchant_command("verify", "A", "--shift", 1000, "--record", "--jobs", 1)
    assert code == 0
    assert "2 of 2 keep their status" in printed
    seeds = "holds, quick: as printed; 1 of 1 other seeds agree"
    for words in (("verify", "A-SUM", "--jobs", 1), ("list", "A-SUM")):
        assert seeds in " ".join(penchant_command(*words)[1].split())


@pytest.mark.parametrize("options", [[], ["--no-report"]])
def test_a_verdict_is_on_record_before_the_next_claim_is_judged(tmp_path, monkeypatch, options):
    monkeypatch.setattr(record, "file_of", lambda id: tmp_path / "record" / f"{id}.json")
    judged = Experiment.run

    def interrupted(self, *given):
        if (tmp_path / "record").exists():
            raise KeyboardInterrupt
        return judged(self, *given)

    monkeypatch.setattr(Experiment, "run", interrupted)
    assert penchant_command("verify", "A", "--record", "--jobs", 1, *options)[0] == 130
    assert len(list((tmp_path / "record").iterdir())) == 1


@pytest.mark.parametrize("words", [["verify", "--jobs", "0"], ["verify", "--fast"], ["vrify"]])
def test_wrong_usage_has_code_2(words):
    assert penchant_command(*words)[0] == 2
    assert files() == []


def test_progress_lines_count_the_claims():
    _, printed = penchant_command("verify", "A", "--no-report", "--jobs", 1)
    assert re.search(r"^1/2 A-SUM ✓ holds \(\d+\.\d s\)$", printed, flags=re.MULTILINE)
    assert re.search(r"^2/2 A-MEAN ✎ holds as corrected", printed, flags=re.MULTILINE)


def test_brackets_in_a_statement_are_not_taken_for_markup(monkeypatch):
    one = little_papers.summed("T-1", "[bold]x[/bold] in [0, 1]", "[p]", little_papers.basel)
    only(monkeypatch, one)
    assert "[bold]x[/bold] in [0, 1]" in penchant_command("verify", "-v", "--no-report")[1]


@pytest.mark.filterwarnings("default")
def test_details_are_printed_for_named_claims_and_on_request():
    named = penchant_command("verify", "a-mean", "A-SUM", "--no-report", "--jobs", 1)[1]
    verbose = penchant_command("verify", "A", "-v", "--no-report", "--jobs", 1)[1]
    for printed in (named, verbose):
        assert "    the sum of 1 .. n is n(n - 1)/2\n" in printed
        assert "    holds as corrected: the sum is n(n + 1)/2: the sign in front" in printed
        assert "distance to pi^2/6: 5e-05 ≤ 0.0001; controls: 2 of 2 miss; " in printed
        assert "with -v" not in printed
    every = penchant_command("verify", "--no-report", "--jobs", 1)[1]
    assert "statements and corrections with -v" in every
    reason = "    fails: odd numbers below 30 that are not prime: 5 > 0"
    assert reason in every  # nobody has to ask why a claim does not hold


@pytest.mark.parametrize("width", [60, 80, 109, 110, 200])
def test_every_line_fits_every_width(width):
    from rich.console import Console

    from penchant.cli.claims import print_verdicts
    from penchant.lab.verification import gather_verdicts

    null = open(os.devnull, "w")  # noqa: SIM115
    console = Console(width=width, record=True, file=null, force_terminal=True)
    print_verdicts(
        console, gather_verdicts(little_papers.library.select("A"), jobs=1), {}, ["A-SUM"]
    )
    console.file.close()
    text = console.export_text()
    assert max(len(line) for line in text.splitlines()) <= width
    for word in ("✓ A-SUM", "✎ A-MEAN", "5e-05 ≤ 0.0001", "2 of 2"):
        assert word in text


def test_a_terminal_without_the_symbols_gets_words():
    from rich.console import Console

    from penchant.cli.claims import print_legend, print_verdicts
    from penchant.lab.verification import gather_verdicts

    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1", errors="replace")
    console = Console(width=80, file=stream)
    print_verdicts(console, gather_verdicts(little_papers.library.select("A"), jobs=1))
    print_legend(console, 2)
    stream.flush()
    printed = stream.buffer.getvalue().decode("latin-1")
    assert re.search(r"^ holds   A-SUM ", printed, re.M)
    assert re.search(r"^ wording A-MEAN ", printed, re.M)


# --- list, show, version, help -------------------------------------------------------------


def ids_listed(*words):
    """What `penchant list` names in a pipe, each line with its first word alone."""
    code, printed = penchant_command("list", *words)
    assert code == 0, printed
    lines = printed.splitlines()
    heads = [line for line in lines if re.search(r"\(\d+: penchant \w+ \w+\)$", line)]
    assert len(heads) == len({head.split("  ")[0] for head in heads})
    assert heads or len(lines) == 1
    return [line.split()[0] for line in lines if line not in heads]


def test_list_has_one_line_for_each():
    known = little_papers.library.experiments()
    assert ids_listed() == [*(experiment.id for experiment in known), *presets()]
    printed = penchant_command("list")[1]
    for one in known:  # whole, so that grep finds everything
        line = f"{one.id} .*{re.escape(one.statement)}  \\[{re.escape(one.place)}\\]$"
        assert re.search(line, printed, flags=re.MULTILINE)


def test_list_is_filtered_by_kind_source_id_and_text():
    assert ids_listed("studies") == ids_listed("STUDY") == list(presets())
    assert ids_listed("experiments") == list(little_papers.library.ids)
    assert ids_listed("pi^2") == ["A-SUM"]
    assert ids_listed("experiments", "a-sum") == ["A-SUM"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["studeis"], "list: nothing matches 'studeis'; did you mean studies?"),
        (["A-SUN"], "list: nothing matches 'A-SUN'; did you mean A-SUM?"),
        (["A-SUM", "phase"], "list: nothing matches all of A-SUM, phase; give fewer words"),
    ],
)
def test_list_says_what_matches_nothing(words, sentence):
    assert penchant_command("list", *words) == (2, f"error: {sentence}\n")


def test_the_papers_are_listed_by_their_letters(monkeypatch):
    from penchant.lab import all_claims

    module = importlib.import_module("penchant.cli.listing")
    monkeypatch.setattr(module, "all_claims", all_claims)
    assert {name[:2] for name in ids_listed("m")} == {"M-"}
    assert ids_listed("W", "experiments") == [id for id in all_claims().ids if id[0] == "W"]


def test_on_a_terminal_the_list_keeps_to_one_line_each():
    from rich.console import Console

    from penchant.cli.listing import Entry, _print

    entry = Entry("experiments", "W-T1", "a statement [of] many words " * 9, "section 4")
    for whole, lines in ((False, 1), (True, 8)):
        console = Console(width=40, force_terminal=True, file=open(os.devnull, "w"), record=True)  # noqa: SIM115
        _print(console, entry, 6, whole)
        console.file.close()
        shown = console.export_text().splitlines()
        assert max(map(len, shown)) <= 40
        assert len(shown) == lines


def test_show_prints_saved_verdicts_again():
    _, before = penchant_command("verify", "A", "--jobs", 1)
    table = [line for line in before.splitlines() if re.match(r" [✓✎] A-", line)]
    assert len(table) == 2
    for source in ("penchant-report", "penchant-report/verdicts.json"):
        code, after = penchant_command("show", source)
        assert code == 0
        assert table == [line for line in after.splitlines() if re.match(r" [✓✎] A-", line)]
        assert f"penchant {penchant.__version__}, python" in after


def saved_dataset(file):
    import numpy as np
    import xarray

    from penchant import store

    t = xarray.DataArray([1.0, 10.0], dims="time", attrs={"units": "1", "description": "flow time"})
    loss = ("time", np.array([0.25, np.nan]), {"units": "1", "description": "mean squared error"})
    dataset = xarray.Dataset({"loss": loss}, {"t": t}, {"description": "two [points] of a flow"})
    store.write(dataset, file)


def test_show_summarises_a_dataset():
    saved_dataset(Path("run.nc"))
    code, printed = penchant_command("show", "run.nc")
    assert code == 0
    assert "run.nc: time 2" in printed
    assert re.search(r"loss +time +1 +0.25 to 0.25 +mean squared error", printed)
    assert re.search(r"t +time +1 +1 to 10 +flow time", printed)
    assert "description: two [points] of a flow" in printed


def test_show_refuses_what_is_not_ours_by_name():
    saved_dataset(Path("whole.nc"))
    whole = Path("whole.nc").read_bytes()
    contents = {
        "cut.nc": whole[: len(whole) // 2],
        "text.nc": b"not a dataset",
        "empty.nc": b"",
        "cut.json": b'{"format": "penchant verd',
        "other.json": b"[]",
    }
    for name, content in contents.items():
        Path(name).write_bytes(content)
    for name in (*contents, "missing.nc", "missing.json"):
        code, printed = penchant_command("show", name)
        assert (code, len(printed.splitlines())) == (2, 1), printed
        assert name in printed


def test_version_and_help():
    assert penchant_command("--version") == (0, f"penchant {penchant.__version__}\n")
    assert (
        subprocess.run(
            [sys.executable, "-m", "penchant", "--version"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        == f"penchant {penchant.__version__}\n"
    )
    for words in ([], ["verify"], ["figure"], ["show"]):
        code, printed = penchant_command(*words, "--help")
        assert code == 0
        assert "penchant " in printed
        assert "\b" not in printed


# --- figure --------------------------------------------------------------------------------


def test_figure_draws_what_was_named():
    assert penchant_command("figure", "a-sum", "--format", "svg")[0] == 0
    words = ("figure", "A-SUM", "a-sum", "--size", "printed", "--out", "here", "--format", "png")
    code, printed = penchant_command(*words)
    assert code == 0
    drawn = f"{Path('here/A-SUM-printed.nc')}, {Path('here/A-SUM.png')}"
    assert f"A-SUM: {drawn}\nA-SUM: holds: every check passes" in printed
    assert sorted(path.name for path in Path("here").iterdir()) == ["A-SUM-printed.nc", "A-SUM.png"]
    assert penchant_command("show", "here/A-SUM-printed.nc")[0] == 0
    pictures = sorted(path.name for path in Path("penchant-figures").iterdir())
    assert pictures == ["A-SUM.nc", "A-SUM.svg"]


def test_figures_for_a_paper_are_bare_narrow_and_have_a_table():
    words = ("figure", "A-SUM", "--bare", "--width", "3.25", "--format", "pdf,png", "--csv")
    assert penchant_command(*words)[0] == 0
    names = sorted(path.name for path in Path("penchant-figures").iterdir())
    assert names == ["A-SUM.csv", "A-SUM.nc", "A-SUM.pdf", "A-SUM.png"]
    from matplotlib.image import imread

    assert imread("penchant-figures/A-SUM.png").shape[1] == 650
    assert b"/Type3" not in Path("penchant-figures/A-SUM.pdf").read_bytes()
    table = Path("penchant-figures/A-SUM.csv").read_text(encoding="utf-8").splitlines()
    assert table[0] == "panel,x_label,y_label,series,x,y,value"
    assert "Partial sums,terms k,sum,sum,1.0,1.0," in table


def test_figures_with_other_parameters_have_names_of_their_own():
    code, printed = penchant_command("figure", "A-SUM", "--set", "terms=500", "--format", "png")
    assert code == 0
    assert "holds" not in printed  # the claim is about its own parameters
    names = sorted(path.name for path in Path("penchant-figures").iterdir())
    assert names == ["A-SUM-terms-500.nc", "A-SUM-terms-500.png"]
    assert "terms = 500" in penchant_command("show", f"penchant-figures/{names[0]}")[1]
    code, printed = penchant_command("figure", "A-SUM", "--set", "terns=500")
    assert (code, printed.splitlines()) == (
        2,
        ["error: figure: there is no parameter 'terns'; did you mean terms?"],
    )


def test_points_of_ones_own_are_drawn_where_a_figure_is_about_points(monkeypatch):
    from penchant.plotting import sheet

    def draw_points(problem):
        picture, (axes,) = sheet("points")
        axes.plot(*problem.X[:, :2].T, "o", label="points")
        return picture

    about = little_papers.summed("T-1", "s", "p", little_papers.basel)
    about = dataclasses.replace(about, draw_points=draw_points)
    book = Registry(experiments=[about, little_papers.library["A-SUM"]])
    monkeypatch.setattr(importlib.import_module("penchant.cli.figure"), "all_claims", lambda: book)
    Path("mine.csv").write_text("x,y,z,label\n1,2,3,1\n4,5,6,-1\n")
    words = ("--points", "mine.csv", "--format", "png", "--csv")
    code, _ = penchant_command("figure", "T-1", *words)
    assert code == 0
    rows = Path("penchant-figures/T-1-mine.csv").read_text().splitlines()[1:]
    assert [row.split(",")[-3:-1] for row in rows] == [["1.0", "2.0"], ["4.0", "5.0"]]
    code, printed = penchant_command("figure", "A-SUM", *words)
    assert (code, printed) == (2, "error: figure: A-SUM has no points that can be replaced\n")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "there is no file"),
        ("1,2,3", "must have 2 points or more"),
        ("1,2\n3,4", "three features in each row, and perhaps a label, got 2 numbers"),
        ("1,2,3\n4,5", "all of one length"),
        ("a,b,c\nd,e,f", "0 of its 2 lines are numbers"),
        ("1,2,3,1\n4,5,6,2", "labels must be -1 and +1"),
        ("1,2,nan\n4,5,6", "must be finite"),
    ],
)
def test_points_that_are_none_are_refused(content, sentence):
    if content is not None:
        Path("mine.csv").write_text(content)
    code, printed = penchant_command("figure", "A-SUM", "--points", "mine.csv")
    assert code == 2
    assert sentence in printed
    assert len(printed.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["A-SUM", "--width", "0.1"], "for_paper: width must be 1.5 to 40 inches, got 0.1"),
        (["A-SUM", "--set", "terms"], "figure: --set needs a name and a value"),
        (["A-SUM", "--format", "pdf,pgn"], "unknown format 'pgn'; did you mean png"),
        (["A-SUM", "A-SUN"], "figure: unknown id 'A-SUN'; did you mean A-SUM?"),
        ([], "figure: name a figure, or pass --all"),
        (["A-SUM", "--size", "printd"], "unknown size 'printd'; did you mean printed?"),
        (["A-SUM", "--format", "pgn"], "unknown format 'pgn'; did you mean png"),
        (["A-SUM", "--engine", "proceses"], "unknown engine 'proceses'; did you mean processes"),
    ],
)
def test_figure_refuses_before_it_makes_anything(words, sentence):
    code, printed = penchant_command("figure", *words)
    assert code == 2
    assert sentence in printed
    assert len(printed.splitlines()) == 1
    assert files() == []


def test_figures_whose_cells_fail_do_not_stop_the_others(monkeypatch):
    broken = little_papers.summed(
        "T-1", "s", "p", little_papers.basel, cell=little_papers.broken_cell
    )
    book = Registry(experiments=[broken, little_papers.library["A-SUM"]])
    monkeypatch.setattr(importlib.import_module("penchant.cli.figure"), "all_claims", lambda: book)
    code, printed = penchant_command("figure", "--all", "--format", "svg")
    assert code == 2
    assert "error: T-1: this cell is broken\n" in printed
    assert "penchant-figures/A-SUM.svg" in files()
    assert "penchant-figures/T-1.svg" not in files()


# --- real processes ------------------------------------------------------------------------

SCRIPT = """
import sys
sys.path[:0] = {folders!r}
import little_papers
import penchant.cli

if __name__ == "__main__":
    {heed}
    sys.modules["penchant.cli.verify"].all_claims = lambda: little_papers.{book}
    penchant.cli.app(prog_name="penchant")
"""


@contextmanager
def started(book, *words):
    """A `penchant` process on some of the little experiments, which ends with its block."""
    Path("run.py").write_text(SCRIPT.format(folders=FOLDERS, book=book, heed=HEED_CTRL_C))
    process = subprocess.Popen(
        [sys.executable, "run.py", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_a_real_process_ends_with_the_code_and_a_report():
    with started("library", "verify", "--jobs", "2", "--out", "report") as process:
        printed, messages = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "1 holds; 1 holds as corrected; 1 fails; 2 inconclusive" in printed
    assert "5/5" in messages
    assert "5/5" not in printed  # a pipe receives the results alone
    assert Path("report/index.html").stat().st_size > 10_000


def test_a_real_process_refuses_an_unknown_id():
    with started("library", "verify", "A-SUN") as process:
        printed, messages = process.communicate(timeout=120)
    assert (process.returncode, printed) == (2, "")
    assert messages.startswith("error: verify: unknown claim id 'A-SUN'")
    assert "Traceback" not in messages
    assert files() == ["run.py"]


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_after_ctrl_c_the_same_command_goes_on(monkeypatch):
    monkeypatch.setenv("LITTLE_PAPERS", ".")
    with started("patient", "verify", "--jobs", "2") as process:
        assert process.stderr.readline().startswith("1/2 P-SHORT ✓ holds")  # both are at work
        while not Path("pid").exists() or not Path("pid").read_text():
            time.sleep(0.05)
        worker = int(Path("pid").read_text())
        os.kill(worker, 0)  # it is there
        process.send_signal(signal.SIGINT)
        printed, messages = process.communicate(timeout=60)
    assert (process.returncode, printed) == (130, "")
    assert "interrupted; finished cells are kept; run the same command to continue" in messages
    assert "Traceback" not in messages
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    assert len(list(Path("penchant-studies/P-SHORT.cells").rglob("*.cell"))) == 1
    Path("hurry").touch()
    only(monkeypatch, *little_papers.patient.experiments())
    code, messages = penchant_command("verify", "--jobs", "1")
    assert code == 0
    assert re.search(r"^1/2 P-LONG ✓ holds \(\d", messages, flags=re.MULTILINE)
    assert re.search(r"^2/2 P-SHORT ✓ holds \(\d", messages, flags=re.MULTILINE)
    assert "2 holds" in messages
    assert Path("short").read_text() == "ran\n"  # once, in the first run


# --- a second run ---------------------------------------------------------------------------


def test_a_second_run_reads_its_cells_and_judges_again(monkeypatch):
    judged = []

    def check(dataset):
        judged.append(dataset.attrs["size"])
        return little_papers.basel(dataset)

    cell, draw = little_papers.leaves_a_line, little_papers.blank
    only(monkeypatch, little_papers.summed("T-1", "s", "p", check, cell=cell, draw=draw))
    monkeypatch.setattr(little_papers, "LINES", [])
    for words in ([], [], ["--size", "printed"], ["--no-report"]):
        assert penchant_command("verify", *words)[0] == 0
    assert judged == ["quick", "quick", "printed", "quick"]
    assert little_papers.LINES == [20_000, 200_000]  # one cell for each size


PAPER = """
from penchant.lab.evidence.evidence import Evidence, within
from penchant.lab.experiment import Experiment
from penchant.plotting.style import sheet
from penchant.lab.studies.sizes import sized

def cell():
    return {"value": 1.0}

def check(dataset):
    return Evidence("one cell", {"value": within(float(dataset.value), 1.0, 0.25)})

def draw(dataset):
    return sheet("a caption")[0]

experiment = Experiment("T-1", "S.", "p", sized("T-1", function=cell), check, draw)
"""


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("0.25", "0.5", "evidence"),  # a tolerance
        ("a caption", "another caption", "picture"),
        ('"value": 1.0', '"value": 1.1', "evidence"),
        ("a caption", "a caption", ""),  # the control
    ],
)
def test_a_changed_claim_is_never_shown_as_it_was(old, new, changed, monkeypatch, tmp_path):
    from penchant.lab.evidence.verdict_json import read_verdicts
    from penchant.lab.studies.code import version

    def verdict():
        sys.modules.pop("one_paper", None)
        importlib.invalidate_caches()
        version._SEEN.clear()
        only(monkeypatch, importlib.import_module("one_paper").experiment)
        penchant_command("verify")
        return read_verdicts("penchant-report/verdicts.json")[0]

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "one_paper.py"
    file.write_text(PAPER)
    before = verdict()
    file.write_text(PAPER.replace(old, new))
    after = verdict()
    sys.modules.pop("one_paper")
    parts = ("evidence", "picture")
    differ = [part for part in parts if getattr(before, part) != getattr(after, part)]
    assert differ == ([changed] if changed else [])


def test_no_text_of_a_file_gives_orders_to_a_terminal(tmp_path):
    import xarray

    from penchant.cli.console import PlainConsole

    order = "\x1b[2J\x1b]0;owned\x07\x9b31m"
    dataset = xarray.Dataset({"x": (f"d{order}", [1.0], {"long_name": order})}, attrs={"a": order})
    _, printed = penchant_command("show", penchant.save(dataset, tmp_path / "x.nc"))
    assert "\\x1b[2J" in printed
    assert not {"\x1b", "\x07", "\x9b"} & set(printed)
    stream = io.StringIO()
    console = PlainConsole(file=stream, force_terminal=True, highlight=False)
    console.print(f"[bold]{order}[/bold]\tnext")
    assert "\x1b[1m" in stream.getvalue()  # its own styles still work
    assert "\x1b[2J" not in stream.getvalue()
