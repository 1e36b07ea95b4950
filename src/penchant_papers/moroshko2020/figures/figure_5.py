"""Figure 5: how small the loss must be for training to be near the l1 max margin."""

from __future__ import annotations

import numpy as np

from penchant import L1
from penchant.lab import Array, Axes, Dataset, Evidence, Experiment, Figure, at_most, sized, within
from penchant.measures import crossing, excess_norm
from penchant.plotting import CYCLE, GREY, latex, sheet_of
from penchant.problems import three_points
from penchant.regularizers import Lp
from penchant_papers.moroshko2020.figures.accuracy import POINTS, draw_along, study_of
from penchant_papers.moroshko2020.stopping import follow, max_margin_of

PER_DECADE = 30
REACH = 3e4  # the level is searched for up to this many alpha^D
LEVEL = 0.05
LARGE, SMALL, TINY = (10.0, 1000.0), (0.01, 1.0), (1e-14, 1e-10)  # alpha^D of the fits
TITLE = "Coming near ℓ₁ takes an extremely small loss, less so for deep nets and small starts"


def cell(depth: int, start: float, level: float, rtol: float) -> dict[str, float]:
    """The smoothed margin beyond which the excess l1 norm stays below the level, or NaN.

    `start` is alpha^D. Between two recorded margins both logarithms are linear in each other.
    """
    problem = three_points(POINTS)
    first, last = 1e-3 * min(1.0, start), REACH * max(start, 0.01)
    margins = np.geomspace(first, last, round(PER_DECADE * np.log10(last / first)))
    path = follow(problem, depth, start ** (1 / depth), margins, rtol)
    excess = excess_norm(problem, path.predictor.values, L1(), margin=path.margin.values)
    backwards = np.log(np.where(excess > 0, excess, np.inf))[::-1]
    return {"needed": float(np.exp(crossing(np.log(margins[::-1]), backwards, np.log(level))))}


study = sized(
    "M-F5",
    title=TITLE,
    function=cell,
    arguments={"level": LEVEL, "rtol": 1e-6},
    grid={"depth": [2, 3, 10], "start": {"logspace": [-2.0, 3.0, 6]}},
    labels={
        "depth": "depth $D$",
        "start": r"scale of the predictor at the start, $\alpha^D$",
        "needed": r"smoothed margin beyond which the excess $\ell_1$ norm stays below 5 %",
    },
    draw={"x": "start", "colour": "needed", "log": True},
    printed={
        "arguments": {"rtol": 1e-10},
        "grid": {"start": {"logspace": [-2.0, 3.0, 31]}},
    },
)
tiny_starts = sized(
    "M-F5-small",
    title="The same from starts far below one",
    function=cell,
    arguments={"level": LEVEL, "rtol": 1e-6},
    grid={"depth": [2, 3, 10], "start": [1e-14, 1e-10, 1e-6]},
    printed={
        "arguments": {"rtol": 1e-10},
        "grid": {"start": {"logspace": [-14.0, -3.0, 23]}},
    },
)


def norms_cell(points: str) -> dict[str, float]:
    """The l1 max margin's excess in two quasi-norms, and the printed excess of a trained w.

    The latter is |w|_1 / |w_l1|_1 - 1 without the margin of w, at log(1/loss) = 10^5.
    """
    problem = three_points(points)
    l1 = max_margin_of(problem, "l1")
    w = follow(problem, 2, 1.0, [1e5]).predictor.values[0]
    return {
        "third": float(excess_norm(problem, l1, Lp(2 / 3))),
        "tenth": float(excess_norm(problem, l1, Lp(2 / 10))),
        "unscaled": float(np.abs(w).sum() / np.abs(l1).sum() - 1),
        "scaled": float(excess_norm(problem, w, L1())),
    }


norms = sized("M-F5-norms", function=norms_cell, grid={"points": [POINTS, "4a"]})
along = study_of(
    "M-F5a",
    "The excess ℓ₁ norm falls with the loss, faster at greater depth",
    "excess_l1",
    (-1.0, 5.0),
    points=91,
    finer=281,
)


def line(start: Array, needed: Array, between: tuple[float, float]) -> tuple[float, float]:
    """(slope, intercept) of log10 needed against log10 start, for starts in a range."""
    inside = (start >= 0.999 * between[0]) & (start <= 1.001 * between[1])
    slope, intercept = np.polyfit(np.log10(start[inside]), np.log10(needed[inside]), 1)
    return float(slope), float(intercept)


def lines(dataset: Dataset, between: tuple[float, float]) -> dict[int, tuple[float, float]]:
    """The fitted line of every depth."""
    start = dataset.start.values
    return {
        int(depth): line(start, dataset.needed.sel(depth=depth).values, between)
        for depth in dataset.depth.values
    }


