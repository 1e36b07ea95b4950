"""argmin |beta|_p under X beta = y for p > 1: Newton's method with exact line searches.

How it works. The inverse gradient is b(s) = sign(s) |s|^(1/(p-1)). Below p = 2 Newton's method
solves X b(X^T nu) = y in the dual: s = sign(beta) |beta|^(p-1) has no kink at beta = 0 there. Above
p = 2 the s of a coordinate that is a little shorter than the longest underflows, so the iteration
is on beta itself, along moves with X move = 0, in units of the longest coordinate.

The exponent moves from 2, where the answer is least squares, to p in stages that are geometric in
p - 1, each from the answer of the last. Far from the answer Newton's step on a power is too long or
too short by a factor that depends on p. The derivative along a direction costs one pass over the
coordinates and the function is convex, so the best length is found by bisection. Close to the
answer that derivative is rounding, and a full step is taken.

Pitfalls. The slope of a coordinate has a zero at 0 below p = 2 and its curvature has one above:
both have a floor relative to the largest, which does not move the solution, only the steps. After
each primal step the fit is restored, because moves keep X beta only to rounding. The fall of the
value is quadratic in what is missing, so 1e-28 is the accuracy of a predictor right to 1e-14.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penchant.arguments import Array
from penchant.limits import Turns, check_time
from penchant.records import Kind, Outcome
from penchant.regularizers.lp import Lp
from penchant.solvers.homotopy import Graded

STEPS = 100  # per stage
STAGE = 1.5  # p - 1 moves from 1 by at most this factor a stage
EXACT, LOOSE = 1e-28, 1e-9  # relative falls of the value that end the last stage and the others
LEAST = 1e-200  # slope of a coordinate below p = 2, relative to the largest: it has a zero at 0
FLAT = 1e-16  # least curvature of a coordinate, relative to the longest one


def solve(norm: Lp, X: Array, y: Array) -> tuple[Array, Array, int, Outcome]:
    """(beta, dual of the norm, iterations, outcome) for X of full row rank and y of unit scale."""
    if not y.any():
        zero = Outcome(Kind.SOLVED, "y = 0: beta = 0 is the only minimiser")
        return np.zeros(X.shape[1]), np.zeros(len(X)), 0, zero
    nu, steps = Graded(X, np.ones(X.shape[1])).solve(y), 0
    beta = nu @ X
    for p in stages(norm.p):
        if p < 2:
            nu, used = newton(Lp(p), X, y, nu)
        else:
            beta, nu, used = primal_newton(p, X, y, beta, EXACT if p == norm.p else LOOSE)
        steps += used
    if norm.p < 2:
        beta = norm.primal_of(nu @ X)
        nu = nu * np.exp((1 - norm.p) * log_norm(norm.p, beta))
    return beta, nu, steps, Outcome(Kind.SOLVED, "Newton's method came to rest")


def log_norm(p: float, beta: Array) -> float:
    size = float(np.abs(beta).max())
    with np.errstate(under="ignore"):
        return float(np.log(size) + np.log(np.sum((np.abs(beta) / size) ** p)) / p)


def stages(p: float) -> list[float]:
    """Exponents from near 2 to p, geometric in p - 1."""
    count = max(1, int(np.ceil(abs(np.log(p - 1)) / np.log(STAGE))))
    return [*(float(1 + (p - 1) ** (k / count)) for k in range(1, count)), p]


def primal_newton(
    p: float, X: Array, y: Array, beta: Array, enough: float
) -> tuple[Array, Array, int]:
    """(beta, dual of the norm, steps) for one exponent above 2, from a guess that fits y."""
    last, steps = np.inf, 0
    while steps < STEPS:
        check_time()
        steps += 1
        size = float(np.abs(beta).max())
        z = beta / size
        with np.errstate(under="ignore"):
            soft = 1 / np.maximum(np.abs(z) ** (p - 2), FLAT)
            gradient = np.sign(z) * np.abs(z) ** (p - 1)
            total = float(np.abs(gradient) @ np.abs(z))
        factor = Graded(X, soft)
        # (p - 1) move / soft + gradient = (p - 1) X^T nu, X move = 0
        pull = soft * gradient / (p - 1)
        nu = factor.solve(X @ pull)
        move = soft * (nu @ X) - pull
        move -= soft * (factor.solve(X @ move) @ X)
        fall = -float(gradient @ move) / total
        # the fall is quadratic in what is missing: below 1e-12 full steps gain digits to the end
        if not np.isfinite(fall) or fall <= enough or (fall < 1e-12 and fall > 0.7 * last):
            break
        slope = slope_along(p, z, move)
        full = fall < 1e-12 and slope(1.0) <= 10 * abs(slope(0.0))  # more is no rounding
        length = 1.0 if full else line(slope)
        z, last = z + length * move, fall
        z += soft * (factor.solve(y / size - X @ z) @ X)  # what rounding took from the fit
        beta = size * z
    unit = np.exp((1 - p) * (log_norm(p, beta) - np.log(size)))
    return beta, (p - 1) * unit * nu, steps


def slope_along(p: float, z: Array, move: Array) -> Callable[[float], float]:
    """The derivative of |z + factor move|_p^p along a direction, up to a positive factor."""

    def derivative(factor: float) -> float:
        at = z + factor * move
        with np.errstate(under="ignore"):
            shares = (np.abs(at) / np.abs(at).max()) ** (p - 1)
        return float(move @ (np.sign(at) * shares))

    return derivative


def newton(norm: Lp, X: Array, y: Array, nu: Array) -> tuple[Array, int]:
    """The dual solution for one exponent below 2, from a guess, and the steps taken."""
    s = nu @ X
    part = float(nu @ y / (s @ norm.primal_of(s)))
    if part > 0:  # a guess of the wrong sign has no best point on its own ray
        nu = nu * part ** (norm.p - 1)
    s, best, error, steps = nu @ X, nu, np.inf, 0
    while steps < STEPS:
        check_time()
        steps += 1
        with np.errstate(invalid="ignore"):
            residual = X @ norm.primal_of(s) - y
        size = float(np.abs(residual).max())
        gained = size < 0.5 * error
        if size < error:
            best, error = nu, size
        if not np.isfinite(size) or size < 1e-14 or (size < 1e-11 and not gained):
            break
        slope = norm.slope(s)
        dnu = -Graded(X, np.maximum(slope, LEAST * slope.max())).solve(residual)
        if not np.isfinite(dnu).all():
            break
        ds = dnu @ X
        factor = line(dual_slope_along(norm, s, ds, float(dnu @ y)))
        nu, s = nu + factor * dnu, s + factor * ds
    return best, steps


def dual_slope_along(norm: Lp, s: Array, ds: Array, along: float) -> Callable[[float], float]:
    """The derivative of the dual along a direction, in one pass over the coordinates."""

    def derivative(factor: float) -> float:
        slope = float(ds @ norm.primal_of(s + factor * ds)) - along
        return slope if np.isfinite(slope) else np.inf

    return derivative


def line(derivative: Callable[[float], float]) -> float:
    """The zero of a convex function's derivative along a direction."""
    low, high = 0.0, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        turns = Turns(64, "the bracket of a line search")
        while derivative(high) < 0 and high < 1e3:
            turns.take()
            low, high = high, 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if derivative(middle) < 0 else (low, middle)
            if high - low < 1e-3 * high:
                break
    # close to the solution the derivative is rounding; a full Newton step is right there
    return 1.0 if abs(high - 1) < 0.05 else high
