"""How a diagonal net's predictor depends on its dual while weight decay shrinks the start.

With u = e^(-rate t) phi the decay leaves the equation of phi, so the closed forms of the flow
without decay stay true with a start that shrinks (L, the kernel regime "with direction kept"):
log a_i(t) = D (log(alpha |w0_i|) - rate t), s_i = kappa_i <z_i, x> / sigma and beta_i = a_i h(s_i),
h(s) = 2 sinh(s) at depth 2 and (1-s)^-p - (1+s)^-p, p = D/(D-2), beyond it.

`x` is the dual times sigma = 1 + max a: a huge start has tiny s and a decayed one a tiny a, and
in these units x is of the size of the predictor in the first case and of s in the second.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.models.diagonal import DiagonalNet

SMALL = 1e-5  # below this |s| the laws are linear to s^2, which the series keeps


class Moment(NamedTuple):
    """The scales of one time: log sigma, -d log sigma / dt over D rate, and log(a_i / sigma)."""

    log_sigma: float
    share: float
    log_ratio: Array | float
    log_a: Array | float
    unit: float  # 1 / sigma, zero where sigma is beyond float64
    log_drive: float  # log of ds_i / dt over <z_i, q>


class DecayLaw:
    """The scales and closed forms of one net under decay at `rate`."""

    def __init__(self, net: DiagonalNet, dimension: int, rate: float) -> None:
        assert net.log_alpha is not None
        self.depth, self.rate = net.depth, rate
        shape = np.abs(net.shape_for(dimension))
        # equal starts stay one number: an array of 100,000 equal logarithms is slower
        equal = net.shape is None
        log_shape: Array | float = 0.0 if equal else np.log(shape)
        self.top = float(np.max(log_shape))
        self.log_start = net.log_alpha + log_shape  # log |w(0)|
        self.kappa: Array | float = 1.0 if equal else np.exp((net.depth - 2) * log_shape)
        self.log_alpha = net.log_alpha
        self.p = 1.0 if net.depth == 2 else net.depth / (net.depth - 2)

    def log_amplitude(self, t: float) -> float:
        """The logarithm of the largest a_i."""
        return self.depth * (self.log_alpha + self.top - self.rate * t)

    def sensitivity(self, t: float) -> float:
        """About how much larger a relative error of beta is than one of s, up to the time t.

        log|beta| moves with s itself at depth 2, and with log(1 - |s|) beyond it.
        """
        fallen = max(0.0, -self.log_amplitude(t))
        return 1 + fallen if self.depth == 2 else math.exp(min(fallen * (1 - 2 / self.depth), 25.0))

    def at(self, t: float) -> Moment:
        largest = self.log_amplitude(t)
        log_sigma = float(np.logaddexp(0.0, largest))
        log_a = self.depth * (self.log_start - self.rate * t)
        drive = math.log(4.0)
        if self.depth > 2:
            drive = math.log(self.depth * (self.depth - 2))
            drive += (self.depth - 2) * (self.log_alpha - self.rate * t)
        return Moment(
            log_sigma,
            share=math.exp(min(largest - log_sigma, 0.0)),
            log_ratio=log_a - log_sigma,
            log_a=log_a,
            unit=math.exp(-log_sigma),
            log_drive=drive,
        )

    def s(self, now: Moment, pull: Array) -> Array:
        """s from pull_i = <z_i, x>."""
        return pull * (now.unit * self.kappa)

    def predictor(self, now: Moment, pull: Array) -> Array:
        """beta, relative accuracy everywhere: near s = 0 from pull, else from logarithms."""
        s = self.s(now, pull)
        size = np.abs(s)
        if self.depth == 2:
            linear = 2 * np.exp(now.log_ratio) * self.kappa * pull * (1 + s * s / 6)
            angle, log_base = np.maximum(size, SMALL), now.log_a
        else:
            bend = (self.p + 1) * (self.p + 2) / 6
            linear = 2 * self.p * np.exp(now.log_ratio) * self.kappa * pull * (1 + bend * s * s)
            # (1-s)^-p - (1+s)^-p = (1-s^2)^(-p/2) 2 sinh(p atanh s)
            angle = self.p * np.arctanh(np.maximum(size, SMALL))
            log_base = now.log_a - self.p / 2 * np.log1p(-s * s)
        large = np.exp(log_base + angle) * -np.expm1(-2 * angle)
        return np.where(size < SMALL, linear, np.copysign(large, s))

    def slope(self, now: Moment, pull: Array) -> Array:
        """d beta_i / d pull_i."""
        size = np.abs(self.s(now, pull))
        if self.depth == 2:
            return np.exp(now.log_ratio + size) * (1 + np.exp(-2 * size)) * self.kappa
        base = self.p * np.exp(now.log_ratio) * self.kappa
        return base * ((1 - size) ** -(self.p + 1) + (1 + size) ** -(self.p + 1))

    def log_slopes(self, now: Moment, pull: Array) -> Array:
        """Logarithms of |d beta_i / dw|^2 up to a common factor, for the tangent kernel."""
        size = np.abs(self.s(now, pull))
        if self.depth == 2:
            return now.log_a + size + np.log1p(np.exp(-2 * size))
        low, high = np.log1p(-size), np.log1p(size)
        log_kernel = 2 * (self.depth - 1) * self.log_start
        power = 2 * (self.depth - 1) / (self.depth - 2)
        return log_kernel + np.logaddexp(-power * low, -power * high)

    def log_growth(self, now: Moment, pull: Array) -> Array:
        """log of w+ and w- over their decayed start, in two rows."""
        s = self.s(now, pull)
        if self.depth == 2:
            return np.array([s / 2, -s / 2])
        return -np.array([np.log1p(-s), np.log1p(s)]) / (self.depth - 2)
