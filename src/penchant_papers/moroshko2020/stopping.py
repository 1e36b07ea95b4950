"""Trained predictors at given smoothed margins, and the stability condition judged by training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penchant import (
    L1,
    L2,
    Classification,
    DiagonalNet,
    DualFlow,
    ParameterFlow,
    Path,
    max_margin,
    train,
)
from penchant.lab import Array, Dataset
from penchant.measures import kkt_residual, stability
from penchant.models import Separable
from penchant.problems import separable_points, three_points
from penchant.record import At, LogSpaced
from penchant.stop import LogLoss
from penchant_papers.instances import slope

Flow = DualFlow | ParameterFlow
Margins = Sequence[float] | Array
FLOWS: dict[str, type[DualFlow] | type[ParameterFlow]] = {
    "dual": DualFlow,
    "parameters": ParameterFlow,
}
NORMS = {"l1": L1, "l2": L2}
NEAR = 1e-4  # how much above the smallest a margin may be, relatively, and count as the smallest


def max_margin_of(problem: Classification, norm: str) -> Array:
    """The max margin in the norm "l1" or "l2"."""
    return max_margin(problem.X, problem.y, NORMS[norm]()).beta


def trained(
    problem: Classification,
    model: Separable,
    margins: Margins,
    flow: Flow | None = None,
    per_decade: int = 1,
) -> Path:
    """The path of `model` to the largest of `margins`, with a record at each of them."""
    method, record = flow or ParameterFlow(), [LogSpaced(per_decade), At(margins=margins)]
    stop = LogLoss(-float(max(margins)))
    return train(model, problem, method, stop=stop, record=record, throw=True)


def rows_at(dataset: Dataset, margins: Margins) -> list[int]:
    """The records that are nearest to these smoothed margins."""
    reached = dataset.smoothed_margin.values
    return [int(np.abs(reached - g).argmin()) for g in margins]


def follow(
    problem: Classification,
    depth: int,
    alpha: float,
    margins: Margins,
    rtol: float | None = None,
    flow: str = "dual",
) -> Dataset:
    """The path of a diagonal net at exactly these smoothed margins."""
    method = FLOWS[flow]() if rtol is None else FLOWS[flow](rtol=rtol)
    data = trained(problem, DiagonalNet(depth, alpha=alpha), margins, method).dataset
    return data.isel(time=rows_at(data, margins))


def predictors(
    problem: Classification, depth: int, alpha: float, margins: Margins, flow: str = "parameters"
) -> Array:
    """Predictors at exactly these smoothed margins, one row each."""
    return np.asarray(follow(problem, depth, alpha, margins, flow=flow).predictor.values)


def stationarity(problem: Classification, depth: int, beta: Array) -> float:
    """The KKT residual of the shortest weights with this predictor: 0 if stationary for l_{2/D}.

    Entries below 1e-4 of the largest count as zero there.
    """
    kept = np.where(np.abs(beta) > 1e-4 * np.abs(beta).max(), beta, 0.0)
    weights = shortest_weights(kept, depth)
    net = DiagonalNet(depth, alpha=1.0)
    return kkt_residual(problem, net, weights, outputs=problem.X @ beta)


def shortest_weights(beta: Array, depth: int) -> Array:
    """The shortest u = (u_+, u_-) with u_+^D - u_-^D = beta: one of both is zero."""
    return np.concatenate([np.maximum(beta, 0), np.maximum(-beta, 0)]) ** (1 / depth)


def off_support(problem: Classification) -> float:
    """z = |X^T nu| of panel 3b's two coordinates off its l1 point, where 1 is that of its support.

    Its first two points are always support vectors, which keeps w_2 : w_3 fixed, so both grow at
    one rate: (Z^T nu)_2 = (Z^T nu)_3 = z with (Z^T nu)_1 = 1 (13/21 by hand).
    """
    Z = problem.signed_rows[:2]
    nu = np.linalg.solve(np.array([Z[:, 0], Z[:, 1] - Z[:, 2]]), [1.0, 0.0])
    return float(nu @ Z[:, 1])


def names_of(count: int) -> list[str]:
    """The names of this many random sets, values of an axis `points`."""
    return [f"drawn {k}" for k in range(count)]


def number_of(points: str) -> int | None:
    """The number of a random set, or None for a panel of M."""
    return int(points.removeprefix("drawn ")) if points.startswith("drawn ") else None


def points_of(
    name: str, samples: int, dimension: int, *, margin: float, seed: int
) -> Classification:
    """Three points of a panel of M, or this many separable points for "drawn 3" and the like."""
    number = number_of(name)
    if number is None:
        return three_points(name)
    return separable_points(samples, dimension, margin=margin, seed=seed + number)


def random_set(seed: int) -> tuple[Classification, int]:
    """Three or four Gaussian points in three to five dimensions, and a depth: every third set 3."""
    points = separable_points(3 + seed % 2, 3 + seed // 2 % 3, margin=0.3, seed=seed)
    return points, 3 if seed % 3 == 2 else 2


def named(points: str, seed: int) -> tuple[Classification, int]:
    """A panel of M, whose depth is that of its figure, or the set "drawn 3" and a depth."""
    number = number_of(points)
    if number is None:
        return three_points(points), 3 if points.startswith("4") else 2
    return random_set(seed + number)


def stops(problem: Classification, mus: Sequence[float], depth: int = 2) -> tuple[Array, Array]:
    """Training from alpha^D = 1e4 and 1e6, stopped at alpha^D/mu: exponents and predictors.

    The exponents are those in alpha of the smoothed margin from which on no sample that ends off
    the margin was at it: zero where condition 5 holds, the depth where it fails. The predictors
    are those of the larger alpha. No regularizer enters either of them.
    """
    alphas = [scale ** (1 / depth) for scale in (1e4, 1e6)]
    runs = [
        trained(
            problem,
            DiagonalNet(depth, alpha=alpha),
            [alpha**depth / mu for mu in mus],
            DualFlow(rtol=1e-3 * NEAR),
            per_decade=10,
        ).dataset
        for alpha in alphas
    ]
    rows = rows_at(runs[-1], [alphas[-1] ** depth / mu for mu in mus])
    since = [
        [
            _since(run, alpha**depth / mu, runs[-1].margins.values[row])
            for run, alpha in zip(runs, alphas, strict=True)
        ]
        for mu, row in zip(mus, rows, strict=True)
    ]
    exponents = [slope(np.array(alphas), np.array(pair)) for pair in since]
    return np.array(exponents), runs[-1].predictor.values[rows]


def _since(run: Dataset, smoothed_margin: float, limit: Array) -> float:
    """The smoothed margin beyond which the samples off the margin of `limit` stayed off it."""
    inside = run.smoothed_margin.values <= (1 + 1e-9) * smoothed_margin
    until = run.isel(time=np.flatnonzero(inside))
    return max(stability(until, limit, rho=1 + NEAR, rtol=2 * NEAR).since, 1.0)
