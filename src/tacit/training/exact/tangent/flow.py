"""Gradient flow of small networks in steps that the tangent kernel does not limit."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tacit.models.function import FunctionModel
from tacit.models.model import Model
from tacit.precision import double_precision
from tacit.problems.regression import Regression
from tacit.training.exact.flow import Course, Flow, Followed
from tacit.training.exact.follow import Integrator, follow, log_level, planned
from tacit.training.exact.labelling import dataset
from tacit.training.exact.solver import SHORT, GaveUp
from tacit.training.exact.tangent.step import Limits, State, compiled, kernel, moving, unreachable
from tacit.training.exact.task import Moment, Task, task

WHO = "TangentFlow"


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
        if course.weight_decay:
            raise ValueError(
                f"{WHO}: has no weight decay, got a rate of {course.weight_decay:g}; use "
                "ParameterFlow"
            )
        job = regression_task(model, problem)
        log_unit = job.loss.log_unit(job.start)
        level = log_level(WHO, course, job.model, log_unit, "to a tangent flow", fitted=1e-9)
        flow = _Steps(self, job, math.exp(level), math.exp(log_unit))
        # the logarithm of what the compiled steps compare with, to the bit
        level = math.log(flow.target)
        plan = planned(WHO, self, course, flow.first, flow.first, level)._replace(rests=False)
        moments, outcome = follow(flow, plan, flow.at(0.0))
        steps = {"integrator_steps": np.array([flow.taken[moment.t] for moment in moments])}
        return Followed(dataset(job, 0.0, moments, steps), outcome, moments[-1].state)


class _Steps(Integrator):
    """Compiled steps, as many as lead to the next record."""

    def __init__(self, flow: TangentFlow, task: Task, target: float, scale: float) -> None:
        self.flow, self.function, self.target = flow, function_of(task.model), target
        self.X, self.y = task.rows, task.problem.y
        self.scale = math.sqrt(scale / len(self.y))
        with double_precision(), np.errstate(all="ignore"):
            self.state: State = compiled()[0](self.function, self.X, self.y, task.start)
        loss, top = self._loss(), float(self.state.tangent.values[-1])
        if not (math.isfinite(top) and math.isfinite(loss)):
            raise ValueError(
                f"{WHO}: the outputs or gradients of this start are beyond float64 (loss "
                f"{loss:.3g}, kernel {top:.3g}); take a smaller start"
            )
        self.first, self.stuck = 2 * float(self.state.step), self._holds(unreachable)
        self.taken = {0.0: 0}  # steps at the records

    def advance(self, limit: float) -> None:
        given = limit, self.target, self.flow.max_steps, self.flow.rtol, self.scale
        tried = self.steps
        with double_precision():
            go_on = compiled()[1]
            self.state = go_on(self.function, self.X, self.y, self.state, Limits(*given))
        self.t, self.steps = float(self.state.t), int(self.state.tried)
        self.taken[self.t] = int(self.state.taken)
        if self.t < limit and self._loss() > self.target and self.steps < self.flow.max_steps:
            if self._holds(unreachable):
                raise GaveUp("the kernel cannot move what is left")
            if not self._holds(moving) or self.steps == tried:
                raise GaveUp(SHORT)

    def _loss(self) -> float:
        return float(np.sum(np.asarray(self.state.residual) ** 2))

    def log_loss(self, now: Moment) -> float:
        loss = self._loss()  # moments are those of the last step, for none are interpolated
        return math.log(loss) if loss > 0 else -math.inf

    def _holds(self, condition: Callable[[State], Any]) -> bool:
        import jax

        return bool(condition(jax.device_get(self.state)))

    def at(self, t: float) -> Moment:
        import jax

        state = jax.device_get(self.state)
        outputs = state.residual + self.y
        at = kernel(state.tangent.derivative)
        return Moment(float(state.t), np.array(state.parameters), outputs, kernel=at)


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
