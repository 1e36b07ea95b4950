"""The paths in mu of the max margin of Q and of the gradient flow, with their support vectors."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arguments import Array, classification_data, finite_array
from tacit.problems.classification import Classification
from tacit.records import Kind, NumericalError, Outcome, Record
from tacit.regularizers.q import Q
from tacit.solvers.continuation import KERNEL, Failed
from tacit.solvers.data import unpacked
from tacit.solvers.margins.active_set import Unbounded
from tacit.solvers.margins.ratchet import RatchetWalk
from tacit.solvers.margins.rows import certified, scaled_rows
from tacit.solvers.margins.walk import MarginWalk, Tracker
from tacit.solvers.max_margin import failed, must_fit
from tacit.solvers.separation import refuse_inseparable, refuse_zero_rows
from tacit.solvers.solution import SOLVED, Found, Solution
from tacit.threads import one_blas_thread

LONGEST = 0.5  # step in log mu: a sample that comes and goes within one step is not seen
WHO = "ratchet_path"
FOLLOWED = Outcome(Kind.SOLVED, "followed through every change of the support vectors")


@dataclasses.dataclass(frozen=True)
class Change:
    """At this mu, coming from above, the sample joins the support vectors or leaves them."""

    mu: float
    sample: int
    enters: bool

    def __str__(self) -> str:
        return f"{self.sample} {'enters' if self.enters else 'leaves'} at mu = {self.mu:.6g}"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class MarginPath(Record):
    """The largest margins of Q over a list of scales, row by row in the order asked for.

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
    value
        The value of Q at each row.
    residual
        The largest violation of a margin in each row.
    kkt
        The optimality error of each row.
    support
        Marks the samples that are taken as equations, one choice among several where rows
        depend on each other.
    iterations
        The iterations that each row took.
    changes
        Where the support changes, from large to small mu.
    outcomes
        How each row ended.

    Examples
    --------
    >>> import tacit
    >>> path = tacit.max_margin_path([[1.0, 2.0], [-2.0, -1.5]], [1, -1], mus=[1.0, 0.1])
    >>> path.support.tolist(), len(path.changes)
    ([[True, True], [True, True]], 0)
    """

    depth: int
    mus: Array
    beta: Array
    dual: Array
    value: Array
    residual: Array
    kkt: Array
    support: NDArray[np.bool_]
    iterations: NDArray[np.int_]
    changes: tuple[Change, ...]
    outcomes: tuple[Outcome, ...]

    def rows(self) -> list[tuple[str, str]]:
        failed = sum(not outcome.ok for outcome in self.outcomes)
        return [
            ("depth", str(self.depth)),
            ("scales", f"{len(self.mus)}, mu from {self.mus.max():.4g} to {self.mus.min():.4g}"),
            ("worst violation", f"{np.nanmax(self.residual):.2g}"),
            ("worst kkt", f"{np.nanmax(self.kkt):.2g}"),
            ("support vectors", f"{self.support.sum(1).min()} to {self.support.sum(1).max()}"),
            ("changes", "; ".join(map(str, self.changes[:6])) or "none"),
            ("factorizations", str(int(self.iterations.sum()))),
            ("failed", str(failed)),
        ]


@overload
def max_margin_path(
    X: ArrayLike,
    y: ArrayLike,
    depth: int = ...,
    *,
    mus: ArrayLike,
    shape: ArrayLike | None = ...,
    throw: bool = ...,
) -> MarginPath: ...


@overload
def max_margin_path(
    problem: Classification,
    depth: int = ...,
    /,
    *,
    mus: ArrayLike,
    shape: ArrayLike | None = ...,
    throw: bool = ...,
) -> MarginPath: ...


def max_margin_path(
    X: Any,
    y: Any = None,
    depth: Any = 2,
    *,
    mus: ArrayLike,
    shape: ArrayLike | None = None,
    throw: bool = True,
) -> MarginPath:
    """The minimiser of Q with margins >= 1 at every mu, and every change of support vectors.

    Parameters
    ----------
    X
        The samples, one row each, or a problem in the place of X and y.
    y
        The labels, -1 or +1.
    depth
        The power D of Q.
    mus
        The scales mu = alpha**depth, in any order; they are followed from the largest down.
    shape
        The vector w0 of Q; None stands for ones.
    throw
        False records a scale that fails in `outcomes`, with NaN in its row, and goes on.

    Returns
    -------
    MarginPath
        One row per scale.

    Examples
    --------
    >>> import tacit
    >>> X, y = [[1.0, 2.0]], [1]
    >>> path = tacit.max_margin_path(X, y, mus=[100.0, 1e-4])
    >>> path.beta.round(3)
    array([[0.2  , 0.4  ],
           [0.007, 0.496]])
    """
    who = "max_margin_path"
    X, y, depth = unpacked(who, Classification, X, y, depth, default=2)
    X, y = classification_data(who, X, y)
    mus = scales(who, mus)
    largest = Q(depth, mu=float(mus.max()), shape=shape)
    must_fit(who, largest, X.shape[1])
    Z = X * y[:, None]
    with one_blas_thread():
        refuse_zero_rows(who, Z)
        try:
            path = followed(Z, largest, mus)
        except (Unbounded, Failed) as reason:  # already the l2 problem has no solution
            refuse_inseparable(who, Z)
            raise NumericalError(who, Outcome(Kind.STALLED, str(reason))) from None
    for outcome in path.outcomes:
        if throw and not outcome.ok:
            raise NumericalError(who, outcome)
    return path


def scales(who: str, mus: ArrayLike) -> Array:
    """The scales, checked."""
    mus = finite_array(who, "mus", mus, ndim=1)
    if (mus <= 0).any():
        where = int(np.argmin(mus))
        raise ValueError(f"{who}: mus must be > 0, got {mus[where]} at index {where}")
    return mus


def followed(Z: Array, largest: Q, mus: Array) -> MarginPath:
    """The path for separable signed rows."""
    rows = scaled_rows(Z)
    walk, tracker = MarginWalk(largest, rows), Tracker()
    solutions: list[Solution | None] = [None] * len(mus)
    support = np.zeros((len(mus), len(Z)), dtype=bool)
    for where in np.argsort(-mus, kind="stable"):
        q = Q(largest.depth, mu=float(mus[where]), shape=largest.shape)
        try:
            b, nu, spent = walk.at(q.level - np.log(rows.scale))
            found = Found(rows.scale * b, rows.factors * nu, spent, SOLVED)
        except Failed as reason:
            found = failed(Z, f"no solution at {q}: {reason}")
        solutions[where] = certified(Z, q, found)
        support[where, walk.active] = True
        if walk.exchange is None:
            watch(walk, tracker)
    unit = np.log(rows.scale)
    changes = tuple(Change(float(np.exp(m + unit)), n, e) for m, n, e in tracker.changes)
    return collected(largest.depth, mus, [s for s in solutions if s], support, changes)


def watch(walk: MarginWalk, tracker: Tracker) -> None:
    """From here on every change of the active set is tracked down."""
    walk.exchange, walk.longest, walk.stride = tracker, LONGEST, LONGEST
    if walk.here is None:  # still linear: from where it ceases to be so nothing is skipped
        walk.m = walk.reach - float(np.log(KERNEL))


def collected(
    depth: int,
    mus: Array,
    solutions: Sequence[Solution],
    support: NDArray[np.bool_],
    changes: tuple[Change, ...],
) -> MarginPath:
    return MarginPath(
        depth,
        mus,
        np.stack([s.beta for s in solutions]),
        np.stack([s.dual for s in solutions]),
        np.array([s.value for s in solutions]),
        np.array([s.residual for s in solutions]),
        np.array([s.kkt for s in solutions]),
        support,
        np.array([s.iterations for s in solutions]),
        changes,
        tuple(s.outcome for s in solutions),
    )


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class RatchetPath(Record):
    """The limit of the flow at each mu, in the order asked for, scaled to margin one.

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
    support
        Marks the samples whose weights grow.
    changes
        Where the support changes, from large to small mu.
    outcomes
        How each row ended.

    Examples
    --------
    >>> import tacit
    >>> path = tacit.ratchet_path([[1.0, 2.0], [-2.0, -1.5]], [1, -1], mus=[1.0, 0.1])
    >>> path.beta.shape, [outcome.ok for outcome in path.outcomes]
    ((2, 2), [True, True])
    """

    depth: int
    mus: Array
    beta: Array
    dual: Array
    support: NDArray[np.bool_]
    changes: tuple[Change, ...]
    outcomes: tuple[Outcome, ...]

    def rows(self) -> list[tuple[str, str]]:
        return [
            ("depth", str(self.depth)),
            ("scales", f"{len(self.mus)}, mu from {self.mus.max():.4g} to {self.mus.min():.4g}"),
            ("support vectors", f"{self.support.sum(1).min()} to {self.support.sum(1).max()}"),
            ("changes", "; ".join(map(str, self.changes[:6])) or "none"),
            ("failed", str(sum(not outcome.ok for outcome in self.outcomes))),
        ]


@overload
def ratchet_path(
    X: ArrayLike,
    y: ArrayLike,
    depth: int = ...,
    *,
    mus: ArrayLike,
    shape: ArrayLike | None = ...,
    throw: bool = ...,
) -> RatchetPath: ...


@overload
def ratchet_path(
    problem: Classification,
    depth: int = ...,
    /,
    *,
    mus: ArrayLike,
    shape: ArrayLike | None = ...,
    throw: bool = ...,
) -> RatchetPath: ...


def ratchet_path(
    X: Any,
    y: Any = None,
    depth: Any = 2,
    *,
    mus: ArrayLike,
    shape: ArrayLike | None = None,
    throw: bool = True,
) -> RatchetPath:
    """Where the flow from alpha * shape stands at loss exp(-alpha^D/mu), for alpha -> infinity.

    Parameters
    ----------
    X
        The samples, one row each, or a problem in the place of X and y.
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

    Returns
    -------
    RatchetPath
        One row per scale.

    Examples
    --------
    >>> import tacit
    >>> X, y = [[1.0, 2.0]], [1]
    >>> path = tacit.ratchet_path(X, y, mus=[100.0, 1e-4])
    >>> path.beta.round(3)
    array([[0.2  , 0.4  ],
           [0.007, 0.496]])
    """
    X, y, depth = unpacked(WHO, Classification, X, y, depth, default=2)
    X, y = classification_data(WHO, X, y)
    mus = scales(WHO, mus)
    law = Q(depth, mu=1.0, shape=shape)
    must_fit(WHO, law, X.shape[1])
    Z = X * y[:, None]
    with one_blas_thread():
        refuse_zero_rows(WHO, Z)
        try:
            path = ratcheted(Z, law, mus)
        except Unbounded:
            refuse_inseparable(WHO, Z)
            raise
    for outcome in path.outcomes:
        if throw and not outcome.ok:
            raise NumericalError(WHO, outcome)
    return path


def ratcheted(Z: Array, law: Q, mus: Array) -> RatchetPath:
    """The path for signed rows without a zero row."""
    walk = RatchetWalk(law, Z)
    beta, dual = np.full((len(mus), Z.shape[1]), np.nan), np.full((len(mus), len(Z)), np.nan)
    support = np.zeros(dual.shape, dtype=bool)
    outcomes = [FOLLOWED] * len(mus)
    for k in np.argsort(-mus, kind="stable"):
        try:
            beta[k], dual[k], support[k] = walk.at(-float(np.log(mus[k])))
        except Failed as reason:
            outcomes[k] = Outcome(Kind.STALLED, f"mu = {mus[k]:.6g} was not reached: {reason}")
    changes = tuple(Change(float(np.exp(-tau)), n, enters) for tau, n, enters in walk.changes)
    return RatchetPath(law.depth, mus, beta, dual, support, changes, tuple(outcomes))
