"""A small non-linear network under weight decay, beside the kernel SVM of its start."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.models.difference import Difference
from tacit.models.model import Model
from tacit.models.network import two_layer
from tacit.problems.classification import Classification


def network(log_alpha: float, seed: int) -> Model:
    """Two copies of a two-layer net with quadratic units, one minus the other."""
    return Difference(two_layer(3, log_alpha=log_alpha, activation="quadratic", seed=seed))


def points(seed: int) -> tuple[Classification, Array]:
    """Six Gaussian points in R^6 with labels that no linear classifier made, and new points."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, 6))
    labels = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    return Classification(X, labels, "logistic"), rng.standard_normal((200, 6))
