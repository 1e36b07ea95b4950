"""Trained predictors of diagonal nets at given smoothed margins, for the limit theorems of M."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.arguments import Array
from tacit.flows.dual import DualFlow
from tacit.flows.parameter import ParameterFlow
from tacit.flows.path import Path
from tacit.flows.stopping import LogLoss
from tacit.models.diagonal import DiagonalNet
from tacit.models.model import Separable
from tacit.probes.directions import angle
from tacit.problems.classification import Classification

Flows = type[DualFlow] | type[ParameterFlow]


def course(
    problem: Classification,
    model: Separable,
    margins: Sequence[float],
    flow: Flows = ParameterFlow,
    points_per_decade: int = 1,
) -> Path:
    """The path of `model` to the largest of `margins`, with a record at each of them."""
    settings = {"until": LogLoss(-max(margins)), "record": list(margins)}
    path = flow(**settings, points_per_decade=points_per_decade).run(model, problem)  # type: ignore[arg-type]
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
