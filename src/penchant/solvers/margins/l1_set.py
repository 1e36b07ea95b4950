"""The set of the max margins in the l1 norm, where there is more than one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array
from penchant.door import door


@door
def l1_ends(Z: ArrayLike) -> tuple[Array, Array]:
    """The two predictors of margin 1 and least l1 norm that are furthest apart, often the same.

    A linear program pushes every coordinate both ways over the set of minimisers.

    Parameters
    ----------
    Z
        The rows y_n x_n of separable data.

    Returns
    -------
    tuple of two arrays
        The two predictors.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> first, second = penchant.solvers.l1_ends(np.array([[1.0, 1.0]]))
    >>> round(float(abs(first - second).sum()), 6)
    2.0
    """
    from scipy.optimize import linprog

    Z = finite_array("Z", Z, ndim=2)
    samples, dimension = Z.shape
    ones, pair = np.ones(2 * dimension), np.hstack([Z, -Z])
    least = linprog(ones, A_ub=-pair, b_ub=-np.ones(samples)).fun
    if least is None:
        raise ValueError("l1_ends: Z must have a predictor with positive margins on every row")
    corners = []
    for unit in np.vstack([np.eye(dimension), -np.eye(dimension)]):
        face = linprog(
            np.concatenate([unit, -unit]),
            A_ub=np.vstack([-pair, ones]),
            b_ub=np.append(-np.ones(samples), least * (1 + 1e-12)),
        )
        corners.append(face.x[:dimension] - face.x[dimension:])
    far = np.array(corners)
    apart = np.linalg.norm(far[:, None] - far, axis=-1)
    first, last = np.unravel_index(int(apart.argmax()), apart.shape)
    return far[first], far[last]
