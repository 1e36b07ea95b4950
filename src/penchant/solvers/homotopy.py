"""argmin of any separable regularizer under X beta = y: Newton's method on X b(X^T nu) = y.

How it works. b is the inverse gradient of the regularizer (docs/theory section 10), known by its
values and slopes alone, and it has no scale that could be followed as in `continuation`. So the
targets are followed instead: they move from what the start reaches, y0 = X b(0), to y. A step of
the targets is predicted along the tangent H^-1 (y - y0), H = X diag(b') X^T, and corrected by
Newton's method to a loose accuracy; the last one, at y itself, goes on as long as it gains digits.

The dual function is convex and its gradient is the residual. So its slope along a direction is
monotone, and a line search needs slopes and no values: a step is short enough where the slope has
not turned far beyond zero.

Pitfalls. b may grow exponentially or have an end, so a tangent step that multiplies the largest
slope by 100 is refused before it is corrected. Slopes over many decades make the Cholesky factor of
H useless: `Graded` then takes a QR factor of the columns, large ones first, which is stable for
rows of graded sizes. l_p norms have slope 0 or infinity at s = 0 and begin at a multiple of the
dual of l2. A walk that fails may have no solution to go to: where b has ends, a linear program says
whether any predictor inside them fits y.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack, qr, solve_triangular

from penchant.arguments import Array
from penchant.limits import Turns, check_time
from penchant.records import Kind, Outcome
from penchant.regularizers.derive.line_walk import LineWalk
from penchant.regularizers.regularizer import PlainWalk, Regularizer
from penchant.solvers.sparse_rows import SparseRows, gram

Walk = PlainWalk | LineWalk
EXACT = 1e-13  # relative residual to reach at y
LOOSE = 1e-3  # and on the way, relative to the way gone so far
NEWTON_STEPS = 3000  # in total
CORRECTIONS = 8  # for one step of the targets
FINAL_STEPS = 40
WILD = 100.0  # growth of the largest slope that a tangent step may cause
GRADED = 1e-8  # spread of the N largest slopes beyond which Cholesky's factor is not trusted
PIVOT = 1e-10  # and spread of its own pivots: heavy columns may depend on each other
JITTER = 1e-15
HEAVIEST = 4  # columns for each row, of sparse rows whose slopes spread too far
NEAR = 0.9  # part of the way from which on Newton's method may reach y itself
SHORTEST = 1e-10  # step of the targets, relative to the way gone so far


def solve(regularizer: Regularizer, X: Array, y: Array) -> tuple[Array, Array, int, Outcome]:
    """(beta, dual, Newton steps, outcome); X must have independent rows of comparable size."""
    if not len(X):
        free = Outcome(Kind.SOLVED, "no row constrains the predictor: it stays at the start")
        return begin(regularizer, X, y)[1].beta, np.zeros(0), 0, free
    path = HomotopyState(regularizer, X, y)
    failure = path.follow()
    # near the end Newton's method may reach y all the same, and the certificate decides
    if failure is None or path.done > NEAR:
        outcome = path.finish()
    else:
        outcome = path.gave_up(*failure)
    return path.walk.beta, path.nu, path.spent, outcome


class HomotopyState:
    """The state of the solver: the dual, the point on the graph of b, and the work done."""

    def __init__(self, regularizer: Regularizer, X: Array, y: Array) -> None:
        self.regularizer, self.X, self.y = regularizer, X, y
        self.nu, self.walk = begin(regularizer, X, y)
        self.origin = X @ self.walk.beta
        self.gap = y - self.origin
        self.spent = 0
        self.done = 0.0  # fraction of the way from origin to y

    def follow(self) -> tuple[Kind, str] | None:
        """Walks the targets up to y; how and why that failed, or None."""
        step = 1.0
        turns = Turns(100_000, "the homotopy")
        while self.done < 1 and self.gap.any():
            turns.take()
            step = min(step, 1 - self.done)
            first = step * Graded(self.X, self.walk.slope).solve(self.gap)
            if not np.isfinite(first).all():
                return Kind.STALLED, "the Hessian became singular"
            walk, spent = self.walk.moved(first @ self.X), self.spent
            usable = np.isfinite(walk.beta).all() and not np.isnan(walk.slope).any()
            usable = usable and walk.slope.max() <= WILD * self.walk.slope.max()
            if usable and self.corrected(self.nu + first, walk, self.done + step):
                self.done += step
                step *= 2 if self.spent - spent <= 3 else 1 if self.spent - spent <= 6 else 0.5
            else:
                step /= 4
            if self.spent > NEWTON_STEPS:
                return Kind.BUDGET_SPENT, f"{self.spent} Newton steps were not enough"
            if step < max(SHORTEST * self.done, 1e-300):
                return Kind.STALLED, "the steps of the targets shrank to nothing"
        return None

    def corrected(self, nu: Array, walk: Walk, fraction: float) -> bool:
        """Whether Newton's method from (nu, walk) solves for this fraction of the targets."""
        target = self.origin + fraction * self.gap
        goal = LOOSE * fraction * np.abs(self.gap).max()
        for _ in range(CORRECTIONS):
            check_time()
            residual = target - self.X @ walk.beta
            if np.abs(residual).max() <= goal:
                self.nu, self.walk = nu, walk
                return True
            self.spent += 1
            move = searched(self.X, walk, target, residual, halvings=6)
            if move is None:
                return False
            nu, walk = nu + move[0], move[1]
        return False

    def finish(self) -> Outcome:
        """Newton's method at y itself, as long as it gains digits."""
        size = max(float(np.abs(self.y).max()), float(np.abs(self.origin).max())) or 1.0
        nu, walk, error = self.nu, self.walk, np.inf
        for _ in range(FINAL_STEPS):
            residual = self.y - self.X @ walk.beta
            now = float(np.abs(residual).max()) / size
            if now < error:
                self.nu, self.walk = nu, walk
            if now <= EXACT or now > 0.5 * error:
                error = min(now, error)
                break
            error = now
            self.spent += 1
            move = searched(self.X, walk, self.y, residual, halvings=30)
            if move is None:
                break
            nu, walk = nu + move[0], move[1]
        # the certificate decides whether this is good enough
        return Outcome(Kind.SOLVED, f"Newton's method came to rest after {self.spent} steps")

    def gave_up(self, kind: Kind, reason: str) -> Outcome:
        """The outcome of a failed walk: y may be out of reach altogether."""
        way = f"{reason} after {self.done:.6g} of the way to the targets"
        if margin(self.regularizer, self.X, self.y) <= 0:
            return Outcome(
                Kind.INFEASIBLE,
                f"no predictor inside the range of {self.regularizer} fits the targets; {way}",
            )
        return Outcome(
            kind, f"{way}; they may be too large, or lead to the edge of what the map can do"
        )


