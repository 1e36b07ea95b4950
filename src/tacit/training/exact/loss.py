"""The losses as functions of predictions: value, slope and bend of every sample's part."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.training.exact.margins.tails import log_mean_loss


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
        """log of the loss along the last axis."""
        return log_sum_of_squares(predictions - self.y) + math.log(self.factor)

    def slopes(self, predictions: Array) -> Array:
        return 2 * self.factor * (predictions - self.y)

    def bends(self, predictions: Array) -> Array:
        return np.full(len(self.y), 2.0 * self.factor)

    def wanted(self, predictions: Array) -> Array:
        """The change of the predictions that training is after."""
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

    def wanted(self, predictions: Array) -> Array:
        """A margin of one more, for margins grow without end."""
        return self.y.copy()

    def log_unit(self, start: Array) -> float:
        """That of the predictions at the start."""
        return float(self.log_loss(start))

    def _pull(self, margins: Array) -> Array:
        """-dl/dm."""
        with np.errstate(over="ignore", under="ignore"):
            if self.name == "exp":
                return np.exp(-margins)
            return np.exp(-np.logaddexp(0.0, margins))


Loss = SquaredLoss | MarginLoss


def finite(loss: Loss, predictions: Array) -> bool:
    """True if float64 holds the slopes of the loss."""
    return bool(np.isfinite(predictions).all() and np.isfinite(loss.slopes(predictions)).all())
