"""Training from a vanishing start: the jumps between saddles, without integrating.

As alpha goes to 0 a diagonal net rests at saddles and jumps between them. In the time tau below the
dual s = log(w+/w-) / (2 log(1/alpha)) moves by ds/dtau = -2 dL/dbeta, beta_i is zero where
|s_i| < 1, and where |s_i| = 1 it has the sign of s_i or is zero: after a jump beta has the least
loss under these signs (Pesme and Flammarion 2023). For depth D > 2 the dual is
1 - (w/alpha)^(2-D) in place of the logarithm, and the same holds in another unit of time (ours).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lstsq

from tacit.arguments import Array, integer, log_scale, regression_data
from tacit.problems.regression import Regression
from tacit.records import Kind, NumericalError, Outcome, Record
from tacit.threads import one_blas_thread

WHO = "saddles"
JUMPS = 50  # per coordinate, far more than were ever needed
ROUNDING = 1e-11  # of the slope at zero: what counts as no slope
TIE = 1e-9  # relative difference of two waits that end together
PIVOT = 1e-10  # of the largest column: what counts as a combination of others


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Saddles(Record):
    """The saddles that training from a vanishing start visits, and when it jumps.

    Attributes
    ----------
    tau
        The time of each jump; the first is 0, where training starts at zero.
    points
        The saddle reached by each jump, one row each; the last one has the least loss, and among
        predictors of that loss the least l1 norm.
    dual
        s at each jump, one row each.
    depth
        The depth of the net.
    outcome
        How the computation ended, in a sentence.

    Examples
    --------
    >>> import tacit
    >>> found = tacit.saddles([[1.0, 0.0], [0.0, 1.0]], [2.0, 1.0])
    >>> found.tau
    array([0.   , 0.125, 0.25 ])
    >>> found.points
    array([[0., 0.],
           [2., 0.],
           [2., 1.]])
    """

    tau: Array
    points: Array
    dual: Array
    depth: int
    outcome: Outcome

    @property
    def end(self) -> Array:
        """Where training ends."""
        return np.asarray(self.points[-1])

    @property
    def monotone(self) -> bool:
        """Whether no coordinate returns to zero: then time averages are the lasso's path."""
        there = self.points != 0
        return bool((there[1:] >= there[:-1]).all())

    def log_unit(
        self,
        *,
        alpha: float | None = None,
        log_alpha: float | None = None,
        mu: float | None = None,
    ) -> float:
        """The logarithm of t / tau at this scale of the start, which must be below 1."""
        scale = log_scale(WHO, self.depth, alpha, log_alpha, mu)
        if scale >= 0:
            raise ValueError(
                f"{WHO}: training rests at saddles only from starts with alpha < 1, got log_alpha ="
                f" {scale:g}; give a smaller one"
            )
        if self.depth == 2:
            return math.log(-scale)
        return math.log(2 / (self.depth * (self.depth - 2))) - (self.depth - 2) * scale

    def at(self, tau: ArrayLike) -> Array:
        """The saddles where training rests at the times `tau`."""
        return np.asarray(self.points[self._last(tau)])

    def average(self, tau: ArrayLike) -> Array:
        """The mean of the predictor from 0 to each `tau`, zero at 0."""
        tau = np.asarray(tau, dtype=float)
        k = self._last(tau)
        stays = np.diff(self.tau)[:, None] * self.points[:-1]
        sums = np.vstack([np.zeros_like(self.end), np.cumsum(stays, axis=0)])
        total = sums[k] + (tau - self.tau[k])[..., None] * self.points[k]
        return np.asarray(total / np.where(tau > 0, tau, 1.0)[..., None])

    def _last(self, tau: ArrayLike) -> Array:
        """The number of the last jump before each time."""
        times = np.asarray(tau, dtype=float)
        if not (times >= 0).all():
            raise ValueError(f"{WHO}: tau must not be negative, got {times.min():g}")
        return np.asarray(np.searchsorted(self.tau, times, side="right") - 1)


