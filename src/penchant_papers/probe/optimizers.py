"""The optimizers of the watched runs: one rule with a few numbers."""

from __future__ import annotations

from typing import Any, NamedTuple


class Optimizer(NamedTuple):
    """One rule for all: mean gradients, divided or not by the root of mean squares."""

    memory: float = 0.0
    squares: float = 0.0
    adaptive: bool = False
    batch: float = 1.0  # share of the samples in a step
    coupled: bool = False  # decay as a part of the gradient
    turned: bool = False  # hidden matrices take the steps of Muon


OPTIMIZERS = {
    "descent": Optimizer(),
    "SGD": Optimizer(batch=0.25),
    "momentum": Optimizer(memory=0.9),
    "AdamW": Optimizer(memory=0.9, squares=0.98, adaptive=True),
}


# Muon of torch.optim, with learning rates as large as those of AdamW (arXiv 2502.16982)
MEMORY, SIZE, ROUNDS = 0.95, 0.2, 5
QUINTIC = (3.4445, -4.7750, 2.0315)
OTHERS = ("e", "u", "w2", "places")  # embeddings and what is read out: AdamW


class Rates(NamedTuple):
    """Learning rate, decay, and a factor of the loss: 0 leaves decay alone."""

    learning_rate: float
    weight_decay: float
    loss: float = 1.0


def stepped(how: Any, rate: Any, decay: Any, k: Any, state: Any, slope: Any) -> Any:
    """The parameters, the mean gradient and the mean square after step k with this gradient.

    The mean of the gradients has weights that sum to one. So the learning rate of a momentum is
    1/(1 - memory) times that of PyTorch.
    """
    import jax
    import jax.numpy as jnp

    tree = jax.tree.map
    p, mean, square = state
    slope = tree(lambda g, w: g + how.coupled * decay * w, slope, p)
    mean = tree(lambda m, g: how.memory * m + (1 - how.memory) * g, mean, slope)
    square = tree(lambda v, g: how.squares * v + (1 - how.squares) * g * g, square, slope)
    grown = 1 - how.memory ** (k + 1.0), 1 - how.squares ** (k + 1.0)
    apart = jnp.where(how.coupled, 0.0, decay)

    def moved(w: Any, m: Any, v: Any) -> Any:
        scaled = (m / grown[0]) / (jnp.sqrt(v / grown[1]) + 1e-8)
        turn = jnp.where(how.adaptive, scaled, m)
        return w * (1 - rate * apart) - rate * turn

    return tree(moved, p, mean, square), mean, square


def hidden(tree: Any) -> Any:
    """True for the matrices that Muon moves, as a flat vector in the order of the parameters."""
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    marked = {
        name: jnp.full(array.shape, array.ndim == 2 and name not in OTHERS)
        for name, array in tree.items()
    }
    return ravel_pytree(marked)[0]


def with_memory(how: Any, tree: Any) -> Any:
    """The optimizer with the memory of Muon where it moves, for `stepped` on flat vectors."""
    import jax.numpy as jnp

    return how._replace(memory=jnp.where(hidden(tree), MEMORY, how.memory))


def muon(tree_of: Any, rate: Any, decay: Any, before: Any, state: Any, slope: Any) -> Any:
    """The state after a step of AdamW, in which hidden matrices moved by Muon instead.

    `before` are the parameters before this step; all are flat vectors.
    """
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    p, mean, square = state
    ahead = jax.tree.map(_orthogonal, tree_of((1 - MEMORY) * slope + MEMORY * mean))  # Nesterov
    turned = before * (1 - rate * decay) - rate * ravel_pytree(ahead)[0]
    return jnp.where(hidden(ahead), turned, p), mean, square


def _orthogonal(matrix: Any) -> Any:
    """Singular values near one, by a few rounds of a polynomial; times SIZE sqrt(longer side)."""
    import jax.numpy as jnp

    if matrix.ndim != 2:
        return matrix
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    wide = wide / (jnp.linalg.norm(wide) + 1e-7)
    a, b, c = QUINTIC
    for _ in range(ROUNDS):
        gram = wide @ wide.T
        wide = a * wide + (b * gram + c * gram @ gram) @ wide
    turned = wide if matrix.shape[0] <= matrix.shape[1] else wide.T
    return SIZE * max(matrix.shape) ** 0.5 * turned
