"""Matrices from a vanishing start: one rank after another, and not the least nuclear norm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Evidence, at_least, at_most, within
from tacit.lazy import DataArray, Dataset, Figure
from tacit.models.factorization import Factorization
from tacit.papers.experiment import Experiment
from tacit.plotting.style import BLACK, CYCLE, sheet_of
from tacit.problems.matrices import gaussian_sensing, low_rank_completion
from tacit.problems.matrix_problem import MatrixProblem, Sensing
from tacit.regularizers.spectral import Frobenius, Nuclear
from tacit.solvers.interpolate import interpolate
from tacit.studies.sizes import sized
from tacit.training.exact.matrices.flow import MatrixFlow
from tacit.training.exact.matrices.greedy_rank import empty, greedy_rank, visited
from tacit.training.record import At, LogSpaced
from tacit.training.stop import Interpolated
from tacit.training.train import train

JUMPS = 3  # room for the jumps of one problem
RECORDS = 100  # of a run, from half the first jump to long after the last
TARGETS = {
    "to_greedy": "greedy rank",
    "to_nuclear": "least nuclear norm",
    "to_frobenius": "least Frobenius norm",
}
SHOWN = 9  # the completion of the picture


def problem(kind: str, number: int) -> MatrixProblem:
    """A completion of W's Figure 5 (d = 10, rank 1, 60 entries), or 22 measurements of rank 2."""
    if kind == "completion":
        return low_rank_completion(60, 10, rank=1, seed=number)
    return gaussian_sensing(22, 6, rank=2, seed=number)


def far(matrix: Array, other: Array) -> float:
    return float(np.linalg.norm(matrix - other) / np.linalg.norm(other))


def cell(kind: str, number: int, alpha: float) -> dict[str, Any]:
    """Jumps and end of one run, and the predictions of greedy rank and two norms."""
    of = problem(kind, number)
    found = greedy_rank(of)
    model = Factorization(sum(of.shape), alpha=alpha, seed=number)
    times = np.geomspace(found.tau[1] / 2, 3 * found.tau[-1], RECORDS) * math.log(1 / alpha)
    stop, record = Interpolated(1e-10), At(times=list(times))
    path = train(model, of, MatrixFlow(rtol=1e-5), stop=stop, record=record).dataset
    levels = (found.loss[:-1] + found.loss[1:]) / 2
    jumps = np.interp(-levels, -path.loss.values, path.t.values)
    end, parts = path.predictor.values[-1], np.linalg.svd(found.end)
    one = parts.S[0] * np.outer(parts.U[:, 0], parts.Vh[0])

    def padded(values: Array) -> Array:
        return np.concatenate([values, np.full(JUMPS - len(values), np.nan)])

    return {
        "jump": padded(jumps),
        "predicted": padded(found.tau[1:]),
        "restarted": padded(np.cumsum(1 / found.rates[:-1])),
        "to_greedy": far(end, found.end),
        "to_nuclear": far(end, interpolate(of, Nuclear()).matrix),
        "to_frobenius": far(end, interpolate(of, Frobenius()).matrix),
        "passes_by": min(far(matrix, found.points[1]) for matrix in path.predictor.values),
        "passes_by_truncated": min(far(matrix, one) for matrix in path.predictor.values),
    }


def commuting(number: int, *, alpha: float) -> dict[str, float]:
    """Diagonal measurements: distances of the diagonal at the end to greedy rank.

    `to_printed` takes the fastest direction at every point, whatever grew before.
    """
    rng = np.random.default_rng(number)
    measurements = np.array([np.diag(row) for row in rng.standard_normal((3, 5)) / math.sqrt(3)])
    of = Sensing(measurements, rng.standard_normal(3))
    model, stop = Factorization(10, alpha=alpha, seed=number), Interpolated(1e-10)
    end = train(model, of, MatrixFlow(rtol=1e-5), stop=stop, record=LogSpaced(1)).predictor
    printed = visited(of, empty(of, symmetric=False), [np.eye(10)])[0][-1][1]
    ends = {"to_greedy": greedy_rank(of).end, "to_printed": printed}
    return {name: far(np.diag(end), np.diag(matrix)) for name, matrix in ends.items()}