def saddles(X: Any, y: Any = None, *, depth: int = 2, throw: bool = True) -> Saddles:
    """The saddles that a diagonal net visits as its start vanishes, and the times of its jumps.

    beta = w+^depth - w-^depth starts at w+ = w- = alpha. At small alpha the jump of time tau
    happens at about t = tau log(1/alpha) for depth 2, and at
    t = 2 tau alpha^(2 - depth) / (depth (depth - 2)) for more.

    Parameters
    ----------
    X
        The samples, one row each, or a regression instead of X and y.
    y
        One label per sample; the loss is the sum of squares.
    depth
        The depth of the net, at least 2. It only changes the unit of time.
    throw
        False returns a numerical failure as the outcome instead of raising it.

    Returns
    -------
    Saddles
        Jump times and saddles, from zero to the end of training. Columns that are equal or opposite
        share their weight, as in training. Where other dependent columns leave several saddles
        with the same outputs, the outcome says so.

    Raises
    ------
    ValueError
        An argument is wrong.
    NumericalError
        No end was found; see `throw`.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.sparse_regression(samples=20, dimension=50, sparsity=3, seed=0)
    >>> found = tacit.saddles(problem)
    >>> bool(abs(found.end - tacit.interpolate(problem, tacit.L1()).beta).max() < 1e-9)
    True
    """
    depth = integer(WHO, "depth", depth, least=2)
    factor = 2.0
    if isinstance(X, Regression):
        if y is not None:
            raise ValueError(
                f"{WHO}: y is given twice, because the problem already has labels; leave y out"
            )
        factor = 2 * math.exp(X.log_factor)
        X, y = X.X, X.y
    X, y = regression_data(WHO, X, y)
    with one_blas_thread():
        first, signs, share = _distinct(X)
        tau, points, dual, outcome = _jumps(X[:, first], y, factor)
    if throw and not outcome.ok:
        raise NumericalError(WHO, outcome)
    back = signs / np.bincount(share)[share]
    return Saddles(tau, points[:, share] * back, dual[:, share] * signs, depth, outcome)


def _distinct(X: Array) -> tuple[Any, Array, Any]:
    """Columns that differ by more than a sign: their places, and every column's sign and group."""
    heads = X[np.argmax(X != 0, axis=0), np.arange(X.shape[1])]
    signs = np.where(heads < 0, -1.0, 1.0)
    _, first, share = np.unique(X * signs, axis=1, return_index=True, return_inverse=True)
    share = share.ravel()
    return first, signs * signs[first][share], share


def _jumps(X: Array, y: Array, factor: float) -> tuple[Array, Array, Array, Outcome]:
    """Times, saddles and duals, and how it ended; the loss is factor / 2 times the squares."""
    s, beta, tau = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0.0
    slope = 2 * factor * (X.T @ y)
    rest = ROUNDING * float(np.abs(slope).max(initial=0.0))
    found = [(tau, beta, s)]
    outcome = Outcome(Kind.SOLVED, "the last saddle has the least loss")
    for _ in range(JUMPS * len(s) + 1):
        moving = np.abs(slope) > rest
        moving &= ~((np.abs(s) == 1) & (s * slope > 0))  # rounding at a bound
        if not moving.any():
            break
        waits = (np.sign(slope[moving]) - s[moving]) / slope[moving]
        wait = float(waits.min())
        s = s.copy()
        s[moving] = np.clip(s[moving] + wait * slope[moving], -1, 1)
        arrived = np.flatnonzero(moving)[waits <= wait * (1 + TIE)]
        s[arrived] = np.sign(slope[arrived])
        tau += wait
        beta, unique = _signed_least_squares(X, y, s, beta)
        slope = 2 * factor * (X.T @ (y - X @ beta))
        found.append((tau, beta, s))
        if not unique and outcome.kind is Kind.SOLVED:
            what = f"columns depend on each other, and from tau = {tau:.6g} on other saddles fit"
            outcome = Outcome(Kind.NOT_UNIQUE, f"{what} the labels as well; one of them is given")
    else:
        what = f"no end after {len(found)} jumps at tau = {tau:.6g}; perturb X a little"
        outcome = Outcome(Kind.BUDGET_SPENT, what)
    times, points, duals = zip(*found, strict=True)
    return np.array(times), np.array(points), np.array(duals), outcome


def _signed_least_squares(X: Array, y: Array, s: Array, start: Array) -> tuple[Array, bool]:
    """The least |X b - y| with b_i s_i >= 0 where |s_i| = 1 and b_i = 0 elsewhere; if it is one.

    Lawson and Hanson's active set, from the support of `start` and the coordinates that arrived.
    """
    allowed = np.flatnonzero(np.abs(s) == 1)
    A = X[:, allowed] * s[allowed]
    b = np.maximum(start[allowed] * s[allowed], 0.0)
    free = b > 0
    tiny = ROUNDING * float(np.abs(A.T @ y).max(initial=0.0))
    for _ in range(10 * len(allowed) + 10):
        pull = A.T @ (y - A @ b)
        pull[free] = 0.0
        if pull.max(initial=0.0) <= tiny:
            break
        free[pull.argmax()] = True
        while True:
            goal = np.zeros(len(b))
            goal[free] = lstsq(A[:, free], y, cond=PIVOT, lapack_driver="gelsy")[0]
            falling = free & (goal <= 0)
            if not falling.any():
                b = goal
                break
            share = (b[falling] / (b[falling] - goal[falling])).min()
            b = np.maximum(b + share * (goal - b), 0.0)
            free &= ~(falling & (b <= 1e-15 * b.max(initial=0.0)))
            b[~free] = 0.0
    beta = np.zeros(len(s))
    beta[allowed] = b * s[allowed]
    return beta, not (np.abs(pull[~free]) <= tiny).any()
