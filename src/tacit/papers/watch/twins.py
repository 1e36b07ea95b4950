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

from tacit.arguments import Array
from tacit.papers.watch.nets import Net, Parameters
from tacit.papers.watch.optimizers import Optimizer, Rates, stepped
from tacit.watch.measures import Start, gain_row, kernel_row, linearized_row, output_row

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
    last, losses, outputs = _compiled()(net, linear, steps // EVERY, first, data, how, at)
    return last, np.asarray(losses, dtype=np.float64), np.asarray(outputs, dtype=np.float64)


@functools.cache
def _compiled() -> Any:
    import jax

    return jax.jit(_descend, static_argnums=(0, 1, 2))


def _descend(net: Net, linear: bool, records: int, first: Any, data: Any, how: Any, at: Any) -> Any:
    import jax
    import jax.numpy as jnp

    tree = jax.tree.map

    def outputs(p: Any, x: Any, k: Any) -> Any:
        if not linear:
            return net(p, x, data.x)
        left = (1 - at.learning_rate * at.weight_decay) ** k  # what decay leaves of the start
        origin = tree(lambda w: left * w, first)
        change = tree(jnp.subtract, p, origin)
        return sum(jax.jvp(lambda q: net(q, x, data.x), (origin,), (change,)))

    def loss(p: Any, weights: Any, k: Any) -> Any:
        logs = jax.nn.log_softmax(outputs(p, data.x, k))
        return -(weights * (data.y * logs).sum(1)).sum() / weights.sum()

    def step(k: Any, state: Any) -> Any:
        drawn = jax.random.uniform(
            jax.random.fold_in(jax.random.PRNGKey(data.seed), k), (len(data.x),)
        )
        slope = jax.grad(loss)(state[0], (drawn < how.batch) * 1.0, k)
        slope = tree(lambda g: at.loss * g, slope)
        return stepped(how, at.learning_rate, at.weight_decay, k, state, slope)

    def record(state: Any, number: Any) -> Any:
        last = (number + 1) * EVERY
        state = jax.lax.fori_loop(number * EVERY, last, step, state)
        every = jnp.ones(len(data.x))
        return state, (loss(state[0], every, last), outputs(state[0], data.probe, last))

    zeros = tree(jnp.zeros_like, first)
    (last, *_), (losses, seen) = jax.lax.scan(record, (first, zeros, zeros), jnp.arange(records))
    return last, losses, seen


@functools.cache
def _looks(net: Net) -> tuple[Any, Any, Any]:
    """Outputs, their derivative along a change, and the tangent kernel as the mean over outputs."""
    import jax

    def kernel(p: Any, x: Any, base: Any) -> Any:
        rows = jax.tree.leaves(jax.jacrev(lambda q: net(q, x, base))(p))
        flat = [row.reshape(*row.shape[:2], -1).swapaxes(0, 1) for row in rows]
        return sum((row @ row.swapaxes(1, 2)).mean(0) for row in flat)

    def slope(p: Any, change: Any, x: Any, base: Any) -> Any:
        return jax.jvp(lambda q: net(q, x, base), (p,), (change,))[1]

    return jax.jit(net), jax.jit(slope), jax.jit(kernel)


def kernel_of(net: Net, p: Parameters, x: Reals, base: Reals) -> Array:
    """The tangent kernel on some inputs."""
    return np.asarray(_looks(net)[2](p, x, base), dtype=np.float64)


def seen(net: Net, first: Parameters, last: Parameters, data: Data) -> dict[str, Any]:
    """What a watch records of the two, by its own functions, with the kernels and outputs."""
    run, slope, _ = _looks(net)
    base = data.x
    f0, f1 = (np.asarray(run(p, data.probe, base), dtype=np.float64) for p in (first, last))
    change = {key: last[key] - first[key] for key in first}
    along = np.asarray(slope(first, change, data.probe, base), dtype=np.float64)
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
