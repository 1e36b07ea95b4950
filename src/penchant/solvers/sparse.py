"""argmin |beta|_1 under X beta = y: the infinite-depth path, a crossover, and a uniqueness test.

How it works. As the depth grows, p = D/(D-2) tends to 1 and the minimiser of Q (docs/theory
section 5) obeys beta = up - down with up (1-s) = down (1+s) = mu: the central path of the linear
program. Mehrotra's predictor-corrector follows it in about a dozen Hessians. As soon as the duality
gap is small, the support is read off, the vertex on it is solved as a linear system and a dual
vector with |s_i| < 1 off the support proves that it is the only minimiser.

Why this way. Depth 2 approaches the least l1 norm only like 1/log(1/alpha): at log alpha = -3000 it
was 8e-4 away. The crossover needs no small mu, only the right support, and then the answer is exact
to rounding.

Pitfalls. Sizes over many decades hide the small ones behind the gap of the large ones: `finer`
takes the large coordinates out and follows the path of the rest, and `pivoted` makes pivots of the
simplex method where rounding hides even that. The minimisers may fill a face; then there is no
vertex to cross over to (`with_small_sizes` then finds the small ones), and the answer is the point
of largest entropy, which is the limit of depth 2. (Deeper nets tend to the largest sum
|beta|^(2/D) of the face, another point.) So uniqueness is tested before anything is called solved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.limits import check_time
from penchant.records import Kind, Outcome
from penchant.solvers.continuation import Failed, Hessian
from penchant.solvers.homotopy import Graded
from penchant.solvers.pivots import heaviest_columns
from penchant.solvers.sparse_rows import WIDE, SparseRows

Index = NDArray[np.intp]

STEPS = 100
PIVOTS = 30
COLUMNS = 30  # rounds in which columns of sparse data join
STRICT = 1e-9  # of 1, the largest |s_i|: a slack 1 - |s_i| above this is read as positive
HIDDEN = 1e-13  # of the largest size: what the large columns miss by more is no rounding
UNIQUE = Outcome(Kind.SOLVED, "unique vertex, certified by its dual")


@dataclasses.dataclass(frozen=True)
class Central:
    """A strictly feasible pair: beta = up - down, and s = X^T nu with slacks above = 1 - s, ..."""

    up: Array
    down: Array
    nu: Array
    above: Array
    below: Array

    @property
    def beta(self) -> Array:
        return self.up - self.down

    @property
    def value(self) -> float:
        return float(np.abs(self.beta).sum())

    @property
    def gap(self) -> float:
        """The duality gap |beta|_1 - y.nu of a primal feasible point."""
        return float(self.up @ self.above + self.down @ self.below)

    def activity(self) -> Array:
        """Size over slack: it tends to infinity on the support and to zero off it."""
        return np.maximum(self.up / self.above, self.down / self.below)

    def active(self) -> Index:
        """Coordinates whose size has outgrown their slack: the support, once the gap is small."""
        return np.flatnonzero(self.activity() > np.abs(self.beta).max())


def solve(X: Array, y: Array) -> tuple[Array, Array, int, Outcome]:
    """(beta, dual, iterations, outcome) for X of full row rank and y of unit scale."""
    if not y.any():
        zero = Outcome(Kind.SOLVED, "y = 0: beta = 0 is the only minimiser")
        return np.zeros(X.shape[1]), np.zeros(len(X)), 0, zero
    ones, step = np.ones(X.shape[1]), 0
    for point in walk(X, y, ones, ones):
        step += 1
        if point.gap < 1e-3 * point.value and (corner := crossover(X, y, point)) is not None:
            return *corner, step, UNIQUE
    if isinstance(X, SparseRows):
        return on_columns(X, y, point, step)
    for last in (finer, pivoted):
        if (corner := last(X, y, point)) is not None:
            return *corner, step, UNIQUE
    return face(X, y, point, step)


def on_columns(X: Any, y: Array, point: Central, steps: int) -> tuple[Array, Array, int, Outcome]:
    """The same on the most active columns, and on those that its dual shows to be missing."""
    some = np.sort(np.argsort(-point.activity())[: WIDE * len(X)])
    for _ in range(COLUMNS):
        inner, nu, more, outcome = solve(X[:, some], y)
        steps += more
        others = np.abs(nu @ X)
        others[some] = 0.0
        long = np.flatnonzero(others > 1 - STRICT)
        if not outcome.ok or not long.size:
            break
        some = np.union1d(some, long[np.argsort(-others[long])[: WIDE * len(X)]])
    beta = np.zeros(X.shape[1])
    beta[some] = inner
    return beta, nu, steps, outcome


def walk(X: Array, y: Array, above: Array, below: Array) -> Iterator[Central]:
    """The central path from nu = 0, where raising (lowering) a coordinate costs above (below)."""
    beta = Hessian(X, np.ones(X.shape[1])).solve(y) @ X
    lift = float(np.abs(beta).mean()) + 1e-3 * float(np.abs(beta).max())
    up, down = np.maximum(beta, 0) + lift, np.maximum(-beta, 0) + lift
    point = Central(up, down, np.zeros(len(X)), above, below)
    for _ in range(STEPS):
        check_time()
        try:
            point = centre(X, y, point)
        except Failed:
            return
        yield point
        if point.gap < 1e-14 * point.value:
            return


def centre(X: Array, y: Array, at: Central) -> Central:
    """One predictor-corrector step towards the optimum."""
    hessian = Hessian(X, at.up / at.above + at.down / at.below, jitter=1e-15)
    misfit = y - X @ at.beta

    def direction(target: float, bend_up: Array | float, bend_down: Array | float):  # type: ignore[no-untyped-def]
        pull_up = (target - bend_up) / at.above - at.up
        pull_down = (target - bend_down) / at.below - at.down
        right = misfit - X @ (pull_up - pull_down)
        dnu = hessian.refine(hessian.solve(right), right)
        ds = dnu @ X
        return pull_up + at.up * ds / at.above, pull_down - at.down * ds / at.below, dnu, ds

    dup, ddown, dnu, ds = direction(0.0, 0.0, 0.0)
    primal, dual = lengths(at, dup, ddown, ds)
    after = (at.up + primal * dup) @ (at.above - dual * ds)
    after += (at.down + primal * ddown) @ (at.below + dual * ds)
    target = at.gap / (2 * len(ds)) * float(after / at.gap) ** 3
    dup, ddown, dnu, ds = direction(target, -dup * ds, ddown * ds)
    primal, dual = (min(0.995 * length, 1.0) for length in lengths(at, dup, ddown, ds))
    up, down, nu = at.up + primal * dup, at.down + primal * ddown, at.nu + dual * dnu
    return Central(up, down, nu, at.above - dual * ds, at.below + dual * ds)


def lengths(at: Central, dup: Array, ddown: Array, ds: Array) -> tuple[float, float]:
    """The longest primal and dual steps that keep both parts and both slacks nonnegative."""
    primal = min(ratio(at.up, -dup), ratio(at.down, -ddown))
    return primal, min(ratio(at.above, ds), ratio(at.below, -ds))


def ratio(size: Array, shrink: Array) -> float:
    falling = shrink > 0
    return float((size[falling] / shrink[falling]).min(initial=1.0 / 0.995))


def crossover(X: Array, y: Array, point: Central) -> tuple[Array, Array] | None:
    """An exact vertex with its dual, or None as long as none is certified."""
    full = np.sort(np.argsort(-point.activity(), kind="stable")[: len(X)])
    for support in (full, point.active()):
        if 0 < len(support) <= len(X) and (corner := vertex(X, y, support, point.nu)) is not None:
            return corner
    return None


def vertex(X: Array, y: Array, support: Index, nu: Array) -> tuple[Array, Array] | None:
    """The fit on `support` and a dual that proves it the unique minimiser, or None."""
    columns = X[:, support]
    basis, triangle = np.linalg.qr(columns)
    sizes = np.abs(triangle.diagonal())
    if sizes.min() <= 1e-9 * sizes.max():
        return None
    values = np.linalg.solve(triangle, basis.T @ y)
    values += np.linalg.solve(triangle, basis.T @ (y - columns @ values))
    largest = np.abs(values).max()
    if (
        np.abs(columns @ values - y).max() > 1e-12 * largest
        or np.abs(values).min() < 1e-14 * largest
    ):
        return None
    nu = nu + basis @ np.linalg.solve(triangle.T, np.sign(values) - columns.T @ nu)
    s = nu @ X
    s[support] = 0
    if np.abs(s).max(initial=0.0) > 1 - STRICT:
        return None
    beta = np.zeros(X.shape[1])
    beta[support] = values
    return beta, nu


def finer(X: Array, y: Array, point: Central) -> tuple[Array, Array] | None:
    """The vertex when its sizes spread over many decades: the small ones solved apart."""
    large = point.active()
    if not 0 < len(large) < len(X):
        return None
    rest = np.setdiff1d(np.arange(X.shape[1]), large)
    outside = np.linalg.qr(X[:, large], mode="complete")[0][:, len(large) :].T
    left_over = outside @ y
    size = float(np.abs(left_over).max())
    if size == 0:
        return None
    for smaller in walk(
        outside @ X[:, rest], left_over / size, point.above[rest], point.below[rest]
    ):
        order = np.argsort(-smaller.activity(), kind="stable")[: len(outside)]
        support = np.sort(np.concatenate([large, rest[order]]))
        if (corner := vertex(X, y, support, point.nu)) is not None:
            return corner
    return None


def pivoted(X: Array, y: Array, point: Central) -> tuple[Array, Array] | None:
    """The vertex by pivots of the simplex method, where rounding hides which small sizes it has."""
    support = heaviest_columns(X, np.log(point.activity()))
    for _ in range(PIVOTS if len(support) == len(X) else 0):
        columns = X[:, support]
        values = np.linalg.solve(columns, y)
        s = np.linalg.solve(columns.T, np.sign(values)) @ X
        s[support] = 0
        entering = int(np.argmax(np.abs(s)))
        if np.abs(s[entering]) < 1 + STRICT:
            return vertex(X, y, np.sort(support), point.nu)
        shrink = np.linalg.solve(columns, X[:, entering]) * np.sign(s[entering] * values)
        with np.errstate(divide="ignore", invalid="ignore"):
            length = np.where(shrink > 0, np.abs(values) / shrink, np.inf)
        if np.isinf(length.min()):
            return None
        support[np.argmin(length)] = entering
    return None


def face(X: Array, y: Array, point: Central, steps: int) -> tuple[Array, Array, int, Outcome]:
    """What is left when there is no certified vertex: a face of minimisers, or failure."""
    if point.gap > 1e-8 * point.value:
        text = f"duality gap {point.gap / point.value:.2g} of the value after {steps} steps"
        return point.beta, point.nu, steps, Outcome(Kind.STALLED, text)
    guess, nu, support = with_small_sizes(X, y, point)
    beta = np.zeros(X.shape[1])
    beta[support], dimension = entropic(X[:, support], y, guess[support])
    if dimension == 0:
        text = "the minimiser is unique on its support, to the accuracy of the duality gap"
        return beta, nu, steps, Outcome(Kind.SOLVED, text)
    text = (
        f"the minimisers fill a face of dimension {dimension}; this is its point of largest"
        " entropy, the limit of depth-2 gradient flow"
    )
    return beta, nu, steps, Outcome(Kind.NOT_UNIQUE, text)


def with_small_sizes(X: Array, y: Array, point: Central) -> tuple[Array, Array, Index]:
    """(beta, dual, support) of a face, with the small sizes that large dependent columns hide."""
    beta, nu, support = point.beta, point.nu, point.active()
    basis, sizes, _ = np.linalg.svd(X[:, support])
    outside = basis[:, int(np.sum(sizes > 1e-9 * sizes.max(initial=0.0))) :].T
    rest, left_over = np.setdiff1d(np.arange(X.shape[1]), support), outside @ y
    size = float(np.abs(left_over).max(initial=0.0))
    if size <= HIDDEN * np.abs(beta).max() or not len(rest):
        return beta, nu, support
    try:
        path = list(
            walk(outside @ X[:, rest], left_over / size, point.above[rest], point.below[rest])
        )
    except Failed:
        path = []
    if not path:
        return beta, nu, support
    smaller = path[-1]
    beta[rest] = size * smaller.beta
    beta[support] += np.linalg.lstsq(X[:, support], y - X @ beta, rcond=1e-9)[0]
    return beta, nu + smaller.nu @ outside, np.sort(np.append(support, rest[smaller.active()]))


def entropic(X: Array, y: Array, beta: Array) -> tuple[Array, int]:
    """The point of largest entropy of the face {X beta = y, signs kept}, and its dimension."""
    _, sizes, Vt = np.linalg.svd(X)
    rank = int(np.sum(sizes > 1e-9 * sizes[0]))
    rows, dimension = Vt[:rank], X.shape[1] - rank
    beta = beta + np.linalg.lstsq(X, y - X @ beta, rcond=1e-9)[0]
    for _ in range(100 if dimension else 0):
        # Newton on sum |b| log |b| where the rows are met; 1/|b| may differ by many decades
        size = np.abs(beta)
        pull = beta * (1 + np.log(size))
        move = size * (Graded(rows, size).solve(rows @ pull) @ rows) - pull
        if not np.isfinite(move).all():
            break
        shrink = -move * np.sign(beta)
        beta = beta + min(1.0, 0.9 * ratio(size, shrink)) * move
        if np.abs(move).max() < 1e-14 * np.abs(beta).max():
            break
    return beta, dimension
