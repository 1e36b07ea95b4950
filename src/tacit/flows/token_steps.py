"""Steps of Adam on the loss of a token net plus a penalty, compiled into one loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from tacit.flows.token_loss import Loss
from tacit.flows.token_path import TokenPath
from tacit.models.token_net import present, with_parts
from tacit.regularizers.norms import L1, L2
from tacit.regularizers.penalty import Term
from tacit.regularizers.spectral import Nuclear
from tacit.regularizers.tensors import PerTensor

DTYPES: dict[str, Any] = {"single": np.float32, "double": np.float64}
MOMENTS = 0.9, 0.999
EPSILON = 1e-8
PENALTIES: dict[str, Term] = {
    "l1": L1(),
    "l2^2": L2(),  # N writes beta |theta|_2^2 without a half
    "l2": PerTensor(L2(squared=False)),
    "l2 over all": L2(squared=False),
    "nuclear": Nuclear(),
}


class State(NamedTuple):
    """The parameters, the running means of the slope and its square, and the steps taken."""

    tensors: Any
    mean: Any
    square: Any
    taken: Any


class Settings(Protocol):
    """What a step depends on."""

    @property
    def step(self) -> float: ...

    @property
    def penalty(self) -> str: ...

    @property
    def beta(self) -> float: ...

    @property
    def decoupled(self) -> bool: ...


def begin(tensors: Any, dtype: Any) -> State:
    """The state before the first step: moments of zero."""
    import jax
    import jax.numpy as jnp

    first = jax.tree.map(lambda part: jnp.asarray(part, dtype), tensors)
    zeros = jax.tree.map(jnp.zeros_like, first)
    return State(first, zeros, zeros, jnp.int32(0))


def again(path: TokenPath) -> State:
    """The state in which a run ended."""
    import jax
    import jax.numpy as jnp

    tensors, mean, square = jax.tree.map(jnp.asarray, (path.tensors, *path.moments))
    return State(tensors, mean, square, jnp.int32(path.steps))


def compiled(settings: Settings, loss: Loss) -> Callable[[State, int], State]:
    """A function (state, number of steps) -> state after them."""
    import jax
    import jax.numpy as jnp

    penalty, rate, beta = PENALTIES[settings.penalty], settings.step, settings.beta

    def pull(tensors: Any) -> Any:
        """beta times the subgradient of the penalty."""
        found = penalty.subgradient(present(tensors))
        return with_parts(tensors, {name: beta * part for name, part in found.items()})

    def one_step(_: Any, state: State) -> State:
        tensors, mean, square, taken = state
        slope = jax.grad(loss)(tensors, taken)
        if beta and not settings.decoupled:
            slope = jax.tree.map(jnp.add, slope, pull(tensors))
        a, b = MOMENTS
        mean = jax.tree.map(lambda m, g: a * m + (1 - a) * g, mean, slope)
        square = jax.tree.map(lambda v, g: b * v + (1 - b) * g * g, square, slope)
        # 1 - a^k without the cancellation of small k in float32
        count = (taken + 1).astype(jax.tree.leaves(mean)[0].dtype)
        first, second = (-jnp.expm1(count * math.log(moment)) for moment in (a, b))
        moved = jax.tree.map(
            lambda x, m, v: x - rate * (m / first) / (jnp.sqrt(v / second) + EPSILON),
            tensors, mean, square,
        )  # fmt: skip
        if beta and settings.decoupled:
            moved = jax.tree.map(lambda x, p: x - rate * p, moved, pull(tensors))
        return State(moved, mean, square, taken + 1)

    @jax.jit
    def advance(state: State, count: Any) -> State:
        return jax.lax.fori_loop(0, count, one_step, state)

    return advance
