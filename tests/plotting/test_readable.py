"""Readable pictures: typeset mathematics, numbers beside curves, ticks apart, 200 dpi."""

import re

import numpy as np
import pytest
import xarray
from matplotlib.text import Annotation
from matplotlib.ticker import LogFormatter, LogLocator

from figure_checks import collisions, raw_texts
from penchant.lab import Plot, Series, read_study
from penchant.mathematics import escape
from penchant.plotting import (
    Note,
    clear_logs,
    in_terminal,
    latex,
    panels,
    sheet,
    styled,
    wrap,
    write_beside,
)
from penchant.plotting.plots import drawable
from penchant.plotting.study.words import short

PHASES = ("phase-scale-width", "phase-scale-accuracy", "phase-start-decay", "phase-step-beta")


# ---- mathematics ----


def test_the_mathematics_of_a_title_is_as_bold_as_its_words():
    picture, _ = sheet(r"near $\alpha^2$")
    assert picture.get_suptitle() == r"near $\boldsymbol{\alpha^2}$"


@pytest.mark.parametrize(
    "text",
    ["$x^{", "5 $ and 6 $", "a^ b_ |", r"\frac", "l1 costs $", "^_^", "$$", r"$\foo$", "$x^2^3$"],
)
def test_texts_of_strangers_cannot_break_a_picture(text):
    picture, (axes,) = sheet(text, text)
    axes.set_xlabel(escape(text))
    picture.draw_without_rendering()
    assert escape(text).replace(r"\$", "").count("$") == 0  # their dollars are signs


def test_lines_do_not_end_within_a_formula():
    long = r"$|\hat{a} - a^*|_\infty = 1$"
    text = wrap(f"a sentence with {long} and more, then {long} again", 16)
    assert text.split("\n").count(long) == 2
    assert max(len(in_terminal(line)) for line in text.split("\n")) <= 16
    assert wrap("\ue000 is a letter of a stranger", 80) == "\ue000 is a letter of a stranger"


def test_numbers_within_formulas():
    shown = [latex(2.5e-6), latex(1e4, ".0e"), latex(0.5), latex(-np.inf), latex(3.0, ".2f")]
    assert shown == [r"2.5 \times 10^{-6}", "10^{4}", "0.5", r"-\infty", "3.00"]


def test_the_checks_find_what_they_look_for():
    picture, (axes,) = sheet("A title")
    axes.plot([0, 1], [0, 1], label="transition_jump = 1e4")
    axes.set(title="near alpha^2 k", xlabel=r"scale $\alpha^2$", ylabel="l2 margin")
    axes.legend()
    picture.draw_without_rendering()
    assert raw_texts(picture) == ["l2 margin", "near alpha^2 k", "transition_jump = 1e4"]
    assert collisions(picture) == []
    axes.set_xticks([0.5, 0.51], ["one long label", "another one"])
    picture.draw_without_rendering()
    assert collisions(picture) == [("one long label", "another one")]


# ---- ticks ----


def report_plot(low, high):
    x = np.geomspace(low, high, 6)
    return Plot("angle", r"$\alpha$", "angle", [Series("one", x, 1 / x)], "log", "log")


@pytest.mark.parametrize(
    ("low", "high"),
    [(20, 640), (2, 9), (1e-3, 1e5), (0.8, 1.2), (3, 30), (6e3, 1.9e4), (3e-6, 9e-6), (2e6, 4e6)],
)
def test_numbers_on_logarithmic_axes_stay_apart(low, high):
    picture = panels("A title", [report_plot(low, high)])
    picture.draw_without_rendering()
    assert raw_texts(picture) == []
    assert collisions(picture) == []


def test_numbers_on_logarithmic_axes_are_plain_text_with_the_value_of_their_tick():
    picture, (wide, narrow) = sheet("", widths=(5.0, 5.0))
    wide.loglog([1e-12, 1e3], [1, 1e5])
    narrow.semilogx([0.15, 0.6], [1, 2])
    narrow.set_xticks([0.15, 0.4])
    clear_logs(picture).draw_without_rendering()
    plain = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
    for axis in (wide.xaxis, wide.yaxis, narrow.xaxis):
        shown = [tick for tick in axis.get_major_ticks() if tick.label1.get_text()]
        assert len(shown) >= 2
        for tick in shown:
            text = tick.label1.get_text().translate(plain)
            front, exponent = re.fullmatch(r"(?:(.+) × )?10(-?\d+)", text).groups()
            assert float(front or 1) * 10.0 ** int(exponent) == pytest.approx(tick.get_loc())


class EveryNumber(LogFormatter):
    """A number at every tick, as some versions of matplotlib write them."""

    def __call__(self, x, pos=None):
        return f"{x:e}"


def test_without_care_the_numbers_of_a_decade_and_a_half_overlap():
    picture, (axes,) = sheet("", widths=(5.0,))
    axes.loglog([20, 640], [1, 2])
    axes.xaxis.set_minor_formatter(EveryNumber())
    axes.xaxis.set_minor_locator(LogLocator(subs=np.arange(1, 10), numticks=200))
    picture.draw_without_rendering()
    assert len(collisions(picture)) > 3
    clear_logs(picture).draw_without_rendering()
    assert collisions(picture) == []


# ---- plots that are plain data ----


