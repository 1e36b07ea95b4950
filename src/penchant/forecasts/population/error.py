"""The test error of the minimiser of a regularizer, predicted before there are any data."""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar

from penchant.arguments import integer, positive
from penchant.door import Invalid, door
from penchant.forecasts.population.equations import solved
from penchant.forecasts.population.setting import scalar_problem
from penchant.limits import Turns
from penchant.records import Record
from penchant.regularizers.norms import L1, L2
from penchant.regularizers.q import Q
from penchant.regularizers.regularizer import Regularizer

NINE_OF_TEN = 1.645
FARTHEST = 1e6  # log alpha
LEVELS = np.linspace(-24.0, 6.0, 11)  # log mu over the weights, between l1 and l2
FLAT = 0.05  # of this logarithm at the least error, where no more digits matter


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class PopulationError(Record):
    """The test error that is expected before the data are drawn.

    Attributes
    ----------
    error
        E <x, b - b*>^2 of the minimiser b, without the noise of a new label.
    low
        The lower end of the interval that holds the error of nine of ten draws of the data.
    high
        Its upper end.
    noise_level
        tau: an entry of b is the prox of b* + tau Z.
    strength
        k, the factor of the regularizer in this prox.
    sentence
        The prediction in words.

    Examples
    --------
    >>> import penchant
    >>> flat = penchant.forecasts.population_error(
    ...     penchant.L2(), samples=100, dimension=1000, truth=[1.0], noise=0.1
    ... )
    >>> round(flat.error, 4)  # (1 - N/d) |b*|^2 + noise^2 N/(d - N)
    0.9011
    """

    error: float
    low: float
    high: float
    noise_level: float
    strength: float
    sentence: str


@door
def population_error(
    regularizer: Regularizer,
    *,
    samples: int,
    dimension: int,
    truth: ArrayLike,
    noise: float = 0.0,
    covariance: ArrayLike | None = None,
) -> PopulationError:
    """The population error of the interpolating minimiser, for Gaussian inputs, without data.

    Parameters
    ----------
    regularizer
        L1, L2, an lp norm with p > 1, Q, R or a result of `derive`.
    samples
        Their number N, below the dimension.
    dimension
        The number of features d.
    truth
        The planted weights; those that are not given, up to `dimension`, are zero.
    noise
        Standard deviation of the labels' noise.
    covariance
        The variances of independent features, or for L2 any covariance matrix; the identity if
        None.

    Returns
    -------
    PopulationError
        The error, and the interval that holds it in nine of ten draws.

    References
    ----------
    .. [1] Thrampoulidis, Oymak and Hassibi (2015), Regularized Linear Regression: A Precise
       Analysis of the Estimation Error.
    .. [2] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import penchant
    >>> rich = penchant.forecasts.population_error(
    ...     penchant.Q(alpha=1e-3), samples=100, dimension=1000, truth=[0.45] * 5, noise=0.1
    ... )
    >>> print(rich.sentence)
    population error 0.0143, in nine of ten draws between 0.0077 and 0.026
    """
    scalar, unit = scalar_problem(regularizer, samples, dimension, truth, noise, covariance)
    state = solved(scalar)
    if state is None:
        words = "the truth is recovered: population error 0"
        return PopulationError(0.0, 0.0, 0.0, 0.0, 0.0, words)
    sums = scalar.sums(state)
    ratio = math.exp(NINE_OF_TEN * scalar.deviation(state, sums) / sums.error)
    error = sums.error * unit**2
    low, high = error / ratio, error * ratio
    words = f"population error {error:.3g}, in nine of ten draws between {low:.2g} and {high:.2g}"
    strength = state.k * unit ** (2 - (regularizer.degree or 2))
    return PopulationError(error, low, high, state.tau * unit, strength, words)


@door
def largest_alpha(
    error: float,
    *,
    depth: int = 2,
    samples: int,
    dimension: int,
    truth: ArrayLike,
    noise: float = 0.0,
    covariance: ArrayLike | None = None,
) -> float:
    """The natural logarithm of the largest scale from which training has this population error.

    Parameters
    ----------
    error
        The population error that is wanted.
    depth
        The depth of the diagonal net.
    samples
        As in `population_error`, like all that follow.
    dimension
        The number of features.
    truth
        The planted weights.
    noise
        Standard deviation of the labels' noise.
    covariance
        The variances of the features.

    Returns
    -------
    float
        log alpha; infinity if every scale has at most this error.

    Examples
    --------
    >>> import penchant
    >>> setting = dict(samples=100, dimension=1000, truth=[0.45] * 5, noise=0.1)
    >>> log_alpha = penchant.forecasts.largest_alpha(0.025, **setting)
    >>> q = penchant.Q(2, log_alpha=log_alpha)
    >>> round(penchant.forecasts.population_error(q, **setting).error, 6)
    0.025
    """
    wanted = positive("error", error)

    def measured(regularizer: Regularizer) -> float:
        scalar, unit = scalar_problem(regularizer, samples, dimension, truth, noise, covariance)
        state = solved(scalar)
        return 0.0 if state is None else scalar.sums(state).error * unit**2

    def excess(log_alpha: float) -> float:
        return math.log(max(measured(Q(depth, log_alpha=log_alpha)), 1e-300) / wanted)

    if measured(L2()) <= wanted:
        return math.inf
    least = measured(L1())
    if least >= wanted:
        raise Invalid(
            f"no scale has a population error of {wanted:g}: the predictor of least l1 norm, the"
            f" limit of small scales, has {least:.3g}; take more samples"
        )
    if excess(-FARTHEST) > 0:
        raise Invalid(f"the largest log alpha with an error of {wanted:g} is below {-FARTHEST:.3g}")
    low, high = (_end(excess, sign) for sign in (-1, 1))
    return low if low == high else float(brentq(excess, low, high, xtol=1e-9))


