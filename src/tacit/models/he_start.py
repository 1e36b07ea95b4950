"""He's starts: weights of variance 2/inputs of their layer, and a factor of each layer's own."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacit.arguments import Array, positive

STARTS = ("he_uniform", "gaussian")


def he_weights(
    rng: np.random.Generator, kind: str, inputs: int, shape: int | tuple[int, ...]
) -> Array:
    """Weights of a layer with so many inputs per unit, of one of the kinds in STARTS."""
    if kind == "gaussian":
        return rng.normal(0.0, math.sqrt(2 / inputs), shape)
    bound = math.sqrt(6 / inputs)  # variance bound^2 / 3 = 2 / inputs
    return rng.uniform(-bound, bound, shape)


def layer_factors(who: str, depth: int, layers: Sequence[float] | None) -> tuple[float, ...]:
    """One positive factor per layer; ones by default."""
    if layers is None:
        return (1.0,) * depth
    factors = tuple(positive(who, "layers", factor) for factor in np.atleast_1d(layers).tolist())
    if len(factors) != depth:
        raise ValueError(
            f"{who}: layers must have one factor per layer ({depth}), got {len(factors)}"
        )
    return factors
