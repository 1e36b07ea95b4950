"""A multiplication table completed by U U^T - V V^T: memorized early, completed late."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from penchant import ParameterFlow, Time, forecast, train
from penchant.lab import (
    TRAJECTORY,
    Array,
    Axes,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    at_most,
    below,
    sized,
    within,
)
from penchant.measures import grokking, kernel_distance
from penchant.models import DifferenceFactorization
from penchant.plotting import BLACK, BLUE, CYCLE, GREY, LEGEND, RED, caption_of, latex, panel_rows
from penchant.problems import Completion
from penchant.record import At
from penchant_papers.instances import furthest, slope
from penchant_papers.lyu2023.multiplication_table import SLACK, drawn_table, nuclear_norm

HEIGHTS = (2.4, 1.2, 1.2, 0.9, 0.9, 0.9)
CURVES = {
    "t": "training time of gradient flow on the mean squared error",
    "steps": "training time as a number of descent steps",
    "train_error": "root mean square error on the observed entries",
    "test_error": "root mean square error on the entries that are neither observed nor mirrored",
    "norm_nuclear": "nuclear norm of the matrix over the least that fits the data",
    "from_kernel": "distance to the kernel interpolant, relative",
    "from_nuclear": "distance to the minimiser of the nuclear norm, relative",
    "parameter_norm": "Euclidean norm of the parameters",
    "turn": "angle between the parameters and their start (degrees)",
    "kernel_distance": r"$1 - \cos(K(t), K(0))$",
}


@dataclasses.dataclass(frozen=True)
class MeanLoss:
    """The conversion between a mean squared error and our sum of squares.

    sum = samples * mean, so decay next to the mean is `samples * decay` next to the sum, and
    gradient flow on the mean takes `samples` times as long.
    """

    samples: int
    decay: float

    @property
    def rate(self) -> float:
        return self.samples * self.decay

    def time(self, ours: Any) -> Any:
        """Training time on the mean that corresponds to a time on the sum."""
        return self.samples * ours


def seen_pairs(fraction: float) -> float:
    """The share of unordered pairs {i, j} of which a random `fraction` of all entries shows one."""
    return 1 - (1 - fraction) ** 2


def tangent_kernel(problem: Completion, matrix: Array, product: float) -> Array:
    """The tangent kernel of U U^T - V V^T on the entries seen, from the matrix alone.

    Training from U = V = alpha I keeps V^T U = product * I, product = alpha^2 exp(-2 decay t), so
    U U^T and V V^T are inverse up to product^2, and their sum S has S^2 = M^2 + 4 product^2 I.
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    S = (vectors * np.hypot(values, 2 * product)) @ vectors.T
    i, j = problem.entries.T
    kernel = np.zeros((len(i), len(i)))
    for a, b in ((i, j), (j, i)):
        for c, d in ((i, j), (j, i)):
            kernel += np.equal.outer(a, c) * S[np.ix_(b, d)]
    return kernel


def cell(
    decay: float,
    seed: int,
    *,
    dimension: int,
    fraction: float,
    alpha: float,
    step: float,
    end: float,
    records: int,
    rtol: float,
    level: float,
    slack: float,
) -> dict[str, Any]:
    """One run in the time of the mean loss to t = end/decay, its forecast and when it fell."""
    problem, limits, tries = drawn_table(dimension, seen_pairs(fraction), seed, slack=slack)
    model, mean = DifferenceFactorization(alpha=alpha), MeanLoss(problem.samples, decay)
    # before training; the test error falls later than the predictor turns, at d = 97 by a third
    predicted = forecast(model, problem, mean.rate, measure=problem.test_error)
    path = trained(model, problem, mean.rate, end / mean.rate, records, rtol)
    matrices, t = path.predictor.values, path.t.values
    curves = {name: path[name].values for name in ("test_error", "parameter_norm", "turn")} | {
        "t": mean.time(t),
        "steps": mean.time(t) / step,
        "train_error": np.sqrt(path.loss.values / problem.samples),
        "norm_nuclear": path.norm_nuclear.values / limits.value,
        "kernel_distance": _kernel_distances(
            problem, matrices, alpha**2 * np.exp(-2 * mean.rate * t)
        ),
    }
    for name, limit in (("from_kernel", limits.kernel), ("from_nuclear", limits.nuclear)):
        away = np.linalg.norm(matrices - limit, axis=(1, 2))
        curves[name] = away / np.linalg.norm(limit)
    late = {name: curves[name][1:] for name in ("t", "train_error", "test_error")}
    transition = grokking(late["t"], late["train_error"], late["test_error"], level, error=True)
    return {f"{TRAJECTORY}{name}": values for name, values in curves.items()} | {
        "forecast": mean.time(predicted.transition),
        "forecast_low": mean.time(predicted.low),
        "forecast_high": mean.time(predicted.high),
        "theory": mean.time(predicted.naive),
        **{name: getattr(transition, name) for name in ("t1", "t2", "jump")},
        "certificate": limits.certificate,
        "tries": tries,
        "kernel_nuclear": nuclear_norm(limits.kernel) / limits.value,
        "least_error": problem.test_error(limits.nuclear),
        "kernel_error": problem.test_error(limits.kernel),
    }


