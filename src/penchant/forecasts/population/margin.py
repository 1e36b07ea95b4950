"""The test error of the max margin predictor of a regularizer, before there are any data."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, integer, one_of, share
from penchant.door import Invalid, door
from penchant.forecasts.population.error import NINE_OF_TEN
from penchant.forecasts.population.margin_equations import (
    GaussianLabels,
    MarginProblem,
    margin_state,
)
from penchant.forecasts.population.setting import in_range, setting
from penchant.records import Record
from penchant.regularizers.norms import L2
from penchant.regularizers.regularizer import Regularizer


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class PopulationMargin(Record):
    """The max margin predictor that is expected before the data are drawn.

    Attributes
    ----------
    error
        The share of new labels that it misses, flipped ones included.
    low
        The lower end of the interval that holds the error of nine of ten draws of the data.
    high
        Its upper end.
    cosine
        That of the angle between it and the truth, in the metric of the covariance.
    length
        The standard deviation of its output <x, b>, where all margins are at least one.
    support
        The number of samples with a margin of one.
    sentence
        The prediction in words.

    Examples
    --------
    >>> import penchant
    >>> flat = penchant.forecasts.population_margin(
    ...     penchant.L2(), samples=100, dimension=300, truth=[1.0]
    ... )
    >>> isinstance(flat, penchant.forecasts.PopulationMargin), round(flat.cosine, 3)
    (True, 0.431)
    """

    error: float
    low: float
    high: float
    cosine: float
    length: float
    support: float
    sentence: str


@door
def population_margin(
    regularizer: Regularizer,
    *,
    samples: int,
    dimension: int,
    truth: ArrayLike,
    labels: str = "sign",
    flips: float = 0.0,
    covariance: ArrayLike | None = None,
) -> PopulationMargin:
    """Error and direction of the max margin predictor, for Gaussian inputs, without data.

    It is what `max_margin` computes on data: the predictor of the least value of the regularizer
    with all margins y <x, b> at least one.

    Parameters
    ----------
    regularizer
        L1, L2, an lp norm with p > 1, Q, R or a result of `derive`.
    samples
        Their number N, so few that the data are separable.
    dimension
        The number of features d.
    truth
        The planted weights b*; those that are not given, up to `dimension`, are zero.
    labels
        "sign" for the sign of <x, b*>; "logistic" for +1 with probability 1/(1 + exp(-<x, b*>)).
    flips
        The probability with which a label is flipped afterwards, below 1/2.
    covariance
        The variances of independent features, or for L2 any covariance matrix; the identity if
        None.

    Returns
    -------
    PopulationMargin
        The error with the interval that holds it in nine of ten draws, and the direction.

    References
    ----------
    .. [1] Montanari, Ruan, Sohn and Yan (2019), The Generalization Error of Max-Margin Linear
       Classifiers.
    .. [2] Liang and Sur (2022), A Precise High-Dimensional Asymptotic Theory for Boosting and
       Minimum-l1-Norm Interpolated Classifiers.
    .. [3] Candes and Sur (2020), The Phase Transition for the Existence of the Maximum Likelihood
       Estimate in High-Dimensional Logistic Regression.

    Examples
    --------
    >>> import penchant
    >>> rich = penchant.forecasts.population_margin(
    ...     penchant.L1(), samples=100, dimension=300, truth=[0.5] * 4
    ... )
    >>> print(rich.sentence)
    0.155 of new labels are missed, in nine of ten draws between 0.12 and 0.2
    """
    law, weights, sizes = asked = setting(regularizer, dimension, truth, covariance)
    samples = integer("samples", samples, least=1)
    signal = weights * sizes
    given, length = _given(signal, labels, flips)
    limit = given.separable(len(weights))
    if samples >= limit:
        raise Invalid(
            f"samples must be below {limit:.4g}, got {samples}: from there on Gaussian data with"
            " these labels are not separable, so that no predictor has all margins"
        )
    unit = float(sizes.max()) if law.degree is not None else 1.0
    law = in_range(law.in_units(-math.log(unit)), math.sqrt(samples))
    (theta, kinds), counts = asked.counted(signal / length, sizes / unit)
    problem = MarginProblem(law, samples, given, theta, kinds, counts)
    state = margin_state(problem)
    a, r, _ = state.sizes()
    error, slope = given.error(a / r)
    spread = problem.fluctuation(state, np.array([1.0, -1.0, 0.0])) * -slope / error
    ratio = math.exp(NINE_OF_TEN * spread)
    low, high = error / ratio, min(error * ratio, 1.0)
    words = (
        f"{error:.3g} of new labels are missed, in nine of ten draws between {low:.2g} and"
        f" {high:.2g}"
    )
    size = math.hypot(a, r)
    support = samples * problem.of_samples(a, r).share
    return PopulationMargin(error, low, high, a / size, size, support, words)


@door
def separable_samples(
    *,
    dimension: int,
    truth: ArrayLike,
    labels: str = "sign",
    flips: float = 0.0,
    covariance: ArrayLike | None = None,
) -> float:
    """The number of samples from which on Gaussian data with such labels are not separable.

    Parameters
    ----------
    dimension
        As in `population_margin`, like all that follow.
    truth
        The planted weights.
    labels
        "sign" or "logistic".
    flips
        The probability with which a label is flipped.
    covariance
        The variances of independent features, or any covariance matrix.

    Returns
    -------
    float
        The number, infinity where labels are never wrong. Draws cross it within some square root of
        the dimension.

    References
    ----------
    .. [1] Candes and Sur (2020), The Phase Transition for the Existence of the Maximum Likelihood
       Estimate in High-Dimensional Logistic Regression.

    Examples
    --------
    >>> import penchant
    >>> most = penchant.forecasts.separable_samples(dimension=300, truth=[1.0], flips=0.1)
    >>> round(most)
    895
    """
    _, weights, sizes = setting(L2(), dimension, truth, covariance)
    return _given(weights * sizes, labels, flips)[0].separable(len(weights))


def _given(signal: Array, labels: str, flips: float) -> tuple[GaussianLabels, float]:
    """The law of the labels, and the length of the truth in the metric of the covariance."""
    one_of("labels", labels, ("sign", "logistic"))
    flipped = share("flips", flips)
    if flipped >= 0.5:
        raise Invalid(
            f"flips must be below 1/2, from where on labels do not follow the truth, got {flipped}"
        )
    most = float(np.abs(signal).max())
    if not 1e-150 < most < 1e150:
        raise Invalid(
            "truth must not be zero, and its squares must be numbers; the largest weight, in"
            f" deviations of its feature, is {most:.3g}"
        )
    length = most * float(np.linalg.norm(signal / most))
    return GaussianLabels(math.inf if labels == "sign" else length, flipped), length
