"""Steps of gradient flow on the squared loss in which the tangent kernel acts exactly.

How it works. With the kernel K = J J^T held over a step, the residual is r(s) = exp(-2 K s) r and
the parameters move by -J^T times the integral of 2 r(s), through the eigenvectors of the small K.
No step is too long for the fast modes of K, and a model that is linear in its parameters is solved
in one step of any length; in the kernel regime (docs/theory section 8) a run takes few steps.
What limits a step is how fast K turns. The exponential midpoint rule, with K of the middle of the
step, is of second order; the trapezoidal rule is too, and their difference is the error estimate.
The kernel at the end is that of the next step's beginning, so a step costs two kernels. Descent
needs steps below 1/|K| throughout.

All steps between two records run in one compiled loop, and what is compiled depends on the function
and the shapes alone: nets that differ in their start share it.

Pitfalls. Two rules that look at the same points would not notice a ReLU that switches between them;
these two look at both ends and the middle. Where units slide along their kinks the steps grow in
number like 1/rtol. An error of the parameters is measured by
itself and by what it does to an output, because at a large start outputs change by as much as the
targets while the parameters hardly move. Eigenvalues of K below rounding are zero: a residual in
their directions cannot fall, and the run ends.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from penchant.door import Invalid, door_as
from penchant.lazy import jax, jnp
from penchant.models.function import FunctionModel
from penchant.models.model import Model
from penchant.precision import double_precision
from penchant.problems.regression import Regression
from penchant.training.exact.flow import Flow, Followed, RunSettings
from penchant.training.exact.follow import Integrator, follow, log_level, planned
from penchant.training.exact.solver import SHORT, GaveUp
from penchant.training.samples import SampleTask
from penchant.training.task import Moment

SHRINK, GROW, SAFETY = 0.1, 4.0, 0.9


class Tangent(NamedTuple):
    """J at one point, and the eigenvalues and eigenvectors of J J^T; rounding counts as zero.

    J is a matrix, or a list of pairs (a, b) where the function has `factors`, as ReluFunction does:
    its row n is the outer products of b_n and a_n. J itself is then never stored.
    """

    derivative: Any
    values: Any
    vectors: Any


class TangentState(NamedTuple):
    """Where the flow is, the step it tries next, and how many were tried and taken."""

    t: Any
    parameters: Any
    step: Any
    residual: Any
    tangent: Tangent
    tried: Any
    taken: Any


class RunLimits(NamedTuple):
    """Limits of a run: a time, a loss, a number of tries; and `scale`, the size of the targets."""

    t: Any
    loss: Any
    tries: Any
    rtol: Any
    scale: Any


def tangent(function: Any, parameters: Any, X: Any) -> Tangent:
    if hasattr(function, "factors"):
        derivative = function.factors(parameters, X)
    else:
        derivative = jax.jacrev(lambda weights: function(weights, X))(parameters)
    values, vectors = jnp.linalg.eigh(kernel(derivative))
    floor = len(values) * jnp.finfo(values.dtype).eps * values[-1]
    return Tangent(derivative, jnp.where(values > floor, values, 0.0), vectors)


def kernel(derivative: Any) -> Any:
    """J J^T; of outer products it is the product, entry by entry, of their kernels."""
    if isinstance(derivative, list):
        pairs = ((part @ part.swapaxes(1, 2) for part in pair) for pair in derivative)
        return sum((a * b).sum(axis=0) for a, b in pairs)
    return derivative @ derivative.T


def pull(derivative: Any, weights: Any) -> Any:
    if isinstance(derivative, list):
        parts = [(b.swapaxes(1, 2) * weights) @ a for a, b in derivative]
        return jnp.concatenate([part.reshape(len(part), -1) for part in parts], axis=1).ravel()
    return weights @ derivative


def move(at: Tangent, residual: Any, step: Any) -> Any:
    """-J^T (integral of 2 exp(-2 K s) over the step) r: the change of the parameters."""
    seen = at.values > 0  # directions in the null space of K do not move
    integral = -jnp.expm1(-2 * at.values * step) / jnp.where(seen, at.values, 1.0)
    return -pull(at.derivative, at.vectors @ (integral * (at.vectors.T @ residual)))


def trial(function: Any, X: Any, state: TangentState) -> tuple[Any, Tangent, Any]:
    """(parameters, tangent there, error) after one exponential midpoint step.

    The midpoint rule and the trapezoidal rule, both of second order, are compared. Between them
    they look at both ends and the middle, so that no kink of a ReLU unit is crossed unseen.
    """
    here, residual, step = state.tangent, state.residual, state.step

    def stage(at: Tangent, length: Any) -> tuple[Tangent, Any]:
        change = move(at, residual, length)
        return tangent(function, state.parameters + change, X), change

    # a loop of two rounds: what they do is compiled once
    there, changes = jax.lax.scan(stage, here, jnp.stack([step / 2, step]))
    trapezoid = (move(here, residual, step) + move(there, residual, step)) / 2
    return state.parameters + changes[1], there, changes[1] - trapezoid


def size(state: TangentState, error: Any, scale: Any) -> Any:
    """An error of the parameters, relative to them or by what it can do to an output.

    At a small start the first is the larger one, at a large start the second: there outputs change
    by as much as the targets while the parameters hardly move.
    """
    samples = len(state.residual)
    gradient = jnp.sqrt(jnp.sum(state.tangent.values) / samples)  # root mean square
    target = jnp.maximum(scale, jnp.sqrt(jnp.mean(state.residual**2)))
    share = jnp.maximum(1 / jnp.linalg.norm(state.parameters), gradient / target)
    return jnp.linalg.norm(error) * share


def advanced(function: Any, X: Any, y: Any, state: TangentState, limits: RunLimits) -> TangentState:
    """The state after one try, which counts only if its error is below the tolerance."""
    left = limits.t - state.t
    cut = state.step >= left
    now = state._replace(step=jnp.minimum(state.step, left))
    ended, there, error = trial(function, X, now)
    excess = size(state, error, limits.scale) / limits.rtol
    taken = excess <= 1
    factor = jnp.clip(SAFETY * excess ** (-1 / 3), SHRINK, GROW)  # local errors are of order three
    step = now.step * jnp.where(jnp.isnan(excess), SHRINK, factor)
    step = jnp.where(taken & cut, jnp.maximum(step, state.step), step)
    t, residual = jnp.where(cut, limits.t, state.t + now.step), function(ended, X) - y
    after = TangentState(t, ended, step, residual, there, state.tried, state.taken)
    chosen = jax.tree.map(functools.partial(jnp.where, taken), after, state)
    return chosen._replace(step=step, tried=state.tried + 1, taken=state.taken + taken)


def unreachable(state: TangentState) -> Any:
    """True if the kernel cannot reduce what is left of the residual."""
    modes = (state.tangent.vectors.T @ state.residual) ** 2
    return modes @ (state.tangent.values > 0) <= 1e-12 * modes.sum()


@functools.cache
def compiled() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(begin, advance), each compiled once per function and shape, whatever start and data."""

    @functools.partial(jax.jit, static_argnums=0)
    def begin(function: Any, X: Any, y: Any, start: Any) -> TangentState:
        residual = one_number_per_row(function(start, X), X) - y
        here = tangent(function, start, X)
        speed = 2 * jnp.linalg.norm(pull(here.derivative, residual))
        # a small start leaves at the speed of its curvature, long before its kernel matters
        fastest = jnp.maximum(2 * here.values[-1], speed / jnp.linalg.norm(start))
        zero = jnp.zeros((), residual.dtype)
        return TangentState(zero, start, 0.01 / fastest, residual, here, jnp.int64(0), jnp.int64(0))

    @functools.partial(jax.jit, static_argnums=0)
    def advance(
        function: Any, X: Any, y: Any, state: TangentState, limits: RunLimits
    ) -> TangentState:
        def go_on(state: TangentState) -> Any:
            busy = (state.t < limits.t) & (jnp.sum(state.residual**2) > limits.loss)
            return busy & (state.tried < limits.tries) & moving(state) & ~unreachable(state)

        step = functools.partial(advanced, function, X, y, limits=limits)
        return jax.lax.while_loop(go_on, step, state)

    return begin, advance


