"""What every figure must pass: data that name themselves and survive the disk, a drawing that says
what it is and can be read."""

import itertools
import re

import numpy as np
from matplotlib.text import Text

from penchant.plotting import styled

GREEK = "alpha|beta|gamma|delta|epsilon|eps|eta|theta|kappa|lambda|mu|nu|rho|sigma|tau|phi"

FORMULA = re.compile(r"(?<!\\)\$.*?(?<!\\)\$", re.DOTALL)
RAW = re.compile(  # mathematics as it is typed: alpha^2, l1, t2, 1e-05, a_hat, <=
    rf"\^|<=|>=|->|(?<![A-Za-z])(?:{GREEK}|l[12]|t[12])(?![A-Za-z0-9])"
    r"|\d[eE][+-]?\d|[A-Za-z0-9]_[A-Za-z0-9]"
)


def flat(text):
    """A typeset text without the places where its lines end."""
    light = re.sub(r"\$\\boldsymbol\{(.*?)\}\$", r"$\1$", text)
    return re.sub(r"\s+", "", light)


def assert_axes_named(picture):
    """Every axis with numbers has a name, or shares the one of a panel beside it."""
    for axes in (axes for axes in picture.axes if axes.axison):
        if axes.get_label() == "<colorbar>":  # it has one axis
            assert axes.get_xlabel() or axes.get_ylabel()
            continue
        beside = {
            "x": axes.get_shared_x_axes().get_siblings(axes),
            "y": axes.get_shared_y_axes().get_siblings(axes),
        }
        numbered = axes.xaxis.get_tick_params().get("labelbottom", True)
        named = any(other.get_xlabel() for other in beside["x"])
        assert named or not numbered, axes.get_title(loc="left")
        assert any(other.get_ylabel() for other in beside["y"]), axes.get_title(loc="left")


def assert_readable(picture):
    """Typeset mathematics, words instead of the names of variables, and nothing on top of it."""
    with styled():
        picture.draw_without_rendering()
    assert not (raw := raw_texts(picture)), raw
    assert not (hit := collisions(picture)), hit


def raw_texts(picture):
    """The texts of a drawing with mathematics as it is typed, or the name of a variable."""
    found = {text.get_text() for text in picture.findobj(Text) if text.get_visible()}
    return sorted(text for text in found if RAW.search(FORMULA.sub("", text)))


def collisions(picture):
    """Pairs of texts of one panel that overlap, among its tick labels and what is written in it."""
    found = []
    for axes in picture.axes:
        groups = [ticks(axes.xaxis), ticks(axes.yaxis)] if axes.axison else []
        written = [text for text in axes.texts if text.get_text() and text.get_visible()]
        for group in (*groups, [*written, *itertools.chain(*groups)]):
            boxes = [(text.get_text(), box(text)) for text in group]
            pairs = itertools.combinations(boxes, 2)
            found += [(a, b) for (a, one), (b, other) in pairs if one.overlaps(other)]
    return sorted(set(found))


def ticks(axis):
    """The labels of an axis that are seen."""
    low, high = sorted(axis.get_view_interval())
    every = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    labels = [(tick.get_loc(), text) for tick in every for text in (tick.label1, tick.label2)]
    shown = [text for at, text in labels if low <= at <= high and text.get_visible()]
    return [text for text in shown if text.get_text()]


def box(text):
    """The letters of a text, without an arrow that leaves it and without the air around it."""
    return Text.get_window_extent(text).padded(-1.0)


def assert_can_be_read(picture):
    """Axes named, texts typeset, legends aside."""
    assert_readable(picture)
    assert_axes_named(picture)
    for axes in (axes for axes in picture.axes if axes.get_legend()):
        assert covered(axes) < 0.02, axes.get_title(loc="left")


def covered(axes):
    """The share of the points of the curves that lie behind the legend."""
    box, inside = axes.get_legend().get_window_extent(), axes.get_window_extent()
    lines = [line.get_transform().transform(line.get_xydata()) for line in axes.lines]
    points = [p for rows in lines for p in rows if np.isfinite(p).all() and inside.contains(*p)]
    return np.mean([box.contains(*p) for p in points])


def assert_tells_its_claim(picture, experiment):
    """The title, the place and what is ours stand in it, and some panel has a legend or a title."""
    assert flat(picture.get_suptitle()) == flat(experiment.title)
    caption = flat(picture._supxlabel.get_text())
    assert flat(experiment.place) in caption
    assert flat(experiment.ours) in caption
    assert any(axes.get_legend() or axes.get_title(loc="left") for axes in picture.axes)


def assert_legends_aside(picture):
    """No legend covers a point of a curve."""
    seen = 0
    with styled():
        picture.canvas.draw()
    for axes in (axes for axes in picture.axes if axes.get_legend()):
        box, inside = axes.get_legend().get_window_extent(), axes.get_window_extent()
        for line in axes.lines:
            points = line.get_transform().transform(line.get_xydata())
            shown = [p for p in points if inside.contains(*p)]
            assert not any(box.contains(*p) for p in shown)
            seen += len(shown)
    assert seen > 6
