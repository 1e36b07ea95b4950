"""N-F-mirage: grokking without understanding, beside a penalty that does understand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array, one_of
from tacit.figures.cells import Values, as_curves, cell_of
from tacit.figures.notsawo_low_rank import recovery
from tacit.figures.notsawo_runs import Recovery, about, count, log_steps
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLACK, BLUE, GREY, PURPLE, RED, caption_of, sheet
from tacit.plotting.transition import LEGEND, mark

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRESETS: dict[str, Parameters] = {
    "quick": {
        "samples": 30,
        "dimension": 100,
        "sparsity": 5,
        "seed": 0,
        "snr": 1e8,
        "step": 0.1,
        "beta": 1e-4,
        "start": 1.0,
        "steps": 600_000,
        "level": 1e-4,
        "points_per_decade": 40,
        "linear_points": 300,
    },
    "paper": {
        "samples": 30,
        "dimension": 100,
        "sparsity": 5,
        "seed": 0,
        "snr": 1e8,
        "step": 0.1,
        "beta": 1e-5,
        "start": 1.0,
        "steps": 6_000_000,
        "level": 1e-4,
        "points_per_decade": 80,
        "linear_points": 600,
    },
}
PENALTIES = ("l2", "l1")
TEXTS = {
    "penalty": "the penalty h: l2 is beta |a|_2^2, l1 is beta |a|_1",
    "step": "number of steps",
    "loss": "training loss g, half the sum of squared residuals",
    "test_error": "squared distance |a - a*|^2 to the truth",
    "norm_l2": "Euclidean norm of a",
    "t1": "step from which the training loss is below the level",
    "t2": "step from which the test error is below the level; inf if it is not",
    "plateau": "test error when the late fall begins",
    "foreseen": "where theory ends the late fall: for l1 t2 by the exact slow phase, for l2 the "
    "step at which what the data do not see of the start has shrunk to what they do not see of the "
    "truth",
    "floor": "|(I - X^+ X) a*|^2, which no point in the row space of X can pass",
    "level": "loss and squared error that count as solved",
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Both runs over (penalty, record), the floor, and the detector's verdicts as attributes."""
    import xarray

    from tacit.solvers.delay import error_floor

    case, steps = recovery(parameters), recorded(parameters)
    floor = error_floor(case.X, case.truth)
    runs = []
    for done, penalty in enumerate(PENALTIES, start=1):
        runs.append(curves(case, POINTS[penalty](case, steps, parameters)))
        if progress:
            progress(done, len(PENALTIES))
    found = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    seen = [judged(steps, run, floor, parameters["level"]) for run in runs]
    variables: dict[str, Any] = {n: (("penalty", "record"), v) for n, v in found.items()}
    for name in ("t1", "t2", "plateau"):
        variables[name] = "penalty", [getattr(one, name) for one in seen]
    variables["foreseen"] = "penalty", foreseen(case, parameters)
    variables |= {"floor": ((), floor), "level": ((), parameters["level"])}
    dataset = xarray.Dataset(
        variables, coords={"penalty": list(PENALTIES), "step": ("record", steps)}
    )
    for key, variable in dataset.variables.items():
        units = "steps" if key in ("step", "t1", "t2", "foreseen") else "1"
        variable.attrs = about(TEXTS[str(key)], units)
    for name, one in zip(PENALTIES, seen, strict=True):
        dataset.attrs |= {f"kind_{name}": one.kind, f"reason_{name}": one.reason}
    told = [
        f"{name}: {one.kind}, {one.reason}; end of the fall foreseen at {count(end)}"
        for name, one, end in zip(PENALTIES, seen, dataset.foreseen, strict=True)
    ]
    return dataset.assign_attrs(summary="\n".join(told))


def recorded(parameters: Parameters) -> Array:
    """Steps for both time axes: log-spaced, and evenly spaced; and 0."""
    last = parameters["steps"]
    even = np.linspace(0, last, parameters["linear_points"])
    return np.unique(np.round(np.append(log_steps(last, parameters["points_per_decade"]), even)))


