"""Points of the gradient lines w'(u) = F'(w) of a map: closed forms, or integrated once."""

from __future__ import annotations

import abc
import functools
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from penchant.arguments import Array
from penchant.lazy import jax
from penchant.models.reparametrized import Reparametrized
from penchant.precision import double_precision

PRECISE = 1e-9  # relative error of an integrated line
FAR = 1e4  # the ends of an integrated line: its largest w over the start, and the largest 1/F'


class LinePoint(NamedTuple):
    """w at a time of the line, and F with three derivatives there."""

    w: Array
    value: Array
    slope: Array
    bend: Array
    third: Array


class GradientLine(abc.ABC):
    """The gradient lines of all coordinates, each from its start at u = 0."""

    @abc.abstractmethod
    def at(self, u: Array) -> LinePoint:
        """The points at these times, one per coordinate; NaN beyond the ends of a line."""


class PowerLine(GradientLine):
    """The lines of w^D: log w moves by 2 u for D = 2, and w^(2-D) by -D (D-2) u above."""

    def __init__(self, depth: int, start: Array) -> None:
        self.depth, self.start = depth, start

    def at(self, u: Array) -> LinePoint:
        D = self.depth
        with np.errstate(all="ignore"):
            if D == 2:
                w = self.start * np.exp(2 * u)
            else:
                a = self.start ** (2.0 - D) - D * (D - 2) * u
                w = np.where(a > 0, a, np.nan) ** (1 / (2.0 - D))
            powers = [w ** (D - k) if k <= D else np.zeros_like(w) for k in range(4)]
            return LinePoint(
                w,
                powers[0],
                D * powers[1],
                D * (D - 1) * powers[2],
                D * (D - 1) * (D - 2) * powers[3],
            )


class MapLine(GradientLine):
    """The lines of a map of one parameter, integrated once from every start that differs."""

    def __init__(self, model: Reparametrized, start: Array) -> None:
        self.model = model
        self.starts, self.kinds = np.unique(start, return_inverse=True)

    @functools.cached_property
    def walked(self) -> list[dict[float, Any]]:
        """Both ways from every start."""
        return [{way: self._walk(start, way) for way in (-1.0, 1.0)} for start in self.starts]

    @functools.cached_property
    def derivatives(self) -> Any:
        """The compiled second and third derivative of the map."""
        second = jax.grad(jax.grad(self.model.map))
        return jax.jit(jax.vmap(lambda w: (second(w), jax.grad(second)(w))))

    def _slope(self, w: Array) -> Array:
        return self.model.line.evaluate(np.reshape(w, (-1, 1)))[1][:, 0]

    def _walk(self, start: float, way: float) -> Any:
        """A dense solution from the start until the parameter or its speed leaves its range."""
        top = FAR * (1 + abs(start))

        def left(_: float, w: Array) -> float:
            return float(min(top - abs(w[0]), abs(self._slope(w)[0]) - 1 / top))

        left.terminal = True  # type: ignore[attr-defined]
        with np.errstate(all="ignore"):
            return solve_ivp(
                lambda _, w: way * self._slope(w), (0.0, top), [start], "DOP853",
                rtol=PRECISE, atol=0, dense_output=True, events=left,
            )  # fmt: skip

    def at(self, u: Array) -> LinePoint:
        w = np.full(len(u), np.nan)
        for kind, ways in enumerate(self.walked):
            for way, solution in ways.items():
                here = np.flatnonzero((self.kinds == kind) & ((u > 0) == (way > 0)))
                times = np.abs(u[here])
                inside = times <= solution.t[-1]
                if inside.any():
                    w[here[inside]] = solution.sol(times[inside])[0]
        value, slope = self.model.line.evaluate(w[:, None])
        with double_precision():
            second, third = (np.asarray(part) for part in self.derivatives(w))
        return LinePoint(w, value, slope[:, 0], second, third)
