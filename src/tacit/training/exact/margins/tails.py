"""The exponential tails of the two classification losses, where only gaps can be represented."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.arguments import Array


class Tail(NamedTuple):
    """What a loss L = mean l(m_n) pulls with, at margins m_n = g + gaps_n.

    `weights` are -dl/dm_n over their sum. `ratio` is L over the mean of -dl/dm, 1 for the exp
    loss. `bend` is -d log(-dl/dm)/dm, 1 in the tail. `drift` is log L + g, which is zero while
    g is the smoothed margin of the gaps.
    """

    weights: Array
    ratio: float
    bend: Array | float
    drift: float


def tail(loss: str, g: float, gaps: Array) -> Tail:
    """The tail of `loss` at the smoothed margin g; nothing here under- or overflows."""
    if loss == "exp":
        # ufuncs and not methods: this runs thousands of times on a handful of numbers
        least = float(np.minimum.reduce(gaps))
        weights = np.exp(least - gaps)
        total = float(np.add.reduce(weights))
        weights /= total
        return Tail(weights, 1.0, 1.0, math.log(total / len(gaps)) - least)
    margins = g + gaps
    loss_log = -gaps + _log_loss_plus_margin(margins)
    pull_log = -gaps - np.logaddexp(0.0, -margins)
    total_loss, total_pull = _log_sum(loss_log), _log_sum(pull_log)
    return Tail(
        weights=np.exp(pull_log - total_pull),
        ratio=math.exp(total_loss - total_pull),
        bend=np.exp(-np.logaddexp(0.0, -margins)),
        drift=total_loss - math.log(len(gaps)),
    )


def log_losses(loss: str, margins: Array) -> Array:
    """log l(m) for every margin: -m for exp, log log(1 + e^-m) for logistic."""
    return -margins if loss == "exp" else _log_loss_plus_margin(margins) - margins


def log_mean_loss(loss: str, margins: Array) -> Array:
    """log of the mean loss along the last axis."""
    logs = log_losses(loss, margins)
    top = logs.max(axis=-1, keepdims=True)
    with np.errstate(under="ignore"):
        return top[..., 0] + np.log(np.exp(logs - top).mean(axis=-1))


def rise(loss: str, margins: Array) -> float:
    """How far the smoothed margin has risen from that of zero margins, also where they are tiny."""
    if np.abs(margins).max() > 0.5:
        zero = float(log_mean_loss(loss, np.zeros_like(margins)))
        return zero - float(log_mean_loss(loss, margins))
    fall = np.expm1(-margins)
    if loss == "logistic":
        fall = np.log1p(fall / 2) / math.log(2)
    return -math.log1p(float(fall.mean()))


def _log_loss_plus_margin(margins: Array) -> Array:
    """log(log(1 + e^-m)) + m, which vanishes in the tail like -e^-m / 2."""
    m = np.minimum(margins, 30.0)
    near = np.log(np.logaddexp(0.0, -m)) + m
    return np.where(margins < 30.0, near, -np.exp(-np.maximum(margins, 30.0)) / 2)


def _log_sum(logs: Array) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))