def check(dataset: Dataset, along: Dataset, small: Dataset, norms: Dataset) -> Evidence:
    """Slopes above and below alpha^D = 1, intercepts and the order of the curves of (a)."""
    large, below = lines(dataset, LARGE), lines(dataset, SMALL)
    tiny = lines(small, TINY)
    slopes = {
        rf"$D = {D}$: slope for $\alpha^D$ from 10 to 1000": within(a, 1.0, 0.02)
        for D, (a, _) in large.items()
    }
    printed = {
        rf"$D = {D}$: slope for $\alpha^D$ from 0.01 to 1": within(a, 1.0, 0.02)
        for D, (a, _) in below.items()
    }
    mended = {
        rf"$D = {D}$: slope for $\alpha^D$ from $10^{{-14}}$ to $10^{{-10}}$": within(a, 1.0, 0.02)
        for D, (a, _) in tiny.items()
    }
    intercepts = np.array([b for _, b in large.values()])
    falling = at_most(np.diff(intercepts).max(), -0.1)
    last = along.excess_l1.transpose("depth", "scale").values
    deeper = at_most((last[1:] / last[:-1]).max(), 0.9)
    smaller = at_most((last[:, 0] / last[:, 1]).max(), 0.9)
    own, other = (norms.sel(points=points) for points in (POINTS, "4a"))
    same = at_most(max(float(own.third), float(own.tenth)), 1e-6)
    unscaled = at_most(own.unscaled, 0.05)
    others = {
        r"excess of the $\ell_1$ max margin in $\ell_{2/3}$ and $\ell_{2/10}$, larger": same,
        "largest step of the intercept from one depth to the next": falling,
        "(a): largest ratio of excess norms at the last loss, each depth over the"
        " previous one": deeper,
        r"(a): largest ratio of excess norms at the last loss, $\alpha^D = 0.1$ over 1": smaller,
    }
    alphas = np.log10(dataset.start.values[-1]) - np.log10(LARGE[0])
    two = dataset.needed.sel(depth=2).values
    first_slope = next(iter(slopes.values()))
    return Evidence(
        ran=rf"panel 3b at depths 2, 3 and 10 from {dataset.sizes['start']} scales $\alpha^D$ "
        f"between 0.01 and 1000 and {small.sizes['start']} from $10^{{-14}}$ on, until the "
        r"excess $\ell_1$ norm stays below 5 %",
        checks={
            **slopes,
            **printed,
            **others,
            r"$D = 2$, $\alpha = 1$, loss $e^{-100000}$: $|w|_1 / |w_{\ell_1}|_1 - 1$ as printed": (
                unscaled
            ),
        },
        corrected={
            **slopes,
            **mended,
            **others,
            r"the same run: $|w/\gamma|_1 / |w_{\ell_1}|_1 - 1$": at_most(own.scaled, 0.05),
        },
        correction=r"the accuracy needed is proportional to $\alpha^D$ for large $\alpha$, and "
        r"for $\alpha \to 0$ again, where the level is reached while the loss is still near "
        r"1, but with another constant: below $\alpha^D = 1$ it changes from one to the other "
        "over three to nine decades, so that the slope there is less than 1 ("
        + ", ".join(f"{a:.2f} at $D = {D}$" for D, (a, _) in below.items())
        + " between 0.01 and 1). The excess norm, here and in appendix H.2, has to be that of "
        r"$w/\gamma$: $w(t)$ itself diverges",
        counterexample={
            **{
                rf"$D = {D}$: slope for $\alpha^D$ from 0.01 to 1": a for D, (a, _) in below.items()
            },
            **{
                rf"$D = {D}$: log10 of the constant, large $\alpha$": b
                for D, (_, b) in large.items()
            },
            **{
                rf"$D = {D}$: log10 of the constant, $\alpha \to 0$": b
                for D, (_, b) in tiny.items()
            },
        },
        premises={
            "the level is reached from every start": (
                bool(np.isfinite(dataset.needed).all() and np.isfinite(small.needed).all()),
                rf"fits over {alphas:.0f} decades of $\alpha^D$",
            )
        },
        controls={
            r"accuracy proportional to $\alpha$ in place of $\alpha^D$ ($D = "
            "2$)": first_slope.control(predicted=0.5),
            r"an intercept that does not fall: large $\alpha$ against $\alpha \to 0$ at $D = 2$": (
                falling.control(tiny[2][1] - large[2][1])
            ),
            "(a) at the first loss, where all are alike": deeper.control(
                along.trajectory_excess_l1.sel(depth=3, scale=1.0)[0]
                / along.trajectory_excess_l1.sel(depth=2, scale=1.0)[0]
            ),
            r"panel 4a: excess of its $\ell_1$ max margin in $\ell_{2/3}$": same.control(
                other.third
            ),
            r"(a) at the first loss: $\alpha^D = 0.1$ over 1, $D = 2$": smaller.control(
                along.trajectory_excess_l1.sel(depth=2, scale=0.1)[0]
                / along.trajectory_excess_l1.sel(depth=2, scale=1.0)[0]
            ),
        },
        findings=[
            rf"at $D = 2$ and $\alpha^2 = {latex(dataset.start.values[-1])}$ an excess of 5 % "
            rf"needs $\log(1/\mathrm{{loss}}) = {latex(two[-1], '.3g')}$"
        ],
    )


