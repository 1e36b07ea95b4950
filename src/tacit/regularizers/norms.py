"""The limits and the neighbours of Q: l1, weighted l2, and lp."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array, positive
from tacit.regularizers.regularizer import Regularizer


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class L1(Regularizer):
    """sum |beta_i|: the rich limit."""

    degree = 1.0

    def __str__(self) -> str:
        return "L1()"

    def terms(self, beta: Array) -> Array:
        return np.abs(beta)

    def dual_of(self, beta: Array) -> Array:
        return np.sign(beta)

    def primal_of(self, s: Array) -> Array:
        """Zero inside the box; on and beyond its faces every size is allowed."""
        return np.where(np.abs(s) < 1, 0.0, np.copysign(np.inf, s))

    def slope(self, s: Array) -> Array:
        return np.where(np.abs(s) < 1, 0.0, np.inf)


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class L2(Regularizer):
    """(1/2) sum weights_i beta_i^2: the kernel limit, with weights 1/w0^(2D-2)."""

    weights: Array | None
    degree = 2.0

    def __init__(self, weights: ArrayLike | None = None) -> None:
        if weights is not None:
            weights = finite_array("L2", "weights", weights, ndim=1)
            if (weights <= 0).any():
                where = int(np.argmin(weights))
                raise ValueError(f"L2: weights must be > 0, got {weights[where]} at index {where}")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "dimension", None if weights is None else len(weights))

    def __str__(self) -> str:
        return "L2()" if self.weights is None else f"L2(weights of {len(self.weights)})"

    @property
    def stiffness(self) -> Array:
        return np.ones(1) if self.weights is None else self.weights

    def terms(self, beta: Array) -> Array:
        with np.errstate(over="ignore"):  # beyond float64 the value is infinite
            return 0.5 * self.stiffness * beta**2

    def dual_of(self, beta: Array) -> Array:
        return self.stiffness * beta

    def primal_of(self, s: Array) -> Array:
        return s / self.stiffness

    def slope(self, s: Array) -> Array:
        return np.broadcast_to(1 / self.stiffness, s.shape)


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Lp(Regularizer):
    """(1/p) sum |beta_i|^p; convex for p > 1, a quasi-norm to be read off only for p < 1."""

    p: float

    @property
    def degree(self) -> float:  # type: ignore[override]
        return self.p

    def __init__(self, p: float) -> None:
        object.__setattr__(self, "p", positive("Lp", "p", p))

    def __str__(self) -> str:
        return f"Lp({self.p:g})"

    def terms(self, beta: Array) -> Array:
        with np.errstate(over="ignore"):  # beyond float64 the value is infinite
            return np.abs(beta) ** self.p / self.p

    def dual_of(self, beta: Array) -> Array:
        if self.p >= 1:
            with np.errstate(over="ignore"):
                return np.sign(beta) * np.abs(beta) ** (self.p - 1)
        with np.errstate(divide="ignore"):  # infinite slope at zero, both signs: take 0
            slopes = np.abs(beta) ** (self.p - 1)
        return np.where(beta == 0, 0.0, np.copysign(slopes, beta))

    def primal_of(self, s: Array) -> Array:
        self.must_be_smooth()
        with np.errstate(over="ignore"):
            return np.sign(s) * np.abs(s) ** (1 / (self.p - 1))

    def slope(self, s: Array) -> Array:
        self.must_be_smooth()
        exponent = 1 / (self.p - 1)
        with np.errstate(divide="ignore", over="ignore"):
            return exponent * np.abs(s) ** (exponent - 1)

    def must_be_smooth(self) -> None:
        if self.p <= 1:
            raise ValueError(
                f"Lp: the gradient of |b|^p can be inverted only for p > 1, got p={self.p:g};"
                " use L1() for p = 1"
            )
