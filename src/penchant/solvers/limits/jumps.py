"""The walk from saddle to saddle of a diagonal net, in float64 or in rational numbers.

How it works. Between two jumps the dual s moves along a straight line, ds/dtau = rate X^T (y - X
beta) (docs/theory section 28), until a coordinate reaches one of its growth times, `low` or `high`;
there beta jumps to the least squares under the signs that s allows (`bounded.least`). Everything is
rational, and nothing depends on the units of the data:

- `FloatColumns` divides the columns, the labels and the growth times by powers of two, which is
  exact, and says for every slope how far rounding may have moved it. A slope below that counts as
  none. What such a slope could have moved s by is summed, and the walk ends with that sum as its
  doubt. Rows keep their units, since they are the weights of the loss.
- `WholeColumns` has no rounding. It serves where the doubt of float64 is too large: rows over many
  decades, columns that nearly depend on each other, ties.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import lstsq
from scipy.linalg.lapack import dpotrf, dpotrs

from penchant.arguments import Array
from penchant.limits import TimeLimit
from penchant.solvers.bounded import least
from penchant.solvers.data import column_exponents
from penchant.solvers.exact import independent_rows, integers
from penchant.solvers.limits import rational

JUMPS = 50  # per coordinate, far more than were ever needed
EPS = float(np.finfo(float).eps)
UNIT = 8 * EPS  # of the size of the terms of a sum, as a root of squares: its rounding error
CLEAR = 1e-11  # a doubt below this needs no closer look
TINY = float(np.finfo(float).tiny)
TIE = Fraction(1, 2**700)  # relative difference of two waits that rounding to 1500 bits leaves


class Walk(NamedTuple):
    """Times, saddles and duals in the units of the data, and what is known about them."""

    tau: Array
    points: Array
    dual: Array
    lost: bool  # whether float64 does not hold a time or an entry
    doubt: float  # what rounding may have done to s (of size 1), tau and beta, relative
    ended: bool  # whether nothing moves at the last saddle
    choice: int | None  # the first jump after which other saddles fit the labels as well


class Columns(Protocol):
    """The data of a walk in one arithmetic and in its units."""

    rate: Any  # ds/dtau over the pull, by coordinate
    low: Any  # where s lets a negative weight grow, by coordinate
    high: Any  # and a positive one
    above: Any  # infinite, by coordinate
    shape: tuple[int, int]
    tie: Any  # relative difference of two waits that are one
    doubt: float  # relative error of the saddles so far

    def zeros(self) -> Array: ...
    def signed(self, places: Any, signs: Array) -> Any: ...
    def look(self, beta: Array) -> None: ...
    def pull(self) -> Array: ...
    def noise(self) -> Array: ...
    def depends(self, places: Array) -> bool: ...
    def rounded(self, s: Array) -> Array: ...
    def walk(self, legs: list[tuple[Any, Array, Array]], **known: Any) -> Walk: ...


def walk(data: Columns, limit: TimeLimit) -> Walk:
    """All saddles from zero to where nothing moves."""
    s, beta, tau, late = data.zeros(), data.zeros(), 0, 0.0
    doubt, choice, sure = data.zeros(), None, True
    legs = [(tau, beta, s)]
    data.look(beta)
    for _ in range(JUMPS * len(s) + 1):
        pull, noise, up, down = data.pull(), data.noise(), s == data.high, s == data.low
        pulled, bound, rises = np.abs(pull) > noise, up | down, pull > 0
        away = pulled & np.where(rises, up, down)  # least squares says no: rounding
        sure &= not away.any()
        leaves = pulled & ~away
        speed = data.rate * pull
        sure &= bool((speed[leaves] != 0).all())  # no time is that long in float64
        moving = leaves & (speed != 0)
        bounds = np.where(rises, data.high, data.low)
        timed = np.flatnonzero(moving & (np.abs(bounds) != math.inf))
        if not len(timed):  # what still moves never grows
            break
        waits = ((bounds - s)[timed]) / speed[timed]
        first = int(waits.argmin())
        wait = waits[first]
        # at a bound s stays where it is, unless it leaves for the other one
        doubt = doubt + np.where(bound & ~leaves, 0, data.rate * wait * noise)
        unsure = doubt[timed] / np.abs(speed[timed])
        arrived = waits - wait <= wait * data.tie + unsure + unsure[first]
        s = np.where(moving, np.minimum(np.maximum(s + wait * speed, data.low), data.high), s)
        places = timed[arrived]
        s[places] = bounds[places]
        s, tau = data.rounded(s), tau + wait
        late = max(late, float(unsure[arrived].max() / tau))
        doubt[places] = 0  # they are at their bound, whenever they came
        beta, free, settled = _saddle(data, s, beta)
        sure &= settled
        if choice is None and free is not None and data.depends(free):
            choice = len(legs)
        data.look(beta)
        legs.append((tau, beta, s))
        if limit.spent:
            break
    ended = not len(timed)
    total = max(float(doubt.max(initial=0.0)), late, data.doubt) if sure else math.inf
    return data.walk(legs, doubt=total, ended=ended, choice=choice)


def _saddle(data: Columns, s: Array, beta: Array) -> tuple[Array, Array | None, bool]:
    """The least loss under the signs of s; the columns that could carry it if there is a choice."""
    up = s == data.high
    places = np.flatnonzero(up | (s == data.low))
    signs = np.where(up[places], 1, -1)
    z = np.maximum(beta[places] * signs, 0)
    problem = data.signed(places, signs)
    low, high, known = data.zeros()[: len(z)], data.above[: len(z)], None
    if np.count_nonzero(z) == np.count_nonzero(beta):  # z is where the data have been looked at
        known = data.pull()[places] * signs, data.noise()[places]
    end = least(problem, z, z > 0, low, high, known)
    beta = data.zeros()
    beta[places] = end.z * signs
    level = ~end.free & (np.abs(end.slope) <= end.noise)
    return beta, places[end.free | level] if level.any() else None, end.sure


class FloatColumns:
    """The data in units of powers of two, in which every column and the labels are near one."""

    tie, doubt = 16 * EPS, 0.0

    def __init__(self, X: Array, y: Array, factor: float, growth: Array) -> None:
        self.columns = column_exponents(X)
        self.labels = int(np.frexp(np.abs(y).max(initial=0.0))[1])
        self.X, self.y = np.ldexp(X, -self.columns), np.ldexp(y, -self.labels)
        self.shape, self.factor = X.shape, factor
        self.squares, self.height = self.X**2, np.abs(self.y)
        self.times = np.frexp(growth.min(axis=0))[1] - 1  # the units of s
        self.high, self.low = np.ldexp(growth[0], -self.times), -np.ldexp(growth[1], -self.times)
        speeds = self.columns - self.times
        self.most = int(speeds.max()) if X.shape[1] else 0
        self.rate = np.ldexp(1.0, speeds - self.most)
        self.above = np.full(X.shape[1], np.inf)
        self.residual, self.terms = self.y, self.height  # at zero

    def zeros(self) -> Array:
        return np.zeros(self.shape[1])

    def signed(self, places: Array, signs: Array) -> _Signed:
        return _Signed(self, self.X[:, places] * signs)

    def look(self, beta: Array) -> None:
        """Computes the pull at beta, where the last slope was asked for, and its rounding."""
        self.seen = np.asarray(self.residual @ self.X)
        self.blur = UNIT * np.sqrt(self.terms**2 @ self.squares)

    def pull(self) -> Array:
        return self.seen

    def noise(self) -> Array:
        """How far rounding may have moved each pull."""
        return self.blur

    def depends(self, places: Array) -> bool:
        """Whether the columns depend on each other as far as float64 can tell."""
        if len(places) > self.shape[0]:
            return True
        sizes = np.linalg.svd(self.X[:, places], compute_uv=False)
        if sizes[-1] < 1e-6 * sizes[0]:
            self.doubt = math.inf  # rational numbers decide
        return bool(sizes[-1] < max(self.shape) * EPS * sizes[0])

    def rounded(self, s: Array) -> Array:
        return s

    def walk(self, legs: list[tuple[Any, Array, Array]], **known: Any) -> Walk:
        tau, points, dual = (np.array(column) for column in zip(*legs, strict=True))
        with np.errstate(over="ignore", under="ignore"):
            times = np.ldexp(tau / self.factor, -self.most - self.labels)
            saddles = np.ldexp(points, self.labels - self.columns)
            dual = np.ldexp(dual, self.times)
        return Walk(times, saddles, dual, _lost((tau, times), (points, saddles)), **known)


class _Signed:
    """Least squares of columns that carry their signs: Cholesky's factor and three corrections."""

    def __init__(self, data: FloatColumns, A: Array) -> None:
        self.data, self.A, self.sizes = data, A, np.abs(A)
        self.squares = A**2

    def slope(self, z: Array) -> tuple[Array, Array]:
        residual, terms = self.data.y - self.A @ z, self.data.height + self.sizes @ z
        self.data.residual, self.data.terms = residual, terms
        return residual @ self.A, UNIT * np.sqrt(terms**2 @ self.squares)

    def goal(self, z: Array, free: Any) -> Array:
        A, goal = self.A[:, free], z[free]
        factor, failed = dpotrf(A.T @ A, lower=True)
        error = math.inf  # what the last correction moved; it contains the rounding of the slopes
        for turn in range(3):
            left = self.data.y - A @ goal
            if failed:
                move = lstsq(A, left, lapack_driver="gelsy")[0]
            else:
                move = dpotrs(factor, A.T @ left, lower=True)[0]
            goal = goal + move
            if turn:  # the first one leads from the last saddle to this one
                error = abs(move).max() / (abs(goal).max() or 1.0)
                if error <= CLEAR:
                    break
        self.data.doubt = max(self.data.doubt, math.inf if failed else float(error))
        return goal


