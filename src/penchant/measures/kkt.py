"""How far the parameters of a homogeneous net are from a KKT point of least norm.

How it works. At a KKT point of min |theta|^2 with margins m_n >= 1 theta is a combination of the
gradients g_n of the margins with multipliers nu_n >= 0, zero where m_n > 1. Scaled to the least
margin 1, such a point has sum_n nu_n m_n = |theta|^2 / D (Euler), so that

    stationarity      |theta - sum_n nu_n g_n| / |theta|
    complementarity   D sum_n nu_n (m_n - 1) / |theta|^2

are both relative. The multipliers that make the sum of their squares least are a nonnegative least
squares problem with the complementarity as one more row. No tolerance decides which samples count
as support vectors, and the residual is continuous in theta. These are the two numbers of the
approximate KKT points of Lyu and Li 2020, as one.

Another norm N has no unique subgradient, and in l_inf almost every theta is far from the faces
that stationarity speaks of. There the residual is the first-order duality gap: with multipliers of
sum one,

    D min_n m_n / N(theta)  <=  min_nu N*(sum_n nu_n g_n),

the margin of theta on the left, the best margin of any direction in the model linearized at theta
on the right, and equality at KKT points alone. `max_margin` computes the right side, with its
certificate. In l2 this gap is about half the square of the residual above.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, entries
from penchant.door import Invalid, door
from penchant.measures.kernels.tangent import arguments, gradients_of, samples
from penchant.measures.torch.module import as_array
from penchant.models.model import Model, Separable
from penchant.problems.classification import Classification
from penchant.problems.regression import Regression
from penchant.records import Kind, Unsolved
from penchant.regularizers.layers import LayerSpectral
from penchant.regularizers.norms import norm_of
from penchant.solvers.max_margin import max_margin

EULER = 1e-8  # relative: how exactly a module has a degree


@door
def kkt_residual(
    problem: Classification | Regression,
    model: Any,
    parameters: ArrayLike | None = None,
    outputs: ArrayLike | None = None,
    *,
    norm: Any = None,
) -> float:
    """How far parameters, rescaled, are from a KKT point of least norm, relative.

    For labels the problem is min |theta|^2 with margins of at least 1, for values min |theta|^2
    with f(theta, x_n) = y_n. The residual is the root of the sum of the squares of two relative
    numbers: what the gradients leave of theta, and the complementarity, or the misfit of the
    values. It is 0 at KKT points, at most 1 for labels, and infinite where a margin is not
    positive.

    Parameters
    ----------
    problem
        The data.
    model
        A homogeneous model, or a torch.nn.Module with one output, in eval mode and float64.
    parameters
        The parameters of a model, at any scale; a module brings its own.
    outputs
        f(theta, x_n), where you know them to more digits than the parameters give them: from a
        large start they are small differences.
    norm
        The norm of theta that is least, for labels: L1(), L2(), Linf(), Spectral(shape) or
        LayerSpectral(shapes). The residual is then the share of the best margin of the linearized
        model that theta misses; without a norm it is that of l2 described above.

    Returns
    -------
    float
        The residual.

    References
    ----------
    .. [1] Lyu & Li (2020), Gradient Descent Maximizes the Margin of Homogeneous Neural Networks.
    .. [2] Gronich and Vardi (2026), The Implicit Bias of Adam and Muon on Smooth Homogeneous Neural
       Networks.

    Examples
    --------
    >>> import penchant
    >>> line = penchant.Classification([[1.0, 0.0], [3.0, 1.0]], [1, 1])
    >>> net = penchant.DiagonalNet(2, alpha=1.0)
    >>> round(penchant.measures.kkt_residual(line, net, [5.0, 0.0, 0.0, 0.0]), 12)
    0.0
    >>> round(penchant.measures.kkt_residual(line, net, [5.0, 2.0, 0.0, 0.0]), 3)
    0.364
    """
    if not isinstance(problem, Classification | Regression):
        raise Invalid(
            f"problem must be a Classification or a Regression, got {type(problem).__name__}"
        )
    torch = sys.modules.get("torch")  # a module of torch cannot exist before torch is imported
    if torch is not None and isinstance(model, torch.nn.Module):
        if parameters is not None or outputs is not None:
            raise Invalid("a torch module brings its own parameters and outputs; leave them out")
        theta, values, slopes, degree = _of_module(model, problem.design)
    else:
        theta, values, slopes, degree = _of_model(problem, model, parameters, outputs)
    size = float(np.linalg.norm(theta))
    if not size > 0:
        raise Invalid("parameters must not all be zero; zero has no direction")
    if norm is not None:
        return _of_norm(problem, slopes, degree * problem.y * values, theta, norm)
    if isinstance(problem, Regression):
        return _of_values(slopes, values, problem.y, theta / size)
    return _of_margins(problem.y[:, None] * slopes, problem.y * values, theta / size, degree / size)


def _of_model(
    problem: Any, model: Any, parameters: Any, outputs: Any
) -> tuple[Array, Array, Array, float]:
    """The parameters of a model, its outputs, their gradients, and its degree."""
    if not isinstance(model, Model) or model.homogeneity is None:
        raise Invalid("model must be a homogeneous Model; this one has no known degree")
    X = problem.design
    if isinstance(model, Separable):  # whose start may be beyond float64
        count = model.copies * problem.dimension
    else:
        count = len(model.start(problem.dimension))
    theta = entries("parameters", parameters, count, "one entry per parameter of the model")
    if outputs is None:
        values = np.asarray(model.predict(theta, X))
    else:
        values = entries("outputs", outputs, len(X), "one entry per sample")
    return theta, values, np.asarray(model.jacobian(theta, X)), model.homogeneity


def _of_module(module: Any, X: Array) -> tuple[Array, Array, Array, float]:
    """The same of a torch module, whose degree is the D of Euler's D f = <grad f, theta>."""
    function, _, rows = arguments("double", module, None, X.copy())
    rows = samples("x", rows, function)
    gradients = gradients_of(function, None, rows, None, None, factored=False)
    parts, given = gradients.block(rows, len(X)).rows, function.parameters()
    slopes = np.concatenate([parts[name].reshape(len(X), -1) for name in given], axis=1)
    theta = np.concatenate([as_array(tensor).ravel() for tensor in given.values()])
    values, products = gradients.values(rows)[:, 0], slopes @ theta
    degree = float(products @ values) / (float(values @ values) or 1.0)
    if not np.allclose(products, degree * values, rtol=EULER, atol=EULER * abs(products).max()):
        raise Invalid(
            f"module must be homogeneous in its parameters: <grad f, theta> is not {degree:.3g} f"
            " for all samples; take one without biases and with homogeneous activations"
        )
    return theta, values, slopes, degree


