"""Low-rank recovery with the nuclear norm: problems, runs and the slow phase of source N."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.models.linear import LinearMatrix
from tacit.problems.matrices import (
    Completion,
    MatrixProblem,
    Sensing,
    gaussian_sensing,
    low_rank_completion,
)
from tacit.regularizers.spectral import Nuclear
from tacit.solvers.delay import least_squares_limit
from tacit.solvers.interpolate import interpolate
from tacit.solvers.nuclear_slow_flow import nuclear_slow_flow
from tacit.training.descent.methods import Proximal, Subgradient
from tacit.training.record import At
from tacit.training.stop import Steps
from tacit.training.train import train

START, SOLVED, LEVEL = 1e-6, 1e-4, 0.1  # start per entry, loss at t1, relative error at t2
EULER = 1e-3  # of the slow flow, in units of the distance it has to go


# N's loss is half the sum of squares
completion = functools.partial(low_rank_completion, loss="half squares")
sensing = functools.partial(gaussian_sensing, loss="half squares")


def small() -> list[Completion | Sensing]:
    """6 x 6 of rank 1 from 24 entries, and from 24 Gaussian measurements."""
    return [
        completion(samples=24, dimension=6, rank=1, seed=2),
        sensing(samples=24, dimension=6, rank=1, seed=0),
    ]


def printed() -> list[Completion | Sensing]:
    """N's size, 10 x 10 of rank 2 from 70 numbers, where the nuclear norm finds the truth."""
    return [
        completion(samples=70, dimension=10, rank=2, seed=2),
        sensing(samples=70, dimension=10, rank=2, seed=0),
    ]


def more() -> list[Completion | Sensing]:
    return [
        completion(samples=24, dimension=6, rank=1, seed=1),
        sensing(samples=70, dimension=10, rank=2, seed=1),
    ]


def noisy(problem: Completion | Sensing, snr: float, seed: int = 0) -> Completion | Sensing:
    """The same with Gaussian noise; `snr` is the power of the signal over that of the noise."""
    size = float(np.linalg.norm(problem.y)) / math.sqrt(problem.samples * snr)
    noise = size * np.random.default_rng(seed).standard_normal(problem.samples)
    if isinstance(problem, Completion):
        return dataclasses.replace(problem, values=problem.y + noise)
    return dataclasses.replace(problem, y=problem.y + noise)


def truth(problem: MatrixProblem) -> Array:
    """The truth, which every generated problem has."""
    assert problem.truth is not None
    return problem.truth


def memorized(problem: MatrixProblem) -> Array:
    """A_hat, the least squares point from zero."""
    point = least_squares_limit(problem.design, problem.y, 1e-3).point
    return np.asarray(point.reshape(problem.shape))


def nuclear_run(problem: MatrixProblem, step: float, beta: float, record: Sequence[int]) -> Any:
    """The dataset of subgradient descent with the nuclear norm, at these steps and 0."""
    return train(
        LinearMatrix(problem.shape, START),
        problem,
        Subgradient(step),
        penalty=beta * Nuclear(),
        stop=Steps(max(record)),
        record=At(record),
    ).dataset


def penalized(problem: MatrixProblem, beta: float, steps: int = 6000) -> Array:
    """A_beta, the minimiser of the objective, by accelerated proximal descent."""
    step = 0.5 * least_squares_limit(problem.design, problem.y, 1e-3).step_bound
    method, model = Proximal(step, accelerated=True), LinearMatrix(problem.shape, 0.0)
    return train(model, problem, method, penalty=beta * Nuclear(), stop=Steps(steps)).predictor


@functools.lru_cache(maxsize=32)
def slow_time(problem: MatrixProblem, level: float = LEVEL) -> float:
    """tau at which steepest descent of |A|_* on {X A = y} from A_hat has this relative error.

    It is inf if the flow ends elsewhere.
    """
    begin, goal = memorized(problem), truth(problem)
    aim = level * float(np.linalg.norm(goal))
    pace = EULER * float(np.linalg.norm(begin - goal, 2))
    path = nuclear_slow_flow(problem.design, begin, pace, goal, aim)
    return path.reaches(goal.ravel(), aim)


def corner(a: float, b: float, c: float, until: float) -> float:
    """tau at which the unknown entry x of [[a, b], [c, x]] has come from 0 to `until`, exactly.

    For 0 <= until <= bc/a < a, where |A|_* = sqrt((a - x)^2 + (b + c)^2) falls in x.
    """
    w = b + c

    def antiderivative(u: float) -> float:  # of sqrt(u^2 + w^2)/u = 1/speed with u = a - x
        return math.hypot(u, w) - w * math.asinh(w / u)

    return antiderivative(a) - antiderivative(a - until)


def step_of(problem: MatrixProblem) -> float:
    """Three quarters of the step that would no longer converge: N's 1.5 for completion."""
    return 0.75 * least_squares_limit(problem.design, problem.y, 1e-3).step_bound


def recovered(problem: MatrixProblem) -> float:
    """The relative distance of the interpolator of least nuclear norm from the truth."""
    X = problem.design.reshape(-1, *problem.shape)
    found = interpolate(X, problem.y, Nuclear()).matrix
    return float(np.linalg.norm(found - truth(problem)) / np.linalg.norm(truth(problem)))
