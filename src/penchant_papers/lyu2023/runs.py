"""Training under weight decay: diagonal nets at multiples of 1/rate, and quadratic units."""

from __future__ import annotations

import functools
import math

import numpy as np

from penchant import (
    L1,
    L2,
    Classification,
    DiagonalNet,
    DualFlow,
    NumericalError,
    ParameterFlow,
    Path,
    Time,
    max_margin,
    train,
)
from penchant.lab import Array, Dataset, drawn
from penchant.measures import angle
from penchant.models import Difference, Model
from penchant.problems import Problem, separable_points
from penchant.record import At
from penchant.regularizers import Regularizer
from penchant_papers.moroshko2020.nets import QuadraticUnits

APART = 30.0  # degrees between the kernel and the rich limit
TIE = 0.05  # how far a max margin of the data is from a tie


def exact(
    problem: Problem, log_alpha: float, rate: float, z: Array, depth: int = 2, rtol: float = 1e-7
) -> Dataset:
    """The dual flow of a diagonal net at the times z/rate, at any scale of the start.

    The integrator may stall at one tolerance and not at a smaller or larger one: then the run is
    repeated with tolerances three and ten times as large.
    """
    net, record = DiagonalNet(depth, log_alpha=log_alpha), At(times=np.asarray(z) / rate)
    for tolerance in (rtol, 3 * rtol, 10 * rtol):
        flow = DualFlow(rtol=tolerance, weight_decay=rate)
        path = train(net, problem, flow, record=record)
        if path.outcome.ok:
            return moments(path, rate, z)
    raise NumericalError("exact", path.outcome)


def in_parameters(
    problem: Problem, log_alpha: float, rate: float, z: Array, depth: int = 2, rtol: float = 1e-9
) -> Dataset:
    """The same trained in its parameters, with no use of any closed form."""
    times = np.asarray(z) / rate
    net, flow = DiagonalNet(depth, log_alpha=log_alpha), ParameterFlow(rtol=rtol, weight_decay=rate)
    stop, record = Time(times[-1]), At(times=times)
    path = train(net, problem, flow, stop=stop, record=record, throw=True)
    return moments(path, rate, z)


def moments(path: Path, rate: float, z: Array) -> Dataset:
    """The records of a path at the times z/rate; `growth` is |theta| e^z / |theta0|."""
    dataset = path.dataset
    # the rules of recording give these times exactly, up to the rounding of a logarithm
    times, wanted = dataset["t"].values, np.asarray(z) / rate
    rows = [int(np.argmin(np.abs(times - t))) for t in wanted]
    if np.abs(times[rows] / wanted - 1).max() > 1e-9:
        raise RuntimeError("training under decay was not recorded at the times z/rate")
    norms = dataset["parameter_norm"].values
    with np.errstate(over="ignore"):  # long after the transition the ratio has no meaning
        grown = norms[rows] / norms[0] * np.exp(z)
    return dataset.isel(time=rows).assign(
        growth=("time", grown), smoothed_margin=-dataset["log_loss"].isel(time=rows)
    )


@functools.lru_cache(maxsize=64)
def data_set(seed: int, loss: str = "logistic", *, clear_kernel: bool = False) -> Classification:
    """Four points in R^8 whose max margin predictors in l2 and l1 are APART, the latter by a TIE.

    With `clear_kernel` the one in l2, the kernel SVM of depth 2 or more, is away from a tie as
    well. Sets are drawn until one has these properties, which takes two or three draws.
    """

    def suits(problem: Classification) -> bool:
        if float(angle(*margin_points(problem))) < APART or tie(problem) < TIE:
            return False
        return not clear_kernel or tie(problem, L2()) >= TIE

    return drawn(
        lambda k: separable_points(4, 8, margin=0.3, seed=k, loss=loss), suits, seed=1000 * seed
    )[0]


def tie(problem: Classification, norm: Regularizer | None = None) -> float:
    """How far a max margin is from a tie, after which training would turn much later.

    The least of: 1 - |X^T nu| off its support, margins above 1, and dual weights nu of the margin
    over the largest. A point with the margin 1 + delta keeps the weight loss^delta in training.
    The norm is l1 unless another is given.
    """
    solution = max_margin(problem.X, problem.y, norm or L1())
    Z, nu, beta = problem.signed_rows, np.abs(solution.dual), solution.beta
    margins, off = Z @ beta, np.abs(beta) < 1e-8 * np.abs(beta).max()
    touching = margins < 1 + 1e-7
    slack = 1 - np.abs(nu @ Z)[off].max(initial=0.0)
    above = margins[~touching].min(initial=np.inf) - 1
    return float(min(slack, above, nu[touching].min() / nu.max()))


def margin_points(problem: Classification) -> tuple[Array, Array]:
    """The l2 and the l1 max margin predictor: the kernel and the rich limit of depth 2."""
    predictors = (max_margin(problem.X, problem.y, norm).beta for norm in (L2(), L1()))
    return next(predictors), next(predictors)


def joint_rate(log_alpha: float) -> float:
    """The rate 1/alpha: both limits of L at once."""
    return math.exp(-log_alpha)


def network(log_alpha: float, seed: int) -> Model:
    """Two layers of quadratic units (L = 3), one copy minus another."""
    return Difference(QuadraticUnits(math.exp(log_alpha), seed))


def points(seed: int) -> tuple[Classification, Array]:
    """Six Gaussian points in R^6 with labels that no linear classifier made, and new points."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, 6))
    labels = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    return Classification(X, labels, "logistic"), rng.standard_normal((200, 6))


def trained(problem: Classification, net: Model, log_alpha: float, z: float) -> Array:
    """The parameters after training with rate 1/alpha for the time z log alpha / rate."""
    rate = joint_rate(log_alpha)
    flow = ParameterFlow(rtol=1e-7, weight_decay=rate)
    path = train(net, problem, flow, stop=Time(z * log_alpha / rate), throw=True)
    assert path.parameters is not None
    return np.asarray(path.parameters)
