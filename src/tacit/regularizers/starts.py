"""Where the parameters of every coordinate begin, as the user may say it to `derive`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from tacit.arguments import Array, finite_array
from tacit.records import brief
from tacit.regularizers.reparametrization import WHO


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
        """Whether both halves of a pair begin alike."""
        return self.minus is None or np.array_equal(self.plus, self.minus)

    @property
    def alike(self) -> bool:
        """Whether all coordinates begin alike."""
        return len(np.unique(self.pairs, axis=0)) == 1

    def first(self) -> Starts:
        """The start of the first coordinate, standing for all."""
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
    """One scalar or vector per argument of the map."""
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


def number_or_vector(name: str, value: object) -> Array:
    """A finite scalar or vector."""
    try:
        ndim = 0 if np.ndim(value) == 0 else 1  # type: ignore[arg-type]
    except ValueError:
        ndim = 1  # ragged: finite_array says so
    array = finite_array(WHO, name, value, ndim=ndim)  # type: ignore[arg-type]
    return array if ndim else array.reshape(())
