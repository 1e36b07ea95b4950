"""The picture and the page of a study: they show the numbers, escape everything, load nothing."""

import errno
import functools
import importlib
import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
import study_cells
from commands import penchant_command
from html_pages import parsed, words
from penchant import Study
from penchant.lab.report.rendering import environment
from penchant.lab.report.study_cells import toml
from penchant.lab.report.study_page import Pictures, StudyPicture, study_page, write_study_report
from penchant.lab.studies.compute import Result
from penchant.lab.studies.gather import label, provenance
from penchant.plotting.study.map import crossings
from penchant.plotting.study.picture import draw_study, further
from penchant.plotting.study.ruler import geometric, ruler
from penchant.plotting.study.words import number, plain

writing = importlib.import_module("penchant.lab.report.study_page")
NOTHING = Pictures(None, (), ("nothing to draw",))


def made(cell, function=study_cells.step, **description):
    """The dataset of a study whose cells `cell(**axes)` gives, or None, or (status, sentence)."""
    study = Study(name="little", function=function, **description)
    names = study.dimensions
    values = [*(axis.values for axis in study.axes), *filter(None, [study.seed_values])]
    found = {}
    for index in np.ndindex(study.shape):
        given_ = cell(**{n: v[i] for n, v, i in zip(names, values, index, strict=True)})
        if isinstance(given_, dict):
            found[index] = Result("solved", "", given_, 0.0)
        elif given_ is not None:
            found[index] = Result(*given_, {}, 0.0)
    failed = sum(result.status != "solved" for result in found.values())
    dataset = label(study, found).assign_attrs(cells=len(found), failed=failed)
    return dataset.assign_attrs(provenance(study, "0123abcd", "penchant run little.toml"))


def power(alpha, width, seed=0):
    """A power of the axes; one corner fails, and one seed of a cell."""
    if (alpha, width) == (100.0, 8) or (alpha, width, seed) == (1.0, 8, 1):
        return "diverged", "loss 1e300 after 7 steps"
    return {"error": alpha**2 * width * (1.0 + 0.1 * seed), "theory": alpha**2 * width}


MAP = {"grid": {"alpha": {"logspace": [-2, 2, 5]}, "width": [1, 2, 4, 8]}, "seeds": 3}
DRAWN = {"x": "alpha", "y": "width", "colour": "error", "log": True,
         "contours": {"error": 1.0, "theory": 1.0}}  # fmt: skip


@pytest.fixture(scope="module")
def phase():
    return made(power, **MAP, draw=DRAWN, labels={"error": "the error <b>", "width": "width w"})


# --- maps ----------------------------------------------------------------------------------


def meshes(figure):
    from matplotlib.collections import QuadMesh

    return [c for axes in figure.axes if axes.get_xlabel() for c in axes.collections
            if isinstance(c, QuadMesh)]  # fmt: skip


def legend(figure):
    return [t.get_text().strip() for a in figure.axes if a.get_legend()
            for t in a.get_legend().get_texts()]  # fmt: skip


def test_a_map_shows_the_medians_at_their_places(phase):
    figure = draw_study(phase)
    axes, (mesh,) = figure.axes[0], meshes(figure)
    drawn = np.ma.filled(mesh.get_array(), np.nan).reshape(4, 5)
    for i, width in enumerate((1, 2, 4, 8)):
        for j, alpha in enumerate(10.0 ** np.arange(-2, 3)):
            seeds = [1.0, 1.1, 1.2] if (alpha, width) != (1.0, 8) else [1.0, 1.2]
            lost = (alpha, width) == (100.0, 8)
            expected = np.nan if lost else alpha**2 * width * np.median(seeds)
            assert drawn[i, j] == pytest.approx(expected, nan_ok=True)
    corners = np.asarray(mesh.get_coordinates())
    assert corners[0, :, 0] == pytest.approx(10.0 ** (np.arange(6) - 2.5))  # halfway as seen
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert (axes.get_xlabel(), axes.get_ylabel()) == (r"$\alpha$", "width w")
    assert figure.axes[1].get_ylabel() == "the error <b>"  # the bar of colours
    assert type(mesh.norm).__name__ == "LogNorm"


