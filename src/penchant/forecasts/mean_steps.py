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

FRESH = 0.05  # the relative change of w+^2 + w-^2 at which the kernel is computed anew
DEVIATIONS = 3.0  # standard deviations over batches of the largest gradient to expect


class Seen(NamedTuple):
    """w+^2 + w-^2 at a state, the predictor, its residual, and the residual that steps use."""

    weight: Array
    beta: Array
    residual: Array
    used: Array


class Gains(NamedTuple):
    """What a unit of time adds to c, the tilt and the variance of c; and the largest |q|."""

    c: Array
    tilt: Array
    variance: Array
    largest: Array


def total(table: Any, weights: Array) -> Array:
    """table @ weights in the precision of the table, whatever the size of the weights."""
    size = np.abs(weights).max() or np.float64(1.0)
    sums: Array = (table @ (weights / size).astype(table.dtype)).astype(float)
    return size * sums


class MeanSteps:
    """Steps on these data; `factor` is 2 for a sum of squares and 1 for half of it."""

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
        self.X, self.y, self.rate, self.label_noise = X, y, rate, label_noise
        self.factor, self.samples, self.shares = factor, N, N / B
        self.together = (B - 1) / (N - 1) if N > 1 else 1.0
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

    def seen(self, nu: Array, c: Array, tilt: Array) -> Seen:
        """The predictor of a state, its residual, and the residual that steps use."""
        s = nu @ self.X + tilt
        up, down = np.exp(c + s), np.exp(c - s)
        weight, beta = up + down, up - down
        residual = self.X @ beta - self.y
        own = self.unit**2 * total(self.square, weight)
        return Seen(weight, beta, residual, self.used(residual, own))

    def used(self, residual: Array, own: Array) -> Array:
        """The residual with its correction of first order; `own` is the diagonal of K."""
        first = self.half * (1 - self.together) * own * residual
        if self.together > 0:
            first = first + self.half * self.together * (self.kernel @ residual)
        return residual + first

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

    def implicit(self, dt: float) -> Array:
        """1 - dt times the Jacobian of the drift of nu."""
        K, scale = self.kernel, dt * self.speed
        matrix = (scale * (1 + self.half * (1 - self.together) * self.own))[:, None] * K
        if self.together > 0:
            matrix += (scale * self.half * self.together) * (K @ K)
        return matrix + self.identity

    def strain(self) -> float:
        """eps (P |K| + (1 - P) max diag K): steps diverge at 2; the first order holds far below."""
        top = float(np.linalg.norm(self.kernel, 2)) if self.together > 0 else 0.0
        return 2 * self.half * (self.together * top + (1 - self.together) * float(self.own.max()))

    def gains(self, used: Array, square: float = 1.0, cube: float = 1.0) -> Gains:
        """The means of log((1 - gamma lambda)^2 (1 - q^2)) and -2 (artanh(q) - q), per time.

        Squares and cubes of the residual that steps use count with these factors.
        """
        f, k, N = self.factor, self.k, self.samples
        size = np.abs(used).max() or np.float64(1.0)
        r, scale = used / size, f * size * self.unit
        r2 = square * (r * r)
        g = f * (used @ self.X)
        g2 = square * g * g
        g3 = cube * g * g * g
        spread = variance = np.zeros_like(g)
        skew: Array | float = 0.0
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
        mean, q2 = k * k * g2, k * k * (g2 + spread)
        fourth = 3 * q2 * q2 - 2 * mean * mean  # as if q were Gaussian
        c = (2 * math.log(self.shrink) - q2 - fourth / 2) / self.rate
        tilt = (-2 / 3 * k**3 / self.rate) * (g3 + 3 * g * spread + skew)
        largest = k * (np.abs(g) + DEVIATIONS * np.sqrt(np.maximum(spread, 0.0)))
        return Gains(c, tilt, (k**4 / self.rate) * variance, largest)

    def _orders(self, squares: Array, r2: Array, scale: float) -> Array:
        """The variance of g^2 in one step that the draw of the batches and their order cause."""
        chance = self.together * (1 - self.together)
        others = np.square(self.kernel) @ r2 - np.square(self.own) * r2
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
