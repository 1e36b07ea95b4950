"""Subgradient descent on g + beta h with a fixed step, compiled between the recorded steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.arguments import integer, positive
from tacit.flows.flow import Progress
from tacit.flows.penalized_march import march
from tacit.flows.penalized_path import PenalizedPath, labelled, levels
from tacit.flows.penalized_task import (
    Data,
    Job,
    Slope,
    checked_penalty,
    job,
    limit,
    refuse_unstable,
)
from tacit.flows.schedule import asked_steps, points_per_decade, schedule
from tacit.models.model import Model
from tacit.records import Record
from tacit.regularizers.penalty import Term
from tacit.threads import on_one_blas_thread

WHO = "Subgradient"


@dataclasses.dataclass(frozen=True)
class SubgradientUpdate:
    """theta - step (G + beta H)."""

    slope: Slope
    penalty: Term | None

    def __call__(self, numbers: Mapping[str, Any], data: Data, k: Any, state: Any) -> Any:
        (theta,) = state
        pull = self.slope(data, theta)
        if self.penalty is not None:
            pull = pull + numbers["beta"] * self.penalty.subgradient(theta)
        return (theta - numbers["step"] * pull,)

    def of_penalty(self, numbers: Mapping[str, Any], data: Data, state: Any) -> dict[str, Any]:
        """Where the next step asks the penalty and what it answers, by name."""
        if self.penalty is None:
            return {}
        return {"subgradient": (state[0], self.penalty.subgradient(state[0]))}


@dataclasses.dataclass(frozen=True, repr=False)
class Subgradient(Record):
    """a <- a - step (G(a) + beta H(a)), `steps` times, with G = grad g and H a subgradient of h.

    On regression data and matrix problems g is N's (1/2) sum_n r_n^2, not the package's sum of
    squares: N's step is half of GradientDescent's. The penalty is one of the parameters. Records
    are log-spaced, or at the steps in `record`; `until` = {"test_error": 1e-4} ends the run at
    the first recorded step where it (or "loss", "objective", "relative_error") is that small. A
    step at or above 2/(sigma_max(X^T X) + beta * curvature of h) is refused for linear
    predictors, unless check=False.
    """

    step: float
    steps: int
    penalty: Term | None = None
    beta: float = 0.0
    points_per_decade: int = 20
    record: Sequence[int] | None = None
    until: Mapping[str, float] | None = None
    check: bool = True

    def __post_init__(self) -> None:
        settle(WHO, self)

    def describe(self) -> dict[str, Any]:
        return describe(WHO, self)

    @on_one_blas_thread
    def run(self, model: Model, problem: Any, progress: Progress | None = None) -> PenalizedPath:
        """Train `model` on a Regression, a matrix problem or a Classification."""
        made = job(WHO, model, problem, self.penalty, self.beta)
        until = levels(WHO, self.until, problem)
        if self.check and made.linear:
            refuse_unstable(WHO, self.step, *stable_step(made))
        update = SubgradientUpdate(made.slope, self.penalty)
        numbers = {"step": self.step, "beta": self.beta}
        steps = schedule(self.record, self.steps, self.points_per_decade)
        rows, outcome = march(WHO, made, update, numbers, (made.start,), steps, until, progress)
        return labelled(made, self.step, self.describe(), outcome, rows)


def stable_step(job: Job) -> tuple[float, str]:
    """The bound of a step on a quadratic, and how it reads."""
    curvature = 0.0 if job.penalty is None else job.beta * job.penalty.curvature
    bend = f"{job.penalty.curvature:g} beta" if job.penalty is not None else ""
    formula = f"2/(sigma_max(X^T X) + {bend})" if curvature else "2/sigma_max(X^T X)"
    return limit(job, curvature), formula


def settle(who: str, method: Any) -> None:
    """Checks the settings that all methods share, and stores them as plain numbers."""
    steps = integer(who, "steps", method.steps, least=1)
    fields: dict[str, Any] = {
        "step": positive(who, "step", method.step),
        "steps": steps,
        "beta": checked_penalty(who, method.penalty, method.beta),
        "record": asked_steps(who, method.record, steps),
        "until": levels(who, method.until),
    }
    points_per_decade(who, method.points_per_decade)
    for name, value in fields.items():
        object.__setattr__(method, name, value)


def describe(who: str, method: Any) -> dict[str, Any]:
    """The settings of a method as plain JSON values."""
    named = {field.name: getattr(method, field.name) for field in dataclasses.fields(method)}
    named["penalty"] = None if method.penalty is None else method.penalty.describe()
    return {"flow": who, **named}
