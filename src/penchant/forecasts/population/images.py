"""Proximal maps of a number in Gaussian noise, at the nodes of an expectation.

An entry of a minimiser behaves like the prox of weight R at centre + spread Z, Z ~ N(0, 1).
Expectations are Gauss-Legendre sums over panels in Z, which end where a prox bends: that of l1 has
a kink, that of Q at a small scale nearly one. A prox is b = v - weight s with the dual s, found by
Newton's method between bounds: in s nothing overflows, whatever the scale.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.regularizers.regularizer import Regularizer

REACH = 9.0  # standard deviations of Z that count
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(10)  # on each panel
UNIFORM = np.linspace(-REACH, REACH, 9)[:, None]
AROUND = np.array([-4.0, -1.0, 0.0, 1.0, 4.0])[:, None]  # ends of panels at a bend, in its widths
BEND, HALVINGS = 1e-6, 60  # places of bends need few digits: this part of a width
INNER = 200  # the most steps of Newton's method; about 6 are taken
ROUNDING = 1e-14
SIGNS = np.array([[1.0], [-1.0]])


class ProxImages(NamedTuple):
    """One column per coordinate: Z, what it counts, the prox b, its dual and its slope in v."""

    z: Array
    measure: Array
    b: Array
    dual: Array
    slope: Array


def images(law: Regularizer, centre: Array, spread: Array, weight: Array) -> ProxImages:
    """The prox of every coordinate at the nodes of its own quadrature."""
    z, measure = _nodes(law, centre, spread, weight)
    return ProxImages(z, measure, *prox(law, centre + spread * z, weight))


def prox(law: Regularizer, v: Array, weight: Array) -> tuple[Array, Array, Array]:
    """The prox b of every v, its dual s and its slope in v."""
    if not law.smooth:
        b = law.prox_of(v, weight)
        return b, (v - b) / weight, (b != 0).astype(float)
    dual = law.dual_of(v)
    sign = np.sign(dual)
    with np.errstate(all="ignore"):
        bound = np.abs(v - law.primal_of(np.zeros_like(v))) / weight
        high = np.fmin(np.abs(dual), bound)
        low = np.zeros_like(high)
        size = (1 - ROUNDING / 2) * high  # at a tiny scale the root is the bound, to rounding
        for _ in range(INNER):
            slope = law.slope(sign * size)
            above = sign * (law.primal_of(sign * size) - v) + weight * size
            high, low = np.where(above > 0, size, high), np.where(above > 0, low, size)
            new = size - above / (slope + weight)
            new = np.where((new >= low) & (new <= high), new, (low + high) / 2)
            rests = (np.abs(new - size) <= ROUNDING * high) | (high - low <= ROUNDING * high)
            size = new
            if rests.all():
                break
        s = sign * size
        b = v - weight * s
        b = np.where(
            np.abs(b) > 10 * ROUNDING * np.abs(v), b, law.primal_of(s)
        )  # or it is rounding
        return b, s, 1 / (1 + weight * np.exp(-law.log_softness(b, s)))


def _nodes(law: Regularizer, centre: Array, spread: Array, weight: Array) -> tuple[Array, Array]:
    """Values of Z for every coordinate, and what each counts in an expectation."""
    ends = [np.broadcast_to(UNIFORM, (len(UNIFORM), len(centre)))]
    for middle in SIGNS * _bends(law, np.abs(centre) + REACH * spread, weight):
        around = (middle + AROUND * weight - centre) / spread
        ends.append(np.clip(around, -REACH, REACH))
    panels = np.sort(np.concatenate(ends), axis=0)
    half = np.diff(panels, axis=0)[:, None] / 2
    z = panels[:-1, None] + half * (1 + POINTS[:, None])
    measure = half * WEIGHTS[:, None] * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return z.reshape(-1, len(centre)), measure.reshape(-1, len(centre))


def _bends(law: Regularizer, most: Array, weight: Array) -> Array:
    """|v| where the slope of the prox rises above 1/2, on either side of zero."""
    if not law.smooth:
        return np.stack([weight, weight])
    with np.errstate(all="ignore"):
        high = np.minimum(np.abs(law.dual_of(SIGNS * most)), most / weight)
        low = np.zeros_like(high)
        for _ in range(HALVINGS):
            if not np.max(high - low, initial=0.0) > BEND:
                break
            middle = (low + high) / 2
            steep = law.slope(SIGNS * middle) > weight
            low, high = np.where(steep, low, middle), np.where(steep, middle, high)
        place = np.abs(law.primal_of(SIGNS * low)) + weight * low
    return np.where(np.isfinite(place), place, 0.0)
