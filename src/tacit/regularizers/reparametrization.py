"""One coordinate's map beta = F(w), as the user wrote it: checked, and evaluated in batches."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.precision import double_precision

WHO = "derive"
SMALL, LARGE = 1e-145, 1e145  # speeds |grad F| whose squares stay in double precision


def argument_names(function: object) -> list[str]:
    """The names of the parameters the map takes per coordinate: its arguments without defaults."""
    if not callable(function):
        raise ValueError(
            f"{WHO}: the map must be a function of one or more parameters, got {function!r}; write"
            " for example lambda w: w**3"
        )
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise ValueError(
            f"{WHO}: the arguments of {function!r} cannot be read; wrap it, for example"
            " lambda w: jnp.sinh(w)"
        ) from None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        raise ValueError(f"{WHO}: the map must name its parameters one by one, not take *args")
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = [p.name for p in positional if p.default is p.empty]
    if not names:
        raise ValueError(f"{WHO}: the map must take at least one parameter without a default")
    return names


def length(gradient: Array) -> Array:
    """Euclidean length along the last axis, safe from overflow."""
    if gradient.shape[-1] == 1:
        return np.abs(gradient[..., 0])
    largest = np.abs(gradient).max(axis=-1)
    scale = np.where(largest > 0, largest, 1.0)
    return scale * np.sqrt(np.sum((gradient / scale[..., None]) ** 2, axis=-1))


@functools.lru_cache(maxsize=64)
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The map and its gradient for rows of parameters."""
    import jax

    def scalar(w: Any) -> Any:
        return function(*w)

    return jax.jit(jax.vmap(jax.value_and_grad(scalar)))


class Reparametrization:
    """F and its gradient at many parameter vectors at once, in float64, by JAX."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.names = argument_names(function)
        self.check_traceable()
        shared = isinstance(function, Hashable)  # model and regularizer of a map compile it once
        self._both = (_compiled if shared else _compiled.__wrapped__)(function)

    def __str__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"lambda {', '.join(self.names)}: ..." if name == "<lambda>" else name

    def check_traceable(self) -> None:
        """A sentence when JAX cannot follow the map, or when it is not one real number."""
        import jax

        with double_precision():
            probe = [jax.ShapeDtypeStruct((), np.dtype(np.float64)) for _ in self.names]
            try:
                traced = jax.eval_shape(self.function, *probe)
            except Exception as problem:
                # JAX, NumPy and the map itself raise many types here; all mean the same to a user
                raise ValueError(
                    f"{WHO}: JAX cannot follow the map on single numbers"
                    f" ({type(problem).__name__}); write it with jax.numpy (jnp.sinh, not np.sinh)"
                    " or plain operators, one coordinate at a time and without branching on values"
                ) from problem
        shape, kind = getattr(traced, "shape", None), getattr(traced, "dtype", None)
        if shape != ():
            seen = repr(traced) if shape is None else f"shape {shape}"
            raise ValueError(
                f"{WHO}: the map must turn the parameters of one coordinate into one number, but"
                f" it returns {seen}"
            )
        if not np.issubdtype(kind, np.floating):
            raise ValueError(f"{WHO}: the map must return a real number, but its type is {kind}")

    def check_separable(self, starts: Array) -> None:
        """A sentence when the map, called on whole vectors, lets coordinates see each other."""
        import jax

        points = np.resize(starts, (3, starts.shape[1])) * np.array([[1.0], [1 + 2e-3], [1 - 1e-3]])
        with double_precision():
            columns = tuple(points.T)
            try:
                together = np.asarray(self.function(*map(jax.numpy.asarray, columns)))
                jacobian = jax.jacfwd(self.function, argnums=tuple(range(len(columns))))(*columns)
            except Exception:
                return  # written for single numbers only: it cannot mix coordinates
        alone, slopes = self.evaluate(points)
        blocks = [np.asarray(block) for block in jacobian]
        mixes = any(np.any(np.triu(b, 1)) or np.any(np.tril(b, -1)) for b in blocks if b.ndim == 2)
        if together.shape != alone.shape or mixes:
            raise ValueError(
                f"{WHO}: the map is not separable: applied to a vector, one coordinate's output"
                " depends on another's parameters; only maps that act coordinate by coordinate"
                " have a regularizer of this kind"
            )
        size = np.nan_to_num(np.abs(slopes * points)).max()
        if not np.allclose(together, alone, rtol=1e-9, atol=1e-9 * size, equal_nan=True):
            raise ValueError(
                f"{WHO}: the map must be the same for every coordinate, but on a vector it gives"
                f" {together} where single numbers give {alone}"
            )

    def evaluate(self, points: Array) -> tuple[Array, Array]:
        """(F, gradient) at the rows of `points`; shapes (m,) and (m, arguments)."""
        count = len(points)
        # powers of two from 32: JAX compiles anew for every shape it sees
        padded = np.empty((1 << max(count - 1, 31).bit_length(), points.shape[1]))
        padded[:count], padded[count:] = points, points[0]
        with double_precision():
            value, gradient = self._both(padded)
            return np.asarray(value)[:count], np.asarray(gradient)[:count]


def check_start(line: Reparametrization, points: Array) -> None:
    """A sentence when the map is not defined or not differentiable at a start, or constant."""
    value, gradient = line.evaluate(points)
    elsewhere = np.concatenate([points + shift for shift in (0.0, 0.37, -0.61, 1.93)])
    if not np.nan_to_num(line.evaluate(elsewhere)[1], nan=1.0).any():
        raise ValueError(f"{WHO}: the map does not depend on its parameters")
    for w, f, g in zip(points, value, gradient, strict=True):
        if not np.isfinite(f):
            raise ValueError(
                f"{WHO}: the map is not finite at the start {place(line, w)}: its value is {f}"
            )
        if not np.isfinite(g).all():
            raise ValueError(
                f"{WHO}: the map is not differentiable at the start {place(line, w)}: gradient {g}"
            )


def check_moving(line: Reparametrization, points: Array) -> None:
    """A sentence when no gradient line leaves one of the starts."""
    for w, v in zip(points, length(line.evaluate(points)[1]), strict=True):
        if v == 0:
            raise ValueError(
                f"{WHO}: the map has gradient zero at the start {place(line, w)}, so gradient flow"
                " never moves and there is no regularizer; start elsewhere"
            )
        if not SMALL < v < LARGE:
            raise ValueError(
                f"{WHO}: the gradient of the map at the start {place(line, w)} has size {v:.3g},"
                " whose square leaves double precision; rescale the map or the start"
            )


def place(line: Reparametrization, w: Array) -> str:
    """A parameter vector in words."""
    return ", ".join(f"{name} = {x:.6g}" for name, x in zip(line.names, w, strict=True))