def _l2_points(case: Recovery, steps: Array, parameters: Parameters) -> Array:
    """The iterates with beta |a|_2^2, which have a closed form."""
    from tacit.solvers.delay import descent_points

    step, beta = parameters["step"], parameters["beta"]
    start = np.full(len(case.truth), parameters["start"])
    return descent_points(case.X, case.problem.y, step, beta, start, steps)


def _l1_points(case: Recovery, steps: Array, parameters: Parameters) -> Array:
    """The iterates of descent with beta |a|_1 from the same start."""
    step, beta, start = (parameters[name] for name in ("step", "beta", "start"))
    return np.asarray(case.run(step, beta, start, steps).predictor.values)


POINTS = {"l2": _l2_points, "l1": _l1_points}


@cell_of("penalty", PRESETS["quick"])
def cell(parameters: Parameters) -> Values:
    """One run, what the detector says of it, and where it is foreseen to end."""
    from tacit.solvers.delay import error_floor

    which = PENALTIES.index(one_of("N-F-mirage", "penalty", parameters["penalty"], PENALTIES))
    case, steps = recovery(parameters), recorded(parameters)
    floor = error_floor(case.X, case.truth)
    run = curves(case, POINTS[PENALTIES[which]](case, steps, parameters))
    seen = judged(steps, run, floor, parameters["level"])
    told = {name: getattr(seen, name) for name in ("t1", "t2", "plateau", "kind", "reason")}
    told |= {
        "floor": floor,
        "foreseen": foreseen(case, parameters)[which],
        "left": float(run["test_error"][-1]),
    }
    return {**told, **as_curves({"step": steps, **run}, "step", *run)}


def curves(case: Recovery, points: Array) -> dict[str, Array]:
    """Training loss, test error and norm of the iterates, one row each."""
    residuals, gaps = points @ case.X.T - case.problem.y, points - case.truth
    return {
        "loss": 0.5 * np.sum(residuals**2, axis=1),
        "test_error": np.sum(gaps**2, axis=1),
        "norm_l2": np.linalg.norm(points, axis=1),
    }


def foreseen(case: Recovery, parameters: Parameters) -> list[float]:
    """The steps at which the late falls end, before training, in the order of PENALTIES."""
    step, beta, level = (parameters[name] for name in ("step", "beta", "level"))
    start = np.full(len(case.truth), parameters["start"])
    unseen = np.eye(len(start)) - np.linalg.pinv(case.X) @ case.X
    share = np.linalg.norm(unseen @ case.truth) / np.linalg.norm(unseen @ start)
    tau = case.slow(parameters["start"]).reaches(case.truth, np.sqrt(level))
    # a direction that X does not see shrinks by 1 - 2 step beta; memorization takes no time beside
    return [float(np.log(share) / np.log1p(-2 * step * beta)), tau / (step * beta)]


def judged(steps: Array, run: dict[str, Array], floor: float, level: float) -> Any:
    """What the detector says of a run; both runs are judged by the same settings."""
    from tacit.measures.grokking import grokking

    return grokking(
        steps, run["loss"], run["test_error"], level, floor=floor, norm=run["norm_l2"], error=True
    )


