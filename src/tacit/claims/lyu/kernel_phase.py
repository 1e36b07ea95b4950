"""L-T1: before the jump the classifier is the kernel SVM of the start, though its norm decays."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.claims.lyu.networks import small_nets
from tacit.claims.lyu.runs import Moments, data_sets, exact, in_parameters, joint, margin_points
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.measures.directions import angle
from tacit.measures.kernels.tangent import kernel_predictor
from tacit.models.diagonal import DiagonalNet
from tacit.papers.instances import distance, slope
from tacit.problems.classification import Classification
from tacit.problems.regression import Regression, sparse_regression
from tacit.regularizers.norms import L2
from tacit.solvers.max_margin import max_margin
from tacit.studies.sizes import Size

EARLY = 0.5  # c: the claim looks at (1 - c) (1/rate) log alpha
SQUARES = np.array([14.0, 16.0])  # log alpha of the regressions, at c = 1/8
LOG_ALPHAS = np.array([20.0, 80.0, 160.0, 320.0, 640.0])
TURNED = slice(0, 3)  # beyond, the turn of the parameters is below float64
LAST = slice(2, 5)  # where the law of the angle is read off


def early(problem: Classification | Regression, depth: int) -> list[Moments]:
    """The runs at half of (1 - c) log alpha / rate, and at it, with rate = 1/alpha."""
    return [
        exact(problem, a, rate, (1 - EARLY) * a * np.array([0.5, 1.0]), depth)
        for a, rate in joint(LOG_ALPHAS)
    ]


def angles(runs: list[Moments], target: Array) -> Array:
    return np.array([float(angle(run.predictor[-1], target)) for run in runs])


def random_kernel_svm(problem: Classification, seed: int = 0) -> Array:
    """The max margin predictor of a kernel with random weights on the features."""
    weights = np.exp(np.random.default_rng(seed).normal(0, 1, problem.dimension))
    return max_margin(problem.X, problem.y, L2(weights=weights)).beta


def squares(seeds: range) -> Array:
    """Distances to the kernel interpolant at c = 1/8, one row per problem."""
    rows = []
    for seed in seeds:
        problem = sparse_regression(4, 8, sparsity=2, noise=0.0, seed=seed)
        target = kernel_predictor(DiagonalNet(2, alpha=1.0), problem.X, problem.y)
        runs = [
            exact(problem, a, rate, np.array([0.875 * a]), rtol=1e-8) for a, rate in joint(SQUARES)
        ]
        rows.append([distance(run.predictor[0], target) for run in runs])
    return np.array(rows)


@claim(
    "L-T1",
    statement="with start alpha theta0 and weight decay, at time (1 - c)(1/rate) log alpha the"
    " model is the kernel SVM of its start (for diagonal nets the l2 max margin predictor, for"
    " regression the kernel interpolant), and until then the parameters keep their direction while"
    " their norm decays like e^(-rate t)",
    place="Main results, Theorem 1; Key insights, kernel regime",
    seconds=20,
)
def theorem_1(size: Size) -> Evidence:
    problems = data_sets(3 if size == "quick" else 12)
    cases = {(k, depth): early(p, depth) for k, p in enumerate(problems) for depth in (2, 3)}
    limits = {k: margin_points(p) for k, p in enumerate(problems)}
    found = {(k, D): angles(runs, limits[k][0]) for (k, D), runs in cases.items()}
    last = max(float(values[-1]) for values in found.values())
    rate = max(bent(cases[case], values) for case, values in found.items())
    turning = max((_turning(runs, D) for (_, D), runs in cases.items()), key=abs)
    fading = max(abs(run.norm[-1] - 1) for runs in cases.values() for run in runs)
    fits = squares(range(2 if size == "quick" else 8))
    power = max((slope(np.exp(SQUARES), row) + 0.5 for row in fits), key=abs)
    nets = small_nets(size)
    agreement = max(_agreement(problem, depth) for problem in problems[:2] for depth in (2, 3))
    near = Check(
        "largest angle to the kernel SVM at log alpha = 640, degrees", last, 0.5, kind="at most"
    )
    falls = Check(
        "largest relative change of the slope of 1/tan(angle) in log(1/loss), log alpha 160 to 640",
        rate,
        tolerance=0.1,
    )
    turns = Check(
        "largest deviation of the exponent of turn/g in alpha from -L c", turning, tolerance=0.02
    )
    shrinks = Check(
        "largest deviation of |theta| e^(rate t)/|theta0| from 1", fading, tolerance=1e-6
    )
    interpolates = Check(
        "largest deviation of the exponent of the distance to the kernel"
        " interpolant in alpha from -4c (c = 1/8)",
        power,
        tolerance=0.1,
    )
    nonlinear = Check(
        "angle of a small net's outputs to its kernel SVM's, largest alpha over smallest",
        nets.ratio,
        0.6,
        kind="at most",
    )
    return Evidence(
        ran=f"{len(problems)} data sets of 4 points in R^8, depths 2 and 3, logistic loss, rate ="
        " 1/alpha, c = 1/2, log alpha 20 to 640 by the exact flow; regression at c = 1/8; a"
        f" two-layer net with {nets.description} trained in its parameters",
        checks=[near, falls, turns, shrinks, interpolates, nonlinear],
        premises={
            "the exact flow is training in the parameters (alpha = e^3, relative)": (
                agreement < 1e-5,
                agreement,
            ),
            "the small net satisfies the assumptions of L": (nets.assumed, nets.described),
        },
        controls={
            "the l1 max margin predictor": near.control(
                min(float(angles(runs, limits[k][1])[-1]) for (k, _), runs in cases.items())
            ),
            "the SVM of a random kernel": near.control(
                min(
                    float(angles(cases[k, 2], random_kernel_svm(p))[-1])
                    for k, p in enumerate(problems)
                )
            ),
            "an angle like 1/sqrt(log(1/loss))": falls.control(
                min(bent(cases[case], values, power=2) for case, values in found.items())
            ),
            "a direction that no longer turns: the turn at half the time, depth 2": turns.control(
                max(_turning(runs, D, record=0) for (_, D), runs in cases.items() if D == 2)
            ),
            "a small net against the SVM of another start": nonlinear.control(nets.control),
        },
        findings=[
            "the angle to the kernel SVM falls like 1/log alpha and no faster: the predictor is"
            " log(1/loss) times the SVM plus a constant, and log(1/loss) is about (2c + 1) log"
            " alpha here; the parameters keep their direction to alpha^(-L c), much better",
            f"outputs of the small net against its kernel SVM, degrees: {nets.described}",
        ],
        plots=[
            Plot(
                "angle to the kernel SVM at (1 - c)(1/rate) log alpha",
                "log alpha",
                "angle (degrees)",
                [
                    Series(f"data set {k}, depth {D}", LOG_ALPHAS, values)
                    for (k, D), values in found.items()
                    if k < 3
                ],
                x_scale="log",
                y_scale="log",
            )
        ],
    )


def bent(runs: list[Moments], degrees: Array, power: int = 1) -> float:
    """By how much the line of 1/tan(angle)^power over log(1/loss) bends, relative to its slope."""
    heights = np.tan(np.radians(degrees[LAST])) ** -power
    first, second = np.diff(heights) / np.diff(levels(runs)[LAST])
    return float(abs(second / first - 1))


def levels(runs: list[Moments]) -> Array:
    return np.array([float(run.smoothed_margin[-1]) for run in runs])


def _turning(runs: list[Moments], depth: int, record: int = -1) -> float:
    """The deviation of the exponent of turn/g in alpha from -L c: turn is |delta| / |theta|."""
    turns = np.array([np.radians(run.turn[record]) for run in runs[TURNED]])
    exponent = np.polyfit(LOG_ALPHAS[TURNED], np.log(turns / levels(runs)[TURNED]), 1)[0]
    return float(exponent) + depth * EARLY


def _agreement(problem: Classification, depth: int) -> float:
    """How far the exact flow is from training in the parameters, through the transition."""
    z = np.array([0.5, 1.5, 3.0, 4.5])
    one = exact(problem, 3.0, 1e-3, z, depth, rtol=1e-9)
    other = in_parameters(problem, 3.0, 1e-3, z, depth)
    return max(distance(a, b) for a, b in zip(one.predictor, other.predictor, strict=True))
