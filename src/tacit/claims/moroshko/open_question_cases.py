"""Data sets for M-open: the Q path, the ratchet and trained flows of each, at the same scales."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.measures.directions import angle
from tacit.models.diagonal import DiagonalNet
from tacit.problems.classification import Classification, separable_points, three_points
from tacit.regularizers.norms import L1
from tacit.regularizers.q import Q
from tacit.solvers.margins.path import MarginPath, max_margin_path
from tacit.solvers.max_margin import max_margin
from tacit.solvers.ratchet.ratchet import RatchetPath, ratchet_path
from tacit.training.exact.dual.flow import DualFlow
from tacit.training.exact.parameter import ParameterFlow
from tacit.training.record import At
from tacit.training.stop import Scale
from tacit.training.train import train

MUS = np.geomspace(10, 1e-3, 33)
HUGE = 1e12  # alpha^D: alpha = 1e6 at depth 2, 1e4 at depth 3
ROUNDING = 1e-9  # of the largest weight

Flows = type[DualFlow] | type[ParameterFlow]


@dataclasses.dataclass(frozen=True)
class Case:
    """One data set at one depth; all paths are lists of predictors at MUS."""

    name: str
    problem: Classification
    depth: int
    runs: dict[Any, Array] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def q(self) -> MarginPath:
        return max_margin_path(self.problem.X, self.problem.y, self.depth, mus=MUS)

    @cached_property
    def ratchet(self) -> RatchetPath:
        return self.ratchet_at(self.depth)

    def ratchet_at(self, depth: int) -> RatchetPath:
        return ratchet_path(self.problem.X, self.problem.y, depth, mus=MUS)

    @cached_property
    def gap(self) -> Array:
        """Degrees between the ratchet and the Q path."""
        return angle(self.ratchet.beta, self.q.beta)

    @property
    def falls(self) -> bool:
        """Whether some weight of the Q path falls as mu does."""
        return steepest_fall(self.q.dual) < -ROUNDING

    @property
    def changes(self) -> bool:
        """Whether the support vectors of the Q path change on the way."""
        return any(MUS[-1] < change.mu < MUS[0] for change in self.q.changes)

    def trained(self, alpha: float, flow: Flows = DualFlow) -> Array:
        """Predictors of the flow from alpha, at the smoothed margins alpha^D/mu."""
        if (alpha, flow) not in self.runs:
            self.runs[alpha, flow] = self.train(alpha, flow)
        return self.runs[alpha, flow]

    def train(self, alpha: float, flow: Flows) -> Array:
        clock = alpha**self.depth / MUS
        net, record = DiagonalNet(self.depth, alpha=alpha), At(margins=clock)
        path = train(net, self.problem, flow(rtol=1e-8), stop=Scale(MUS[-1]), record=record)
        reached = path.dataset.smoothed_margin.values
        rows = np.abs(reached[:, None] / clock - 1).argmin(axis=0)
        if not path.outcome.ok or np.abs(reached[rows] / clock - 1).max() > 1e-9:
            raise RuntimeError(f"{self.name}, alpha = {alpha:g}: {path.outcome}")
        return np.asarray(path.dataset.predictor.values[rows])

    @cached_property
    def huge(self) -> Array:
        """The flow from an alpha with alpha^D = HUGE."""
        return self.trained(HUGE ** (1 / self.depth))

    @cached_property
    def off(self) -> float:
        """The largest angle between the flow from huge alpha and the Q path."""
        return float(angle(self.huge, self.q.beta).max())

    def weights(self, alpha: float, predictors: Array) -> tuple[Array, float]:
        """R with grad Q(predictor) = Z^T R, and the relative misfit of that equation."""
        s, Z = Q(self.depth, alpha=alpha).dual_of(predictors), self.problem.signed_rows
        R: Array = np.linalg.lstsq(Z.T, s.T)[0].T.astype(np.float64)
        return R, float(np.abs(R @ Z - s).max() / np.abs(s).max())


def steepest_fall(weights: Array) -> float:
    """The lowest increment of any weight from one row to the next, over the largest weight."""
    return float(np.diff(weights, axis=0).min() / np.abs(weights).max())


def panel(name: str, depth: int) -> Case:
    return Case(name, three_points(name), depth)


def drawn(seed: int) -> Case:
    """Three or four Gaussian points in three to five dimensions; every third set at depth 3."""
    points = separable_points(3 + seed % 2, 3 + seed // 2 % 3, margin=0.3, seed=seed)
    return Case(f"seed {seed}", points, 3 if seed % 3 == 2 else 2)


@dataclasses.dataclass(frozen=True)
class End:
    """Where a ratchet goes as mu -> 0.

    `excess` is the l1 norm over the least possible, minus one, at mu = 1e-8 and 1e-16; `defect`
    says how far the last point is from stationary for the l_{2/D} margin.
    """

    depth: int
    excess: Array
    defect: float


def end(case: Case) -> End:
    X, y = case.problem.X, case.problem.y
    beta = ratchet_path(X, y, case.depth, mus=[1e-8, 1e-16]).beta
    least = np.abs(max_margin(X, y, L1()).beta).sum()
    excess = np.maximum(np.abs(beta).sum(axis=1) / least - 1, 0.0)
    return End(case.depth, excess, stationarity(case, beta[1]))


def stationarity(case: Case, beta: Array) -> float:
    """How far the gradient of the l_{2/D} norm is from the cone of the rows at the margin."""
    from scipy.optimize import nnls

    Z = case.problem.signed_rows
    margins, large = Z @ beta, np.abs(beta) > 1e-4 * np.abs(beta).max()
    gradient = np.sign(beta[large]) * np.abs(beta[large]) ** (2 / case.depth - 1)
    rows = Z[margins < (1 + 1e-4) * margins.min()][:, large]
    return float(nnls(rows.T, gradient)[1] / np.linalg.norm(gradient))
