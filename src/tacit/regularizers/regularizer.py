"""The interface of what training minimises: a sum over coordinates with a monotone gradient."""

from __future__ import annotations

import abc

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array
from tacit.calls import call


class Regularizer(abc.ABC):
    """A convex function of a predictor beta that is a sum over its coordinates.

    The minimiser of a regularizer under X beta = y has gradient(beta) = X^T dual, so a solver
    needs the inverse of the gradient map, b(s), and its slope b'(s), both coordinatewise.
    """

    #: number of coordinates the regularizer is tied to (by weights or a shape), None if any
    dimension: int | None = None
    #: R(c beta) = c^degree R'(beta) with R' = R.in_units(log c); None where there is no such R'
    degree: float | None = None

    __repr__ = call

    def __call__(self, beta: ArrayLike) -> float:
        """The value at `beta`."""
        return float(np.sum(self.terms(self.vector("beta", beta))))

    def gradient(self, beta: ArrayLike) -> Array:
        """The gradient at `beta`; where there is a kink, the subgradient of least size."""
        return self.dual_of(self.vector("beta", beta))

    def inverse_gradient(self, s: ArrayLike) -> Array:
        """b(s): the beta whose gradient is `s`."""
        return self.primal_of(self.vector("s", s))

    def vector(self, name: str, value: ArrayLike) -> Array:
        """`value` as a finite vector of the right length."""
        array = finite_array(str(self), name, value, ndim=1)
        if self.dimension not in (None, len(array)):
            raise ValueError(f"{self}: {name} must have {self.dimension} entries, got {len(array)}")
        return array

    def in_units(self, log_size: float) -> Regularizer:
        """The regularizer of beta / e^log_size with the same minimisers."""
        return self

    @abc.abstractmethod
    def terms(self, beta: Array) -> Array:
        """The summands, one per coordinate."""

    @abc.abstractmethod
    def dual_of(self, beta: Array) -> Array:
        """Coordinatewise gradient."""

    @abc.abstractmethod
    def primal_of(self, s: Array) -> Array:
        """Coordinatewise inverse of the gradient."""

    @abc.abstractmethod
    def slope(self, s: Array) -> Array:
        """Coordinatewise derivative of `primal_of`."""
