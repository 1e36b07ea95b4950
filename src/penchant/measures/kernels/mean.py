"""The tangent kernel of a univariate ReLU net at its start, averaged over the starts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, integer, log_scale, positive
from penchant.door import door


@door
def mean_kernel(
    x: ArrayLike,
    other: ArrayLike,
    width: int,
    *,
    alpha: float | None = None,
    log_alpha: float | None = None,
    scaling: float = 1.0,
) -> Array:
    """The tangent kernel of `univariate_relu` at its start, averaged over the seeds exactly.

    For Gaussian (w, b) and the angle t between (x, 1) and (x', 1), two units are both on with
    probability (pi - t) / (2 pi), and E relu relu = |.| |.'| (sin t + (pi - t) cos t) / (2 pi).

    Parameters
    ----------
    x
        Points on the line.
    other
        The points that each of them is compared with.
    width
        The number of hidden units.
    alpha
        The scale of the start; give exactly one of the scales.
    log_alpha
        Its natural logarithm.
    scaling
        Multiplies the inner layer of the start and divides the outer one.

    Returns
    -------
    array
        A row for each point of `x`, a column for each of `other`.

    References
    ----------
    Williams et al. (2019), Gradient dynamics of shallow univariate ReLU networks.

    Examples
    --------
    >>> import penchant
    >>> penchant.measures.mean_kernel([0.0, 1.0], [0.0], 50, alpha=1.0).round(2)
    array([[54.  ],
           [56.92]])
    """
    x, other = (finite_array(n, v, ndim=1) for n, v in (("x", x), ("other", other)))
    width, scaling = integer("width", width, least=1), positive("scaling", scaling)
    scale = float(np.exp(log_scale(1, alpha, log_alpha)))
    here, there = x[:, None], other[None, :]
    angle = np.abs(np.arctan(here) - np.arctan(there))
    lengths = np.sqrt((1 + here**2) * (1 + there**2))
    outer = lengths * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    inner = (1 + here * there) * (np.pi - angle) / (2 * np.pi)
    # two copies; both output biases add one each, whatever alpha
    single = scale**2 * (width * scaling**2 * outer + 2 / scaling**2 * inner) + 1
    return np.asarray(2 * single)
