"""Regularizers of the singular values alone: nuclear, spectral, Frobenius, Schatten-Q."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, shape_or_none
from penchant.door import door, door_as
from penchant.records import assign
from penchant.regularizers.arrays import as_floats, leaves, length, mapped, space_of
from penchant.regularizers.norms import L1, L2, Linf
from penchant.regularizers.penalty import Term
from penchant.regularizers.q import Q
from penchant.regularizers.regularizer import Regularizer


class SpectralFunction(Term):
    """A convex function of a matrix: a vector regularizer, `law`, applied to its spectrum.

    As a penalty it is the sum over all matrices among the parameters; a vector is one column.

    Examples
    --------
    >>> import penchant
    >>> class SchattenP(penchant.regularizers.SpectralFunction):
    ...     law = penchant.regularizers.Lp(3.0)
    >>> norm = penchant.regularizers.Nuclear()
    >>> isinstance(norm, penchant.regularizers.SpectralFunction), norm.law
    (True, L1())
    >>> SchattenP()([[3.0, 0.0], [0.0, 4.0]]), SchattenP().law([3.0, 4.0])
    (30.333333333333332, 30.333333333333332)
    """

    @property
    @abc.abstractmethod
    def law(self) -> Regularizer:
        """The regularizer of the vector of singular values."""

    @property
    def degree(self) -> float | None:
        """R(c M) = c^degree R'(M) with R' = R.in_units(log c)."""
        return self.law.degree

    def in_units(self, log_size: float) -> SpectralFunction:
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
        rounding = float(max(len(U), Vt.shape[1]) * np.finfo(float).eps)
        sizes = np.where(sizes > rounding * sizes[0], sizes, 0.0)
        return (U * self.law.dual_of(sizes)) @ Vt

    def inverse_gradient(self, dual: ArrayLike) -> Array:
        """The matrix whose gradient is `dual`."""
        U, sizes, Vt = np.linalg.svd(self.array("dual", dual), full_matrices=False)
        return (U * self.law.primal_of(sizes)) @ Vt

    @property
    def has_prox(self) -> bool:
        return self.law.has_prox

    @property
    def smooth(self) -> bool:
        return self.law.smooth

    def value(self, theta: Any) -> Any:
        """The sum over the leaves."""
        return sum(self._of_one(leaf) for leaf in leaves(theta) if leaf.size)

    def subgradient(self, theta: Any) -> Any:
        """Singular values within rounding of zero, in the precision of the leaf, count as zero."""
        return mapped(lambda leaf: self._changed(leaf, self.law.dual_of, rounded=True), theta)

    def prox(self, theta: Any, weight: Any) -> Any:
        if not self.has_prox:
            return super().prox(theta, weight)
        return mapped(
            lambda leaf: self._changed(leaf, lambda sizes: self.law.prox_of(sizes, weight)), theta
        )

    def as_matrix(self, leaf: Any) -> Any:
        """A leaf with two dimensions as it is, one with fewer as one column."""
        if leaf.ndim > 2:
            raise ValueError(
                f"{self}: the parameters must be matrices or vectors, got shape {leaf.shape};"
                " reshape the tensor into a matrix, or give a Custom(...)"
            )
        return leaf if leaf.ndim == 2 else leaf.reshape(-1, 1)

    def _of_one(self, leaf: Any) -> Any:
        matrix = self.as_matrix(leaf)
        if matrix.shape[1] == 1:
            sizes = length(matrix).reshape(1)
        else:
            sizes = space_of(leaf).linalg.svd(matrix, compute_uv=False)
        return as_floats(self.law.terms(sizes), leaf).sum()

    def _changed(self, leaf: Any, function: Callable[[Any], Any], rounded: bool = False) -> Any:
        """The leaf with `function` of its singular values in their place."""
        if not leaf.size:
            return leaf
        matrix, space = self.as_matrix(leaf), space_of(leaf)
        U, sizes, Vt = (
            _column(matrix)
            if matrix.shape[1] == 1
            else space.linalg.svd(matrix, full_matrices=False)
        )
        if rounded:
            level = max(matrix.shape) * float(space.finfo(sizes.dtype).eps)
            sizes = space.where(sizes > level * sizes[0], sizes, 0.0)
        return as_floats((U * function(sizes)) @ Vt, leaf).reshape(leaf.shape)

    @door_as(str)
    def array(self, name: str, value: ArrayLike) -> Array:
        return finite_array(name, value, ndim=2)


def _column(matrix: Any) -> tuple[Any, Any, Any]:
    """The singular value decomposition of one column, zero vectors for a column of zeros."""
    space, size = space_of(matrix), length(matrix)
    unit = matrix / space.where(size > 0, size, 1.0)
    return unit, size.reshape(1), space.ones((1, 1), matrix.dtype)


def shape_of(value: ArrayLike) -> tuple[int, ...]:
    """The shape of what may become an array; empty where it cannot become one."""
    try:
        return np.shape(value)
    except (ValueError, TypeError, RuntimeError):
        return ()


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class MatrixNorm(SpectralFunction):
    """A norm of the singular values; with `shape` it reads flat parameters as a matrix."""

    shape: tuple[int, int] | None = None

    @door
    def __post_init__(self) -> None:
        assign(self, shape=shape_or_none(self.shape))

    @property
    def dimension(self) -> int | None:
        """The number of entries of flat parameters, None without a shape."""
        return None if self.shape is None else math.prod(self.shape)

    @property
    @abc.abstractmethod
    def dual_norm(self) -> MatrixNorm:
        """max <matrix, W> over all W with norm one."""

    @door_as(str)
    def array(self, name: str, value: ArrayLike) -> Array:
        if self.shape is None or len(shape_of(value)) != 1:
            return super().array(name, value)
        return np.asarray(self.as_matrix(finite_array(name, value, ndim=1)))

    def as_matrix(self, leaf: Any) -> Any:
        if self.shape is None:
            return super().as_matrix(leaf)
        if leaf.size != self.dimension:
            raise ValueError(
                f"{self}: the matrix has {self.dimension} entries but there are {leaf.size} "
                "parameters; use Blocks for several tensors"
            )
        return leaf.reshape(self.shape)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Nuclear(MatrixNorm):
    """The sum of the singular values: the rich limit.

    As a penalty it is the sum over the matrices among the parameters; a vector counts as one
    column.

    Parameters
    ----------
    shape
        Reads flat parameters as a matrix of (rows, columns), in C order.

    Examples
    --------
    >>> import penchant
    >>> penchant.regularizers.Nuclear()([[3.0, 0.0], [0.0, 4.0]])
    7.0
    """

    @property
    def law(self) -> Regularizer:
        return L1()

    @property
    def dual_norm(self) -> Spectral:
        """The largest singular value."""
        return Spectral(self.shape)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Spectral(MatrixNorm):
    """The largest singular value: the norm whose margin Muon maximises.

    As a penalty it is the sum over the matrices among the parameters; a vector counts as one
    column.

    Parameters
    ----------
    shape
        Reads flat parameters as a matrix of (rows, columns), in C order.

    Examples
    --------
    >>> import penchant
    >>> penchant.regularizers.Spectral()([[3.0, 0.0], [0.0, 4.0]])
    4.0
    >>> penchant.regularizers.Spectral(shape=(2, 2)).dual_norm([3.0, 0.0, 0.0, 4.0])
    7.0
    """

    @property
    def law(self) -> Regularizer:
        return Linf()

    @property
    def dual_norm(self) -> Nuclear:
        """The sum of the singular values."""
        return Nuclear(self.shape)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Frobenius(SpectralFunction):
    """The sum of the squared entries: the kernel limit.

    Examples
    --------
    >>> import penchant
    >>> penchant.regularizers.Frobenius()([[3.0, 0.0], [0.0, 4.0]])
    25.0
    """

    curvature = 2.0

    @property
    def law(self) -> Regularizer:
        return L2()

    def value(self, theta: Any) -> Any:
        return self.law.value(theta)

    def subgradient(self, theta: Any) -> Any:
        return self.law.subgradient(theta)

    def prox(self, theta: Any, weight: Any) -> Any:
        return self.law.prox(theta, weight)


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Schatten(SpectralFunction):
    """Q of the singular values (Woodworth et al. 2020, theorem 4).

    Parameters
    ----------
    q
        The regularizer Q of a vector, without a shape.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> schatten = penchant.regularizers.Schatten(penchant.Q(alpha=1.0))
    >>> round(schatten(np.diag([1.0, -2.0])), 4), round(penchant.Q(alpha=1.0)([1.0, -2.0]), 4)
    (1.1795, 1.1795)
    """

    q: Q

    def __init__(self, q: Q) -> None:
        if not isinstance(q, Q):
            raise ValueError(f"Schatten: expected a Q such as Q(2, alpha=0.1), got {q!r}")
        if q.shape is not None:
            raise ValueError(
                f"Schatten: singular values have no order of their own, so Q must have no shape,"
                f" got {q}; leave shape out"
            )
        assign(self, q=q)

    def __str__(self) -> str:
        return f"Schatten({self.q})"

    @property
    def law(self) -> Regularizer:
        return self.q

    def in_units(self, log_size: float) -> Schatten:
        return Schatten(self.q.in_units(log_size))
