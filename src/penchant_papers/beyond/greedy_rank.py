"""Matrices from a vanishing start: one rank after another, and not the least nuclear norm."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from penchant import DiagonalNet, DualFlow, Factorization, Regression, interpolate, train
from penchant.lab import (
    DRAWS,
    Array,
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_most,
    drawn,
    share_at_least,
    sized,
    upper_share,
    within,
)
from penchant.methods import MatrixFlow
from penchant.plotting import BLACK, CYCLE, latex, sheet_of
from penchant.problems import (
    Completion,
    MatrixProblem,
    Sensing,
    gaussian_sensing,
    low_rank_completion,
)
from penchant.record import At, LogSpaced
from penchant.regularizers import Frobenius, Nuclear
from penchant.solvers import GreedyRank, empty_factors, greedy_points, saddles
from penchant.stop import Interpolated
from penchant_papers.beyond import OWN_RUNS

JUMPS = 3  # room for the jumps of one problem
RECORDS = 100  # of a run, from half the first jump to long after the last
TARGETS = {
    "to_greedy": "greedy rank",
    "to_nuclear": "least nuclear norm",
    "to_frobenius": "least Frobenius norm",
}
APART = 2.5  # the second rank is learned so many times as late as the first
FAST = 0.15  # the rate of growth at the first point, over that at zero: the jump itself takes time
DIFFERENT = 0.05  # relative distance of ends that two theories predict
LOG_ALPHA = -1000.0  # of nets with commuting measurements: jumps are then told apart


@functools.lru_cache(maxsize=16)
def predicted(problem: MatrixProblem) -> GreedyRank:
    """Greedy rank, computed once for all starts."""
    return saddles(problem)


@functools.lru_cache(maxsize=8)
def sensing(seed: int) -> tuple[Sensing, int]:
    """22 measurements of a 6 x 6 matrix of rank 2 with two ranks learned well apart; the draws.

    At alpha = 1e-16 a jump that is slow has not ended when the next begins.
    """

    def apart(problem: Sensing) -> bool:
        ranks = predicted(problem)
        two = len(ranks.tau) == 3
        return (
            two and ranks.tau[2] >= APART * ranks.tau[1] and ranks.rates[1] > FAST * ranks.rates[0]
        )

    return drawn(lambda k: gaussian_sensing(22, 6, rank=2, seed=DRAWS * seed + k), apart, 0)


@functools.lru_cache(maxsize=8)
def completing(seed: int) -> tuple[Completion, int]:
    """A completion as in W's Figure 5 (d = 10, rank 1, 60 entries) where two ends differ."""

    def differ(problem: Completion) -> bool:
        return far(interpolate(problem, Nuclear()).matrix, predicted(problem).end) > DIFFERENT

    return drawn(lambda k: low_rank_completion(60, 10, rank=1, seed=DRAWS * seed + k), differ, 0)


KINDS = {"sensing": sensing, "completion": completing}


def far(matrix: Array, other: Array) -> float:
    return float(np.linalg.norm(matrix - other) / np.linalg.norm(other))


def cell(kind: str, alpha: float, seed: int) -> dict[str, Any]:
    """Jumps and end of one run, and the predictions of greedy rank and two norms."""
    problem, draws = KINDS[kind](seed)
    greedy = predicted(problem)
    model = Factorization(sum(problem.shape), alpha=alpha, seed=seed)
    times = np.geomspace(greedy.tau[1] / 2, 3 * greedy.tau[-1], RECORDS) * math.log(1 / alpha)
    stop, record = Interpolated(1e-10), At(times=list(times))
    path = train(model, problem, MatrixFlow(rtol=1e-5), stop=stop, record=record).dataset
    levels = (greedy.loss[:-1] + greedy.loss[1:]) / 2
    jumps = np.interp(-levels, -path.loss.values, path.t.values)
    end, parts = path.predictor.values[-1], np.linalg.svd(greedy.end)
    first = parts.S[0] * np.outer(parts.U[:, 0], parts.Vh[0])

    def padded(values: Array) -> Array:
        return np.concatenate([values, np.full(JUMPS - len(values), np.nan)])

    return {
        "jump": padded(jumps),
        "predicted": padded(greedy.tau[1:]),
        "restarted": padded(np.cumsum(1 / greedy.rates[:-1])),
        "to_greedy": far(end, greedy.end),
        **(norm_distances(problem, end) if kind == "completion" else {}),
        "passes_by": min(far(matrix, greedy.points[1]) for matrix in path.predictor.values),
        "passes_by_truncated": min(far(matrix, first) for matrix in path.predictor.values),
        "draws": draws,
    }


