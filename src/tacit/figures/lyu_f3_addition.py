"""L-F3b: modular addition with a two-layer net, from a large and from a small start."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLACK, BLUE, CYCLE, RED, caption_of
from tacit.plotting.transition import LEGEND, mark, rows

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# 4.1e4/|theta|^2 is the printed step 0.002 at the printed start, alpha = 100 and width 1024
PRESETS: dict[str, Parameters] = {
    "quick": {
        "modulus": 37,
        "fraction": 0.7,
        "width": 128,
        "alphas": [30.0, 0.3],
        "weight_decay": 1e-3,
        "learning_rate": 3.0,
        "scaled": 4.5e3,
        "t": 1.5e4,
        "shared": True,
        "seed": 0,
        "per_decade": 20,
        "precision": "single",
        "level": 0.95,
    },
    "paper": {
        "modulus": 97,
        "fraction": 0.4,
        "width": 1024,
        "alphas": [100.0, 1.0],
        "weight_decay": 1e-4,
        "learning_rate": 6.0,
        "scaled": 4.1e4,
        "t": 1.5e5,
        "shared": True,
        "seed": 0,
        "per_decade": 20,
        "precision": "double",
        "level": 0.95,
    },
}
HEIGHTS = (2.3, 1.1, 1.1, 1.1)  # accuracy, norm, turn, kernel distance
SUMMARY = {
    "predicted": "(1/rate) log alpha, the transition foreseen before training; NaN up to alpha = 1",
    "t1": "time from which the training accuracy stays above the level",
    "t2": "time from which the accuracy without twins stays above the level",
    "jump": "time at which the late rise of the accuracy without twins is half done",
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """The runs from all starts over (alpha, record), and when each solved training and test."""
    import xarray

    from tacit.problems.arithmetic import modular_addition

    problem = modular_addition(
        **{name: parameters[name] for name in ("modulus", "fraction", "seed")}
    )
    alphas = parameters["alphas"]
    runs = []
    for done, alpha in enumerate(alphas, start=1):
        runs.append(_run(problem, alpha, parameters))
        if progress:
            progress(done, len(alphas))
    found = xarray.concat(_same_length(runs), dim="alpha", join="outer")
    found = found.assign_coords(alpha=("alpha", np.array(alphas), _about("scale of the start")))
    twins = problem.twins.sum() / problem.test.sum()
    found["twins"] = ((), twins, _about("share of test pairs whose mirror is in training"))
    return found.assign_attrs(rate=parameters["weight_decay"])


def _run(problem: Any, alpha: float, parameters: Parameters) -> xarray.Dataset:
    """One run and its summary."""
    from tacit.measures.grokking import grokking
    from tacit.models.two_token_net import TwoTokenNet
    from tacit.records import NumericalError
    from tacit.training.descent.methods import GradientDescent
    from tacit.training.record import LogSpaced
    from tacit.training.stop import Time
    from tacit.training.train import train

    net = {name: parameters[name] for name in ("width", "shared", "seed", "precision")}
    path = train(
        TwoTokenNet(alpha=alpha, **net),
        problem,
        GradientDescent(
            parameters["learning_rate"],
            scaled=parameters["scaled"],
            weight_decay=parameters["weight_decay"],
        ),
        stop=Time(parameters["t"]),
        record=LogSpaced(parameters["per_decade"]),
    )
    if not path.outcome.ok:
        raise NumericalError("L-F3b", path.outcome)
    run = path.dataset.reset_coords()
    found = grokking(run.t, run.train_accuracy, run.novel_accuracy, parameters["level"])
    times = {
        "predicted": _predicted(alpha, parameters["weight_decay"]),
        "t1": found.t1,
        "t2": found.t2,
        "jump": found.jump,
    }
    run = run.assign({name: ((), times[name], _about(text)) for name, text in SUMMARY.items()})
    run["kind"] = ((), found.kind, _about("what the late change is, see tacit.grokking"))
    return run.drop_attrs(deep=False).rename(time="record")


def _predicted(alpha: float, rate: float) -> float:
    """When pure decay has taken the start from alpha to 1."""
    return math.log(alpha) / rate if alpha > 1 and rate > 0 else math.nan


def _about(text: str) -> dict[str, str]:
    return {"units": "1", "long_name": text}


def _same_length(runs: list[xarray.Dataset]) -> Iterator[xarray.Dataset]:
    """Runs with as many records as the longest, not a number where there are none."""
    longest = max(run.sizes["record"] for run in runs)
    for run in runs:
        floats = run.assign(step=run.step.astype(float))
        yield floats.pad(record=(0, longest - run.sizes["record"]), constant_values=np.nan)


@figure(
    "L-F3b",
    title="Modular addition: a large start memorizes first and understands late",
    source="Lyu et al. 2023, modular addition with a two-layer net",
    data=data,
    presets=PRESETS,
    constructed="the seed, ReLU units, the sum of one-hot codes as input, steps like 1/|theta|^2 "
    "as the norm falls, the small start; in preset quick also p, h, alpha, training share, decay",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Accuracy, norm, turn and kernel distance of every start over one time axis."""
    picture, axes = rows(dataset.title, caption_of(dataset.attrs), HEIGHTS)
    for run, colour in zip(_runs(dataset), _colours(dataset), strict=True):
        _draw_run(axes, run, colour)
    for run in _runs(dataset):
        if np.isfinite(run.predicted):
            text = (
                rf"predicted: $(1/\lambda)\,\log {float(run.alpha):g}$ = {float(run.predicted):.0f}"
            )
            mark(axes, float(run.predicted), text, BLACK, "--")
    _furnish(axes, dataset)
    picture.align_ylabels(axes)
    return picture


