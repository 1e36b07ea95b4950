"""Gradient steps on w+^2 - w-^2, averaged over the draws of batches and label noise.

How it works (docs/theory sections 29 and 33). With c = log(w+ w-), s = log(w+/w-) = X^T nu +
tilt and r = X beta - y, a step of rate gamma on B of N samples moves nu by -4 gamma (N/B) r on
these (for a sum of squares), c by log((1 - gamma lambda)^2 (1 - q^2)) and the tilt by -2 (artanh(q)
- q), with q = 2 gamma g/(1 - gamma lambda). The means of q^2 and q^3 over batches without
replacement are sums over samples.

Steps differ from a flow because they come one after another: the residual of a sample is computed
before its own step and between the steps of the others. To first order the residual that steps use
is r + (eps/2) (P K + (1 - P) diag K) r on the path of the flow, with K = X diag(w+^2 + w-^2) X^T,
eps = 8 gamma N/B and P = (B - 1)/(N - 1), the chance that two samples share a batch.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.regularizers.derive.derived import Derived
from penchant.regularizers.q import Q

FRESH = 0.05  # the relative change of w+^2 + w-^2 at which the kernel is computed anew
# The interval of a coordinate: 1.645 standard deviations, those over seeds and those of the errors
# of the integration and of the next order, as shares of the fall. The three are independent, so
# that squares add. The shares are fitted on 480 coordinates (8 samples of 20 features; batches of
# 1, 2 and 4, decay, label noise; 0.3 and 0.9 of the largest rate; 14 seeds each). On others (6 and
# 12 samples; up to 0.97 of that rate) they hold 95% of the scales, and less than half of the runs
# for 1 coordinate of 200, next to the largest rate.
INTEGRATION, NEXT_ORDER = 0.01, 0.05
DEVIATIONS = 3.0  # standard deviations over batches of the largest gradient to expect


class Seen(NamedTuple):
    """The predictor of a state, its slopes in s and in c, its residual and the one that steps use.

    `bend` is the second derivative of the loss of a sample, as a multiple of `factor`; `turns` is
    what moves the effective start, where that depends on the state.
    """

    weight: Array
    lean: Array
    beta: Array
    residual: Array
    bend: Array | float
    used: Array
    turns: Array | None = None


class End(NamedTuple):
    """The regularizer of a state, log scales of the coordinates, and how they move with c."""

    regularizer: Q | Derived
    log_scale: Array
    slope: Array | float


class Gains(NamedTuple):
    """What a unit of time adds to c, the tilt and the variance of c; and the largest |q|.

    `fall` is how much of the fall of c gradients cause, and not decay, and `growth` the rate at
    which decay enlarges such falls.
    """

    c: Array
    tilt: Array
    variance: Array
    largest: Array
    fall: Array
    growth: float = 0.0


class StepMoments(NamedTuple):
    """The mean gradient g with its mean square and cube, and variance and skew of what is drawn.

    `noise` is the part of the variance that comes from the labels, and `orders` the variance of g^2
    that the draws cause.
    """

    g: Array
    g2: Array
    g3: Array
    spread: Array
    skew: Array | float
    orders: Array
    noise: Array | float


def total(table: Any, weights: Array) -> Array:
    """table @ weights in the precision of the table, whatever the size of the weights."""
    size = np.abs(weights).max() or np.float64(1.0)
    sums: Array = (table @ (weights / size).astype(table.dtype)).astype(float)
    return size * sums


class MeanSteps:
    """Steps on these data; `factor` is 2 for a sum of squares and 1 for half of it."""

    size = "2 learning_rate |gradient|"  # which must stay below 1
    longest = math.inf  # step of the integration
    bend: Array | float = 1.0  # of the loss in the present state

    def __init__(
        self,
        X: Array,
        y: Array,
        factor: float,
        *,
        rate: float,
        decay: float,
        batch: int,
        label_noise: float,
    ) -> None:
        N, B = len(y), batch
        self.learning_rate = rate
        self.X, self.y, self.rate, self.label_noise = X, y, rate, label_noise
        self.factor, self.samples, self.shares = factor, N, N / B
        self.together = (B - 1) / (N - 1) if N > 1 else 1.0
        # how much of K, and of its diagonal, a step finds not yet done; half of it each
        self.others, self.alone = self.together, 1 - self.together
        self.shrink = 1 - rate * decay
        self.k = 2 * rate / self.shrink
        self.speed = 2 * self.k * factor / rate
        self.half = 2 * factor * rate * self.shares  # eps/2
        # variance and third central moment of a mean of B out of N, over those of one
        self.second = (N - B) / max(N - 1, 1) / B
        self.third = (N - B) * (N - 2 * B) / max((N - 1) * (N - 2), 1) / B**2
        # single precision is enough for sums over samples, which take most of the time
        self.unit = max(float(X.max()), -float(X.min())) or 1.0
        self.scaled = scaled = (X * (1 / self.unit)).astype(np.float32)
        self.square = scaled * scaled
        self.cube, self.fourth = scaled * self.square, self.square * self.square
        norms = self.square.sum(axis=0)
        self.norms = self.unit**2 * norms.astype(float)
        # the fourth moment of a feature over the square of its second
        self.peaks = N * self.fourth.sum(axis=0) / np.maximum(norms, 1e-15) ** 2
        self.kernel, self.own = np.zeros((N, N)), np.zeros(N)
        self.identity = np.eye(N)
        self.kernel_weight: Array | None = None
        self.crossed: Array | float = 0.0

    def inexact(self, share: float) -> float:
        """The error of a fall as a share of it, where steps are this share of the longest."""
        return INTEGRATION + NEXT_ORDER * share**2

    def begin(self, t: float, dt: float) -> None:
        """Tells the times of the next step of the integration; plain steps have no memory."""

    def seen(self, nu: Array, c: Array, tilt: Array) -> Seen:
        """The predictor of a state, its residual, and the residual that steps use."""
        s = nu @ self.X + tilt
        up, down = np.exp(c + s), np.exp(c - s)
        weight, beta = up + down, up - down
        residual = self.X @ beta - self.y
        own = self.unit**2 * total(self.square, weight)
        return Seen(weight, beta, beta, residual, 1.0, self.used(residual, own, 1.0))

    def used(self, residual: Array, own: Array, bend: Array | float) -> Array:
        """The residual with its correction of first order; `own` is the diagonal of K."""
        first = self.half * self.alone * own * residual
        if self.others > 0:
            first = first + self.half * self.others * (self.kernel @ residual)
        return residual + bend * first

    def refresh(self, weight: Array, falls: bool = True) -> bool:
        """Computes the kernel for these weights if they have changed; True if it did.

        While residuals fall an older kernel will do; where they do not, it must be exact.
        """
        old, least = self.kernel_weight, FRESH if falls else FRESH / 50
        if old is not None and np.abs(weight - old).sum() <= least * weight.sum():
            return False
        top = weight.max() or np.float64(1.0)
        root = self.scaled * np.sqrt(weight / top).astype(np.float32)
        self.kernel = (top * self.unit**2) * (root @ root.T).astype(float)
        self.kernel_weight = weight
        self.own = np.diag(self.kernel).copy()
        if self.label_noise and self.together > 0:
            self.crossed = (self.X * (self.kernel @ self.X)).sum(axis=0)
        return True

    def implicit(self, dt: float, bend: Array | float) -> Array:
        """1 - dt times the Jacobian of the drift of nu."""
        scale, K = dt * self.speed, self.kernel
        if not isinstance(bend, float):
            K = bend[:, None] * K
        matrix = (scale * (1 + self.half * self.alone * self.own * bend))[:, None] * K
        if self.others > 0:
            matrix += (scale * self.half * self.others) * (K @ K)
        return matrix + self.identity

    def strain(self, bend: Array | float) -> float:
        """eps (P |K| + (1 - P) max diag K): steps diverge at 2; the first order holds far below."""
        K = self.kernel
        if not isinstance(bend, float):
            root = np.sqrt(bend)
            K = root[:, None] * K * root
        top = float(np.linalg.norm(K, 2)) if self.others > 0 else 0.0
        return 2 * self.half * (self.others * top + self.alone * float((bend * self.own).max()))

    def end(self, c: Array, tilt: Array) -> End:
        """What a state minimises."""
        scale = np.exp(np.clip(c / 2, -700, 700))
        return End(Q(2, alpha=1.0, shape=scale, tilt=tilt), c / 2, 0.5)

    def gains(
        self, used: Array, square: float = 1.0, cube: float = 1.0, turns: Array | None = None
    ) -> Gains:
        """The means of log((1 - gamma lambda)^2 (1 - q^2)) and -2 (artanh(q) - q), per time.

        Squares and cubes of the residual that steps use count with these factors.
        """
        k, (g, g2, g3, spread, skew, orders, _) = self.k, self.moments(used, square, cube)
        mean, q2 = k * k * g2, k * k * (g2 + spread)
        fourth = 3 * q2 * q2 - 2 * mean * mean  # as if q were Gaussian
        fall = (q2 + fourth / 2) / self.rate
        c = 2 * math.log(self.shrink) / self.rate - fall
        tilt = (-2 / 3 * k**3 / self.rate) * (g3 + 3 * g * spread + skew)
        largest = k * (np.abs(g) + DEVIATIONS * np.sqrt(np.maximum(spread, 0.0)))
        return Gains(c, tilt, (k**4 / self.rate) * orders, largest, fall)

    def moments(self, used: Array, square: float, cube: float) -> StepMoments:
        """The moments of the gradient in beta over the draws of a step."""
        f, N = self.factor, self.samples
        size = np.abs(used).max() or np.float64(1.0)
        r, scale = used / size, f * size * self.unit
        r2 = square * (r * r)
        g = f * (used @ self.X)
        g2 = square * g * g
        g3 = cube * g * g * g
        spread = variance = np.zeros_like(g)
        skew: Array | float = 0.0
        noise: Array | float = 0.0
        if self.second:
            squares = scale**2 * total(self.square.T, r2)
            spread = (N * squares - g2) * self.second
            cubes = (cube * scale**3 * N * N) * total(self.cube.T, r * r * r)
            skew = (cubes - (3 * N * cube / square) * g * squares + 2 * g3) * self.third
            variance = self._orders(squares - g2 / N, r2, scale**4)
        if self.label_noise:
            noise = self._noise()
            variance = variance + self._noises(g2, spread, noise, r2, size)
            spread = spread + noise
        return StepMoments(g, g2, g3, spread, skew, variance, noise)

    def _orders(self, squares: Array, r2: Array, scale: float) -> Array:
        """The variance of g^2 in one step that the draw of the batches and their order cause."""
        chance = self.together * (1 - self.together)
        others = np.square(self.kernel) @ r2 - np.square(self.own) * r2
        others = np.square(self.bend) * others
        before = (4 * self.half**2 * (1 - self.together) * scale) * total(
            self.fourth.T, r2 * others
        )
        return self.shares**3 * (2 * chance * np.square(squares) + before)

    def _noise(self) -> Array:
        """The variance of a gradient that label noise causes, also through the residual.

        The noise in the residual has the covariance label_noise^2 (eps/2) K.
        """
        share = np.minimum(2 * self.half * self.own, 1.0)
        own = self.unit**2 * total(self.square.T, 1 + (1 - self.together) * share / (2 - share))
        both = own + self.together * self.half * self.crossed
        return self.factor**2 * self.shares * self.label_noise**2 * both

    def _noises(self, g2: Array, spread: Array, noise: Array, r2: Array, size: float) -> Array:
        """The variance of g^2 in one step by label noise, directly and by later residuals."""
        square = 2 * (1 + (self.peaks - 1) * self.second) * np.square(noise)
        walk = (self.k * self.factor * self.label_noise / (2 * self.rate)) ** 2 * self.shares
        later = (self.samples * self.second * self.factor * size * self.unit**2) ** 2
        return (
            square
            + 4 * (g2 + spread) * noise
            + walk * (later * total(self.fourth.T, r2) + g2 * self.norms)
        )
