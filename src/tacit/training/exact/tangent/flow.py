"""Gradient flow of small networks in steps that the tangent kernel does not limit."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tacit.models.function import FunctionModel
from tacit.models.model import Model
from tacit.precision import double_precision
from tacit.problems.regression import Regression
from tacit.records import Kind, Outcome
from tacit.training import stop as stopping
from tacit.training.exact.flow import Course, Flow, Followed
from tacit.training.exact.follow import ROUNDING
from tacit.training.exact.labelling import dataset
from tacit.training.exact.stiff.run import SADDLE
from tacit.training.exact.tangent.step import Limits, State, compiled, kernel, moving, unreachable
from tacit.training.exact.task import Moment, Task, task
from tacit.training.exact.times import asked_times, times_to_record

WHO = "TangentFlow"
STOPS = (stopping.Interpolated, stopping.Loss, stopping.LogLoss, stopping.Time)


@dataclasses.dataclass(frozen=True, repr=False)
class TangentFlow(Flow):
    """w' = -grad L(w) on the squared loss, by exponential midpoint steps with an error estimate.

    Each step solves r' = -2 K r with the tangent kernel of its middle, an N x N matrix, so the
    eigenvalues of K limit no step; what limits them is how fast K turns. `rtol` is the error of
    one step, relative to the parameters or to what it does to an output, whichever is more. Where
    ReLU units slide along their kinks the steps grow in number as 1/rtol; errors of outputs were
    at most 0.6 rtol on the nets of W's Figure 6, mostly far below.

    Without a goal the flow stops at 1e-9 of the loss of the zero predictor. Every record ends a
    step; record=At(times=[]) is the fastest run. Nets whose functions are equal share what is
    compiled, whatever their starts.

    Parameters
    ----------
    rtol
        The accuracy of one step of the integrator.
    max_steps
        The most steps of the integrator.
    weight_decay
        Must be 0: this flow has none.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.sparse_regression(5, 2, sparsity=1)
    >>> path = tacit.train(tacit.relu_net(2, 5, alpha=0.5), problem, tacit.TangentFlow())
    >>> path.outcome.ok
    True
    """

    tolerances: ClassVar[tuple[float, float]] = (1e-13, 1.0)
    rtol: float = 1e-3
    max_steps: int = 100_000

    def follow(self, model: Any, problem: Any, course: Course) -> Followed:
        stopping.understood(WHO, course.stops, STOPS, "to a tangent flow")
        if course.weight_decay:
            raise ValueError(
                f"{WHO}: has no weight decay, got a rate of {course.weight_decay:g}; use "
                "ParameterFlow"
            )
        run = _Run(self, regression_task(model, problem), course)
        moments, steps, outcome = [run.moment()], [0], run.ended()
        times = times_to_record(run.first, course.per_decade, asked_times(WHO, course))
        for t in itertools.chain(times, [math.inf]):
            if outcome is not None:
                break
            outcome = run.follow(t)
            if run.t > moments[-1].t:
                moments.append(run.moment())
                steps.append(run.steps)
            if course.progress is not None:
                course.progress(run.done(), f"t={run.t:.4g}")
        assert outcome is not None
        recorded = dataset(run.task, 0.0, moments, {"integrator_steps": np.array(steps)})
        return Followed(recorded, outcome, moments[-1].parameters)


class _Run:
    """One run: the state between two records."""

    def __init__(self, flow: TangentFlow, task: Task, course: Course) -> None:
        self.flow, self.task, self.course = flow, task, course
        self.function = function_of(task.model)
        self.X, self.y = task.rows, task.problem.y
        log_unit = task.loss.log_unit(self.y)
        self.unit = math.exp(log_unit)
        fitted = 1e-9 if course.t_max is None else ROUNDING
        self.target = math.exp(course.log_level(WHO, task.model, log_unit, fitted))
        self.t_max = math.inf if course.t_max is None else course.t_max
        with double_precision(), np.errstate(all="ignore"):
            self.state: State = compiled()[0](self.function, self.X, self.y, task.start)
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

    def moment(self) -> Moment:
        import jax

        state = jax.device_get(self.state)
        outputs = state.residual + self.y
        at = kernel(state.tangent.derivative)
        return Moment(float(state.t), np.array(state.parameters), outputs, kernel=at)

    def follow(self, t: float) -> Outcome | None:
        """Goes on to time `t` or to the end; the outcome if it is the end."""
        scale = math.sqrt(self.unit / len(self.y))
        given = min(t, self.t_max), self.target, self.flow.max_steps, self.flow.rtol, scale
        with double_precision():
            advance = compiled()[1]
            self.state = advance(self.function, self.X, self.y, self.state, Limits(*given))
        return self.ended()

    def ended(self) -> Outcome | None:
        place = f"t={self.t:.4g} with loss {self.loss:.3g}"
        if self.loss <= self.target:
            if self.t == 0:
                return Outcome(Kind.SOLVED, "the start already fits the data")
            return Outcome(Kind.SOLVED, f"the target is met at {place} after {self.steps} steps")
        if self._holds(unreachable):
            sentence = f"at rest at {place}: the kernel cannot move what is left"
            return Outcome(Kind.STALLED, sentence if self.t else SADDLE)
        if self.t >= self.t_max:
            if not self.course.goals:
                return Outcome(Kind.SOLVED, f"followed to {place} in {self.steps} steps")
            return Outcome(Kind.BUDGET_SPENT, f"stopped at {place} by its Time; give more")
        if int(self.state.tried) >= self.flow.max_steps:
            sentence = f"stopped at {place} by {self.flow.max_steps} tried steps"
            return Outcome(Kind.BUDGET_SPENT, f"{sentence}; raise max_steps or rtol")
        if not self._holds(moving):
            return Outcome(Kind.STALLED, f"the steps became too short at {place}; raise rtol")
        return None

    def _holds(self, condition: Callable[[State], Any]) -> bool:
        import jax

        return bool(condition(jax.device_get(self.state)))

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
    if isinstance(model, FunctionModel) and model.tree is None:
        try:
            hash(model.function)
        except TypeError:
            return model.predict
        return model.function
    return model.predict
