"""Penalties h of an objective g + beta h: their value, a subgradient and their proximal map.

prox(theta, weight) is the minimiser over z of |z - theta|^2 / 2 + weight h(z). All of them take
flat parameters as NumPy or JAX arrays, so that they also work inside a compiled loop.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from tacit.arguments import integer
from tacit.models.matrix import checked_shape
from tacit.records import Record


class Penalty(Record, abc.ABC):
    """A function h of flat parameters."""

    @property
    def has_prox(self) -> bool:
        """Whether the proximal map is known."""
        return True

    @property
    def curvature(self) -> float:
        """The second derivative of a quadratic h, which shortens stable steps; otherwise 0."""
        return 0.0

    @abc.abstractmethod
    def value(self, theta: Any) -> Any:
        """h(theta)."""

    @abc.abstractmethod
    def subgradient(self, theta: Any) -> Any:
        """One H with h(z) >= h(theta) + <H, z - theta> for every z."""

    @abc.abstractmethod
    def prox(self, theta: Any, weight: Any) -> Any:
        """The minimiser over z of |z - theta|^2 / 2 + weight h(z)."""

    def describe(self) -> dict[str, Any]:
        """What is needed to build this penalty again, as plain JSON values."""
        return {"penalty": type(self).__name__}


@dataclasses.dataclass(frozen=True, repr=False)
class AbsoluteSum(Penalty):
    """h = |theta|_1, with the subgradient sign(theta), 0 at 0 (N)."""

    def value(self, theta: Any) -> Any:
        return abs(theta).sum()

    def subgradient(self, theta: Any) -> Any:
        return _space(theta).sign(theta)

    def prox(self, theta: Any, weight: Any) -> Any:
        # theta minus its part within [-weight, weight]
        return theta - _space(theta).clip(theta, -weight, weight)


@dataclasses.dataclass(frozen=True, repr=False)
class SquaredSum(Penalty):
    """h = |theta|_2^2, so that H = 2 theta: beta here is half of a weight decay rate."""

    @property
    def curvature(self) -> float:
        return 2.0

    def value(self, theta: Any) -> Any:
        return (theta * theta).sum()

    def subgradient(self, theta: Any) -> Any:
        return 2 * theta

    def prox(self, theta: Any, weight: Any) -> Any:
        return theta / (1 + 2 * weight)


@dataclasses.dataclass(frozen=True, repr=False)
class EuclideanNorm(Penalty):
    """h = |theta|_2, not squared, with the subgradient theta/|theta|, 0 at 0."""

    def value(self, theta: Any) -> Any:
        return _length(theta)

    def subgradient(self, theta: Any) -> Any:
        length = _length(theta)
        return theta / _space(theta).where(length > 0, length, 1.0)

    def prox(self, theta: Any, weight: Any) -> Any:
        space, length = _space(theta), _length(theta)
        kept = space.maximum(length - weight, 0.0)
        return theta * (kept / space.where(length > 0, length, 1.0))


@dataclasses.dataclass(frozen=True, repr=False)
class NuclearNorm(Penalty):
    """h = the sum of the singular values of theta as a matrix of `shape`, in C order.

    The subgradient is U V^T over the singular values above rounding (N: the compact SVD).
    """

    shape: tuple[int, int]

    def __post_init__(self) -> None:
        shape = checked_shape("NuclearNorm", self.shape)
        if shape is None:
            raise ValueError("NuclearNorm: give shape=(rows, columns) of the matrix, got None")
        object.__setattr__(self, "shape", shape)

    def value(self, theta: Any) -> Any:
        return _space(theta).linalg.svd(self._matrix(theta), compute_uv=False).sum()

    def subgradient(self, theta: Any) -> Any:
        u, s, v = self._svd(theta)
        rounding = s[0] * max(self.shape) * np.finfo(np.float64).eps
        return ((u * (s > rounding)) @ v).reshape(-1)

    def prox(self, theta: Any, weight: Any) -> Any:
        u, s, v = self._svd(theta)
        return ((u * _space(theta).maximum(s - weight, 0.0)) @ v).reshape(-1)

    def describe(self) -> dict[str, Any]:
        return {"penalty": "NuclearNorm", "shape": list(self.shape)}

    def _svd(self, theta: Any) -> Any:
        return _space(theta).linalg.svd(self._matrix(theta), full_matrices=False)

    def _matrix(self, theta: Any) -> Any:
        if theta.size != math.prod(self.shape):
            raise ValueError(
                f"NuclearNorm: shape {self.shape} has {math.prod(self.shape)} entries but there "
                f"are {theta.size} parameters; use Blocks for several tensors"
            )
        return theta.reshape(self.shape)


@dataclasses.dataclass(frozen=True, init=False, repr=False)
class Blocks(Penalty):
    """The sum of penalties of consecutive blocks of the parameters: one per tensor.

    `parts` are pairs (penalty or None, number of parameters); None leaves its block free.
    """

    parts: tuple[tuple[Penalty | None, int], ...]

    def __init__(self, parts: Sequence[tuple[Penalty | None, int]]) -> None:
        object.__setattr__(self, "parts", _checked_parts(parts))

    @property
    def has_prox(self) -> bool:
        return all(part is None or part.has_prox for part, _ in self.parts)

    @property
    def curvature(self) -> float:
        return max((part.curvature for part, _ in self.parts if part is not None), default=0.0)

    def value(self, theta: Any) -> Any:
        return sum(part.value(block) for part, block in self._cut(theta) if part is not None)

    def subgradient(self, theta: Any) -> Any:
        cut = self._cut(theta)
        pieces = [0 * block if part is None else part.subgradient(block) for part, block in cut]
        return _space(theta).concatenate(pieces)

    def prox(self, theta: Any, weight: Any) -> Any:
        cut = self._cut(theta)
        pieces = [block if part is None else part.prox(block, weight) for part, block in cut]
        return _space(theta).concatenate(pieces)

    def describe(self) -> dict[str, Any]:
        blocks = [[part and part.describe(), size] for part, size in self.parts]
        return {"penalty": "Blocks", "parts": blocks}

    def _cut(self, theta: Any) -> list[tuple[Penalty | None, Any]]:
        total = sum(size for _, size in self.parts)
        if theta.size != total:
            raise ValueError(f"Blocks: {total} parameters in blocks but {theta.size} are given")
        ends = np.cumsum([size for _, size in self.parts])
        return [(part, theta[end - size : end])
                for (part, size), end in zip(self.parts, ends, strict=True)]  # fmt: skip


def _checked_parts(parts: Any) -> tuple[tuple[Penalty | None, int], ...]:
    """The parts of Blocks; otherwise an error that says what a part is."""
    rule = "Blocks: parts must be pairs (penalty or None, number of parameters)"
    try:
        pairs = [(part, size) for part, size in parts]
    except (TypeError, ValueError):
        raise ValueError(f"{rule}, got {parts!r}") from None
    for part, _ in pairs:
        if not (part is None or isinstance(part, Penalty)):
            raise ValueError(f"{rule}, got {part!r} for a penalty")
    sizes = [integer("Blocks", "the number of parameters", size, least=0) for _, size in pairs]
    return tuple((part, size) for (part, _), size in zip(pairs, sizes, strict=True))


@dataclasses.dataclass(frozen=True, init=False, repr=False)
class UserPenalty(Penalty):
    """h = `value`, any JAX function of the flat parameters that returns one number.

    Without a `subgradient` JAX differentiates the value; without a `prox`, a function of
    (theta, weight), only methods that need none can be used.
    """

    stored_as: ClassVar = {"value": "function", "subgradient": "slope", "prox": "nearest"}

    function: Callable[[Any], Any]
    slope: Callable[[Any], Any] | None
    nearest: Callable[[Any, Any], Any] | None

    def __init__(
        self,
        value: Callable[[Any], Any],
        subgradient: Callable[[Any], Any] | None = None,
        prox: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        for name, given in {"value": value, "subgradient": subgradient, "prox": prox}.items():
            if not (callable(given) or (given is None and name != "value")):
                raise ValueError(f"UserPenalty: {name} must be a function, got {given!r}")
        for name, given in {"function": value, "slope": subgradient, "nearest": prox}.items():
            object.__setattr__(self, name, given)

    @property
    def has_prox(self) -> bool:
        return self.nearest is not None

    def value(self, theta: Any) -> Any:
        return self.function(theta)

    def subgradient(self, theta: Any) -> Any:
        if self.slope is not None:
            return self.slope(theta)
        import jax

        return jax.grad(self.function)(theta)

    def prox(self, theta: Any, weight: Any) -> Any:
        if self.nearest is None:
            raise ValueError("UserPenalty: no proximal map is known; give prox=")
        return self.nearest(theta, weight)

    def describe(self) -> dict[str, Any]:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return {"penalty": "UserPenalty", "name": name}


def _space(theta: Any) -> Any:
    """NumPy for its own arrays, jax.numpy for all others."""
    if isinstance(theta, np.ndarray):
        return np
    import jax.numpy

    return jax.numpy


def _length(theta: Any) -> Any:
    """|theta|_2, also where its square would overflow or underflow."""
    space = _space(theta)
    largest = abs(theta).max()
    unit = theta / space.where(largest > 0, largest, 1.0)
    return largest * space.sqrt((unit * unit).sum())
