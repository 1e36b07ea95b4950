"""The cells of the phase diagram of step size and penalty, which no figure of a source shows."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from penchant import GradientDescent, NumericalError, Steps, train
from penchant.lab import Kind
from penchant.record import At
from penchant.solvers import SlowFlow
from penchant.stop import Below
from penchant_papers.notsawo2025.recoveries import Recovery, log_steps, reached, recovery

Given = tuple[int, int, int, int, float]  # samples, dimension, sparsity, seed, snr


def cell(
    step_size: float,
    beta: float,
    seed: int,
    *,
    samples: int,
    dimension: int,
    sparsity: int,
    snr: float,
    start: float,
    level: float,
    budget: int,
    points_per_decade: int,
) -> dict[str, Any]:
    """When subgradient descent with beta |a|_1 finds the sparse truth; NumericalError: it diverged.

    `step_size` is in units of 2/sigma_max(X^T X), beyond which descent diverges. `t1` and `t2` are
    the steps at which the loss and |a - a*|^2 fall to `level`, NaN if not within `budget`;
    `predicted` is t2 by the slow phase, tau/(step beta), `order` the source's |a_hat - a*|_inf /
    (step beta), and `rest` is |a - a*|^2 of the exact minimiser: where that is above the level, no
    small step brings the run to rest below it. The curves are those of the run.
    """
    given = (samples, dimension, sparsity, seed, snr)
    case, slow = _case(given, start)
    step = step_size * 2 / float(np.linalg.norm(case.X, 2)) ** 2
    steps = log_steps(budget, points_per_decade).astype(int).tolist()
    path = train(
        case.model(start),
        case.problem,
        GradientDescent(step, check=False, subgradient=True),
        penalty=beta * case.penalty,
        stop=[Steps(steps[-1]), Below("test_error", level)],
        record=At(steps),
    )
    if path.outcome.kind is Kind.DIVERGED:
        raise NumericalError(f"step {step:g}, beta {beta:g}", path.outcome)
    run, rate = path.dataset, step * beta
    taken = run.step.values.astype(float)
    error = run.test_error.values
    return {
        "t1": reached(taken, run.loss.values, level),
        "t2": reached(taken, error, level),
        "error": float(error.min()),
        "predicted": slow.reaches(case.truth, math.sqrt(level)) / rate,
        "order": case.dual_norm(slow.points[0] - case.truth) / rate,
        "rest": _rest(given, beta),
        "trajectory_step": taken,
        "trajectory_loss": run.loss.values,
        "trajectory_test_error": error,
    }


@functools.lru_cache(maxsize=8)
def _case(given: Given, start: float) -> tuple[Recovery, SlowFlow]:
    """A problem and its slow phase, which neighbouring cells share."""
    samples, dimension, few, seed, snr = given
    sizes: Any = {"samples": samples, "dimension": dimension, "few": few}
    case = recovery("sparse", **sizes, seed=seed, noise=1 / snr)
    return case, case.slow(start)


@functools.lru_cache(maxsize=256)
def _rest(given: Given, beta: float) -> float:
    """|a - a*|^2 of the minimiser of (1/2)|X a - y|^2 + beta |a|_1."""
    case, _ = _case(given, 0.0)
    return float(np.sum((case.penalized(beta) - case.truth) ** 2))
