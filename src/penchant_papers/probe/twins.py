"""A net and its twin, the net linearized at its start, trained alike; and what a watch measures.

The distance of the two at equal training loss is the truth that a regime is measured against.
Under weight decay the twin is linearized at the decayed start: the start times
(1 - learning rate * decay)^step. Its tangent features shrink with it, as those of the net do (L
section 3: the kernel phase is that of the decayed start).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penchant.lab import Array
from penchant.watch import Start, gain_row, kernel_row, linearized_row, output_row
from penchant_papers.probe.nets import Net, Parameters
from penchant_papers.probe.optimizers import Optimizer, Rates, stepped

Reals = NDArray[np.floating[Any]]

EVERY = 10  # steps between the points of the twin at which it is compared
LONGER = 3  # times the steps of the net that the twin may take to its loss


class Data(NamedTuple):
    """Training samples with one-hot labels, and the probe inputs, which are not among them.

    Batches are drawn by the seed.
    """

    x: Reals
    y: Reals
    probe: Reals
    probe_y: Reals
    seed: int


def train(
    net: Net, linear: bool, steps: int, first: Parameters, data: Data, how: Optimizer, at: Rates
) -> tuple[Parameters, Array, Array]:
    """The last parameters; the training loss and the outputs on the probe at every EVERY steps."""
    size = steps // EVERY * EVERY, len(data.x)
    draws = np.random.default_rng([data.seed, 29]).random(size, np.float32)
    last, losses, outputs = _compiled()(net, linear, steps // EVERY, first, data, draws, how, at)
    return last, np.asarray(losses, dtype=np.float64), np.asarray(outputs, dtype=np.float64)


@functools.cache
def _compiled() -> Any:
    import jax

    return jax.jit(_descend, static_argnums=(0, 1, 2))


def _descend(
    net: Net, linear: bool, records: int, first: Any, data: Any, draws: Any, how: Any, at: Any
) -> Any:
    """The program of `train`; a sample whose draw is below the share of a batch is in it.

    Compiling it takes longer than running it, so that it has few pieces: the parameters are one
    vector, and a record evaluates the net once, on the training inputs and the probe together.
    """
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    flat, tree_of = ravel_pytree(first)
    both = jnp.concatenate([data.x, data.probe])

    def outputs(p: Any, x: Any, k: Any) -> Any:
        def run(q: Any) -> Any:
            return net(tree_of(q), x, data.x)

        if not linear:
            return run(p)
        origin = (1 - at.learning_rate * at.weight_decay) ** k * flat  # what decay leaves of it
        return sum(jax.jvp(run, (origin,), (p - origin,)))

    def errors(seen: Any) -> Any:
        return -(data.y * jax.nn.log_softmax(seen)).sum(1)

    def loss(p: Any, weights: Any, k: Any) -> Any:
        return (weights * errors(outputs(p, data.x, k))).sum() / weights.sum()

    def step(k: Any, state: Any) -> Any:
        weights = (draws[k] < how.batch) * 1.0
        slope = at.loss * jax.grad(loss)(state[0], weights, k)
        return stepped(how, at.learning_rate, at.weight_decay, k, state, slope)

    def record(state: Any, number: Any) -> Any:
        last = (number + 1) * EVERY
        state = jax.lax.fori_loop(number * EVERY, last, step, state)
        seen = outputs(state[0], both, last)
        return state, (errors(seen[: len(data.x)]).mean(), seen[len(data.x) :])

    zeros = jnp.zeros_like(flat)
    (last, *_), (losses, seen) = jax.lax.scan(record, (flat, zeros, zeros), jnp.arange(records))
    return tree_of(last), losses, seen


@functools.cache
def _looks(net: Net) -> tuple[Any, Any]:
    """Outputs with their derivative along a change, and the tangent kernel, mean over outputs."""
    import jax

    def kernel(p: Any, x: Any, base: Any) -> Any:
        def rows(sample: Any) -> Any:  # sample by sample: a Jacobian of all would be of all by all
            return jax.jacrev(lambda q: net(q, sample[None], base)[0])(p)

        flat = [row.reshape(*row.shape[:2], -1) for row in jax.tree.leaves(jax.vmap(rows)(x))]
        return sum(jax.numpy.einsum("iop,jop->ij", row, row) / row.shape[1] for row in flat)

    def along(p: Any, change: Any, x: Any, base: Any) -> Any:
        return jax.jvp(lambda q: net(q, x, base), (p,), (change,))

    return jax.jit(along), jax.jit(kernel)


def kernel_of(net: Net, p: Parameters, x: Reals, base: Reals) -> Array:
    """The tangent kernel on some inputs."""
    return np.asarray(_looks(net)[1](p, x, base), dtype=np.float64)


def seen(net: Net, first: Parameters, last: Parameters, data: Data) -> dict[str, Any]:
    """What a watch records of the two, by its own functions, with the kernels and outputs."""
    base, run = data.x, _looks(net)[0]
    change = {key: last[key] - first[key] for key in first}
    (f0, along), (f1, _) = (
        [np.asarray(part, dtype=np.float64) for part in run(p, change, data.probe, base)]
        for p in (first, last)
    )
    kernels = [kernel_of(net, p, data.probe, base) for p in (first, last)]
    begun = Start(first, f0, kernels[0][None])
    row: dict[str, Any] = kernel_row(begun, kernels[1], None)
    row |= output_row(begun, f1, None) | linearized_row(begun, f1, f0 + along)
    row |= gain_row(begun, f1, kernels[1])
    return row | {"kernels": kernels, "outputs": (f0, f1, f0 + along)}


class Twin(NamedTuple):
    """Outputs of the twin on the probe along its path, and where its loss is that of the net."""

    path: Array
    equal: Array
    loss: float


def twin(
    net: Net, first: Parameters, data: Data, how: Optimizer, at: Rates, steps: int, loss: float
) -> Twin:
    """The twin where its loss equals that of the net; of several such points, the nearest in steps.

    Between two points of the path it is linear in the logarithm of the loss. A twin that never has
    the loss of the net is taken where it comes nearest to it.
    """
    _, losses, path = train(net, True, LONGER * steps, first, data, how, at)
    above = np.log(losses / loss)
    crossed = np.flatnonzero(above[:-1] * above[1:] <= 0)
    if not len(crossed):
        place = int(np.argmin(np.abs(above)))
        return Twin(path, path[place], float(losses[place]))
    place = int(crossed[np.argmin(np.abs((crossed + 1.5) * EVERY - steps))])
    fall = above[place] - above[place + 1]
    share = above[place] / fall if fall else 0.0
    return Twin(path, (1 - share) * path[place] + share * path[place + 1], loss)
