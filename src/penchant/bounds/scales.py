"""Between which scales the regularizer of a diagonal net is a norm, and training ends at one.

Logarithms throughout: the scales that guarantee the l1 norm are exponentially small.
"""

from __future__ import annotations

import math

from penchant.arguments import integer, log_scale, positive, real
from penchant.door import Invalid, door


@door
def l1_norm_edge(epsilon: float, norm: float, dimension: int) -> float:
    """log alpha up to which Q / log(1 / alpha^2) is the l1 norm up to a factor 1 +- epsilon.

    Q is the regularizer of the depth-2 net.

    Parameters
    ----------
    epsilon
        The relative deviation that is allowed, above 0.
    norm
        The l1 norm of the predictor.
    dimension
        The number of its entries.

    Returns
    -------
    float
        log alpha_1.

    References
    ----------
    Woodworth et al. (2020), Kernel and rich regimes in overparametrized models, Lemma 5.

    Examples
    --------
    >>> import penchant
    >>> beta = [1.0, -2.0]
    >>> edge = penchant.bounds.l1_norm_edge(0.1, norm=3.0, dimension=2)
    >>> round(edge, 2), round(float(penchant.Q(2, log_alpha=edge)(beta) / (-2 * edge) / 3.0), 3)
    (-8.96, 0.97)
    """
    epsilon, norm = positive("epsilon", epsilon), positive("norm", norm)
    dimension = integer("dimension", dimension, least=1)
    upper = -math.log(2 * norm) / (2 * epsilon)
    return min(0.0, math.log(norm) / 2, upper, -dimension / (2 * epsilon * norm))


@door
def l2_norm_edge(epsilon: float, norm: float) -> float:
    """log alpha from which 4 alpha^2 Q is the squared l2 norm up to a factor 1 +- epsilon.

    Parameters
    ----------
    epsilon
        The relative deviation that is allowed, above 0.
    norm
        The l2 norm of the predictor.

    Returns
    -------
    float
        log alpha_2.

    References
    ----------
    Woodworth et al. (2020), Lemma 7.

    Examples
    --------
    >>> import math
    >>> import penchant
    >>> alpha = math.exp(penchant.bounds.l2_norm_edge(0.1, norm=5.0))
    >>> ratio = 4 * alpha**2 * penchant.Q(2, alpha=alpha)([3.0, -4.0]) / 25
    >>> round(alpha, 2), round(float(ratio), 4)
    (6.21, 0.9998)
    """
    epsilon, norm = positive("epsilon", epsilon), positive("norm", norm)
    return math.log(norm) / 2 + math.log1p(epsilon**-0.25)


@door
def l1_solution_edge(epsilon: float, norm: float, dimension: int) -> float:
    """log alpha up to which training ends with an l1 norm within a factor 1 + epsilon of the least.

    For gradient flow of the depth-2 net from `alpha` in every entry, if it interpolates.

    Parameters
    ----------
    epsilon
        The relative excess that is allowed, above 0 and below the dimension.
    norm
        The least l1 norm of an interpolating predictor.
    dimension
        The number of its entries.

    Returns
    -------
    float
        The logarithm of the bound.

    References
    ----------
    Woodworth et al. (2020), Theorem 2.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(5, 10, sparsity=1, seed=0)
    >>> least = penchant.interpolate(problem, penchant.L1()).value
    >>> edge = penchant.bounds.l1_solution_edge(0.1, least, 10)
    >>> end = penchant.interpolate(problem, penchant.Q(2, log_alpha=edge)).beta
    >>> bool(abs(end).sum() <= 1.1 * least)
    True
    """
    dimension = integer("dimension", dimension, least=1)
    epsilon, norm = _below(dimension, epsilon), positive("norm", norm)
    power = -(2 + epsilon) / (2 * epsilon) * math.log(2 * (1 + epsilon) * norm)
    return min(power, -dimension / (epsilon * norm))


@door
def l2_solution_edge(epsilon: float, norm: float) -> float:
    """log alpha from which training ends with a squared l2 norm within 1 + epsilon of the least.

    For gradient flow of the depth-2 net from `alpha` in every entry, if it interpolates.

    Parameters
    ----------
    epsilon
        The relative excess that is allowed, above 0.
    norm
        The least l2 norm of an interpolating predictor, not squared.

    Returns
    -------
    float
        The logarithm of the bound.

    References
    ----------
    Woodworth et al. (2020), Theorem 2.

    Examples
    --------
    >>> import math
    >>> import penchant
    >>> round(math.exp(penchant.bounds.l2_solution_edge(0.1, norm=2.0)), 2)
    9.61
    """
    epsilon, norm = positive("epsilon", epsilon), positive("norm", norm)
    return math.log(2 * (1 + epsilon) * (1 + 2 / epsilon) * norm) / 2


@door
def not_l1_edge(epsilon: float, dimension: float) -> float:
    """log alpha from which Q is not proportional to the l1 norm up to a factor 1 + epsilon.

    Q per unit of l1 norm is then larger at one unit vector than at the vector of equal entries,
    by this factor or more.

    Parameters
    ----------
    epsilon
        The relative deviation, above 0.
    dimension
        The number of entries, at least max(e, 12^(4 epsilon)); it may be a float as large as 1e300.

    Returns
    -------
    float
        The logarithm of the bound.

    References
    ----------
    Woodworth et al. (2020), Lemma 6.

    Examples
    --------
    >>> import penchant
    >>> d = 100
    >>> q = penchant.Q(2, log_alpha=penchant.bounds.not_l1_edge(0.1, d))
    >>> one, equal = q([1.0]), d * q([d**-0.5]) / d**0.5
    >>> bool(one / equal >= 1.1)
    True
    """
    epsilon, dimension = positive("epsilon", epsilon), real("dimension", dimension)
    least = max(math.e, math.exp(min(4 * epsilon * math.log(12), 709.0)))
    if dimension < least * (1 - 1e-9):
        rule = f"dimension must be at least max(e, 12^(4 epsilon)) = {least:.4g}"
        raise Invalid(f"{rule}, got {dimension:g}; lower epsilon")
    return -math.log(dimension) * (1 / 4 + 1 / (8 * epsilon))


@door
def dual_edge(depth: int, *, alpha: float | None = None, log_alpha: float | None = None) -> float:
    """log of the bound on |X^T int r|_inf during all of training, for a net of depth D >= 3.

    The bound is alpha^(2 - D) / (2 D (D - 2)) for gradient flow on the sum of squared residuals r,
    from `alpha` in every entry. It is half of what is published and sharp: training comes as close
    to it as an entry of the predictor grows above its start.

    Parameters
    ----------
    depth
        The depth D of the diagonal net.
    alpha
        The scale of the start.
    log_alpha
        Its logarithm, in place of `alpha`.

    Returns
    -------
    float
        The logarithm of the bound.

    References
    ----------
    Woodworth et al. (2020), Lemma 8.

    Examples
    --------
    >>> import math
    >>> import penchant
    >>> round(math.exp(penchant.bounds.dual_edge(3, alpha=0.1)), 4)
    1.6667
    """
    depth, log_alpha = integer("depth", depth, least=3), log_scale(2, alpha, log_alpha)
    return (2 - depth) * log_alpha - math.log(2 * depth * (depth - 2))


def _below(dimension: int, epsilon: float) -> float:
    epsilon = positive("epsilon", epsilon)
    if epsilon >= dimension:
        raise Invalid(f"epsilon must be below the dimension {dimension}, got {epsilon:g}")
    return epsilon
