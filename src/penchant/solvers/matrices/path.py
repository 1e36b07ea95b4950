"""The minimiser of a spectral regularizer followed in its scale by Newton's method on its dual.

How it works. Q of the singular values (docs/theory section 17) under A(M) = y has the minimiser
M = U b(s) V^T, where U s V^T is the singular value decomposition of S = A^T nu and b the law of
`continuation`. So the equations are A(U b(s) V^T) = y in one number nu_n per measurement; their
Hessian is A DM A^T with DM the derivative of the map from S to M, diagonal in the singular bases
(`state`). As there, m = log mu falls from the kernel regime along the tangent d nu/dm = -H^-1 y,
Newton's method corrects, and its line search uses slopes of the convex dual alone.

What differs from vectors: the bases turn with nu, so every Newton step has a Hessian of its own.
In exchange a scale that is only passed need not be exact (PASSING), since the next one corrects it:
at depth 2 vanishing singular values fall by a factor e in a Newton step, and are not waited for.

Pitfalls. The slopes differ by many decades once the rank is low. Cholesky's factor of the Hessian
is used where its pivots allow, and else a QR factor of the weighted rows, the heavy ones first and
the columns in the order of a pivoted Cholesky factorization. Slopes below rounding have a floor.
Then no step of S changes what they should fit, so at the end M itself is corrected by its linear
change, and the last digits by the least change of M (`corrected`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy

from penchant.arguments import Array
from penchant.limits import Turns, check_time
from penchant.solvers.continuation import Failed
from penchant.solvers.matrices.measurements import Entries, Measurements
from penchant.solvers.matrices.state import DualState, Law, Power

SQUARED = 1e-10  # relative size of Cholesky pivots above which the Gram matrix is good enough
KERNEL = 0.1  # singular values of S where the walk begins: b is nearly linear there
LINEAR = 20.0  # above the start in log mu: from there on b is linear to the last digit
PASSING = 0.1  # relative size of the last Newton step at a scale that is only passed
EXACT = 1e-15  # misfit at the target below which nothing is left to do
BUDGET = 600  # Newton steps a walk may take


class FactoredHessian:
    """A factor R of A DM A^T = R^T R, by Cholesky where that is accurate, else by QR."""

    def __init__(self, state: DualState):
        gram = barrier_gram(state)
        if gram is not None and self.cholesky(gram):
            return
        rows, slopes = weighted(state)
        rows *= np.sqrt(slopes)
        gram = scipy.linalg.blas.dsyrk(1.0, rows.T, trans=1, lower=0)
        if not self.cholesky(gram):
            self.triangular(gram, rows[:, np.argsort(-slopes, kind="stable")])

    def cholesky(self, gram: Array) -> bool:
        self.order = np.arange(len(gram))
        self.R, failed = scipy.linalg.lapack.dpotrf(gram, lower=0)
        sizes = self.R.diagonal()
        return not failed and bool(sizes.min() ** 2 > SQUARED * sizes.max() ** 2)

    def triangular(self, gram: Array, rows: Array) -> None:
        """The factor by QR, its columns in the order of a pivoted Cholesky factorization."""
        _, order, _, _ = scipy.linalg.lapack.dpstrf(gram, lower=0)
        self.order = order - 1
        (R,) = scipy.linalg.qr(rows[self.order].T, mode="r", check_finite=False)
        self.R = R[: len(rows)]

    def solve(self, right: Array) -> Array:
        triangular = scipy.linalg.solve_triangular
        inner = triangular(self.R, right[self.order], trans=1, check_finite=False)
        solution = np.empty_like(right)
        solution[self.order] = triangular(self.R, inner, check_finite=False)
        return solution


def barrier_gram(state: DualState) -> Array | None:
    """The Hessian for single entries and b(s) = 2 mu s/(1 - s^2), where two small matrices do.

    DM along dS is 2 mu (P dS R + K dS^T K) with P = (1 - S S^T)^-1, R = (1 - S^T S)^-1, K = S R.
    """
    at = state.at
    if not isinstance(at, Entries) or state.law != Power(1.0):
        return None
    U, s, V = state.factors
    grown = 1 / ((1 - s) * (1 + s))
    P, R = ((W * np.concatenate([grown, np.ones(len(W) - len(s))])) @ W.T for W in (U, V))
    K = (U[:, : len(s)] * (s * grown)) @ V[:, : len(s)].T
    crossed = K[np.ix_(at.row, at.column)]
    gram = P[np.ix_(at.row, at.row)] * R[np.ix_(at.column, at.column)] + crossed * crossed.T
    gram *= 2 * np.exp(state.m)
    gram[np.diag_indices_from(gram)] += state.floor()
    return gram


def weighted(state: DualState) -> tuple[Array, Array]:
    """Coordinates of all X_n in which the derivative of M is diagonal, and that diagonal."""
    U, s, V = state.factors
    k, spectrum = len(s), state.spectrum
    turned = state.at.rotated(U, V)
    i, j = np.triu_indices(k, 1)
    upper, lower = turned[:, i, j], turned[:, j, i]
    parts = [
        np.diagonal(turned, axis1=1, axis2=2),
        (upper + lower) / np.sqrt(2),
        (upper - lower) / np.sqrt(2),
        turned[:, k:, :k].reshape(len(turned), -1),
        turned[:, :k, k:].reshape(len(turned), -1),
    ]
    slopes = [
        spectrum.differences.diagonal(),
        spectrum.differences[i, j],
        spectrum.sums[i, j],
        np.tile(spectrum.ratios, len(U) - k),
        np.repeat(spectrum.ratios, len(V) - k),
    ]
    return np.hstack(parts), np.maximum(np.concatenate(slopes), state.floor())


def newton(
    state: DualState, close: float, misfit: float, budget: int
) -> tuple[DualState, FactoredHessian, int]:
    """(state, Hessian there or just before, steps) once a step is relatively below `close`."""
    last = np.inf
    for step in range(1, budget + 1):
        check_time()
        hessian = FactoredHessian(state)
        if np.abs(state.misfit).max() <= misfit:
            return state, hessian, step
        dnu = hessian.solve(state.misfit)
        size = state.relative(dnu)
        if not np.isfinite(size):
            raise Failed("a Newton step overflowed")
        if last < 0.1 and size > 0.5 * last and np.abs(state.misfit).max() < state.rounding():
            return state, hessian, step
        done = size < close and state.exact_slopes()
        state, last = search(state, dnu), size
        if done:
            return state, hessian, step
    if close < 1e-3 and last < 0.1:  # the certificate measures how close this is
        return state, hessian, budget
    raise Failed(f"{budget} Newton steps did not converge")


def search(state: DualState, dnu: Array) -> DualState:
    """A point along the Newton direction where the convex dual has ceased to fall steeply."""
    start = float(dnu @ state.misfit)
    factor = 1.0
    for _ in range(40):
        trial = state.moved(factor * dnu)
        if trial.inside():
            with np.errstate(over="ignore", invalid="ignore"):
                end = float(dnu @ trial.misfit)
            if np.isfinite(end) and end >= -0.9 * abs(start):
                return trial
        factor *= 0.4
    raise Failed("the line search found no descent")


def corrected(state: DualState, hessian: FactoredHessian) -> Array:
    """M with A(M) = y to rounding: b(S) and its linear change for a step of S below rounding."""
    at, matrix = state.at, state.matrix
    for _ in range(3):
        dnu = hessian.solve(at.y - at.apply(matrix))
        matrix = matrix + state.derivative(at.adjoint(dnu))
    # what no step of S can mend, because its slope is below rounding
    return matrix + at.adjoint(at.least(at.y - at.apply(matrix)))


class WalkPoint(NamedTuple):
    """A point of the walk with a Hessian from there or nearby, and the Newton steps that led here.

    Steps towards scales that were not reached, and tried again nearer, do not count.
    """

    state: DualState
    hessian: FactoredHessian
    spent: int


def descend(
    at: Measurements, law: Law, target: float, close: float, longest: float = np.inf
) -> Iterator[WalkPoint]:
    """Stops from the kernel regime down to m = log mu = target, the last one exact to `close`."""
    nu = at.least(at.y)
    size = float(np.linalg.norm(at.adjoint(nu), 2))
    m = law.kernel_level(size, KERNEL)
    nu = nu * (KERNEL / size * np.exp(min(m - target, 0.0)))
    m, step = max(m, target), -min(longest, 1.0)
    stop = arrive(DualState(at, law, m, nu), close if m == target else PASSING, 0)
    yield stop
    turns = Turns(100_000, "the path in log mu")
    while m > target:
        turns.take()
        ahead = max(m + step, target)
        try:
            guess = predicted(stop, ahead)
            reached = arrive(guess, close if ahead == target else PASSING, stop.spent)
        except Failed as reason:
            step /= 3
            if step > -1e-3:
                raise Failed(f"{reason} at log mu = {m:.4g}") from None
            continue
        step = max(step * (2.5 if reached.spent - stop.spent <= 3 else 1.0), -longest)
        stop, m = reached, ahead
        yield stop
        if stop.spent > BUDGET:
            raise Failed(f"{BUDGET} Newton steps were spent at log mu = {m:.4g}")


def kernel_level(at: Measurements, law: Law) -> float:
    return law.kernel_level(float(np.linalg.norm(at.adjoint(at.least(at.y)), 2)), KERNEL)


def predicted(stop: WalkPoint, m: float) -> DualState:
    """A guess at the scale m along the tangent d nu/d m = -H^-1 y."""
    state = stop.state
    dnu = -state.law.stretch(m - state.m) * stop.hessian.solve(state.at.y)
    guess = DualState(state.at, state.law, m, state.nu + dnu)
    if not guess.inside():
        raise Failed("the prediction left the domain")
    return guess


def arrive(guess: DualState, close: float, spent: int) -> WalkPoint:
    misfit, budget = (guess.law.negligible, 8) if close == PASSING else (EXACT, 40)
    state, hessian, steps = newton(guess, close, misfit, budget)
    return WalkPoint(state, hessian, spent + steps)
