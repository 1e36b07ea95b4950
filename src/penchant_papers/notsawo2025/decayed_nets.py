"""Exact flows of diagonal nets u^2 - v^2 with weight decay, from the kernel to the rich regime.

They start at u = v = alpha, where they compute zero and |theta(0)| = alpha sqrt(2 d).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from penchant import DiagonalNet
from penchant.lab import Array, drawn
from penchant.measures import angle, kkt_residual
from penchant.models import Difference, LinearPredictor

# of log|theta(0)| / beta, the source's t2; the transition is a few times 1/log|theta(0)| wide
SHARES = np.concatenate(
    [np.linspace(0.25, 0.85, 13), np.linspace(0.9, 1.145, 50), np.linspace(1.15, 1.75, 13)]
)
EARLY, LATE = 5, 70  # the places of 1 - epsilon and 1 + epsilon with epsilon = 1/2
# c of beta = |theta(0)|^-c; the misfit of a regression is of order beta, which must be larger than
# rounding errors
POWERS = {"classification": 1.0, "regression": 0.0375}
NET = DiagonalNet(2, alpha=1.0)  # its parameters are given, its start is not used
LINEAR = Difference(LinearPredictor())  # the tangent of NET at equal weights, up to a factor
APART = 30.0  # degrees between the kernel and the rich limit
DEGREES = {
    "to_kernel": "angle of the predictor to that of the tangent kernel, in degrees",
    "to_rich": r"angle of the predictor to that of least $\ell_1$ norm",
    "theta_to_start": r"angle of $\theta(t)$ to $\theta(0)$",
    "theta_to_kernel": r"angle of $\theta(t)$ to the kernel solution, as printed",
    "moved_to_kernel": r"angle of $e^{\beta t} \theta(t) - \theta(0)$ to the kernel solution",
    "moved_to_rich": r"its angle to the solution of least $\ell_1$ norm",
    "moved_to_random": "its angle to the solution of a kernel with random weights",
    "plain_to_kernel": r"angle of $\theta(t) - \theta(0)$ to the kernel solution",
}
RESIDUALS = {
    "kkt": r"KKT residual of min $|\theta|^2$ with margins of the net itself",
    "kkt_linear": r"KKT residual with the margins linear in $\theta$, as printed",
}


@functools.lru_cache(maxsize=32)  # runs from several starts share their problem
def problem_of(
    task: str, number: int, samples: int, features: int, seed: int
) -> tuple[Any, Any, int]:
    """The `number`-th problem from `seed` on whose two limits are APART, its solver, the draws."""
    from penchant import L1, L2, interpolate, max_margin
    from penchant.problems import separable_points, sparse_regression

    solve: Any = max_margin if task == "classification" else interpolate

    def make(seed: int) -> Any:
        if task == "classification":
            return separable_points(samples, features, margin=0.3, seed=seed)
        return sparse_regression(samples, features, sparsity=2, noise=0.0, seed=seed)

    def wide(problem: Any) -> bool:
        kernel, rich = (solve(problem.X, problem.y, norm).beta for norm in (L2(), L1()))
        return float(angle(kernel, rich)) >= APART

    problem, draws = drawn(make, wide, seed, number)
    return problem, solve, draws


def parameters(predictor: Array, log_product: float) -> Array:
    """u and v, from u^2 - v^2 = predictor and u v = exp(log_product), which the flow conserves."""
    product = math.exp(log_product)
    large = np.sqrt((np.abs(predictor) + np.hypot(predictor, 2 * product)) / 2)
    small, up = product / large, predictor >= 0
    return np.concatenate([np.where(up, large, small), np.where(up, small, large)])


def displacement(predictor: Array, log_product: float) -> Array:
    """e^(beta t) theta(t) - theta(0) over alpha, without cancellation."""
    s = np.arcsinh(predictor / (2 * math.exp(log_product))) / 2
    return np.concatenate([np.expm1(s), np.expm1(-s)])


def cell(
    log_gamma: float,
    instance: int,
    task: str,
    *,
    seed: int,
    samples: int,
    features: int,
    powers: Mapping[str, float],
    rtol: float,
) -> dict[str, Any]:
    """One run with beta = gamma^-powers[task], at the times SHARES of log(gamma) / beta."""
    from penchant import L1, L2, DualFlow, train
    from penchant.record import At

    problem, solve, draws = problem_of(task, instance, samples, features, seed)
    X, y = problem.X, problem.y
    log_alpha, rate = log_gamma - math.log(2 * features) / 2, math.exp(-powers[task] * log_gamma)
    z = SHARES * log_gamma
    flow = DualFlow(rtol=rtol, weight_decay=rate)
    path = train(
        DiagonalNet(2, log_alpha=log_alpha), problem, flow, record=At(times=z / rate), throw=True
    )
    run = path.dataset
    places = [int(np.argmin(np.abs(run.t.values - t))) for t in z / rate]
    weights = np.exp(np.random.default_rng((seed, instance)).normal(0, 1, features))
    kernel, rich, random = (solve(X, y, norm).beta for norm in (L2(), L1(), L2(weights=weights)))
    start, tangent = np.ones(2 * features), np.hstack([X, -X])  # both over alpha
    both = {
        name: np.concatenate([w, -w])
        for name, w in {"kernel": kernel, "rich": rich, "random": random}.items()
    }
    measures: dict[str, Any] = {name: [] for name in (*DEGREES, *RESIDUALS)}
    for beta, decay in zip(run.predictor.values[places], z, strict=True):
        theta = parameters(beta, 2 * (log_alpha - decay))
        moved = displacement(beta, 2 * (log_alpha - decay))
        plain = math.exp(-decay) * (moved + start) - start
        pairs = [(beta, kernel), (beta, rich), (theta, start), (theta, both["kernel"])]
        pairs += [(moved, both[name]) for name in ("kernel", "rich", "random")]
        pairs.append((plain, both["kernel"]))
        for name, pair in zip(DEGREES, pairs, strict=True):
            measures[name].append(float(angle(*pair)))
        # outputs from the predictor: for a large start u^2 - v^2 and u - v are rounding errors
        own, linear = X @ beta, X @ (beta / np.add(*np.split(theta, 2)))
        measures["kkt"].append(kkt_residual(problem, NET, theta, outputs=own))
        measures["kkt_linear"].append(kkt_residual(problem, LINEAR, theta, outputs=linear))
    balanced = parameters(kernel, -200.0)
    return {
        **measures,
        "share": SHARES,
        "draws": draws,
        "kkt_of_kernel": kkt_residual(problem, NET, balanced, outputs=X @ kernel),
        "euler": np.abs(tangent @ start).max() / np.linalg.norm(tangent),
    }