LABELS = {
    "number": "seed of the matrix",
    "alpha": "scale alpha of the start",
    "jump": "time of the jump",
    "predicted": "predicted time of the jump, in units of log(1/alpha)",
    **{name: f"distance of the end to: {label}" for name, label in TARGETS.items()},
    "passes_by": "least distance of the path to the predicted matrix of rank 1",
}
DIMS = {name: ["jump_number"] for name in ("jump", "predicted", "restarted")}
study = sized(
    "beyond-greedy-rank",
    title="Factors from a vanishing start learn one rank after another, at predicted times",
    function=cell,
    arguments={"kind": "sensing"},
    grid={"number": [1, 2, 3], "alpha": [1e-8, 1e-16]},
    dims=DIMS,
    labels=LABELS,
    tiny={"grid": {"number": [2, 3]}},
    printed={"grid": {"number": list(range(20)), "alpha": [1e-4, 1e-8, 1e-12, 1e-16]}},
)
completion = sized(
    "beyond-greedy-rank-completion",
    title="The completions of W's Figure 5 where training does not end at the least nuclear norm",
    function=cell,
    arguments={"kind": "completion"},
    grid={"number": [9, 11], "alpha": [1e-4, 1e-8]},
    dims=DIMS,
    labels=LABELS,
    tiny={"grid": {"number": [9]}},
    printed={"grid": {"number": [1, 9, 11], "alpha": [1e-4, 1e-5, 1e-6, 1e-7, 1e-8]}},
)
diagonal = sized(
    "beyond-greedy-rank-commuting",
    title="With commuting measurements, each eigenvector keeps the growth it already had",
    function=commuting,
    arguments={"alpha": 1e-16},
    grid={"number": [0, 1, 2, 3]},
    labels=LABELS,
    draw={"x": "number", "colour": "to_printed"},
    printed={"grid": {"number": list(range(20))}},
)


def growth(dataset: Dataset) -> DataArray:
    """What a jump's time gains with log(1/alpha), between the two smallest starts."""
    early, late = (dataset.isel(alpha=k) for k in (-2, -1))
    return (late.jump - early.jump) / math.log(float(early.alpha / late.alpha))


def error(dataset: Dataset, against: str) -> float:
    """The median of that gain's relative distance from a predicted time, over jumps to rank 2."""
    predicted = dataset[against].isel(alpha=0, jump_number=1)
    return float(np.median(np.abs(growth(dataset).isel(jump_number=1) / predicted - 1)))


def fall(dataset: Dataset, distance: str) -> float:
    return float((dataset[distance].isel(alpha=-1) / dataset[distance].isel(alpha=0)).max())