def trained(
    model: Any, problem: Completion, rate: float, last: float, records: int, rtol: float
) -> Dataset:
    """The recorded path, half of its records log-spaced and half evenly spaced."""
    half = records // 2
    first = 1e-2 / model.alpha**2  # the kernel's eigenvalues are of order alpha^2
    times = np.append(
        np.geomspace(first, last / half, half, endpoint=False), np.linspace(last / half, last, half)
    )
    flow = ParameterFlow(rtol=rtol, weight_decay=rate)
    path = train(model, problem, flow, stop=Time(last), record=At(times=times[:-1]), throw=True)
    t = path.dataset.t.values
    return path.dataset.isel(time=np.searchsorted(t, np.append(0.0, times) * (1 - 1e-12)))


def _kernel_distances(problem: Completion, matrices: Array, products: Array) -> Array:
    kernels = (tangent_kernel(problem, M, p) for M, p in zip(matrices, products, strict=True))
    first = next(kernels)
    return np.array([0.0, *(kernel_distance(first, kernel) for kernel in kernels)])


study = sized(
    "L-F3a",
    title="A multiplication table is memorized at once and completed after the start has decayed",
    function=cell,
    arguments={
        "dimension": 20,
        "fraction": 0.3,
        "alpha": 10.0,
        "step": 0.1,  # of the descent whose steps are counted
        "end": 25.0,  # of the run, in units of 1/decay
        "records": 120,
        "rtol": 1e-6,
        "level": 0.02,
        "slack": SLACK,  # of the certificate that the entries determine the table
    },
    grid={"decay": [1e-4, 1e-6]},
    seeds=3,
    dims={f"{TRAJECTORY}{name}": ["time"] for name in CURVES},
    labels={f"{TRAJECTORY}{name}": text for name, text in CURVES.items()}
    | {
        "decay": r"rate $\lambda$ of the weight decay, with a mean squared error",
        "jump": "time at which the late fall of the test error is half done",
        "t1": "time from which the training error stays below the level",
        "t2": "time from which the test error stays below the level",
        "forecast": "time of half of the fall of the test error, predicted before training",
        "forecast_low": "lower end of the predicted interval",
        "forecast_high": "upper end of the predicted interval",
        "theory": r"$(1/\lambda) \log \alpha$; NaN up to $\alpha = 1$",
        "certificate": "largest violation of the optimality conditions of that matrix, relative",
        "least_error": "test error of the matrix of least nuclear norm",
    },
    draw={"x": "decay", "colour": "jump", "log": True},
    tiny={"arguments": {"dimension": 12, "fraction": 0.4, "records": 80}},
    printed={
        "arguments": {"dimension": 97, "fraction": 0.05, "records": 200, "slack": 0.01},
        "seeds": 1,
    },
)


def runs_of(dataset: Dataset, number: int = 0) -> list[Dataset]:
    """One run of a table for every decay, the largest first, its curves under plain names."""
    named = dataset.isel(seed=number).rename({f"{TRAJECTORY}{name}": name for name in CURVES})
    return [named.sel(decay=decay) for decay in sorted(dataset.decay.values, reverse=True)]


def exponent(table: list[Dataset]) -> float:
    """The exponent in the decay of the final test error of one table."""
    ends = [run.isel(time=-1) for run in (table[0], table[-1])]
    decays, errors = (
        np.array([float(end[name]) for end in ends]) for name in ("decay", "test_error")
    )
    return slope(decays, errors)


