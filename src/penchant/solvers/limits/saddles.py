"""Training from a vanishing start: the jumps between saddles, without integrating.

How it works. As alpha goes to 0 a diagonal net rests at saddles and jumps between them
(docs/theory section 28). In the time tau below the dual s = log(w+/w-) / (2 log(1/alpha)) moves
by ds/dtau = -2 dL/dbeta, beta_i is zero where |s_i| < 1, and where |s_i| = 1 it has the sign of s_i
or is zero: after a jump beta has the least loss under these signs (Pesme and Flammarion 2023). For
depth D > 2 the dual is 1 - (w/alpha)^(2-D) in place of the logarithm, and the same holds in another
unit of time (ours).

From another direction of the start, or in another map, beta = b(s) still holds along the gradient
lines of `derive`, and as the start vanishes b becomes a step at two growth times: zero for -t_minus
< s < t_plus. Nothing else changes, and the end has the least sum of t_plus b^+ + t_minus b^- (the
infinitesimal starts of arXiv 2607.12332; the derivation by gradient lines is ours).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, integer, log_scale, plain_array, regression_data
from penchant.door import Invalid, door_as
from penchant.limits import TimeLimit
from penchant.problems.regression import Regression
from penchant.records import Kind, NumericalError, Outcome
from penchant.results import LabelledResult, dataset_of
from penchant.solvers.certificate import Certificate, judge
from penchant.solvers.data import column_exponents
from penchant.solvers.exact import ELIMINATION, independent_rows
from penchant.solvers.limits.growth import growth_times, shared
from penchant.solvers.limits.jumps import EPS, FloatColumns, Walk, WholeColumns, walk
from penchant.solvers.limits.rational import affordable
from penchant.threads import one_blas_thread

WHO = "saddles"
FITTED = 1e-13  # of the terms of its sum: a residual of this size is rounding


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Saddles(LabelledResult):
    """The saddles that training from a vanishing start visits, and when it jumps.

    Attributes
    ----------
    tau
        The time of each jump; the first is 0, where training starts at zero.
    points
        The saddle reached by each jump, one row each; the last one has the least loss, and among
        predictors of that loss the least l1 norm, weighted by the growth times.
    dual
        s at each jump, one row each.
    depth
        The depth of the net.
    outcome
        How the computation ended, in a sentence.
    growth
        (t_plus, t_minus), where s lets a weight grow; two rows of ones by default.
    error
        The relative error of times, saddles and dual: an estimate in float64 arithmetic, and a
        bound, that of rounding once, where the list was computed in rational numbers.
    features
        The names of the columns, if X had them.

    Examples
    --------
    >>> import penchant
    >>> path = penchant.solvers.saddles([[1.0, 0.0], [0.0, 1.0]], [2.0, 1.0])
    >>> path.tau
    array([0.   , 0.125, 0.25 ])
    >>> path.points
    array([[0., 0.],
           [2., 0.],
           [2., 1.]])
    """

    tau: Array
    points: Array
    dual: Array
    depth: int
    outcome: Outcome
    growth: Array
    error: float = math.nan
    features: tuple[str, ...] = ()

    @property
    def dataset(self) -> Any:
        """The numbers along `jump`, an xarray.Dataset; `dataset.to_dataframe()` is a table."""
        rows = {
            "points": (("jump", "feature"), self.points, "saddle from this jump on"),
            "dual": (("jump", "feature"), self.dual, "$s$ at the jump"),
            "norm_l1": ("jump", np.abs(self.points).sum(axis=1), r"$\ell_1$ norm of the saddle"),
            "norm": ("jump", self.norm(self.points), "the same, weighted by the growth times"),
        }
        at = {"tau": ("jump", self.tau, r"time of the jump, $\tau$")}
        return dataset_of(self, rows, at, depth=self.depth)

    @door_as(WHO)
    def norm(self, beta: ArrayLike) -> Any:
        """The sum of t_plus b^+ + t_minus b^-, least at the end among predictors of its loss."""
        beta = plain_array("beta", beta).astype(float)
        up, down = self.growth
        with np.errstate(invalid="ignore"):  # nothing of a weight that never grows costs nothing
            terms = np.where(beta > 0, up * beta, np.where(beta < 0, -down * beta, 0.0))
        return terms.sum(axis=-1)

    @property
    def end(self) -> Array:
        """Where training ends."""
        return np.asarray(self.points[-1])

    @property
    def monotone(self) -> bool:
        """Whether no coordinate returns to zero: then time averages are the lasso's path."""
        there = self.points != 0
        return bool((there[1:] >= there[:-1]).all())

    @door_as(WHO)
    def log_unit(
        self,
        *,
        alpha: float | None = None,
        log_alpha: float | None = None,
        mu: float | None = None,
    ) -> float:
        """The logarithm of t / tau at this scale of the start, which must be below 1."""
        scale = log_scale(self.depth, alpha, log_alpha, mu)
        if scale >= 0:
            raise Invalid(
                f"training rests at saddles only from starts with alpha < 1, got log_alpha ="
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


@door_as(WHO)
def vector_saddles(
    X: Any, y: Any, *, growth: Any, depth: int, throw: bool, max_seconds: float | None
) -> Saddles:
    """The saddles of a diagonal net."""
    depth = integer("depth", depth, least=2)
    factor = 2.0
    if isinstance(X, Regression):
        if y is not None:
            raise Invalid("y is given twice, because the problem already has labels; leave y out")
        factor = 2 * math.exp(X.log_factor)
        X, y = X.X, X.y
    X, y = regression_data(X, y)
    times = growth_times(growth, X.shape[1])
    limit = TimeLimit(max_seconds)
    with one_blas_thread():
        first, signs, share = _distinct(X)
        flipped = np.where(signs < 0, times[::-1], times)
        fastest = np.full((2, len(first)), np.inf)
        for row, own in zip(fastest, flipped, strict=True):
            np.minimum.at(row, share, own)
        path, certificate = _certified((X[:, first], y, 2 * factor, fastest), limit)
    outcome = judge(_ended(path, limit), certificate)
    if throw and not outcome.ok:
        raise NumericalError(WHO, outcome)
    points = shared(path.points[:, share], flipped == fastest[:, share], share) * signs
    dual = path.dual[:, share] * signs
    return Saddles(path.tau, points, dual, depth, outcome, times, certificate.error)


def _certified(
    data: tuple[Array, Array, float, Array], limit: TimeLimit
) -> tuple[Walk, Certificate]:
    """The walk in float64, or in rational numbers where these are needed and affordable."""
    path = walk(FloatColumns(*data), limit)
    certificate = certify(*data, path)
    if certificate.ok or limit.spent or not affordable(data[0]):
        return path, certificate
    path = walk(WholeColumns(*data), limit)
    return path, Certificate(EPS if path.ended else math.inf)


def _ended(path: Walk, limit: TimeLimit) -> Outcome:
    """What the walk itself says about its end."""
    where = f"tau = {path.tau[-1]:.6g} after {len(path.tau) - 1} jumps"
    if not path.ended:
        way = str(limit) if limit.spent else "perturb X a little"
        return Outcome(Kind.BUDGET_SPENT, f"no end at {where}; {way}")
    if path.lost:
        what = "a time or a weight is beyond float64 in the units of the data; rescale X or y"
        return Outcome(Kind.OUT_OF_RANGE, what)
    if path.choice is not None:
        what = f"columns depend on each other, and from tau = {path.tau[path.choice]:.6g} on"
        more = "other saddles fit the labels as well; one of them is given"
        return Outcome(Kind.NOT_UNIQUE, f"{what} {more}")
    return Outcome(Kind.SOLVED, "the last saddle has the least loss")


def certify(X: Array, y: Array, rate: float, growth: Array, path: Walk) -> Certificate:
    """An estimate of the relative error of a list, from the data and the list alone.

    It is the worst of: what rounding did on the way, by how much the dual misses its straight
    lines, the slope that is left along a weight or at the end, and the distance of the end from
    least squares on its own support. Rows that are fitted count as fitted in their own units. It
    is infinite if a small slope at the end may be none or one.
    """
    units, label = column_exponents(X), int(np.frexp(np.abs(y).max())[1])
    X, y = np.ldexp(X, -units), np.ldexp(y, -label)
    with np.errstate(all="ignore"):
        points = np.ldexp(path.points, units - label)
        slow = np.ldexp(rate, units - units.max())
        stays = np.ldexp(np.diff(path.tau), int(units.max()) + label)
        used = (points != 0).any(axis=0)
        left = y - points[:, used] @ X[:, used].T
        terms = np.abs(y) + np.abs(points[:, used]) @ np.abs(X[:, used]).T
        rows = np.where(np.abs(left) <= FITTED * terms, 0.0, left)
        pull = rows @ X
        moved = path.dual[:-1] + stays[:, None] * slow * pull[:-1]
        missed = np.clip(moved, -growth[1], growth[0]) - path.dual[1:]
        errors = [path.doubt, _largest(missed / growth.min(axis=0))]
        bounds = np.where(points > 0, growth[0], -growth[1])
        errors.append(_largest((path.dual / bounds - 1)[points != 0]))
        errors.append(_largest(np.abs(pull[points != 0])) / (_largest(terms) or 1.0) / len(y))
        sizes = np.abs(rows[-1]) @ np.abs(X)
        errors.append(_largest(pull[-1] / np.where(sizes > 0, sizes, 1.0)))
        errors.append(_distance(X[:, points[-1] != 0], left[-1], points[-1]))
        errors.append(_still_pulled(X, points[-1] != 0, sizes > 0))
    return Certificate(float(np.max(errors)), "estimate")


def _still_pulled(X: Array, used: Any, unfitted: Any) -> float:
    """0 if no column without a weight can lower the loss, infinite if float64 cannot tell.

    Least squares on the support leave no slope along a combination of its columns. A column that
    is nearly one has a slope of the size of rounding, and a weight that may be large.
    """
    free = ~used & unfitted
    if not free.any():
        return 0.0
    A = X[:, used | free]
    few = A.size * A.shape[1] <= ELIMINATION
    return 0.0 if few and len(independent_rows(A.T)) == used.sum() else math.inf


def _largest(numbers: Array) -> float:
    return float(np.abs(numbers).max(initial=0.0))


def _distance(A: Array, left: Array, point: Array) -> float:
    """How far least squares of what is left moves the weights, relative."""
    if not A.shape[1]:
        return 0.0
    if not np.isfinite(left).all():
        return math.inf
    return _largest(np.asarray(np.linalg.lstsq(A, left, rcond=EPS)[0])) / _largest(point)


def _distinct(X: Array) -> tuple[Any, Array, Any]:
    """Columns that differ by more than a sign: their places, and every column's sign and group."""
    heads = X[np.argmax(X != 0, axis=0), np.arange(X.shape[1])]
    signs = np.where(heads < 0, -1.0, 1.0)
    columns = np.ascontiguousarray((X * signs).T) + 0.0  # zeros without a sign
    groups: dict[bytes, int] = {}
    share = np.array([groups.setdefault(column.tobytes(), len(groups)) for column in columns])
    first = np.unique(share, return_index=True)[1]
    return first, signs * signs[first][share], share