def moving(state: TangentState) -> Any:
    return state.step > 1e-15 * state.t


def one_number_per_row(outputs: Any, X: Any) -> Any:
    """The outputs, if there is one per row; checked while JAX traces them."""
    if getattr(outputs, "shape", None) != (len(X),):
        raise ValueError(
            "TangentFlow: the model must return one number per row of X, got shape "
            f"{getattr(outputs, 'shape', type(outputs).__name__)} for {len(X)} rows"
        )
    return outputs


WHO = "TangentFlow"


@dataclasses.dataclass(frozen=True, repr=False)
class TangentFlow(Flow):
    """w' = -grad L(w) on the squared loss, by exponential midpoint steps with an error estimate.

    Each step solves r' = -2 K r with the tangent kernel of its middle, an N x N matrix, so the
    eigenvalues of K do not limit the steps; how fast K turns limits them. `rtol` is the error of
    one step, relative to the parameters or to what it does to an output, whichever is more. Where
    ReLU units slide along their kinks the steps grow in number as 1/rtol; errors of outputs were
    at most 0.6 rtol on the nets of Woodworth et al. 2020, figure 6, mostly far below.

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
    certify
        True repeats the run at another tolerance and gives the path an `error`; see ParameterFlow.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(5, 2, sparsity=1)
    >>> net = penchant.models.relu_net(2, 5, alpha=0.5)
    >>> path = penchant.train(net, problem, penchant.methods.TangentFlow())
    >>> path.outcome.ok
    True
    """

    interpolates: ClassVar[bool] = False
    tolerances: ClassVar[tuple[float, float]] = (1e-13, 1.0)
    rtol: float = 1e-3
    max_steps: int = 100_000

    @door_as(WHO)
    def follow(self, model: Any, problem: Any, settings: RunSettings) -> Followed:
        if settings.weight_decay:
            raise Invalid(
                f"has no weight decay, got a rate of {settings.weight_decay:g}; use ParameterFlow"
            )
        if not isinstance(problem, Regression):
            raise Invalid(
                f"the problem must be a Regression, for the kernel acts exactly under the "
                f"squared loss only, got {type(problem).__name__}; use ParameterFlow"
            )
        task = SampleTask(model, problem)
        log_unit = task.loss.log_unit(task.start)
        level = log_level(settings, task.model, log_unit, "to a tangent flow", fitted=1e-9)
        flow = TangentIntegrator(self, task, math.exp(level), math.exp(log_unit))
        # the logarithm of what the compiled steps compare with, to the bit
        level = math.log(flow.target)
        plan = planned(self, settings, flow.first, flow.first, level)._replace(rests=False)
        moments, outcome = follow(flow, plan, flow.at(0.0))
        steps = {"integrator_steps": np.array([flow.taken[moment.t] for moment in moments])}
        return Followed(task.dataset(moments, steps), outcome, moments[-1].state)