def test_failed_cells_are_hatched_and_named(phase):
    from matplotlib.collections import PatchCollection

    figure = draw_study(phase)
    (hatched,) = [c for c in figure.axes[0].collections if isinstance(c, PatchCollection)]
    assert (hatched.get_hatch(), len(hatched.get_paths())) == ("////", 1)
    assert hatched.get_paths()[0].get_extents().x0 == pytest.approx(10**1.5)
    assert legend(figure) == ["measured: the error <b> = 1", "theory: theory = 1", "failed",
                              "some seeds failed"]  # fmt: skip
    caption = figure._supxlabel.get_text()
    assert caption == "Median over 3 seeds. 60 cells, 4 failed."
    whole = draw_study(made(lambda **axes: {"error": axes["alpha"]}, **MAP))
    assert legend(whole) == []  # nothing failed, so nothing is said


def test_a_contour_lies_where_the_power_law_crosses():
    data = made(power, **MAP)
    x, y = ruler(data, "alpha"), ruler(data, "width")
    values = x.at[None, :] ** 2 * y.at[:, None]
    off = {}
    for powers in (True, False):
        (line,) = crossings(x, y, values, 3.0, powers)
        off[powers] = np.abs(np.log(line[0] ** 2 * line[1] / 3.0)).max()
    assert off[True] < 1e-12
    assert off[False] > 0.3  # a straight line between numbers that span decades is not it
    assert crossings(x, y, values, 1e9) == []
    count = min(values.shape)  # known cells on one line have nothing between them
    alone = np.where(
        np.eye(*values.shape, dtype=bool), np.arange(values.shape[1], dtype=float), np.nan
    )
    assert count >= 4
    assert crossings(x, y, alone, 1.5) == []


def test_cells_that_were_not_computed_stay_blank():
    def ring(x, y):
        return {"distance": np.hypot(x, y) - 1} if abs(np.hypot(x, y) - 1) < 0.8 else None

    grid = {"x": {"linspace": [-2, 2, 9]}, "y": {"linspace": [-2, 2, 9]}}
    data = made(ring, study_cells.boundary, grid=grid,
                draw={"x": "x", "y": "y", "contours": {"distance": 0.0}})  # fmt: skip
    figure = draw_study(data)
    (mesh,) = meshes(figure)
    blank = np.ma.getmaskarray(mesh.get_array()).ravel()
    assert blank.sum() == (data.status.values == "missing").sum() > 10
    assert legend(figure) == ["measured: distance = 0"]  # and no hatch
    (line,) = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 8]
    assert np.hypot(line.get_xdata(), line.get_ydata()) == pytest.approx(1.0, abs=0.1)


def test_a_third_axis_makes_small_multiples():
    grid = {"a": [1.0, 2.0, 3.0, 4.0], "b": [1.0, 2.0, 3.0, 4.0], "seed": list(range(9))}
    data = made(lambda a, b, seed: {"sum": a + 10 * b + 100 * seed}, study_cells.plain, grid=grid)
    data = data.rename({d: "third" for d in data.dims if d not in ("a", "b")})
    figure = draw_study(data)
    assert len(meshes(figure)) == 6
    scales = {(m.norm.vmin, m.norm.vmax) for m in meshes(figure)}
    assert scales == {(11.0, 844.0)}  # one scale of colours for all
    titles = [axes.get_title(loc="left") for axes in figure.axes[:6]]
    assert titles == [f"seed of the cell = {k}" for k in (0, 2, 3, 5, 6, 8)]
    assert "6 of the 9 values of third." in figure._supxlabel.get_text()


# --- curves, bars, thresholds, rows, tables ------------------------------------------------

RULE = {"axis": "alpha", "between": [1e-3, 10.0], "measure": "error", "below": 0.5}


