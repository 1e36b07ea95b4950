"""Recovery by subgradient descent, as the figures of source N run and time it."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array

if TYPE_CHECKING:
    import xarray

    from tacit.models.model import Model
    from tacit.problems.regression import Regression
    from tacit.regularizers.penalty import Term
    from tacit.solvers.slow_flow import SlowFlow


class Recovery(abc.ABC):
    """A problem and the norm that recovers it: all that the l1 and nuclear figures differ in.

    Points are flat, also those that stand for a matrix. `norm` is the penalty's name.
    """

    norm: str
    problem: Any

    @property
    @abc.abstractmethod
    def X(self) -> Array:
        """One row per sample."""

    @property
    @abc.abstractmethod
    def penalty(self) -> Term: ...

    @abc.abstractmethod
    def model(self, start: float | Array) -> Model:
        """The linear predictor that starts here."""

    @abc.abstractmethod
    def slow(self, start: float) -> SlowFlow:
        """The path after memorization, in tau = step beta steps."""

    @abc.abstractmethod
    def least(self) -> Array:
        """The interpolator of least norm."""

    @abc.abstractmethod
    def sizes(self, points: Array) -> Array:
        """The norm of every row."""

    @abc.abstractmethod
    def dual(self, point: Array) -> float:
        """The dual norm, the source's numerator of t2 - t1."""

    @property
    def truth(self) -> Array:
        """The truth, which every generated problem has."""
        assert self.problem.truth is not None
        return np.asarray(self.problem.truth).ravel()

    def memorized(self, start: float) -> Array:
        """The least squares point nearest to `start` per entry."""
        from tacit.solvers.delay import least_squares_limit

        # the point does not depend on the step, which only has to be stable
        safe = 1 / float(np.linalg.norm(self.X, 2)) ** 2
        begin = np.full(self.X.shape[1], start)
        return least_squares_limit(self.X, self.problem.y, safe, begin).point

    def run(
        self, step: float, beta: float, start: float, record: Iterable[float]
    ) -> xarray.Dataset:
        """The dataset of N's descent with the penalty, at step 0 and the steps in `record`."""
        from tacit.records import NumericalError
        from tacit.training.descent.methods import Subgradient
        from tacit.training.record import At
        from tacit.training.stop import Steps
        from tacit.training.train import train

        steps = sorted({round(k) for k in record})
        path = train(
            self.model(start),
            self.problem,
            Subgradient(step),
            penalty=beta * self.penalty,
            stop=Steps(steps[-1]),
            record=At(steps),
        )
        if not path.outcome.ok:
            raise NumericalError(f"descent with step {step:g} and beta {beta:g}", path.outcome)
        found: xarray.Dataset = path.dataset.drop_attrs(deep=False).rename(time="record")
        # over all entries, also of a matrix, whose own test error is over the hidden ones
        size = float(np.linalg.norm(self.truth))
        return found.assign(test_error=(size * found.relative_error) ** 2)


@dataclasses.dataclass(frozen=True)
class SparseRecovery(Recovery):
    """A vector, with the l1 norm."""

    problem: Regression
    norm: str = "l1"

    @property
    def X(self) -> Array:
        return self.problem.X

    @property
    def penalty(self) -> Term:
        from tacit.regularizers.norms import L1

        return L1()

    def model(self, start: float | Array) -> Model:
        from tacit.models.linear import LinearPredictor

        return LinearPredictor(start)

    def slow(self, start: float) -> SlowFlow:
        from tacit.solvers.slow_flow import slow_flow

        return slow_flow(self.X, self.memorized(start))

    def least(self) -> Array:
        from tacit.regularizers.norms import L1
        from tacit.solvers.interpolate import interpolate

        return interpolate(self.X, self.problem.y, L1()).beta

    def sizes(self, points: Array) -> Array:
        return np.asarray(np.abs(points).sum(axis=1))

    def dual(self, point: Array) -> float:
        return float(np.abs(point).max())


def log_steps(last: float, per_decade: int) -> Array:
    """About `per_decade` whole steps a decade from 1 to `last`."""
    count = round(per_decade * math.log10(last)) + 1
    return np.unique(np.round(np.logspace(0, math.log10(last), count)))


def crossing(steps: Array, values: Array, level: float) -> float:
    """The step at which `values` first come down to the level, linear in log(values); else nan."""
    below = np.flatnonzero(values <= level)
    if not len(below):
        return math.nan
    k = int(below[0])
    if k == 0:
        return float(steps[0])
    before, after = np.log(values[k - 1 : k + 1])
    share = (before - math.log(level)) / (before - after)
    return float(steps[k - 1] + share * (steps[k] - steps[k - 1]))


def about(text: str, units: str = "1") -> dict[str, str]:
    """What a variable says of itself."""
    return {"units": units, "long_name": text}


def count(steps: Any) -> str:
    """A number of steps as the figures print it."""
    return f"{float(steps):,.0f}".replace(",", " ")
