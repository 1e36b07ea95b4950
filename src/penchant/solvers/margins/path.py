"""The paths in mu of the max margin of Q and of the gradient flow, with their support vectors.

The first minimises Q_mu under margins of at least one (docs/theory section 12), by `walk`; the
second is the limit of large starts at the same mu (section 14), by `ratchet`. They are one path
until a weight of the first would have to fall. Both are followed from the largest mu down, whatever
order was asked for, since each scale starts from the one above it.

From the first requested scale on every change of the support vectors is located, so steps in log mu
are at most 0.5: a sample that enters and leaves within one step is not seen. Where a walk is still
in the linear regime at the first scale, its tracking begins where that regime ends. Data in units
far from one are first divided by powers of two, which rounds nothing, and the results are restored;
numbers that the units of the data cannot hold end as an outcome, not as infinities. Certificates
are computed for sixteen scales at once: faster than one by one, and little of a long path is held.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penchant.arguments import Array, classification_data, finite_array, start_shape, tilt_or_none
from penchant.columns import named_as_given
from penchant.door import Invalid, door
from penchant.limits import OutOfTime, limited
from penchant.problems.classification import Classification
from penchant.records import Kind, NumericalError, Outcome, Unsolved
from penchant.regularizers.q import Q
from penchant.results import LabelledResult, dataset_of
from penchant.solvers.accuracy import TOGETHER
from penchant.solvers.certificate import judge
from penchant.solvers.continuation import KERNEL, Failed
from penchant.solvers.data import common_units, unpacked
from penchant.solvers.margins.active_set import Unbounded
from penchant.solvers.margins.changes import Tracker
from penchant.solvers.margins.ratchet import RatchetWalk, certify
from penchant.solvers.margins.rows import certified_path, given_rows, scaled_rows
from penchant.solvers.margins.separation import refuse_inseparable, refuse_zero_rows
from penchant.solvers.margins.walk import MarginWalk
from penchant.solvers.max_margin import failed
from penchant.solvers.solution import SOLVED, Found, exponential, must_fit, restored, stacked
from penchant.solvers.sparse_rows import SparseRows, classification_rows
from penchant.threads import one_blas_thread

LONGEST = 0.5  # step in log mu: a sample that comes and goes within one step is not seen
BEYOND = "a predictor or its weights are beyond float64 in the units of the data; rescale X"
FOLLOWED = Outcome(Kind.SOLVED, "followed through every change of the support vectors")


@dataclasses.dataclass(frozen=True)
class SupportChange:
    """At this mu, coming from above, the sample joins the support vectors or leaves them."""

    mu: float
    sample: int
    enters: bool

    def __str__(self) -> str:
        return f"{self.sample} {'enters' if self.enters else 'leaves'} at mu = {self.mu:.6g}"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class MarginPath(LabelledResult):
    """The largest margins of Q over a list of scales, one row per scale in the given order.

    Attributes
    ----------
    depth
        The power D of Q.
    mus
        The scales.
    beta
        The minimisers, one row per scale.
    dual
        The multipliers, one row per scale.
    log_dual_unit
        One number per scale: where it is not 0 the multipliers are `dual` times its exponential,
        since float64 cannot represent them.
    value
        The value of Q at each row.
    residual
        The largest violation of a margin in each row.
    kkt
        The optimality error of each row.
    error
        The relative error of each row that is certified (see Solution).
    support
        Marks the support vectors, whose margins are solved as equations. If rows depend on
        each other, this is one of several possible choices.
    iterations
        The iterations that each row took.
    changes
        Where the support changes, from large to small mu.
    outcomes
        How each row ended.
    features
        The names of the columns, if X had them.

    Examples
    --------
    >>> import penchant
    >>> path = penchant.solvers.max_margin_path([[1.0, 2.0], [-2.0, -1.5]], [1, -1], mus=[1.0, 0.1])
    >>> path.support.tolist(), len(path.changes)
    ([[True, True], [True, True]], 0)
    """

    depth: int
    mus: Array
    beta: Array
    dual: Array
    log_dual_unit: Array
    value: Array
    residual: Array
    kkt: Array
    error: Array
    support: NDArray[np.bool_]
    iterations: NDArray[np.int_]
    changes: tuple[SupportChange, ...]
    outcomes: tuple[Outcome, ...]
    features: tuple[str, ...] = ()

    @property
    def dataset(self) -> Any:
        """The numbers along `scale`, an xarray.Dataset; `dataset.to_dataframe()` is a table."""
        return _dataset(self)

    def rows(self) -> list[tuple[str, str]]:
        worst = [
            ("worst violation", f"{np.fmax.reduce(self.residual):.2g}"),
            ("worst kkt", f"{np.fmax.reduce(self.kkt):.2g}"),
        ]
        return table(self, worst, [("factorizations", str(int(self.iterations.sum())))])


def _dataset(path: MarginPath | RatchetPath) -> Any:
    length = np.linalg.norm(path.beta, axis=1, keepdims=True)
    total = path.dual.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        direction, weights = path.beta / length, path.dual / total
    rows = {
        "direction": (("scale", "feature"), direction, r"predictor over its $\ell_2$ norm"),
        "weights": (("scale", "sample"), weights, "shares of the samples in the dual"),
        "beta": (("scale", "feature"), path.beta, "coefficients at margins of at least one"),
        "support": ("scale", path.support.sum(axis=1), "number of support vectors"),
        "error": ("scale", path.error, "certified relative error"),
    }
    at = {"mu": ("scale", path.mus, r"scale $\mu$")}
    return dataset_of(path, rows, at, depth=path.depth)


def table(
    path: MarginPath | RatchetPath,
    worst: Sequence[tuple[str, str]],
    work: Sequence[tuple[str, str]],
) -> list[tuple[str, str]]:
    vectors = path.support.sum(axis=1)
    return [
        ("depth", str(path.depth)),
        ("scales", f"{len(path.mus)}, mu from {path.mus.max():.4g} to {path.mus.min():.4g}"),
        *worst,
        ("support vectors", f"{vectors.min()} to {vectors.max()}"),
        ("changes", "; ".join(map(str, path.changes[:6])) or "none"),
        *work,
        ("failed", str(sum(not outcome.ok for outcome in path.outcomes))),
    ]


@door
@named_as_given
def max_margin_path(
    X: ArrayLike | Classification,
    y: ArrayLike | None = None,
    depth: int = 2,
    *,
    mus: ArrayLike,
    shape: ArrayLike | None = None,
    tilt: ArrayLike | None = None,
    throw: bool = True,
    max_seconds: float | None = None,
) -> MarginPath:
    """The minimiser of Q with margins >= 1 at every mu, and every change of support vectors.

    Parameters
    ----------
    X
        The samples, one row each, or a problem instead of X and y.
    y
        The labels, -1 or +1.
    depth
        The power D of Q.
    mus
        The scales mu = alpha**depth, in any order; they are followed from the largest down.
    shape
        The vector w0 of Q; None stands for ones.
    tilt
        The tilt of Q, the same at every scale.
    throw
        False records a scale that fails in `outcomes`, with NaN in its row, and continues.
    max_seconds
        After this time the scales that are left fail; None sets no limit.

    Returns
    -------
    MarginPath
        One row per scale.

    References
    ----------
    .. [1] Moroshko et al. (2020), Implicit Bias in Deep Linear Classification: Initialization Scale
       vs Training Accuracy.

    Examples
    --------
    >>> import penchant
    >>> X, y = [[1.0, 2.0]], [1]
    >>> path = penchant.solvers.max_margin_path(X, y, mus=[100.0, 1e-4])
    >>> path.beta.round(3)
    array([[0.2  , 0.4  ],
           [0.007, 0.496]])
    """
    data = (X, y, depth)
    with limited(max_seconds):
        path: MarginPath = along(margin_path, data, mus, shape, throw, tilt)
    return path


def along(
    follow: Callable[[Array, Q, Array], Any],
    data: tuple[Any, Any, Any],
    mus: ArrayLike,
    shape: ArrayLike | None,
    throw: bool,
    tilt: ArrayLike | None = None,
) -> Any:
    """What `follow` finds for the signed rows, the largest Q and the scales, all checked."""
    X, y, depth = unpacked(Classification, *data, default=2)
    # the ratchet needs all entries of X
    X, y = (classification_rows if follow is margin_path else classification_data)(X, y)
    mus = finite_array("mus", mus, ndim=1)
    if (mus <= 0).any():
        where = int(np.argmin(mus))
        raise Invalid(f"mus must be > 0, got {mus[where]} at index {where}")
    shape, tilt = start_shape(shape), tilt_or_none(tilt)
    largest = Q(depth, mu=float(mus.max()), shape=shape, tilt=tilt)
    must_fit(largest, X.shape[1])
    Z = X * y[:, None]
    with one_blas_thread():
        refuse_zero_rows(Z)
        try:
            path = followed(follow, Z, largest, mus)
        except OutOfTime as reason:  # before the first scale
            path = unfollowed(follow, Z, largest, mus, Outcome(Kind.BUDGET_SPENT, str(reason)))
        except NumericalError as reason:  # whether the points can be separated is beyond float64
            path = unfollowed(follow, Z, largest, mus, reason.outcome)
    for outcome in path.outcomes:
        if throw and not outcome.ok:
            raise Unsolved(outcome)
    return path


def followed(follow: Callable[[Array, Q, Array], Any], Z: Array, largest: Q, mus: Array) -> Any:
    """What `follow` finds, if the points can be separated."""
    try:
        return follow(Z, largest, mus)
    except (Unbounded, Failed) as reason:  # already the l2 problem has no solution
        refuse_inseparable(Z)
        raise Unsolved(Outcome(Kind.STALLED, str(reason))) from None


def unfollowed(
    follow: Callable[[Array, Q, Array], Any], Z: Array, largest: Q, mus: Array, outcome: Outcome
) -> MarginPath | RatchetPath:
    """A path whose scales all end with this outcome."""
    nothing = np.full(len(mus), np.nan)
    beta, dual = (np.full((len(mus), count), np.nan) for count in reversed(Z.shape))
    known: dict[str, Any] = {
        "depth": largest.depth,
        "mus": mus,
        "beta": beta,
        "dual": dual,
        "error": nothing,
        "support": np.zeros(dual.shape, dtype=bool),
        "changes": (),
        "outcomes": (outcome,) * len(mus),
    }
    if follow is flow_limit:
        return RatchetPath(**known)
    known |= dict.fromkeys(("log_dual_unit", "value", "residual", "kkt"), nothing)
    return MarginPath(**known, iterations=np.zeros(len(mus), dtype=int))


def margin_path(Z: Array, largest: Q, mus: Array) -> MarginPath:
    units = common_units(Z)
    log_size, Z = (0.0, Z) if units is None else (units.log_size, units.of_rows(Z))
    rows = scaled_rows(Z)
    walk, tracker, unit = MarginWalk(largest, rows), Tracker(), np.log(rows.scale)
    given, solutions = given_rows(Z), []
    together = 1 if isinstance(Z, SparseRows) else TOGETHER
    support = np.zeros((len(mus), len(Z)), dtype=bool)
    order, waiting = np.argsort(-mus, kind="stable"), []
    scales = [largest.at_scale(math.log(mu) / largest.depth) for mu in mus]
    for where in order:
        q = scales[where]
        try:
            b, nu, spent = walk.at(q.level - log_size - unit)
            answer = Found(rows.scale * b, rows.factors * nu, spent, SOLVED, mend=walk.mend)
        except Failed as reason:
            answer = failed(Z, f"no solution at {q}: {reason}")
        except OutOfTime as reason:
            answer = failed(Z, f"no solution at {q}: {reason}", Kind.BUDGET_SPENT)
        waiting.append((q.in_units(log_size), answer))
        if len(waiting) == together or where == order[-1]:
            solutions += certified_path(given, waiting)
            waiting = []
        support[where, walk.active] = True
        if walk.exchange is None:  # from here on every change of the active set is tracked down
            walk.exchange, walk.longest, walk.stride = tracker, LONGEST, LONGEST
            if walk.here is None:  # still linear: from where it ceases to be so nothing is skipped
                walk.m = walk.reach - float(np.log(KERNEL))
    changes = tuple(
        SupportChange(exponential(m + unit + log_size), n, enters)
        for m, n, enters in tracker.changes
    )
    solutions = [solutions[k] for k in np.argsort(order)]
    if units is not None:
        solutions = [restored(s, units, q) for s, q in zip(solutions, scales, strict=True)]
    names = ("beta", "dual", "log_dual_unit", "value", "residual", "kkt", "error", "iterations")
    numbers = stacked(solutions, *names)
    outcomes = tuple(s.outcome for s in solutions)
    return MarginPath(
        largest.depth, mus, support=support, changes=changes, outcomes=outcomes, **numbers
    )


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class RatchetPath(LabelledResult):
    """The limit of the flow at each mu, in the given order, scaled to margin one.

    Attributes
    ----------
    depth
        The power D.
    mus
        The scales.
    beta
        The predictors, one row per scale.
    dual
        R: the gradient of Q_mu at `beta` is Z^T R, as on the path of `max_margin_path`.
    error
        An estimate of the relative error of each predictor: by how far it misses the conditions
        of the flow, computed from the row and the data. Changes that the path has missed on the
        way do not show in it.
    support
        Marks the samples whose weights grow.
    changes
        Where the support changes, from large to small mu.
    outcomes
        How each row ended.
    features
        The names of the columns, if X had them.

    Examples
    --------
    >>> import penchant
    >>> path = penchant.solvers.ratchet_path([[1.0, 2.0], [-2.0, -1.5]], [1, -1], mus=[1.0, 0.1])
    >>> path.beta.shape, [outcome.ok for outcome in path.outcomes]
    ((2, 2), [True, True])
    """

    depth: int
    mus: Array
    beta: Array
    dual: Array
    error: Array
    support: NDArray[np.bool_]
    changes: tuple[SupportChange, ...]
    outcomes: tuple[Outcome, ...]
    features: tuple[str, ...] = ()

    @property
    def dataset(self) -> Any:
        """The numbers along `scale`, an xarray.Dataset; `dataset.to_dataframe()` is a table."""
        return _dataset(self)

    def rows(self) -> list[tuple[str, str]]:
        return table(self, [("worst error", f"{np.fmax.reduce(self.error):.2g}")], ())


@door
@named_as_given
def ratchet_path(
    X: ArrayLike | Classification,
    y: ArrayLike | None = None,
    depth: int = 2,
    *,
    mus: ArrayLike,
    shape: ArrayLike | None = None,
    throw: bool = True,
    max_seconds: float | None = None,
) -> RatchetPath:
    """The position of the flow from alpha * shape at loss exp(-alpha^D/mu), as alpha -> infinity.

    Parameters
    ----------
    X
        The samples, one row each, or a problem instead of X and y.
    y
        The labels, -1 or +1.
    depth
        The power D.
    mus
        The scales, in any order; they are followed from the largest down.
    shape
        The vector w0; None stands for ones.
    throw
        False records a scale that is not reached in `outcomes`, with NaN in its row.
    max_seconds
        After this time the scales that are left fail; None sets no limit.

    Returns
    -------
    RatchetPath
        One row per scale.

    References
    ----------
    .. [1] Moroshko et al. (2020), Implicit Bias in Deep Linear Classification: Initialization Scale
       vs Training Accuracy.

    Examples
    --------
    >>> import penchant
    >>> X, y = [[1.0, 2.0]], [1]
    >>> path = penchant.solvers.ratchet_path(X, y, mus=[100.0, 1e-4])
    >>> path.beta.round(3)
    array([[0.2  , 0.4  ],
           [0.007, 0.496]])
    """
    data = (X, y, depth)
    with limited(max_seconds):
        path: RatchetPath = along(flow_limit, data, mus, shape, throw)
    return path


def flow_limit(Z: Array, largest: Q, mus: Array) -> RatchetPath:
    units = common_units(Z)
    log_size, Z = (0.0, Z) if units is None else (units.log_size, units.of_rows(Z))
    predictor = 0 if units is None else units.predictor
    walk = RatchetWalk(Q(largest.depth, mu=1.0, shape=largest.shape), Z)
    beta, dual = np.full((len(mus), Z.shape[1]), np.nan), np.full((len(mus), len(Z)), np.nan)
    support, error = np.zeros(dual.shape, dtype=bool), np.full(len(mus), np.nan)
    outcomes, last = [FOLLOWED] * len(mus), np.zeros(len(Z))
    for k in np.argsort(-mus, kind="stable"):
        log_tau = log_size - float(np.log(mus[k]))
        try:
            W, R, support[k] = walk.at(log_tau)
        except Failed as reason:
            outcomes[k] = Outcome(Kind.STALLED, f"mu = {mus[k]:.6g} was not reached: {reason}")
            continue
        except OutOfTime as reason:
            outcomes[k] = Outcome(Kind.BUDGET_SPENT, f"mu = {mus[k]:.6g} was not reached: {reason}")
            continue
        certificate = certify(walk, W, R, support[k], log_tau, last)
        last, error[k] = R, certificate.error
        with np.errstate(over="ignore", under="ignore"):
            beta[k], dual[k] = np.ldexp(W, predictor), np.ldexp(R, predictor)
        outcomes[k] = judge(FOLLOWED, certificate)
        if outcomes[k].ok and (lost(W, beta[k], predictor) or lost(R, dual[k], predictor)):
            outcomes[k] = Outcome(Kind.OUT_OF_RANGE, BEYOND)
    changes = tuple(
        SupportChange(exponential(log_size - tau), n, enters) for tau, n, enters in walk.changes
    )
    return RatchetPath(largest.depth, mus, beta, dual, error, support, changes, tuple(outcomes))


def lost(inner: Array, numbers: Array, power: int) -> bool:
    """Whether numbers became infinite or lost digits in the units of the data."""
    with np.errstate(over="ignore", under="ignore"):
        return bool((np.ldexp(numbers, -power) != inner).any())
