"""The law b(s) of a net of any depth, its inverse and antiderivative, in the log domain.

How it works. Depth 2 (p infinite) is b(s) = 2 mu sinh(s); depth D > 2 is mu ((1-s)^-p - (1+s)^-p),
p = D/(D-2) (docs/theory sections 1 and 14). The gradient of Q is the inverse b^-1, the value is
beta s minus the integral of b. mu enters as a logarithm, since it may be 10^-2000 while b is of
order one.

With u = artanh(s) the two powers combine to 2 cosh(u)^p sinh(p u), which has no cancellation for
small s and no overflow for s close to 1. Its inverse has no closed form for finite p: Newton's
method solves for log u, with log beta as its goal, which keeps u positive, is exact for small u and
begins at the limits of small and large beta, both exact.

Pitfalls. Differences that vanish are written as expm1, log1p or a series: cosh(s) - 1 and the value
of Q near zero are quadratic in numbers whose squares underflow. Iterations continue only for
entries that still move, and with a fixed count inside compiled code (JAX), which also takes
subnormal numbers for zero. s itself cannot resolve b near |s| = 1 for deep nets; solvers that go
there hold slacks (`dual_state`), and this module is for single evaluations.
"""

from __future__ import annotations

import math

import numpy as np

from penchant.arguments import Array
from penchant.regularizers.arrays import repeated, space_of

STEPS = 60  # of Newton's method
LOG2 = math.log(2.0)
Scale = Array | float


def gradient(beta: Array, log_mu: Scale, p: float) -> Array:
    """b^-1(beta): arcsinh(beta / 2 mu) at depth 2, beyond it the s in (-1, 1) with b(s) = beta.

    Woodworth et al. 2020, eq. 19 and 60.
    """
    space = space_of(beta)
    if not math.isinf(p):
        return space.copysign(space.tanh(angle(log_ratio(beta, log_mu), p)), beta)
    with np.errstate(over="ignore"):
        log_half = log_ratio(beta, log_mu) - LOG2
        # beyond e^20 the arcsinh is log(2x) to the last digit, and x itself may overflow
        size = space.where(log_half > 20, log_half + LOG2, space.arcsinh(space.exp(log_half)))
    return space.copysign(size, beta)


def terms(beta: Array, log_mu: Scale, p: float) -> Array:
    """mu q_D(beta/mu) = |beta| s - mu int_0^s h; Woodworth et al. 2020, eq. 20 for depth 2."""
    space = space_of(beta)
    if math.isinf(p):
        s = abs(gradient(beta, log_mu, p))
        return abs(beta) * (s - space.tanh(s / 2))
    u = angle(log_ratio(beta, log_mu), p)
    s = space.tanh(u)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        # near zero both are quadratic in s, whose square may underflow
        share = space.where(
            u < 1e-4,
            0.5 + (p + 1) * (p + 2) / 24 * s * s,
            1 - integral(u, log_mu, p) / (abs(beta) * s),
        )
    return abs(beta) * s * space.where(beta == 0, 0.0, share)


def integral(u: Array, log_mu: Scale, p: float) -> Array:
    """mu int_0^s h for s = tanh u and finite p; call it where overflow is ignored."""
    space, a = space_of(u), p - 1
    exponent = a * log_cosh(u) + log_cosh(a * u)
    return (2 / a) * space.exp(log_mu + exponent + space.log(-space.expm1(-exponent)))


def conjugate(s: Array, log_mu: Scale, p: float) -> Array:
    """mu int_0^s h, so that terms(b(s)) = b(s) s - conjugate(s); infinite beyond |s| = 1."""
    space, size = space_of(s), abs(s)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if math.isinf(p):  # 2 mu (cosh s - 1); mu s is representable where s^2 is not
            return space.exp(log_mu + size) * space.expm1(-size) * space.expm1(-size)
        u = space.arctanh(space.minimum(size, 1.0))
        near = p * space.exp(log_mu + space.log(size)) * size
        series = near * (1 + (p + 1) * (p + 2) / 12 * size * size)
        whole = space.where(size < 1, integral(u, log_mu, p), space.inf)
        return space.where(size < 1e-4, series, whole)