def check(dataset: Dataset, completion: Dataset, diagonal: Dataset) -> Evidence:
    """The times, the point on the way and the end; least norms and fresh starts as controls."""
    last, seen = dataset.isel(alpha=-1), completion.isel(alpha=-1)
    time = within(error(dataset, "predicted"), tolerance=0.03)
    end = within(seen.to_greedy.max(), tolerance=1e-4)
    falls = at_most(fall(completion, "to_greedy"), 0.1)
    way = within(last.passes_by.median(), tolerance=0.01)
    clocks = at_least((diagonal.to_greedy < 0.01).mean(), 0.75)
    gains = growth(dataset)
    return Evidence(
        ran=f"{dataset.sizes['number']} matrices of rank 2 (d = 6, 22 Gaussian measurements) and"
        f" {completion.sizes['number']} completions (d = 10, rank 1, 60 entries), trained by exact"
        f" flow of two factors of full width from alpha = {float(dataset.alpha[0]):g} to"
        f" {float(dataset.alpha[-1]):g} and {float(completion.alpha[-1]):g}",
        checks={
            "jump to rank 2: median relative error of the growth of its time with"
            " log(1/alpha)": time,
            "completion, smallest start: largest relative distance of an end to greedy rank": end,
            "largest ratio of that distance at the smallest start to that at the largest": falls,
            "rank 2, smallest start: median least distance of the path to the predicted"
            " rank-1 point": way,
            "diagonal measurements: share of the endpoints within 1% of greedy rank, with separate"
            " growth for every invariant subspace": clocks,
        },
        controls={
            "directions restart with size alpha at every point": time.control(
                error(dataset, "restarted")
            ),
            "the least nuclear norm, nearest completion": end.control(seen.to_nuclear.min()),
            "the least Frobenius norm, nearest completion": end.control(seen.to_frobenius.min()),
            "the distance to the least nuclear norm falls": falls.control(
                fall(completion, "to_nuclear")
            ),
            "the fastest direction at every point": clocks.control(
                (diagonal.to_printed < 0.01).mean()
            ),
            "the path passes the best rank-1 approximation of the endpoint": way.control(
                last.passes_by_truncated.median()
            ),
        },
        findings=[
            f"jumps of matrix {int(number)}: the times grow by"
            f" {', '.join(f'{gain:.4f}' for gain in gains.sel(number=number).values[:2])} per"
            " unit of log(1/alpha), predicted"
            f" {', '.join(f'{tau:.4f}' for tau in last.predicted.sel(number=number).values[:2])}"
            for number in dataset.number.values[:3]
        ],
    )


def draw(dataset: Dataset, completion: Dataset, diagonal: Dataset) -> Figure:
    """Distances of the ends of one completion over alpha; measured over predicted times."""
    picture, (a, b) = sheet_of(dataset, widths=(6.0, 6.0), height=4.8)
    one = completion.sel(number=SHOWN)
    for colour, marker, (name, label) in zip(CYCLE, "os^", TARGETS.items(), strict=False):
        a.plot(one.alpha, one[name], f"{marker}-", color=colour, label=label)
    a.set(
        xscale="log",
        yscale="log",
        xlabel=r"scale $\alpha$ of the start",
        ylabel="relative distance of the end of training",
        title=f"completion of W's Figure 5, seed {SHOWN}: where training ends",
    )
    a.legend(loc="lower right", title="distance to")
    gains, last = growth(dataset), dataset.isel(alpha=-1)
    for k, colour in enumerate(CYCLE[:2]):
        label = f"jump to rank {k + 1}"
        b.plot(last.predicted[:, k], gains[:, k], "o", markersize=8, color=colour, label=label)
        b.plot(last.restarted[:, k], gains[:, k], "x", markersize=8, color=colour)
    b.plot([], [], "x", color=BLACK, label="directions restart at each jump")
    line = np.array([float(last.predicted.min()) / 1.3, 1.3 * float(last.restarted.max())])
    b.plot(line, line, "--", color=BLACK, linewidth=1.2, label="equal")
    b.set(
        xscale="log",
        yscale="log",
        xlabel=r"predicted time $\tau$",
        ylabel=r"measured growth of the time per $\log(1/\alpha)$",
        title="when each rank is learned",
    )
    b.legend()
    return picture


experiment = Experiment(
    "beyond-greedy-rank",
    statement="As the scale alpha of two factors goes to 0, training visits the critical points"
    " of greedy low-rank learning, one rank after another, and ends at its last point,"
    " even where another fit has a smaller nuclear norm. A rank is learned at time tau"
    " log(1/alpha), where tau follows from the growth rates at all earlier points."
    " Where measurements commute, each of their eigenvectors grows on its own, and the"
    " fastest direction is not always the next.",
    place="Li, Luo and Lyu 2021 (arXiv 2012.09839); the times and commuting measurements: ours",
    study=(study, completion, diagonal),
    check=check,
    draw=draw,
    ours="the data, the scales, the level of the loss that marks a jump, and the times",
    seconds=4,
)
