"""Functions h of parameters that training can add to its loss, their multiples and their sums.

`prox(theta, weight)` is the minimiser over z of |z - theta|^2 / 2 + weight h(z). The parameters are
a pytree of NumPy or JAX arrays, and everything works inside compiled code too.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from penchant.arguments import integer, real
from penchant.description import call
from penchant.door import Invalid, door
from penchant.equality import equal_fields, hash_fields
from penchant.regularizers.arrays import leaves, mapped, space_of
from penchant.suggestions import NamedArguments

KNOWN = (
    "L1, L2, Linf, Lp with p >= 1, Q, R, Nuclear, Spectral, Frobenius, Schatten and"
    " Custom(..., prox=) have one"
)


class Term(NamedArguments, abc.ABC):
    """A function h of parameters; times a number it is a penalty: `1e-5 * L1()`.

    Two terms made by the same arguments are equal, so that code compiled for one serves both. A
    term of your own defines `value` and `subgradient`; `Custom` makes one of a JAX function.

    Examples
    --------
    >>> import dataclasses
    >>> import penchant
    >>> @dataclasses.dataclass(frozen=True, eq=False, repr=False)
    ... class Fourth(penchant.regularizers.Term):
    ...     smooth = True
    ...     def value(self, theta):
    ...         return (theta**4).sum()
    ...     def subgradient(self, theta):
    ...         return 4 * theta**3
    >>> net, problem = penchant.DiagonalNet(2, alpha=1.0), penchant.Regression([[1.0, 2.0]], [5.0])
    >>> method, stop = penchant.GradientDescent(0.01), penchant.Steps(10)
    >>> penchant.train(net, problem, method, stop=stop, penalty=1e-3 * Fourth()).steps
    10
    """

    __repr__ = call
    __eq__ = equal_fields
    __hash__ = hash_fields
    __array_ufunc__ = None  # NumPy's numbers leave the multiplication to __rmul__

    #: the terms that this one is made of, None if of no others
    inside: tuple[Term, ...] | None = None

    @property
    def has_prox(self) -> bool:
        """Whether the proximal map is known."""
        return self.inside is not None and all(term.has_prox for term in self.inside)

    @property
    def smooth(self) -> bool:
        """Whether h is known to have a continuous gradient."""
        return self.inside is not None and all(term.smooth for term in self.inside)

    @property
    def curvature(self) -> float:
        """The second derivative of a quadratic h, which shortens stable steps; otherwise 0."""
        return max((term.curvature for term in self.inside or ()), default=0.0)

    @abc.abstractmethod
    def value(self, theta: Any) -> Any:
        """h(theta)."""

    @abc.abstractmethod
    def subgradient(self, theta: Any) -> Any:
        """One H, shaped like theta, with h(z) >= h(theta) + <H, z - theta> for all z.

        At the kink of a norm it is 0.
        """

    def prox(self, theta: Any, weight: Any) -> Any:
        """The minimiser over z of |z - theta|^2 / 2 + weight h(z)."""
        raise ValueError(f"{self!r}: no proximal map is known; {KNOWN}")

    @property
    def weighted(self) -> tuple[tuple[float, Term], ...]:
        """The weights and regularizers that this is the sum of."""
        return ((1.0, self),)

    def __rmul__(self, weight: object) -> Penalty | PenaltySum:
        return Penalty(weight, self)  # type: ignore[arg-type]

    def __mul__(self, weight: object) -> Penalty | PenaltySum:
        return self.__rmul__(weight)

    def __add__(self, other: object) -> PenaltySum:
        if not isinstance(other, Term):
            return NotImplemented
        return PenaltySum((*_parts(self), *_parts(other)))


def _parts(term: Term) -> tuple[Penalty, ...]:
    if isinstance(term, PenaltySum):
        return term.parts
    return (term if isinstance(term, Penalty) else Penalty(1.0, term),)


def checked_term(term: object) -> Term:
    """`term` if it is one; otherwise an error that says what is."""
    if not isinstance(term, Term):
        raise Invalid(
            f"expected a regularizer such as L1(), or Custom(value) around your own "
            f"function, got {term!r}"
        )
    return term


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Penalty(Term):
    """A weight times a regularizer, which training adds to its loss; written `1e-5 * L1()`.

    Parameters
    ----------
    weight
        A number, at least 0.
    regularizer
        The regularizer, such as L1().

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> penalty = 0.1 * penchant.L1() + 0.5 * penchant.L2()
    >>> penalty
    0.1 * L1() + 0.5 * L2()
    >>> float(penalty.value(np.array([1.0, -2.0])))
    2.8
    """

    weight: float
    regularizer: Term

    @door
    def __init__(self, weight: float, regularizer: Term) -> None:
        number = real("weight", weight, rule="a finite number >= 0")
        if number < 0:
            raise Invalid(f"weight must be a finite number >= 0, got {number:g}")
        checked_term(regularizer)
        object.__setattr__(self, "weight", number)
        object.__setattr__(self, "regularizer", regularizer)

    def __repr__(self) -> str:
        if isinstance(self.regularizer, Penalty | PenaltySum):  # a product would multiply it out
            return call(self)
        return f"{self.weight!r} * {self.regularizer!r}"

    @property
    def weighted(self) -> tuple[tuple[float, Term], ...]:
        return tuple((self.weight * weight, term) for weight, term in self.regularizer.weighted)

    def __rmul__(self, weight: object) -> Penalty:
        factor = Penalty(weight, self.regularizer).weight  # type: ignore[arg-type]
        return Penalty(factor * self.weight, self.regularizer)

    @property
    def has_prox(self) -> bool:
        return self.weight == 0 or self.regularizer.has_prox

    @property
    def smooth(self) -> bool:
        return self.weight == 0 or self.regularizer.smooth

    @property
    def curvature(self) -> float:
        return self.weight * self.regularizer.curvature

    def value(self, theta: Any) -> Any:
        return self.weight * self.regularizer.value(theta)

    def subgradient(self, theta: Any) -> Any:
        return mapped(lambda leaf: self.weight * leaf, self.regularizer.subgradient(theta))

    def prox(self, theta: Any, weight: Any) -> Any:
        if self.weight == 0:
            return theta
        return self.regularizer.prox(theta, self.weight * weight)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PenaltySum(Term):
    """The sum of penalties, written `1e-5 * L1() + 1e-3 * L2()`."""

    parts: tuple[Penalty, ...]

    def __post_init__(self) -> None:
        parts = tuple(part for given in self.parts for part in _parts(given))
        object.__setattr__(self, "parts", parts)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    @property
    def weighted(self) -> tuple[tuple[float, Term], ...]:
        return tuple(term for part in self.parts for term in part.weighted)

    def __rmul__(self, weight: object) -> PenaltySum:
        return PenaltySum(tuple(part.__rmul__(weight) for part in self.parts))

    @property
    def _counting(self) -> list[Penalty]:
        return [part for part in self.parts if part.weight > 0]

    @property
    def has_prox(self) -> bool:
        return len(self._counting) <= 1 and all(part.has_prox for part in self.parts)

    @property
    def smooth(self) -> bool:
        return all(part.smooth for part in self.parts)

    @property
    def curvature(self) -> float:
        return sum(part.curvature for part in self.parts)

    def value(self, theta: Any) -> Any:
        return sum(part.value(theta) for part in self.parts)

    def subgradient(self, theta: Any) -> Any:
        return mapped(lambda *those: sum(those), *(part.subgradient(theta) for part in self.parts))

    def prox(self, theta: Any, weight: Any) -> Any:
        if len(self._counting) > 1:
            raise ValueError(
                f"{self!r}: the proximal map of a sum is known only if one weight is not 0; use "
                "GradientDescent(..., subgradient=True), or Custom(..., prox=) with your own map"
            )
        return self._counting[0].prox(theta, weight) if self._counting else theta


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PerTensor(Term):
    """The sum over the tensors of a pytree of `regularizer` of each.

    It differs from the regularizer of all tensors together if that is not a sum:
    PerTensor(L2(squared=False)) is the sum of the norms of the tensors, L2(squared=False) the
    norm of all entries.

    Parameters
    ----------
    regularizer
        The regularizer that is applied to each tensor.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> norm = penchant.L2(squared=False)
    >>> theta = {"a": np.array([3.0]), "b": np.array([4.0])}
    >>> float(norm.value(theta)), float(penchant.regularizers.PerTensor(norm).value(theta))
    (5.0, 7.0)
    """

    regularizer: Term

    @door
    def __post_init__(self) -> None:
        checked_term(self.regularizer)

    @property
    def inside(self) -> tuple[Term, ...]:  # type: ignore[override]
        return (self.regularizer,)

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
    >>> import penchant
    >>> blocks = penchant.regularizers.Blocks([(penchant.L1(), 2), (None, 1), (penchant.L2(), 1)])
    >>> float(blocks.value(np.array([1.0, -2.0, 5.0, 3.0])))
    12.0
    """

    parts: tuple[tuple[Term | None, int], ...]

    @door
    def __init__(self, parts: Sequence[tuple[Term | None, int]]) -> None:
        rule = "Blocks: parts must be pairs (regularizer or None, number of parameters)"
        try:
            pairs = [(part, size) for part, size in parts]
        except (TypeError, ValueError):
            raise ValueError(f"{rule}, got {parts!r}") from None
        for part, _ in pairs:
            if not (part is None or isinstance(part, Term)):
                raise ValueError(f"{rule}, got {part!r} for a regularizer")
        what = "the number of parameters"
        checked = tuple((part, integer(what, size, least=0)) for part, size in pairs)
        object.__setattr__(self, "parts", checked)

    @property
    def inside(self) -> tuple[Term, ...]:  # type: ignore[override]
        return tuple(part for part, _ in self.parts if part is not None)

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
