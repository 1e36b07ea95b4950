"""One step of a stiff flow of few samples: the extrapolated linearly implicit Euler method."""

from __future__ import annotations

import math

import numpy as np

from tacit.arguments import Array
from tacit.training.exact.matrices.system import FactorSystem, Modes


def columns(rtol: float) -> int:
    """How many extrapolations suit an accuracy; each adds an order."""
    return min(max(3, round(0.5 - 0.85 * math.log10(rtol))), 9)


def extrapolated(
    system: FactorSystem, W: Array, span: float, modes: Modes, order: int
) -> tuple[Array, float]:
    """(W after `span`, an estimate of its error), by 1, 2, ..., `order` linearly implicit steps.

    Each step treats -rate - 2 J^T J at the beginning of the span implicitly, the stiff part; one
    eigendecomposition of the small J J^T serves steps of every length. The curvature of the
    model, -2 lift(G), is no faster than the solution itself and stays explicit.
    """
    before: list[Array] = []
    for count in range(1, order + 1):
        row = [_euler(system, W, span / count, count, modes)]
        for k, coarse in enumerate(before, start=1):  # Aitken and Neville, in powers of the step
            row.append(row[-1] + (row[-1] - coarse) * (count - k) / k)
        before = row
    return before[-1], float(np.abs(before[-1] - before[-2]).max())


def _euler(system: FactorSystem, W: Array, span: float, count: int, modes: Modes) -> Array:
    """W after `count` linearly implicit steps of length `span`."""
    damping = 1 + span * system.rate
    gains = 2 * span / (damping + 2 * span * modes.rates)
    begin = W
    for _ in range(count):
        slope = system.velocity(W)
        # (damping + 2 span J^T J)^-1 by Woodbury's identity, through the modes of J J^T
        heights = modes.basis @ (gains * (modes.basis.T @ system.push(slope, begin)))
        W = W + (span / damping) * (slope - system.pull(heights, begin))
    return W
