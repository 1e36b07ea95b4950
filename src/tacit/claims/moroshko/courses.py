"""Trained predictors of diagonal nets at given smoothed margins, for the limit theorems of M."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.measures.directions import angle
from tacit.measures.stability import stability
from tacit.models.diagonal import DiagonalNet
from tacit.models.model import Separable
from tacit.papers.instances import slope
from tacit.problems.classification import Classification
from tacit.training.exact.dual.flow import DualFlow
from tacit.training.exact.parameter import ParameterFlow
from tacit.training.path import Path
from tacit.training.record import At, LogSpaced
from tacit.training.stop import LogLoss
from tacit.training.train import train

Flows = type[DualFlow] | type[ParameterFlow]

NEAR = 1e-4  # how much above the smallest a margin may be, relatively, and count as the smallest


def course(
    problem: Classification,
    model: Separable,
    margins: Sequence[float],
    flow: Flows = ParameterFlow,
    per_decade: int = 1,
) -> Path:
    """The path of `model` to the largest of `margins`, with a record at each of them."""
    record = [LogSpaced(per_decade), At(margins=margins)]
    path = train(model, problem, flow(), stop=LogLoss(-max(margins)), record=record)
    if not path.outcome.ok:
        raise RuntimeError(f"{model.describe()}: {path.outcome}")
    return path


def predictors(
    problem: Classification,
    depth: int,
    alpha: float,
    margins: Sequence[float],
    flow: Flows = ParameterFlow,
) -> Array:
    """Predictors at exactly these smoothed margins, one row each."""
    path = course(problem, DiagonalNet(depth, alpha=alpha), margins, flow)
    reached = path.dataset.smoothed_margin.values
    rows = [int(np.abs(reached - g).argmin()) for g in margins]
    return np.asarray(path.dataset.predictor.values[rows])


def off_support(problem: Classification) -> float:
    """z = |X^T nu| of M-F3b's two coordinates off its l1 point, where 1 is that of its support.

    Its first two points are support vectors all along, which keeps w_2 : w_3 fixed, so both grow
    at one rate: (Z^T nu)_2 = (Z^T nu)_3 = z with (Z^T nu)_1 = 1 (13/21 by hand).
    """
    Z = problem.signed_rows[:2]
    nu = np.linalg.solve(np.array([Z[:, 0], Z[:, 1] - Z[:, 2]]), [1.0, 0.0])
    return float(nu @ Z[:, 1])


def angles(
    problem: Classification,
    depth: int,
    alphas: Sequence[float],
    power: float,
    target: Array,
    flow: Flows = ParameterFlow,
    mu: float = 1.0,
) -> Array:
    """Degrees to `target` from the predictors of each alpha at smoothed margin alpha^power/mu."""
    found = [predictors(problem, depth, a, [a**power / mu], flow)[0] for a in alphas]
    return angle(np.array(found), target)


@dataclasses.dataclass(frozen=True, eq=False)
class Stops:
    """Training from two alphas, stopped at alpha^D/mu for each of some mu.

    `exponents` are those in alpha of the smoothed margin from which on no sample that ends off
    the margin was at it: zero where condition 5 holds, the depth where it fails. `predictor`
    holds the directions at the larger alpha. No regularizer enters either of them.
    """

    depth: int
    exponents: Array
    predictor: Array

    @property
    def stable(self) -> Array:
        """Whether condition 5 holds, for each mu."""
        return np.asarray(self.exponents < self.depth / 2)

    @property
    def doubt(self) -> float:
        """How far an exponent lies between the two values it can have, at most."""
        away = np.minimum(self.exponents, self.depth - self.exponents)
        return float(away.max())


def stops(problem: Classification, mus: Sequence[float], depth: int = 2) -> Stops:
    """Condition 5 at each mu, with the trained direction at the larger alpha as the limit."""
    alphas = [scale ** (1 / depth) for scale in (1e4, 1e6)]
    runs = [
        course(
            problem,
            DiagonalNet(depth, alpha=alpha),
            [alpha**depth / mu for mu in mus],
            DualFlow,
            per_decade=10,
        ).dataset
        for alpha in alphas
    ]
    last, goals = runs[-1], [alphas[-1] ** depth / mu for mu in mus]
    rows = [int(np.abs(last.smoothed_margin.values - goal).argmin()) for goal in goals]
    found = [
        [
            max(
                stability(
                    _until(run, alpha**depth / mu),
                    last.margins.values[row],
                    rho=1 + NEAR,
                    rtol=2 * NEAR,
                ).since,
                1.0,
            )
            for run, alpha in zip(runs, alphas, strict=True)
        ]
        for mu, row in zip(mus, rows, strict=True)
    ]
    exponents = [slope(np.array(alphas), np.array(pair)) for pair in found]
    return Stops(depth, np.array(exponents), last.predictor.values[rows])


def _until(run: Any, smoothed_margin: float) -> Any:
    """The records up to this smoothed margin."""
    inside = run.smoothed_margin.values <= (1 + 1e-9) * smoothed_margin
    return run.isel(time=np.flatnonzero(inside))