def norm_distances(problem: MatrixProblem, end: Array) -> dict[str, float]:
    norms = {"to_nuclear": Nuclear(), "to_frobenius": Frobenius()}
    return {name: far(end, interpolate(problem, norm).matrix) for name, norm in norms.items()}


class Commuting(NamedTuple):
    """Diagonal measurements, where each entry on its own would end, and where printed greedy rank.

    The printed form takes the fastest direction at every point, whatever grew before.
    """

    of: Sensing
    alone: Array
    printed: Array


def commuting_problem(seed: int) -> Commuting:
    rng = np.random.default_rng(seed)
    rows, y = rng.standard_normal((3, 5)) / math.sqrt(3), rng.standard_normal(3)
    problem = Sensing(np.array([np.diag(row) for row in rows]), y)
    factors = empty_factors(problem, symmetric=False)
    printed = greedy_points(problem, factors, [np.eye(10)])[0][-1][1]
    return Commuting(problem, saddles(Regression(rows, y)).end, np.diag(printed))


def commuting(seed: int) -> dict[str, float]:
    """Diagonal measurements: distances of the diagonal at the end to greedy rank.

    The factors are diagonal from the start, since rounding would mix directions that have shrunk
    below 1e-16: this is the net w+^2 - w-^2.
    """
    (data, _, printed), draws = drawn(
        lambda k: commuting_problem(DRAWS * seed + k),
        lambda problem: far(problem.printed, problem.alone) > DIFFERENT,
        0,
    )
    end = np.diag(saddles(data).end)
    rows = np.diagonal(data.measurements, axis1=1, axis2=2)
    net, stop = DiagonalNet(2, log_alpha=LOG_ALPHA), Interpolated(1e-10)
    path = train(net, Regression(rows, data.y), DualFlow(rtol=1e-6), stop=stop, record=LogSpaced(1))
    beta = path.predictor
    return {"to_greedy": far(beta, end), "to_printed": far(beta, printed), "draws": float(draws)}


