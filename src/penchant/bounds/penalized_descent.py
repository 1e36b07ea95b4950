"""Descent on g + beta h while the gradient of g dominates: its rate, its ball and its duration.

How it works. With G and H the (sub)gradients of g and h, a step is -a (G + beta H). Let
beta |H| <= share |G|, share < 1, and write v = G + beta H.

- Descent lemma, with L the Lipschitz constant of G: g falls by at least a G.v - (a^2 L/2)|v|^2.
  This is least, over all beta H of length at most share |G|, at -share G or +share G, where it is
  (a/2)|G|^2 (1 + s)(2 - a L (1 + s)), s = -share or share. |G|^2 >= 2 mu g makes it `contraction`.
- G.v/|v| is least where beta H is orthogonal to v: sqrt(1 - share^2)|G|. So sqrt(g) falls by
  (sqrt(1 - share^2) - a L (1 + share)/2) sqrt(chi)/2 for every unit of length covered, where
  |G|^2 >= chi g. All of it is covered within `ball_radius`.
- |G| falls by at most the factor 1 - (1 + share) a L in a step: `dominated_steps`.

The statements of Notsawo et al. 2025 are these with other constants.
"""

from __future__ import annotations

import math

from penchant.arguments import not_negative, positive, real
from penchant.door import Invalid, door


@door
def largest_step(L: float, share: float = 0.0) -> float:
    """The step from which on a loss may grow although its gradient dominates: 2/(L (1 + share)).

    Parameters
    ----------
    L
        The Lipschitz constant of the gradient of the loss.
    share
        The most that beta |H| may be of |G|, below 1.

    Returns
    -------
    float
        The bound.

    References
    ----------
    .. [1] Notsawo et al. (2025), Grokking Beyond the Euclidean Norm of Model Parameters.

    Examples
    --------
    >>> import penchant
    >>> penchant.bounds.largest_step(L=4.0, share=0.25)
    0.4
    """
    return 2 / (positive("L", L) * (1 + _share(share)))


@door
def contraction(*, mu: float, L: float, learning_rate: float, share: float = 0.0) -> float:
    """The delta of g(t+1) <= (1 - delta) g(t) while beta |H| <= share |G|.

    It is attained on quadratic losses with mu = L.

    Parameters
    ----------
    mu
        |grad g|^2 >= 2 mu g (Polyak-Lojasiewicz), with 0 the least value of g.
    L
        The Lipschitz constant of the gradient of g.
    learning_rate
        The step, below `largest_step`.
    share
        The most that beta |H| may be of |G|, below 1.

    Returns
    -------
    float
        delta, in (0, 1].

    References
    ----------
    .. [1] Notsawo et al. (2025), Grokking Beyond the Euclidean Norm of Model Parameters. Their
       delta has the opposite sign of the penalty's part.

    Examples
    --------
    >>> import penchant
    >>> round(penchant.bounds.contraction(mu=1.0, L=1.0, learning_rate=0.5, share=0.5), 6)
    0.4375
    """
    mu, L, share = positive("mu", mu), positive("L", L), _share(share)
    if mu > L:
        raise Invalid(f"mu must be at most L={L:g}, got {mu:g}")
    step = positive("learning_rate", learning_rate)
    most = 2 / (L * (1 + share))
    if step >= most:
        raise Invalid(f"learning_rate must be below 2/(L (1 + share)) = {most:.6g}, got {step:g}")
    return mu * step * min((1 + s) * (2 - step * L * (1 + s)) for s in (-share, share))


@door
def ball_radius(
    loss: float, chi: float, L: float, learning_rate: float, share: float = 0.0
) -> float:
    """How far descent comes from its start while beta |H| <= share |G|.

    Parameters
    ----------
    loss
        g at the start, with 0 the least value of g.
    chi
        |grad g|^2 >= chi g on the ball of this radius, as `measures.lojasiewicz` bounds it.
    L
        The Lipschitz constant of the gradient of g there.
    learning_rate
        The step; for every share there is one from which on the bound is infinite.
    share
        The most that beta |H| may be of |G|, below 1.

    Returns
    -------
    float
        The radius, 2 sqrt(loss/chi) for small steps without a penalty.

    References
    ----------
    .. [1] Notsawo et al. (2025), Grokking Beyond the Euclidean Norm of Model Parameters. They have
       the radius without a penalty for every share.

    Examples
    --------
    >>> import penchant
    >>> round(penchant.bounds.ball_radius(0.5, chi=2.0, L=1.0, learning_rate=1e-9, share=0.8), 6)
    1.666667
    """
    loss, chi, L = not_negative("loss", loss), positive("chi", chi), positive("L", L)
    step, share = positive("learning_rate", learning_rate), _share(share)
    per_length = math.sqrt(1 - share**2) - step * L * (1 + share) / 2
    if per_length <= 0:
        most = 2 * math.sqrt((1 - share) / (1 + share)) / L
        raise Invalid(f"learning_rate must be below {most:.6g} for share={share:g}, got {step:g}")
    return 2 * math.sqrt(loss / chi) / per_length


@door
def dominated_steps(
    gradient: float, L: float, learning_rate: float, share: float, beta: float, length: float = 1.0
) -> int:
    """For how many steps at least beta |H| <= share |G| holds.

    Parameters
    ----------
    gradient
        |G| at the start.
    L
        The Lipschitz constant of the gradient of the loss.
    learning_rate
        The step, below 1/(L (1 + share)).
    share
        The most that beta |H| may be of |G|, below 1.
    beta
        The strength of the penalty.
    length
        The largest Euclidean length of a subgradient of the penalty: sqrt(p) for the l1 norm of p
        numbers.

    Returns
    -------
    int
        The number of steps.

    References
    ----------
    .. [1] Notsawo et al. (2025), Grokking Beyond the Euclidean Norm of Model Parameters. They have
       the largest entry in place of the length, and a free rate in place of 1 - (1 + share) L step.

    Examples
    --------
    >>> import penchant
    >>> penchant.bounds.dominated_steps(1.0, L=1.0, learning_rate=0.1, share=0.5, beta=1e-3)
    38
    """
    gradient, beta = positive("gradient", gradient), positive("beta", beta)
    L, length, share = positive("L", L), positive("length", length), _share(share)
    step = positive("learning_rate", learning_rate)
    keeps = 1 - (1 + share) * step * L
    if keeps <= 0:
        most = 1 / ((1 + share) * L)
        raise Invalid(f"learning_rate must be below 1/((1 + share) L) = {most:.6g}, got {step:g}")
    if share == 0 or share * gradient < beta * length:
        return 0
    # the margin keeps a beta at the very edge of a number of steps from losing one to rounding
    return math.floor(math.log(share * gradient / (beta * length)) / -math.log(keeps) + 1e-9)


def _share(share: float) -> float:
    value = real("share", share)
    if not 0 <= value < 1:
        raise Invalid(f"share must be at least 0 and below 1, got {value:g}")
    return value
