"""Steps of gradient flow on the squared loss in which the tangent kernel acts exactly.

With the kernel K = J J^T held over a step, the residual is r(s) = exp(-2 K s) r and the parameters
move by -J^T times the integral of 2 r(s): no step is too long for the fast modes of K, and a model
that is linear in its parameters is solved in one step of any length.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

SHRINK, GROW, SAFETY = 0.1, 4.0, 0.9


class Tangent(NamedTuple):
    """J at one point, and the eigenvalues and eigenvectors of J J^T; rounding counts as zero.

    J is a matrix, or a list of pairs (a, b) where the function has `factors`, as ReluFunction does:
    its row n is the outer products of b_n and a_n. Nothing so large as J is then ever held.
    """

    derivative: Any
    values: Any
    vectors: Any


class State(NamedTuple):
    """Where the flow is, the step it tries next, and how many steps were tried and taken."""

    t: Any
    parameters: Any
    step: Any
    residual: Any
    tangent: Tangent
    tried: Any
    taken: Any


class Limits(NamedTuple):
    """Until when: a time, a loss, a number of tries; and `scale`, the size of the targets."""

    t: Any
    loss: Any
    tries: Any
    rtol: Any
    scale: Any


def tangent(function: Any, parameters: Any, X: Any) -> Tangent:
    """The tangent of f(parameters, X) in the parameters."""
    import jax.numpy as jnp

    derivative = _derivative(function, parameters, X)
    values, vectors = jnp.linalg.eigh(kernel(derivative))
    floor = len(values) * jnp.finfo(values.dtype).eps * values[-1]
    return Tangent(derivative, jnp.where(values > floor, values, 0.0), vectors)


def _derivative(function: Any, parameters: Any, X: Any) -> Any:
    import jax

    if hasattr(function, "factors"):
        return function.factors(parameters, X)
    return jax.jacrev(lambda weights: function(weights, X))(parameters)


def kernel(derivative: Any) -> Any:
    """J J^T; of outer products it is the product, entry by entry, of their kernels."""
    if isinstance(derivative, list):
        pairs = ((part @ part.swapaxes(1, 2) for part in pair) for pair in derivative)
        return sum((a * b).sum(axis=0) for a, b in pairs)
    return derivative @ derivative.T


def pull(derivative: Any, weights: Any) -> Any:
    """J^T weights, one number per parameter."""
    import jax.numpy as jnp

    if isinstance(derivative, list):
        parts = [(b.swapaxes(1, 2) * weights) @ a for a, b in derivative]
        return jnp.concatenate([part.reshape(len(part), -1) for part in parts], axis=1).ravel()
    return weights @ derivative


def move(at: Tangent, residual: Any, step: Any) -> Any:
    """-J^T (integral of 2 exp(-2 K s) over the step) r: the change of the parameters."""
    import jax.numpy as jnp

    seen = at.values > 0  # what K does not see stays where it is
    integral = -jnp.expm1(-2 * at.values * step) / jnp.where(seen, at.values, 1.0)
    return -pull(at.derivative, at.vectors @ (integral * (at.vectors.T @ residual)))


def trial(function: Any, X: Any, state: State) -> tuple[Any, Tangent, Any]:
    """(parameters, tangent there, error) after one exponential midpoint step.

    The midpoint rule and the trapezoidal rule, both of second order, are compared. Between them
    they look at both ends and the middle, so that no kink of a ReLU unit is crossed unseen.
    """
    here, residual, step = state.tangent, state.residual, state.step
    middle = tangent(function, state.parameters + move(here, residual, step / 2), X)
    change = move(middle, residual, step)
    ended = state.parameters + change
    there = tangent(function, ended, X)
    trapezoid = (move(here, residual, step) + move(there, residual, step)) / 2
    return ended, there, change - trapezoid


def size(state: State, error: Any, scale: Any) -> Any:
    """An error of the parameters, relative to them or by what it can do to an output.

    At a small start the first is the larger one, at a large start the second: there outputs change
    by as much as the targets while the parameters hardly move.
    """
    import jax.numpy as jnp

    samples = len(state.residual)
    gradient = jnp.sqrt(jnp.sum(state.tangent.values) / samples)  # root mean square
    target = jnp.maximum(scale, jnp.sqrt(jnp.mean(state.residual**2)))
    share = jnp.maximum(1 / jnp.linalg.norm(state.parameters), gradient / target)
    return jnp.linalg.norm(error) * share


def advanced(function: Any, X: Any, y: Any, state: State, limits: Limits) -> State:
    """The state after one try, which counts only if its error is below the tolerance."""
    import jax
    import jax.numpy as jnp

    left = limits.t - state.t
    cut = state.step >= left
    now = state._replace(step=jnp.minimum(state.step, left))
    ended, there, error = trial(function, X, now)
    excess = size(state, error, limits.scale) / limits.rtol
    taken = excess <= 1
    factor = jnp.clip(SAFETY * excess ** (-1 / 3), SHRINK, GROW)  # local errors are of order three
    step = now.step * jnp.where(jnp.isnan(excess), SHRINK, factor)
    step = jnp.where(taken & cut, jnp.maximum(step, state.step), step)
    after = State(
        jnp.where(cut, limits.t, state.t + now.step),
        ended,
        step,
        function(ended, X) - y,
        there,
        state.tried,
        state.taken,
    )
    kept = jax.tree.map(functools.partial(jnp.where, taken), after, state)
    return kept._replace(step=step, tried=state.tried + 1, taken=state.taken + taken)


def unreachable(state: State) -> Any:
    """True if nothing that is left of the residual lies where the kernel can move it."""
    modes = (state.tangent.vectors.T @ state.residual) ** 2
    return modes @ (state.tangent.values > 0) <= 1e-12 * modes.sum()


@functools.cache
def compiled() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(begin, advance), each compiled once per function and shape, whatever the start and data.

    `begin(function, X, y, start)` is the state at time zero and `advance(function, X, y, state,
    limits)` the one at which some limit is met.
    """
    import jax
    import jax.numpy as jnp

    @functools.partial(jax.jit, static_argnums=0)
    def begin(function: Any, X: Any, y: Any, start: Any) -> State:
        residual = one_number_per_row(function(start, X), X) - y
        here = tangent(function, start, X)
        speed = 2 * jnp.linalg.norm(pull(here.derivative, residual))
        # a small start leaves at the speed of its curvature, long before its kernel matters
        fastest = jnp.maximum(2 * here.values[-1], speed / jnp.linalg.norm(start))
        zero = jnp.zeros((), residual.dtype)
        return State(zero, start, 0.01 / fastest, residual, here, jnp.int64(0), jnp.int64(0))

    @functools.partial(jax.jit, static_argnums=0)
    def advance(function: Any, X: Any, y: Any, state: State, limits: Limits) -> State:
        def go_on(state: State) -> Any:
            busy = (state.t < limits.t) & (jnp.sum(state.residual**2) > limits.loss)
            return busy & (state.tried < limits.tries) & moving(state) & ~unreachable(state)

        step = functools.partial(advanced, function, X, y, limits=limits)
        return jax.lax.while_loop(go_on, step, state)

    return begin, advance


def moving(state: State) -> Any:
    """False once the steps are too short to change the time."""
    return state.step > 1e-15 * state.t


def one_number_per_row(outputs: Any, X: Any) -> Any:
    """The outputs if they are that; checked while they are traced."""
    if getattr(outputs, "shape", None) != (len(X),):
        raise ValueError(
            "TangentFlow: the model must return one number per row of X, got shape "
            f"{getattr(outputs, 'shape', type(outputs).__name__)} for {len(X)} rows"
        )
    return outputs
