"""The state of a dual method over matrices: nu, S = A^T nu and M = U b(s) V^T at one scale.

For an odd b the map S -> U b(s) V^T has the derivative (Daleckii-Krein), in the singular bases,
    symmetric part * (b_i - b_j)/(s_i - s_j)  +  skew part * (b_i + b_j)/(s_i + s_j),
and b_i/s_i beyond the square block. Both quotients are written without cancellation.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from penchant.arguments import Array
from penchant.regularizers.q import Q
from penchant.solvers.matrices.measurements import Measurements

NOISE = 1e-14  # a slope below this share of the largest b moves A(M) by rounding only


@dataclasses.dataclass(frozen=True)
class Spectrum:
    """b at the singular values with the quotients of differences and of sums."""

    values: Array
    differences: Array
    sums: Array

    @property
    def ratios(self) -> Array:
        """b_i / s_i."""
        return self.sums.diagonal()


def falling(x: Array) -> Array:
    """(1 - e^-x)/x for x >= 0."""
    safe = np.where(x == 0, 1.0, x)
    return np.where(x == 0, 1.0, -np.expm1(-safe) / safe)


class Sinh:
    """Depth 2: h(s) = 2 sinh(s)."""

    # a misfit that may stay at a scale which is only passed: vanishing singular values fall by a
    # factor e per Newton step, which is not worth waiting for
    negligible = 1e-8

    def quotients(self, high: Array, low: Array, m: float) -> tuple[Array, Array]:
        """((b(x) - b(y))/(x - y), (b(x) + b(y))/(x + y)) for x = high >= y = low >= 0."""
        grown, total, gap = np.exp(m + high), high + low, high - low
        return (
            grown * (1 + np.exp(-total)) * falling(gap),
            grown * (1 + np.exp(-gap)) * falling(total),
        )

    def bound(self, m: float) -> float:
        """The singular value below which b is finite and far from overflow."""
        return 500.0 - m

    def kernel_level(self, size: float, s: float) -> float:
        """The m at which the linear part of b takes s to `size`."""
        return math.log(size / (2 * s))

    def stretch(self, dm: float) -> float:
        """How far to follow d nu/d m for a step dm: exact in the rich limit."""
        return dm

    def slack(self, s: Array) -> Array:
        """The length over which b changes by a factor of about e."""
        return np.ones_like(s)


@dataclasses.dataclass(frozen=True)
class Power:
    """Depth D: h(s) = (1-s)^-p - (1+s)^-p, p = D/(D-2); p = 1 is the barrier log det(1 - S^T S)."""

    p: float
    negligible = 0.0

    def quotients(self, high: Array, low: Array, m: float) -> tuple[Array, Array]:
        chord = self.chord
        differences = chord(1 - high, 1 - low, m) + chord(1 + low, 1 + high, m)
        return differences, chord(1 - high, 1 + low, m) + chord(1 - low, 1 + high, m)

    def chord(self, x: Array, w: Array, m: float) -> Array:
        """mu (x^-p - w^-p)/(w - x) for 0 < x <= w."""
        steps = np.log1p((w - x) / x)
        rising = falling(steps) * np.exp(steps)  # (e^l - 1)/l
        return self.p * np.exp(m - (self.p + 1) * np.log(x)) * falling(self.p * steps) / rising

    def bound(self, m: float) -> float:
        return 1.0

    def kernel_level(self, size: float, s: float) -> float:
        return math.log(size / (2 * self.p * s))

    def stretch(self, dm: float) -> float:
        # active slacks are in proportion to e^(m/p), and nu is smooth in that
        return self.p * math.expm1(dm / self.p)

    def slack(self, s: Array) -> Array:
        return 1 - s


Law = Sinh | Power


def spectrum(law: Law, s: Array, m: float) -> Spectrum:
    differences, sums = law.quotients(np.maximum.outer(s, s), np.minimum.outer(s, s), m)
    return Spectrum(s * sums.diagonal(), differences, sums)


def law_of(q: Q) -> Law:
    return Sinh() if math.isinf(q.power) else Power(q.power)


@dataclasses.dataclass(frozen=True)
class DualState:
    """A dual vector with the singular value decomposition of S = A^T nu, at one scale m."""

    at: Measurements
    law: Law
    m: float
    nu: Array

    @functools.cached_property
    def factors(self) -> tuple[Array, Array, Array]:
        """(U, s, V) with all columns of U and V."""
        U, s, Vt = np.linalg.svd(self.at.adjoint(self.nu))
        return U, s, Vt.T

    @functools.cached_property
    def spectrum(self) -> Spectrum:
        return spectrum(self.law, self.factors[1], self.m)

    @functools.cached_property
    def matrix(self) -> Array:
        U, s, V = self.factors
        return (U[:, : len(s)] * self.spectrum.values) @ V[:, : len(s)].T

    @functools.cached_property
    def misfit(self) -> Array:
        return self.at.y - self.at.apply(self.matrix)

    def inside(self) -> bool:
        return bool(self.factors[1][0] < self.law.bound(self.m))

    def moved(self, dnu: Array) -> DualState:
        return DualState(self.at, self.law, self.m, self.nu + dnu)

    def relative(self, dnu: Array) -> float:
        """The size of a step against the length over which b changes, worst singular pair."""
        U, s, V = self.factors
        step = U.T @ self.at.adjoint(dnu) @ V
        root = np.sqrt(self.law.slack(s))
        left, right = (np.concatenate([root, np.ones(len(W) - len(s))]) for W in (U, V))
        k, spectrum, slopes = len(s), self.spectrum, np.zeros(self.at.shape)
        slopes[:k, :k] = np.maximum(spectrum.differences, spectrum.sums)
        slopes[k:, :k], slopes[:k, k:] = spectrum.ratios, spectrum.ratios[:, None]
        counts = slopes > 10 * NOISE * spectrum.values.max()
        return float((np.abs(step) / np.outer(left, right))[counts].max(initial=0.0))

    def floor(self) -> float:
        """The least slope that a Newton step relies on.

        Directions below rounding must not be moved by rounding; and a misfit is of second order
        where singular values have vanished, so they must not absorb it (as in the method of
        Levenberg and Marquardt).
        """
        misfit = float(np.abs(self.misfit).max())
        trusted = 0.0 if misfit < self.rounding() else 0.1 * misfit
        return max(NOISE * float(self.spectrum.values.max()), trusted)

    def exact_slopes(self) -> bool:
        """Whether all slopes that matter are above the floor, so that steps are Newton's own."""
        noise = NOISE * float(self.spectrum.values.max())
        return self.floor() <= max(noise, float(self.spectrum.differences.diagonal().min()))

    def rounding(self) -> float:
        """The misfit that rounding of S, a sum of rows of about unit size, may cause."""
        s = self.factors[1]
        terms = 1 + float(np.linalg.norm(self.nu))
        return 1e-15 * float(self.spectrum.values.max() * terms / self.law.slack(s).min())

    def derivative(self, direction: Array) -> Array:
        """The change of M when S moves along `direction`."""
        U, s, V = self.factors
        k, spectrum = len(s), self.spectrum
        turned = U.T @ direction @ V
        square = turned[:k, :k].copy()
        turned[:k, :k] = spectrum.differences * (square + square.T) / 2
        turned[:k, :k] += spectrum.sums * (square - square.T) / 2
        turned[k:, :k] *= spectrum.ratios
        turned[:k, k:] *= spectrum.ratios[:, None]
        return U @ turned @ V.T