@figure(
    "N-F-mirage",
    title="The same late fall twice: with l2 it ends on the floor, only l1 finds the truth",
    source="Notsawo et al. 2025, Figure 4, sparse recovery from a large start",
    data=data,
    presets=PRESETS,
    constructed="the seed, equal entries in the start (norm 10) and the run with l1; in preset "
    "quick also beta",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """For both penalties: the error as it looks, then its logarithm over log and linear time."""
    caption = (
        f"{caption_of(dataset.attrs)} Floor: the part of the truth that the data do not see, "
        f"{float(dataset.floor):.3g}. Foreseen: t2 by the slow phase (l1), or "
        "where the unseen part of the start is as small as that of the truth (l2). Solved: loss or "
        f"squared error <= {float(dataset.level):g}. "
        f"Detector on l2: {dataset.attrs['reason_l2']}; on l1: {dataset.attrs['reason_l1']}."
    )
    picture, grid = _panels(dataset.title, caption)
    for column, name in enumerate(PENALTIES):
        run = dataset.sel(penalty=name)
        later = run.isel(record=np.flatnonzero(run.step.values > 0))
        for row, shown in enumerate((later, later, run)):
            _draw_run(grid[row][column], shown)
        _furnish([line[column] for line in grid], dataset, name)
        _marks([line[column] for line in grid], run)
    _legends(grid)
    picture.align_ylabels([line[0] for line in grid])
    return picture


def _panels(title: str, caption: str) -> tuple[Figure, list[list[Axes]]]:
    """Three rows and two columns; a row shares its vertical axis."""
    picture, (whole,) = sheet(title, caption, widths=(12.0,), height=8.2)
    whole.remove()
    layout = picture.add_gridspec(3, 2, height_ratios=[1.0, 1.25, 1.25])
    grid = []
    for row in range(3):
        first = picture.add_subplot(layout[row, 0])
        second = picture.add_subplot(layout[row, 1], sharey=first)
        second.tick_params(labelleft=False)
        grid.append([first, second])
    return picture, grid


def _draw_run(axes: Axes, run: xarray.Dataset) -> None:
    axes.plot(run.step, run.loss, "--", color=BLUE, label=r"training loss $g$")
    axes.plot(
        run.step, run.test_error, color=RED, linewidth=3, label=r"test error $\|a - a^*\|_2^2$"
    )
    axes.axhline(
        float(run.floor),
        color=PURPLE,
        linestyle="-.",
        linewidth=1.6,
        label="floor: what the data\ndo not see of the truth",
    )
    axes.axhline(float(run.level), color=GREY, linewidth=0.9, label="solved below this level")


def _legends(grid: list[list[Axes]]) -> None:
    """One for all panels, beside the middle row."""
    grid[1][1].legend(*grid[0][1].get_legend_handles_labels(), **LEGEND)


def _marks(axes: list[Axes], run: xarray.Dataset) -> None:
    """t1 and t2 of the detector, and the end that theory foresees."""
    lines = (
        ("t1", "$t_1$: training solved", BLUE, "-"),
        ("t2", "$t_2$: test solved", RED, "-"),
        ("foreseen", "end of the fall, foreseen", BLACK, ":"),
    )
    for name, text, colour, line in lines:
        if np.isfinite(run[name]):
            mark(axes, float(run[name]), text, colour, line)


def _furnish(axes: list[Axes], dataset: xarray.Dataset, name: str) -> None:
    plain, log, linear = axes
    run, kind = dataset.sel(penalty=name), dataset.attrs[f"kind_{name}"]
    late = f"= {count(run.t2)}" if np.isfinite(run.t2) else "not reached"
    times = f"$t_1$ = {count(run.t1)}, $t_2$ {late}"
    plain.set_title(rf"{_law(name)}: {kind} ({times})")
    last = float(dataset.step[-1])
    for one in (plain, log):
        one.set(xscale="log", xlim=(1, last))
    linear.set(xlim=(0, last), xlabel="steps (linear)")
    linear.locator_params(axis="x", nbins=3)
    linear.xaxis.set_major_formatter(lambda step, _: count(step))
    plain.tick_params(labelbottom=False)
    log.set(yscale="log", xlabel="steps (logarithmic)")
    linear.set(yscale="log")
    if name == PENALTIES[0]:
        plain.set_ylabel("loss and error\n(linear)")
        for one in (log, linear):
            one.set_ylabel("loss and error\n(logarithmic)")


def _law(name: str) -> str:
    return r"penalty $\beta\,\|a\|_2^2$" if name == "l2" else r"penalty $\beta\,\|a\|_1$"
