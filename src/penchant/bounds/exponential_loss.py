"""Diagonal nets on the exponential loss: how fast the loss falls, and how far weights can be.

How it works. Gradient flow of the mean of exp(-margins) moves the smoothed margin g = log(1/loss)
at least as fast as the kernel of the start does, g' >= 2 D^2 alpha^(2D-2) gamma_2^2 e^(-g), with
gamma_2 the largest margin in l2. Integrated this is the bound of the loss. Divided into the speed
of a weight it bounds |w_i| as a function of g alone, by the same sinh or power law that the flow
has in its integrated loss weights. Everything is in logarithms: losses of 10^-4000000 are reached.

The power law of depth D > 2 ends at a finite smoothed margin: beyond it Gronwall's inequality
bounds nothing, and the bound is infinite.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array
from penchant.door import Invalid, door
from penchant.models.diagonal import DiagonalNet
from penchant.problems.classification import Classification
from penchant.solvers.margins.separation import separation


@door
def largest_log_loss(problem: Classification, model: DiagonalNet, log_t: ArrayLike) -> Array:
    """The logarithm of the largest loss that gradient flow can have at the times exp(log_t).

    The loss is at most 1/(1 + 2 D^2 alpha^(2D-2) gamma_2^2 t).

    Parameters
    ----------
    problem
        Separable data, exponential loss.
    model
        A signed `DiagonalNet` that starts at `alpha` in every weight.
    log_t
        The logarithms of the times, as a path holds them.

    Returns
    -------
    array
        One bound per time.

    References
    ----------
    .. [1] Moroshko et al. (2020), Implicit Bias in Deep Linear Classification, Lemma 3.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> line = penchant.Classification([[1.0, 0.0], [3.0, 1.0]], [1, 1])
    >>> net = penchant.DiagonalNet(2, alpha=0.5)
    >>> np.exp(penchant.bounds.largest_log_loss(line, net, np.log([1.0, 10.0]))).round(3)
    array([0.333, 0.048])
    """
    depth, log_alpha = _must_be_covered(problem, model)
    log_times = finite_array("log_t", log_t, ndim=None)
    log_rate = math.log(2 * depth**2) + (2 * depth - 2) * log_alpha
    log_gamma = math.log(_best_margin(problem))
    return np.asarray(-np.logaddexp(0.0, log_rate + 2 * log_gamma + log_times))


@door
def largest_log_weight(
    problem: Classification, model: DiagonalNet, smoothed_margin: ArrayLike
) -> Array:
    """The logarithm of the largest |w_i| that gradient flow can have at a smoothed margin.

    At depth 2 it is the largest 2 alpha^2 sinh(x_i g / (2 gamma_2^2 alpha^2)), x_i the sum of
    |x_ni| over the samples; at greater depths the same with the power law of the depth, while its
    argument (D - 2) x_i g / (2 D gamma_2^2 alpha^D) is below 1. Beyond, the bound is infinite.

    Parameters
    ----------
    problem
        Separable data, exponential loss.
    model
        A signed `DiagonalNet` that starts at `alpha` in every weight.
    smoothed_margin
        log(1/loss), not negative.

    Returns
    -------
    array
        One bound per smoothed margin, minus infinity at 0.

    References
    ----------
    .. [1] Moroshko et al. (2020), Implicit Bias in Deep Linear Classification, Lemmas 11 and 13;
       beyond the argument 1 the bound of Lemma 13 as printed does not hold.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> line = penchant.Classification([[1.0, 0.0], [3.0, 1.0]], [1, 1])
    >>> net = penchant.DiagonalNet(3, alpha=1.0)
    >>> np.exp(penchant.bounds.largest_log_weight(line, net, [0.1, 1.0, 10.0])).round(3)
    array([ 0.406, 26.784,    inf])
    """
    depth, log_alpha = _must_be_covered(problem, model)
    g = finite_array("smoothed_margin", smoothed_margin, ndim=None)
    if (g < 0).any():
        raise Invalid(f"smoothed_margin must not be negative, got {float(g.min()):g}")
    widest = float(np.abs(problem.X).sum(axis=0).max())
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_z = np.log(widest * g / 2) - 2 * math.log(_best_margin(problem)) - depth * log_alpha
        if depth == 2:
            return np.asarray(math.log(2) + 2 * log_alpha + _log_sinh(np.exp(log_z)))
        z = np.exp(log_z + math.log1p(-2 / depth))
        return np.asarray(depth * log_alpha + _log_power_law(z, depth / (depth - 2)))


def _log_sinh(z: Array) -> Array:
    return np.asarray(
        np.where(
            z < 1, np.log(np.sinh(np.minimum(z, 1))), z + np.log1p(-np.exp(-2 * z)) - math.log(2)
        )
    )


def _log_power_law(z: Array, p: float) -> Array:
    """log of (1 - z)^-p - (1 + z)^-p, infinite from z = 1 on."""
    inside = np.minimum(z, 1.0)
    # (1 - z)^-p (1 - e^(-2 p atanh z)), with no cancellation for small z
    logs = -p * np.log1p(-inside) + np.log(-np.expm1(-2 * p * np.arctanh(inside)))
    return np.asarray(np.where(z < 1, logs, math.inf))


def _best_margin(problem: Classification) -> float:
    """The largest least margin of a predictor of length one."""
    margin = separation(problem.X, problem.y).margin
    if not margin > 0:
        raise Invalid(f"the data must be linearly separable, their best margin is {margin:g}")
    return margin


def _must_be_covered(problem: Classification, model: DiagonalNet) -> tuple[int, float]:
    """Depth and log alpha; the bounds are for unbiased starts with equal weights."""
    if not isinstance(problem, Classification) or problem.loss != "exp":
        raise Invalid("problem must be a Classification with the exponential loss")
    if not isinstance(model, DiagonalNet):
        raise Invalid(f"model must be a DiagonalNet, got {type(model).__name__}")
    if model.log_alpha is None or model.shape is not None or not model.signed:
        raise Invalid("model must be signed and start at alpha in every weight")
    return model.depth, float(model.log_alpha)
