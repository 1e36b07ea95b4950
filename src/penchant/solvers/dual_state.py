"""The state of the dual Newton method: X^T nu, stored so that small slacks are never lost.

A state gives beta and its slope at a scale m = log mu, and moves by an increment of nu. Depth 2
keeps s = X^T nu. Depth D > 2 keeps both slacks 1 - s and 1 + s and updates them: recomputing them
from nu would leave nothing of a slack of 1e-28.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import scipy

from penchant.arguments import Array
from penchant.limits import Turns
from penchant.regularizers.q import SignedPair


class Failed(Exception):
    """Newton's method did not converge at this scale from this guess."""


@dataclasses.dataclass(frozen=True)
class Hyperbolic:
    """Depth 2: beta = 2 mu w sinh(s), with log_weight = log(w0^2); s is X^T nu and the tilt."""

    nu: Array
    s: Array
    log_weight: Array

    def evaluate(self, m: float) -> tuple[Array, Array]:
        """(beta, slope of beta in X^T nu) at the scale m = log mu."""
        size = np.abs(self.s)
        grown = np.exp(m + self.log_weight + size)
        fading = np.expm1(-2 * size)  # e^-2s - 1: sinh without cancellation
        return np.copysign(grown * fading, self.s), grown * (2 + fading)

    def moved(self, dnu: Array, ds: Array) -> Hyperbolic:
        """The state after nu -> nu + dnu, where ds = X^T dnu."""
        return Hyperbolic(self.nu + dnu, self.s + ds, self.log_weight)

    def room(self, ds: Array) -> float:
        """The largest factor on ds that keeps the state inside the domain of beta."""
        return np.inf

    def size(self) -> float:
        """The largest |s|, which sets the rounding error of beta."""
        return float(np.abs(self.s).max())

    def rate(self) -> Array:
        """How fast log|beta_i| grows with (X^T nu)_i, up to a factor near one."""
        return np.ones_like(self.s)

    def tidied(self, X: Array) -> Hyperbolic:
        """The same state with rounding taken out of what must vanish exactly."""
        return self


@dataclasses.dataclass(frozen=True)
class PowerLaw:
    """Depth D > 2: beta = mu w (above^-p - below^-p) with the slacks above = 1-s, below = 1+s."""

    nu: Array
    s: Array
    above: Array
    below: Array
    log_weight: Array
    kappa: Array
    p: float

    def evaluate(self, m: float) -> tuple[Array, Array]:
        p, s2, log_mu = self.p, self.s * self.s, m + self.log_weight
        high = np.exp(log_mu - p * np.log(self.above))
        low = np.exp(log_mu - p * np.log(self.below))
        # near s = 0 the difference cancels; its series does not
        series = 1 + s2 * (p + 1) * (p + 2) / 6 * (
            1 + s2 * (p + 3) * (p + 4) / 20 * (1 + s2 * (p + 5) * (p + 6) / 42)
        )
        beta = np.where(s2 < 1e-5, 2 * p * np.exp(log_mu) * self.s * series, high - low)
        return beta, p * self.kappa * (high / self.above + low / self.below)

    def moved(self, dnu: Array, ds: Array) -> PowerLaw:
        step = self.kappa * ds
        moved = self.nu + dnu, self.s + step, self.above - step, self.below + step
        return PowerLaw(*moved, self.log_weight, self.kappa, self.p)

    def room(self, ds: Array) -> float:
        step = self.kappa * ds
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            nearest = np.fmin(
                np.where(step > 0, self.above / step, np.inf),
                np.where(step < 0, -self.below / step, np.inf),
            )
        return float(nearest.min())

    def size(self) -> float:
        return 1.0

    def rate(self) -> Array:
        return self.p * self.kappa / np.minimum(self.above, self.below)

    def tidied(self, X: Array) -> PowerLaw:
        """Where the l1 solutions fill a face its columns are dependent, and so are its slacks.

        For X c = 0 on the face, sum c_i sign_i slack_i = sum c_i sign_i = 0. Rounding of early
        steps violates this by 1e-16, which is nothing until the slacks are smaller still.
        """
        slack = np.minimum(self.above, self.below)
        if slack.min() > 1e-9:  # of 1, the size of s: rounding of 1e-16 does not show
            return self
        face = np.flatnonzero(slack < 1e-4)
        columns = X[:, face] * self.kappa[face]
        if independent(columns):
            return self
        signs = np.where(self.above[face] < self.below[face], 1.0, -1.0)
        _, sizes, Vt = np.linalg.svd(columns)
        null = Vt[int(np.sum(sizes > 1e-9 * sizes[0])) :].T
        # unit vectors times signs: zero but for the rounding of the decomposition
        if not null.shape[1] or np.abs(null.T @ signs).max() > 1e-10:
            return self
        signed = signs * slack[face]
        clean = signs * (signed - null @ (null.T @ signed))
        if (clean <= 0).any():
            return self
        above, below = self.above.copy(), self.below.copy()
        above[face] = np.where(signs > 0, clean, above[face])
        below[face] = np.where(signs < 0, clean, below[face])
        return dataclasses.replace(self, above=above, below=below)


