"""Depth D > 2: b(s) = mu ((1-s)^-p - (1+s)^-p), p = D/(D-2), and its inverse, in the log domain.

With u = artanh(s) the two powers combine to h(s) = 2 cosh(u)^p sinh(p u), which has no
cancellation for small s and no overflow for s close to 1.
"""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array

LOG2 = float(np.log(2.0))
Scale = Array | float


def log_cosh(x: Array) -> Array:
    """log cosh x, exact to rounding for small and for large |x|."""
    size = np.abs(x)
    with np.errstate(over="ignore"):
        return np.where(size < 1, np.log1p(2 * np.sinh(size / 2) ** 2), size + log_half_1p(size))


def log_half_1p(size: Array) -> Array:
    """log((1 + e^-2x) / 2) for x >= 0."""
    return np.log1p(np.exp(-2 * size)) - LOG2


def log_sinh(x: Array) -> Array:
    """log sinh x for x >= 0."""
    with np.errstate(divide="ignore"):
        return x + np.log(-np.expm1(-2 * x)) - LOG2


def angle(log_z: Array, p: float) -> Array:
    """u >= 0 with 2 cosh(u)^p sinh(p u) = z, for any log z, by Newton's method on logarithms."""
    # both limits are exact: z = 2pu for small z; for large z, log z = 2pu - p log 2 + O(e^-2u)
    small = np.exp(np.minimum(log_z, 0.0)) / (2 * p)
    large = np.maximum(log_z + p * LOG2, 0.1) / (2 * p)
    large = np.maximum(large - 0.5 * np.log1p(np.exp(-2 * large)), 0.3 * large)
    u = np.maximum(np.where(log_z > 0, large, small), 1e-320)
    for _ in range(60):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            gap = log_z - LOG2 - p * log_cosh(u) - log_sinh(p * u)
            # d(gap)/d(log u): Newton in log u keeps u positive and is exact for small u
            rate = u * p * (np.tanh(u) + 1 / np.tanh(p * u))
            move = np.where(np.isfinite(gap), gap / rate, 0.0)
        u = u * np.exp(np.clip(move, -2, 2))
        if np.all(np.abs(move) < 1e-9):  # the step after this one is below rounding
            break
    return np.where(np.isfinite(log_z), u, 0.0)


def log_ratio(beta: Array, log_mu: Scale) -> Array:
    """log |beta|/mu."""
    with np.errstate(divide="ignore"):
        return np.log(np.abs(beta)) - log_mu


def gradient(beta: Array, log_mu: Scale, p: float) -> Array:
    """h^-1(beta/mu) in (-1, 1), W eq. (60)."""
    return np.copysign(np.tanh(angle(log_ratio(beta, log_mu), p)), beta)


def terms(beta: Array, log_mu: Scale, p: float) -> Array:
    """mu q_D(beta/mu) = |beta| s - mu int_0^s h, the integral again in terms of u."""
    u = angle(log_ratio(beta, log_mu), p)
    a, s = p - 1, np.tanh(u)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        exponent = a * log_cosh(u) + log_cosh(a * u)
        integral = (2 / a) * np.exp(log_mu + exponent + np.log(-np.expm1(-exponent)))
        # near zero both are quadratic in s, whose square may underflow
        share = np.where(
            u < 1e-4, 0.5 + (p + 1) * (p + 2) / 24 * s * s, 1 - integral / (np.abs(beta) * s)
        )
    return np.abs(beta) * s * np.where(beta == 0, 0.0, share)


def primal(s: Array, log_mu: Scale, p: float) -> Array:
    """mu h(s); infinite at and beyond |s| = 1."""
    size = np.minimum(np.abs(s), 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        u = np.arctanh(size)
        return np.copysign(np.exp(log_mu + LOG2 + p * log_cosh(u) + log_sinh(p * u)), s)


def slope(s: Array, log_mu: Scale, p: float) -> Array:
    """mu h'(s) = 2 mu p cosh(u)^(p+1) cosh((p+1) u)."""
    with np.errstate(divide="ignore", over="ignore"):
        u = np.arctanh(np.minimum(np.abs(s), 1.0))
        return 2 * p * np.exp(log_mu + (p + 1) * log_cosh(u) + log_cosh((p + 1) * u))
