"""Margins of a linear predictor, their shares of the best, and the stability of support vectors."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penchant.arguments import (
    Array,
    classification_data,
    entries,
    finite_array,
    not_negative,
    real,
)
from penchant.door import Invalid, door
from penchant.problems.classification import Classification
from penchant.records import Record
from penchant.regularizers.norms import L1, L2, Linf, norm_of
from penchant.regularizers.regularizer import Regularizer
from penchant.regularizers.spectral import MatrixNorm
from penchant.solvers.max_margin import max_margin

if TYPE_CHECKING:
    import xarray


@door
def margins(X: ArrayLike, y: ArrayLike, beta: ArrayLike) -> Array:
    """y_n <x_n, beta> for every sample.

    Parameters
    ----------
    X
        The samples, one row each.
    y
        The labels, -1 or +1.
    beta
        The predictor.

    Returns
    -------
    array
        The margins.

    Examples
    --------
    >>> import penchant
    >>> penchant.measures.margins([[1.0, 2.0], [-3.0, 0.0]], [1, -1], [1.0, 1.0])
    array([3., 3.])
    """
    X, y = classification_data(X, y)
    return y * (X @ entries("beta", beta, X.shape[1], "one entry per feature"))


@door
def support_vectors(margins: ArrayLike, rtol: float = 1e-3) -> NDArray[np.bool_]:
    """True where a margin exceeds the smallest one by at most `rtol` of it.

    This is the rule of Moroshko et al. 2020, footnote 4.

    Parameters
    ----------
    margins
        One set of margins or a whole path of them, samples along the last axis.
    rtol
        The relative excess that is allowed.

    Returns
    -------
    array of bool
        One answer per margin.

    References
    ----------
    .. [1] Moroshko et al. (2020), Implicit Bias in Deep Linear Classification: Initialization Scale
       vs Training Accuracy.

    Examples
    --------
    >>> import penchant
    >>> penchant.measures.support_vectors([1.0, 1.0005, 2.0])
    array([ True,  True, False])
    """
    values = finite_array("margins", margins, ndim=None)
    least = values.min(axis=-1, keepdims=True)
    return values <= least + not_negative("rtol", rtol) * np.abs(least)


@door
def margin_shares(
    path: Any, problem: Classification, norms: Sequence[Regularizer | MatrixNorm] | None = None
) -> xarray.DataArray:
    """The margin along a run as a share of the best margin, in every norm: which one is maximised?

    The margin of a predictor in a norm is min_n y_n <x_n, beta> / norm(beta); no predictor has a
    larger one than max_margin(problem, norm). A share is 1 there, and negative where a sample is
    on the wrong side. A predictor of zeros has none.

    Parameters
    ----------
    path
        The path of a training of a model with a linear predictor.
    problem
        The classification it was trained on.
    norms
        L1(), L2() and Linf() unless given; also L2(weights), Nuclear(shape) and Spectral(shape).

    Returns
    -------
    xarray.DataArray
        Shares with the dimensions `time` and `norm`; `.plot.line(x="t")` draws them.

    References
    ----------
    .. [1] Fan et al. (2025), Implicit Bias of Spectral Descent and Muon on Multiclass Separable
       Data.
    .. [2] Tsilivis et al. (2024), Flavors of Margin: Implicit Bias of Steepest Descent in
       Homogeneous Neural Networks.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.separable_points(6, 4, margin=0.5, seed=3)
    >>> stop = penchant.Steps(3000)
    >>> model, method = penchant.models.LinearPredictor(), penchant.methods.SignDescent(0.01)
    >>> path = penchant.train(model, problem, method, stop=stop)
    >>> penchant.measures.margin_shares(path, problem).isel(time=-1).round(2).values
    array([0.82, 0.94, 0.99])
    """
    import xarray

    if not isinstance(problem, Classification):
        raise Invalid(f"expected a Classification, got {type(problem).__name__}")
    dataset = getattr(path, "dataset", path)
    if "predictor" not in dataset:
        raise Invalid("the path has no linear predictor, so it has no margins")
    betas = dataset.predictor.transpose("time", ...).values
    if betas.shape[1:] != (problem.dimension,):
        raise Invalid(
            f"the problem has {problem.dimension} features, but a predictor of the"
            f" path has shape {betas.shape[1:]}"
        )
    norms = [L1(), L2(), Linf()] if norms is None else list(norms)
    margin = (betas @ problem.signed_rows.T).min(axis=1)
    shares = []
    for norm in (norm_of(norm) for norm in norms):
        size = np.array([float(norm.value(beta)) for beta in betas])
        with np.errstate(invalid="ignore", divide="ignore"):
            shares.append(max_margin(problem, norm).value * margin / size)
    clocks = {name: dataset[name] for name in ("t", "step") if name in dataset.coords}
    names = ("norm", [repr(norm) for norm in norms])
    about = {"long_name": "margin over the best margin in the norm", "units": "1"}
    return xarray.DataArray(
        np.array(shares).T, dims=("time", "norm"), coords={"norm": names, **clocks}, attrs=about
    ).rename("margin_share")


@dataclasses.dataclass(frozen=True, repr=False)
class Stability(Record):
    """Whether the samples that end off the margin stay off it, and since when.

    The condition requires this for every alpha, with `since` growing slower than alpha^D; one
    trajectory gives `since` only for its own alpha.

    Attributes
    ----------
    holds
        False if even the last record does not satisfy the condition.
    since
        The smoothed margin from which on every watched sample has at least `rho` times the
        smallest margin.
    rho
        That ratio.
    watched
        The samples that end off the margin.
    sample
        The last of them to reach that ratio, or None.

    Examples
    --------
    >>> import penchant
    >>> penchant.measures.Stability(holds=True, since=1.0, rho=2.0, watched=(1,), sample=None).holds
    True
    """

    holds: bool
    since: float
    rho: float
    watched: tuple[int, ...]
    sample: int | None


@door
def stability(
    path: Any, limit: ArrayLike, rho: float | None = None, rtol: float = 1e-3
) -> Stability:
    """The stability of the support vectors along `path`, a path on a Classification.

    It is condition 5 of Moroshko et al. 2020.

    Parameters
    ----------
    path
        The path of a training.
    limit
        The margins y_n <x_n, w_hat> of the direction with which the path is compared, in any unit.
    rho
        The ratio > 1 that the watched samples must keep; by default half-way between 1 and the
        smallest of their limits, as in Moroshko et al. 2020, appendix E.
    rtol
        Samples above the smallest limit by more than this are watched.

    Returns
    -------
    Stability
        Whether they stay off the margin, and since when.

    References
    ----------
    .. [1] Moroshko et al. (2020), Implicit Bias in Deep Linear Classification: Initialization Scale
       vs Training Accuracy.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.Classification([[1.0, 0.0], [3.0, 1.0]], [1, 1])
    >>> model = penchant.DiagonalNet(alpha=1.0)
    >>> path = penchant.train(model, problem, penchant.DualFlow(), stop=penchant.stop.LogLoss(-20))
    >>> penchant.measures.stability(path, limit=[1.0, 3.0]).holds
    True
    """
    dataset = getattr(path, "dataset", path)
    if "margins" not in dataset:
        raise Invalid("the path has no margins; it must come from training on a Classification")
    margins, clock = dataset.margins.values, dataset.smoothed_margin.values
    ends = entries("limit", limit, margins.shape[1], "one margin per sample")
    if not ends.min() > 0:
        raise Invalid(f"the limit must separate the data, got margin {ends.min():g}")
    ends = ends / ends.min()
    watched = np.flatnonzero(ends > 1 + rtol)
    if not len(watched):
        return Stability(True, float(clock[0]), math.inf, (), None)
    rho = (1 + float(ends[watched].min())) / 2 if rho is None else real("rho", rho)
    if not rho > 1:
        raise Invalid(f"rho must be > 1, got {rho:g}")
    return _since(_ratios(margins, watched), clock, rho, watched)


def _ratios(margins: Array, watched: Any) -> Array:
    """Margins of the watched samples over the smallest; zero where that is not positive.

    The zero predictor of a start has no ratios and does not count.
    """
    least = margins.min(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(least > 0, margins[:, watched] / least, 0.0)
    return np.where((margins == 0).all(axis=1, keepdims=True), np.inf, ratios)


def _since(ratios: Array, clock: Array, rho: float, watched: Any) -> Stability:
    samples = tuple(int(n) for n in watched)
    below = ratios < rho
    if not below.any():
        return Stability(True, float(clock[0]), rho, samples, None)
    last = np.array([np.flatnonzero(column)[-1] if column.any() else -1 for column in below.T])
    slowest = int(last.argmax())
    at = int(last[slowest])
    if at == len(clock) - 1:
        return Stability(False, math.inf, rho, samples, samples[slowest])
    # between two records the ratio is taken as linear in the smoothed margin
    low, high = ratios[at, slowest], ratios[at + 1, slowest]
    share = float((rho - low) / (high - low)) if high > low else 1.0
    since = float(clock[at] + share * (clock[at + 1] - clock[at]))
    return Stability(True, since, rho, samples, samples[slowest])