def test_curves_have_the_median_the_band_and_crosses():
    data = made(power, grid={**MAP["grid"], "width": [4, 8]}, seeds=3, draw={"colour": "error"})
    figure = draw_study(data)
    axes = figure.axes[0]
    first, second, crosses = axes.lines
    alpha = 10.0 ** np.arange(-2, 3)
    assert first.get_ydata() == pytest.approx(alpha**2 * 4 * 1.1)
    assert np.isnan(second.get_ydata()[-1])
    assert crosses.get_xdata().tolist() == [1.0, 100.0]
    band = axes.collections[0].get_paths()[0].vertices
    assert {round(y / 4e-4, 6) for x, y in band if x == 0.01} == {1.0, 1.2}
    assert legend(figure) == ["width = 4", "width = 8", "a cell failed here"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_texts_are_bars_and_one_cell_is_a_table():
    def named(a, seed):
        return {"sum": len(a) + seed}

    data = made(named, study_cells.plain, grid={"a": ["one", "three", "$x^{"]}, seeds=3)
    axes = draw_study(data).axes[0]
    assert [bar.get_height() for bar in axes.patches] == [4.0, 6.0, 5.0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["one", "three", "$x^{"]
    single = made(lambda: {"error": 0.125, "smooth": 2.0}, arguments={"alpha": 1.0})
    table = draw_study(single).axes[0].tables[0]
    texts = [cell.get_text().get_text() for cell in table.get_celld().values()]
    assert {"error", "0.125", "smooth", "2"} <= set(texts)


def test_a_threshold_comes_with_its_bracket():
    tried = (("trial",), np.array([1e-3, 10.0]))

    def line(width):
        if width == 8.0:
            return "infeasible", "no threshold between"
        found = {"threshold": 0.1 * width, "lower": 0.1 * width, "upper": 0.11 * width}
        return found | {"trials": 2, "tried": tried, "measured": tried}

    data = made(line, grid={"width": [1.0, 2.0, 4.0, 8.0]}, threshold=RULE)
    figure = draw_study(data)
    axes = figure.axes[0]
    assert axes.lines[0].get_ydata()[:3] == pytest.approx([0.1, 0.2, 0.4])
    (whiskers,) = [c for c in axes.collections if len(c.get_paths()) >= 3]
    ends = [path.vertices[:, 1].tolist() for path in whiskers.get_paths()[:3]]
    assert ends == [pytest.approx([0.1 * w, 0.11 * w]) for w in (1.0, 2.0, 4.0)]
    assert axes.get_ylabel() == r"$\alpha$ where error crosses 0.5"
    assert axes.get_yscale() == "log"
    assert legend(figure) == ["a seed has no threshold here"]
    assert figure._supxlabel.get_text().startswith("4 cells, 1 of 4 searches without a threshold.")
    (trials,) = further(data)
    assert trials.draw().axes[0].get_xlabel() == r"$\alpha$"


def test_no_median_of_thresholds_where_most_seeds_have_none():
    without = {(2.0, 0), (4.0, 0), (4.0, 1)}  # of three seeds one, and two

    def line(width, seed):
        if (width, seed) in without:
            return "infeasible", "no threshold between"
        return {"threshold": width, "lower": width, "upper": 1.1 * width, "trials": 2}

    data = made(line, grid={"width": [1.0, 2.0, 4.0]}, seeds=3, threshold=RULE)
    height = draw_study(data).axes[0].lines[0].get_ydata()
    np.testing.assert_array_equal(height, [1.0, 2.0, np.nan])


def test_where_no_line_has_a_threshold_the_trials_show_why():
    grid, trials = {"width": [1.0, 2.0]}, (("trial",), np.array([1e-3, 10.0]))
    data = made(lambda width: {"tried": trials, "measured": trials}, grid=grid, threshold=RULE)
    assert draw_study(data).axes[0].lines[0].get_xdata().tolist() == [1e-3, 10.0]
    assert further(data) == []
    ordinary = made(lambda a: {"lower": a}, study_cells.plain, grid={"a": [1.0, 2.0]})
    assert draw_study(ordinary).axes[0].get_ylabel() == "lower"  # a name like others elsewhere


def test_rows_are_lines_over_their_clock():
    def trajectory(a):
        t = np.arange(3 + int(a), dtype=float)
        return {"trajectory_t": (("time",), t), "trajectory_loss": (("time",), a * 2.0**-t)}

    data = made(trajectory, study_cells.plain, grid={"a": [1.0, 2.0]})
    short, long = draw_study(data).axes[0].lines
    assert (len(short.get_xdata()), len(long.get_xdata())) == (4, 5)
    assert long.get_ydata() == pytest.approx(2.0 * 2.0 ** -np.arange(5))


def test_what_cannot_be_drawn_is_a_sentence():
    words = made(lambda a: {"word": "x"}, study_cells.plain, grid={"a": [1.0, 2.0]})
    with pytest.raises(ValueError, match="study little: its cells gave no number"):
        draw_study(words)
    failed = made(lambda a: ("diverged", "boom"), study_cells.plain, grid={"a": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"no cell gave a number to draw \(cells ended: diverged"):
        draw_study(failed)
    wrong = made(lambda a: {"excess": a}, study_cells.plain, grid={"a": [1.0, 2.0]},
                 draw={"colour": "exces"})  # fmt: skip
    with pytest.raises(ValueError, match="'exces'; did you mean excess"):
        draw_study(wrong)


@pytest.mark.parametrize(
    ("values", "found"),
    [([1, 2, 4, 8], True), ([10, 15, 22, 32, 46], True), ([20, 40, 60], False),
     ([0.1, 10], True), ([1, 2], False), ([0, 1, 10], False), ([1, 1.1, 1.21], False)],
)  # fmt: skip
def test_geometric_axes_are_logarithmic(values, found):
    assert geometric(np.array(values, float)) is found


def test_a_zero_before_decades_gets_a_place_of_its_own():
    data = made(lambda a: {"v": a}, study_cells.plain, grid={"a": [1e-1, 0.0, 1e-3, 1e-2]})
    assert draw_study(data).axes[0].lines[0].get_xdata().tolist() == [0, 1, 2, 3]
    assert [number(v) for v in (1e4, 1e-7, 0.25, True, 12)] == ["10⁴", "10⁻⁷", "0.25", "true", "12"]


# --- the page ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report(phase, tmp_path_factory):
    return write_study_report(phase, tmp_path_factory.mktemp("report"))


def test_the_page_says_everything(report, phase):
    tree = parsed(report.page.read_text(encoding="utf-8"))
    shown = words(tree)
    for part in ("60 cells over alpha (5) × width (4) × seed (3), 4 failed.", "✓56solved",
                 "✗4diverged", "alpha = 100, width = 8, seed = 0diverged",
                 "loss 1e300 after 7 steps", "study_cells:step", "0123abcd",
                 "penchant run little.toml", "penchant show little.nc",
                 "penchant explore little.nc", "the error <b>",
                 f"numpy {np.__version__}"):  # fmt: skip
        assert part in shown
    (text,) = [words(pre) for pre in tree.iter("pre")]
    assert 'function = "study_cells:step"' in text
    images = [image.get("src") for image in tree.iter("img")]
    assert len(images) == 1
    assert report.picture.read_bytes().startswith(b"\x89PNG")


def test_the_page_loads_nothing(report):
    text = report.page.read_text(encoding="utf-8")
    tree = parsed(text)
    assert not {e.tag for e in tree.iter()} & {"script", "link", "iframe", "object", "embed"}
    for element in tree.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            if name.endswith(("href", "src")):
                assert value.startswith(("#", "data:image/png;base64,"))
    assert not re.findall(r"https?://|@import|url\(", text)


def test_the_same_study_gives_the_same_files(report, phase, tmp_path):
    penchant.save(phase, tmp_path / "little.nc")
    again = write_study_report(penchant.load(tmp_path / "little.nc"), tmp_path)
    assert again.page.read_bytes() == report.page.read_bytes()
    assert again.picture.read_bytes() == report.picture.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["little.html", "little.nc", "little.png"]


HOSTILE = "<script>alert(1)</script> \"' & $x_{ ]]> \x00\x1b[31m 漢 \u202e"
hostile = st.text(alphabet=st.sampled_from("<>&\"'$_{}\\[]/;\x00\x07\x7f\n ab é≤\U0001f600"),
                  max_size=12)  # fmt: skip


@settings(deadline=None, derandomize=True, max_examples=15)
@given(hostile, hostile, hostile)
def test_everything_on_the_page_is_escaped(one, two, three):
    grid = {"a": ["x", f"y{one}"]}
    data = made(lambda a: ("error", two) if a == "x" else {"v": 1.0, "w": three},
                study_cells.plain, grid=grid, title=three, labels={"v": one, "a": two})  # fmt: skip
    data.attrs["command"] = f"penchant run {one}"
    found = Pictures(StudyPicture(one, b"png", 9.0), (), (two,))
    tree = parsed(study_page(data, found))
    assert not {e.tag for e in tree.iter()} & {"script", "b<", "i"}
    title = " ".join(tree.find(".//h1").text.split()) if tree.find(".//h1").text else ""
    clean = re.sub("[\x00\x07\x7f]", "\N{REPLACEMENT CHARACTER}", three)
    assert title == " ".join((clean or "little").split())


def test_hostile_text_is_drawn_as_it_stands_and_cannot_end_the_drawing(tmp_path):
    data = made(lambda a, seed: {"v": float(seed), "u": float(len(a))}, study_cells.plain,
                grid={"a": [HOSTILE, "_hidden", "$\\frac{"]}, seeds=2, title=HOSTILE,
                labels={"v": HOSTILE, "u": "$\\oops", "a": "_$"})  # fmt: skip
    written = write_study_report(data, tmp_path)
    assert written.reasons == ()
    text = written.page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    parsed(text)
    assert plain("a\x00漢") == "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"


def test_control_characters_do_not_reach_the_page():
    written = environment().from_string('<p title="{{ text }}">{{ text }}</p>')
    mark = "\N{REPLACEMENT CHARACTER}"
    assert written.render(text="a\x00\ud800b") == f'<p title="a{mark}{mark}b">a{mark}{mark}b</p>'
    assert written.render(text="\x1btab\t\n") == f'<p title="{mark}tab\t\n">{mark}tab\t\n</p>'


# --- the description to copy ---------------------------------------------------------------

keys = st.text(alphabet="ab.-_ é\"'\\\x7f", max_size=4)
scalars = st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=6) | st.floats(
    allow_nan=False, allow_infinity=False
)  # fmt: skip
rows = st.lists(st.dictionaries(keys, scalars, max_size=2), max_size=2)
tables = st.recursive(
    scalars | st.lists(scalars, max_size=3) | rows,
    lambda inner: st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.dictionaries(keys, tables, max_size=4))
def test_toml_reads_back_as_it_was(table):
    assert tomllib.loads(toml(table)) == table
    assert tomllib.loads(toml({**table, "none": None})) == table


def test_the_text_on_the_page_is_the_study(phase):
    description = json.loads(phase.attrs["description"])
    again = Study(**tomllib.loads(toml(description)))
    assert again.describe() == description


# --- files and the command -----------------------------------------------------------------


def test_a_page_without_a_picture_says_why_and_leaves_no_old_one(tmp_path):
    (tmp_path / "little.png").write_bytes(b"old")
    written = write_study_report(made(lambda a: {"word": "x"}, study_cells.plain,
                                      grid={"a": [1.0]}), tmp_path)  # fmt: skip
    assert written.picture is None
    assert [p.name for p in tmp_path.iterdir()] == ["little.html"]
    assert "No picture: study little: its cells gave no number" in written.page.read_text()


@pytest.fixture
def command(monkeypatch, tmp_path):
    """`penchant run` on a study of two cells in an empty folder."""
    monkeypatch.chdir(tmp_path)
    Path("two.toml").write_text('function = "study_cells:moody"\n[grid]\na = [0.0, 4.0]\n')
    words = ("run", "two.toml", "--trust", "--engine", "here", "--out", ".")
    return functools.partial(penchant_command, *words)


def test_the_command_leaves_result_picture_and_page(command):
    code, printed = command()
    assert code == 0
    assert printed.splitlines()[-1] == "report: two.html"
    assert {"two.nc", "two.png", "two.html"} <= {p.name for p in Path().iterdir()}


def test_a_failure_to_draw_costs_no_result(command, monkeypatch):
    def fails(dataset):
        raise RuntimeError("no\nfont")

    monkeypatch.setattr(writing, "draw_study", fails)
    code, printed = command()
    assert code == 0
    assert "no picture: RuntimeError: no font" in printed
    assert "No picture: RuntimeError: no font." in Path("two.html").read_text()
    assert penchant.load("two.nc").value.values.tolist() == [0.0, 4.0]


def test_a_full_disk_leaves_the_result_and_the_older_page(command, monkeypatch):
    def full(*given_):
        raise OSError(errno.ENOSPC, "No space left on device")

    Path("two.html").write_text("older")
    monkeypatch.setattr(writing, "draw_study", lambda dataset: 1 / 0)
    monkeypatch.setattr(writing, "write_text", full)
    code, printed = command()
    assert code == 2
    assert "No space left on device" in printed
    assert Path("two.html").read_text() == "older"
    assert Path("two.nc").exists()
