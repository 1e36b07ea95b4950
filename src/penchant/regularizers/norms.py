"""The limits of Q and related norms: l1, weighted l2, lp and its limit l_inf."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array
from penchant.door import Invalid, door
from penchant.regularizers.arrays import as_floats, leaves, length, mapped, space_of
from penchant.regularizers.regularizer import Regularizer, soft_threshold


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class L1(Regularizer):
    """sum |beta_i|: the rich limit.

    As a penalty of training it is the sum over all entries of all parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> l1 = penchant.L1()
    >>> l1([3.0, -4.0, 0.0])
    7.0
    >>> l1.prox(np.array([3.0, -0.5]), 1.0)
    array([2., 0.])
    """

    degree = 1.0
    in_jax = True
    has_prox = True
    smooth = False

    @property
    def dual_norm(self) -> Linf:
        """The largest absolute value."""
        return Linf()

    def terms(self, beta: Array) -> Array:
        return abs(beta)

    def dual_of(self, beta: Array) -> Array:
        return space_of(beta).sign(beta)

    def prox_of(self, beta: Any, weight: Any) -> Any:
        return soft_threshold(beta, weight)

    def primal_of(self, s: Array) -> Array:
        """Zero inside the box; on and beyond its faces any size is possible."""
        return np.where(np.abs(s) < 1, 0.0, np.copysign(np.inf, s))

    def slope(self, s: Array) -> Array:
        return np.where(np.abs(s) < 1, 0.0, np.inf)


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class L2(Regularizer):
    """sum weights_i beta_i^2: the kernel limit, with weights 1/w0^(2D-2).

    Parameters
    ----------
    weights
        One positive number per coordinate; None stands for ones.
    squared
        False is the root: the Euclidean norm of all parameters together. It has the same
        minimisers, but is no sum over coordinates.

    Examples
    --------
    >>> import penchant
    >>> penchant.L2()([3.0, 4.0]), penchant.L2(squared=False)([3.0, 4.0])
    (25.0, 5.0)
    >>> penchant.L2([1.0, 2.0])([3.0, 4.0])
    41.0
    """

    weights: Array | None
    squared: bool
    in_jax = True

    @door
    def __init__(self, weights: ArrayLike | None = None, *, squared: bool = True) -> None:
        if weights is not None:
            weights = finite_array("weights", weights, ndim=1)
            if (weights <= 0).any():
                where = int(np.argmin(weights))
                raise ValueError(f"L2: weights must be > 0, got {weights[where]} at index {where}")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "squared", bool(squared))
        object.__setattr__(self, "dimension", None if weights is None else len(weights))

    def __str__(self) -> str:
        weights = [] if self.weights is None else [f"weights of {len(self.weights)}"]
        return f"L2({', '.join([*weights, *['squared=False'] * (not self.squared)])})"

    @property
    def degree(self) -> float:  # type: ignore[override]
        return 2.0 if self.squared else 1.0

    @property
    def smooth(self) -> bool:
        return self.squared

    @property
    def has_prox(self) -> bool:
        return self.squared or self.weights is None

    @property
    def curvature(self) -> float:
        return 2 * float(self.spread_weights.max()) if self.squared else 0.0

    @property
    def spread_weights(self) -> Array:
        """The weights, one entry standing for all when none were given."""
        return np.ones(1) if self.weights is None else self.weights

    @property
    def stiffness(self) -> Array:
        return 2 * self.spread_weights

    @property
    def dual_norm(self) -> L2:
        """Of the root: the Euclidean norm with the weights inverted."""
        return L2(None if self.weights is None else 1 / self.weights, squared=False)

    def __call__(self, beta: ArrayLike) -> float:
        if self.squared:
            return super().__call__(beta)
        return float(self.value(self.vector("beta", beta)))

    def value(self, theta: Any) -> Any:
        if self.squared:
            return super().value(theta)
        self._must_fit(theta)
        return length(mapped(lambda leaf: leaf * self._root(leaf), theta))

    def subgradient(self, theta: Any) -> Any:
        if self.squared:
            return super().subgradient(theta)
        size = self.value(theta)
        return mapped(
            lambda leaf: as_floats(leaf * self._root(leaf) ** 2 / _or_one(size), leaf), theta
        )

    def prox(self, theta: Any, weight: Any) -> Any:
        if self.squared or not self.has_prox:
            return super().prox(theta, weight)
        size = self.value(theta)
        share = space_of(size).maximum(size - weight, 0.0) / _or_one(size)
        return mapped(lambda leaf: as_floats(leaf * share, leaf), theta)

    def prox_of(self, beta: Any, weight: Any) -> Any:
        return beta / (1 + self.stiffness * weight)

    def _root(self, leaf: Any) -> Any:
        return 1 if self.weights is None else np.sqrt(self.weights).reshape(leaf.shape)

    def terms(self, beta: Array) -> Array:
        if not self.squared:
            self._refuse("is no sum over coordinates")
        with np.errstate(over="ignore"):  # beyond float64 the value is infinite
            return self.spread_weights * (beta * beta)

    def dual_of(self, beta: Array) -> Array:
        return self.stiffness * beta if self.squared else self.subgradient(beta)

    def primal_of(self, s: Array) -> Array:
        if not self.squared:
            self._refuse("has a gradient that cannot be inverted")
        return s / self.stiffness

    def slope(self, s: Array) -> Array:
        if not self.squared:
            self._refuse("has a gradient that cannot be inverted")
        return np.broadcast_to(1 / self.stiffness, s.shape)

    def log_softness(self, beta: Array, gradient: Array) -> Array:
        return np.zeros_like(beta) - np.log(self.stiffness)

    def softest(self, beta: Array) -> Any:
        """Any coordinate, since all have one law without weights."""
        return slice(None) if self.weights is not None else [0]

    def _refuse(self, why: str) -> NoReturn:
        raise ValueError(f"{self}: a norm {why}; use L2(), which has the same minimisers")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Linf(Regularizer):
    """max |beta_i|: the norm whose margin sign descent maximises.

    As a penalty of training it is the largest of all entries of all parameters. Where several
    are the largest, the subgradient gives them equal shares.

    Examples
    --------
    >>> import penchant
    >>> penchant.regularizers.Linf()([3.0, -4.0])
    4.0
    >>> X, norm = [[1.0, 2.0], [-2.0, -1.0]], penchant.regularizers.Linf()
    >>> penchant.max_margin(X, [1, -1], norm).beta.round(4)
    array([0.3333, 0.3333])
    """

    degree = 1.0
    in_jax = True
    has_prox = True
    smooth = False

    @property
    def dual_norm(self) -> L1:
        """The sum of the absolute values."""
        return L1()

    def value(self, theta: Any) -> Any:
        return _largest([abs(leaf).max() for leaf in leaves(theta) if leaf.size])

    def subgradient(self, theta: Any) -> Any:
        size = self.value(theta)
        count = sum((abs(leaf) == size).sum() for leaf in leaves(theta))
        return mapped(lambda leaf: as_floats(_shares(leaf, size, count), leaf), theta)

    def prox(self, theta: Any, weight: Any) -> Any:
        level = _level(leaves(theta), weight)
        return mapped(lambda leaf: as_floats(space_of(leaf).clip(leaf, -level, level), leaf), theta)

    def prox_of(self, beta: Any, weight: Any) -> Any:
        return self.prox(beta, weight)

    def terms(self, beta: Array) -> Array:
        """Shares of the largest entry; they are not functions of single coordinates."""
        return abs(beta) * abs(self.dual_of(beta))

    def dual_of(self, beta: Array) -> Array:
        size = abs(beta).max()
        return _shares(beta, size, (abs(beta) == size).sum())

    def primal_of(self, s: Array) -> Array:
        self._refuse()

    def slope(self, s: Array) -> Array:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ValueError(
            "Linf(): the gradient of a norm cannot be inverted; use max_margin(), or interpolate()"
            " with Lp(p) for a large p"
        )


def _shares(beta: Any, size: Any, count: Any) -> Any:
    space = space_of(beta)
    return space.where(abs(beta) == size, space.sign(beta), 0.0) / count


def _level(arrays: list[Any], weight: Any) -> Any:
    """The level above which the entries together are `weight` in excess; 0 if they are not."""
    space = space_of(arrays[0])
    sizes = space.sort(abs(space.concatenate([leaf.reshape(-1) for leaf in arrays])))[::-1]
    levels = (space.cumsum(sizes) - weight) / space.arange(1, len(sizes) + 1)
    return space.maximum(levels.max(initial=0.0), 0.0)


def _largest(sizes: list[Any]) -> Any:
    if not sizes:
        return 0.0
    return functools.reduce(space_of(sizes[0]).maximum, sizes)


@door
def as_norm(regularizer: object) -> Any:
    """The norm itself, of which `dual_norm` is known; the sum of squares stands for its root.

    Parameters
    ----------
    regularizer
        L1(), L2(), Linf(), Nuclear() or Spectral().

    Returns
    -------
    Regularizer
        The norm.

    Examples
    --------
    >>> import penchant
    >>> penchant.regularizers.as_norm(penchant.L2())
    L2(squared=False)
    """
    return norm_of(regularizer)


def norm_of(regularizer: object) -> Any:
    """The same, for a caller that has a door of its own."""
    if isinstance(regularizer, L2):
        return L2(regularizer.weights, squared=False)
    if not hasattr(regularizer, "dual_norm"):
        raise Invalid(
            f"expected a norm, L1(), L2(), Linf(), Nuclear() or Spectral(), got {regularizer!r}"
        )
    return regularizer


def _or_one(size: Any) -> Any:
    return space_of(size).where(size > 0, size, 1.0)