LABELS = {
    "alpha": r"scale $\alpha$ of the start",
    "jump": "time of the jump",
    "predicted": r"predicted time of the jump, in units of $\log(1/\alpha)$",
    **{name: f"distance of the end to: {label}" for name, label in TARGETS.items()},
    "passes_by": "least distance of the path to the predicted matrix of rank 1",
}
DIMS = {name: ["jump_number"] for name in ("jump", "predicted", "restarted")}
study = sized(
    "beyond-greedy-rank",
    title="Factors from a vanishing start learn one rank after another, at predicted times",
    function=cell,
    arguments={"kind": "sensing"},
    grid={"alpha": [1e-8, 1e-16]},
    seeds=7,
    dims=DIMS,
    labels=LABELS,
    printed={"seeds": 40, "grid": {"alpha": [1e-4, 1e-8, 1e-12, 1e-16]}},
)
completion = sized(
    "beyond-greedy-rank-completion",
    title="Completions as in W's Figure 5 where a fit has a smaller nuclear norm than the truth",
    function=cell,
    arguments={"kind": "completion"},
    grid={"alpha": [1e-2, 1e-8]},
    seeds=3,
    dims=DIMS,
    labels=LABELS,
    tiny={"seeds": 2},
    printed={"seeds": 40, "grid": {"alpha": [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8]}},
)
diagonal = sized(
    "beyond-greedy-rank-commuting",
    title="With commuting measurements, each eigenvector keeps the growth it already had",
    function=commuting,
    grid={"seed": list(range(16))},
    labels=LABELS,
    draw={"x": "seed", "colour": "to_printed"},
    tiny={"grid": {"seed": list(range(12))}},
    printed={"grid": {"seed": list(range(100))}},
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
    """The median ratio of a distance at the smallest start to that at the largest."""
    return float((dataset[distance].isel(alpha=-1) / dataset[distance].isel(alpha=0)).median())


def check(dataset: Dataset, completion: Dataset, diagonal: Dataset) -> Evidence:
    """The times, the point on the way and the end; least norms and fresh starts as controls."""
    last, seen = dataset.isel(alpha=-1), completion.isel(alpha=-1)
    time = within(error(dataset, "predicted"), tolerance=0.1)
    end = within(seen.to_greedy.median(), tolerance=0.01)
    falls = at_most(fall(completion, "to_greedy"), 0.1)
    way = within(last.passes_by.median(), tolerance=0.05)
    n = diagonal.sizes["seed"]
    clocks = share_at_least(int((diagonal.to_greedy < 0.01).sum()), n, 0.5)
    gains = growth(dataset).transpose("seed", "jump_number").values
    predicted = last.predicted.transpose("seed", "jump_number").values
    return Evidence(
        ran=f"{last.sizes['seed']} matrices of rank 2 ($d = 6$, 22 Gaussian measurements), the "
        f"second rank learned at least {APART:g} times as late as the first and at least "
        f"{FAST:g} times as fast ({drew(dataset)}), and {seen.sizes['seed']} completions ($d "
        "= 10$, rank 1, 60 entries) with another fit of least nuclear norm "
        f"({drew(completion)}), trained by exact flow of two factors of full width from "
        rf"$\alpha = {latex(float(dataset.alpha[0]))}$ to {float(dataset.alpha[-1]):g} and "
        f"from {float(completion.alpha[0]):g} to {float(completion.alpha[-1]):g}; "
        f"{diagonal.sizes['seed']} problems with 3 diagonal measurements of 5 entries where "
        rf"the fastest directions lead elsewhere ({drew(diagonal)}), from $\alpha = "
        f"e^{{{LOG_ALPHA:g}}}$",
        checks={
            "jump to rank 2: median relative error of the growth of its time with "
            r"$\log(1/\alpha)$": time,
            "completion, smallest start: median relative distance of an end to greedy rank": end,
            "median ratio of that distance at the smallest start to that at the largest": falls,
            "rank 2, smallest start: median least distance of the path to the predicted"
            " rank-1 point": way,
            "diagonal measurements: share of the endpoints within 1% of greedy rank, with separate"
            " growth for every invariant subspace (0.999 lower limit)": clocks,
        },
        controls={
            r"directions restart with size $\alpha$ at every point": time.control(
                error(dataset, "restarted")
            ),
            "the least nuclear norm, nearest completion": end.control(seen.to_nuclear.min()),
            "the least Frobenius norm, nearest completion": end.control(seen.to_frobenius.min()),
            "the distance to the least nuclear norm falls": falls.control(
                fall(completion, "to_nuclear")
            ),
            "the fastest direction at every point (0.999 upper limit)": clocks.control(
                upper_share(int((diagonal.to_printed < 0.01).sum()), n)
            ),
            "the path passes the best rank-1 approximation of the endpoint": way.control(
                last.passes_by_truncated.median()
            ),
        },
        findings=[
            f"jumps of matrix {number}: the times grow by "
            f"{', '.join(f'{gain:.4f}' for gain in gains[number, :2])} per unit of "
            r"$\log(1/\alpha)$, predicted "
            f"{', '.join(f'{tau:.4f}' for tau in predicted[number, :2])}"
            for number in range(min(3, len(gains)))
        ],
    )


def drew(dataset: Dataset) -> str:
    """How many of the draws met their premise."""
    draws = dataset.draws.isel(alpha=0) if "alpha" in dataset.dims else dataset.draws
    return f"{draws.size} of {int(draws.sum())} draws"


def draw(dataset: Dataset, completion: Dataset, diagonal: Dataset) -> Figure:
    """Distances of the ends of one completion over alpha; measured over predicted times."""
    picture, (a, b) = sheet_of(dataset, widths=(6.0, 6.0), height=4.8)
    shown = completion.isel(seed=0)
    for colour, marker, (name, label) in zip(CYCLE, "os^", TARGETS.items(), strict=False):
        a.plot(shown.alpha, shown[name], f"{marker}-", color=colour, label=label)
    a.set(
        xscale="log",
        yscale="log",
        xlabel=r"scale $\alpha$ of the start",
        ylabel="relative distance of the end of training",
        title="a completion as in W's Figure 5: where training ends",
    )
    a.legend(loc="lower right", title="distance to")
    last = dataset.isel(alpha=-1).transpose("seed", "jump_number")
    gains = growth(dataset).transpose("seed", "jump_number")
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
    statement=r"As the scale $\alpha$ of two factors goes to 0, training visits the critical "
    "points of greedy low-rank learning, one rank after another, and ends at its last point, "
    r"even where another fit has a smaller nuclear norm. A rank is learned at time $\tau "
    r"\log(1/\alpha)$, where $\tau$ follows from the growth rates at all earlier points. "
    "Where measurements commute, each of their eigenvectors grows on its own, and the fastest "
    "direction is not always the next.",
    place="Li, Luo and Lyu 2021 (arXiv 2012.09839); the times and commuting measurements: ours",
    study=(study, completion, diagonal),
    check=check,
    draw=draw,
    ours="the data, the scales, the level of the loss that marks a jump, and the times",
    scope=OWN_RUNS,
    seconds=4,
)
