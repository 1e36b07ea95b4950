"""Steps of SGD, momentum or Adam on batches of images, compiled into one loop."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.flows.image_task import ImageTask, Part
from tacit.models.image_layers import ImageFunction, Params

OPTIMIZERS = ("sgd", "momentum", "adam")
Rows = NDArray[np.int32]
State = dict[str, tuple[Params, Any]]  # "net", and "twin": weights and what the optimizer keeps
Tally = dict[str, tuple[Any, Any]]  # sums of losses and mistakes since the epoch began


@dataclasses.dataclass(frozen=True)
class Rule:
    """How weights move; rules that are equal share what is compiled."""

    optimizer: str
    momentum: float

    def tool(self, step: Any) -> Any:
        """The optimizer of optax with this learning rate."""
        import optax

        if self.optimizer == "adam":
            return optax.adam(step)
        return optax.sgd(step, self.momentum if self.optimizer == "momentum" else None)


@dataclasses.dataclass(frozen=True)
class Trained:
    """The net itself as a function of its weights, its start and inputs."""

    function: ImageFunction

    def __call__(self, params: Params, origin: Params, X: Any) -> Any:
        return self.function(params, X)


@dataclasses.dataclass(frozen=True)
class Twin:
    """The net linearized in its weights at the start: f0 + J0 (params - origin)."""

    function: ImageFunction

    def __call__(self, params: Params, origin: Params, X: Any) -> Any:
        import jax

        moved = jax.tree.map(lambda new, old: new - old, params, origin)
        value, change = jax.jvp(lambda at: self.function(at, X), (origin,), (moved,))
        return value + change


Model = Trained | Twin
Carry = tuple[State, Tally]
Advance = Callable[[Carry, Params, Part, Rows, int, int, Any], Carry]


def models(task: ImageTask, twin: bool) -> dict[str, Model]:
    """What is trained side by side."""
    found: dict[str, Model] = {"net": Trained(task.function)}
    return found | {"twin": Twin(task.function)} if twin else found


def begin(task: ImageTask, rule: Rule, names: Any) -> State:
    """The state before the first step."""
    return {name: (task.origin, rule.tool(1.0).init(task.origin)) for name in names}


def epoch_batches(samples: int, batch: int, seed: int, epoch: int) -> list[Rows]:
    """The rows of the batches of an epoch: full ones as a table, and the rest as one of a row.

    Every sample occurs once, in an order that only `seed` and `epoch` decide. If `batch` does not
    divide the samples, the last batch is smaller.
    """
    order = np.random.default_rng([seed, epoch]).permutation(samples).astype(np.int32)
    full = samples // batch * batch
    tables = [order[:full].reshape(-1, batch), order[full:].reshape(1, -1)]
    return [table for table in tables if table.size]


def cross_entropy(outputs: Any, labels: Any) -> Any:
    """-log of the probability of its label for every row, as log(1 + sum_j exp(f_j - f_label)).

    Written so, neither a tiny loss nor its gradient is lost in the rounding of 1.
    """
    import jax
    import jax.numpy as jnp

    own = jnp.take_along_axis(outputs, labels[:, None], axis=1)
    others = jnp.arange(outputs.shape[1]) != labels[:, None]
    return jax.nn.softplus(jax.nn.logsumexp(outputs - own, axis=1, where=others))


@functools.cache
def compiled(rule: Rule, racers: tuple[tuple[str, Model], ...]) -> Advance:
    """A function ((state, tally), origin, part, rows, first, count, step) -> (state, tally).

    It takes `count` steps on the batches `first`, `first` + 1, ... of the table `rows`.
    """
    import jax
    import jax.numpy as jnp
    import optax

    def loss(params: Params, model: Model, origin: Params, batch: Part) -> tuple[Any, Any]:
        outputs = model(params, origin, batch.inputs) - batch.offsets
        mistakes = jnp.sum(outputs.argmax(axis=1) != batch.labels, dtype=np.int32)
        return jnp.mean(cross_entropy(outputs, batch.labels)), mistakes

    def one(carry: Carry, origin: Params, part: Part, chosen: Any, step: Any) -> Carry:
        """State and tally after one step on the chosen rows."""
        state, tally = carry
        batch = Part(*(array.at[chosen].get(mode="promise_in_bounds") for array in part))
        for name, model in racers:
            params, kept = state[name]
            slope = jax.value_and_grad(loss, has_aux=True)
            (value, mistakes), gradient = slope(params, model, origin, batch)
            change, kept = rule.tool(step).update(gradient, kept, params)
            state = state | {name: (optax.apply_updates(params, change), kept)}
            lost, wrong = tally[name]
            tally = tally | {name: (lost + value * len(chosen), wrong + mistakes)}
        return state, tally

    def loop(
        carry: Carry, origin: Params, part: Part, rows: Any, first: Any, count: Any, step: Any
    ) -> Carry:
        return jax.lax.fori_loop(
            first, first + count, lambda k, now: one(now, origin, part, rows[k], step), carry
        )

    def walk(
        carry: Carry, origin: Params, part: Part, rows: Rows, first: int, count: int, step: Any
    ) -> Carry:
        for k in range(first, first + count):
            carry = single(carry, origin, part, rows[k], step)
        return carry

    # on processors XLA makes convolutions inside a loop 15 times slower than outside
    single = jax.jit(one)
    convolutions = any(model.function.convolutions for _, model in racers)
    return walk if convolutions else jax.jit(loop)
