"""When a factorization U V^T stays in the kernel regime: how far it moves, and from which width on.

The setting throughout: W = [U; V] follows gradient flow on the sum of (<X_n, U V^T> - y_n)^2. The
Gram matrix of the rows vec(X_n) has its eigenvalues between `low` and `high`, and |W(0) W(0)^T -
mu I| <= gamma in the operator norm. The misfit is the norm of the residuals at the start.

Every bound follows from one rate. While W stays within R of its start, the tangent kernel stays
within 4 high (gamma + R^2 + 2 R sqrt(mu + gamma)) of 4 mu times the Gram matrix (`misfit_rate`).
So the misfit falls exponentially, the way that W goes is short, and R follows from itself
(`kernel_regime`). Gaussian factors of large width are near a multiple of the identity
(`wishart_deviation`), which turns the premises into a width (`least_width`).
"""

from __future__ import annotations

import dataclasses
import math

from penchant.arguments import integer, log_scale, not_negative, positive
from penchant.door import Invalid, door
from penchant.records import Record


@dataclasses.dataclass(frozen=True, repr=False)
class KernelRegime(Record):
    """How far W moves from its start and from its tangent twin, if the misfit is small enough.

    Parameters
    ----------
    misfit
        The misfit at the start.
    largest_misfit
        The largest for which the bounds are proved.
    from_start
        The bound on |W(t) - W(0)|_F at all times.
    from_twin
        The bound on |W(t) - W_TK(t)|_F at all times, W_TK the flow of the linearized model.

    Examples
    --------
    >>> import penchant
    >>> regime = penchant.bounds.kernel_regime(0.1, mu=2.0, gamma=0.0, low=1.0, high=1.0)
    >>> isinstance(regime, penchant.bounds.KernelRegime), regime.applies
    (True, True)
    """

    misfit: float
    largest_misfit: float
    from_start: float
    from_twin: float

    @property
    def applies(self) -> bool:
        """Whether the misfit is small enough; the other numbers mean nothing if not."""
        return self.misfit <= self.largest_misfit


@door
def kernel_regime(
    misfit: float, *, mu: float, gamma: float, low: float, high: float
) -> KernelRegime:
    """How far a factorization moves from its start and from its tangent twin.

    Parameters
    ----------
    misfit
        The norm of the residuals at the start.
    mu
        The multiple of the identity that W(0) W(0)^T is near; above 4 high gamma / low.
    gamma
        How near, in the operator norm.
    low
        The smallest eigenvalue of the Gram matrix of the measurements.
    high
        The largest one.

    Returns
    -------
    KernelRegime
        Both bounds, and whether the misfit meets their premise.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models, Theorem 9
       and Lemma 12.

    Examples
    --------
    >>> import penchant
    >>> regime = penchant.bounds.kernel_regime(0.1, mu=2.0, gamma=0.0, low=1.0, high=1.0)
    >>> round(regime.largest_misfit, 3), round(regime.from_start, 3), round(regime.from_twin, 3)
    (0.211, 0.079, 0.145)
    """
    misfit, low, high = not_negative("misfit", misfit), *_edges(low, high)
    mu, gamma = positive("mu", mu), not_negative("gamma", gamma)
    if not mu > 4 * high * gamma / low:
        raise Invalid(
            f"mu must be above 4 high gamma / low = {4 * high * gamma / low:g}, got {mu:g}; "
            "W(0) is too far from a multiple of the identity"
        )
    narrow = math.sqrt((1 + gamma / mu) / (1 + low / (4 * high)))
    first = high * math.sqrt(1 + low / (4 * high)) * misfit**2 / (low**2 * mu**1.5)
    second = 2 * math.sqrt(high * (1 + gamma / mu)) * misfit / (low * math.sqrt(mu))
    return KernelRegime(
        misfit,
        mu * low / math.sqrt(high) * (1 - narrow),
        math.sqrt(high + low / 4) * misfit / (low * math.sqrt(mu)),
        first + second,
    )


@door
def misfit_rate(*, mu: float, gamma: float, low: float, high: float, radius: float = 0.0) -> float:
    """The least exponential rate at which the misfit falls while W is within `radius` of its start.

    |y(t) - y| <= |y(0) - y| exp(-rate t); the tangent twin has this rate at radius 0. It is
    4 mu low - 4 high (gamma + radius^2 + 2 radius sqrt(mu + gamma)), negative where nothing is
    guaranteed. Published is 2 mu low in the first term, half the sharp one.

    Parameters
    ----------
    mu
        The multiple of the identity that W(0) W(0)^T is near.
    gamma
        How near, in the operator norm.
    low
        The smallest eigenvalue of the Gram matrix of the measurements.
    high
        The largest one.
    radius
        How far W goes, in the Frobenius norm.

    Returns
    -------
    float
        The rate.

    References
    ----------
    .. [1] Woodworth et al. (2020), Lemma 11.

    Examples
    --------
    >>> import penchant
    >>> penchant.bounds.misfit_rate(mu=2.0, gamma=0.0, low=1.0, high=1.0)
    8.0
    """
    low, high = _edges(low, high)
    mu, gamma = positive("mu", mu), not_negative("gamma", gamma)
    radius = not_negative("radius", radius)
    drift = gamma + radius**2 + 2 * radius * math.sqrt(mu + gamma)
    return 4 * mu * low - 4 * high * drift


