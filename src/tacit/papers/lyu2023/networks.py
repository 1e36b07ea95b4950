"""A small non-linear network under weight decay: two layers of quadratic units, L = 3."""

from __future__ import annotations

import math

import numpy as np

from tacit.arguments import Array
from tacit.models.model import Model
from tacit.models.two_layer import two_layer
from tacit.models.unbiased import Difference
from tacit.problems.classification import Classification
from tacit.records import NumericalError
from tacit.training.exact.parameter import ParameterFlow
from tacit.training.stop import Time
from tacit.training.train import train


def network(log_alpha: float, seed: int) -> Model:
    """Two copies of a two-layer net with quadratic units, one minus the other."""
    return Difference(two_layer(3, log_alpha=log_alpha, activation="quadratic", seed=seed))


def points(seed: int) -> tuple[Classification, Array]:
    """Six Gaussian points in R^6 with labels that no linear classifier made, and new points."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, 6))
    labels = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    return Classification(X, labels, "logistic"), rng.standard_normal((200, 6))


def trained(problem: Classification, net: Model, log_alpha: float, z: float) -> Array:
    """The parameters after training with rate 1/alpha for the time z log alpha / rate."""
    rate = math.exp(-log_alpha)
    flow = ParameterFlow(rtol=1e-7, weight_decay=rate)
    path = train(net, problem, flow, stop=Time(z * log_alpha / rate))
    if not path.outcome.ok:
        raise NumericalError("training under decay", path.outcome)
    assert path.parameters is not None
    return np.asarray(path.parameters)
