"""One coordinate's map beta = F(w) and its starts, as the user wrote them."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from penchant.arguments import Array, finite_array, weakly_held
from penchant.door import door_as
from penchant.precision import double_precision
from penchant.records import brief

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
    """F and its gradient at many parameter vectors at once, in float64, by JAX.

    Its lines are those of steepest ascent, w' = sign(g) |g|^(power - 1) with g = grad F: gradient
    lines for the power 2, those of signs for 1.
    """

    def __init__(self, function: Callable[..., Any], power: float = 2.0) -> None:
        self.power = power
        self.names = argument_names(function)
        self.function = weakly_held(function)
        self.check_traceable()
        shared = isinstance(function, Hashable)  # model and regularizer of a map compile it once
        self._both = (_compiled if shared else _compiled.__wrapped__)(function)

    def __str__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"lambda {', '.join(self.names)}: ..." if name == "<lambda>" else name

    def velocity(self, gradient: Array) -> Array:
        """w' where the gradient of F is this."""
        if self.power == 2:
            return gradient
        return np.asarray(np.sign(gradient) * np.abs(gradient) ** (self.power - 1))

    def check_traceable(self) -> None:
        """An error if JAX cannot trace the map, or if it does not return one real number."""
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
        """An error if the map, called on whole vectors, mixes coordinates."""
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
    """An error if the map is not defined or not differentiable at a start, or constant."""
    value, gradient = line.evaluate(points)
    elsewhere = np.concatenate([points + shift for shift in (0.0, 0.37, -0.61, 1.93)])
    if not np.nan_to_num(line.evaluate(elsewhere)[1], nan=1.0).any():
        raise ValueError(f"{WHO}: the map does not depend on its parameters")
    for w, f, g in zip(points, value, gradient, strict=True):
        if not np.isfinite(f):
            raise ValueError(
                f"{WHO}: the map is not finite at the start {shown(line, w)}: its value is {f}"
            )
        if not np.isfinite(g).all():
            raise ValueError(
                f"{WHO}: the map is not differentiable at the start {shown(line, w)}: gradient {g}"
            )


def check_moving(line: Reparametrization, points: Array) -> None:
    """An error if no gradient line leaves one of the starts."""
    for w, v in zip(points, length(line.evaluate(points)[1]), strict=True):
        if v == 0:
            raise ValueError(
                f"{WHO}: the map has gradient zero at the start {shown(line, w)}, so gradient flow"
                " never moves and there is no regularizer; start elsewhere"
            )
        if not SMALL < v < LARGE:
            raise ValueError(
                f"{WHO}: the gradient of the map at the start {shown(line, w)} has size {v:.3g},"
                " whose square leaves double precision; rescale the map or the start"
            )


def shown(line: Reparametrization, w: Array) -> str:
    return ", ".join(f"{name} = {x:.6g}" for name, x in zip(line.names, w, strict=True))


@dataclasses.dataclass(frozen=True)
class Starts:
    """Parameter vectors of the coordinates (rows); one row stands for all if `dimension` is None.

    `minus` is where the second half of a signed pair begins, None for an unsigned map.
    """

    plus: Array
    minus: Array | None
    dimension: int | None

    @property
    def pairs(self) -> Array:
        """Rows (plus, minus); an unsigned map repeats its start."""
        return np.hstack([self.plus, self.plus if self.minus is None else self.minus])

    @property
    def equal(self) -> bool:
        return self.minus is None or np.array_equal(self.plus, self.minus)

    @property
    def alike(self) -> bool:
        return len(np.unique(self.pairs, axis=0)) == 1

    def first(self) -> Starts:
        return Starts(self.plus[:1], None if self.minus is None else self.minus[:1], None)

    def __str__(self) -> str:
        halves = [self.plus] if self.minus is None or self.equal else [self.plus, self.minus]
        texts = [self.text(half) for half in halves]
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    def text(self, half: Array) -> str:
        columns = [
            brief(float(c[0])) if self.dimension is None else f"vector of {len(c)}" for c in half.T
        ]
        return columns[0] if len(columns) == 1 else f"({', '.join(columns)})"


def read_starts(names: Sequence[str], start: object, signed: bool) -> Starts:
    """The starts of a map with these arguments, from a number, an array, or a tuple of them."""
    pair = signed and isinstance(start, tuple) and len(start) == 2
    if pair and len(names) > 1:
        # several arguments take a tuple themselves, so a pair of starts is a pair of tuples
        pair = all(isinstance(half, tuple) for half in start)  # type: ignore[attr-defined]
    halves: Sequence[object] = start if pair else (start,)  # type: ignore[assignment]
    columns = [column for half in halves for column in columns_of(names, half, signed)]
    lengths = sorted({len(column) for column in columns if column.ndim})
    if len(lengths) > 1:
        raise ValueError(
            f"{WHO}: the parts of start must have one length, got {' and '.join(map(str, lengths))}"
        )
    rows = np.stack(np.broadcast_arrays(*map(np.atleast_1d, columns)), axis=1)
    plus, minus = rows[:, : len(names)], rows[:, -len(names) :]
    return Starts(plus, minus if signed else None, lengths[0] if lengths else None)


def columns_of(names: Sequence[str], start: object, signed: bool) -> list[Array]:
    if len(names) == 1:
        if isinstance(start, tuple):
            way_out = "a pair (w_plus, w_minus)" if signed else "no tuple"
            raise ValueError(
                f"{WHO}: start of a map of one argument must be a number, an array or {way_out},"
                f" got a tuple of {len(start)}"
            )
        return [number_or_vector(f"start of {names[0]}", start)]
    if not isinstance(start, tuple) or len(start) != len(names):
        seen = f"a tuple of {len(start)}" if isinstance(start, tuple) else repr(start)
        raise ValueError(
            f"{WHO}: start must be a tuple with one start for each of the map's {len(names)}"
            f" arguments {', '.join(names)}, got {seen}"
        )
    return [number_or_vector(f"start of {n}", s) for n, s in zip(names, start, strict=True)]


@door_as(WHO)
def number_or_vector(name: str, value: object) -> Array:
    try:
        ndim = 0 if np.ndim(value) == 0 else 1  # type: ignore[arg-type]
    except ValueError:
        ndim = 1  # ragged: finite_array says so
    array = finite_array(name, value, ndim=ndim)  # type: ignore[arg-type]
    return array if ndim else array.reshape(())