def _runs(dataset: xarray.Dataset) -> Iterator[xarray.Dataset]:
    """Each start's records after the first, which is at t = 0."""
    for number in range(dataset.sizes["alpha"]):
        run = dataset.isel(alpha=number)
        yield run.isel(record=np.flatnonzero(run.t.values > 0))


def _colours(dataset: xarray.Dataset) -> list[str]:
    count = dataset.sizes["alpha"]
    return [RED, BLUE] if count == 2 else [CYCLE[k % len(CYCLE)] for k in range(count)]


def _draw_run(axes: list[Axes], run: xarray.Dataset, colour: str) -> None:
    accuracy, norm, turn, kernel = axes
    name = rf"$\alpha = {float(run.alpha):g}$"
    accuracy.plot(
        run.t, run.train_accuracy, "--", color=colour, linewidth=1.4, label=f"training, {name}"
    )
    accuracy.plot(run.t, run.novel_accuracy, color=colour, linewidth=3, label=f"test, {name}")
    norm.plot(run.t, run.parameter_norm, color=colour)
    turn.plot(run.t, run.turn, color=colour)
    kernel.plot(run.t, run.kernel_distance, color=colour)


def _furnish(axes: list[Axes], dataset: xarray.Dataset) -> None:
    accuracy, norm, turn, kernel = axes
    accuracy.set(ylabel="accuracy\n(test without twins)", ylim=(-0.03, 1.05), xscale="log")
    accuracy.set_title(_summary(dataset), fontsize=9)
    times = dataset.t.values[dataset.t.values > 0]
    accuracy.set_xlim(times.min(), times.max())
    norm.set(ylabel="parameter\nnorm", yscale="log")
    turn.set(ylabel="turn from\nstart (degrees)", ylim=(0, 92), yticks=(0, 45, 90))
    kernel.set(ylabel="kernel\ndistance", xlabel="training time $t$ (sum of the steps)")
    accuracy.legend(**LEGEND)


def _summary(dataset: xarray.Dataset) -> str:
    """When training and test were solved, in a line for every start."""
    lines = []
    for run in _runs(dataset):
        t1, t2, jump = (float(run[name]) for name in ("t1", "t2", "jump"))
        rise = "" if math.isnan(jump) else f", half of its late rise by {jump:.0f}"
        end = f"test from t = {t2:.0f}" if math.isfinite(t2) else "test not solved"
        lines.append(
            rf"$\alpha = {float(run.alpha):g}$: training solved from t = {t1:.3g}, {end}{rise}"
        )
    return "\n".join(lines)
