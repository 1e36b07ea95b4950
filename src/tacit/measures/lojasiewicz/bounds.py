"""Lower bounds over a ball from a Lipschitz constant, by splitting cubes in few dimensions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.arguments import Array

CUBES = 20000  # looked at before the covering stops
DIMENSIONS = 3  # beyond which a covering is hopeless
CLOSE = 0.02  # a cube whose bound is this near to the best value seen is not split further


def least_singular_value(
    residuals: Callable[[Any], Any], x: Array, radius: float, lipschitz: float
) -> float:
    """A bound >= 0 on the least singular value over the ball of the Jacobian (transposed).

    |grad g| = |J^T F| >= sigma |F|, with sigma the least singular value of J^T, zero if there are
    more residuals than parameters.
    """
    import jax

    jacobian = jax.jit(jax.jacobian(residuals))

    def sigma(a: Array) -> float:
        J = np.asarray(jacobian(a))
        return 0.0 if J.shape[0] > J.shape[1] else float(np.linalg.svd(J, compute_uv=False)[-1])

    def bound(a: Array, reach: float) -> tuple[float, float]:
        value = sigma(a)
        return max(value - lipschitz * reach, 0.0), value

    if len(x) > DIMENSIONS:
        return bound(x, radius)[0]
    return max(bound(x, radius)[0], _covering(bound, x, radius))


def least_gradient_ratio(
    loss: Callable[[Any], Any], x: Array, radius: float, lipschitz: float
) -> float:
    """A bound >= 0 on |grad g|^2 / g over the ball, from the Lipschitz constant of grad g.

    At a distance d from a point with loss g and slope s, the slope is at least s - L d and the
    loss at most g + s d + L d^2/2.
    """
    import jax

    look = jax.jit(jax.value_and_grad(loss))

    def bound(a: Array, reach: float) -> tuple[float, float]:
        value, slope = look(a)
        g, s = float(value), float(np.linalg.norm(slope))
        above = g + s * reach + 0.5 * lipschitz * reach**2
        ratio = s**2 / g if g > 0 else math.inf
        return max(s - lipschitz * reach, 0.0) ** 2 / above, ratio

    return _covering(bound, x, radius) if len(x) <= DIMENSIONS else 0.0


def _covering(
    bound: Callable[[Array, float], tuple[float, float]], x: Array, radius: float
) -> float:
    """The least bound over cubes that cover the ball, the worst of which are split in turn."""
    import heapq

    order = itertools.count()  # breaks ties, arrays do not compare
    best = math.inf

    def entry(center: Array, half: float) -> tuple[float, int, Array, float]:
        nonlocal best
        reach = half * math.sqrt(len(x))
        lower, value = bound(center, reach)
        if np.linalg.norm(center - x) <= radius:
            best = min(best, value)
        return lower, next(order), center, half

    cubes = [entry(x, radius)]
    for _ in range(CUBES // 2 ** len(x)):
        # cubes that shrink onto a zero of the loss keep their bound of zero for ever
        if cubes[0][0] >= (1 - CLOSE) * best or cubes[0][3] < 1e-6 * radius:
            break
        _, _, center, half = heapq.heappop(cubes)
        for side in itertools.product((-0.5, 0.5), repeat=len(x)):
            part = center + half * np.array(side)
            # a cube that does not meet the ball has no say
            nearest = np.clip(x, part - half / 2, part + half / 2)
            if np.linalg.norm(nearest - x) <= radius:
                heapq.heappush(cubes, entry(part, half / 2))
    return cubes[0][0]
