"""Completion of a low-rank matrix with the nuclear norm, as the figures of N ask about it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from tacit.arguments import Array
from tacit.figures.notsawo_runs import Recovery, SparseRecovery
from tacit.figures.registry import Parameters
from tacit.solvers.nuclear_slow_flow import nuclear_slow_flow
from tacit.solvers.slow_flow import SlowFlow

if TYPE_CHECKING:
    from tacit.models.model import Model
    from tacit.problems.matrices import MatrixProblem
    from tacit.regularizers.penalty import Term

EULER = 1e-3  # of the distance the slow phase has to go


@dataclasses.dataclass(frozen=True)
class LowRankRecovery(Recovery):
    """A matrix, with the nuclear norm; `euler` is the step of the slow phase."""

    problem: MatrixProblem
    norm: str = "nuclear"
    euler: float = EULER

    @property
    def X(self) -> Array:
        return np.asarray(self.problem.design)

    @property
    def penalty(self) -> Term:
        from tacit.regularizers.spectral import Nuclear

        return Nuclear(self.problem.shape)

    def model(self, start: float | Array) -> Model:
        from tacit.models.linear import LinearMatrix

        begin = start if np.ndim(start) == 0 else np.reshape(start, self.problem.shape)
        return LinearMatrix(self.problem.shape, begin)

    def slow(self, start: float) -> SlowFlow:
        begin = self.memorized(start)
        pace = self.euler * self.dual(begin - self.truth)
        return nuclear_slow_flow(self.X, begin.reshape(self.problem.shape), pace)

    def least(self) -> Array:
        from tacit.regularizers.spectral import Nuclear
        from tacit.solvers.interpolate import interpolate

        measurements = self.X.reshape(-1, *self.problem.shape)
        return interpolate(measurements, self.problem.y, Nuclear()).matrix.ravel()

    def sizes(self, points: Array) -> Array:
        matrices = points.reshape(len(points), *self.problem.shape)
        return np.asarray(np.linalg.svd(matrices, compute_uv=False).sum(axis=1))

    def dual(self, point: Array) -> float:
        return float(np.linalg.norm(point.reshape(self.problem.shape), 2))


def low_rank_recovery(parameters: Parameters) -> LowRankRecovery:
    """The completion of a square matrix that the parameters name."""
    from tacit.problems.matrices import low_rank_completion

    names = ("dimension", "rank", "samples", "seed")
    given = {name: parameters[name] for name in names}
    return LowRankRecovery(low_rank_completion(**given, loss="half squares"))


def recovery(parameters: Parameters) -> Recovery:
    """The recovery that the parameters name: of a sparse vector, or with a `rank` of a matrix."""
    if "rank" in parameters:
        return low_rank_recovery(parameters)
    from tacit.problems.recovery import sparse_recovery

    names = ("samples", "dimension", "sparsity", "seed", "snr")
    return SparseRecovery(sparse_recovery(**{name: parameters[name] for name in names}))
