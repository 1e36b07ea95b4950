"""Pictures for papers: their width, whole fonts, no title, panels in a column, the numbers."""

from __future__ import annotations

import csv
import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_pdf import PdfPages

import penchant
from figure_checks import collisions
from penchant.lab import Plot, Series
from penchant.plotting import CYCLE, clear_logs, for_paper, panels, sheet, styled
from penchant.plotting.drawn_data import HEAD, table_of
from penchant.plotting.plots import FEW


def curves(points=30, count=2):
    x = np.geomspace(1, 100, points)
    series = [Series(f"curve {k}", x, x**k) for k in range(1, count + 1)]
    return Plot(
        "A title of a panel that is long enough to be broken", "x", "y", series, "log", "log"
    )


def saved(figure, kind="pdf"):
    stream = io.BytesIO()
    figure.savefig(stream, format=kind)
    return stream.getvalue()


# ---- fonts and style ----


def test_a_pdf_has_whole_fonts_that_can_be_edited():
    figure = panels("A title", [curves()])
    for content in (saved(figure), saved(penchant.Solution.plot(_solution()))):
        assert b"/CIDFontType2" in content  # TrueType, which is type 42 inside
        assert b"/Type3" not in content
    stream = io.BytesIO()
    with plt.rc_context({"pdf.fonttype": 3}), PdfPages(stream) as pages:  # the control
        other = plt.figure()
        other.text(0.5, 0.5, "letters")
        pages.savefig(other)
        plt.close(other)
    assert b"/Type3" in stream.getvalue()


def _solution():
    return penchant.interpolate([[1.0, 2.0], [0.5, 0.1]], [2.0, 1.0], penchant.L1())


def test_the_style_is_published():
    with plt.style.context("penchant.plotting.style"):
        assert plt.rcParams["pdf.fonttype"] == plt.rcParams["ps.fonttype"] == 42
        assert plt.rcParams["axes.prop_cycle"].by_key()["color"] == list(CYCLE)
        own = dict(plt.rcParams)
    with styled():
        assert {name: plt.rcParams[name] for name in own} == own
    assert plt.rcParams["font.size"] == plt.rcParamsDefault["font.size"]  # it ends with its block


# ---- the page ----


@pytest.mark.parametrize("width", [2.5, 3.25, 6.75])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_picture_has_the_width_of_its_column_and_legible_panels(width, count):
    with for_paper(width):
        figure = panels("A title", [curves()] * count, "a caption")
    figure.draw_without_rendering()
    assert figure.get_figwidth() == pytest.approx(width)
    assert figure.get_figheight() < 9.5
    assert figure.get_suptitle() == figure.get_supxlabel() == ""
    for axes in figure.axes:
        box = axes.get_window_extent()
        assert box.width / figure.dpi > 1.1
        assert axes.xaxis.label.get_fontsize() == 8
        assert axes.title.get_window_extent().width <= 1.2 * figure.get_figwidth() * figure.dpi
    assert collisions(figure) == []
    columns = {round(axes.get_position().x0, 2) for axes in figure.axes}
    assert len(columns) == min(count, max(1, int(width / 1.9)))


def test_the_page_ends_with_its_block_and_stays_with_its_pictures():
    with for_paper(3.25):
        narrow = panels("A title", [curves()])
    wide = panels("A title", [curves()])
    assert wide.get_figwidth() > 5
    assert wide.get_suptitle() == "A title"
    png = plt.imread(io.BytesIO(saved(narrow, "png")))
    assert png.shape[1] == 650  # 3.25 inches, 200 pixels each
    sizes = [label.get_fontsize() for label in narrow.axes[0].get_xticklabels()]
    assert set(sizes) == {7}  # they are made when it is saved, long after the block


def test_a_page_may_keep_titles_and_its_own_width():
    with for_paper(3.25, bare=False):
        figure, _ = sheet("A title", "a caption")
    assert figure.get_suptitle() == "A title"
    with for_paper(None):
        figure, _ = sheet("A title", "a caption")
    assert (figure.get_figwidth(), figure.get_suptitle()) == (6.0, "")


@pytest.mark.parametrize(("width", "rule"), [(0.5, "1.5 to 40"), (99, "1.5 to 40"), (-1, "> 0")])
def test_impossible_widths_are_refused(width, rule):
    with pytest.raises(ValueError, match=f"for_paper: width must be .*{rule}"):
        for_paper(width)


# ---- marks ----


def test_short_curves_have_all_their_marks_and_long_ones_a_few():
    for points, all_of_them in ((FEW - 1, True), (3, True), (FEW, False), (200, False)):
        figure = panels("A title", [curves(points)])
        every = {line.get_markevery() for line in figure.axes[0].lines}
        assert (every == {1}) == all_of_them


# ---- the numbers ----


def read(figure):
    return list(csv.DictReader(io.StringIO(table_of(figure))))


def test_the_table_has_every_point_that_is_drawn():
    rows = read(panels("A title", [curves(7), curves(5, count=1)]))
    assert tuple(rows[0]) == HEAD
    assert len(rows) == 2 * 7 + 5
    first = [row for row in rows[: 2 * 7] if row["series"].strip() == "curve 2"]
    np.testing.assert_array_equal([float(row["x"]) for row in first], np.geomspace(1, 100, 7))
    np.testing.assert_array_equal([float(row["y"]) for row in first], np.geomspace(1, 100, 7) ** 2)
    assert {row["x_label"] for row in rows} == {"x"}