DualState = Hyperbolic | PowerLaw


def independent(columns: Array) -> bool:
    """Whether columns are plainly independent, by the Cholesky factor of their Gram matrix."""
    if columns.shape[1] > len(columns):
        return False
    factor, failed = scipy.linalg.lapack.dpotrf(columns.T @ columns, lower=True)
    sizes = factor.diagonal()
    return not failed and bool(sizes.min() > 1e-5 * sizes.max())


def begin(pair: SignedPair, dimension: int, nu: Array, s: Array) -> DualState:
    """The state at nu with s = X^T nu."""
    log_weight = np.broadcast_to(pair.log_weight, dimension)
    if math.isinf(pair.power):
        return Hyperbolic(nu, s, log_weight)
    kappa = np.broadcast_to(pair.kappa, dimension)
    s = kappa * s
    return PowerLaw(nu, s, 1 - s, 1 + s, log_weight, kappa, pair.power)


def mixed(start: DualState, end: DualState, part: float) -> DualState:
    """The state between two: a convex combination, in which no slack cancels."""
    names = ("s", "above", "below") if isinstance(start, PowerLaw) else ("s",)
    parts = {n: (1 - part) * getattr(start, n) + part * getattr(end, n) for n in names}
    return dataclasses.replace(start, **parts)


def with_tilt(state: DualState, tilt: Array, dnu: Array, X: Array) -> DualState:
    """The state with more tilt after nu -> nu + dnu; for depth 2 its s is X^T nu + tilt."""
    for move in (dnu, np.zeros_like(dnu)):
        ds = move @ X + tilt
        if state.room(ds) > 1:
            return state.moved(move, ds)
    raise Failed("with more the dual has no domain, where Q has no minimum")


def tilt_in_parts(tilt: Array, add_tilt: Callable[[Array], int]) -> int:
    """Factorizations spent on adding the tilt, in parts as large as `add_tilt` can take."""
    done, part, spent = 0.0, 1.0, 0
    turns = Turns(10_000, "the tilt in parts")
    while done < 1:
        turns.take()
        part = min(part, 1 - done)
        try:
            spent += add_tilt(part * tilt)
            done, part = done + part, 2 * part
        except Failed as reason:
            spent, part = spent + 12, part / 3
            if part < 1e-4:
                raise Failed(f"only {done:.3g} of the tilt could be added; {reason}") from None
    return spent


def shifted(state: DualState, dnu: Array, X: Array) -> DualState:
    """The state after nu -> nu + dnu, or part of the way where the domain of beta ends before."""
    return stepped(state, dnu, dnu @ X)


def stepped(state: DualState, dnu: Array, ds: Array) -> DualState:
    """The same for ds = X^T dnu that is known better than the product shows."""
    factor = min(1.0, 0.9 * state.room(ds))
    return state.moved(factor * dnu, factor * ds)
