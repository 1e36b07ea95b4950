"""Regularizers of several tensors: of consecutive blocks of flat parameters, or of every leaf."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arguments import integer
from tacit.regularizers.arrays import leaves, mapped, space_of
from tacit.regularizers.penalty import Term, checked_term


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PerTensor(Term):
    """The sum over the tensors of a pytree of `regularizer` of each.

    It differs from the regularizer of all of them where that is no sum:
    PerTensor(L2(squared=False)) is the sum of the norms of the tensors, L2(squared=False) the
    norm of all entries.

    Parameters
    ----------
    regularizer
        What is taken of each tensor.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> norm = tacit.L2(squared=False)
    >>> theta = {"a": np.array([3.0]), "b": np.array([4.0])}
    >>> float(norm.value(theta)), float(tacit.PerTensor(norm).value(theta))
    (5.0, 7.0)
    """

    regularizer: Term

    def __post_init__(self) -> None:
        checked_term("PerTensor", self.regularizer)

    @property
    def has_prox(self) -> bool:
        return self.regularizer.has_prox

    @property
    def smooth(self) -> bool:
        return self.regularizer.smooth

    @property
    def curvature(self) -> float:
        return self.regularizer.curvature

    def value(self, theta: Any) -> Any:
        return sum(self.regularizer.value(leaf) for leaf in leaves(theta))

    def subgradient(self, theta: Any) -> Any:
        return mapped(self.regularizer.subgradient, theta)

    def prox(self, theta: Any, weight: Any) -> Any:
        return mapped(lambda leaf: self.regularizer.prox(leaf, weight), theta)


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Blocks(Term):
    """The sum of regularizers of consecutive blocks of flat parameters.

    Parameters
    ----------
    parts
        Pairs (regularizer or None, number of parameters); None leaves its block free.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> blocks = tacit.Blocks([(tacit.L1(), 2), (None, 1), (tacit.L2(), 1)])
    >>> float(blocks.value(np.array([1.0, -2.0, 5.0, 3.0])))
    12.0
    """

    parts: tuple[tuple[Term | None, int], ...]

    def __init__(self, parts: Sequence[tuple[Term | None, int]]) -> None:
        object.__setattr__(self, "parts", _checked_parts(parts))

    @property
    def _terms(self) -> list[Term]:
        return [part for part, _ in self.parts if part is not None]

    @property
    def has_prox(self) -> bool:
        return all(part.has_prox for part in self._terms)

    @property
    def smooth(self) -> bool:
        return all(part.smooth for part in self._terms)

    @property
    def curvature(self) -> float:
        return max((part.curvature for part in self._terms), default=0.0)

    def value(self, theta: Any) -> Any:
        return sum(part.value(block) for part, block in self._cut(theta) if part is not None)

    def subgradient(self, theta: Any) -> Any:
        cut = self._cut(theta)
        pieces = [0 * block if part is None else part.subgradient(block) for part, block in cut]
        return space_of(theta).concatenate(pieces)

    def prox(self, theta: Any, weight: Any) -> Any:
        cut = self._cut(theta)
        pieces = [block if part is None else part.prox(block, weight) for part, block in cut]
        return space_of(theta).concatenate(pieces)

    def _cut(self, theta: Any) -> list[tuple[Term | None, Any]]:
        if getattr(theta, "ndim", None) != 1:
            raise ValueError(
                "Blocks: the parameters must be one flat array, got "
                f"{getattr(theta, 'shape', type(theta).__name__)}; use PerTensor for a pytree"
            )
        total = sum(size for _, size in self.parts)
        if theta.size != total:
            raise ValueError(f"Blocks: {total} parameters in blocks but {theta.size} are given")
        ends = np.cumsum([size for _, size in self.parts])
        cuts = zip(self.parts, ends, strict=True)
        return [(part, theta[end - size : end]) for (part, size), end in cuts]


def _checked_parts(parts: Any) -> tuple[tuple[Term | None, int], ...]:
    """The parts of Blocks; otherwise an error that says what a part is."""
    rule = "Blocks: parts must be pairs (regularizer or None, number of parameters)"
    try:
        pairs = [(part, size) for part, size in parts]
    except (TypeError, ValueError):
        raise ValueError(f"{rule}, got {parts!r}") from None
    for part, _ in pairs:
        if not (part is None or isinstance(part, Term)):
            raise ValueError(f"{rule}, got {part!r} for a regularizer")
    sizes = [integer("Blocks", "the number of parameters", size, least=0) for _, size in pairs]
    return tuple((part, size) for (part, _), size in zip(pairs, sizes, strict=True))
