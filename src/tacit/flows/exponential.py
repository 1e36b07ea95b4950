"""Gradient flow of small networks in steps that the tangent kernel does not limit."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tacit.arguments import Array, integer, positive
from tacit.flows.exponential_step import Limits, State, compiled, moving, unreachable
from tacit.flows.flow import Flow, Problem, Progress, within_float64
from tacit.flows.path import labelled
from tacit.flows.schedule import points_per_decade
from tacit.models.function import FunctionModel
from tacit.models.model import Model
from tacit.precision import double_precision
from tacit.problems.regression import Regression
from tacit.records import Kind, Outcome, Record
from tacit.threads import on_one_blas_thread
from tacit.training.exact.stiff.run import SADDLE
from tacit.training.exact.task import Moment, Task, task

WHO = "TangentFlow"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class End(Record):
    """Where a flow ended: its time, loss, parameters and predictions, and the steps it took."""

    outcome: Outcome
    t: float
    loss: float
    parameters: Array
    predictions: Array
    steps: int


@dataclasses.dataclass(frozen=True, repr=False)
class TangentFlow(Record, Flow):
    """w' = -grad L(w) on the squared loss, by exponential midpoint steps with an error estimate.

    Each step solves r' = -2 K r with the tangent kernel of its middle, an N x N matrix, so the
    eigenvalues of K limit no step; what limits them is how fast K turns. `rtol` is the error of
    one step, relative to the parameters or to what it does to an output, whichever is more. Where
    ReLU units slide along their kinks the steps grow in number as 1/rtol; errors of outputs were
    at most 0.6 rtol on the nets of W-F6, mostly far below.

    `loss` is relative to the loss of the zero predictor, and time ends at `t_max` where that is
    given. Records are log-spaced in time and at the times in `record`. Nets whose functions are
    equal share what is compiled, whatever their starts; `end` is a run without records.
    """

    loss: float = 1e-9
    rtol: float = 1e-3
    t_max: float | None = None
    points_per_decade: int = 10
    max_steps: int = 100_000
    record: Sequence[float] | None = None

    def __post_init__(self) -> None:
        for name in ("loss", "rtol"):
            object.__setattr__(self, name, positive(WHO, name, getattr(self, name)))
        if self.t_max is not None:
            object.__setattr__(self, "t_max", positive(WHO, "t_max", self.t_max))
        object.__setattr__(self, "max_steps", integer(WHO, "max_steps", self.max_steps, least=1))
        density = points_per_decade(WHO, self.points_per_decade)
        object.__setattr__(self, "points_per_decade", density)
        if self.record is not None:
            record = tuple(sorted(positive(WHO, "record", t) for t in self.record))
            object.__setattr__(self, "record", record)

    def describe(self) -> dict[str, Any]:
        return {"flow": WHO, **dataclasses.asdict(self)}

    @on_one_blas_thread
    @within_float64
    def run(self, model: Model, problem: Problem, progress: Progress | None = None) -> Any:
        """A TangentPath, of a separable model a Path."""
        march = _March(self, model, problem)
        moments, outcome = [march.moment()], march.ended()
        for t in self._times(march.first):
            if outcome is not None:
                break
            outcome = march.follow(t)
            if march.t > moments[-1].t:
                moments.append(march.moment())
            if progress is not None:
                progress(march.done(), f"t={march.t:.4g}")
        assert outcome is not None
        return labelled(march.task, 0.0, self.describe(), outcome, moments)

    @within_float64
    def end(self, model: Model, problem: Problem) -> End:
        """Where the flow ends, without records and without whatever a path derives from them."""
        march = _March(self, model, problem)
        outcome = march.ended() or march.follow(math.inf)
        assert outcome is not None
        last = march.moment()
        return End(outcome, last.t, march.loss, last.parameters, last.predictions, march.steps)

    def _times(self, first: float) -> Iterator[float]:
        spaced = (first * 10 ** (k / self.points_per_decade) for k in itertools.count())
        return heapq.merge(spaced, self.record or ())


class _March:
    """One run: the state between two records."""

    def __init__(self, flow: TangentFlow, model: Model, problem: Problem) -> None:
        self.flow, self.task = flow, regression_task(model, problem)
        self.function = function_of(self.task.model)
        self.X, self.y = self.task.rows, self.task.problem.y
        self.unit = math.exp(self.task.loss.log_unit(self.y))
        with double_precision(), np.errstate(all="ignore"):
            self.state: State = compiled()[0](self.function, self.X, self.y, self.task.start)
        self.begin_loss = self.loss
        values = float(self.state.tangent.values[-1]), self.begin_loss, float(self.state.step)
        if not (math.isfinite(values[0]) and math.isfinite(values[1])):
            raise ValueError(
                f"{WHO}: the outputs or gradients of this start are beyond float64 (loss "
                f"{values[1]:.3g}, kernel {values[0]:.3g}); take a smaller start"
            )
        self.first = 2 * values[2]

    @property
    def t(self) -> float:
        return float(self.state.t)

    @property
    def loss(self) -> float:
        return float(np.sum(np.asarray(self.state.residual) ** 2))

    @property
    def steps(self) -> int:
        return int(self.state.taken)

    @property
    def target(self) -> float:
        return self.flow.loss * self.unit

    def moment(self) -> Moment:
        parameters = np.array(self.state.parameters)
        return Moment(self.t, parameters, np.asarray(self.state.residual) + self.y)

    def follow(self, t: float) -> Outcome | None:
        """Go on to time `t` or to the end; the outcome if it is the end."""
        t_max = math.inf if self.flow.t_max is None else self.flow.t_max
        scale = math.sqrt(self.unit / len(self.y))
        limits = Limits(min(t, t_max), self.target, self.flow.max_steps, self.flow.rtol, scale)
        with double_precision():
            advance = compiled()[1]
            self.state = advance(self.function, self.X, self.y, self.state, limits)
        return self.ended()

    def ended(self) -> Outcome | None:
        place = f"t={self.t:.4g} with loss {self.loss:.3g}"
        if self.loss <= self.target:
            if self.t == 0:
                return Outcome(Kind.SOLVED, "the start already fits the data")
            return Outcome(Kind.SOLVED, f"the target is met at {place} after {self.steps} steps")
        if self._asked(unreachable):
            sentence = f"at rest at {place}: the kernel cannot move what is left"
            return Outcome(Kind.STALLED, sentence if self.t else SADDLE)
        if self.flow.t_max is not None and self.t >= self.flow.t_max:
            return Outcome(Kind.BUDGET_SPENT, f"stopped at {place} by t_max; raise it")
        if int(self.state.tried) >= self.flow.max_steps:
            sentence = f"stopped at {place} by {self.flow.max_steps} tried steps"
            return Outcome(Kind.BUDGET_SPENT, f"{sentence}; raise max_steps or rtol")
        if not self._asked(moving):
            return Outcome(Kind.STALLED, f"the steps became too short at {place}; raise rtol")
        return None

    def _asked(self, question: Callable[[State], Any]) -> bool:
        import jax

        return bool(question(jax.device_get(self.state)))

    def done(self) -> float:
        """The share of the way to the target, in logarithms of the loss."""
        span = math.log(self.begin_loss / self.target)
        return min(max(math.log(self.begin_loss / max(self.loss, self.target)) / span, 0.0), 1.0)


def regression_task(model: object, problem: object) -> Task:
    """The checked pair of `model` and `problem`."""
    if not isinstance(problem, Regression):
        raise ValueError(
            f"{WHO}: the problem must be a Regression, for the kernel acts exactly under the "
            f"squared loss only, got {type(problem).__name__}; use ParameterFlow"
        )
    return task(WHO, model, problem)


def function_of(model: Model) -> Callable[[Any, Any], Any]:
    """f(parameters, X), the same object for models that share it: what is compiled goes by it."""
    if isinstance(model, FunctionModel):
        try:
            hash(model.function)
        except TypeError:
            return model.predict
        return model.function
    return model.predict
