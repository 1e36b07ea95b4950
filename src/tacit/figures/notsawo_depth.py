"""N-F-depth: depth instead of a penalty, sparse recovery by diagonal nets from a small start."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.figures.cells import Values, as_curves, cell_of
from tacit.figures.notsawo_runs import about, count, crossing
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLACK, CYCLE, GREY, caption_of, sheet
from tacit.plotting.transition import LEGEND

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tacit.problems.regression import Regression
    from tacit.regularizers.regularizer import Regularizer

PRESETS: dict[str, Parameters] = {
    "quick": {
        "dimension": 100,
        "sparsity": 5,
        "samples": [10, 20, 30, 40, 50, 60, 70, 80, 90, 100],
        "depths": [1, 2, 3, 4],
        "seeds": 5,
        "descended": [20, 30, 50],
        "shown": 30,
        "step": 0.1,
        "start": 1e-2,
        "flat_start": 1e-6,
        "steps": 1_000_000,
        "points_per_decade": 25,
        "solved": 1e-4,
        "level": 1e-2,
    },
    "paper": {
        "dimension": 100,
        "sparsity": 5,
        "samples": [10, 20, 30, 40, 50, 60, 70, 80, 90, 100],
        "depths": [1, 2, 3, 4],
        "seeds": 25,
        "descended": [20, 30, 40, 50, 60, 70, 80, 90],
        "shown": 30,
        "step": 0.1,
        "start": 1e-2,
        "flat_start": 1e-6,
        "steps": 1_000_000,
        "points_per_decade": 50,
        "solved": 1e-4,
        "level": 1e-2,
    },
}
FITTED = 1e-14  # training loss at which a run is over
MARKERS = "os^Dv*"
TEXTS = {
    "samples": "number N of samples",
    "depth": "number L of layers",
    "seed": "seed of the problem",
    "descended": "number of samples of the runs by descent, seed 0",
    "step": "number of steps",
    "error": "relative error |a - a*|/|a*| of the exact minimiser of the bias of this depth",
    "sparse_error": "the same for the interpolator of least l1 norm",
    "loss": "training loss, half the sum of squared residuals; nan after the end of the run",
    "relative_error": "|a - a*|/|a*|; nan after the end of the run",
    "end_error": "relative error at the end of the run",
    "end_foreseen": "relative error of the exact minimiser on the same problem",
    "t1": "step at which the training loss comes down to the value that counts as solved",
    "t2": "step at which the relative error comes down to the level; nan if it does not",
    "start_foreseen": "step at which the entry with the steepest slope, alone, has grown up",
}
CURVES = ("loss", "relative_error")
NUMBERS = ("t1", "t2", "end_error", "end_foreseen", "start_foreseen")


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Errors of the minimisers over (samples, depth, seed), and runs over (descended, depth)."""
    import xarray

    from tacit.regularizers.norms import L1

    names = ("samples", "depths", "descended")
    samples, depths, descended = (parameters[name] for name in names)
    seeds = range(parameters["seeds"])
    drawn = [[problem(parameters, n, seed) for seed in seeds] for n in samples]
    biases = [bias_of(depth, parameters) for depth in depths]
    error = [[[miss(p, bias) for p in row] for bias in biases] for row in drawn]
    sparse = [[miss(p, L1()) for p in row] for row in drawn]
    runs = []
    for done, (n, depth) in enumerate([(n, d) for n in descended for d in depths], start=1):
        runs.append(trained(parameters, problem(parameters, n, 0), depth))
        if progress:
            progress(done, len(descended) * len(depths))
    steps = max((run["step"] for run in runs), key=len)
    shape, each = (len(descended), len(depths)), ("descended", "depth")
    variables: dict[str, Any] = {
        "error": (("samples", "depth", "seed"), error),
        "sparse_error": (("samples", "seed"), sparse),
    }
    for name in CURVES:
        rows = [padded(run[name], len(steps)) for run in runs]
        variables[name] = (*each, "record"), np.reshape(rows, (*shape, -1))
    variables |= {n: (each, np.reshape([run[n] for run in runs], shape)) for n in NUMBERS}
    places = {
        "samples": samples,
        "depth": depths,
        "seed": list(seeds),
        "descended": descended,
        "step": ("record", steps),
    }
    told = {name: parameters[name] for name in ("shown", "solved", "level", "start", "dimension")}
    dataset = xarray.Dataset(variables, places, told)
    for key, variable in dataset.variables.items():
        units = "steps" if key in ("step", "t1", "t2", "start_foreseen") else "1"
        variable.attrs = about(TEXTS[str(key)], units)
    return dataset.assign_attrs(summary=summary(dataset))


