"""Where a dual method over matrices stands: nu, S = A^T nu and M = U b(s) V^T at one scale."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from tacit.arguments import Array
from tacit.solvers.matrices.law import Law, Spectrum
from tacit.solvers.matrices.measurements import Measurements

NOISE = 1e-14  # a slope below this share of the largest b moves A(M) by rounding only


@dataclasses.dataclass(frozen=True)
class State:
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
        return self.law.spectrum(self.factors[1], self.m)

    @functools.cached_property
    def matrix(self) -> Array:
        """M = U b(s) V^T."""
        U, s, V = self.factors
        return (U[:, : len(s)] * self.spectrum.values) @ V[:, : len(s)].T

    @functools.cached_property
    def misfit(self) -> Array:
        """y - A(M)."""
        return self.at.y - self.at.apply(self.matrix)

    def inside(self) -> bool:
        """Whether b is finite here, and far from overflow."""
        return bool(self.factors[1][0] < self.law.bound(self.m))

    def moved(self, dnu: Array) -> State:
        return State(self.at, self.law, self.m, self.nu + dnu)

    def relative(self, dnu: Array) -> float:
        """The size of a step against the length over which b changes, worst singular pair.

        Pairs whose slope is below rounding do not count: no step of theirs changes A(M).
        """
        U, s, V = self.factors
        step = U.T @ self.at.adjoint(dnu) @ V
        root = np.sqrt(self.law.slack(s))
        left, right = (np.concatenate([root, np.ones(len(W) - len(s))]) for W in (U, V))
        counts = self.slopes() > 10 * NOISE * self.spectrum.values.max()
        return float((np.abs(step) / np.outer(left, right))[counts].max(initial=0.0))

    def floor(self) -> float:
        """The least slope that a Newton step relies on.

        What rounding cannot see must not be moved by rounding; and a misfit is second order where
        singular values have vanished, so there it must not be taken up by them (as in the method
        of Levenberg and Marquardt).
        """
        misfit = float(np.abs(self.misfit).max())
        trusted = 0.0 if misfit < self.rounding() else 0.1 * misfit
        return max(NOISE * float(self.spectrum.values.max()), trusted)

    def exact_slopes(self) -> bool:
        """Whether all slopes that matter are above the floor, so that steps are Newton's own."""
        noise = NOISE * float(self.spectrum.values.max())
        return self.floor() <= max(noise, float(self.spectrum.differences.diagonal().min()))

    def slopes(self) -> Array:
        """The larger of the two slopes of each singular pair."""
        k, spectrum = len(self.factors[1]), self.spectrum
        slopes = np.zeros(self.at.shape)
        slopes[:k, :k] = np.maximum(spectrum.differences, spectrum.sums)
        slopes[k:, :k], slopes[:k, k:] = spectrum.ratios, spectrum.ratios[:, None]
        return slopes

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