class WholeColumns:
    """The data as integers times powers of two."""

    tie, doubt = TIE, 0.0

    def __init__(self, X: Array, y: Array, factor: float, growth: Array) -> None:
        self.given, self.shape, self.factor = X, X.shape, factor
        self.high, self.low = (_exactly(times) for times in (growth[0], -growth[1]))
        self.rate = np.array([1] * X.shape[1], dtype=object)
        self.above = np.array([math.inf] * X.shape[1], dtype=object)
        (self.X, self.power), (self.y, self.labels) = integers(X), integers(y)

    def zeros(self) -> Any:
        return np.array([Fraction(0)] * self.shape[1], dtype=object)

    def signed(self, places: Array, signs: Any) -> _WholeSigned:
        return _WholeSigned(
            self.X[:, places] * np.array([int(sign) for sign in signs], object), self.y
        )

    def look(self, beta: Any) -> None:
        numerators, denominator = rational.common(beta)
        pull = self.X.T @ (self.y * denominator - self.X @ numerators)
        self.seen = rational.fractions(pull, denominator)

    def pull(self) -> Any:
        return self.seen

    def noise(self) -> Any:
        return np.zeros(self.shape[1], dtype=int)

    def depends(self, places: Array) -> bool:
        return len(independent_rows(self.given[:, places].T)) < len(places)

    def rounded(self, s: Any) -> Any:
        return np.array([rational.shortened(x) for x in s], dtype=object)

    def walk(self, legs: list[tuple[Any, Any, Any]], **known: Any) -> Walk:
        tau, points, dual = (np.array(column, dtype=object) for column in zip(*legs, strict=True))
        unit = Fraction(2) ** (-self.power - self.labels) / Fraction(self.factor)
        times, saddles = tau * unit, points * Fraction(2) ** (self.labels - self.power)
        rounded = [rational.floats(numbers) for numbers in (times, saddles, dual)]
        lost = _lost((tau, rounded[0]), (points, rounded[1]))
        return Walk(rounded[0], rounded[1], rounded[2], lost, **known)


def _exactly(numbers: Array) -> Any:
    return np.array([Fraction(x) if math.isfinite(x) else x for x in numbers.tolist()], object)


def _lost(*pairs: tuple[Any, Array]) -> bool:
    """Whether numbers became infinite or lost their digits in the units of the data."""
    return any(
        not np.isfinite(numbers).all() or bool((np.abs(numbers[inner != 0]) < TINY).any())
        for inner, numbers in pairs
    )


class _WholeSigned:
    """The same least squares in integers."""

    def __init__(self, A: Any, y: Any) -> None:
        self.gram, self.right = A.T @ A, A.T @ y

    def slope(self, z: Any) -> tuple[Any, Any]:
        """Times a positive number, which changes nothing."""
        numerators, denominator = rational.common(z)
        slope = self.right * denominator - self.gram @ numerators
        return slope, np.zeros(len(z), dtype=int)

    def goal(self, z: Any, free: Any) -> Any:
        return rational.fractions(*rational.solve(self.gram[free][:, free], self.right[free]))
