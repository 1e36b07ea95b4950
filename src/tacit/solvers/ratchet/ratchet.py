"""Where gradient flow on separable data goes as alpha grows, whatever its support vectors do.

In the clock tau = log(1/loss)/alpha^D = 1/mu the predictor over alpha^D is W = h(Z^T R), with
Z = (y_n x_n) and R the integral of the loss weights in units of the law h. A weight is e^-margin,
so for alpha -> infinity the smallest margin is tau, and R grows for samples at that margin and
rests for all others; it never falls. Equivalently each W(tau + dtau) is the point with margins
>= tau + dtau nearest to W(tau) in the Bregman distance of Q. M theorem 6 asks of R itself what
this ratchet asks of its growth: the two agree for as long as no weight of M's path has to fall.
"""

from __future__ import annotations

import dataclasses
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arguments import Array, classification_data
from tacit.problems.classification import Classification
from tacit.records import Kind, NumericalError, Outcome, Record
from tacit.regularizers.q import Q
from tacit.solvers.continuation import Failed
from tacit.solvers.data import unpacked
from tacit.solvers.margins.active_set import Unbounded
from tacit.solvers.margins.path import Change, scales
from tacit.solvers.max_margin import must_fit
from tacit.solvers.ratchet.walk import RatchetWalk
from tacit.solvers.separation import refuse_inseparable, refuse_zero_rows
from tacit.threads import one_blas_thread

WHO = "ratchet_path"
FOLLOWED = Outcome(Kind.SOLVED, "followed through every change of the support vectors")


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
            path = followed(Z, law, mus)
        except Unbounded:
            refuse_inseparable(WHO, Z)
            raise
    for outcome in path.outcomes:
        if throw and not outcome.ok:
            raise NumericalError(WHO, outcome)
    return path


def followed(Z: Array, law: Q, mus: Array) -> RatchetPath:
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