SIZES = ("samples", "depth", "seed", "dimension", "sparsity", "start")


@cell_of(*SIZES)
def cell(parameters: Parameters) -> Values:
    """Errors of the minimiser at one depth and, the same at all depths, of that of the l1 norm."""
    from tacit.regularizers.norms import L1

    of = problem(parameters, parameters["samples"], parameters["seed"])
    bias = bias_of(parameters["depth"], parameters)
    return {"error": miss(of, bias), "sparse_error": miss(of, L1())}


@cell_of(*SIZES, "step", "steps", "flat_start", "points_per_decade", "solved", "level")
def run_cell(parameters: Parameters) -> Values:
    """A run by descent at one depth, with its times."""
    of = problem(parameters, parameters["samples"], parameters["seed"])
    return as_curves(trained(parameters, of, parameters["depth"]), "step", *CURVES)


def problem(parameters: Parameters, samples: int, seed: int) -> Regression:
    """N's sparse recovery without noise."""
    from tacit.problems.recovery import sparse_recovery

    sizes = {name: parameters[name] for name in ("dimension", "sparsity")}
    return sparse_recovery(samples, **sizes, seed=seed, snr=math.inf)


def bias_of(depth: int, parameters: Parameters) -> Regularizer:
    """What descent minimises among the interpolators, as its step goes to 0."""
    from tacit.regularizers.norms import L2
    from tacit.regularizers.q import Q

    return L2() if depth == 1 else Q(depth, alpha=parameters["start"])


def miss(of: Regression, bias: Regularizer) -> float:
    """The relative error of the interpolator that the bias selects."""
    from tacit.solvers.interpolate import interpolate

    assert of.truth is not None
    gap = interpolate(of.X, of.y, bias).beta - of.truth
    return float(np.linalg.norm(gap) / np.linalg.norm(of.truth))


def trained(parameters: Parameters, of: Regression, depth: int) -> dict[str, Any]:
    """A run without a penalty, to the end of its steps or of its loss, with its times."""
    from tacit.models.diagonal import DiagonalNet
    from tacit.models.linear import LinearPredictor
    from tacit.training.descent.methods import GradientDescent
    from tacit.training.record import LogSpaced
    from tacit.training.stop import Loss, Steps
    from tacit.training.train import train

    start = parameters["start"]
    net = (
        LinearPredictor(parameters["flat_start"]) if depth == 1 else DiagonalNet(depth, alpha=start)
    )
    run = train(
        net,
        of,
        GradientDescent(parameters["step"]),
        stop=[Steps(parameters["steps"]), Loss(FITTED)],
        record=LogSpaced(parameters["points_per_decade"]),
    ).dataset
    steps, error = run.step.values.astype(float), run.relative_error.values
    return {
        "step": steps,
        "loss": run.loss.values,
        "relative_error": error,
        "t1": crossing(steps, run.loss.values, parameters["solved"]),
        "t2": crossing(steps, error, parameters["level"]),
        "end_error": float(error[-1]),
        "end_foreseen": miss(of, bias_of(depth, parameters)),
        "start_foreseen": escape(of, depth, start) / parameters["step"],
    }


