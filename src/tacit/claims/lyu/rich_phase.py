"""L-T2: after the jump the parameters are a KKT point of the margin problem."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tacit.arguments import Array
from tacit.claims.lyu.networks import network, points
from tacit.claims.lyu.runs import data_sets, exact, joint, margin_points
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.measures.directions import angle
from tacit.models.diagonal import DiagonalNet
from tacit.models.model import Model
from tacit.papers.instances import slope
from tacit.problems.classification import Classification
from tacit.studies.sizes import Size
from tacit.training.exact.parameter import ParameterFlow
from tacit.training.stop import Time
from tacit.training.train import train

LATE = 0.5  # c: the claim looks at (1 + c) (1/rate) log alpha
LOG_ALPHAS = np.array([320.0, 640.0])
TRAINED = np.array([3.0, 6.0])  # log alpha of what is trained in its parameters
UNITS = np.array([4.0, 6.0])  # the same for the net with quadratic units


def kkt_residual(problem: Classification, net: Model, theta: Array) -> float:
    """How far theta, scaled to margin one, is from KKT: stationarity plus complementarity.

    min |theta|^2 with margins >= 1 asks for theta = sum_n nu_n grad f_n with nu >= 0, and nu_n > 0
    at margin one only. nu is taken proportional to what the logistic loss pulls with, so at a KKT
    point the margins must lie within 1/margin of each other for the residual to vanish.
    """
    margins = problem.y * net.predict(theta, problem.X)
    least = float(margins.min())
    if not least > 0:
        return math.inf
    assert net.homogeneity is not None
    scaled = theta / least ** (1 / net.homogeneity)
    weights = np.exp(-np.logaddexp(0.0, margins) + np.logaddexp(0.0, least))
    pull = net.pullback(scaled, problem.X, problem.y * weights)
    factor = float(pull @ scaled / (pull @ pull))
    left = float(np.linalg.norm(scaled - factor * pull) / np.linalg.norm(scaled))
    return left + float(weights @ (margins / least - 1) / weights.sum())


def falling(values: Array) -> float:
    """The exponent in log alpha between the two largest alphas; others may still fall faster."""
    return slope(LOG_ALPHAS[-2:], values[-2:])


def parameters_of(predictor: Array, log_alpha: float, z: float) -> Array:
    """u and v of depth 2 from u^2 - v^2 = beta and u v = alpha^2 e^(-2z), which training keeps."""
    product = math.exp(2 * (log_alpha - z))
    large = np.sqrt((np.abs(predictor) + np.hypot(predictor, 2 * product)) / 2)
    small = product / large
    up = predictor >= 0
    return np.concatenate([np.where(up, large, small), np.where(up, small, large)])


def by_exact_flow(problem: Classification) -> tuple[Array, Array]:
    """(predictors, KKT residuals) at (1 + c) log alpha, one per alpha."""
    predictors, residuals = [], []
    for a, rate in joint(LOG_ALPHAS):
        z = (1 + LATE) * a
        beta = exact(problem, a, rate, np.array([z])).predictor[0]
        predictors.append(beta)
        theta = parameters_of(beta, a, z)
        residuals.append(kkt_residual(problem, DiagonalNet(2, log_alpha=a), theta))
    return np.array(predictors), np.array(residuals)


def by_training(
    problem: Classification,
    make: Callable[[float], Model],
    log_alphas: Array,
    side: float = LATE,
) -> Array:
    """KKT residuals of parameters trained with rate = 1/alpha to (1 + side) log alpha."""
    residuals = []
    for a, rate in joint(log_alphas):
        net = make(a)
        theta = _trained(problem, net, a, (1 + side) * a / rate)
        residuals.append(kkt_residual(problem, net, theta))
    return np.array(residuals)


def _trained(problem: Classification, net: Model, log_alpha: float, t: float) -> Array:
    flow = ParameterFlow(rtol=1e-7, weight_decay=math.exp(-log_alpha))
    path = train(net, problem, flow, stop=Time(t))
    if not path.outcome.ok:
        raise RuntimeError(f"training under decay did not reach its end: {path.outcome}")
    assert path.parameters is not None
    return np.asarray(path.parameters)


def diagonal(depth: int) -> Callable[[float], Model]:
    return lambda log_alpha: DiagonalNet(depth, log_alpha=log_alpha)


def units(size: Size, side: float = LATE) -> Array:
    """The largest residuals of two layers of quadratic units, by log alpha."""
    seeds = (0,) if size == "quick" else range(4)
    rows = [
        by_training(points(s)[0], lambda a, s=s: network(a, s), UNITS, side)  # type: ignore[misc]
        for s in seeds
    ]
    return np.asarray(np.max(rows, axis=0))


@claim(
    "L-T2",
    statement="at time (1 + c)(1/rate) log alpha the parameters satisfy the KKT conditions of"
    " min |theta|^2 subject to margins of at least 1; for diagonal nets of depth 2 the predictor is"
    " the l1 max margin one",
    place="Main results, Theorem 2",
    seconds=20,
)
def theorem_2(size: Size) -> Evidence:
    problems = data_sets(3 if size == "quick" else 12)
    late = [by_exact_flow(p) for p in problems]
    limits = [margin_points(p) for p in problems]
    found = [
        np.array([float(angle(b, limit[1])) for b in betas])
        for (betas, _), limit in zip(late, limits, strict=True)
    ]
    away = min(
        float(angle(betas[-1], limit[0])) for (betas, _), limit in zip(late, limits, strict=True)
    )
    last = max(float(values[-1]) for values in found)
    rate = max(falling(values) for values in found)
    residuals = [values for _, values in late]
    power = max(falling(values) for values in residuals)
    trained = {
        D: np.max([by_training(p, diagonal(D), TRAINED) for p in problems[:2]], axis=0)
        for D in (2, 3)
    }
    falls = max(float(values[-1] / values[0]) for values in trained.values())
    soon = by_training(problems[0], diagonal(2), TRAINED, -LATE)
    nonlinear, before = units(size), units("quick", -LATE)
    to_kernel = [
        np.array([float(angle(b, limit[0])) for b in betas])
        for (betas, _), limit in zip(late, limits, strict=True)
    ]
    near = Check(
        "largest angle to the l1 max margin predictor at log alpha = 640, degrees",
        last,
        0.5,
        kind="at most",
    )
    exponent = Check(
        "largest exponent of the angle in log alpha, 320 to 640", rate, -1.0, 0.1, kind="at most"
    )
    stationary = Check(
        "largest exponent of the KKT residual in log alpha, 320 to 640",
        power,
        -1.0,
        0.1,
        kind="at most",
    )
    training = Check(
        "KKT residual of trained parameters (depths 2 and 3), log alpha = 6 over log alpha = 3",
        falls,
        0.75,
        kind="at most",
    )
    network_falls = Check(
        "KKT residual of a two-layer net with quadratic units (L = 3), log alpha"
        " = 6 over log alpha = 4",
        nonlinear[-1] / nonlinear[0],
        0.75,
        kind="at most",
    )
    return Evidence(
        ran=f"{len(problems)} data sets of 4 points in R^8, logistic loss, rate = 1/alpha, c = 1/2:"
        " log alpha 320 and 640 by the exact flow, 3 to 6 trained in the parameters at depths 2, 3;"
        " two layers of three quadratic units on labels that are not linear, log alpha 4 and 6",
        checks=[near, exponent, stationary, training, network_falls],
        controls={
            "the l2 max margin predictor after the jump": near.control(away),
            "the KKT residual before the jump": training.control(soon[-1] / soon[0]),
            "the same of the quadratic units": network_falls.control(before[-1] / before[0]),
            "the l2 max margin predictor: exponent of the angle to it": exponent.control(
                min(falling(values) for values in to_kernel)
            ),
        },
        findings=[
            "both the angle and the KKT residual fall like 1/log(1/rate): the margin problem is the"
            " limit of vanishing decay, and at a fixed rate the end is the minimiser of the"
            " penalised loss instead; residuals at log alpha = 3, 6: "
            + "; ".join(
                f"depth {D}: " + ", ".join(f"{v:.3g}" for v in values)
                for D, values in trained.items()
            )
            + "; quadratic units at 4, 6: "
            + ", ".join(f"{v:.3g}" for v in nonlinear),
        ],
        plots=[
            Plot(
                "KKT residual at (1 + c)(1/rate) log alpha",
                "log alpha",
                "residual",
                [Series(f"data set {k}", LOG_ALPHAS, v) for k, v in enumerate(residuals[:3])],
                x_scale="log",
                y_scale="log",
            )
        ],
    )