def draw(dataset: Dataset, along: Dataset, small: Dataset, _: Dataset) -> Figure:
    """The fall of the excess l1 norm, and the accuracy that 5 % of it needs."""
    picture, (a, b, c) = sheet_of(dataset, widths=(5.0, 5.8, 5.0), height=5.0)
    draw_along(a, along, "excess_l1", loc="lower left")
    a.set(yscale="log", ylabel=r"excess $\ell_1$ norm", ylim=(1e-3, None))
    a.axhline(LEVEL, color=GREY, linewidth=1)
    a.annotate(
        f"{LEVEL:.0%}",
        (1, LEVEL),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="bottom",
        color=GREY,
    )
    a.set_title("(a) the excess falls with the loss, faster at greater depth")
    _needed(b, dataset)
    _constants(c, dataset, small)
    return picture


def _needed(axes: Axes, dataset: Dataset) -> None:
    """Panel (b): the measured points, the fitted lines and their numbers."""
    x, large, below = dataset.start.values, lines(dataset, LARGE), lines(dataset, SMALL)
    for colour, depth in zip(CYCLE, dataset.depth.values, strict=False):
        slope, intercept = large[int(depth)]
        text = rf"$D = {depth}$: $a = {slope:.3f}$, $b = {intercept:.2f}$"
        text += rf"; below 1: $a = {below[int(depth)][0]:.2f}$"
        axes.plot(x, dataset.needed.sel(depth=depth), "o", color=colour, markersize=5, label=text)
        fitted = 10**intercept * x**slope
        axes.plot(x, fitted, ":", color=colour, linewidth=1.2)
        inside = x >= 0.999 * LARGE[0]
        axes.plot(x[inside], fitted[inside], color=colour, linewidth=1.2)
    axes.set(xscale="log", yscale="log", xlabel=r"scale of the start, $\alpha^D$")
    axes.set_ylabel(rf"$\tilde\gamma$ needed for {LEVEL:.0%} excess")
    axes.legend(
        loc="upper left", title=r"$\log_{10}\tilde\gamma = a\,\log_{10}\alpha^D + b$ (lines)"
    )
    axes.set_title(r"(b) $\tilde\gamma \propto \alpha^D$ above 1, slower below")


def _constants(axes: Axes, dataset: Dataset, small: Dataset) -> None:
    """Panel (c): the accuracy needed over alpha^D, which has two levels."""
    for colour, depth in zip(CYCLE, dataset.depth.values, strict=False):
        for data in (dataset, small):
            needed = data.needed.sel(depth=depth) / data.start
            axes.plot(data.start, needed, "o", color=colour, markersize=5)
        axes.plot([], [], "o", color=colour, label=f"$D = {depth}$")
    axes.set(xscale="log", yscale="log", xlabel=r"scale of the start, $\alpha^D$")
    axes.set_ylabel(rf"$\tilde\gamma\,/\,\alpha^D$ needed for {LEVEL:.0%} excess")
    axes.legend(loc="upper right")
    axes.set_title(r"(c) the constant for $\alpha \to 0$ differs")


experiment = Experiment(
    "M-F5",
    statement=r"The $\log(1/\mathrm{loss})$ needed to come within 5 % of the $\ell_1$ max margin "
    r"is proportional to $\alpha^D$, for large and for small $\alpha$; it is smaller at "
    "greater depth and from smaller starts.",
    place="section 5, Figure 5",
    study=(study, along, tiny_starts, norms),
    check=check,
    draw=draw,
    title=TITLE,
    ours=r"the three points (those of Figure 3(b)). Excess $\ell_1$: the $\ell_1$ norm of $w$ / "
    r"(its margin min $y_n \langle w, x_n\rangle$) over that of the $\ell_1$ max margin, "
    "minus 1",
    seconds=2,
)