def begin(regularizer: Regularizer, X: Array, y: Array) -> tuple[Array, Walk]:
    """A dual vector and its walk where b is smooth: s = 0 if it can be, or along the l2 fit."""
    dimension = X.shape[1]
    if hasattr(regularizer, "walk"):  # a regularizer that resolves more digits than s
        return np.zeros(len(X)), regularizer.walk(dimension)
    walk = PlainWalk(regularizer, np.zeros(dimension))
    if not y.any() or np.all((walk.slope > 0) & np.isfinite(walk.slope)):
        return np.zeros(len(X)), walk
    # l_p has slope 0 or infinity at 0: take the best multiple of the dual of l2 instead
    nu = np.linalg.lstsq(gram(X), y, rcond=None)[0]
    s, reward = nu @ X, float(nu @ y)
    low, high = -200.0, 200.0
    for _ in range(60):
        middle = (low + high) / 2
        with np.errstate(all="ignore"):
            pull = float(s @ regularizer.primal_of(np.exp(middle) * s))
        low, high = (middle, high) if pull < reward else (low, middle)
    return np.exp(low) * nu, PlainWalk(regularizer, np.exp(low) * s)


def searched(
    X: Array, walk: Walk, target: Array, residual: Array, halvings: int
) -> tuple[Array, Walk] | None:
    """(step in nu, walk after it) of a damped Newton step; None if no step helps."""
    step = Graded(X, walk.slope).solve(residual)
    gain = float(residual @ step)
    if not np.isfinite(step).all() or gain <= 0:
        return None
    ds, t = step @ X, 1.0
    for _ in range(halvings + 1):
        after = walk.moved(t * ds)
        with np.errstate(over="ignore", invalid="ignore"):  # a wild trial step is then refused
            turned = float((target - X @ after.beta) @ step)
        # the slope of the dual along the step, `gain` at its start, may not turn far beyond zero
        if np.isfinite(after.beta).all() and turned >= -0.5 * gain:
            return t * step, after
        t *= 0.5
    return None


