"""N-F-depth: depth instead of a penalty, sparse recovery from fewer samples."""

from __future__ import annotations

import itertools
import math

import numpy as np

from tacit.arguments import Array
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.models.diagonal import DiagonalNet
from tacit.models.linear import LinearPredictor
from tacit.models.model import Model
from tacit.problems.recovery import sparse_recovery
from tacit.problems.regression import Regression
from tacit.regularizers.norms import L1, L2
from tacit.regularizers.q import Q
from tacit.regularizers.regularizer import Regularizer
from tacit.solvers.interpolate import interpolate
from tacit.studies.sizes import Size
from tacit.training.descent.methods import GradientDescent
from tacit.training.record import LogSpaced
from tacit.training.stop import Loss, Steps
from tacit.training.train import train

DEPTHS = (1, 2, 3, 4)
ALPHA, STEP, BUDGET = 1e-2, 0.1, 1_000_000  # N: start per layer, step and number of steps
SAMPLES = np.array([10, 20, 30, 40, 50, 60, 70, 80, 90, 100])
FEW = slice(2, 5)  # of SAMPLES: 30 to 50, where l1 always recovers and least squares does not
GOOD = 1e-2  # relative error of a recovery


def problems(samples: int, seeds: int) -> list[Regression]:
    return [
        sparse_recovery(samples, 100, sparsity=5, seed=seed, snr=math.inf) for seed in range(seeds)
    ]


def bias_of(depth: int, alpha: float = ALPHA) -> Regularizer:
    """What descent from this start minimises among the interpolators, as its step goes to 0."""
    return L2() if depth == 1 else Q(depth, alpha=alpha)


def error(problem: Regression, point: Array) -> float:
    """|a - a*| / |a*|."""
    assert problem.truth is not None
    return float(np.linalg.norm(point - problem.truth) / np.linalg.norm(problem.truth))


def predicted(regularizer: Regularizer, samples: int, seeds: int) -> float:
    """The median error of the interpolator that the regularizer selects."""
    errors = [error(p, interpolate(p.X, p.y, regularizer).beta) for p in problems(samples, seeds)]
    return float(np.median(errors))


def curve(regularizer: Regularizer, seeds: int) -> Array:
    """`predicted` over the numbers of samples."""
    return np.array([predicted(regularizer, int(n), seeds) for n in SAMPLES])


def needed(errors: Array) -> int:
    """The least number of samples from which on the error is good."""
    bad = np.flatnonzero(errors > GOOD)
    return int(SAMPLES[bad[-1] + 1]) if len(bad) else int(SAMPLES[0])


def least_fall(curves: list[Array]) -> float:
    """The least fall of the samples needed from a depth to the next, up to the third."""
    return float(-np.diff([needed(errors) for errors in curves[:3]]).max())


def net(depth: int, signed: bool = True) -> Model:
    """N's start: 1e-6 per coordinate without depth, 1e-2 per layer with it."""
    return LinearPredictor(1e-6) if depth == 1 else DiagonalNet(depth, alpha=ALPHA, signed=signed)


def trained(problem: Regression, model: Model) -> Array:
    """Where N's descent without a penalty is after its million steps, or at loss 1e-14."""
    stop = [Steps(BUDGET), Loss(1e-14)]
    path = train(model, problem, GradientDescent(STEP), stop=stop, record=LogSpaced(6))
    return path.predictor


def miss(problem: Regression, point: Array, regularizer: Regularizer) -> float:
    """The distance of `point` from what the regularizer selects, over |a*|."""
    assert problem.truth is not None
    goal = interpolate(problem.X, problem.y, regularizer).beta
    return float(np.linalg.norm(point - goal) / np.linalg.norm(problem.truth))


def fitted(problem: Regression, point: Array) -> bool:
    """Whether training is over: what is left of the labels is no more than a good error."""
    return bool(np.linalg.norm(problem.X @ point - problem.y) <= GOOD * np.linalg.norm(problem.y))


def steepest(curves: list[Array]) -> float:
    """The largest ratio of the error at one depth to that at the depth before, at few samples."""
    return float(max((b / a)[FEW].max() for a, b in itertools.pairwise(curves)))


