"""Losses of two weights with a penalty, whose least values are known; descent on them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.measures.lojasiewicz.constant import Lojasiewicz, lojasiewicz
from tacit.precision import double_precision

SHARP = ["line, l1", "circle, weighted l1"]
SMOOTH = ["line, l2 squared", "product, l1"]
MOST = 800  # records of a run


@dataclasses.dataclass(frozen=True)
class Example:
    """(1/2)|residual|^2 + beta h with known least values; H in dh."""

    residual: Callable[[Any], Any]
    h: Callable[[Any], Any]
    H: Callable[[Any], Any]
    start: tuple[float, ...]
    h_star: float  # the least h where g = 0
    f_star: Callable[[float], float]  # the least g + beta h
    radius: float  # of a ball around the start on which g is r-CL
    lipschitz: float  # of the Jacobian of the residual

    def g(self, x: Any) -> Any:
        return 0.5 * (self.residual(x) ** 2).sum()


@functools.cache
def examples() -> dict[str, Example]:
    """Two losses, each with a penalty that has a kink at its least interpolator and one without."""
    import jax.numpy as jnp

    def line(x: Any) -> Any:
        return jnp.stack([x[0] + 2 * x[1] - 2])

    def circle(x: Any) -> Any:
        return jnp.stack([x[0] ** 2 + x[1] ** 2 - 1])

    def product(x: Any) -> Any:
        return jnp.stack([x[0] * x[1] - 1])

    def l1(x: Any) -> Any:
        return jnp.abs(x).sum()

    w = np.array([1.0, 2.0])

    def weighted(x: Any) -> Any:
        return (w * jnp.abs(x)).sum()

    def square(x: Any) -> Any:
        return (x**2).sum()

    def to_line(b: float) -> float:
        return b - b**2 / 8

    def radial_1(b: float) -> float:
        return radial(1.0, b)

    def radial_2(b: float) -> float:
        return radial(2.0, b)

    return dict(
        zip(
            [*SHARP, *SMOOTH],
            [
                Example(line, l1, jnp.sign, (0.0, 0.0), 1.0, to_line, 1.0, 1e-9),
                Example(
                    circle,
                    weighted,
                    lambda x: w * jnp.sign(x),
                    (0.9, 0.8),
                    1.0,
                    radial_1,
                    0.5,
                    2.0,
                ),
                Example(line, square, lambda x: 2 * x, (2.0, -1.0), 0.8, ridge, 1.0, 1e-9),
                Example(product, l1, jnp.sign, (2.0, 0.2), 2.0, radial_2, 0.8, 1.0),
            ],
            strict=True,
        )
    )


def radial(weight: float, beta: float) -> float:
    """The least (z^2 - 1)^2/2 + weight beta z near z = 1."""
    roots = np.roots([2.0, 0.0, -2.0, weight * beta])
    z = float(max(roots.real))
    return 0.5 * (z**2 - 1) ** 2 + weight * beta * z


def ridge(beta: float) -> float:
    """The least (x + 2 y - 2)^2/2 + beta (x^2 + y^2)."""
    r = np.array([1.0, 2.0])
    a = np.linalg.solve(np.outer(r, r) + 2 * beta * np.eye(2), 2 * r)
    return float(0.5 * (r @ a - 2) ** 2 + beta * a @ a)


@functools.cache
def _compiled(name: str) -> Any:
    """(start, numbers of steps, step, beta) -> points, g and h after x <- x - step (G + beta H)."""
    import jax

    example = examples()[name]
    gradient = jax.grad(example.g)

    def descend(start: Any, counts: Any, step: Any, beta: Any) -> Any:
        def body(_: Any, x: Any) -> Any:
            return x - step * (gradient(x) + beta * example.H(x))

        def advance(x: Any, count: Any) -> Any:
            x = jax.lax.fori_loop(0, count, body, x)
            return x, (x, example.g(x), example.h(x))

        return jax.lax.scan(advance, start, counts)[1]

    return jax.jit(descend)


def descend(name: str, step: float, beta: float, at: Array) -> tuple[Array, Array, Array]:
    """(points, g, h) after so many steps of subgradient descent, one row per entry of `at`."""
    counts = np.zeros(MOST, dtype=int)  # always as many, so that an example is compiled once
    counts[: len(at)] = np.diff(at, prepend=0)
    with double_precision():
        start = np.array(examples()[name].start)
        points, g, h = (np.asarray(v) for v in _compiled(name)(start, counts, step, beta))
    return points[: len(at)], g[: len(at)], h[: len(at)]


def condition(example: str) -> Lojasiewicz:
    """The CL constant of g on its ball around the start."""
    case = examples()[example]
    return lojasiewicz(
        case.residual, case.start, case.radius, lipschitz=case.lipschitz, starts=4, steps=60
    )


def zero_by_first_chi(case: Example) -> float:
    """2 sqrt(g/chi) if chi were |grad g|^2/g at the start, and not the least one on the ball."""
    import jax

    x = np.array(case.start)
    with double_precision():
        g, gradient = jax.jit(jax.value_and_grad(case.g))(x)
        return 2 * float(g) / float(np.linalg.norm(np.asarray(gradient)))