def _of_margins(rows: Array, margins: Array, unit: Array, factor: float) -> float:
    from scipy.optimize import nnls

    least = float(margins.min())
    if not least > 0:
        return math.inf
    # theta's own scale drops out: multipliers and gradients are taken where theta is
    matrix = np.vstack([rows.T, factor * (margins - least)])
    largest = float(np.linalg.norm(matrix, axis=0).max())
    return float(nnls(matrix / largest, np.append(unit, 0.0))[1]) if largest > 0 else 1.0


def _of_norm(problem: Any, slopes: Array, margins: Array, theta: Array, norm: Any) -> float:
    """The share of the best margin of the linearized model that theta misses; `margins` are its."""
    if not isinstance(problem, Classification):
        raise Invalid(f"norm={norm!r} needs labels, got a {type(problem).__name__}; leave it out")
    norm = norm_of(norm)
    size, least = float(norm(theta)), float(margins.min())
    if not least > 0:
        return math.inf
    rows = problem.y[:, None] * slopes
    layers = isinstance(norm, LayerSpectral)
    rows, inner = (norm.on_diagonal(rows), norm.diagonal) if layers else (rows, norm)
    solution = max_margin(rows, np.ones(len(rows)), inner, throw=False)
    if not (solution.outcome.ok or solution.outcome.kind is Kind.APPROXIMATE):  # to eight digits
        raise Unsolved(solution.outcome)
    return max(0.0, 1 - least * solution.value / size)  # the value is one over the best margin


def _of_values(rows: Array, values: Array, y: Array, unit: Array) -> float:
    multipliers = np.linalg.lstsq(rows.T, unit, rcond=None)[0]
    left = float(np.linalg.norm(rows.T @ multipliers - unit))
    square = float(values @ values)
    scaled = values * max(float(values @ y), 0.0) / square if square > 0 else values
    size = float(np.linalg.norm(y)) or 1.0  # values of zero are compared as they are
    return math.hypot(left, float(np.linalg.norm(scaled - y)) / size)
