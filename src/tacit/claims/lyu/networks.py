"""A small non-linear network under weight decay, beside the kernel SVM of its start."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from tacit.arguments import Array
from tacit.measures.assumptions import assumptions
from tacit.measures.directions import angle
from tacit.measures.kernels.machines import kernel_svm
from tacit.models.difference import Difference
from tacit.models.model import Model
from tacit.models.network import two_layer
from tacit.problems.classification import Classification
from tacit.studies.sizes import Size
from tacit.training.exact.parameter import ParameterFlow
from tacit.training.stop import Time
from tacit.training.train import train

LOG_ALPHAS = (2.0, 4.0, 6.0)
EARLY = 0.5


@dataclasses.dataclass(frozen=True)
class SmallNets:
    """Angles in degrees between outputs on new points and the kernel SVM's, by alpha."""

    angles: Array
    elsewhere: Array  # the same against the kernel SVM of another start
    assumed: bool
    description: str = "quadratic activation and the difference trick (L = 3)"

    @property
    def ratio(self) -> float:
        return float(self.angles[-1] / self.angles[0])

    @property
    def control(self) -> float:
        return float(self.elsewhere[-1] / self.elsewhere[0])

    @property
    def described(self) -> str:
        shown = zip(LOG_ALPHAS, self.angles, strict=True)
        return ", ".join(f"{value:.3g} at log alpha = {a:g}" for a, value in shown)


def network(log_alpha: float, seed: int) -> Model:
    """Two copies of a two-layer net with quadratic units, one minus the other."""
    return Difference(two_layer(3, log_alpha=log_alpha, activation="quadratic", seed=seed))


def small_nets(size: Size) -> SmallNets:
    """The nets of one seed at every alpha, trained in their parameters with rate = 1/alpha."""
    seeds = (0,) if size == "quick" else range(4)
    rows = np.array([[_one(seed, a) for a in LOG_ALPHAS] for seed in seeds])
    net, problem = network(0.0, 0), points(0)[0]
    found = assumptions(net, problem.X)
    assumed = found.homogeneous and found.smooth and found.zero_output
    return SmallNets(rows[..., 0].max(axis=0), rows[..., 1].min(axis=0), assumed)


def points(seed: int) -> tuple[Classification, Array]:
    """Six Gaussian points in R^6 with labels that no linear classifier made, and new points."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, 6))
    labels = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    return Classification(X, labels, "logistic"), rng.standard_normal((200, 6))


def _one(seed: int, log_alpha: float) -> tuple[float, float]:
    problem, new = points(seed)
    net, rate = network(log_alpha, seed), math.exp(-log_alpha)
    flow = ParameterFlow(rtol=1e-7, weight_decay=rate)
    path = train(net, problem, flow, stop=Time((1 - EARLY) * log_alpha / rate))
    if not path.outcome.ok:
        raise RuntimeError(f"the small net did not train to its end: {path.outcome}")
    assert path.parameters is not None
    outputs = net.predict(path.parameters, new)
    here = kernel_svm(net, problem.X, problem.y).predict(new)
    there = kernel_svm(network(log_alpha, seed + 100), problem.X, problem.y).predict(new)
    return float(angle(outputs, here)), float(angle(outputs, there))
