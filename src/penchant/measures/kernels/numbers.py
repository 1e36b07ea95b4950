"""Numbers read off a kernel matrix, in NumPy alone: alignment with labels, effective rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, plain_array
from penchant.door import Invalid, door

SYMMETRIC = 1e-4  # largest relative asymmetry and negative eigenvalue that count as rounding
EMPTY = 1e-13  # a smaller share that remains after centring is rounding


@door
def kernel_alignment(K: ArrayLike, y: ArrayLike, *, centred: bool = False) -> float:
    """The cosine between the matrices K and y y^T, the kernel and that of the labels.

    Parameters
    ----------
    K
        A kernel.
    y
        One number per sample, or a row of numbers (such as one-hot classes).
    centred
        True subtracts the mean over the samples from the features and from the labels first: then
        a constant offset of the kernel and unequal class sizes have no effect.

    Returns
    -------
    float
        The cosine.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> round(penchant.measures.kernel_alignment(np.eye(2), [1.0, -1.0]), 4)
    0.7071
    """
    kernel, labels = _kernel(K), _labels(y)
    if len(labels) != len(kernel):
        raise Invalid(f"K has {len(kernel)} samples but y has {len(labels)}; they must match")
    if centred:
        kernel, labels = without_mean(kernel), _labels_without_mean(labels)
    if not labels.any():
        raise Invalid("y must not be zero, because the kernel of such labels has no direction")
    # <K, Y Y^T> = <Y, K Y> and |Y Y^T| = |Y^T Y|, of which the smaller matrix is computed
    along = float(np.sum(labels * (kernel @ labels)))
    short = labels if labels.shape[0] < labels.shape[1] else labels.T
    return along / float(np.linalg.norm(kernel) * np.linalg.norm(short @ short.T))


@door
def effective_rank(K: ArrayLike) -> float:
    """exp of the entropy of the eigenvalues as shares of their sum, from 1 to the size of K.

    Parameters
    ----------
    K
        A kernel, positive semidefinite.

    Returns
    -------
    float
        The rank.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> round(penchant.measures.effective_rank(np.eye(3)), 6)
    3.0
    """
    values = np.linalg.eigvalsh(_kernel(K))
    if values[0] < -SYMMETRIC * values[-1]:
        raise Invalid(
            f"K must be positive semidefinite, got the eigenvalue {values[0]:.3g} "
            f"beside the largest {values[-1]:.3g} (of K scaled to entries of at most 1)"
        )
    shares = values[values > 0] / values[values > 0].sum()
    return float(np.exp(-np.sum(shares * np.log(shares))))


@door
def participation_ratio(K: ArrayLike) -> float:
    """trace(K)^2 / |K|^2, from 1 to the size of K: the rank if all eigenvalues > 0 are equal.

    It gives large eigenvalues more weight than `effective_rank` does and is never above it.

    Parameters
    ----------
    K
        A kernel, positive semidefinite.

    Returns
    -------
    float
        The ratio.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> round(penchant.measures.participation_ratio(np.diag([1.0, 1.0, 0.0])), 6)
    2.0
    """
    kernel = _kernel(K)
    return float(np.trace(kernel) ** 2 / np.sum(kernel**2))


def _kernel(K: ArrayLike) -> Array:
    """K symmetrized and scaled to entries of at most one; no measure depends on the scale."""
    kernel = finite_array("K", K, ndim=2)
    if kernel.shape[0] != kernel.shape[1]:
        raise Invalid(f"K must be square, got shape {kernel.shape}")
    size = np.abs(kernel).max()
    if size == 0:
        raise Invalid("K must not be zero")
    kernel = kernel / size
    if np.abs(kernel - kernel.T).max() > SYMMETRIC:
        raise Invalid("K must be symmetric, the kernel of one set of samples")
    return (kernel + kernel.T) / 2


def _labels(y: ArrayLike) -> Array:
    raw = plain_array("y", y)
    labels = finite_array("y", raw, ndim=1 if raw.ndim < 2 else 2)
    return labels.reshape(len(labels), -1) / (np.abs(labels).max() or 1.0)


def _labels_without_mean(labels: Array) -> Array:
    left = labels - labels.mean(axis=0)
    if np.abs(left).max() < EMPTY:
        raise Invalid("y must not be constant, because centring makes it zero")
    return left


def without_mean(kernel: Array) -> Array:
    """H K H with H = I - 1 1^T / N, the kernel of the features without their mean."""
    rows = kernel - kernel.mean(axis=0)
    left = rows - rows.mean(axis=1, keepdims=True)
    if np.abs(left).max() <= EMPTY * np.abs(kernel).max():
        raise Invalid("K must not be constant, because centring makes it zero")
    return left
