"""Rows of sparse data, in the arithmetic that the solvers use of an array.

How it works. A solver needs samples X, N rows and d columns, only through X beta, X^T nu, the N x N
Gram matrix X diag(h) X^T, and a few columns or rows. `SparseRows` gives these without a dense
array of the shape of X, under the names that an array has for them: `@`, `*` by one factor a row or
a column, `abs`, `ldexp`, and indexing, in which columns come back dense (few are asked for) and
rows as `SparseRows`. So sparse data pass through the same solvers and the same certificates.

Where there are at most `WIDE` columns a row, X is no larger than a few of the Gram matrices that
every solver makes, and becomes an array at once.

Pitfall. A basis of the rows in which columns are unit vectors is dense. Rows that are close to
dependent need one, and so do scales of tens of decades where columns tie, as those of counts do. Up
to `DENSE` entries X then becomes an array; larger data end in a sentence.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, classification_data, finite_array, labels, regression_data
from penchant.door import Invalid

WIDE = 4  # columns for each row up to which a dense copy is no larger than the Gram matrices
DENSE = 20_000_000  # entries that may be made dense, 160 MB


class SparseRows:
    """The rows of a sparse matrix without empty rows, in CSR form."""

    ndim = 2

    def __init__(self, csr: Any) -> None:
        self.csr = csr
        self.shape: tuple[int, int] = csr.shape

    @property
    def size(self) -> int:
        """The number of entries that are kept."""
        return int(self.csr.nnz)

    def __len__(self) -> int:
        return self.shape[0]

    @functools.cached_property
    def turned(self) -> Any:
        """The transpose, in CSR form too."""
        return self.csr.T.tocsr()

    @functools.cached_property
    def column_lengths(self) -> Array:
        return lengths(self.turned)

    @functools.cached_property
    def row_lengths(self) -> Array:
        return lengths(self.csr)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            return NotImplemented
        if ufunc is np.matmul:
            left, right = inputs
            return self @ right if left is self else (self.turned @ left.T).T
        if ufunc is np.absolute:
            return self.with_data(np.abs(self.csr.data))
        if ufunc is np.multiply and inputs[1] is self:
            return self * inputs[0]
        if ufunc is np.ldexp:
            powers = np.repeat(inputs[1].ravel(), np.diff(self.csr.indptr))
            return self.with_data(np.ldexp(self.csr.data, powers))
        return NotImplemented

    def __matmul__(self, vector: Array) -> Array:
        return np.asarray(self.csr @ vector)

    def __mul__(self, factors: Array) -> SparseRows:
        """One factor for each row, as a column, or for each column, as a vector."""
        if factors.ndim == 2:
            each = np.repeat(factors.ravel(), np.diff(self.csr.indptr))
        else:
            each = factors[self.csr.indices]
        return self.with_data(self.csr.data * each)

    def __truediv__(self, divisors: Array) -> SparseRows:
        return self * (1 / divisors)

    def with_data(self, data: Array) -> SparseRows:
        """The same places with other entries."""
        parts = (data, self.csr.indices, self.csr.indptr)
        return SparseRows(type(self.csr)(parts, shape=self.shape))

    def __getitem__(self, index: Any) -> Any:
        """Rows as SparseRows, one row or any columns as a dense array."""
        if not isinstance(index, tuple):
            rows = self.csr[index]
            return rows.toarray() if rows.ndim == 1 else SparseRows(rows)
        rows, columns = (i.ravel() if isinstance(i, np.ndarray) else i for i in index)
        if len(self) * np.size(columns) > max(DENSE, 2 * WIDE * len(self) ** 2):
            text = f"{np.size(columns)} columns of the sparse X would have to be dense"
            raise Invalid(f"{text}, which is too many; give fewer rows, or a larger scale")
        return self.turned[columns].toarray().T[rows]

    @property
    def dense(self) -> Array | None:
        """The rows as an array; None where that is too large."""
        return self.csr.toarray() if len(self) * self.shape[1] <= DENSE else None

    def max(self, axis: int) -> Array:
        """The largest entry of each row (axis 1) or column (axis 0)."""
        return np.asarray(self.csr.max(axis=axis).toarray()).ravel()

    def min(self, axis: int) -> Array:
        """The least entry of each row (axis 1) or column (axis 0)."""
        return np.asarray(self.csr.min(axis=axis).toarray()).ravel()

    def any(self, axis: int) -> Any:
        return np.abs(self).max(axis=axis) > 0

    def sum(self, axis: int) -> Array:
        return np.asarray(self.csr.sum(axis=axis)).ravel()

    def gram(self, weights: Array | None = None) -> Array:
        """X diag(weights) X^T, an array."""
        weighted = self if weights is None else self * weights
        return np.asarray((weighted.csr @ self.turned).toarray())

    def heaviest(self, log_weight: Array, count: int) -> Any:
        """The places of the columns of largest weight times squared length, none of them empty."""
        with np.errstate(divide="ignore"):
            heavy = log_weight + 2 * np.log(self.column_lengths)
        count = min(count, int((heavy > -np.inf).sum()))
        return np.sort(np.argpartition(-heavy, count - 1)[:count])


def lengths(csr: Any) -> Array:
    """The Euclidean length of each row."""
    return np.sqrt(np.asarray(csr.multiply(csr).sum(axis=1)).ravel())


def gram(X: Any) -> Array:
    """X X^T of rows of either kind."""
    return X.gram() if isinstance(X, SparseRows) else X @ X.T


def row_lengths(X: Any) -> Array:
    """The Euclidean lengths of rows of either kind."""
    return X.row_lengths if isinstance(X, SparseRows) else np.linalg.norm(X, axis=1)


def is_sparse(X: object) -> bool:
    return type(X).__module__.startswith("scipy.sparse")


def regression_rows(X: Any, y: ArrayLike) -> tuple[Any, Array]:
    """Checked samples and targets: `X` becomes an array, or SparseRows where it is sparse."""
    if not is_sparse(X):
        return regression_data(X, y)
    y = finite_array("y", y, ndim=1)
    rows = rows_of(X)
    if len(rows) != len(y):
        raise Invalid(f"X has {len(rows)} rows but y has {len(y)} entries; they must match")
    return rows, y


def classification_rows(X: Any, y: ArrayLike) -> tuple[Any, Array]:
    """The same with labels of -1 and +1."""
    if not is_sparse(X):
        return classification_data(X, y)
    X, y = regression_rows(X, y)
    return X, labels(y)


def rows_of(X: Any) -> Any:
    """The checked rows of a sparse matrix: SparseRows, or an array where that is no larger."""
    import scipy.sparse

    if X.ndim != 2:
        raise Invalid(f"X must have 2 dimension(s), got shape {X.shape}")
    if 0 in X.shape:
        raise Invalid(f"X must not be empty, got shape {X.shape}")
    if X.dtype.kind not in "fiub":
        kind = "complex numbers" if X.dtype.kind == "c" else str(X.dtype)
        raise Invalid(f"X must hold real numbers, got {kind}")
    csr = scipy.sparse.csr_array(X).astype(np.float64)
    csr.sum_duplicates()
    if not np.isfinite(csr.data).all():
        row, column = (int(i[~np.isfinite(csr.data)][0]) for i in csr.tocoo().coords)
        raise Invalid(f"X must be finite, got {csr[row, column]} at index ({row}, {column})")
    csr.eliminate_zeros()
    empty = np.flatnonzero(np.diff(csr.indptr) == 0)
    if empty.size:
        raise Invalid(
            f"row {empty[0]} of the sparse X is empty, so no predictor changes its output;"
            f" drop it{f' and the {empty.size - 1} other empty rows' if empty.size > 1 else ''}"
        )
    samples, dimension = csr.shape
    return csr.toarray() if dimension <= WIDE * samples else SparseRows(csr)