def primal(s: Array, log_mu: Scale, p: float) -> Array:
    """b(s), which does not overflow for tiny mu; for finite p infinite at and beyond |s| = 1."""
    space, size = space_of(s), abs(s)
    with np.errstate(divide="ignore", over="ignore"):
        if math.isinf(p):
            return space.copysign(space.exp(log_mu + size + space.log(-space.expm1(-2 * size))), s)
        u = space.arctanh(space.minimum(size, 1.0))
        return space.copysign(space.exp(log_mu + LOG2 + p * log_cosh(u) + log_sinh(p * u)), s)


def slope(s: Array, log_mu: Scale, p: float) -> Array:
    """b'(s): 2 mu cosh(s), or 2 mu p cosh(u)^(p+1) cosh((p+1) u)."""
    space, size = space_of(s), abs(s)
    with np.errstate(divide="ignore", over="ignore"):
        if math.isinf(p):
            return space.exp(log_mu + size) * (1 + space.exp(-2 * size))
        u = space.arctanh(space.minimum(size, 1.0))
        return 2 * p * space.exp(log_mu + (p + 1) * log_cosh(u) + log_cosh((p + 1) * u))


def log_ratio(beta: Array, log_mu: Scale) -> Array:
    """log |beta|/mu."""
    with np.errstate(divide="ignore"):
        return space_of(beta).log(abs(beta)) - log_mu


def log_cosh(x: Array) -> Array:
    """log cosh x, exact to rounding for small and for large |x|."""
    space, size = space_of(x), abs(x)
    with np.errstate(over="ignore"):
        small = space.log1p(2 * space.sinh(size / 2) ** 2)
        return space.where(size < 1, small, size + (space.log1p(space.exp(-2 * size)) - LOG2))


def log_sinh(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return x + space_of(x).log(-space_of(x).expm1(-2 * x)) - LOG2


def angle(log_z: Array, p: float) -> Array:
    """u >= 0 with 2 cosh(u)^p sinh(p u) = z, for any log z, by Newton's method on logarithms."""
    space = space_of(log_z)
    # both limits are exact: z = 2pu for small z; for large z, log z = 2pu - p log 2 + O(e^-2u)
    small = space.exp(space.minimum(log_z, 0.0)) / (2 * p)
    large = space.maximum(log_z + p * LOG2, 0.1) / (2 * p)
    large = space.maximum(large - 0.5 * space.log1p(space.exp(-2 * large)), 0.3 * large)
    # compiled code takes subnormal numbers for zero
    least = 1e-320 if space is np else space.finfo(log_z.dtype).tiny
    u = space.maximum(space.where(log_z > 0, large, small), least)
    return space.where(space.isfinite(log_z), _angle_from(u, log_z, p), 0.0)


def _angle_from(u: Array, log_z: Array, p: float) -> Array:
    """Newton's method for `angle`, until no step matters; compiled code takes all of them."""
    if space_of(log_z) is not np:
        return repeated(lambda u: u * _factor(u, log_z, p)[0], u, STEPS)
    factor, move = _factor(u, log_z, p)
    angles, goals = np.ravel(u * factor), np.ravel(log_z)
    # the step after one of 1e-9 is below rounding; the others go on without those that are done
    left = np.flatnonzero(~(np.ravel(abs(move)) < 1e-9))
    for _ in range(STEPS - 1):
        if not left.size:
            break
        factor, move = _factor(angles[left], goals[left], p)
        angles[left] *= factor
        left = left[~(abs(move) < 1e-9)]
    return angles.reshape(np.shape(log_z))


def _factor(u: Array, log_z: Array, p: float) -> tuple[Array, Array]:
    """The factor by which a step of Newton's method in log u changes u, and its logarithm."""
    space = space_of(log_z)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        fading, faded = space.exp(-2 * u), space.expm1(-2 * p * u)
        # p log cosh u + log sinh pu, to rounding of 1, which is what moves u by its rounding
        level = 2 * p * u + (p * (space.log1p(fading) - LOG2) + (space.log(-faded) - LOG2))
        gap = log_z - LOG2 - level
        # d(gap)/d(log u): Newton in log u keeps u positive and is exact for small u
        rate = u * p * ((1 - fading) / (1 + fading) - (2 + faded) / faded)
        move = space.where(space.isfinite(gap), gap / rate, 0.0)
    return space.exp(space.clip(move, -2, 2)), move
