"""Proximal gradient descent on g + beta h, plain (ISTA) and accelerated (FISTA)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.flows.flow import Progress
from tacit.flows.penalized_march import march
from tacit.flows.penalized_path import PenalizedPath, labelled, levels
from tacit.flows.penalized_task import Data, Slope, job, limit, refuse_unstable
from tacit.flows.schedule import schedule
from tacit.flows.subgradient import describe, settle
from tacit.models.model import Model
from tacit.records import Record
from tacit.regularizers.penalty import Term
from tacit.threads import on_one_blas_thread

WHO = "Proximal"


@dataclasses.dataclass(frozen=True)
class ProximalUpdate:
    """prox(theta - step G, step beta)."""

    slope: Slope
    penalty: Term

    def __call__(self, numbers: Mapping[str, Any], data: Data, k: Any, state: Any) -> Any:
        (theta,) = state
        return (self.nearest(numbers, data, theta),)

    def nearest(self, numbers: Mapping[str, Any], data: Data, theta: Any) -> Any:
        """The proximal map after a gradient step from theta."""
        moved = theta - numbers["step"] * self.slope(data, theta)
        return self.penalty.prox(moved, numbers["step"] * numbers["beta"])

    def of_penalty(self, numbers: Mapping[str, Any], data: Data, state: Any) -> dict[str, Any]:
        """Where the next step asks the penalty and what it answers, by name."""
        moved = state[0] - numbers["step"] * self.slope(data, state[0])
        return {"proximal map": (moved, self.nearest(numbers, data, state[0]))}


@dataclasses.dataclass(frozen=True)
class AcceleratedUpdate:
    """The same from a point ahead of theta, with Nesterov's weights (Beck and Teboulle 2009)."""

    plain: ProximalUpdate

    def __call__(self, numbers: Mapping[str, Any], data: Data, k: Any, state: Any) -> Any:
        import jax.numpy as jnp

        theta, ahead, weight = state
        moved = self.plain.nearest(numbers, data, ahead)
        grown = (1 + jnp.sqrt(1 + 4 * weight**2)) / 2
        return moved, moved + (weight - 1) / grown * (moved - theta), grown

    def of_penalty(self, numbers: Mapping[str, Any], data: Data, state: Any) -> dict[str, Any]:
        return self.plain.of_penalty(numbers, data, (state[1],))


@dataclasses.dataclass(frozen=True, repr=False)
class Proximal(Record):
    """a <- prox_{step beta h}(a - step G(a)), `steps` times; `accelerated` is FISTA.

    FISTA takes that step from z, starting at z = a and weight 1: a' = prox(z - step G(z)),
    weight' = (1 + sqrt(1 + 4 weight^2))/2, z' = a' + (weight - 1)/weight' (a' - a). The loss g,
    the records and `until` are those of `Subgradient`. On linear predictors the step must be
    below 2/sigma_max(X^T X), accelerated at most 1/sigma_max(X^T X), unless check=False.
    """

    step: float
    steps: int
    penalty: Term
    beta: float
    accelerated: bool = False
    points_per_decade: int = 20
    record: Sequence[int] | None = None
    until: Mapping[str, float] | None = None
    check: bool = True

    def __post_init__(self) -> None:
        settle(WHO, self)
        if self.penalty is None or not self.penalty.has_prox:
            name = None if self.penalty is None else type(self.penalty).__name__
            raise ValueError(
                f"{WHO}: the penalty needs a proximal map, got {name} without one; give "
                "Custom(..., prox=), or use Subgradient"
            )

    def describe(self) -> dict[str, Any]:
        return describe(WHO, self)

    @on_one_blas_thread
    def run(self, model: Model, problem: Any, progress: Progress | None = None) -> PenalizedPath:
        """Train `model` on a Regression, a matrix problem or a Classification."""
        made = job(WHO, model, problem, self.penalty, self.beta)
        until = levels(WHO, self.until, problem)
        if self.check and made.linear:
            top = 1 if self.accelerated else 2
            formula, bound = f"{top}/sigma_max(X^T X)", limit(made, 0.0, top)
            refuse_unstable(WHO, self.step, bound, formula, reach=self.accelerated)
        plain = ProximalUpdate(made.slope, self.penalty)
        update = AcceleratedUpdate(plain) if self.accelerated else plain
        state = (made.start, made.start, np.float64(1.0)) if self.accelerated else (made.start,)
        numbers = {"step": self.step, "beta": self.beta}
        steps = schedule(self.record, self.steps, self.points_per_decade)
        rows, outcome = march(WHO, made, update, numbers, state, steps, until, progress)
        return labelled(made, self.step, self.describe(), outcome, rows)
