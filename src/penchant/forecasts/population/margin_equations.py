"""The three equations behind `population_margin`, their solution, and how far draws lie from it.

Let x ~ N(0, diag(c^2)), theta = c b* / |c b*|, and let the label be y = 1 with a probability f(v)
that depends on v = <x, b*> / |c b*| alone. Then V = y v has the density 2 phi(v) f(v), and with
a = <theta, c b> and r the rest of |c b| a margin y <x, b> has the law of a V - r G, G ~ N(0, 1).
Gaussian comparison replaces the constraints y <x, b> >= 1 on N samples by one,

    sqrt(N) F(a, r) <= <h, c b>,  F^2 = E (1 - a V - r G)_+^2,  h Gaussian orthogonal to theta,

and Lagrange's conditions of the least R under it are coordinatewise:

    b_i = prox of (k / c_i^2) R at (m theta_i + tau h_i) / c_i,
    tau = F / (sqrt(N) P),  m = a + E V (1 - a V - r G)_+ / P,  P = P(a V + r G < 1).

P is the share of support vectors. Three equations fix a, r and k:

    sum theta_i c_i E b_i = a,  sum c_i^2 E b_i^2 = a^2 + r^2,  sum c_i E h_i b_i = sqrt(N) F.

For L2 they are those of Montanari et al. (2019), for L1 those of Liang and Sur (2022). They are
solved by Newton's method in logarithms after a few rounds of substitution: a and r give m and tau,
the third equation k, the first two the next a and r.

The data are separable below N = (d - 1) / min_t E (G - t V)_+^2 samples (Candes and Sur 2020).

The interval is that of `equations`, with averages over samples in the place of |g|^2: they move F
and its slopes, and Gordon's extra Gaussian gamma moves F by r gamma / sqrt(N).
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, ndtr

from penchant.arguments import Array
from penchant.forecasts.population.equations import ACCURACY, LARGEST, falling_root
from penchant.forecasts.population.images import POINTS, REACH, WEIGHTS, images
from penchant.records import Kind, Outcome, Unsolved
from penchant.regularizers.regularizer import Regularizer

AROUND = np.array([-REACH, -4.0, -1.0, 0.0, 1.0, 4.0, REACH])  # ends of panels, in widths
ROUNDS = (3, 40)  # of substitution before Newton's method, and before its second attempt
STEPS, LONGEST = 40, 1.0  # of Newton's method, in the logarithms
MOST, GROWTH = 0.9, 0.25  # support vectors over coordinates; then predictors grow by this
ROUGH = 0.01  # of k within substitution
THIN = 1e-12  # least variance of h in a coordinate that is all of the truth
RATIOS = (-12.0, 12.0)  # log t


@dataclasses.dataclass(frozen=True)
class GaussianLabels:
    """Labels that follow sign(v), or a logistic law of this slope, flipped with a probability."""

    slope: float
    flips: float

    def nodes(self, place: float, width: float) -> tuple[Array, Array]:
        """Values of V and what each counts; panels end around `place`."""
        places = [np.linspace(-REACH, REACH, 9), place + width * AROUND, AROUND / self.slope]
        ends = np.unique(np.clip(np.concatenate(places), -REACH, REACH))
        half = np.diff(ends)[:, None] / 2
        v = (ends[:-1, None] + half * (1 + POINTS)).ravel()
        right = (v > 0).astype(float) if math.isinf(self.slope) else expit(self.slope * v)
        share = self.flips + (1 - 2 * self.flips) * right
        density = 2 * share * np.exp(-(v**2) / 2) / math.sqrt(2 * math.pi)
        return v, (half * WEIGHTS).ravel() * density

    def error(self, ratio: float) -> tuple[float, float]:
        """The share of wrong labels of a predictor with a/r = `ratio`, and its slope in log a/r."""
        v, measure = self.nodes(0.0, 1 / ratio)
        density = np.exp(-((ratio * v) ** 2) / 2) / math.sqrt(2 * math.pi)
        return float(measure @ ndtr(-ratio * v)), -ratio * float(measure @ (v * density))

    def separable(self, dimension: int) -> float:
        """The number of samples from which on they are not separable."""

        def excess(log_ratio: float) -> float:
            ratio = math.exp(log_ratio)
            v, measure = self.nodes(0.0, 1 / ratio)
            x = -ratio * v
            density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
            return float(measure @ ((x**2 + 1) * ndtr(x) + x * density))

        if math.isinf(self.slope) and self.flips == 0:
            return math.inf
        least = minimize_scalar(excess, bounds=RATIOS, method="bounded")
        return (dimension - 1) / float(least.fun)


class MarginSums(NamedTuple):
    """Averages over samples: F, P, m and tau, and their slopes in a and r.

    `slope_f` is that of F; `covariance` that of (1 - aV - rG)_+^2 and its slopes in a and r.
    """

    f: float
    share: float
    m: float
    tau: float
    slope_f: Array
    slope_m: Array
    slope_tau: Array
    covariance: Array


class MarginState(NamedTuple):
    """log a, log r and log k."""

    log_a: float
    log_r: float
    log_k: float

    def sizes(self) -> tuple[float, float, float]:
        return math.exp(self.log_a), math.exp(self.log_r), math.exp(min(self.log_k, LARGEST))


@dataclasses.dataclass(eq=False)
class MarginProblem:
    """The problem of coordinates that occur `counts` times; theta has length one."""

    regularizer: Regularizer
    samples: int
    labels: GaussianLabels
    theta: Array
    deviations: Array
    counts: Array

    def of_samples(self, a: float, r: float) -> MarginSums:
        v, measure = self.labels.nodes(1 / a, r / a)
        x = (1 - a * v) / r
        bell = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
        p0 = ndtr(x)  # p_j = E (x - G)_+^j
        p1, p2 = x * p0 + bell, (x**2 + 1) * p0 + x * bell
        p3 = (x**3 + 3 * x) * p0 + (x**2 + 2) * bell
        p4 = (x**4 + 6 * x**2 + 3) * p0 + (x**3 + 5 * x) * bell
        share, lever = float(measure @ p0), r * float(measure @ (v * p1))
        f = r * math.sqrt(measure @ p2)
        by_bell = float(measure @ (v * bell))
        slope_f = np.array([-lever, r * share]) / f
        slope_share = np.array([-by_bell, -float(measure @ (x * bell))]) / r
        slope_lever = np.array([-float(measure @ (v**2 * p0)), by_bell])
        m, tau = self._pulls(a, f, share, lever)
        slope_m = [1.0, 0.0] + slope_lever / share - lever * slope_share / share**2
        slope_tau = tau * (slope_f / f - slope_share / share)
        upper = [
            [r**4 * p4, -2 * r**3 * v * p3, 6 * r**3 * p2],
            [0 * v, 4 * r**2 * v**2 * p2, -8 * r**2 * v * p1],
            [0 * v, 0 * v, 4 * r**2 * (p2 + 2 * p0)],
        ]
        seconds = np.array(upper) @ measure
        seconds += np.triu(seconds, 1).T
        means = np.array([f**2, -2 * lever, 2 * r * share])
        covariance = seconds - np.outer(means, means)
        return MarginSums(f, share, m, tau, slope_f, slope_m, slope_tau, covariance)

    def _pulls(self, a: float, f: float, share: float, lever: float) -> tuple[float, float]:
        return a + lever / share, f / (math.sqrt(self.samples) * share)

    def of_coordinates(self, m: float, tau: float, k: float) -> tuple[Array, Array, Array]:
        """The three sums, their slopes in m, tau and log k, and their covariance."""
        c, spread = self.deviations, np.sqrt(np.maximum(1 - self.theta**2, THIN))
        weight = k / c**2
        law = self.regularizer
        z, measure, b, s, p = images(law, m * self.theta / c, tau * spread / c, weight)
        w, theta = c * b, np.broadcast_to(self.theta, b.shape)
        values = np.stack([theta * w, w**2, spread * z * w])
        of_w = np.stack([theta, 2 * w, spread * z])
        moves = np.stack([p * theta, p * spread * z, -p * s * weight * c])
        means = (values * measure).sum(axis=1)
        slopes = (of_w[:, None] * moves[None] * measure).sum(axis=2) @ self.counts
        seconds = (values[:, None] * values[None] * measure).sum(axis=2)
        covariance = (seconds - means[:, None] * means[None]) @ self.counts
        # h is orthogonal to theta: its entries i and j have the covariance -theta_i theta_j
        of_h = np.stack([tau * p * theta, 2 * tau * p * w, w + tau * p * spread * z])
        turns = (of_h * measure).sum(axis=1) * self.theta
        both = turns @ self.counts
        covariance += (turns[:, None] * turns[None]) @ self.counts - np.outer(both, both)
        return means @ self.counts, slopes, covariance

    def defects(self, state: MarginState) -> tuple[Array, Array]:
        """The logarithms of the equations, left over right, and their slopes in the state."""
        a, r, k = state.sizes()
        own = self.of_samples(a, r)
        sums, slopes, _ = self.of_coordinates(own.m, own.tau, k)
        square = a**2 + r**2
        right = [a, square, math.sqrt(self.samples) * own.f]
        with np.errstate(all="ignore"):
            defects = np.log(np.maximum(sums, 0.0)) - np.log(right)
            moved = slopes @ self._moves(own, a, r) / sums[:, None]
        size = np.array([a, r])
        moved[0, 0] -= 1
        moved[1, :2] -= 2 * size**2 / square
        moved[2, :2] -= size * own.slope_f / own.f
        return defects, moved

    @staticmethod
    def _moves(own: MarginSums, a: float, r: float) -> Array:
        """The slopes of m, tau and log k in log a, log r and log k."""
        moves = np.eye(3)
        moves[:2, :2] = np.stack([own.slope_m, own.slope_tau]) * [a, r]
        return moves

    def substituted(self, state: MarginState) -> MarginState:
        """One round: m and tau from a and r, then k, then a and r."""
        a, r, _ = state.sizes()
        own = self.of_samples(a, r)
        if self.samples * own.share > MOST * (self.counts.sum() - 1):  # more than a prox of any k
            return MarginState(state.log_a + 2 * GROWTH, state.log_r + GROWTH, state.log_k)
        goal = math.log(math.sqrt(self.samples) * own.f)

        def excess(log_k: float) -> tuple[float, float]:
            sums, slopes, _ = self.of_coordinates(own.m, own.tau, math.exp(min(log_k, LARGEST)))
            if sums[2] <= 0:
                return -math.inf, math.nan
            return math.log(sums[2]) - goal, slopes[2, 2] / sums[2]

        log_k = falling_root(excess, state.log_k, ROUGH)
        sums, _, _ = self.of_coordinates(own.m, own.tau, math.exp(min(log_k, LARGEST)))
        rest = max(sums[1] - sums[0] ** 2, 1e-4 * r**2)
        return MarginState(math.log(max(sums[0], 1e-2 * a)), math.log(rest) / 2, log_k)

    def fluctuation(self, state: MarginState, direction: Array) -> float:
        """The standard deviation of <direction, state> over draws of the data, to first order."""
        a, r, k = state.sizes()
        root = math.sqrt(self.samples)
        own = self.of_samples(a, r)
        sums, slopes, covariance = self.of_coordinates(own.m, own.tau, k)
        _, moved = self.defects(state)
        row = np.linalg.solve((moved * sums[:, None]).T, -direction)  # of the sums
        # F and its slopes, and with them m and tau, by the three averages over samples
        f_a, f_r = own.slope_f
        of_f = np.array([1.0, 0.0, 0.0]) / (2 * own.f)
        of_fa = np.array([0.0, 0.5, 0.0]) / own.f - of_f * f_a / own.f
        of_fr = np.array([0.0, 0.0, 0.5]) / own.f - of_f * f_r / own.f

        def effect(df: Array, dfa: Array, dfr: Array) -> Array:
            dm = r * (f_a * dfr / f_r - dfa) / f_r
            dtau = -own.tau * dfr / f_r
            return row @ slopes[:, :2] @ np.stack([dm, dtau]) - row[2] * root * df

        of_samples = effect(of_f, of_fa, of_fr)
        extra = effect(*np.array([[r], [0.0], [1.0]]) / root)  # Gordon's Gaussian
        variance = of_samples @ own.covariance @ of_samples / self.samples
        variance += row @ covariance @ row - float(extra[0]) ** 2
        return math.sqrt(max(float(variance), 0.0))


def margin_state(problem: MarginProblem) -> MarginState:
    """The root of the three equations."""
    dimension = float(problem.counts.sum())
    size = 0.5 * math.log(problem.samples / dimension)
    state = MarginState(size, size, math.log(0.1))
    for rounds in ROUNDS:
        for _ in range(rounds):
            state = problem.substituted(state)
        root = _newton(problem, state)
        if root is not None:
            return root
    words = "the equations of the margin have no root that Newton's method finds"
    raise Unsolved(Outcome(Kind.STALLED, words))


def _newton(problem: MarginProblem, state: MarginState) -> MarginState | None:
    for _ in range(STEPS):
        defects, slopes = problem.defects(state)
        if not (np.isfinite(defects).all() and np.isfinite(slopes).all()):
            return None
        if abs(np.linalg.det(slopes)) < 1e-14:
            return None
        step = np.linalg.solve(slopes, -defects)
        step /= max(1.0, np.abs(step).max() / LONGEST)
        state = MarginState(*(np.array(state) + step))
        if np.abs(step).max() < ACCURACY:
            return state
    return None
