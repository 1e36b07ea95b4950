"""The univariate ReLU net in closed form: its tangent kernel, and the hinges it is a sum of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penchant.lab import Array, Record

Function = Callable[[Array], Array]


class Layers(NamedTuple):
    """Both copies as one net sum_j v_j relu(w_j x + b_j) + c: the second has its sign in v."""

    w: Array
    v: Array
    b: Array
    c: float


def layers(parameters: Array) -> Layers:
    """The flat parameters, or a displacement of them, as the layers of one net."""
    first, second = np.split(np.asarray(parameters), 2)
    (w, v, b), (copy_w, copy_v, copy_b) = (part[:-1].reshape(3, -1) for part in (first, second))
    join = np.concatenate
    return Layers(join([w, copy_w]), join([v, -copy_v]), join([b, copy_b]), first[-1] - second[-1])


def kernel_move(net: Layers, x: Array, y: Array) -> Layers:
    """The shortest displacement with which the net, linearised at `net`, changes by y_n at x_n.

    What `kernel_machine` computes for any model, in closed form, so that no start is compiled.
    """
    z = np.outer(x, net.w) + net.b
    active, gated = np.maximum(z, 0.0), (z > 0) * net.v
    K = active @ active.T + (gated @ gated.T) * (1 + np.outer(x, x)) + 2  # both output biases
    dual = np.asarray(np.linalg.solve(K, y), dtype=np.float64)
    return Layers((dual * x) @ gated, dual @ active, dual @ gated, 2 * float(dual.sum()))


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Hinges(Record):
    """x -> constant + the sum of slope_j x + height_j over the half-lines that contain x.

    Half-line j lies right of its knot where `rising_j`, else left of it. Values at n points of a
    sum of k terms take n log k operations; the terms may jump at their knots.
    """

    knots: Array
    rising: NDArray[np.bool_]
    slopes: Array
    heights: Array
    constant: float

    def __call__(self, x: Array) -> Array:
        knots, slopes, heights = self._sorted
        piece = np.searchsorted(knots, x)
        return np.asarray(slopes[piece] * x + heights[piece] + self.constant)

    @cached_property
    def _sorted(self) -> tuple[Array, Array, Array]:
        """The knots in order, and the summed slope and height left of each and behind the last."""
        order = np.argsort(self.knots)
        side = np.where(self.rising, 1.0, -1.0)

        def sums(terms: Array) -> Array:
            steps = np.concatenate([[0.0], (side * terms)[order]])
            return np.asarray(terms[~self.rising].sum() + np.cumsum(steps))

        return self.knots[order], sums(self.slopes), sums(self.heights)

    def breaks(self, low: float, high: float) -> Array:
        """low, high and all knots in between, increasing."""
        inside = self.knots[(self.knots > low) & (self.knots < high)]
        return np.unique(np.concatenate([[low, high], inside]))


def net_hinges(net: Layers) -> Hinges:
    """The function sum_j v_j relu(w_j x + b_j) + c."""
    return Hinges(_knots(net), net.w >= 0, net.v * net.w, net.v * net.b, net.c)


def tangent_hinges(net: Layers, move: Layers) -> Hinges:
    """The change of the net, linearised in its parameters, under a displacement `move`.

    It jumps at the knots of the net: the slope of relu does.
    """
    slopes = move.v * net.w + net.v * move.w
    heights = move.v * net.b + net.v * move.b
    return Hinges(_knots(net), net.w >= 0, slopes, heights, move.c)


def _knots(net: Layers) -> Array:
    """Where each unit turns on or off; a unit without slope is on or off everywhere."""
    flat = net.w == 0
    knots = -net.b / np.where(flat, 1.0, net.w)
    return np.where(flat, np.where(net.b > 0, -np.inf, np.inf), knots)


def rms_distance(f: Function, g: Function, breaks: Array) -> float:
    """The root mean square of f - g, exact where both are linear between the `breaks`."""
    width, middle = np.diff(breaks), (breaks[1:] + breaks[:-1]) / 2
    reach = width / np.sqrt(12)  # two points of Gauss integrate squares of lines exactly
    gaps = [(f(x) - g(x)) ** 2 for x in (middle - reach, middle + reach)]
    return float(np.sqrt(width @ (gaps[0] + gaps[1]) / 2 / width.sum()))


def sup_distance(f: Function, g: Function, breaks: Array) -> float:
    """The largest |f - g|, exact for continuous functions that are linear between the `breaks`."""
    return float(np.abs(f(breaks) - g(breaks)).max())