@claim(
    "N-F-depth",
    statement="(ours: N only names its figure) without a penalty, from a small start, a deeper"
    " diagonal net recovers a sparse vector from fewer samples: descent that fits goes to the"
    " minimiser of Q of its depth; with N = 30 to 50 of n = 100 every layer up to the fourth"
    " at least halves the median error of that minimiser, and the samples needed fall up to"
    " the third",
    place="Overparameterization with Depth: Sparse Recovery",
    seconds=15,
)
def depth_for_penalty(size: Size) -> Evidence:
    seeds, runs = (5, 1) if size == "quick" else (15, 4)
    curves = [curve(bias_of(depth), seeds) for depth in DEPTHS]
    sparse = curve(L1(), seeds)
    large = [curve(bias_of(depth, 1.0), seeds) for depth in DEPTHS]
    counts = [needed(errors) for errors in curves]
    drawn = problems(30, runs)
    ends = [[trained(p, net(depth)) for depth in DEPTHS] for p in drawn]
    rows = list(zip(drawn, ends, strict=True))
    over = [
        (d, p, end) for p, row in rows for d, end in zip(DEPTHS, row, strict=True) if fitted(p, end)
    ]
    apart = max(miss(p, end, bias_of(d)) for d, p, end in over)
    shallow = min(miss(p, end, L2()) for p, row in rows for end in row[1:])
    unsigned = [trained(drawn[0], net(depth, signed=False)) for depth in (2, 3)]
    reached = [float(np.median([error(p, row[k]) for p, row in rows])) for k in range(len(DEPTHS))]
    exact = Check(
        "largest |a - argmin Q|/|a*| of descent that has fitted", apart, 0.0, 0.01, "at most"
    )
    halves = Check(
        "largest ratio of the median errors at successive depths, N = 30 to 50",
        steepest(curves),
        0.5,
        0.0,
        "at most",
    )
    fewer = Check(
        "least fall of the samples needed from a depth to the next, up to 3",
        least_fall(curves),
        1.0,
        0.0,
        "at least",
    )
    falls = Check(
        "largest ratio of the errors of descent at successive depths up to 3, N = 30",
        max(b / a for a, b in itertools.pairwise(reached[:3])),
        0.75,
        0.0,
        "at most",
    )
    same = [predicted(Q(depth, mu=1e-4), 30, seeds) for depth in DEPTHS[1:]]
    return Evidence(
        ran=f"sparse recovery, n = 100, s = 5, no noise: {seeds} problems for each N = 10 to 100"
        f" and depth 1 to 4 by the exact minimiser; {runs} with N = 30 by descent, step 0.1, up to"
        " 1e6 steps, start 1e-2 per layer (1e-6 for depth 1), w+^L - w-^L",
        premises={
            "some run of every depth has fitted": (
                {d for d, _, _ in over} == set(DEPTHS),
                f"{len(over)} of {4 * runs} runs",
            )
        },
        checks=[halves, fewer, exact, falls],
        controls={
            "a start of 1 per layer": halves.control(steepest(large)),
            "a start of 1 per layer, samples needed": fewer.control(least_fall(large)),
            "the least l2 norm at every depth": exact.control(shallow),
            "depth 2 at every depth": exact.control(
                min(miss(p, row[-1], bias_of(2)) for p, row in rows)
            ),
            "w^L without the second copy": exact.control(
                min(
                    miss(drawn[0], end, bias_of(d)) for d, end in zip((2, 3), unsigned, strict=True)
                )
            ),
            "w^L without the second copy, depth 3 over 2": falls.control(
                error(drawn[0], unsigned[1]) / error(drawn[0], unsigned[0])
            ),
        },
        findings=[
            f"samples needed for a median error of {GOOD:g}: "
            + ", ".join(f"{n} at depth {d}" for d, n in zip(DEPTHS, counts, strict=True))
            + f", {needed(sparse)} with the least l1 norm",
            "with N = 20 the layers multiply the error of the minimiser by only "
            + ", ".join(f"{b[1] / a[1]:.2f}" for a, b in itertools.pairwise(curves)),
            f"with N = 10 no depth helps: errors {', '.join(f'{e[0]:.2f}' for e in curves)}, and"
            f" {sparse[0]:.2f} for the least l1 norm",
            "the start matters as much as the depth: at alpha^L = 1e-4 for every depth the errors"
            f" at N = 30 are {', '.join(f'{e:.2g}' for e in same)} for depths 2, 3, 4",
            "after at most 1e6 steps descent has the errors "
            + ", ".join(f"{e:.2g}" for e in reached)
            + " at N = 30, the minimisers "
            + ", ".join(f"{e[2]:.2g}" for e in curves)
            + f": a fourth layer is slow; {4 * runs - len(over)} of {4 * runs} runs did not fit",
            "a product of layers that all start at 1e-2 is w^L and does not change sign: its errors"
            f" are {', '.join(f'{error(drawn[0], e):.2f}' for e in unsigned)} at depths 2, 3; it"
            " needs a second copy (ours) or a start that differs between layers",
        ],
        plots=[
            Plot(
                "depth instead of a penalty",
                "samples",
                "median |a - a*|/|a*|",
                [
                    *(
                        Series(f"depth {d}", SAMPLES[:-1], e[:-1])
                        for d, e in zip(DEPTHS, curves, strict=True)
                    ),
                    Series("descent", np.full(len(reached), 30), np.array(reached), "points"),
                ],
                "linear",
                "log",
            )
        ],
    )
