"""The losses as functions of predictions, and the exponential tails of those of labels."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from penchant.arguments import Array


class Tail(NamedTuple):
    """The derivatives of a loss L = mean l(m_n), at margins m_n = g + gaps_n.

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
    total_loss, total_pull = log_sum(loss_log), log_sum(pull_log)
    return Tail(
        weights=np.exp(pull_log - total_pull),
        ratio=math.exp(total_loss - total_pull),
        bend=np.exp(-np.logaddexp(0.0, -margins)),
        drift=total_loss - math.log(len(gaps)),
    )


def log_mean_loss(loss: str, margins: Array) -> Array:
    """log of the mean loss along the last axis."""
    logs = -margins if loss == "exp" else _log_loss_plus_margin(margins) - margins
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


def log_sum(logs: Array) -> float:
    """log of the sum of e^logs; of none but e^-inf it is -inf."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum())) if math.isfinite(top) else top


def log_sum_of_squares(rows: Array) -> Array:
    """log(sum of squares) along the last axis, also where the squares would underflow."""
    largest = np.abs(rows).max(axis=-1, keepdims=True)
    unit = rows / np.where(largest > 0, largest, 1.0)
    with np.errstate(divide="ignore"):
        return 2 * np.log(largest[..., 0]) + np.log(np.maximum((unit**2).sum(axis=-1), 1.0))


class SquaredLoss(NamedTuple):
    """sum_n (f_n - y_n)^2, or half of it."""

    y: Array
    name: str = "squares"

    @property
    def factor(self) -> float:
        return 0.5 if self.name == "half squares" else 1.0

    def log_loss(self, predictions: Array) -> Array:
        return log_sum_of_squares(predictions - self.y) + math.log(self.factor)

    def slopes(self, predictions: Array) -> Array:
        return 2 * self.factor * (predictions - self.y)

    def bends(self, predictions: Array) -> Array:
        return np.full(len(self.y), 2.0 * self.factor)

    def thirds(self, predictions: Array) -> Array:
        """The third derivative of the loss in the prediction of each sample."""
        return np.zeros(len(self.y))

    def wanted(self, predictions: Array) -> Array:
        """The change of the predictions that would fit the data."""
        return self.y - predictions

    def log_unit(self, start: Array) -> float:
        """log of the loss that targets are relative to: here of the zero predictor."""
        own = float(log_sum_of_squares(self.y)) if self.y.any() else 0.0
        return own + math.log(self.factor)


class MarginLoss(NamedTuple):
    """The mean of exp(-y f) ("exp") or log(1 + exp(-y f)) ("logistic")."""

    y: Array
    name: str

    def log_loss(self, predictions: Array) -> Array:
        return log_mean_loss(self.name, predictions * self.y)

    def slopes(self, predictions: Array) -> Array:
        return -self.y * self._pull(predictions * self.y) / len(self.y)

    def bends(self, predictions: Array) -> Array:
        margins = predictions * self.y
        pull = self._pull(margins)
        if self.name == "logistic":
            pull = pull * self._pull(-margins)
        return pull / len(self.y)

    def thirds(self, predictions: Array) -> Array:
        """The third derivative of the loss in the prediction of each sample."""
        bends = -self.y * self.bends(predictions)
        if self.name == "logistic":
            bends = bends * (1 - 2 * self._pull(predictions * self.y))
        return bends

    def wanted(self, predictions: Array) -> Array:
        """A margin of one more, for margins grow without end."""
        return self.y.copy()

    def log_unit(self, start: Array) -> float:
        return float(self.log_loss(start))

    def _pull(self, margins: Array) -> Array:
        with np.errstate(over="ignore", under="ignore"):
            if self.name == "exp":
                return np.exp(-margins)
            return np.exp(-np.logaddexp(0.0, margins))


Loss = SquaredLoss | MarginLoss


def finite(loss: Loss, predictions: Array) -> bool:
    return bool(np.isfinite(predictions).all() and np.isfinite(loss.slopes(predictions)).all())