def check(dataset: Dataset) -> Evidence:
    """The kernel interpolant first, the least nuclear norm last, at the predicted time."""
    tables = [runs_of(dataset, k) for k in range(dataset.sizes["seed"])]
    runs = [run for table in tables for run in table]
    quarter = [np.abs(run.t - run.forecast / 4).values.argmin() for run in runs]
    early = [run.isel(time=k) for run, k in zip(runs, quarter, strict=True)]
    last = [run.isel(time=-1) for run in runs]
    near = at_most(max(float(run.from_kernel) for run in early), 2e-3)
    least = within(max(abs(float(run.norm_nuclear) - 1) for run in last), tolerance=0.01)
    slowest = [table[-1].isel(time=-1) for table in tables]
    solved = at_most(max(float(run.test_error) for run in slowest), 1e-4)
    # a next order of a fifth at the largest decay moves the exponent by 0.04; 1/2 and 2 are far off
    bias = within(np.median([exponent(table) for table in tables]), 1.0, 0.1)
    waits = at_least(min(np.log10(float(run.t2 / run.t1)) for run in runs), 3.0)
    logs = {
        name: np.log(dataset[name] / dataset.jump).mean("seed").values
        for name in ("forecast", "theory")
    }
    time = within(furthest(logs["forecast"]), tolerance=np.log(1.1))
    tries = int(dataset.tries.isel(decay=0).sum())
    certified, determined = (
        below(max(float(run[name]) for run in runs), 1e-8)
        for name in ("certificate", "least_error")
    )
    return Evidence(
        ran=f"{len(tables)} tables that their entries determine, of {tries} drawn, trained in $U$ "
        "and $V$ from 10 I at the decays "
        f"{', '.join(f'{float(run.decay):g}' for run in tables[0])} with the mean squared "
        "error",
        checks={
            "largest distance to the kernel interpolant at a quarter of the forecast": near,
            "nuclear norm at the end over the least that fits, largest deviation from 1": least,
            "test error at the end of the smallest decay": solved,
            "exponent of the final test error in the decay (median)": bias,
            "least number of decades between solving training and solving the test": waits,
            "natural logarithm of the predicted time over the time of half of the fall, mean over"
            " the tables": time,
        },
        premises={
            "the least nuclear norm is certified by its dual": certified,
            "the observed entries determine the table: the matrix of least nuclear norm has no"
            " test error": determined,
        },
        controls={
            "the least nuclear norm before the transition": near.control(
                min(float(run.from_nuclear) for run in early)
            ),
            "the kernel interpolant's nuclear norm at the end": least.control(
                min(float(run.kernel_nuclear) - 1 for run in runs)
            ),
            "the kernel interpolant's test error": solved.control(
                min(float(run.kernel_error) for run in slowest)
            ),
            "the final error does not depend on the decay": bias.control(predicted=0.0),
            r"the final error is of order $\sqrt{\mathrm{decay}}$": bias.control(predicted=0.5),
            r"$(1/\lambda) \log \alpha$ as the time of the fall": time.control(
                furthest(logs["theory"])
            ),
        },
        findings=[
            f"decay {float(run.decay):g}: training is solved at $t = "
            f"{latex(float(run.t1), '.2g')}$, the test at {float(run.t2):.2g}, half of the "
            f"fall is done at {float(run.jump):.3g}, predicted {float(run.forecast):.3g}; "
            f"final test error {float(end.test_error):.2g}"
            for run, end in zip(runs[:2], last[:2], strict=True)
        ],
    )


def draw(dataset: Dataset) -> Figure:
    """Errors, distances, nuclear norm, parameter norm, turn and kernel distance over one time."""
    runs = runs_of(dataset)
    colours = [RED, BLUE] if len(runs) == 2 else [CYCLE[k % len(CYCLE)] for k in range(len(runs))]
    step = float((runs[0].t / runs[0].steps)[-1])
    caption = f"{caption_of(dataset.attrs)} A step of descent is {step:g} of $t$."
    picture, axes = panel_rows(dataset.title, caption, HEIGHTS)
    for run, colour in zip(runs, colours, strict=True):
        _predicted(axes, run, colour)
    for run, colour in zip(runs, colours, strict=True):
        _draw_run(axes, run.isel(time=run.t.values > 0), colour)
    _furnish(axes, runs)
    picture.align_ylabels(axes)
    return picture


