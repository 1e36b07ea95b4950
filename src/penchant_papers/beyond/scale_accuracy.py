"""The cells of the phase diagram of scale and accuracy, which no figure of a source shows."""

from __future__ import annotations

import numpy as np

from penchant import L1, L2, Classification, Q, max_margin
from penchant.lab import Array
from penchant.measures import angle, excess_norm
from penchant.problems import three_points
from penchant_papers.moroshko2020.figures.trajectories import follow


def cell(
    alpha: float, accuracy: float, *, points: str, depth: int, rtol: float
) -> dict[str, float]:
    """Training with exp loss at log(1/loss) = accuracy, and what M's limit predicts.

    `excess` is the l1 norm at margin 1 above the least one, over that of the l2 max margin: 1 is
    the kernel regime, 0 the l1 max margin. `predicted` is the same of argmin Q_mu at
    mu = alpha^D / accuracy, `gap` the angle between both directions in degrees. # M theorem 6
    """
    problem, mu = three_points(points), alpha**depth / accuracy
    path = follow(problem, depth, alpha, np.array([accuracy]), rtol)
    trained, limit = path.predictor.values[0], max_margin(problem.X, problem.y, Q(depth, mu=mu))
    kernel = _excess(problem, max_margin(problem.X, problem.y, L2()).beta)
    return {
        "excess": _excess(problem, trained) / kernel,
        "predicted": _excess(problem, limit.beta) / kernel,
        "gap": float(angle(trained, limit.beta)),
        "mu": mu,
    }


def _excess(problem: Classification, beta: Array) -> float:
    return float(excess_norm(problem, beta, L1()))
