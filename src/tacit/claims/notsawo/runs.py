"""Runs that several claims of source N share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tacit.arguments import Array
from tacit.models.linear import LinearPredictor
from tacit.problems.recovery import sparse_recovery
from tacit.problems.regression import Regression
from tacit.regularizers.norms import L1
from tacit.solvers.delay import least_squares_limit
from tacit.solvers.slow_flow import SlowFlow, slow_flow
from tacit.training.descent.methods import Subgradient
from tacit.training.record import At
from tacit.training.stop import Steps
from tacit.training.train import train

# N: (n, s, N, step, beta) of its sparse recovery, and the error |a - a*|^2 that counts as t2
STEP, BETA, START, SOLVED = 0.1, 1e-5, 1e-6, 1e-4


def recovery(seed: int, snr: float = math.inf) -> Regression:
    """N's sparse recovery: 30 samples, 100 features, 5 of them in the truth."""
    return sparse_recovery(30, 100, sparsity=5, seed=seed, snr=snr)


def truth(problem: Regression) -> Array:
    """The truth, which every sparse recovery has."""
    assert problem.truth is not None
    return problem.truth


def slow_phase(problem: Regression) -> SlowFlow:
    """The exact path from the least squares point, in tau = step beta steps."""
    return slow_flow(problem.X, least_squares_limit(problem.X, problem.y, 1e-3).point)


def sparse_run(problem: Regression, step: float, beta: float, record: Sequence[int]) -> Any:
    """The dataset of N's subgradient descent with the l1 penalty, at these steps and 0."""
    return train(
        LinearPredictor(START),
        problem,
        Subgradient(step),
        penalty=beta * L1(),
        stop=Steps(max(record)),
        record=At(record),
    ).dataset
