"""Lower bounds on |grad g|^2 / g over a ball: by splitting cubes, and exactly for a quadratic g."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.lazy import jax
from penchant.limits import Turns

CUBES = 20000  # the most cubes of a covering
DIMENSIONS = 3  # the most in which a covering is tried
CLOSE = 0.02  # a cube whose bound is this near to the best value seen is not split further


def least_singular_value(
    residuals: Callable[[Any], Any], x: Array, radius: float, lipschitz: float
) -> float:
    """A bound >= 0 on the least singular value over the ball of J^T: |grad g| >= sigma |F|."""
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
    """A bound >= 0 on |grad g|^2 / g over the ball, from the Lipschitz constant of grad g."""
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
    """The least bound over cubes that cover the ball; the worst cube is split again and again."""
    import heapq

    order = itertools.count()  # breaks ties, since arrays do not compare
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
        # cubes that shrink onto a zero of the loss always keep the bound zero
        if cubes[0][0] >= (1 - CLOSE) * best or cubes[0][3] < 1e-6 * radius:
            break
        _, _, center, half = heapq.heappop(cubes)
        for side in itertools.product((-0.5, 0.5), repeat=len(x)):
            part = center + half * np.array(side)
            # a cube that does not meet the ball does not count
            nearest = np.clip(x, part - half / 2, part + half / 2)
            if np.linalg.norm(nearest - x) <= radius:
                heapq.heappush(cubes, entry(part, half / 2))
    return cubes[0][0]


ROUNDS = 100  # the most rounds of Dinkelbach's iteration, which needs about ten


def least_ratio(X: Array, y: Array, x: Array, radius: float) -> tuple[float, float, Array]:
    """(lower, upper, point) with lower <= inf of the ratio <= upper, both exact to rounding.

    In the basis of X's singular vectors, z the distance to the least squares points, the ratio is
    sum(sigma^4 z^2) / ((1/2) sum(sigma^2 z^2) + c), c the loss that no point can remove.
    """
    sizes, basis = _directions(X)
    nearest = x + np.linalg.pinv(X) @ (y - X @ x)
    z = basis @ (x - nearest)
    c = 0.5 * float(np.sum((X @ nearest - y) ** 2))
    exact = c <= 1e-24 * float(np.sum(y**2)) + 1e-300
    if np.linalg.norm(z) <= radius * (1 + 1e-12):
        if not exact:
            return 0.0, 0.0, nearest
        # near an interpolator every direction of the row space is possible
        least = 2 * float(sizes[-1])
        return least, least, nearest
    return _outside(sizes, basis, x, z, radius, 0.0 if exact else c)


def _directions(X: Array) -> tuple[Array, Array]:
    """The eigenvalues > 0 of X^T X and their eigenvectors as rows."""
    _, sizes, basis = np.linalg.svd(X, full_matrices=False)
    kept = sizes > 1e-12 * max(float(sizes[0]), 1e-300)
    if not kept.any():
        raise ValueError("lojasiewicz_quadratic: X must not be all zero")
    return np.asarray(sizes[kept] ** 2), np.asarray(basis[kept])


def _outside(
    sizes: Array, basis: Array, x: Array, z: Array, radius: float, c: float
) -> tuple[float, float, Array]:
    """The ball holds no least squares point: Dinkelbach, each round a trust region problem."""

    def ratio(w: Array) -> float:
        return float(np.sum(sizes**2 * w**2) / (0.5 * np.sum(sizes * w**2) + c))

    best = z * (1 - radius / float(np.linalg.norm(z)))
    value = ratio(best)
    for _ in range(ROUNDS):
        weights = sizes**2 - 0.5 * value * sizes
        point, _ = _trust_region(weights, z, radius)
        if not ratio(point) < value * (1 - 1e-15):
            break
        best, value = point, ratio(point)
    lower = value
    # the dual proves sum(w z^2) >= lower c on the ball, so that no ratio is below
    turns = Turns(10_000, "the lower bound of the Lojasiewicz constant")
    while lower > 0 and not _trust_region(sizes**2 - lower / 2 * sizes, z, radius)[1] >= lower * c:
        turns.take()
        lower *= 1 - 1e-12 if lower > value * (1 - 1e-9) else 0.5
    return lower, value, x + basis.T @ (best - z)


def _trust_region(weights: Array, z: Array, radius: float) -> tuple[Array, float]:
    """The w that minimises sum(weights w^2) on |w - z| <= radius, and a lower bound on the minimum.

    With a multiplier nu >= max(0, -min weights) the stationary point is nu z/(weights + nu), and
    sum(nu weights/(weights + nu) z^2) - nu radius^2 is a lower bound for each nu.
    """
    floor = max(0.0, -float(weights.min()))
    gaps = weights + floor  # weights + nu = gaps + extra, without cancellation near the floor
    moved = z != 0

    def shares(extra: float) -> Array:
        """nu/(weights + nu) where z is not zero; elsewhere it does not matter."""
        return np.divide(floor + extra, gaps + extra, out=np.ones_like(z), where=moved)

    def away(extra: float) -> Array:
        return np.asarray((shares(extra) - 1) * z)

    low, high = 0.0, float(np.abs(weights * z).sum()) / radius + 1e-300
    for _ in range(300):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if np.linalg.norm(away(middle)) > radius else (low, middle)
    move = away(high)
    short = radius**2 - float(move @ move)
    if short > 1e-9 * radius**2 and float(weights.min()) < 0:  # the hard case: a free direction
        k = int(np.argmin(weights))
        # there z is zero and so is the step, which can grow to the sphere
        move[k] += math.copysign(math.sqrt(short), float((z + move)[k]))
    bound = float(np.sum(weights * shares(high) * z**2)) - (floor + high) * radius**2
    return z + move, bound
