"""How long Adam waits with a small penalty: the time of its second moment.

When training is solved the gradient of the loss vanishes, sqrt(v) is some G and falls as G e^(-s/T)
in s steps, T = -2/log(square_decay). Until the penalty is what v averages, parameters move by
(T step beta h/G)(e^(s/T) - 1) under a penalty of slope beta h. With c the distance they must move
times G/h, a move of c takes T log(1 + c/(T step beta)) steps.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, plain_array, positive, real, real_array
from penchant.door import Invalid, door

SQUARE_DECAY = 0.999  # the default of Adam


@door
def adam_memory(square_decay: float = SQUARE_DECAY) -> float:
    """T, the steps in which Adam's sqrt(v) falls by a factor e once gradients vanish.

    Parameters
    ----------
    square_decay
        Adam's beta_2.

    Returns
    -------
    float
        -2/log(square_decay), 1999 for Adam's default.

    Examples
    --------
    >>> import penchant
    >>> round(penchant.forecasts.adam_memory())
    1999
    """
    return _memory(square_decay)


def _memory(square_decay: float) -> float:
    value = real("square_decay", square_decay)
    if not 0 < value < 1:
        raise Invalid(f"square_decay must be above 0 and below 1, got {value:g}")
    return -2 / math.log(value)


@door
def adam_delay(step_beta: ArrayLike, c: float, square_decay: float = SQUARE_DECAY) -> Array:
    """The steps between memorization and generalization with a penalty in Adam's gradient.

    Parameters
    ----------
    step_beta
        The learning rate times the weight of the penalty, one number or several.
    c
        The distance that parameters must move, times sqrt(v) at memorization over the penalty's
        slope; one run tells it, as step_beta * adam_clock(delay).
    square_decay
        Adam's beta_2.

    Returns
    -------
    array
        T log(1 + c/(T step_beta)), T as in `adam_memory`.

    Examples
    --------
    >>> import penchant
    >>> penchant.forecasts.adam_delay([1e-7, 1e-8], c=1e-3).round()
    array([3583., 7861.])
    """
    memory, c = _memory(square_decay), positive("c", c)
    given = plain_array("step_beta", step_beta)
    pace = finite_array("step_beta", np.atleast_1d(given), ndim=None).reshape(given.shape)
    if pace.size and pace.min() <= 0:
        raise Invalid(f"step_beta must be > 0, got {pace.min():g}")
    return np.asarray(memory * np.log1p(c / (memory * pace)))


@door
def adam_clock(delays: ArrayLike, square_decay: float = SQUARE_DECAY) -> Array:
    """T (e^(s/T) - 1) for delays of s steps; in this unit they are c/step_beta.

    Parameters
    ----------
    delays
        Numbers of steps; NaN stays NaN.
    square_decay
        Adam's beta_2.

    Returns
    -------
    array
        The delays in Adam's time.

    Examples
    --------
    >>> import penchant
    >>> forecasts = penchant.forecasts
    >>> round(1e-7 * float(forecasts.adam_clock(forecasts.adam_delay(1e-7, c=1e-3))), 6)
    0.001
    """
    memory = _memory(square_decay)
    given = plain_array("delays", delays)
    steps = real_array("delays", np.atleast_1d(given), ndim=None).reshape(given.shape)
    return np.asarray(memory * np.expm1(steps / memory))