def _end(rising: Callable[[float], float], sign: int) -> float:
    """A place, doubled from zero, at which a rising function has this sign."""
    place = 0.0
    for _ in Turns(30, "the bracket of a scale"):
        if sign * rising(place) >= 0:
            break
        place = 2 * place + sign
    return place


@door
def best_alpha(
    *,
    depth: int = 2,
    samples: int,
    dimension: int,
    truth: ArrayLike,
    noise: float = 0.0,
    covariance: ArrayLike | None = None,
) -> float:
    """The natural logarithm of the scale from which training has the least population error.

    Parameters
    ----------
    depth
        The depth of the diagonal net.
    samples
        As in `population_error`, like all that follow.
    dimension
        The number of features.
    truth
        The planted weights, or weights like those that are expected.
    noise
        Standard deviation of the labels' noise.
    covariance
        The variances of the features.

    Returns
    -------
    float
        log alpha; minus infinity if the smaller the better, infinity if the larger the better.

    Examples
    --------
    >>> import penchant
    >>> setting = dict(samples=60, dimension=300, truth=[0.45] * 5)
    >>> round(penchant.forecasts.best_alpha(noise=1.0, **setting), 1)
    -2.9
    >>> penchant.forecasts.best_alpha(noise=0.1, **setting)
    -inf
    """
    depth = integer("depth", depth, least=2)
    rest = (samples, dimension, truth, noise, covariance)

    def logarithm(level: float) -> float:
        law = Q(depth, log_alpha=(level + math.log(unit)) / depth)
        scalar, size = scalar_problem(law, *rest)
        state = solved(scalar)
        return -math.inf if state is None else math.log(scalar.sums(state).error * size**2)

    ends = {}
    for sign, norm in ((-1, L1()), (1, L2())):
        scalar, unit = scalar_problem(norm, *rest)
        state = solved(scalar)
        if state is None:
            return sign * math.inf
        ends[sign] = math.log(scalar.sums(state).error * unit**2)
    values = [logarithm(level) for level in LEVELS]
    place = int(np.argmin(values))
    if min(ends.values()) <= values[place]:
        return -math.inf if ends[-1] < ends[1] else math.inf
    bounds = LEVELS[max(place - 1, 0)], LEVELS[min(place + 1, len(LEVELS) - 1)]
    level = minimize_scalar(logarithm, bounds=bounds, method="bounded", options={"xatol": FLAT}).x
    return float(level + math.log(unit)) / depth


@door
def fewest_samples(
    error: float,
    regularizer: Regularizer,
    *,
    dimension: int,
    truth: ArrayLike,
    noise: float = 0.0,
    covariance: ArrayLike | None = None,
) -> int:
    """The fewest samples with which the minimiser has this population error.

    Parameters
    ----------
    error
        The population error that is wanted.
    regularizer
        As in `population_error`, like all that follow.
    dimension
        The number of features.
    truth
        The planted weights.
    noise
        Standard deviation of the labels' noise.
    covariance
        The variances of the features.

    Returns
    -------
    int
        The number of samples, below the dimension.

    Examples
    --------
    >>> import penchant
    >>> setting = dict(dimension=1000, truth=[0.45] * 5, noise=0.1)
    >>> penchant.forecasts.fewest_samples(0.025, penchant.L1(), **setting)
    52
    """
    wanted, dimension = positive("error", error), integer("dimension", dimension, least=2)

    def enough(samples: int) -> bool:
        arguments = (samples, dimension, truth, noise, covariance)
        scalar, unit = scalar_problem(regularizer, *arguments)
        state = solved(scalar)
        return state is None or scalar.sums(state).error * unit**2 <= wanted

    # with noise the error rises again as N nears d: the first success is bracketed from below
    doubled = [2**k for k in range(dimension.bit_length()) if 2**k < dimension]
    most = next((samples for samples in doubled if enough(samples)), None)
    if most is None:
        raise Invalid(
            f"fewer than {dimension} samples do not reach a population error of {wanted:g}"
            f" with {regularizer}"
        )
    least = most // 2 + 1
    return least + bisect.bisect_left(range(least, most), True, key=enough)
