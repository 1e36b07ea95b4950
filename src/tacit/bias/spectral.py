"""Regularizers of a matrix that see only its singular values: nuclear, Frobenius, Schatten-Q."""

from __future__ import annotations

import abc
import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array
from tacit.bias.norms import L1, L2
from tacit.bias.q import Q
from tacit.bias.regularizer import Regularizer
from tacit.calls import call


class Spectral(abc.ABC):
    """A convex function of a matrix: a vector regularizer, `law`, applied to its spectrum."""

    __repr__ = call

    @property
    @abc.abstractmethod
    def law(self) -> Regularizer:
        """The regularizer of the vector of singular values."""

    @property
    def degree(self) -> float | None:
        """R(c M) = c^degree R'(M) with R' = R.in_units(log c)."""
        return self.law.degree

    def in_units(self, log_size: float) -> Spectral:
        """The regularizer of the matrix over e^log_size with the same minimisers."""
        return self

    def __call__(self, matrix: ArrayLike) -> float:
        """The value at `matrix`."""
        return self.law(np.linalg.svd(self.array("matrix", matrix), compute_uv=False))

    def gradient(self, matrix: ArrayLike) -> Array:
        """The gradient at `matrix`; where there is a kink, the subgradient of least size.

        Singular values within rounding of zero count as zero.
        """
        U, sizes, Vt = np.linalg.svd(self.array("matrix", matrix), full_matrices=False)
        sizes = np.where(sizes > rounding(U, Vt) * sizes[0], sizes, 0.0)
        return (U * self.law.dual_of(sizes)) @ Vt

    def inverse_gradient(self, dual: ArrayLike) -> Array:
        """The matrix whose gradient is `dual`."""
        U, sizes, Vt = np.linalg.svd(self.array("dual", dual), full_matrices=False)
        return (U * self.law.primal_of(sizes)) @ Vt

    def array(self, name: str, value: ArrayLike) -> Array:
        return finite_array(str(self), name, value, ndim=2)


def shape_of(value: ArrayLike) -> tuple[int, ...]:
    """The shape of what may become an array; empty where it cannot become one."""
    try:
        return np.shape(value)
    except (ValueError, TypeError, RuntimeError):
        return ()


def rounding(U: Array, Vt: Array) -> float:
    """The relative size below which a computed singular value may be zero."""
    return float(max(len(U), Vt.shape[1]) * np.finfo(float).eps)


@dataclasses.dataclass(frozen=True, repr=False)
class Nuclear(Spectral):
    """The sum of the singular values: the rich limit."""

    def __str__(self) -> str:
        return "Nuclear()"

    @property
    def law(self) -> Regularizer:
        return L1()


@dataclasses.dataclass(frozen=True, repr=False)
class Frobenius(Spectral):
    """Half the sum of the squared entries: the kernel limit."""

    def __str__(self) -> str:
        return "Frobenius()"

    @property
    def law(self) -> Regularizer:
        return L2()


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Schatten(Spectral):
    """Q of the singular values, W Theorem 4."""

    q: Q

    def __init__(self, q: Q) -> None:
        if not isinstance(q, Q):
            raise ValueError(f"Schatten: expected a Q such as Q(2, alpha=0.1), got {q!r}")
        if q.shape is not None:
            raise ValueError(
                f"Schatten: singular values have no order of their own, so Q must have no shape,"
                f" got {q}; leave shape out"
            )
        object.__setattr__(self, "q", q)

    def __str__(self) -> str:
        return f"Schatten({self.q})"

    @property
    def law(self) -> Regularizer:
        return self.q

    def in_units(self, log_size: float) -> Schatten:
        return Schatten(self.q.in_units(log_size))
