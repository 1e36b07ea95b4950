"""The test error of the minimiser of a regularizer, predicted before there are any data.

How it works. For inputs x ~ N(0, diag(c^2)) the minimiser of R under X b = y, y = X b* + noise,
behaves like a scalar problem in every coordinate (Gaussian comparison; docs/theory.md section 36):

    b_i = prox of (k / c_i^2) R at b*_i + tau Z / c_i,   Z ~ N(0, 1),

where the two numbers tau and k solve

    N tau^2 = noise^2 + sum_i c_i^2 E (b_i - b*_i)^2,      N tau = sum_i c_i E Z (b_i - b*_i).

Newton's method in log tau and log k takes about ten steps from the largest tau. Where it does not
converge, brackets do: at a fixed tau the second sum falls with k, and with that k the first
equation has one root. Expectations are Gauss-Legendre sums over panels in Z, which end where a prox
bends: that of l1 has a kink, that of Q at a small scale nearly one. A prox is b = v - weight s with
the dual s, found by Newton's method between bounds: in s nothing overflows, whatever the scale.

The interval. The comparison replaces the N x d Gaussians of X by N + d others, g and h. Draws of
|g|^2 and of the sums over i move the two equations; with the derivative of the equations this gives
a variance. But the comparison is to X and one Gaussian more (Gordon's inequality has a term
gamma |u| |b - b*| beside u^T X (b - b*)), which moves |g| by gamma. Its part of the variance is
subtracted: for L2 this leaves that of a random projection, and for Q what draws of the data have.
"""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from penchant.arguments import Array, finite_array, integer, positive, real
from penchant.door import Invalid, door
from penchant.limits import Turns
from penchant.records import Kind, Outcome, Record, Unsolved
from penchant.regularizers.norms import L1, L2
from penchant.regularizers.q import Q, SignedPair
from penchant.regularizers.regularizer import Regularizer

REACH = 9.0  # standard deviations of Z that count
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(10)  # on each panel
UNIFORM = np.linspace(-REACH, REACH, 9)[:, None]
AROUND = np.array([-4.0, -1.0, 0.0, 1.0, 4.0])[:, None]  # ends of panels at a bend, in its widths
HALVINGS = 20  # places of bends need few digits
INNER, OUTER = 200, 40  # the most steps of Newton's methods; about 5 and 10 are taken
LONGEST = 2.0  # step in log tau and log k
ACCURACY = 1e-11
LEAST = -25.0  # log tau, relative to the truth, below which the truth is recovered
QUADRATIC = 30.0  # log mu over the weights from which on Q is a sum of squares to rounding
NINE_OF_TEN = 1.645
FARTHEST = 1e6  # log alpha
LARGEST = 700.0  # log k


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
    deviations: ArrayLike | None = None,
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
    deviations
        Standard deviations of the features, which are independent; one each if None.

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
    scalar, unit = _scalar_problem(regularizer, samples, dimension, truth, noise, deviations)
    state = _solved(scalar)
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
    deviations: ArrayLike | None = None,
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
    deviations
        Standard deviations of the features.

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
        scalar, unit = _scalar_problem(regularizer, samples, dimension, truth, noise, deviations)
        state = _solved(scalar)
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
    return _falling_root(lambda log_alpha: -excess(log_alpha), 0.0, 1e-9)


