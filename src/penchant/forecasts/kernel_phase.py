"""The test error of regression with a kernel, before it is done.

How it works. Let the kernel have eigenvalues l_i over the inputs, and the target the share v_i^2 in
the i-th eigenfunction. With n samples, ridge d and noise s^2 the regression learns the share

    L_i = l_i / (l_i + k)    of mode i, where k solves    sum_i L_i + d / k = n,

and its error on new inputs is E (sum_i (1 - L_i)^2 v_i^2 + s^2) - s^2 with the inflation
E = n / (n - sum_i L_i^2)
(Bordelon et al. 2020; Canatar et al. 2021; Simon et al. 2023). Eigenvalues and shares are those of
the kernel matrix of a pool of inputs, over its size.

Without a pool the training data themselves do: y^T (K + d)^-2 y n / tr^2 (K + d)^-1 is the error of
generalised cross-validation, which estimates the same number, with the noise in it (Jacot et al.
2020). It needs one draw of data, and is itself random.

Pitfalls. Modes that the pool cannot resolve count as never learned. A pool that is hardly larger
than n has fewer small modes than the population, which makes k too small; the pool must have twice
the samples at least.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, integer, real
from penchant.door import Invalid, door
from penchant.records import Record

WHO = "kernel_error"
LARGER = 2  # times the samples must a pool have, at least


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class KernelError(Record):
    """A predicted test error, with what it is made of.

    Attributes
    ----------
    error
        The mean squared error on new inputs, without the noise of their labels; from training data
        alone with that noise.
    samples
        The number of samples.
    effective_ridge
        k: modes with larger eigenvalues are learned.
    learned
        The sum of the learned shares, at most the number of samples.
    inflation
        E, by which the variance of few samples multiplies the error; nan from training data alone.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> kernel = penchant.measures.InfiniteKernel("relu", widths=(1,))
    >>> predicted = penchant.forecasts.kernel_error(kernel, X, X[:, 0], samples=20)
    >>> predicted.samples, bool(predicted.error < 1)
    (20, True)
    """

    error: float
    samples: int
    effective_ridge: float
    learned: float
    inflation: float

    @property
    def sentence(self) -> str:
        return (
            f"error {self.error:.3g} with {self.samples} samples, which learn "
            f"{self.learned:.3g} modes"
        )


@door
def kernel_error(
    kernel: Any,
    X: ArrayLike,
    y: ArrayLike,
    samples: int | None = None,
    *,
    ridge: float = 0.0,
    noise: float = 0.0,
) -> KernelError:
    """The test error of regression with this kernel, before any is done.

    Parameters
    ----------
    kernel
        A function of two arrays of rows, such as `penchant.measures.InfiniteKernel`.
    X
        A pool of inputs; with samples=None the training inputs themselves.
    y
        The targets there, without noise; with samples=None those of training.
    samples
        How many samples the regression will have; None predicts from the training data alone.
    ridge
        Regression with the dual (K + ridge)^-1 y.
    noise
        The standard deviation of the noise that training targets will have.

    Returns
    -------
    KernelError
        The predicted mean squared error on new inputs.

    References
    ----------
    .. [1] Bordelon, Canatar and Pehlevan (2020), Spectrum Dependent Learning Curves in Kernel
       Regression and Wide Neural Networks.
    .. [2] Simon et al. (2023), The Eigenlearning Framework (arXiv 2110.03922).
    .. [3] Jacot et al. (2020), Kernel Alignment Risk Estimator.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> kernel = penchant.measures.InfiniteKernel("relu", widths=(1,))
    >>> few, many = (
    ...     penchant.forecasts.kernel_error(kernel, X, X[:, 0], samples=n).error for n in (10, 80)
    ... )
    >>> bool(few > 5 * many)
    True
    """
    if not callable(kernel):
        raise Invalid(
            f"kernel must be a function of two arrays of rows, got {type(kernel).__name__}"
        )
    rows, targets = finite_array("X", X, ndim=2), finite_array("y", y, ndim=1)
    if len(rows) != len(targets):
        raise Invalid(f"y must have one number per row of X, {len(rows)}, got {len(targets)}")
    for name, value in {"ridge": ridge, "noise": noise}.items():
        if real(name, value) < 0:
            raise Invalid(f"{name} must not be negative, got {value:g}")
    if samples is not None:
        samples = integer("samples", samples, least=1)
        if len(rows) < LARGER * samples:
            raise Invalid(
                f"the pool must have at least {LARGER} times the samples, {LARGER * samples} rows, "
                f"got {len(rows)}; give more rows, or samples=None with the training data alone"
            )
    K = np.asarray(kernel(rows, rows), dtype=float)
    if K.shape != (len(rows), len(rows)) or not np.isfinite(K).all():
        raise Invalid(f"kernel must return finite numbers, one per pair of rows, got {K.shape}")
    values, vectors = np.linalg.eigh(K)
    values = np.where(values > len(K) * np.finfo(float).eps * values[-1], values, 0.0)
    shares = (vectors.T @ targets) ** 2
    if samples is None:
        if noise:
            raise Invalid("the targets of training have their noise already; leave noise out")
        return _from_training(values, shares, ridge)
    return _from_pool(values / len(K), shares / len(K), samples, ridge, noise**2)


def _from_pool(
    values: Array, shares: Array, samples: int, ridge: float, noise: float
) -> KernelError:
    k = _effective_ridge(values, samples, ridge)
    learned = values / (values + k) if k > 0 else (values > 0).astype(float)
    inflation = samples / (samples - float(learned @ learned))
    missed = float(((1 - learned) ** 2) @ shares)
    error = inflation * missed + (inflation - 1) * noise
    return KernelError(error, samples, k, float(learned.sum()), inflation)


def _effective_ridge(values: Array, samples: int, ridge: float) -> float:
    """k with sum l / (l + k) + ridge / k = samples, by bisection in its logarithm."""
    rank = int((values > 0).sum())
    if ridge == 0 and rank <= samples:
        raise Invalid(
            f"the kernel has {rank} modes above rounding in this pool, which {samples} samples "
            "learn all; give a ridge > 0 or fewer samples"
        )
    top = float(values.sum()) + ridge  # sum l / k + ridge / k >= samples
    high = math.log(top / samples)
    low = math.log(max(top * 1e-30, 1e-300))
    for _ in range(200):
        k = math.exp((low + high) / 2)
        if float((values / (values + k)).sum()) + ridge / k > samples:
            low = math.log(k)
        else:
            high = math.log(k)
    return math.exp(high)


def _from_training(values: Array, shares: Array, ridge: float) -> KernelError:
    """Generalised cross-validation; without a ridge the limit, where a kernel has full rank."""
    count = len(values)
    if ridge == 0 and not values.all():
        raise Invalid(
            f"the kernel matrix has rank {int((values > 0).sum())} of {count}, so that its inverse "
            "does not exist; drop repeated rows or give a ridge > 0"
        )
    inverse = 1 / (values + ridge)
    trace = float(inverse.sum())
    error = count * float((inverse**2) @ shares) / trace**2
    learned = float((values * inverse).sum())
    return KernelError(error, count, 1 / trace, learned, math.nan)