def escape(of: Regression, depth: int, start: float) -> float:
    """The time in which one weight w grows from `start` until w^depth is the steepest slope c.

    c = |X^T y|_inf is the slope at zero, where dw/dt = depth c w^(depth-1).
    """
    c = float(np.abs(of.X.T @ of.y).max())
    end = c ** (1 / depth)
    if depth == 2:
        return math.log(end / start) / (2 * c)
    power = 2 - depth
    begin = start if depth > 1 else 0.0
    return (end**power - begin**power) / (power * depth * c)


def padded(values: Array, length: int) -> Array:
    """The values and nan up to `length`."""
    return np.concatenate([values, np.full(length - len(values), np.nan)])


def needed(errors: Array, samples: Array, level: float) -> float:
    """The least number of samples from which on the errors are at most the level; else nan."""
    bad = np.flatnonzero(errors > level)
    if not len(bad):
        return float(samples[0])
    return float(samples[bad[-1] + 1]) if bad[-1] + 1 < len(samples) else math.nan


def summary(dataset: xarray.Dataset) -> str:
    """The samples needed at every depth, and t1 and t2 of the runs that are shown."""
    medians, samples = dataset.error.median("seed"), dataset.samples.values
    run, parts = dataset.sel(descended=dataset.shown), []
    for depth in dataset.depth.values:
        enough = needed(medians.sel(depth=depth).values, samples, dataset.level)
        t1, t2 = (float(run[name].sel(depth=depth)) for name in ("t1", "t2"))
        parts.append(f"depth {depth}: {enough:g} samples needed, t1 = {t1:.0f}, t2 = {t2:.0f}")
    return f"t1 and t2 at N = {dataset.shown}; " + "; ".join(parts)


