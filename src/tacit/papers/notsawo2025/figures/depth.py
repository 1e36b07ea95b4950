"""Overparameterization with depth: sparse recovery by diagonal nets from a small start."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Evidence, at_least, at_most
from tacit.papers.experiment import Experiment
from tacit.papers.notsawo2025.figures.diagonal_nets import (
    BUDGET,
    FEW,
    FITTED,
    SHOWN,
    noise,
    runs,
    study,
    unsigned,
)
from tacit.papers.notsawo2025.recoveries import SOLVED, count, given
from tacit.plotting.style import BLACK, CYCLE, GREY, caption_of, sheet
from tacit.plotting.transition import LEGEND

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "os^Dv*"


def needed(errors: Array, samples: Array, level: float) -> float:
    """The least number of samples from which on the errors are at most the level; else nan."""
    bad = np.flatnonzero(errors > level)
    if not len(bad):
        return float(samples[0])
    return float(samples[bad[-1] + 1]) if bad[-1] + 1 < len(samples) else math.nan


def steepest(medians: Any) -> float:
    """The largest ratio of the error at one depth to that at the depth before, at few samples."""
    rows = medians.sel(samples=FEW).transpose("depth", "samples").values
    return float(max((b / a).max() for a, b in itertools.pairwise(rows)))


def check(
    dataset: xarray.Dataset, noise: xarray.Dataset, runs: xarray.Dataset, unsigned: xarray.Dataset
) -> Evidence:
    """What the minimisers of every depth recover, and that descent goes to them."""
    level = given(runs)["level"]
    medians, large = (dataset[name].median("seed") for name in ("error", "large_error"))

    def counts(of: Any) -> list[float]:
        return [needed(of.sel(depth=d).values, of.samples.values, level) for d in of.depth.values]

    def least_fall(of: Any) -> float:
        return float(-np.diff(counts(of)[:3]).max())

    fitted = runs.misfit <= level
    shown = runs.sel(samples=SHOWN)
    reached_there = shown.end_error.median("seed").values
    exact = at_most(float(runs.to_bias.where(fitted).max()), tolerance=0.01)
    halves = at_most(steepest(medians), 0.5)
    faint, floor = (noise[n].median("seed") for n in ("error", "sparse_error"))
    floor = floor.isel(depth=0)
    noisy = at_most(steepest(faint.sel(depth=[1, 2, 3])), 0.5)
    fewer = at_least(least_fall(medians), 1.0)
    falls = at_most(max(b / a for a, b in itertools.pairwise(reached_there[:3])), 0.75)
    ended = unsigned.isel(seed=0)
    deep = shown.sel(depth=[2, 3, 4])
    sparse = dataset.sparse_error.isel(depth=0).median("seed")
    return Evidence(
        ran=f"sparse recovery, n = 100, s = 5: {dataset.sizes['seed']} problems for each N = 10 to"
        " 100 and depth 1 to 4 by the exact minimiser, without noise and some with it;"
        f" {runs.t1.size} runs by descent, step 0.1, up to 1e6 steps, start 1e-2 per layer (1e-6"
        " for depth 1), w+^L - w-^L",
        premises={
            "some run of every depth fits the data": (
                bool(fitted.any(["samples", "seed"]).all()),
                f"{int(fitted.sum())} of {fitted.size} runs",
            )
        },
        checks={
            "largest ratio of the median errors at successive depths, N = 30 to 50": halves,
            "least fall of the samples needed from a depth to the next, up to 3": fewer,
            "largest |a - argmin Q|/|a*| over the runs of descent that fit": exact,
            "largest ratio of the errors of descent at successive depths up to 3, N = 30": falls,
            "the same up to depth 3 with a signal-to-noise ratio of 1e8": noisy,
        },
        controls={
            "a start of 1 per layer": halves.control(steepest(large)),
            "a start of 1 per layer, samples needed": fewer.control(least_fall(large)),
            "the least l2 norm at every depth": exact.control(float(deep.to_l2.min())),
            "depth 2 at every depth": exact.control(float(shown.to_depth_2.sel(depth=4).min())),
            "w^L without the second copy": exact.control(float(ended.to_bias.min())),
            "w^L without the second copy, depth 3 over 2": falls.control(
                float(ended.end_error[1] / ended.end_error[0])
            ),
        },
        findings=[
            f"samples needed for a median error of {level:g}: "
            + ", ".join(f"{n:g} at depth {d + 1}" for d, n in enumerate(counts(medians)))
            + f", {needed(sparse.values, sparse.samples.values, level):g} with the least l1 norm",
            "noise limits the gain: with a signal-to-noise ratio of 1e8 the fourth layer has"
            f" the error {float(faint.sel(depth=4, samples=SHOWN)):.1e} at N = 30, that of the"
            f" least l1 norm is {float(floor.sel(samples=SHOWN)):.1e}; without noise it is"
            f" {float(medians.sel(depth=4, samples=SHOWN)):.1e}",
            "with N = 10 no depth helps: errors "
            + ", ".join(f"{e:.2f}" for e in medians.sel(samples=10).values)
            + f", and {float(sparse.sel(samples=10)):.2f} for the least l1 norm",
            "after at most 1e6 steps descent has the errors "
            + ", ".join(f"{e:.2g}" for e in reached_there)
            + " at N = 30, the minimisers "
            + ", ".join(f"{e:.2g}" for e in shown.end_foreseen.median("seed").values)
            + f": descent with a fourth layer is slow; {int((~fitted).sum())} of {fitted.size}"
            " runs did not fit",
            "a product of layers that all start at 1e-2 is w^L and does not change sign: its errors"
            f" are {', '.join(f'{e:.2f}' for e in ended.end_error.values)} at depths 2, 3; it"
            " needs a second copy (ours) or a start that differs between layers",
        ],
    )


def draw(
    dataset: xarray.Dataset, noise: xarray.Dataset, runs: xarray.Dataset, unsigned: xarray.Dataset
) -> Figure:
    """The error over N for every depth, and the runs with their times, measured and foreseen."""
    levels = SOLVED, given(runs)["level"]
    one = runs.isel(seed=0)
    caption = (
        f"{caption_of(dataset.attrs)} Predicted: the end by the exact minimiser of the implicit"
        " regularizer at this depth, the beginning by the growth of the entry with the steepest"
        f" slope. t1: training loss <= {levels[0]:g}; t2: relative error <= {levels[1]:g}. Runs"
        f" end at convergence (loss {FITTED:g}) or after {count(BUDGET)} steps. Loss and error"
        " fall together, entry by entry, not one after the other."
    )
    picture, (whole,) = sheet(dataset.attrs["title"], caption, widths=(12.6,), height=6.2)
    whole.remove()
    grid = picture.add_gridspec(2, 2, width_ratios=[1.0, 1.15])
    errors = picture.add_subplot(grid[:, 0])
    losses = picture.add_subplot(grid[0, 1])
    tests = picture.add_subplot(grid[1, 1], sharex=losses)
    _draw_errors(errors, dataset, one, levels[1])
    for k in range(dataset.sizes["depth"]):
        run = one.sel(samples=SHOWN).isel(depth=k)
        _draw_run(losses, tests, run, CYCLE[k % len(CYCLE)], levels)
    _furnish(losses, tests, levels)
    return picture


def _draw_errors(axes: Axes, dataset: xarray.Dataset, runs: xarray.Dataset, level: float) -> None:
    """Medians of the exact minimisers as lines; runs as marks tied to the minimisers they seek."""
    for k, depth in enumerate(dataset.depth.values):
        error, colour = dataset.error.sel(depth=depth).median("seed"), CYCLE[k % len(CYCLE)]
        axes.plot(dataset.samples, error, color=colour, label=f"$L$ = {depth}")
        for n in runs.samples.values:
            run = runs.sel(samples=n, depth=depth)
            _draw_end(axes, run, colour, MARKERS[k % len(MARKERS)])
    axes.plot(
        dataset.samples,
        dataset.sparse_error.isel(depth=0).median("seed"),
        "--",
        color=BLACK,
        linewidth=1.4,
        label=r"least $\ell_1$ norm",
    )
    axes.plot([], [], "o", color=GREY, markeredgecolor=BLACK, label="descent, converged")
    axes.plot([], [], "o", color="white", markeredgecolor=BLACK, label="descent, still falling")
    axes.plot([], [], "_", color=BLACK, markersize=11, label="predicted for it")
    axes.axhline(level, color=GREY, linewidth=0.9, label=f"level {level:g}")
    axes.set(
        yscale="log",
        ylim=(1e-10, 3),
        xlabel="samples $N$",
        ylabel=r"relative error $\|a - a^*\|_2 / \|a^*\|_2$",
    )
    axes.set_title(
        f"lines: predicted, median of {dataset.sizes['seed']} data sets; marks: one of them"
    )
    place: Any = {"loc": "lower center", "bbox_to_anchor": (0.555, 0.0), "fontsize": 8}
    axes.legend(ncols=2, handlelength=1.5, columnspacing=0.8, **place)


def _draw_end(axes: Axes, run: xarray.Dataset, colour: str, marker: str) -> None:
    """Where one run ended, hollow if its steps were spent first, and where it was to end."""
    place, end, rest = (float(run[name]) for name in ("samples", "end_error", "end_foreseen"))
    axes.plot([place, place], [end, rest], color=BLACK, linewidth=0.9, zorder=3)
    axes.plot(place, rest, "_", color=BLACK, markersize=11, markeredgewidth=1.4, zorder=4)
    face, rim = (colour, BLACK) if fitted(run) else ("white", colour)
    style: Any = {"color": face, "markeredgecolor": rim, "markeredgewidth": 1.6}
    axes.plot(place, end, marker, markersize=8, zorder=4, **style)


def fitted(run: xarray.Dataset) -> bool:
    """Whether a run came down to the loss at which it is over, before its steps were spent."""
    loss = run.trajectory_loss.values
    return bool(loss[np.isfinite(loss)][-1] <= FITTED)


def _draw_run(
    losses: Axes, tests: Axes, run: xarray.Dataset, colour: str, levels: tuple[float, float]
) -> None:
    """A run with t1, t2 and both predictions in its colour; its levels are those of t1 and t2."""
    later = run.isel(time=np.flatnonzero(run.trajectory_step.values > 0))
    late = f"$t_2$ = {count(run.t2)}" if math.isfinite(float(run.t2)) else "$t_2$ never"
    text = f"$L$ = {int(run.depth)}: $t_1$ = {count(run.t1)},\n            {late}"
    losses.plot(later.trajectory_step, later.trajectory_loss, color=colour, label=text)
    tests.plot(later.trajectory_step, later.trajectory_relative_error, color=colour)
    times = (run.t1, run.t2)
    for axes, place, height in zip((losses, tests), times, levels, strict=True):
        if math.isfinite(float(place)):
            axes.plot(float(place), height, "o", color=colour, markersize=8, zorder=4)
    for axes in (losses, tests):
        axes.axvline(float(run.start_foreseen), color=colour, linestyle=":", linewidth=1.6)
    # on the right edge, where all curves would end
    tests.plot(BUDGET, float(run.end_foreseen), "<", color=colour, markersize=10, clip_on=False)


def _furnish(losses: Axes, tests: Axes, levels: tuple[float, float]) -> None:
    losses.plot([], [], ":", color=BLACK, linewidth=1.6, label="predicted beginning")
    losses.plot([], [], "<", color=BLACK, markersize=8, label="predicted end (below)")
    losses.plot([], [], "o", color=BLACK, markersize=7, label="$t_1$ (here), $t_2$ (below)")
    losses.axhline(levels[0], color=GREY, linewidth=0.9)
    tests.axhline(levels[1], color=GREY, linewidth=0.9)
    losses.set(xscale="log", yscale="log", ylabel="training loss", xlim=(1, BUDGET))
    losses.tick_params(labelbottom=False)
    losses.set_title(f"descent with $N$ = {SHOWN} samples")
    tests.set(yscale="log", ylabel="relative error", xlabel="steps of gradient descent")
    losses.legend(**LEGEND)


experiment = Experiment(
    "N-F-depth",
    statement="Without a penalty, from a small start, a deeper diagonal net recovers a sparse"
    " vector from fewer samples: descent that fits the data ends at the minimiser of Q"
    " for its depth; with N = 30 to 50 of n = 100 every layer up to the fourth at least"
    " halves the median error of that minimiser, and the number of samples needed falls"
    " up to the third (our words: the source only names its figure).",
    place="Overparameterization with Depth: Sparse Recovery",
    study=(study, noise, runs, unsigned),
    check=check,
    draw=draw,
    title="Depth in place of a penalty: more layers need fewer samples and more steps",
    ours="the seeds, the signed pair w+^L - w-^L, the levels and which runs are shown",
    seconds=5,
)
