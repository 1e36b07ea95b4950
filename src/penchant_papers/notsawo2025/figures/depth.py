"""Overparameterization with depth: sparse recovery by diagonal nets from a small start."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from penchant import L1, L2, DiagonalNet, GradientDescent, Q, Regression, Steps, interpolate, train
from penchant.lab import (
    Array,
    Axes,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    at_most,
    drawn,
    sized,
)
from penchant.models import Model
from penchant.plotting import BLACK, CYCLE, GREY, LEGEND, MARKERS, caption_of, latex, sheet
from penchant.record import LogSpaced
from penchant.regularizers import Regularizer
from penchant.stop import Loss
from penchant_papers.instances import listed
from penchant_papers.notsawo2025.figures.runs import curves_of, dims_of, plain
from penchant_papers.notsawo2025.recoveries import SOLVED, Recovery, count, reached, recovery

BUDGET = 1_000_000  # N: steps
STEP, START, FLAT_START = 0.1, 1e-2, 1e-6  # learning rate; start per layer, and at depth 1
LEVEL = 1e-2  # relative error at t2
# Relative error of a minimiser that counts as recovery, a third of what least squares leaves with
# 90 of 100 samples, sqrt(1 - N/n) = 0.3. At LEVEL two layers from this start have errors of the
# size that the start itself leaves, with 90 samples still, so that one draw decides.
RECOVERED = 0.1
FITTED = 1e-14  # training loss at which a run ends
FEW = [30, 40, 50]  # samples at which l1 always recovers and least squares does not
SHOWN = 30  # samples of the runs that are drawn
CURVES = ("step", "loss", "relative_error")


def bias_of(depth: int, start: float = START) -> Regularizer:
    """The regularizer that descent minimises among the interpolators as its step goes to 0."""
    return L2() if depth == 1 else Q(depth, alpha=start)


def off(case: Recovery, bias: Regularizer, point: Array, outputs: Array | None = None) -> float:
    """The distance of a point to the interpolator that the bias selects, over |a*|.

    With `outputs`, the interpolator of those in place of the data.
    """
    selected = interpolate(case.X, case.y if outputs is None else outputs, bias).beta
    return float(np.linalg.norm(point - selected) / np.linalg.norm(case.truth))


def cell(depth: int, **problem: Any) -> dict[str, float]:
    """Errors of the minimisers: of Q at this depth, of Q from a large start, of the l1 norm."""
    case = recovery(**problem)
    biases = {"error": bias_of(depth), "large_error": bias_of(depth, 1.0), "sparse_error": L1()}
    return {name: off(case, bias, case.truth) for name, bias in biases.items()}


def run_cell(
    depth: int, *, points_per_decade: int, most: int, signed: bool, **problem: Any
) -> dict[str, Any]:
    """A run without a penalty until it fits or has taken `most` steps, with its times.

    `to_bias`, `to_l2` and `to_depth_2` are distances of its end to the minimisers among the vectors
    with its own outputs, over |a*|: the flow is such a minimiser of Q at every time, and what is
    left of the residual, which would move those of the data, is no part of the distance. Without
    `signed` the predictor is one copy w^L, which cannot change its sign; it is tried on a truth
    whose negative entries hold most of its norm.
    """
    case = recovery(**problem) if signed else of_both_signs(**problem)
    net: Model = case.model(FLAT_START)
    if depth > 1:
        net = DiagonalNet(depth, alpha=START, signed=signed)
    rules: Any = {"stop": [Steps(most), Loss(FITTED)], "record": LogSpaced(points_per_decade)}
    path = train(net, case.problem, GradientDescent(STEP), **rules)
    run, end, bias = path.dataset, path.predictor, bias_of(depth)
    outputs = case.X @ end
    return {
        "to_bias": off(case, bias, end, outputs),
        "to_l2": off(case, L2(), end, outputs),
        "to_depth_2": off(case, bias_of(2), end, outputs),
        "t1": reached(run.step, run.loss, SOLVED),
        "t2": reached(run.step, run.relative_error, LEVEL),
        "end_error": float(run.relative_error[-1]),
        "end_predicted": off(case, bias, case.truth),
        "start_predicted": escape(case, depth, START) / STEP,
        "misfit": float(np.linalg.norm(case.X @ end - case.y) / np.linalg.norm(case.y)),
        **curves_of(run, CURVES),
    }


def of_both_signs(*, seed: int, **given: Any) -> Recovery:
    """The first recovery from this seed on whose truth is mostly negative, in squares, not all.

    With less than three quarters below zero, a third layer may gain more on what is above.
    """

    def mixed(case: Recovery) -> bool:
        below = np.sum(np.minimum(case.truth, 0.0) ** 2) / np.sum(case.truth**2)
        return bool(0.75 <= below < 1.0)

    return drawn(lambda place: recovery(seed=place, **given), mixed, seed)[0]


def escape(case: Recovery | Regression, depth: int, start: float) -> float:
    """The time in which one weight w grows from `start` until w^depth = c = |X^T y|_inf.

    c is the steepest slope of the loss at zero, where dw/dt = depth c w^(depth-1).
    """
    c = float(np.abs(case.X.T @ case.y).max())
    end = c ** (1 / depth)
    if depth == 2:
        return math.log(end / start) / (2 * c)
    power = 2 - depth
    begin = start if depth > 1 else 0.0
    return (end**power - begin**power) / (power * depth * c)


LABELS = {
    "samples": "number $N$ of samples",
    "depth": "number $L$ of layers",
    "error": "relative error $|a - a^*|/|a^*|$ of the exact minimiser of $Q$ at this depth",
    "large_error": "the same from a start of 1 per layer",
    "sparse_error": r"the same for the interpolator of least $\ell_1$ norm, at all depths",
    "t1": "step at which the training loss falls to $10^{-4}$",
    "t2": "step at which the relative error falls to the level; nan if never",
    "end_error": "relative error at the end of the run",
    "end_predicted": "relative error of the exact minimiser on the same problem",
    "start_predicted": "step at which the entry with the steepest slope, trained alone, has grown"
    " to its full size",
    "misfit": "norm of the residual over that of the labels",
    "trajectory_relative_error": "$|a - a^*|/|a^*|$",
    "trajectory_loss": "training loss, half the sum of squared residuals",
}
PROBLEM = {"kind": "sparse", "dimension": 100, "few": 5}
RUN = PROBLEM | {"points_per_decade": 25, "most": BUDGET, "signed": True}
DEPTHS = [1, 2, 3, 4]
MANY: dict[str, Any] = {"function": cell, "labels": LABELS, "seeds": 7, "tiny": {"seeds": 1}}
MANY |= {"printed": {"seeds": 25}}
RUNS: dict[str, Any] = {
    "function": run_cell,
    "labels": LABELS,
    "seeds": [0],
    "dims": dims_of(CURVES),
}
study = sized(
    "N-F-depth",
    title="Depth instead of a penalty: more layers need fewer samples",
    arguments=PROBLEM | {"noise": 0.0},
    grid={"samples": [10, 20, 30, 40, 50, 60, 70, 80, 90, 100], "depth": DEPTHS},
    draw={"x": "samples", "colour": "error", "log": True},
    **MANY,
)
noise = sized(
    "N-F-depth-noise",
    title="The same with the source's noise",
    arguments=PROBLEM | {"noise": 1e-8},
    grid={"samples": FEW, "depth": DEPTHS},
    **MANY,
)
more = {"samples": [20, 30, 40, 50, 60, 70, 80, 90]}
runs = sized(
    "N-F-depth-runs",
    title="Depth instead of a penalty: more layers need more steps",
    arguments=RUN,
    grid={"samples": [SHOWN], "depth": DEPTHS},
    draw={"x": "depth", "colour": "t1", "log": True},
    printed={"arguments": {"points_per_decade": 50}, "grid": more, "seeds": 4},
    **RUNS,
)
unsigned = sized(
    "N-F-depth-unsigned",
    title="A single copy $w^L$ of the layers, which cannot change its sign",
    arguments=RUN | {"samples": SHOWN, "signed": False, "most": 100_000},
    grid={"depth": [2, 3]},
    printed={"arguments": {"most": BUDGET}},
    **RUNS,
)


def needed(errors: Array, samples: Array, level: float = RECOVERED) -> float:
    """The least number of samples from which on all errors are at most the level, or nan."""
    bad = np.flatnonzero(errors > level)
    if not len(bad):
        return float(samples[0])
    return float(samples[bad[-1] + 1]) if bad[-1] + 1 < len(samples) else math.nan


def steepest(medians: Any) -> float:
    """The largest ratio of the error at one depth to that at one layer less.

    It is the geometric mean over few samples: with the fewest, depth 2 is at its threshold.
    """
    rows = medians.sel(samples=FEW).transpose("depth", "samples").values
    return float(max(np.exp(np.log(b / a).mean()) for a, b in itertools.pairwise(rows)))


def check(dataset: Dataset, noise: Dataset, runs: Dataset, unsigned: Dataset) -> Evidence:
    """The errors of the minimisers of every depth, and the distances of descent to them."""
    middle = dataset[["error", "large_error", "sparse_error"]].median("seed")
    medians, large, sparse = middle.error, middle.large_error, middle.sparse_error.isel(depth=0)

    def counts(of: Any) -> list[float]:
        return [needed(of.sel(depth=d).values, of.samples.values) for d in of.depth.values]

    def least_fall(of: Any) -> float:
        return float(-np.diff(counts(of)[:3]).max())

    fitted, shown = runs.misfit <= LEVEL, runs.sel(samples=SHOWN)
    reached_there = shown.end_error.median("seed").values
    exact = at_most(runs.to_bias.where(fitted).max(), tolerance=0.01)
    halves = at_most(steepest(medians), 0.5)
    faint, floor = noise.error.median("seed"), noise.sparse_error.isel(depth=0).median("seed")
    fewer = at_least(least_fall(medians), 1.0)
    ended = unsigned.isel(seed=0)
    return Evidence(
        ran=f"sparse recovery, $n = 100$, $s = 5$: {dataset.sizes['seed']} problems for each $N = "
        "10$ to 100 and depth 1 to 4 by the exact minimiser, without noise and some with it; "
        f"{runs.t1.size} runs by descent, step 0.1, up to $10^6$ steps, start $10^{{-2}}$ per "
        "layer ($10^{-6}$ for depth 1), $w_+^L - w_-^L$",
        premises={
            "some run of every depth up to 3 fits the data": (
                bool(fitted.sel(depth=[1, 2, 3]).any(["samples", "seed"]).all()),
                f"{int(fitted.sum())} of {fitted.size} runs",
            )
        },
        checks={
            "largest ratio of median errors at successive depths, mean over $N = 30$ to 50": halves,
            "least fall of the samples needed from a depth to the next, up to 3": fewer,
            r"largest $|a - \operatorname{argmin} Q|/|a^*|$ over the runs of descent that fit, "
            "among vectors with the same outputs": exact,
            "the same up to depth 3 with a signal-to-noise ratio of $10^8$": at_most(
                steepest(faint.sel(depth=[1, 2, 3])), 0.5
            ),
        },
        controls={
            "a start of 1 per layer": halves.control(steepest(large)),
            "a start of 1 per layer, samples needed": fewer.control(least_fall(large)),
            r"the least $\ell_2$ norm at every depth": exact.control(
                shown.to_l2.sel(depth=[2, 3]).min()
            ),
            "depth 2 at every depth": exact.control(shown.to_depth_2.sel(depth=3).min()),
            "$w^L$ without the second copy": exact.control(ended.to_bias.min()),
        },
        findings=[
            f"samples needed for a median error of {RECOVERED:g}: "
            + ", ".join(f"{n:g} at depth {d + 1}" for d, n in enumerate(counts(medians)))
            + rf", {needed(sparse.values, sparse.samples.values):g} with the least $\ell_1$ norm",
            "noise limits the gain: with a signal-to-noise ratio of $10^8$ the fourth layer has "
            f"the error {float(faint.sel(depth=4, samples=SHOWN)):.1e} at $N = 30$, that of "
            rf"the least $\ell_1$ norm is {float(floor.sel(samples=SHOWN)):.1e}; without "
            f"noise it is {float(medians.sel(depth=4, samples=SHOWN)):.1e}",
            f"with $N = 10$ no depth helps: errors {listed(medians.sel(samples=10), '.2f')}, and "
            rf"{float(sparse.sel(samples=10)):.2f} for the least $\ell_1$ norm",
            f"after at most $10^6$ steps descent has the errors {listed(reached_there, '.2g')} at "
            f"$N = 30$, the minimisers {listed(shown.end_predicted.median('seed'), '.2g')}: "
            f"descent with a fourth layer is slow, {int((~fitted).sel(depth=4).sum())} of "
            f"{fitted.sel(depth=4).size} runs with it did not fit",
            "a product of layers that all start at $10^{-2}$ is $w^L$ and does not change sign: "
            f"its errors are {listed(ended.end_error, '.2f')} at depths 2, 3; it needs a "
            "second copy (ours) or a start that differs between layers",
        ],
    )


def draw(dataset: Dataset, noise: Dataset, runs: Dataset, unsigned: Dataset) -> Figure:
    """The error over N for every depth, and the runs with measured and predicted times."""
    caption = (
        f"{caption_of(dataset.attrs)} Predicted: the end by the exact minimiser of the implicit "
        "regularizer at this depth, the beginning by the growth of the entry with the "
        rf"steepest slope. $t_1$: training loss $\leq {latex(SOLVED)}$; $t_2$: relative error "
        rf"$\leq {latex(LEVEL)}$. Runs end at convergence (loss ${latex(FITTED)}$) or "
        f"after {count(BUDGET)} "
        "steps. Loss and error fall together, entry by entry, not one after the other."
    )
    picture, (whole,) = sheet(dataset.attrs["title"], caption, widths=(12.6,), height=6.2)
    whole.remove()
    grid = picture.add_gridspec(2, 2, width_ratios=[1.0, 1.15])
    losses = picture.add_subplot(grid[0, 1])
    tests = picture.add_subplot(grid[1, 1], sharex=losses)
    _draw_errors(picture.add_subplot(grid[:, 0]), dataset, runs.isel(seed=0))
    for depth, colour in zip(dataset.depth.values, CYCLE, strict=False):
        _draw_run(losses, tests, runs.isel(seed=0).sel(samples=SHOWN, depth=depth), colour)
    losses.plot([], [], ":", color=BLACK, linewidth=1.6, label="predicted beginning")
    losses.plot([], [], "<", color=BLACK, markersize=8, label="predicted end (below)")
    losses.plot([], [], "o", color=BLACK, markersize=7, label="$t_1$ (here), $t_2$ (below)")
    losses.axhline(SOLVED, color=GREY, linewidth=0.9)
    tests.axhline(LEVEL, color=GREY, linewidth=0.9)
    losses.set(xscale="log", yscale="log", ylabel="training loss", xlim=(1, BUDGET))
    losses.tick_params(labelbottom=False)
    losses.set_title(f"descent with $N$ = {SHOWN} samples")
    tests.set(yscale="log", ylabel="relative error", xlabel="steps of gradient descent")
    losses.legend(**LEGEND)
    return picture


def _draw_errors(axes: Axes, dataset: Dataset, runs: Dataset) -> None:
    """Medians of the exact minimisers as lines; runs as marks, connected to their minimisers."""
    middle = dataset.median("seed")
    for k, (depth, colour) in enumerate(zip(dataset.depth.values, CYCLE, strict=False)):
        axes.plot(
            dataset.samples, middle.error.sel(depth=depth), color=colour, label=f"$L$ = {depth}"
        )
        for n in runs.samples.values:
            _draw_end(axes, runs.sel(samples=n, depth=depth), colour, MARKERS[k])
    line: Any = {"color": BLACK, "linewidth": 1.4, "label": r"least $\ell_1$ norm"}
    axes.plot(dataset.samples, middle.sparse_error.isel(depth=0), "--", **line)
    axes.plot([], [], "o", color=GREY, markeredgecolor=BLACK, label="descent, converged")
    axes.plot([], [], "o", color="white", markeredgecolor=BLACK, label="descent, still falling")
    axes.plot([], [], "_", color=BLACK, markersize=11, label="predicted for it")
    axes.axhline(RECOVERED, color=GREY, linewidth=0.9, label=f"recovered: {RECOVERED:g}")
    axes.set(yscale="log", ylim=(1e-10, 3), xlabel="samples $N$")
    axes.set_ylabel(r"relative error $\|a - a^*\|_2 / \|a^*\|_2$")
    many = dataset.sizes["seed"]
    axes.set_title(f"lines: predicted, median of {many} data sets; marks: one of them")
    place: Any = {"loc": "lower center", "bbox_to_anchor": (0.555, 0.0), "fontsize": 8}
    axes.legend(ncols=2, handlelength=1.5, columnspacing=0.8, **place)


def _draw_end(axes: Axes, run: Dataset, colour: str, marker: str) -> None:
    """The end of one run, hollow if it had not converged, and its predicted end."""
    place, end, rest = (float(run[name]) for name in ("samples", "end_error", "end_predicted"))
    axes.plot([place, place], [end, rest], color=BLACK, linewidth=0.9, zorder=3)
    axes.plot(place, rest, "_", color=BLACK, markersize=11, markeredgewidth=1.4, zorder=4)
    converged = run.trajectory_loss.dropna("time")[-1] <= FITTED
    face, rim = (colour, BLACK) if converged else ("white", colour)
    style: Any = {"color": face, "markeredgecolor": rim, "markeredgewidth": 1.6}
    axes.plot(place, end, marker, markersize=8, zorder=4, **style)


def _draw_run(losses: Axes, tests: Axes, run: Dataset, colour: str) -> None:
    """A run with t1, t2 and both predictions in its colour."""
    run = plain(run, after=0)
    late = f"$t_2$ = {count(run.t2)}" if math.isfinite(run.t2) else "$t_2$ never"
    text = f"$L$ = {int(run.depth)}: $t_1$ = {count(run.t1)},\n            {late}"
    losses.plot(run.step, run.loss, color=colour, label=text)
    tests.plot(run.step, run.relative_error, color=colour)
    for axes, place, height in ((losses, run.t1, SOLVED), (tests, run.t2, LEVEL)):
        if math.isfinite(place):
            axes.plot(float(place), height, "o", color=colour, markersize=8, zorder=4)
        axes.axvline(float(run.start_predicted), color=colour, linestyle=":", linewidth=1.6)
    # at the right edge, where all curves would end
    tests.plot(BUDGET, float(run.end_predicted), "<", color=colour, markersize=10, clip_on=False)


experiment = Experiment(
    "N-F-depth",
    statement="Without a penalty, from a small start, a deeper diagonal net recovers a sparse "
    "vector from fewer samples: descent that fits the data ends at the minimiser of $Q$ for "
    "its depth; with $N = 30$ to 50 of $n = 100$ every layer up to the fourth at least halves "
    "the median error of that minimiser (on average over $N$), and the number of samples "
    "needed falls up to the third (our words: the source only names its figure).",
    place="Overparameterization with Depth: Sparse Recovery",
    study=(study, noise, runs, unsigned),
    check=check,
    draw=draw,
    title="Depth in place of a penalty: more layers need fewer samples and more steps",
    ours="the seeds, the signed pair $w_+^L - w_-^L$, the levels and which runs are shown",
    scope={"quick": "descent at $N = 30$ only"},
    seconds=5,
)
