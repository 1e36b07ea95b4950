"""The noise of gradients, and the loss terms that single precision rounds to zero.

The gradient noise scale is tr(S) / |G|^2 with the mean G and the covariance S of the gradients of
single samples: the batch size above which larger batches help little (McCandlish et al. 2018). Both
are estimated without bias from gradients of groups of samples. A cross-entropy that is exactly zero
in float32 has lost its gradient: softmax collapse (Prieto et al. 2025).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.watch.measures import Labels
from penchant.watch.panel.instrument import LookMoment, Row
from penchant.watch.panel.losses import ProbeLosses

GROUPS = 8  # of the probe inputs, at most


def noise_scale(squares: Array, mean_square: float, size: int) -> float:
    """tr(S) / |G|^2 from the squared norms of gradients of disjoint groups of `size` samples.

    `mean_square` is the squared norm of the mean of these gradients. NaN where the scale is above
    the number of samples: then most of the mean is noise, and |G|^2 is not known.
    """
    count = len(squares)
    trace = size * count / (count - 1) * (float(np.mean(squares)) - mean_square)
    signal = mean_square - trace / (size * count)
    return trace / signal if trace < size * count * signal else math.nan


def zero_loss(outputs: Array, classes: NDArray[np.int64]) -> float:
    """The share of samples whose cross-entropy is exactly zero in float32."""
    logits = np.asarray(outputs, dtype=np.float32)
    shifted = logits - logits.max(axis=1, keepdims=True)
    own = shifted[np.arange(len(shifted)), np.asarray(classes)]
    terms = np.log(np.exp(shifted).sum(axis=1, dtype=np.float32)) - own
    return float(np.mean(terms == 0))


class Noise:
    """The instrument."""

    axis = ""
    members: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __init__(self, losses: ProbeLosses, labels: Labels | None):
        self.losses = losses
        self.classes = None if labels is None else labels.classes
        self.size = max(1, losses.count // GROUPS)

    def keep(self, moment: LookMoment) -> Any:
        return None

    def row(self, moment: LookMoment) -> Row:
        row: Row = {}
        if moment.outputs is not None and self.classes is not None:
            row["zero_loss"] = zero_loss(moment.outputs, self.classes)
        count = min(GROUPS, self.losses.count // self.size)
        if count < 2:
            return row
        order = np.random.default_rng(0).permutation(self.losses.count)
        batches = order[: count * self.size].reshape(count, self.size)
        squares: list[float] = []
        total: Any = 0
        for gradient in self.losses.gradients(moment.parameters, batches):
            squares.append(float(np.vdot(gradient, gradient)))
            total = total + gradient
        mean_square = float(np.vdot(total, total)) / count**2
        row["noise_scale"] = noise_scale(np.array(squares), mean_square, self.size)
        row["gradient_norm"] = math.sqrt(mean_square)
        return row
