"""Losses with known constants, and the lines of the PL proof as functions of one step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from penchant.lab import Array


@dataclasses.dataclass(frozen=True)
class SmoothLoss:
    """g >= 0 with least value 0, mu-PL and L-smooth; rows of x are points."""

    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    mu: float
    L: float
    dimension: int


def quadratic(sizes: tuple[float, ...]) -> SmoothLoss:
    """(1/2) sum_i sizes_i x_i^2; g does not depend on directions of size zero."""
    s = np.array(sizes)
    return SmoothLoss(lambda x: 0.5 * (x**2 @ s), lambda x: s * x, s[s > 0].min(), s.max(), len(s))


def wavy() -> SmoothLoss:
    """x^2 + 3 sin(x)^2, not convex but PL (Karimi, Nutini and Schmidt 2016)."""
    return SmoothLoss(
        lambda x: (x**2 + 3 * np.sin(x) ** 2)[:, 0],
        lambda x: 2 * x + 3 * np.sin(2 * x),
        1 / 32,
        8.0,
        1,
    )


LOSSES = {
    "x^2/2": quadratic((1.0,)),
    "quadratic with curvatures 3, 1, 0": quadratic((3.0, 1.0, 0.0)),
    "quadratic with curvatures 10, 2, 0.5, 0, 0": quadratic((10.0, 2.0, 0.5, 0.0, 0.0)),
    "x^2 + 3 sin(x)^2": wavy(),
}


@dataclasses.dataclass(frozen=True)
class Trials:
    """Single steps x - step (G + beta H) with |H| <= |G|, one in each row.

    Every vector v is the gradient at x of a convex h >= 0, namely h(z) = |z - x + v|^2 / 2.
    """

    loss: SmoothLoss
    x: Array
    H: Array
    step: Array
    beta: Array

    @property
    def G(self) -> Array:
        return self.loss.slope(self.x)

    @property
    def g(self) -> Array:
        return self.loss.value(self.x)

    @property
    def after(self) -> Array:
        """g one step later."""
        return self.loss.value(self.x - self.step[:, None] * (self.G + self.beta[:, None] * self.H))

    def where(self, kept: NDArray[np.bool_]) -> Trials:
        return Trials(self.loss, self.x[kept], self.H[kept], self.step[kept], self.beta[kept])


def trials(loss: SmoothLoss, count: int, seed: int | tuple[int, ...] = 0) -> Trials:
    """Random points, steps in (0, 2/L), beta in (0, 1); H is -G, +G or random, |H| <= |G|."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, loss.dimension)) * np.exp(rng.normal(0, 1, (count, 1)))
    G = loss.slope(x)
    random = rng.normal(size=x.shape)
    random *= np.linalg.norm(G, axis=1, keepdims=True) / np.linalg.norm(random, axis=1)[:, None]
    random *= rng.uniform(size=(count, 1))
    kind = rng.integers(0, 3, (count, 1))
    H = np.where(kind == 0, -G, np.where(kind == 1, G, random))
    step, beta = rng.uniform(0.02, 1.98, count) / loss.L, rng.uniform(0.01, 0.99, count)
    return Trials(loss, x, H, step, beta)


def printed_delta(loss: SmoothLoss, step: Array, beta: Array) -> Array:
    """N's mu alpha ((2 - alpha L)(1 + beta) + alpha beta^2 L)."""
    a = step * loss.L
    return loss.mu * step * ((2 - a) * (1 + beta) + a * beta**2)


def signed_delta(loss: SmoothLoss, step: Array, beta: Array) -> Array:
    """The same with the signs that N's next-to-last line gives."""
    a = step * loss.L
    return loss.mu * step * ((2 - a) * (1 - beta) - a * beta**2)


def delta(loss: SmoothLoss, step: Array, gamma: Array) -> Array:
    """mu alpha min over s = -gamma, gamma of (1 + s)(2 - alpha L (1 + s)), for beta|H| <= gamma|G|.

    These are the worst cases, H = -G and H = G: steps of length alpha (1 - gamma) and
    alpha (1 + gamma).
    """
    ends = [(1 + s) * (2 - step * loss.L * (1 + s)) for s in (-gamma, gamma)]
    return loss.mu * step * np.minimum(*ends)


def opposed_delta(loss: SmoothLoss, step: Array, gamma: Array) -> Array:
    """The same for H = -G alone, as if a penalty could only shorten the step."""
    return loss.mu * step * (1 - gamma) * (2 - step * loss.L * (1 - gamma))


def excess(one: Trials, law: Callable[[SmoothLoss, Array, Array], Array]) -> float:
    """The largest (g after - (1 - shrink) g) / g: at most 0 if g shrinks as the law claims."""
    shrink = law(one.loss, one.step, one.beta)
    return float(((one.after - (1 - shrink) * one.g) / one.g).max())


def dot(one: Array, other: Array) -> Array:
    return np.asarray(np.sum(one * other, axis=1))


def third_line(one: Trials, cross: float) -> float:
    """The largest relative error of N's third line, whose cross term is cross * step^2 beta L HG.

    It expands (L step^2 / 2)|G + beta H|^2 of the second line.
    """
    a, b, L = one.step, one.beta, one.loss.L
    G2, HG, H2 = dot(one.G, one.G), dot(one.H, one.G), dot(one.H, one.H)
    exact = L * a**2 / 2 * np.sum((one.G + b[:, None] * one.H) ** 2, axis=1)
    line = a**2 * L / 2 * G2 + cross * a**2 * b * L * HG + a**2 * b**2 * L / 2 * H2
    return float((np.abs(line - exact) / (L * a**2 * G2)).max())


def last_bracket(one: Trials, sign: float) -> float:
    """The largest relative error of N's line with the bracket against the line before it.

    The line before adds (alpha beta/2)(2 - alpha L)|G|^2 and (alpha^2 beta^2 L/2)|G|^2; the
    printed bracket is (2 - alpha L)(1 + beta) + alpha beta^2 L, and sign = -1 changes both signs.
    """
    a, b, L = one.step, one.beta, one.loss.L
    before = -a / 2 * (2 - a * L) + a * b / 2 * (2 - a * L) + a**2 * b**2 * L / 2
    bracket = -a / 2 * ((2 - a * L) * (1 + sign * b) + sign * a * b**2 * L)
    return float((np.abs(bracket - before) / a).max())


def smooth_bound(
    loss: SmoothLoss, count: int, at_end: bool, share: float = 1.0, seed: int = 0
) -> float:
    """The largest relative violation of lemma 1's first point, with the gradient at y or at x."""
    rng = np.random.default_rng((seed, 5))
    x, y = 3 * rng.normal(size=(2, count, loss.dimension))
    slope = loss.slope(y if at_end else x)
    gap = dot(y - x, y - x)
    begin, end, curved = loss.value(x), loss.value(y), share * loss.L / 2 * gap
    return float(((end - begin - dot(y - x, slope) - curved) / (begin + end + curved)).max())


def slope_bound(
    loss: SmoothLoss, count: int, curvature: float | None = None, seed: int = 0
) -> float:
    """The largest |grad g|^2 / (2 L g) of lemma 1's second point, or with `curvature` for L."""
    x = 3 * np.random.default_rng((seed, 6)).normal(size=(count, loss.dimension))
    slopes = loss.slope(x)
    most = loss.L if curvature is None else curvature
    return float((dot(slopes, slopes) / (2 * most * loss.value(x))).max())
