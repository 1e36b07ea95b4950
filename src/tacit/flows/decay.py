"""Weight decay as a wrapper: loss + (rate/2) |parameters|^2 in place of the loss (source L)."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from tacit.arguments import real
from tacit.flows.flow import Flow, Problem, Progress, decayed, within_float64
from tacit.flows.path import Path
from tacit.models.model import Model
from tacit.records import Record
from tacit.threads import on_one_blas_thread

WHO = "WeightDecay"


def decay_rate(who: str, rate: object) -> float:
    """`rate` if it is a finite number >= 0."""
    number = real(who, "rate", rate, rule="a finite number >= 0")
    if number < 0:
        raise ValueError(
            f"{who}: rate must be >= 0, got {number:g}; a negative decay blows the parameters up"
        )
    return number


@dataclasses.dataclass(frozen=True, repr=False)
class WeightDecay(Record, Flow):
    """`flow` with decay: theta' = -grad L(theta) - rate * theta.

    Such training never ends by itself: time stops at the flow's `t_max`. A step of descent is
    theta <- (1 - step * rate) theta - step * grad L(theta). Rate 0 is the flow itself.
    """

    flow: Flow
    rate: float

    def __post_init__(self) -> None:
        if not isinstance(self.flow, Flow):
            raise ValueError(
                f"{WHO}: the first argument must be a flow such as DualFlow(t_max=...), "
                f"got {type(self.flow).__name__}"
            )
        object.__setattr__(self, "rate", decay_rate(WHO, self.rate))

    def describe(self) -> dict[str, Any]:
        return decayed(self.flow, self.rate)

    @on_one_blas_thread
    @within_float64
    def run(
        self, model: Model, problem: Problem, progress: Progress | None = None, test: Any = None
    ) -> Path:
        """The path of the flow; `test` samples for a ParameterFlow or a GradientDescent."""
        held = {} if test is None else {"test": test}
        if held and "test" not in inspect.signature(self.flow.run_decayed).parameters:
            raise ValueError(
                f"{WHO}: {type(self.flow).__name__} records no test samples; wrap ParameterFlow "
                "or GradientDescent"
            )
        if self.rate == 0:
            return self.flow.run(model, problem, progress, **held)
        return self.flow.run_decayed(model, problem, self.rate, progress, **held)
