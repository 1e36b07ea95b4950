"""The straight pieces of steepest descent of |a|_1 on {a : X a = X start}, in two arithmetics.

How it works (docs/theory section 22). The velocity is v = -P s: P projects on the kernel of X, s
is the subgradient of |a|_1 that makes it shortest (`bounded.least` over the entries of s where a
rests). A piece ends when an entry of a vanishes. Only the rows' span matters, so rows are divided
by powers of two.

- `FloatKernel` projects by orthonormal rows; the rounding of a projection grows with the condition
  of the rows. A velocity below its rounding counts as none, and what it could have moved is summed:
  the doubt of the walk. An entry is set to zero only where it is below that, or arrives there, so
  that X v = 0 holds to rounding.
- `WholeKernel` projects in integers. It serves where the doubt is large: rows that nearly depend on
  each other, signs that nearly are a combination of rows, so that the flow creeps.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg.lapack import dgeqp3, dorgqr, dpotrf, dpotrs

from penchant.arguments import Array
from penchant.limits import TimeLimit
from penchant.solvers.bounded import BoundedMinimum, least
from penchant.solvers.data import rows_of_order_one
from penchant.solvers.exact import independent_rows
from penchant.solvers.limits import rational
from penchant.solvers.limits.jumps import CLEAR, EPS, TIE, UNIT

PIECES = 100  # per coordinate, far more than were ever needed


class Pieces(NamedTuple):
    """Times and points of the corners, the subgradient after each, and what is known of them."""

    tau: Array
    points: Array
    dual: Array
    doubt: float  # what rounding may have done to the points and times, relative
    ended: bool  # whether the last point rests


class Kernel(Protocol):
    """The data of a walk in one arithmetic."""

    tie: Any  # relative difference of two waits that are one
    begin: Array
    doubt: float

    def rests(self, s: Array, rests: Array) -> Any: ...
    def velocity(self, s: Array) -> tuple[Array, Array]: ...
    def rounded(self, a: Array) -> Array: ...
    def pieces(self, corners: list[Any], **known: Any) -> Pieces: ...


def walk(data: Kernel, limit: TimeLimit) -> Pieces:
    """All pieces from the start to where nothing moves."""
    a, tau, late = data.begin, 0, 0.0
    free: Any = np.zeros(len(a), dtype=bool)
    s, sure = np.where(a == 0, 1, np.sign(a)), True
    doubt, corners = np.zeros_like(a), []
    falling = free
    for _ in range(PIECES * len(a)):
        s, free, settled, (v, noise) = _shortest(data, s, free, a == 0)
        sure &= settled
        v[free | (np.abs(v) <= noise)] = 0
        corners.append((tau, a, s))
        falling = a * v < 0
        if not falling.any() or limit.spent:
            break
        waits = -a[falling] / v[falling]
        wait = waits.min()
        doubt = doubt + np.where(free, 0, wait * noise)
        unsure = doubt[falling] / np.abs(v[falling])
        first = int(waits.argmin())
        arrived = waits - wait <= wait * data.tie + unsure + unsure[first]
        places = np.flatnonzero(falling)[arrived]
        a = data.rounded(a + wait * v)
        a[places], doubt[places] = 0, 0
        tau = tau + wait
        late = max(late, float(unsure[arrived].max() / tau))
    ended = not falling.any()
    total = max(_relative(doubt, corners), late, data.doubt) if sure else math.inf
    return data.pieces(corners, doubt=total, ended=ended)


def _shortest(
    data: Kernel, s: Array, free: Any, rests: Any
) -> tuple[Array, Any, bool, tuple[Array, Array]]:
    """The subgradient that makes the velocity shortest, where it lies inside its bounds, if that
    is sure, and the velocity with its rounding.
    """
    s, free = s.copy(), free & rests
    if not rests.any():
        return s, free, True, data.velocity(s)
    bound, problem = np.full_like(s[rests], 1), data.rests(s, rests)
    minimum: BoundedMinimum = least(problem, s[rests], free[rests], -bound, bound)
    s[rests], free[rests] = minimum.z, minimum.free
    return s, free, minimum.sure, problem.seen


def _relative(doubt: Array, corners: list[Any]) -> float:
    """The largest doubt of an entry, in units of its largest value on the way."""
    sizes = np.abs(np.array([a for _, a, _ in corners])).max(axis=0).astype(float)
    doubts, most = doubt.astype(float), float(sizes.max(initial=0.0)) or 1.0
    return float((doubts / np.where(sizes > 0, sizes, most)).max(initial=0.0))


class FloatKernel:
    """An orthonormal basis of the rows, and the start in units of a power of two."""

    tie, doubt = 16 * EPS, 0.0

    def __init__(self, X: Array, start: Array) -> None:
        self.power = int(np.frexp(np.abs(start).max())[1])
        self.begin = np.ldexp(start, -self.power)
        self.Q, triangle, _ = factored(rows_of_order_one(X), max(X.shape) * EPS)
        rank, sizes = len(triangle), np.abs(triangle.diagonal())
        if rank < len(X) and len(independent_rows(X)) != rank:
            self.doubt = math.inf  # float64 drops a row that is independent
        condition = float(sizes[0] / sizes[-1]) if rank else 1.0
        self.unit, self.squares = UNIT * condition, self.Q**2

    def rests(self, s: Array, rests: Array) -> _Rests:
        return _Rests(self, s, rests)

    def velocity(self, s: Array) -> tuple[Array, Array]:
        """-P s, and its rounding error."""
        heights = self.Q.T @ s
        noise = self.unit * np.sqrt(s**2 + self.squares @ heights**2)
        return self.Q @ heights - s, noise

    def rounded(self, a: Array) -> Array:
        return a

    def pieces(self, corners: list[Any], **known: Any) -> Pieces:
        tau, points, dual = (np.array(column, dtype=float) for column in zip(*corners, strict=True))
        with np.errstate(over="ignore", under="ignore"):
            return Pieces(np.ldexp(tau, self.power), np.ldexp(points, self.power), dual, **known)


def factored(rows: Array, dependent: float) -> tuple[Array, Array, Any]:
    """(basis, triangle, places) with rows[places] = (basis triangle)^T for independent rows.

    Below the diagonal `triangle` holds what LAPACK left there. LAPACK is called directly, since
    most problems are tiny.
    """
    if not rows.any():
        return np.zeros((rows.shape[1], 0)), np.zeros((0, 0)), np.zeros(0, dtype=int)
    factor, order, tau, _, _ = dgeqp3(rows.T)
    sizes = np.abs(factor.diagonal())
    rank = int((sizes > dependent * sizes[0]).sum())
    basis = np.asarray(dorgqr(factor[:, :rank], tau[:rank])[0])
    return basis, factor[:rank, :rank], order[:rank] - 1


def exact_basis(X: Array) -> Array:
    """An orthonormal basis of the rows: made orthogonal in integers, then rounded once.

    It serves where rows nearly depend on each other, so that float64 turns their span.
    """
    basis: list[Any] = []
    for row in rational.whole_rows(X[independent_rows(X)]):
        for other in basis:
            row = (other @ other) * row - (row @ other) * other
            row = row // math.gcd(*(int(n) for n in row))
        basis.append(row)
    columns = [rational.floats(rational.fractions(row, int(max(abs(row))))) for row in basis]
    return (
        np.array([column / np.linalg.norm(column) for column in columns])
        .reshape(len(basis), X.shape[1])
        .T
    )


class _Rests:
    """|P s|^2 / 2 as a function of the entries of s where a rests.

    Where its slopes vanish on the free entries F, s_F = Q_F h with Q_E^T Q_E h = Q_E^T s_E for the
    others E: a system as large as the rank of X.
    """

    def __init__(self, data: Any, s: Array, rests: Array) -> None:
        self.data, self.s, self.rests = data, s, rests

    def slope(self, z: Array) -> tuple[Array, Array]:
        self.seen = velocity, noise = self.data.velocity(self._with(z))
        return velocity[self.rests], noise[self.rests]

    def goal(self, z: Array, free: Any) -> Array:
        places = np.flatnonzero(self.rests)[free]
        held = np.ones(len(self.s), dtype=bool)
        held[places] = False
        Q, s = self.data.Q[held], self._with(z)[held]
        if not Q.shape[1]:  # LAPACK takes no empty matrix
            return np.zeros(len(places))
        factor, failed = dpotrf(Q.T @ Q, lower=True)
        if failed:
            self.data.doubt = math.inf
            return z[free]
        heights = np.zeros(Q.shape[1])
        goal, error = self.data.Q[places], math.inf
        for turn in range(3):
            move = dpotrs(factor, Q.T @ (s - Q @ heights), lower=True)[0]
            heights = heights + move
            if turn:
                error = np.abs(goal @ move).max()  # of what is at most 1
                if error <= CLEAR:
                    break
        self.data.doubt = max(self.data.doubt, float(error))
        return np.asarray(goal @ heights)

    def _with(self, z: Array) -> Array:
        s = self.s.copy()
        s[self.rests] = z
        return s


class WholeKernel:
    """The projection as integers over a common denominator."""

    tie, doubt = TIE, 0.0

    def __init__(self, X: Array, start: Array) -> None:
        self.X = rational.whole_rows(X[independent_rows(X)])
        gram = self.X @ self.X.T
        self.inverse, self.whole = rational.solve(gram, np.eye(len(gram), dtype=int).astype(object))
        self.begin = np.array([Fraction(float(x)) for x in start], dtype=object)

    def rests(self, s: Any, rests: Array) -> _WholeRests:
        return _WholeRests(self, s, rests)

    def velocity(self, s: Any) -> tuple[Any, Any]:
        numerators, denominator = rational.common(s)
        span = self.X.T @ (self.inverse @ (self.X @ numerators))
        velocity = rational.fractions(span - self.whole * numerators, denominator * self.whole)
        return velocity, np.zeros(len(s), dtype=int)

    def rounded(self, a: Any) -> Any:
        return np.array([rational.shortened(x) for x in a], dtype=object)

    def pieces(self, corners: list[Any], **known: Any) -> Pieces:
        columns = (np.array(column, dtype=object) for column in zip(*corners, strict=True))
        tau, points, dual = (rational.floats(numbers) for numbers in columns)
        return Pieces(tau, points, dual, **known)


class _WholeRests(_Rests):
    """The same function in integers."""

    def goal(self, z: Any, free: Any) -> Any:
        places = np.flatnonzero(self.rests)[free]
        held = np.ones(len(self.s), dtype=bool)
        held[places] = False
        X = self.data.X[:, held]
        s = np.array([int(x) for x in self._with(z)[held]], dtype=object)  # held at +-1
        heights, whole = rational.solve(X @ X.T, X @ s)
        return rational.fractions(self.data.X[:, places].T @ heights, whole)
