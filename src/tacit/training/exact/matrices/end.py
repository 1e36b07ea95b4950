"""The end game: where the flow has become linear, its rest is known in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.training.exact.matrices.system import FactorSystem, Modes

NULL = 1e-13  # eigenvalues of the tangent kernel below this share of the largest count as zero


class Rest(NamedTuple):
    """What is left of a flow: W at any time from now on, and when the loss meets its target."""

    at: Callable[[float], Array]
    time: float


def end_game(
    system: FactorSystem, W: Array, modes: Modes, target: float, rtol: float
) -> Rest | None:
    """The rest of the flow from W by its linearisation, or None where that is not accurate yet.

    Frozen at W, the residual decays as exp(-2 J J^T t) and the whole displacement is the least
    one that fits the data, the step of Gauss and Newton. What is left out is of second order: the
    displacement of the displacement, and the residual that the step leaves. Both must be below
    `rtol` times the largest entry of W.
    """
    fast = modes.rates > NULL * modes.rates[-1]
    heights = modes.basis.T @ system.residual(W)
    if np.sum(heights[~fast] ** 2) > 0.25 * target or system.rate:
        return None
    rates, basis, heights = modes.rates[fast], modes.basis[:, fast], heights[fast]

    def fit(W: Array, residual: Array) -> Array:
        return -system.pull(basis @ ((basis.T @ residual) / rates), W)

    with np.errstate(over="ignore", invalid="ignore"):  # from a tiny start the step is huge
        step = fit(W, basis @ heights)
        bend = system.pull(basis @ (heights / rates), step)
        missed = fit(W, system.residual(W + step))
        second = np.abs(np.stack([bend, missed])).max()
    if not second <= rtol * np.abs(W).max():
        return None

    def at(t: float) -> Array:
        left = np.exp(-2 * rates * t)
        ahead = W - system.pull(basis @ (heights * -np.expm1(-2 * rates * t) / rates), W)
        for _ in range(3):  # the residual is the linear one, also beyond the first order
            ahead = ahead + fit(ahead, system.residual(ahead) - basis @ (heights * left))
        return ahead

    rest = Rest(at, _time(heights**2, 4 * rates, 0.5 * target))
    left = system.residual(at(rest.time))
    return rest if left @ left <= max(target, system.rounding(W)) else None


def _time(heights: Array, rates: Array, target: float) -> float:
    """The t at which sum heights exp(-rates t) falls to `target`."""
    if heights.sum() <= target:
        return 0.0
    low, high = 0.0, 1 / float(rates[0])
    while np.sum(heights * np.exp(-rates * high)) > target:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if np.sum(heights * np.exp(-rates * middle)) > target:
            low = middle
        else:
            high = middle
        if math.isclose(low, high, rel_tol=1e-12):
            break
    return high
