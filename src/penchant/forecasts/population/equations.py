"""The two equations behind `population_error`, their solution, and how far draws lie from it.

For inputs x ~ N(0, diag(c^2)) the minimiser of R under X b = y, y = X b* + noise, behaves like a
scalar problem in every coordinate (Gaussian comparison; docs/theory section 36):

    b_i = prox of (k / c_i^2) R at b*_i + tau Z / c_i,   Z ~ N(0, 1),

where the two numbers tau and k solve

    N tau^2 = noise^2 + sum_i c_i^2 E (b_i - b*_i)^2,      N tau = sum_i c_i E Z (b_i - b*_i).

Newton's method in log tau and log k takes about seven steps from the largest tau. Where it does not
converge, bounds do: at a fixed tau the second sum falls with k, and with that k the first equation
has one root.

The interval. The comparison replaces the N x d Gaussians of X by N + d others, g and h. Draws of
|g|^2 and of the sums over i move the two equations; with the derivative of the equations this gives
a variance. But the comparison is to X and one Gaussian more (Gordon's inequality has a term
gamma |u| |b - b*| beside u^T X (b - b*)), which moves |g| by gamma. Its part of the variance is
subtracted: for L2 this leaves that of a random projection, and for Q what draws of the data have.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.forecasts.population.images import images
from penchant.limits import Turns
from penchant.records import Kind, Outcome, Unsolved
from penchant.regularizers.regularizer import Regularizer

OUTER = 40  # the most steps of Newton's method in both unknowns
LONGEST = 2.0  # step in log tau and log k
ACCURACY = 1e-11
ROUGH = 0.1  # of the k from which Newton's method starts
MOST = 8.0  # log tau over that of no training, which noise may exceed where N is nearly d
LARGEST = 700.0  # log k


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
class GaussianProblem(abc.ABC):
    """The two equations of a minimiser, in units of the truth."""

    samples: int
    noise: float
    least: ClassVar[float] = -25.0  # log tau below which the truth is recovered

    @property
    @abc.abstractmethod
    def energy(self) -> float:
        """The population error of the predictor zero."""

    @abc.abstractmethod
    def sums(self, state: ScalarState) -> Sums:
        """Both sums at a state."""

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


@dataclasses.dataclass(eq=False)
class ScalarProblem(GaussianProblem):
    """That of a separable regularizer; coordinates occur `counts` times."""

    regularizer: Regularizer
    truth: Array
    deviations: Array
    counts: Array

    @property
    def energy(self) -> float:
        return float((self.truth * self.deviations) ** 2 @ self.counts)

    def sums(self, state: ScalarState) -> Sums:
        tau, c = state.tau, self.deviations
        weight = state.k / c**2
        z, measure, b, s, p = images(self.regularizer, self.truth, tau / c, weight)
        miss = c * (b - self.truth)
        both = np.stack([miss**2, z * miss])
        by_tau, by_k = p * z * tau, -p * s * weight * c  # of the miss, in log tau and log k
        slopes = np.array([[2 * miss * by_tau, 2 * miss * by_k], [z * by_tau, z * by_k]])
        means = (both * measure).sum(axis=1)
        error, overlap = means @ self.counts
        gains = (slopes * measure).sum(axis=2) @ self.counts
        seconds = (both[:, None] * both[None] * measure).sum(axis=2)
        covariance = (seconds - means[:, None] * means[None]) @ self.counts
        return Sums(float(error), float(overlap), gains, covariance)


def solved(scalar: GaussianProblem) -> ScalarState | None:
    """The root of both equations; None if the truth is recovered."""
    begin = 0.5 * math.log((scalar.energy + scalar.noise**2) / scalar.samples)
    state = ScalarState(begin, _log_strength(scalar, begin, 0.0, ROUGH))
    for _ in range(OUTER):
        defects, slopes = scalar.defects(state, scalar.sums(state))
        if not np.isfinite(defects).all() or abs(np.linalg.det(slopes)) < 1e-14:
            break
        step = np.linalg.solve(slopes, -defects)
        step /= max(1.0, np.abs(step).max() / LONGEST)
        state = ScalarState(state.log_tau + step[0], state.log_k + step[1])
        if np.abs(step).max() < ACCURACY:
            return state
        if not scalar.least < state.log_tau < begin + MOST:
            break
    return _bounded(scalar, begin)


def _bounded(scalar: GaussianProblem, begin: float) -> ScalarState | None:
    guess = 0.0

    def excess(log_tau: float) -> tuple[float, float]:
        nonlocal guess
        guess = _log_strength(scalar, log_tau, guess, ACCURACY)
        state = ScalarState(log_tau, guess)
        (value, _), (of_error, of_overlap) = scalar.defects(state, scalar.sums(state))
        with np.errstate(all="ignore"):
            return float(value), float(of_error[0] - of_error[1] * of_overlap[0] / of_overlap[1])

    if excess(scalar.least)[0] < 0:
        return None
    root = falling_root(excess, begin, ACCURACY)
    return ScalarState(root, _log_strength(scalar, root, guess, ACCURACY))


def _log_strength(scalar: GaussianProblem, log_tau: float, guess: float, accuracy: float) -> float:
    """log k from the second equation, at a fixed tau."""

    def excess(log_k: float) -> tuple[float, float]:
        state = ScalarState(log_tau, log_k)
        defects, slopes = scalar.defects(state, scalar.sums(state))
        return float(defects[1]), float(slopes[1, 1])

    return falling_root(excess, guess, accuracy)


def falling_root(
    function: Callable[[float], tuple[float, float]], begin: float, accuracy: float
) -> float:
    """The root of a falling function with its slope: Newton's method between bounds.

    The bounds are halved where a step leaves them or the last one gained less than a half. Before
    there are bounds on both sides, steps are cut to a limit, which doubles.
    """
    low, high, place, limit, last = -math.inf, math.inf, begin, LONGEST, math.inf
    for _ in Turns(200, "the root of a scalar equation"):
        value, slope = function(place)
        if math.isnan(value):
            words = f"a scalar equation has no value at {place:.3g}"
            raise Unsolved(Outcome(Kind.STALLED, words))
        if value == 0:
            return place
        low, high = (place, high) if value > 0 else (low, place)
        step = -value / slope if slope < 0 and math.isfinite(value) else math.copysign(limit, value)
        new = place + max(-limit, min(step, limit))
        if math.isfinite(high - low):
            if not low < new < high or abs(value) > last / 2:
                new = (low + high) / 2
        else:
            limit *= 2
        if abs(new - place) <= accuracy or high - low <= accuracy:
            return new
        place, last = new, abs(value)
    raise AssertionError("Turns ends the loop")
