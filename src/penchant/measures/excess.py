"""How far a predictor exceeds the least norm that separates the data with its margin."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, positive
from penchant.door import Invalid, door
from penchant.problems.classification import Classification
from penchant.regularizers.lp import Lp
from penchant.regularizers.norms import L1, L2
from penchant.solvers.max_margin import max_margin
from penchant.solvers.stationary import stationary_points


@door
def excess_norm(
    problem: Classification,
    beta: ArrayLike,
    norm: L1 | L2 | Lp,
    *,
    margin: ArrayLike | None = None,
    least: float | None = None,
) -> Array:
    """|beta / margin| / |best| - 1: zero at the max margin of the norm, whatever the scale.

    Parameters
    ----------
    problem
        The data.
    beta
        One predictor, or many of them along leading axes.
    norm
        `L1()`, `L2()` or `Lp(p)`; below p = 1 it is the quasi-norm (sum |beta_i|^p)^(1/p), whose
        best value is the least that `stationary_points` finds.
    margin
        The least margins of the predictors, where they are known to more digits.
    least
        The norm of the best predictor of margin 1, if you have it already (`least_norm`).

    Returns
    -------
    array
        One number per predictor; NaN where the margin is not positive.

    References
    ----------
    .. [1] Moroshko et al. (2020), Implicit Bias in Deep Linear Classification, figures 5, 7, 8.

    Examples
    --------
    >>> import penchant
    >>> line = penchant.Classification([[1.0, 0.0], [3.0, 1.0]], [1, 1])
    >>> measures = penchant.measures
    >>> measures.excess_norm(line, [[7.0, 0.0], [2.0, 1.0], [-1.0, 0.0]], penchant.L1()).round(6)
    array([0. , 0.5, nan])
    """
    _must_be_data(problem)
    predictors = finite_array("beta", beta, ndim=None)
    if predictors.ndim == 0 or predictors.shape[-1] != problem.dimension:
        raise Invalid(
            f"beta must have one entry per feature ({problem.dimension}) along its last axis, got "
            f"the shape {predictors.shape}"
        )
    power = _power(norm)
    if margin is None:
        margins = (predictors @ problem.signed_rows.T).min(axis=-1)
    else:
        margins = finite_array("margin", margin, ndim=None)
        if margins.shape != predictors.shape[:-1]:
            raise Invalid(
                f"margin must have one entry per predictor, the shape {predictors.shape[:-1]}, "
                f"got {margins.shape}"
            )
    best = _least(problem, norm) if least is None else positive("least", least)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(margins > 0, _size(predictors, power) / (margins * best) - 1, np.nan)


@door
def least_norm(problem: Classification, norm: L1 | L2 | Lp) -> float:
    """The least norm of a predictor whose margins are at least 1.

    Parameters
    ----------
    problem
        The data.
    norm
        As in `excess_norm`; for `Lp(p)` below p = 1 it is the least value that was found.

    Returns
    -------
    float
        The norm, not its power.

    Examples
    --------
    >>> import penchant
    >>> line = penchant.Classification([[1.0, 0.0], [3.0, 1.0]], [1, 1])
    >>> round(penchant.measures.least_norm(line, penchant.L1()), 6)
    1.0
    """
    _must_be_data(problem)
    return _least(problem, norm)


def _must_be_data(problem: Classification) -> None:
    if not isinstance(problem, Classification):
        raise Invalid(f"problem must be a Classification, got {type(problem).__name__}")


def _power(norm: object) -> float:
    if isinstance(norm, Lp):
        return norm.p
    if isinstance(norm, L1) or (isinstance(norm, L2) and norm.weights is None):
        return 1.0 if isinstance(norm, L1) else 2.0
    raise Invalid(f"norm must be L1(), L2() or Lp(p), got {norm!r}")


def _least(problem: Classification, norm: L1 | L2 | Lp) -> float:
    power = _power(norm)
    if power < 1:
        best = stationary_points(problem.X, problem.y, norm)[0].beta
    else:
        best = max_margin(problem.X, problem.y, norm).beta
    return float(_size(best, power))


def _size(beta: Array, p: float) -> Array:
    """(sum |beta_i|^p)^(1/p) along the last axis, free of overflow."""
    sizes = np.abs(beta)
    largest = sizes.max(axis=-1, keepdims=True)
    unit = np.divide(sizes, largest, out=np.zeros_like(sizes), where=largest > 0)
    return np.asarray(largest[..., 0] * (unit**p).sum(axis=-1) ** (1 / p))