@door
def wishart_deviation(rows: int, width: int) -> float:
    """How far W W^T is from width I for a Gaussian W, all but surely.

    For a (rows x width) W with i.i.d. N(0, 1) entries, |W W^T - width I| in the operator norm
    exceeds 8 sqrt(rows width) with probability 2 exp(-rows / 2) at most; entries of another scale
    multiply both by its square.

    Parameters
    ----------
    rows
        The number of rows.
    width
        The number of columns, at least that of the rows.

    Returns
    -------
    float
        The bound.

    References
    ----------
    .. [1] Woodworth et al. (2020), Lemma 13.

    Examples
    --------
    >>> import penchant
    >>> penchant.bounds.wishart_deviation(4, 100)
    160.0
    """
    rows = integer("rows", rows, least=1)
    return 8 * math.sqrt(rows * integer("width", width, least=rows))


@door
def least_width(
    norm: float,
    *,
    dimension: int,
    samples: int,
    low: float,
    high: float,
    alpha: float | None = None,
    log_alpha: float | None = None,
) -> float:
    """The width from which i.i.d. N(0, alpha^2) factors meet the premises of `kernel_regime`.

    With probability 1 - 2 exp(-dimension) at least, for U and V of `dimension` rows each. The
    published width is corrected in two places: samples * high bounds the squares of all
    measurements, not dimension * high^2, and the term of the targets was inverted.

    Parameters
    ----------
    norm
        The norm of the targets y.
    dimension
        The number of rows and of columns of U V^T.
    samples
        The number of measurements.
    low
        The smallest eigenvalue of the Gram matrix of the measurements.
    high
        The largest one.
    alpha
        The standard deviation of an entry of U and V; give exactly one of the scales.
    log_alpha
        Its natural logarithm.

    Returns
    -------
    float
        The width; not rounded, for it may be as large as 1e30.

    References
    ----------
    .. [1] Woodworth et al. (2020), Corollary 10, eq. (94).

    Examples
    --------
    >>> import penchant
    >>> edges = {"dimension": 2, "samples": 3, "low": 1.0, "high": 1.0}
    >>> [f"{penchant.bounds.least_width(1.0, alpha=a, **edges):.0f}" for a in (1, 1e-3)]
    ['2457600', '40000000']
    """
    alpha, norm = math.exp(log_scale(2, alpha, log_alpha)), not_negative("norm", norm)
    dimension, samples = _sizes(dimension, samples)
    low, high = _edges(low, high)
    ratio = high / low
    near = 8192 * dimension * ratio**2
    random = 512 * dimension**2 * samples * ratio**2 * (4 + 16 * ratio) ** 2
    targets = 8 * norm * math.sqrt(high) * (low + 4 * high) / (alpha * low) ** 2
    return max(near, random, targets)


@door
def wide_start_regime(
    width: int,
    norm: float,
    *,
    dimension: int,
    samples: int,
    low: float,
    high: float,
    alpha: float | None = None,
    log_alpha: float | None = None,
) -> KernelRegime:
    """The bounds of `kernel_regime` for i.i.d. N(0, alpha^2) factors, from width and scale alone.

    They hold with probability 1 - 2 exp(-dimension) at least. From `least_width` on they apply;
    then from_start is O(1 / (alpha sqrt(width)) + alpha).

    Parameters
    ----------
    width
        The number of columns of U and of V; it may be as large as 1e30.
    norm
        The norm of the targets y.
    dimension
        The number of rows and of columns of U V^T.
    samples
        The number of measurements.
    low
        The smallest eigenvalue of the Gram matrix of the measurements.
    high
        The largest one.
    alpha
        The standard deviation of an entry of U and V; give exactly one of the scales.
    log_alpha
        Its natural logarithm.

    Returns
    -------
    KernelRegime
        Both bounds, for the largest misfit that such a start has.

    References
    ----------
    .. [1] Woodworth et al. (2020), Corollary 10.

    Examples
    --------
    >>> import penchant
    >>> edges = {"dimension": 2, "samples": 3, "low": 1.0, "high": 1.0}
    >>> regime = penchant.bounds.wide_start_regime(10**9, 1.0, alpha=1e-3, **edges)
    >>> regime.applies, round(regime.from_start, 4)
    (True, 0.0796)
    """
    alpha, norm = math.exp(log_scale(2, alpha, log_alpha)), not_negative("norm", norm)
    dimension, samples = _sizes(dimension, samples)
    width, (low, high) = integer("width", width, least=2 * dimension), _edges(low, high)
    gamma = alpha**2 * wishart_deviation(2 * dimension, width)
    # eq. (89): |W W^T - mu I|_F^2 <= 2 dimension gamma^2, and the squares of all lifted
    # measurements sum to half of those of the measurements
    misfit = math.sqrt(2 * norm**2 + 2 * dimension * gamma**2 * samples * high)
    return kernel_regime(misfit, mu=alpha**2 * width, gamma=gamma, low=low, high=high)


def _sizes(dimension: object, samples: object) -> tuple[int, int]:
    return integer("dimension", dimension, least=1), integer("samples", samples, least=1)


def _edges(low: object, high: object) -> tuple[float, float]:
    low, high = positive("low", low), positive("high", high)
    if low > high:
        raise Invalid(f"low must be at most high, got {low:g} and {high:g}")
    return low, high
