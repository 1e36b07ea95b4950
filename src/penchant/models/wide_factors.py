"""Gaussian factors of any width, drawn as a few columns with the law of many.

Gradient flow and descent of U V^T multiply W = [U; V] from the left only, so a rotation of the
columns changes nothing that U V^T does, and W W^T alone decides. Bartlett's decomposition draws
it: a lower triangular root with normal entries below the diagonal and chi ones on it.
"""

from __future__ import annotations

import numpy as np

from penchant.arguments import Array, integer, matrix_shape
from penchant.door import door
from penchant.models.factorization import Factorization
from penchant.models.matrix import scale


@door
def wishart_root(rows: int, width: int, seed: int | np.random.Generator = 0) -> Array:
    """A (rows x rows) L such that L L^T has the law of W W^T for a Gaussian (rows x width) W.

    Parameters
    ----------
    rows
        The number of rows.
    width
        The number of columns of W, at least that of the rows; it may be as large as 1e18.
    seed
        The seed of all random numbers, or a NumPy generator to draw them from.

    Returns
    -------
    Array
        The root, lower triangular.

    Examples
    --------
    >>> import penchant
    >>> root = penchant.models.wishart_root(2, 10**12, seed=1)
    >>> (root @ root.T / 10**12).round(3)
    array([[1., 0.],
           [0., 1.]])
    """
    return _root(integer("rows", rows, least=1), width, seed)


def _root(rows: int, width: object, seed: object) -> Array:
    width = integer("width", width, least=rows)
    if not isinstance(seed, np.random.Generator):
        seed = np.random.default_rng(integer("seed", seed, least=0))
    root = np.tril(seed.standard_normal((rows, rows)), -1)
    root[np.diag_indices(rows)] = np.sqrt(seed.chisquare(width - np.arange(rows)))
    return root


@door
def wide_factorization(
    width: int,
    *,
    alpha: float | None = None,
    log_alpha: float | None = None,
    shape: tuple[int, int],
    seed: int | np.random.Generator = 0,
) -> Factorization:
    """U V^T from i.i.d. N(0, alpha^2) factors of `width` columns, as rows + columns columns.

    W W^T of W = [U; V] is drawn by its law, so training is that of factors of this width and costs
    the same at any. The units themselves are not drawn: take Factorization to look at one.

    Parameters
    ----------
    width
        The number of columns whose law is drawn, at least rows + columns.
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        The natural logarithm of alpha.
    shape
        (rows, columns) of U V^T.
    seed
        The seed of all random numbers, or a NumPy generator to draw them from.

    Returns
    -------
    Factorization
        With these factors as its start.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import penchant
    >>> model = penchant.models.wide_factorization(10**10, alpha=1e-5, shape=(2, 3))
    >>> model.width, float(abs(model.matrix(model.start(6))).max()) < 1e-4
    (5, True)
    """
    shape, (size, _) = matrix_shape(shape), scale(alpha, log_alpha)
    root = size * _root(sum(shape), width, seed)
    return Factorization(factors=(root[: shape[0]], root[shape[0] :]))
