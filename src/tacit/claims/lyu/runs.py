"""Training under weight decay for claims, read off at multiples z of 1/rate."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np

from tacit.arguments import Array
from tacit.measures.directions import angle
from tacit.models.diagonal import DiagonalNet
from tacit.problems.classification import Classification, separable_points
from tacit.regularizers.norms import L1, L2
from tacit.solvers.max_margin import max_margin
from tacit.training.exact.dual.flow import DualFlow
from tacit.training.exact.parameter import ParameterFlow
from tacit.training.exact.task import Problem
from tacit.training.path import Path
from tacit.training.record import At
from tacit.training.stop import Time
from tacit.training.train import train

APART = 30.0  # degrees between the kernel and the rich limit


@dataclasses.dataclass(frozen=True)
class Moments:
    """What a run was at the times z/rate: one row of `predictor` and one number of each per z."""

    z: Array
    predictor: Array
    turn: Array  # degrees between the parameters and their start
    norm: Array  # |theta| e^z / |theta0|
    log_loss: Array

    @property
    def smoothed_margin(self) -> Array:
        return -self.log_loss


def exact(
    problem: Problem, log_alpha: float, rate: float, z: Array, depth: int = 2, rtol: float = 1e-7
) -> Moments:
    """The dual flow of a diagonal net, at any scale."""
    net, flow = DiagonalNet(depth, log_alpha=log_alpha), DualFlow(rtol=rtol, weight_decay=rate)
    return _moments(train(net, problem, flow, record=At(times=np.asarray(z) / rate)), rate, z)


def in_parameters(
    problem: Problem, log_alpha: float, rate: float, z: Array, depth: int = 2, rtol: float = 1e-9
) -> Moments:
    """The same trained in its parameters, with no use of any closed form."""
    times = np.asarray(z) / rate
    net, flow = DiagonalNet(depth, log_alpha=log_alpha), ParameterFlow(rtol=rtol, weight_decay=rate)
    path = train(net, problem, flow, stop=Time(times[-1]), record=At(times=times))
    return _moments(path, rate, z)


def _moments(path: Path, rate: float, z: Array) -> Moments:
    if not path.outcome.ok:
        raise RuntimeError(f"training under decay did not reach its end: {path.outcome}")
    dataset = path.dataset
    # times asked for are recorded exactly, up to the rounding of a logarithm
    times, wanted = dataset["t"].values, np.asarray(z) / rate
    rows = [int(np.argmin(np.abs(times - t))) for t in wanted]
    if np.abs(times[rows] / wanted - 1).max() > 1e-9:
        raise RuntimeError("training under decay was not recorded at the times asked for")
    norms = dataset["parameter_norm"].values
    with np.errstate(over="ignore"):  # long after the transition the ratio means nothing
        grown = norms[rows] / norms[0] * np.exp(z)
    return Moments(
        np.asarray(z, dtype=float),
        dataset["predictor"].values[rows],
        dataset["turn"].values[rows],
        grown,
        dataset["log_loss"].values[rows],
    )


def data_sets(count: int, loss: str = "logistic") -> list[Classification]:
    """Four points in R^8 each, whose l2 and l1 max margin predictors are APART or more."""
    drawn = (separable_points(4, 8, margin=0.3, seed=s, loss=loss) for s in itertools.count())
    told_apart = (p for p in drawn if float(angle(*margin_points(p))) >= APART)
    return list(itertools.islice(told_apart, count))


def margin_points(problem: Classification) -> tuple[Array, Array]:
    """The l2 and the l1 max margin predictor: the kernel and the rich limit of depth 2."""
    found = (max_margin(problem.X, problem.y, norm).beta for norm in (L2(), L1()))
    return next(found), next(found)


def joint(log_alphas: Array) -> list[tuple[float, float]]:
    """(log alpha, rate) with rate = 1/alpha: both limits of L at once."""
    return [(float(a), math.exp(-float(a))) for a in log_alphas]