@door
def fewest_samples(
    error: float,
    regularizer: Regularizer,
    *,
    dimension: int,
    truth: ArrayLike,
    noise: float = 0.0,
    deviations: ArrayLike | None = None,
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
    deviations
        Standard deviations of the features.

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
        arguments = (samples, dimension, truth, noise, deviations)
        scalar, unit = _scalar_problem(regularizer, *arguments)
        state = _solved(scalar)
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


class ScalarState(NamedTuple):
    """log tau and log k."""

    log_tau: float
    log_k: float

    @property
    def tau(self) -> float:
        return math.exp(self.log_tau)

    @property
    def k(self) -> float:
        return math.exp(min(self.log_k, LARGEST))


class Sums(NamedTuple):
    """Sums over coordinates: E c^2 (b - b*)^2 and E c Z (b - b*).

    `slopes` are theirs in log tau and log k, `covariance` that of the sums over draws of Z.
    """

    error: float
    overlap: float
    slopes: Array
    covariance: Array


@dataclasses.dataclass(eq=False)
class ScalarProblem:
    """The scalar problem of coordinates that occur `counts` times, in units of the truth."""

    regularizer: Regularizer
    samples: int
    noise: float
    truth: Array
    deviations: Array
    counts: Array

    def sums(self, state: ScalarState) -> Sums:
        tau, c = state.tau, self.deviations
        weight = state.k / c**2
        z, measure = self._nodes(tau, weight)
        b, s, p = self._prox(self.truth + tau * z / c, weight)
        miss = c * (b - self.truth)
        both = np.stack([miss**2, z * miss])
        by_tau, by_k = p * z * tau, -p * s * weight * c  # of the miss, in log tau and log k
        slopes = [[2 * miss * by_tau, 2 * miss * by_k], [z * by_tau, z * by_k]]
        means = (both * measure).sum(axis=1)
        seconds = np.einsum("img,jmg,mg->ijg", both, both, measure)
        error, overlap = means @ self.counts
        gains = np.einsum("ijmg,mg,g->ij", np.array(slopes), measure, self.counts)
        covariance = (seconds - means[:, None] * means[None]) @ self.counts
        return Sums(float(error), float(overlap), gains, covariance)

    def defects(self, state: ScalarState, sums: Sums) -> tuple[Array, Array]:
        """The logarithms of both equations, left over right, and their slopes."""
        total = sums.error + self.noise**2
        with np.errstate(divide="ignore", invalid="ignore"):
            defects = np.log([total, max(sums.overlap, 0.0)])
            slopes = sums.slopes / np.array([[total], [sums.overlap]])
        many = math.log(self.samples)
        defects -= [many + 2 * state.log_tau, many + state.log_tau]
        return defects, slopes - [[2.0, 0.0], [1.0, 0.0]]

    def deviation(self, state: ScalarState, sums: Sums) -> float:
        """The standard deviation of the error over draws of the data, to first order."""
        size = self.samples * state.tau
        square = size * state.tau
        inverse = np.linalg.inv(np.array([[2 * square, 0.0], [size, 0.0]]) - sums.slopes)
        row = 2 * square * inverse[0]  # of the fluctuations of both sums
        of_rows = square - row @ [square, size]  # of |g|^2 / N
        of_sums = row @ sums.covariance @ row + (row[1] * self.noise) ** 2
        # |g|^2 / N has the variance 2/N; the Gaussian that is not in the data gives it 4/N
        return math.sqrt(max(of_sums - of_rows**2 * 2 / self.samples, 0.0))

    def _nodes(self, tau: float, weight: Array) -> tuple[Array, Array]:
        """Values of Z for every coordinate, and what each counts in an expectation."""
        ends = [np.broadcast_to(UNIFORM, (len(UNIFORM), len(self.truth)))]
        for sign in (1.0, -1.0):
            middle = sign * self._bend(sign, tau, weight)
            around = (middle + AROUND * weight - self.truth) * self.deviations / tau
            ends.append(np.clip(around, -REACH, REACH))
        panels = np.sort(np.concatenate(ends), axis=0)
        half = np.diff(panels, axis=0)[:, None] / 2
        z = panels[:-1, None] + half * (1 + POINTS[:, None])
        measure = half * WEIGHTS[:, None] * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
        return z.reshape(-1, len(self.truth)), measure.reshape(-1, len(self.truth))

    def _bend(self, sign: float, tau: float, weight: Array) -> Array:
        """|v| where the slope of the prox rises above 1/2, on one side of zero."""
        if not self.regularizer.smooth:
            return weight
        most = np.abs(self.truth) + REACH * tau / self.deviations
        low, high = np.zeros_like(most), np.abs(self.regularizer.dual_of(sign * most))
        high = np.minimum(high, most / weight)
        with np.errstate(all="ignore"):
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                steep = self.regularizer.slope(sign * middle) > weight
                low, high = np.where(steep, low, middle), np.where(steep, middle, high)
            place = np.abs(self.regularizer.primal_of(sign * low)) + weight * low
        return np.where(np.isfinite(place), place, 0.0)

    def _prox(self, v: Array, weight: Array) -> tuple[Array, Array, Array]:
        """The prox b of every v, its dual s and its slope in v."""
        law = self.regularizer
        if not law.smooth:
            b = law.prox_of(v, weight)
            return b, (v - b) / weight, (b != 0).astype(float)
        dual = law.dual_of(v)
        sign = np.sign(dual)
        with np.errstate(all="ignore"):
            bound = np.abs(v - law.primal_of(np.zeros_like(v))) / weight
            size = high = np.fmin(np.abs(dual), bound)
            low = np.zeros_like(size)
            for _ in range(INNER):
                slope = law.slope(sign * size)
                above = sign * (law.primal_of(sign * size) - v) + weight * size
                high, low = np.where(above > 0, size, high), np.where(above > 0, low, size)
                new = size - above / (slope + weight)
                new = np.where((new >= low) & (new <= high), new, (low + high) / 2)
                rests = np.abs(new - size) <= 1e-14 * high
                size = new
                if rests.all():
                    break
            b, s = v - sign * weight * size, sign * size
            p = 1 / (1 + weight * np.exp(-law.log_softness(b, s)))
        return b, s, p


def _scalar_problem(
    regularizer: Regularizer,
    samples: int,
    dimension: int,
    truth: ArrayLike,
    noise: float,
    deviations: ArrayLike | None,
) -> tuple[ScalarProblem, float]:
    """The scalar problem in units in which the truth or the noise is of order one, and the unit."""
    if not isinstance(regularizer, Regularizer):
        raise Invalid(
            f"regularizer must be one of vectors, such as L1() or Q(2, alpha=0.1), got"
            f" {regularizer!r}"
        )
    if not (regularizer.smooth or regularizer.has_prox):
        raise Invalid(f"{regularizer} is not convex: its minimiser has no such prediction")
    samples, dimension = (
        integer("samples", samples, least=1),
        integer("dimension", dimension, least=2),
    )
    if samples >= dimension:
        raise Invalid(
            f"samples must be below the dimension, got {samples} and {dimension}: with as many"
            " samples the rows leave nothing to select"
        )
    planted = finite_array("truth", truth, ndim=1)
    if len(planted) > dimension:
        raise Invalid(f"truth has {len(planted)} weights, more than the {dimension} dimensions")
    weights = np.zeros(dimension)
    weights[: len(planted)] = planted
    sizes = np.ones(dimension)
    if deviations is not None:
        sizes = finite_array("deviations", deviations, ndim=1)
        if len(sizes) != dimension or (sizes <= 0).any():
            raise Invalid(f"deviations must be {dimension} numbers above zero")
    level = real("noise", noise, rule="a finite number >= 0")
    if level < 0:
        raise Invalid(f"noise must be a finite number >= 0, got {level:g}")
    if regularizer.dimension not in (None, dimension):
        raise Invalid(f"{regularizer} has {regularizer.dimension} entries, not {dimension}")
    unit = max(np.abs(weights * sizes).max(), level / math.sqrt(samples))
    if not 1e-150 < unit < 1e150:
        raise Invalid(
            f"truth and noise must not both be zero, and their squares must be numbers; the largest"
            f" is {unit:.3g}"
        )
    if regularizer.degree is None:
        unit = 1.0
    law = _in_range(regularizer.in_units(math.log(unit)), weights / unit)
    entries, kinds = weights / unit, sizes
    counts = np.ones(dimension)
    if law.dimension is None:
        pairs, number = np.unique(np.stack([entries, kinds]), axis=1, return_counts=True)
        (entries, kinds), counts = pairs, number.astype(float)
    return ScalarProblem(law, samples, level / unit, entries, kinds, counts), float(unit)


def _in_range(law: Regularizer, weights: Array) -> Regularizer:
    """The same regularizer, at the scale from which on only rounding changes its prox."""
    if isinstance(law, SignedPair) and isinstance(law, Q):
        over = float(law.log_mu.min()) - QUADRATIC - math.log1p(np.abs(weights).max())
        if over > 0:
            return law.at_scale((law.level - over) / law.layers)
    return law


def _solved(scalar: ScalarProblem) -> ScalarState | None:
    """The root of both equations; None if the truth is recovered."""
    total = float((scalar.truth * scalar.deviations) ** 2 @ scalar.counts) + scalar.noise**2
    begin = 0.5 * math.log(total / scalar.samples)
    state = ScalarState(begin, _log_strength(scalar, begin, 0.0))
    for _ in range(OUTER):
        defects, slopes = scalar.defects(state, scalar.sums(state))
        if not np.isfinite(defects).all() or abs(np.linalg.det(slopes)) < 1e-14:
            break
        step = np.linalg.solve(slopes, -defects)
        step /= max(1.0, np.abs(step).max() / LONGEST)
        state = ScalarState(state.log_tau + step[0], state.log_k + step[1])
        if np.abs(step).max() < ACCURACY:
            return state
        if state.log_tau < LEAST:
            break
    return _bracketed(scalar, begin)


def _bracketed(scalar: ScalarProblem, begin: float) -> ScalarState | None:
    guess = 0.0

    def excess(log_tau: float) -> float:
        nonlocal guess
        guess = _log_strength(scalar, log_tau, guess)
        state = ScalarState(log_tau, guess)
        return float(scalar.defects(state, scalar.sums(state))[0][0])

    if excess(LEAST) < 0:
        return None
    root = _falling_root(excess, begin, ACCURACY)
    return ScalarState(root, _log_strength(scalar, root, guess))


def _log_strength(scalar: ScalarProblem, log_tau: float, guess: float) -> float:
    """log k from the second equation, at a fixed tau."""

    def excess(log_k: float) -> float:
        sums = scalar.sums(ScalarState(log_tau, log_k))
        return sums.overlap / (scalar.samples * math.exp(log_tau)) - 1

    return _falling_root(excess, guess, ACCURACY)


def _falling_root(excess: Callable[[float], float], begin: float, accuracy: float) -> float:
    """The root of a falling function, between ends that go away from `begin` by doubled steps."""

    def end(sign: int) -> float:
        place, step = begin, 0.5
        for _ in Turns(30, "the bracket of a scalar equation"):
            value = excess(place)
            if not math.isfinite(value):
                words = f"a scalar equation has no value at {place:.3g}"
                raise Unsolved(Outcome(Kind.STALLED, words))
            if sign * value <= 0:
                return place
            place, step = place + sign * step, 2 * step
        raise AssertionError("Turns ends the loop")

    low, high = end(-1), end(1)
    return low if low == high else float(brentq(excess, low, high, xtol=accuracy))
