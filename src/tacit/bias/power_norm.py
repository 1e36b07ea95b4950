"""argmin |beta|_p under X beta = y for p > 1: Newton on the dual with exact line searches."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.bias.continuation import Failed, Hessian
from tacit.bias.norms import Lp
from tacit.records import Kind, Outcome

STEPS = 100  # per stage
STAGE = 1.5  # p - 1 moves from 1 by at most this factor a stage


def solve(norm: Lp, X: Array, y: Array) -> tuple[Array, Array, int, Outcome]:
    """(beta, dual, iterations, outcome) for X of full row rank and y of unit scale.

    Made for p between 1.05 and 4; beyond, the certificate decides what the outcome says.
    """
    if not y.any():
        zero = Outcome(Kind.SOLVED, "y = 0: beta = 0 is the only minimiser")
        return np.zeros(X.shape[1]), np.zeros(len(X)), 0, zero
    nu, steps = Hessian(X, np.ones(X.shape[1])).solve(y), 0
    for p in stages(norm.p):
        nu, used = newton(Lp(p), X, y, nu)
        steps += used
    outcome = Outcome(Kind.SOLVED, "Newton's method on the dual came to rest")
    return norm.primal_of(nu @ X), nu, steps, outcome


def stages(p: float) -> list[float]:
    """Exponents from near 2 to p, geometric in p - 1."""
    count = max(1, int(np.ceil(abs(np.log(p - 1)) / np.log(STAGE))))
    return [*(float(1 + (p - 1) ** (k / count)) for k in range(1, count)), p]


def newton(norm: Lp, X: Array, y: Array, nu: Array) -> tuple[Array, int]:
    """The dual solution for one exponent, from a guess, and the steps taken."""
    s = nu @ X
    nu = nu * float((nu @ y / (s @ norm.primal_of(s))) ** (norm.p - 1))  # best along its own ray
    s, best, error, steps = nu @ X, nu, np.inf, 0
    while steps < STEPS:
        steps += 1
        with np.errstate(invalid="ignore"):
            residual = X @ norm.primal_of(s) - y
        size = float(np.abs(residual).max())
        gained = size < 0.5 * error
        if size < error:
            best, error = nu, size
        if not np.isfinite(size) or size < 1e-14 or (size < 1e-11 and not gained):
            break
        try:
            hessian = Hessian(X, tamed(norm.slope(s)), jitter=1e-15)
        except Failed:
            break
        dnu = -hessian.refine(hessian.solve(residual), residual)
        ds = dnu @ X
        factor = line(norm, s, ds, float(dnu @ y))
        nu, s = nu + factor * dnu, s + factor * ds
    return best, steps


def tamed(slope: Array) -> Array:
    """Slopes without the zero or the pole they have at s = 0."""
    known = slope[np.isfinite(slope)]
    return np.clip(slope, 1e-13 * float(known.max()), 1e13 * float(np.median(known)))


def line(norm: Lp, s: Array, ds: Array, along: float) -> float:
    """The zero of the dual's derivative along a direction; it only costs the coordinates."""

    def derivative(factor: float) -> float:
        slope = float(ds @ norm.primal_of(s + factor * ds)) - along
        return slope if np.isfinite(slope) else np.inf

    low, high = 0.0, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        while derivative(high) < 0 and high < 1e3:
            low, high = high, 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if derivative(middle) < 0 else (low, middle)
            if high - low < 1e-3 * high:
                break
    # close to the solution the derivative is rounding; a full Newton step is right there
    return 1.0 if abs(high - 1) < 0.05 else high