@figure(
    "N-F-depth",
    title="Depth instead of a penalty: more layers need fewer samples and more steps",
    source="Notsawo et al. 2025, Overparameterization with Depth, sparse recovery n = 100, s = 5",
    data=data,
    presets=PRESETS,
    constructed="the seeds, no noise, the levels of t1 and t2, and nets w+^L - w-^L, which can "
    "change sign",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """The error over N for every depth, and the runs at one N."""
    caption = (
        f"{caption_of(dataset.attrs)} Foreseen: the end by the exact minimiser of the bias of a "
        "net of this depth, the beginning by the growth of the entry with the steepest slope. "
        f"t1: training loss <= {dataset.solved:g}; t2: relative error <= {dataset.level:g}. Runs "
        f"end at rest (loss {FITTED:g}) or after {count(dataset.step[-1])} steps. Loss and error "
        "fall together, entry by entry, not one after the other."
    )
    picture, (whole,) = sheet(dataset.title, caption, widths=(12.6,), height=6.2)
    whole.remove()
    grid = picture.add_gridspec(2, 2, width_ratios=[1.0, 1.15])
    errors = picture.add_subplot(grid[:, 0])
    losses = picture.add_subplot(grid[0, 1])
    tests = picture.add_subplot(grid[1, 1], sharex=losses)
    _draw_errors(errors, dataset)
    for k in range(dataset.sizes["depth"]):
        run = dataset.sel(descended=dataset.shown).isel(depth=k)
        _draw_run(losses, tests, run, CYCLE[k % len(CYCLE)])
    _furnish(losses, tests, dataset)
    return picture


def _draw_errors(axes: Axes, dataset: xarray.Dataset) -> None:
    """Medians of the exact minimisers as lines; runs as marks tied to the minimisers they seek."""
    for k, depth in enumerate(dataset.depth.values):
        one, colour = dataset.isel(depth=k), CYCLE[k % len(CYCLE)]
        axes.plot(one.samples, one.error.median("seed"), color=colour, label=f"$L$ = {depth}")
        for n in one.descended.values:
            _draw_end(axes, one.sel(descended=n), colour, MARKERS[k % len(MARKERS)])
    axes.plot(
        dataset.samples,
        dataset.sparse_error.median("seed"),
        "--",
        color=BLACK,
        linewidth=1.4,
        label=r"least $\ell_1$ norm",
    )
    axes.plot([], [], "o", color=GREY, markeredgecolor=BLACK, label="descent, at rest")
    axes.plot([], [], "o", color="white", markeredgecolor=BLACK, label="descent, still falling")
    axes.plot([], [], "_", color=BLACK, markersize=11, label="foreseen for it")
    axes.axhline(dataset.level, color=GREY, linewidth=0.9, label=f"level {dataset.level:g}")
    axes.set(
        yscale="log",
        ylim=(1e-10, 3),
        xlabel="samples $N$",
        ylabel=r"relative error $\|a - a^*\|_2 / \|a^*\|_2$",
    )
    axes.set_title(
        f"lines: foreseen, median of {dataset.sizes['seed']} data sets; marks: one of them"
    )
    place: Any = {"loc": "lower center", "bbox_to_anchor": (0.555, 0.0), "fontsize": 8}
    axes.legend(ncols=2, handlelength=1.5, columnspacing=0.8, **place)


def _draw_end(axes: Axes, run: xarray.Dataset, colour: str, marker: str) -> None:
    """Where one run ended, hollow if its steps were spent first, and where it was to end."""
    place, end, rest = (float(run[name]) for name in ("descended", "end_error", "end_foreseen"))
    axes.plot([place, place], [end, rest], color=BLACK, linewidth=0.9, zorder=3)
    axes.plot(place, rest, "_", color=BLACK, markersize=11, markeredgewidth=1.4, zorder=4)
    face, rim = (colour, BLACK) if fitted(run) else ("white", colour)
    style: Any = {"color": face, "markeredgecolor": rim, "markeredgewidth": 1.6}
    axes.plot(place, end, marker, markersize=8, zorder=4, **style)


def fitted(run: xarray.Dataset) -> bool:
    """Whether a run came down to the loss at which it is over, before its steps were spent."""
    loss = run.loss.values
    return bool(loss[np.isfinite(loss)][-1] <= FITTED)


def _draw_run(losses: Axes, tests: Axes, run: xarray.Dataset, colour: str) -> None:
    """A run with t1, t2 and both predictions in its colour."""
    later = run.isel(record=np.flatnonzero(run.step.values > 0))
    late = f"$t_2$ = {count(run.t2)}" if math.isfinite(float(run.t2)) else "$t_2$ never"
    text = f"$L$ = {int(run.depth)}: $t_1$ = {count(run.t1)},\n            {late}"
    losses.plot(later.step, later.loss, color=colour, label=text)
    tests.plot(later.step, later.relative_error, color=colour)
    for axes, place, height in ((losses, run.t1, run.solved), (tests, run.t2, run.level)):
        if math.isfinite(float(place)):
            axes.plot(float(place), height, "o", color=colour, markersize=8, zorder=4)
    for axes in (losses, tests):
        axes.axvline(float(run.start_foreseen), color=colour, linestyle=":", linewidth=1.6)
    last = float(later.step[-1])  # on the right edge, where all curves would end
    tests.plot(last, float(run.end_foreseen), "<", color=colour, markersize=10, clip_on=False)


def _furnish(losses: Axes, tests: Axes, dataset: xarray.Dataset) -> None:
    losses.plot([], [], ":", color=BLACK, linewidth=1.6, label="beginning foreseen")
    losses.plot([], [], "<", color=BLACK, markersize=8, label="end foreseen (below)")
    losses.plot([], [], "o", color=BLACK, markersize=7, label="$t_1$ (here), $t_2$ (below)")
    losses.axhline(dataset.solved, color=GREY, linewidth=0.9)
    tests.axhline(dataset.level, color=GREY, linewidth=0.9)
    losses.set(
        xscale="log", yscale="log", ylabel="training loss", xlim=(1, float(dataset.step[-1]))
    )
    losses.tick_params(labelbottom=False)
    losses.set_title(f"descent with $N$ = {dataset.shown} samples")
    tests.set(yscale="log", ylabel="relative error", xlabel="steps of gradient descent")
    losses.legend(**LEGEND)