def test_points_cells_and_bars_are_in_the_table_and_guides_are_not():
    figure, (axes,) = sheet("A title")
    axes.scatter([1, 2], [3, 4], c=[5, 6], label="dots")
    axes.pcolormesh([0, 1, 2], [0, 1], [[7, 8]])
    axes.bar([1, 3], [9, 10], label="bars")
    axes.axhline(0.5)
    axes.set(xlabel=r"$\alpha^2$", title="all")
    rows = [tuple(row.values()) for row in read(figure)]
    assert rows == [
        ("all", "α²", "", "dots", "1.0", "3.0", "5.0"),
        ("all", "α²", "", "dots", "2.0", "4.0", "6.0"),
        ("all", "α²", "", "", "0.5", "0.5", "7.0"),
        ("all", "α²", "", "", "1.5", "0.5", "8.0"),
        ("all", "α²", "", "bars", "1.0", "9.0", ""),
        ("all", "α²", "", "bars", "3.0", "10.0", ""),
    ]


def test_a_curve_without_a_name_has_that_of_the_legend_with_its_look():
    figure, (axes, other) = sheet("A title", widths=[4.0, 4.0])
    for shift in (0, 1):
        axes.plot([1, 2], [3 + shift, 4], ".", color="red")
        other.plot([1, 2], [3, 4], "--", color="blue")
    axes.plot([], [], ".", color="red", label="single seeds")
    axes.plot([1], [2], "-", color="red")  # another look
    axes.legend()
    other.plot([], [], "--", color="blue", label="one")
    other.plot([], [], "--", color="blue", label="two")
    other.legend()
    rows = read(figure)
    names = [row["series"] for row in rows]
    assert names == ["single seeds"] * 4 + [""] * 5  # two entries of one look name neither


# ---- legends ----


def covered(figure):
    """Whether the legend of the first panel lies on one of its curves; and whether it is below."""
    figure.draw_without_rendering()
    axes = figure.axes[0]
    box = axes.get_legend().get_window_extent()
    points = np.vstack([line.get_transform().transform(line.get_xydata()) for line in axes.lines])
    return bool(box.count_contains(points)), bool(box.y1 < axes.bbox.y0), box


@pytest.mark.parametrize("crowded", [True, False])
def test_a_legend_that_would_cover_data_goes_below_its_panel(crowded):
    def drawn():
        figure, (axes,) = sheet("A title")
        x = np.linspace(0, 1, 400)
        for k in range(4):
            axes.plot(x, np.sin(60 * x + k) if crowded else x / 20, label=f"a curve number {k}")
        axes.set(xlabel="x", ylim=(-1, 1))
        axes.legend(loc="upper left")
        return figure

    figure = drawn()
    assert covered(figure)[0] == crowded  # the control: on a wide page it stays where it was put
    with for_paper(3.25):
        figure = drawn()
    high = figure.get_figheight()
    lies_on, below, box = covered(figure)
    assert (lies_on, below) == (False, crowded)
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1 + 1
    assert (figure.get_figheight() > high) == crowded
    assert collisions(figure) == []
    again = figure.get_figheight()
    figure.draw_without_rendering()
    assert figure.get_figheight() == again


def test_long_names_below_an_axis_are_broken_unless_they_are_turned():
    names = ["depth 2", "analytic map", "depth 3", "unequal layers", "depth 5"]
    for turned in (0, 90):
        with for_paper(3.25):
            figure, (axes,) = sheet("A title")
            axes.plot(range(5), range(5))
            axes.set_xticks(range(5), names, rotation=turned)
            figure.draw_without_rendering()
        shown = [label.get_text() for label in axes.get_xticklabels()]
        broken = [name.replace(" map", "\nmap").replace(" layers", "\nlayers") for name in names]
        assert shown == (names if turned else broken)


def test_an_axis_between_two_and_five_has_plain_numbers():
    figure, (axes, ten, wide) = sheet("A title", widths=[4.0, 4.0, 4.0])
    axes.loglog([0.17, 0.47], [0.17, 0.47])
    ten.loglog([8, 16], [8, 16])
    wide.loglog([0.17, 0.6], [0.17, 0.6])
    clear_logs(figure)
    figure.draw_without_rendering()

    def shown(axes):
        labels = axes.xaxis.get_ticklabels(which="both")
        return [text for label in labels if (text := label.get_text())]

    assert {"0.2", "0.3", "0.4"} <= set(shown(axes))
    assert {"8", "9", "10"} <= set(shown(ten))
    assert {"2 × 10⁻¹", "5 × 10⁻¹"} <= set(shown(wide))


def test_long_names_of_rows_are_broken():
    with for_paper(3.25):
        figure, (axes,) = sheet("A title")
        axes.plot([0, 1], [0, 1])
        axes.set_yticks([0, 1], ["short", "a name of twenty-six letters"])
    figure.draw_without_rendering()
    assert "\n" in axes.get_yticklabels()[1].get_text()
    assert axes.bbox.width > 0.6 * figure.bbox.width


def test_a_wide_legend_reaches_below_the_labels_of_the_axis_and_leaves_the_panel_its_width():
    with for_paper(3.25):
        figure, all_axes = sheet("A title", widths=(5.0, 5.0))
    for axes in all_axes:
        for k in range(4):
            axes.plot([0, 1], [k, 1 - k], label=f"a curve that is number {k}")
        axes.set(xlabel="x", ylabel="a label of\nthe axis")
        axes.legend()
    figure.draw_without_rendering()
    box = figure.axes[0].get_legend().get_window_extent()
    assert box.width > figure.axes[0].bbox.width
    assert box.x0 >= 0
    assert figure.axes[0].bbox.width > 0.7 * figure.bbox.width