class TangentIntegrator(Integrator):
    """Compiled steps, as many as lead to the next record."""

    def __init__(self, flow: TangentFlow, task: SampleTask, target: float, scale: float) -> None:
        self.flow, self.function, self.target = flow, function_of(task.model), target
        self.X, self.y = task.problem.design, task.problem.y
        self.scale = math.sqrt(scale / len(self.y))
        with double_precision(), np.errstate(all="ignore"):
            self.state: TangentState = compiled()[0](self.function, self.X, self.y, task.start)
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
            self.state = go_on(self.function, self.X, self.y, self.state, RunLimits(*given))
        self.t, self.steps = float(self.state.t), int(self.state.tried)
        self.taken[self.t] = int(self.state.taken)
        if self.t < limit and self._loss() > self.target and self.steps < self.flow.max_steps:
            if self._holds(unreachable):
                raise GaveUp("the tangent kernel cannot reduce the remaining residual")
            if not self._holds(moving) or self.steps == tried:
                raise GaveUp(SHORT)

    def _loss(self) -> float:
        return float(np.sum(np.asarray(self.state.residual) ** 2))

    def log_loss(self, now: Moment) -> float:
        loss = self._loss()  # moments are those of the last step; none are interpolated
        return math.log(loss) if loss > 0 else -math.inf

    def _holds(self, condition: Callable[[TangentState], Any]) -> bool:
        return bool(condition(jax.device_get(self.state)))

    def at(self, t: float) -> Moment:
        state = jax.device_get(self.state)
        outputs = state.residual + self.y
        at = kernel(state.tangent.derivative)
        return Moment(float(state.t), np.array(state.parameters), outputs, kernel=at)


def function_of(model: Model) -> Callable[[Any, Any], Any]:
    """f(parameters, X), the same object for models that share it: compiled code is cached by it."""
    if isinstance(model, FunctionModel) and model.code is not model:
        return model.function
    return model.predict