def _draw_run(axes: Sequence[Axes], run: Dataset, colour: str) -> None:
    error, distance, nuclear, norm, turn, kernel = axes
    name = rf"$\lambda = {latex(float(run.decay), '.1e')}$"
    error.plot(run.t, run.test_error, color=colour, linewidth=3, label=f"test, {name}")
    error.plot(run.t, run.train_error, "--", color=colour, linewidth=1.4, label=f"training, {name}")
    distance.plot(run.t, run.from_kernel, "-.", color=colour, linewidth=1.4)
    distance.plot(run.t, run.from_nuclear, color=colour)
    nuclear.plot(run.t, run.norm_nuclear, color=colour)
    norm.plot(run.t, run.parameter_norm, color=colour)
    turn.plot(run.t, run.turn, color=colour)
    kernel.plot(run.t, run.kernel_distance, color=colour)


def _predicted(axes: Sequence[Axes], run: Dataset, colour: str) -> None:
    """The two predictions before training: the forecast and (1/lambda) log alpha."""
    low, high = float(run.forecast_low), float(run.forecast_high)
    for one in axes:
        one.axvspan(low, high, color=colour, alpha=0.13, linewidth=0, zorder=0)
        one.axvline(float(run.forecast), color=BLACK, linestyle="--", linewidth=1.2, zorder=2)
        one.axvline(float(run.theory), color=GREY, linestyle=":", linewidth=1.2, zorder=2)


def _furnish(axes: Sequence[Axes], runs: list[Dataset]) -> None:
    error, distance, nuclear, norm, turn, kernel = axes
    error.set(ylabel="root mean\nsquare error", xscale="log", yscale="log")
    times = np.concatenate([run.t.values[run.t.values > 0] for run in runs])
    error.set_xlim(times.min(), times.max())
    error.plot([], [], "--", color=BLACK, linewidth=1.2, label="forecast before training")
    error.plot([], [], color=GREY, linewidth=8, alpha=0.3, label="predicted interval")
    error.plot([], [], ":", color=GREY, linewidth=1.2, label=r"$(1/\lambda)\,\log\alpha$")
    distance.plot([], [], "-.", color=BLACK, linewidth=1.4, label="kernel interpolant")
    distance.plot([], [], color=BLACK, label="least nuclear norm")
    distance.set(ylabel="relative\ndistance to", yscale="log")
    nuclear.axhline(1, color=BLACK, linewidth=0.9, label="least that fits\nthe data")
    nuclear.set(ylabel="nuclear norm\nover least", ylim=(0, None))
    norm.set(ylabel="parameter\nnorm", yscale="log")
    low, high = np.log10(norm.get_ylim())
    norm.set_ylim(10 ** np.floor(low), 10 ** np.ceil(high))  # whole decades: the panel is small
    turn.set(ylabel="turn from\nstart (deg)", ylim=(0, 92), yticks=(0, 45, 90))
    kernel.set(ylabel="kernel\ndistance", ylim=(-0.03, None), xlabel="training time $t$")
    for one in (error, distance, nuclear):
        one.legend(**LEGEND)
    error.set_title("\n".join(map(_summary, runs)))


def _summary(run: Dataset) -> str:
    """When the error of a run fell, and when that was predicted."""
    decay, jump, forecast = (
        latex(float(run[name]), ".1e") for name in ("decay", "jump", "forecast")
    )
    return rf"$\lambda = {decay}$: half of the fall at $t = {jump}$, predicted ${forecast}$"


experiment = Experiment(
    "L-F3a",
    statement="Training memorizes a multiplication table at once and completes it late: from $U = "
    "V = 10 I$ under a small weight decay, the matrix is first zero at unobserved entries; "
    "the test error falls when the start has decayed, and training ends at the matrix of "
    "least nuclear norm.",
    place="Example: completing multiplication tables, plot",
    study=study,
    check=check,
    draw=draw,
    ours="the table is $i j/d^2$; entries are drawn one by one, and symmetry then gives $(j, i)$ "
    "too; tables are drawn until the entries determine one; the second decay, because the "
    "final error is proportional to the decay; at the smaller sizes also $d$ and the observed "
    "share",
    scope={
        "quick": "$d = 20$ in place of 97, 30% of the entries in place of 5%; exact flow in place "
        "of descent",
        "printed": "exact flow in place of descent",
    },
    seconds=1,
)
