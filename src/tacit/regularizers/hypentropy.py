"""Depth 2: b(s) = 2 mu sinh(s) and its inverse and antiderivative, in the log domain."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.regularizers.arrays import space_of

LOG2 = float(np.log(2.0))
Scale = Array | float


def gradient(beta: Array, log_mu: Scale) -> Array:
    """arcsinh(beta / 2 mu), W eq. (19), for any log mu."""
    space = space_of(beta)
    with np.errstate(divide="ignore", over="ignore"):
        log_ratio = space.log(abs(beta)) - log_mu - LOG2
        # beyond e^20 the arcsinh is log(2x) to the last digit, and x itself may overflow
        size = space.where(log_ratio > 20, log_ratio + LOG2, space.arcsinh(space.exp(log_ratio)))
    return space.copysign(size, beta)


def terms(beta: Array, log_mu: Scale) -> Array:
    """mu q(beta/mu), W eq. (20), as |beta| (s - tanh(s/2)) with s = |gradient|: no cancellation."""
    s = abs(gradient(beta, log_mu))
    return abs(beta) * (s - space_of(s).tanh(s / 2))


def primal(s: Array, log_mu: Scale) -> Array:
    """2 mu sinh(s); tiny mu with huge s does not overflow."""
    space, size = space_of(s), abs(s)
    with np.errstate(divide="ignore", over="ignore"):
        return space.copysign(space.exp(log_mu + size + space.log(-space.expm1(-2 * size))), s)


def slope(s: Array, log_mu: Scale) -> Array:
    """2 mu cosh(s)."""
    space, size = space_of(s), abs(s)
    with np.errstate(over="ignore"):
        return space.exp(log_mu + size) * (1 + space.exp(-2 * size))
