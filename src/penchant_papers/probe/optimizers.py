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


OPTIMIZERS = {
    "descent": Optimizer(),
    "SGD": Optimizer(batch=0.25),
    "momentum": Optimizer(memory=0.9),
    "AdamW": Optimizer(memory=0.9, squares=0.98, adaptive=True),
}


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