class Graded:
    """A factor of X diag(slope) X^T, also for slopes that differ by many orders of magnitude."""

    def __init__(self, X: Any, slope: Array) -> None:
        self.X, self.top = X, float(slope[np.isfinite(slope)].max(initial=0.0))
        self.cholesky: Array | None = None
        self.singular = self.top == 0
        if self.singular:
            return
        self.weight = np.minimum(slope / self.top, 1.0)
        sparse = isinstance(X, SparseRows)
        order = np.arange(0) if sparse else np.argsort(-self.weight)
        if sparse or self.weight[order[min(len(X), len(order)) - 1]] > GRADED:
            root = np.sqrt(self.weight)
            matrix = X.gram(self.weight) if sparse else (X * root) @ (X * root).T
            matrix[np.diag_indices_from(matrix)] *= 1 + JITTER
            factor, failed = lapack.dpotrf(matrix, lower=1)
            pivots = factor.diagonal()
            if not failed and pivots.min() ** 2 > PIVOT * pivots.max() ** 2:
                self.cholesky = factor
                return
        weight = self.weight
        if sparse and X.dense is not None:
            X, order = X.dense, np.argsort(-weight)
        elif sparse:  # beside the heaviest columns the others add nothing
            some = X.heaviest(np.log(np.maximum(weight, 1e-300)), HEAVIEST * len(X))
            X, weight, order = X[:, some], weight[some], np.argsort(-weight[some])
        # Householder QR with large rows first and pivoting is stable for graded rows
        rows = (X * np.sqrt(weight)).T[order]
        triangle, self.pivots = qr(rows, mode="r", pivoting=True)
        self.triangle = triangle[: len(X)]
        self.singular = not np.diag(self.triangle).all()

    def solve(self, right: Array) -> Array:
        """The solution; not a number where the matrix is singular."""
        if self.singular:
            return np.full(len(self.X), np.nan)
        if self.cholesky is not None:
            step = lapack.dpotrs(self.cholesky, right, lower=1)[0]
            rest = right - self.X @ (self.weight * (step @ self.X))
            return (step + lapack.dpotrs(self.cholesky, rest, lower=1)[0]) / self.top
        step = np.empty(len(self.X))
        with np.errstate(all="ignore"):
            inner = solve_triangular(
                self.triangle, right[self.pivots], trans="T", check_finite=False
            )
            step[self.pivots] = solve_triangular(self.triangle, inner, check_finite=False)
        return step / self.top


def margin(regularizer: Regularizer, X: Array, y: Array) -> float:
    """How far inside its range a predictor with X beta = y can stay; inf if there are no ends."""
    from scipy.optimize import linprog

    dimension = X.shape[1]
    low, high = predictor_range(regularizer, dimension)
    bounded = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
    if not bounded[0].size and not bounded[1].size:
        return np.inf
    if isinstance(X, SparseRows):
        return np.inf  # the linear program has a dense block
    size = float(np.abs(y).max()) or 1.0
    rows, right = [], []
    for sign, which, end in ((-1.0, bounded[0], low), (1.0, bounded[1], high)):
        block = np.zeros((which.size, dimension + 1))
        block[np.arange(which.size), which] = sign
        block[:, -1] = 1.0
        rows.append(block)
        right.append(sign * end[which] / size)
    result = linprog(
        np.append(np.zeros(dimension), -1.0),  # the largest margin
        A_ub=np.vstack(rows),
        b_ub=np.concatenate(right),
        A_eq=np.column_stack([X, np.zeros(len(X))]),
        b_eq=y / size,
        bounds=[(None, None)] * dimension + [(None, 1.0)],
    )
    if result.status != 0:
        return np.inf  # the solver did not decide
    best = float(-result.fun)
    return size * best if best > 1e-9 else min(size * best, 0.0)


def predictor_range(regularizer: Regularizer, dimension: int) -> tuple[Array, Array]:
    """(lowest, highest) predictor of every coordinate: as the regularizer says, or probed.

    A limit of b(s) counts as infinite unless it stopped moving.
    """
    if hasattr(regularizer, "range"):
        low, high = regularizer.range
        return np.broadcast_to(low, dimension), np.broadcast_to(high, dimension)
    ends = []
    for sign in (-1.0, 1.0):
        with np.errstate(all="ignore"):
            far, farther = (
                regularizer.primal_of(np.full(dimension, sign * size)) for size in (1e100, 1e200)
            )
            settled = np.isfinite(farther) & (np.abs(farther - far) <= 1e-9 * np.abs(farther))
        ends.append(np.where(settled, farther, sign * np.inf))
    return ends[0], ends[1]
