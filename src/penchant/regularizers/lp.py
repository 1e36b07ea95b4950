"""The lp norms between l1 and l2 and beyond: sum |beta_i|^p."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from penchant.arguments import Array, positive
from penchant.door import door
from penchant.regularizers.arrays import space_of
from penchant.regularizers.regularizer import Regularizer, of_power, soft_threshold, through_dual


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Lp(Regularizer):
    """(1/p) sum |beta_i|^p; convex for p >= 1.

    Parameters
    ----------
    p
        The power, above 0. For p < 1 this is a quasi-norm: its value can be computed, but no
        convex solver accepts it.

    Examples
    --------
    >>> import penchant
    >>> penchant.regularizers.Lp(2)([3.0, 4.0])
    12.5
    """

    p: float
    in_jax = True

    @property
    def degree(self) -> float:  # type: ignore[override]
        return self.p

    @door
    def __init__(self, p: float) -> None:
        object.__setattr__(self, "p", positive("p", p))

    def __str__(self) -> str:
        return f"Lp({self.p:g})"

    @property
    def smooth(self) -> bool:
        return self.p > 1

    @property
    def has_prox(self) -> bool:
        return self.p >= 1

    @property
    def curvature(self) -> float:
        return 1.0 if self.p == 2 else 0.0

    def terms(self, beta: Array) -> Array:
        with np.errstate(over="ignore"):  # beyond float64 the value is infinite
            return abs(beta) ** self.p / self.p

    def dual_of(self, beta: Array) -> Array:
        space = space_of(beta)
        if self.p >= 1:
            with np.errstate(over="ignore"):
                return space.sign(beta) * abs(beta) ** (self.p - 1)
        with np.errstate(divide="ignore"):  # infinite slope at zero, both signs: take 0
            slopes = abs(beta) ** (self.p - 1)
        return space.where(beta == 0, 0.0, space.copysign(slopes, beta))

    def prox_of(self, beta: Any, weight: Any) -> Any:
        if self.p == 1:
            return soft_threshold(beta, weight)
        if self.p >= 2:
            return of_power(self.p, beta, weight)
        return through_dual(self, beta, weight)

    def primal_of(self, s: Array) -> Array:
        self.must_be_smooth()
        with np.errstate(over="ignore"):
            return space_of(s).sign(s) * abs(s) ** (1 / (self.p - 1))

    def slope(self, s: Array) -> Array:
        self.must_be_smooth()
        exponent = 1 / (self.p - 1)
        with np.errstate(divide="ignore", over="ignore"):
            return exponent * abs(s) ** (exponent - 1)

    def softest(self, beta: Array) -> Any:
        """The largest coordinate, since b' grows with |beta| for p below 2."""
        return slice(None) if self.p > 2 else [int(np.abs(beta).argmax())]

    def must_be_smooth(self) -> None:
        if self.p <= 1:
            raise ValueError(
                f"Lp: the gradient of |b|^p can be inverted only for p > 1, got p={self.p:g};"
                " use L1() for p = 1"
            )
