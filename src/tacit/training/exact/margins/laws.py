"""How a diagonal net's predictor depends on what training has integrated, for any scale.

With rho the integral of the loss weights, s_i = kappa_i <z_i, rho> and beta_i = a_i h(s_i)
(M lemmas 10 and 12, in the notation of exact/dual/form.py). Everything that may be beyond
float64 is a logarithm; `lift` >= 0 is a common factor e^lift taken out of a_i and put into the
state, so that huge starts, which hardly move, still have digits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.arguments import Array

SMALL = 1e-7  # below this |s| the laws are linear to rounding
LOG_2 = math.log(2)


class Response(NamedTuple):
    """How x and beta answer to a drive <z_i, q>: dx_i = gain_i and dbeta_i = slope_i of it.

    e^log_unit is taken out of all four, because only their ratios are bounded.
    """

    slope: Array
    bend: Array  # d slope_i / dx_i
    gain: Array
    twist: Array  # d gain_i / dx_i
    log_unit: float


class SinhLaw:
    """Depth 2: beta = 2 a sinh(s), state x = s e^lift."""

    def __init__(self, log_amplitude: Array) -> None:
        self.log_a = log_amplitude
        self.lift = max(0.0, float(log_amplitude.max()))
        self.unit = math.exp(-self.lift)  # 0 where the start is that large: s is 0 too
        self.level = log_amplitude - self.lift
        self.a = np.exp(self.level)
        self.one, self.zero = np.ones_like(self.a), np.zeros_like(self.a)

    def response(self, x: Array) -> Response:
        s = x * self.unit
        up, down = np.exp(self.level + s), np.exp(self.level - s)
        return Response(up + down, (up - down) * self.unit, self.one, self.zero, 0.0)

    def predictor(self, x: Array) -> Array:
        s = np.abs(x * self.unit)
        linear = 2 * self.a * x
        log_size = self.log_a + s + np.log1p(-np.exp(-2 * np.maximum(s, SMALL)))
        return np.where(s < SMALL, linear, np.copysign(np.exp(log_size), x))

    def log_slope(self, x: Array) -> Array:
        s = np.abs(x * self.unit)
        return self.log_a + s + np.log1p(np.exp(-2 * s))

    def log_growth(self, x: Array) -> Array:
        """log of u+ and u- over their start."""
        s = x * self.unit
        return np.array([s / 2, -s / 2])

    def at(self, log_size: float, pull: Array) -> tuple[Array, float]:
        """State and kappa0 where the first |beta_i| reaches e^log_size under s = kappa0 pull."""
        with np.errstate(divide="ignore"):
            kappa0 = float(np.min((log_size - self.log_a) / np.abs(pull)))
        return kappa0 * pull, kappa0


class PowerLaw:
    """Depth D > 2: beta = a ((1-s)^-p - (1+s)^-p), state x = atanh(s) e^lift.

    atanh keeps the slack 1 - |s|, which gets far smaller than rounding of s.
    """

    def __init__(self, log_amplitude: Array, depth: int, kappa: Array) -> None:
        self.log_a, self.depth, self.kappa = log_amplitude, depth, kappa
        self.p = depth / (depth - 2)
        self.lift = max(0.0, float(log_amplitude.max()))
        self.unit = math.exp(-self.lift)
        self.a = np.exp(log_amplitude - self.lift)

    def slacks(self, x: Array) -> tuple[Array, Array]:
        """log(1 - s) and log(1 + s)."""
        y = x * self.unit
        return LOG_2 - np.logaddexp(0.0, 2 * y), LOG_2 - np.logaddexp(0.0, -2 * y)

    def response(self, x: Array) -> Response:
        low, high = self.slacks(x)
        base = np.log(self.kappa * self.p) + self.log_a - self.lift
        up, down = base - (self.p + 1) * low, base - (self.p + 1) * high
        log_unit = float(np.maximum(up, down).max())
        up, down = np.exp(up - log_unit), np.exp(down - log_unit)
        gain = self.kappa * np.exp(-low - high - log_unit)  # dx/ds = 1/(1 - s^2)
        # d/dx = unit (1 - s^2) d/ds, and (1 - s^2)/(1 -+ s) = 1 +- s
        bend = (self.p + 1) * self.unit * (up * np.exp(high) - down * np.exp(low))
        twist = 2 * np.tanh(x * self.unit) * gain * self.unit
        return Response(up + down, bend, gain, twist, log_unit)

    def predictor(self, x: Array) -> Array:
        low, high = self.slacks(x)
        y = np.abs(x * self.unit)
        linear = 2 * self.p * self.a * x
        # (1-s)^-p - (1+s)^-p = (1-s^2)^(-p/2) 2 sinh(p atanh s)
        angle = self.p * np.maximum(y, SMALL)
        log_size = self.log_a - self.p / 2 * (low + high) + angle + np.log1p(-np.exp(-2 * angle))
        return np.where(y < SMALL, linear, np.copysign(np.exp(log_size), x))

    def log_slope(self, x: Array) -> Array:
        low, high = self.slacks(x)
        base = np.log(self.kappa) + self.log_a
        return base + np.logaddexp(-(self.p + 1) * low, -(self.p + 1) * high)

    def log_growth(self, x: Array) -> Array:
        low, high = self.slacks(x)
        return -np.array([low, high]) / (self.depth - 2)

    def at(self, log_size: float, pull: Array) -> tuple[Array, float]:
        drive = self.kappa * np.abs(pull)
        log_slack = (self.log_a - log_size) / self.p
        with np.errstate(divide="ignore"):
            kappa0 = (1 - np.exp(log_slack)) / drive
        first = int(np.lexsort((-self.log_a, kappa0))[0])
        share = drive / drive[first]
        # 1 - share (1 - slack) = (1 - share) + share slack, in logarithms
        with np.errstate(divide="ignore"):
            low = np.logaddexp(np.log1p(-np.minimum(share, 1.0)), np.log(share) + log_slack[first])
        y = (np.log1p(share * (1 - math.exp(log_slack[first]))) - low) / 2
        return np.copysign(y, pull), float(kappa0[first])


Law = SinhLaw | PowerLaw
