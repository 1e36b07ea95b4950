"""Stochastic subgradient descent with momentum on g + beta h."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.arguments import real
from tacit.flows.flow import Progress
from tacit.flows.penalized_batches import Batches, batches, checked_batch
from tacit.flows.penalized_march import march
from tacit.flows.penalized_path import PenalizedPath, labelled, levels
from tacit.flows.penalized_task import Data, Slope, job, limit, refuse_unstable
from tacit.flows.schedule import schedule
from tacit.flows.subgradient import describe, settle
from tacit.models.model import Model
from tacit.precision import double_precision
from tacit.records import Record
from tacit.regularizers.penalty import Term
from tacit.threads import on_one_blas_thread

WHO = "SGD"


@dataclasses.dataclass(frozen=True)
class MomentumUpdate:
    """The velocity takes in the gradient, and theta moves by the velocity."""

    slope: Slope
    penalty: Term | None
    draws: Batches

    def __call__(self, numbers: Mapping[str, Any], data: Data, k: Any, state: Any) -> Any:
        theta, velocity, draws = state
        pull, draws = self.draws.gradient(self.slope, data, k, theta, draws)
        if self.penalty is not None:
            pull = pull + numbers["beta"] * self.penalty.subgradient(theta)
        velocity = numbers["momentum"] * velocity + pull
        return theta - numbers["step"] * velocity, velocity, draws

    def of_penalty(self, numbers: Mapping[str, Any], data: Data, state: Any) -> dict[str, Any]:
        """Where the next step asks the penalty and what it answers, by name."""
        if self.penalty is None:
            return {}
        return {"subgradient": (state[0], self.penalty.subgradient(state[0]))}


@dataclasses.dataclass(frozen=True, repr=False)
class SGD(Record):
    """velocity <- momentum velocity + G + beta H; theta <- theta - step velocity.

    G is the gradient of g on `batch` samples, drawn from `seed` without repeats within an epoch
    and scaled to be unbiased; None takes all of them. The loss g, the records and `until` are
    those of `Subgradient`. On linear predictors a full-batch step at or above
    2 (1 + momentum)/(sigma_max(X^T X) + beta * curvature of h) is refused, unless check=False;
    mini-batches have no such bound and are not checked.
    """

    step: float
    steps: int
    penalty: Term | None = None
    beta: float = 0.0
    momentum: float = 0.0
    batch: int | None = None
    seed: int = 0
    points_per_decade: int = 20
    record: Sequence[int] | None = None
    until: Mapping[str, float] | None = None
    check: bool = True

    def __post_init__(self) -> None:
        settle(WHO, self)
        momentum = real(WHO, "momentum", self.momentum, rule="a number in [0, 1)")
        if not 0 <= momentum < 1:
            raise ValueError(f"{WHO}: momentum must be in [0, 1), got {momentum}")
        batch, seed = checked_batch(WHO, self.batch, self.seed)
        for name, value in {"momentum": momentum, "batch": batch, "seed": seed}.items():
            object.__setattr__(self, name, value)

    def describe(self) -> dict[str, Any]:
        return describe(WHO, self)

    @on_one_blas_thread
    def run(
        self, model: Model, problem: Any, progress: Progress | None = None, test: Any = None
    ) -> PenalizedPath:
        """Train `model` on a Regression, a matrix problem or a Classification.

        The loss of `test`, samples like those of a Regression or a Classification, is recorded.
        """
        made = job(WHO, model, problem, self.penalty, self.beta, test)
        until = levels(WHO, self.until, problem)
        if self.check and made.linear and self.batch is None:
            curvature = 0.0 if self.penalty is None else self.beta * self.penalty.curvature
            bound = limit(made, curvature, 2 * (1 + self.momentum))
            formula = "2 (1 + momentum)/(sigma_max(X^T X) + beta curvature)"
            refuse_unstable(WHO, self.step, bound, formula)
        draws = batches(WHO, made, self.batch)
        update = MomentumUpdate(made.slope, self.penalty, draws)
        numbers = {"step": self.step, "beta": self.beta, "momentum": self.momentum}
        with double_precision():
            state = (made.start, np.zeros_like(made.start), draws.start(self.seed))
        steps = schedule(self.record, self.steps, self.points_per_decade)
        rows, outcome = march(WHO, made, update, numbers, state, steps, until, progress)
        return labelled(made, self.step, self.describe(), outcome, rows)