def test_a_plot_draws_the_numbers_it_was_given():
    series = [Series("a", [1, 2, 3], [3.0, 4.0, 5.0]), Series("b", [1, 2], [1, 2], "points")]
    plot = Plot("t", "x axis", "y axis", series, y_scale="log", caption="a remark")
    picture = panels("A title", [plot], "the caption")
    (axes,) = picture.axes
    assert [line.get_ydata().tolist() for line in axes.lines] == [[3, 4, 5], [1, 2]]
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x axis", "y axis")
    assert [text.get_text().strip() for text in axes.get_legend().get_texts()] == ["a", "b"]
    assert picture.get_supxlabel() == "a remark the caption"


@pytest.mark.parametrize("scale", ["linear", "log", "symlog"])
@pytest.mark.parametrize("values", [[], [np.nan] * 2, [np.inf, -1.0], [0.0, 0.0], [1e-300, 1]])
def test_difficult_numbers_are_drawn_without_a_warning(scale, values):
    styles = ("line", "dashed", "points", "steps")
    several = [Series(f"_$x_{style}", values, values, style) for style in styles]
    panels("$", [Plot("$", "x^$", "$y", several, scale, scale)]).draw_without_rendering()


def test_what_an_axis_cannot_show_leaves_a_gap():
    values = [1.0, np.inf, np.nan, 0.0, -2.0]
    assert np.isfinite(drawable(values, "log")).tolist() == [True, False, False, False, False]
    assert np.isfinite(drawable(values, "linear")).tolist() == [True, False, False, True, True]


# ---- numbers beside curves ----


def on_curve(axes, curve):
    """How many annotations have a point of the curve in them."""
    x, y = curve[:, 0], curve[:, 1]
    fine = np.linspace(x[0], x[-1], 4000)
    points = axes.transData.transform(np.stack([fine, np.interp(fine, x, y)], axis=-1))
    notes = [text for text in axes.texts if isinstance(text, Annotation)]
    return sum(bool(note.get_window_extent().count_contains(points)) for note in notes)


def test_numbers_beside_a_curve_cover_neither_it_nor_one_another():
    x = np.linspace(0, 6, 200)
    curve = np.stack([x, np.sin(x)], axis=-1)
    with styled():
        picture, (axes,) = sheet("")
        axes.plot(*curve.T)
        notes = [Note(point, "$10^3$", {"fontsize": 9}) for point in curve[::5]]
        written = write_beside(axes, notes, [curve], marks=curve[[0]])
        picture.draw_without_rendering()
    assert 15 < len(written) < len(notes)  # some have no room
    assert on_curve(axes, curve) == 0
    frames = [text.get_window_extent() for text in axes.texts]
    assert not any(a.overlaps(b) for a in frames for b in frames if a is not b)
    assert all(axes.bbox.count_contains(frame.corners()) == 4 for frame in frames)
    for text in axes.texts:
        text.set_position((0, 0))
    assert on_curve(axes, curve) == len(written)  # the control: on their points they do cover it


# ---- phase diagrams ----


@pytest.mark.parametrize("name", PHASES)
def test_a_phase_diagram_says_what_its_variables_mean(name):
    study = read_study(name)
    drawn = study.draw
    for variable in (drawn["x"], drawn["y"], *drawn["contours"]):
        values = xarray.Dataset({variable: ((), 1.0, {"long_name": study.labels[variable]})})
        text = short(values, variable)
        assert " " in text, (variable, text)  # words, not the name of a variable
        assert len(in_terminal(text)) <= 48
    bare = xarray.Dataset({"transition_jump": ((), 1.0)})
    assert short(bare, "transition_jump") == "transition_jump"  # the control: no words, the name


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"$\alpha^2 k$ of order one", "α² k of order one"),
        (r"$|a - a^*|_1$ and $\ell_\infty$, $\ell_1$ at $t_2$", "|a − a*|₁ and ℓ∞, ℓ₁ at t₂"),
        (r"$w_+^2 - w_-^2$ within $10^{-5}$", "w₊² − w₋² within 10⁻⁵"),
        (r"$d^{-1/2 + D}$, $\sigma_{\min}$, $\hat{a}$, $x_i$", "d^(−1/2 + D), σₘᵢₙ, a\u0302, xᵢ"),
        (r"$Q_{\alpha,w_0}$, $\log(1/\mathrm{loss})$, $x^2/2$", "Q_(α,w₀), log(1/loss), x²/2"),
        (r"$\operatorname{arcsinh}(z) \leq \sqrt{k d}$", "arcsinh(z) ≤ √(k d)"),
        (r"it costs $5 and alphabet soup, beta 7e-5, W&B, h5py, \$", None),
    ],
)
def test_a_terminal_shows_mathematics_in_letters(text, shown):
    assert in_terminal(text) == (text.replace(r"\$", "$") if shown is None else shown)


def test_a_logarithmic_axis_that_shows_no_positive_value_is_left_alone():
    picture, (axes,) = sheet("", widths=(5.0,))
    axes.set_yscale("log")
    axes.yaxis.set_view_interval(0.0, 1.0, ignore=True)
    formatter = axes.yaxis.get_major_formatter()
    clear_logs(picture)
    assert axes.yaxis.get_major_formatter() is formatter
