"""How far tangent kernels and gradients have turned: between two of them, and along a path."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, plain_array
from penchant.door import Invalid, door

LARGE = 10**9  # products in one kernel beyond which only a part of the samples is used
SAMPLES = 64


@door
def kernel_distance(K0: ArrayLike, K1: ArrayLike) -> float:
    """1 - cosine of the angle between two kernels as matrices: 0 if proportional, at most 2.

    Parameters
    ----------
    K0
        A kernel.
    K1
        A kernel of the same size.

    Returns
    -------
    float
        The distance.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> round(penchant.measures.kernel_distance(np.eye(2), np.ones((2, 2))), 4)
    0.2929
    """
    return _distance({"K0": K0, "K1": K1}, ndim=2)


@door
def gradient_distance(F0: ArrayLike, F1: ArrayLike) -> float:
    """1 - cosine of the angle between two arrays of gradients, over samples and parameters.

    That is the 'grad distance' of Woodworth et al. 2020, figure 6 (b). A kernel contains only the
    inner products of gradients: a rotation of all of them leaves the kernel distance at zero, but
    not this one.

    Parameters
    ----------
    F0
        grad f(w, x_n) at the start.
    F1
        grad f(w, x_n) at the end.

    Returns
    -------
    float
        The distance.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import penchant
    >>> penchant.measures.gradient_distance([[1.0, 0.0]], [[0.0, 2.0]])
    1.0
    """
    return _distance({"F0": F0, "F1": F1}, ndim=None)


def turn(start: Array, now: Array) -> Array:
    """Degrees between vectors along the last axis, NaN where one is zero; exact for tiny angles."""
    with np.errstate(invalid="ignore"):
        first, second = (_of_length_one(vectors) for vectors in (start, now))
    apart = np.linalg.norm(first - second, axis=-1)
    return np.degrees(2 * np.arctan2(apart, np.linalg.norm(first + second, axis=-1)))


def _of_length_one(vectors: Array) -> Array:
    """Scaled by their largest entry first, which may be huge or tiny."""
    vectors = vectors / np.abs(vectors).max(axis=-1, keepdims=True)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


@door
def kernel_distances(X: Array, log_weights: Array) -> Array:
    """Distances of X diag(weights) X^T from the first of them, one per row of `log_weights`.

    That is the tangent kernel of a separable model whose coordinates have squared slopes
    `weights`; a common factor does not matter, so logarithms may be of any size. For large data
    only the first samples are used, which is enough for a cosine.
    """
    size = float(np.abs(X).max())
    if size == 0:
        return np.zeros(len(log_weights))  # a kernel that is zero throughout has not turned
    if X.shape[0] ** 2 * X.shape[1] > LARGE:
        X = X[:SAMPLES]
    X = X / size
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    distances = np.empty(len(weights))
    unit = _unit("K", (X * weights[0]) @ X.T, ndim=2)
    block = max(1, 10**6 // (len(X) * max(X.shape)))  # kernels held at a time
    scaled = np.empty((block, *X.shape))  # one buffer: fresh pages cost more than the product
    for at in range(0, len(weights), block):
        part = weights[at : at + block]
        kernels = np.multiply(X, part[:, None, :], out=scaled[: len(part)]) @ X.T
        kernels /= np.linalg.norm(kernels, axis=(1, 2), keepdims=True)
        distances[at : at + block] = ((kernels - unit) ** 2).sum(axis=(1, 2)) / 2
    distances[0] = 0.0  # its distance from itself is zero without rounding
    return distances


def _distance(pair: dict[str, ArrayLike], ndim: int | None) -> float:
    first, second = (_unit(name, array, ndim) for name, array in pair.items())
    if first.shape != second.shape:
        names = " and ".join(pair)
        raise Invalid(f"{names} must have one shape, got {first.shape} and {second.shape}")
    # 1 - cos = |a - b|^2 / 2 for unit vectors: exact at zero and never negative
    return min(float(np.sum((first - second) ** 2)) / 2, 2.0)


def _unit(name: str, given: ArrayLike, ndim: int | None) -> Array:
    """`given` at Euclidean norm one; scaled by a power of two first, which is exact."""
    raw = plain_array(name, given)
    array = finite_array(name, raw, ndim=raw.ndim if ndim is None else ndim)
    exponent = int(np.frexp(np.abs(array).max())[1])
    array = np.ldexp(array, -exponent)
    if not array.any():
        raise Invalid(f"{name} must not be zero, its direction is undefined")
    return array / np.linalg.norm(array)
