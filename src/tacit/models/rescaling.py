"""The same two-layer ReLU net with parameters of another norm."""

from __future__ import annotations

import math

import numpy as np

from tacit.arguments import Array, finite_array, integer, positive

WHO = "rescale_layers"


def rescale_layers(parameters: Array, inner: int, size: float) -> Array:
    """(lambda A, B / lambda) with the norm `size` and the larger lambda of the two that give it.

    The first `inner` parameters are A and the others B. For one ReLU layer in between, it is the
    same function (N, w(lambda) with L = 1). The norms of A and B bound `size` from below.
    """
    theta = finite_array(WHO, "parameters", parameters, ndim=1)
    inner, size = integer(WHO, "inner", inner, least=1), positive(WHO, "size", size)
    if inner >= theta.size:
        raise ValueError(f"{WHO}: inner must be below the {theta.size} parameters, got {inner}")
    a, b = float(theta[:inner] @ theta[:inner]), float(theta[inner:] @ theta[inner:])
    least = math.sqrt(2 * math.sqrt(a * b))
    if size < least * (1 - 1e-12) or a == 0:
        raise ValueError(
            f"{WHO}: size must be at least {least:.6g}, the least norm of this function's "
            f"rescalings, with inner weights that are not all zero, got {size:g}"
        )
    # a lambda^2 + b / lambda^2 = size^2
    square = (size**2 + math.sqrt(max(size**4 - 4 * a * b, 0.0))) / (2 * a)
    return np.concatenate([theta[:inner] * math.sqrt(square), theta[inner:] / math.sqrt(square)])
