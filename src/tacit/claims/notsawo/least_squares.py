"""N-T31: sparse recovery with the l1 penalty first goes to the least squares point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.claims.notsawo.runs import BETA, SOLVED, STEP, recovery, sparse_run, truth
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.models.linear import LinearPredictor
from tacit.problems.regression import Regression
from tacit.regularizers.norms import L1
from tacit.solvers.delay import least_squares_limit, memorization_steps
from tacit.studies.sizes import Size
from tacit.training.descent.methods import Subgradient
from tacit.training.record import At
from tacit.training.stop import Steps
from tacit.training.train import train

EARLY = [*range(1, 400), *np.unique(np.logspace(2.7, 4, 30).round()).astype(int).tolist()]
BETAS = np.array([1e-4, 1e-5, 1e-6])


@claim(
    "N-T31",
    statement="with f = (1/2)|X a - y|^2 + beta |a|_1 the iterates first move near the least"
    " squares solution (X^T X)^+ X^T y, at a step t1 < infinity; G dominates beta H until t1",
    place="Sparsity, Theorem 3.1 (i); Figure 5",
    seconds=6,
)
def theorem_3_1(size: Size) -> Evidence:
    seeds = (0, 1) if size == "quick" else range(6)
    problems = [*(recovery(seed) for seed in seeds), *(recovery(1, snr) for snr in (1e8, 10))]
    runs = [[sparse_run(p, STEP, float(b), EARLY) for b in BETAS] for p in problems]
    hats = [least_squares_limit(p.X, p.y, STEP) for p in problems]
    counts = [memorization_steps(p.X, p.y, STEP, SOLVED) for p in problems]
    late = max(
        abs(first(run) - count) for row, count in zip(runs, counts, strict=True) for run in row
    )
    gaps = np.array(
        [[nearest(run, hat.point) for run in row] for row, hat in zip(runs, hats, strict=True)]
    )
    truths = [nearest(row[-1], truth(p)) for row, p in zip(runs, problems, strict=True)]
    before, after = zip(*(dominance(run) for row in runs for run in row), strict=True)
    far = [from_afar(p) for p in problems]
    time = Check("largest |t1 - prediction| in steps", late, tolerance=1.0)
    near = Check(
        "largest |a(t) - a_hat|/|a_hat| at its nearest, beta = 1e-6",
        gaps[:, -1].max(),
        1e-2,
        kind="at most",
    )
    order = Check(
        "that distance over the one at beta = 1e-4",
        (gaps[:, -1] / gaps[:, 0]).max(),
        0.05,
        kind="at most",
    )
    fit = Check("least |G|/(beta |H|) before t1", min(before), 1.0, kind="at least")
    pull = Check("largest |G|/(beta |H|) after 400 steps", max(after), 1.0, kind="at most")
    return Evidence(
        ran=f"{len(problems)} sparse recoveries (100, 5, 30), {len(seeds)} without noise and one"
        " each with signal-to-noise ratios of 1e8 and 10, step 0.1, beta 1e-4 to 1e-6, start 1e-6,"
        " every step to 400 and some to 10000",
        checks=[time, near, order, fit, pull],
        controls={
            "the rate of the largest singular value": time.control(
                max(abs(fastest(p) - count) for p, count in zip(problems, counts, strict=True))
            ),
            "the truth for a_hat": near.control(min(truths)),
            "the printed a_hat for a start of 1 per coordinate": near.control(
                min(gap for gap, _ in far)
            ),
            "the truth for a_hat, over beta": order.control(
                min(
                    nearest(row[-1], truth(p)) / nearest(row[0], truth(p))
                    for row, p in zip(runs, problems, strict=True)
                )
            ),
            "dominance without an end": fit.control(max(after)),
        },
        findings=[
            f"t1 (loss {SOLVED:g}) is {', '.join(map(str, counts))} steps, whatever beta is; the"
            " nearest distance to a_hat is about"
            f" {gaps[0][-1] / BETAS[-1]:.0f} beta |a_hat|",
            "(X^T X)^+ X^T y is the limit of a start in the row space only: from 1 per coordinate"
            f" the iterates stay {min(gap for gap, _ in far):.2g} |a_hat| away from it, but come"
            f" within {max(gap for _, gap in far):.1e} of start + X^+ (y - X start)",
        ],
        plots=[balance(runs[0][-1])],
    )


def first(run: Any) -> float:
    """The first recorded step with the loss at its level."""
    return float(run.step.values[np.argmax(run.loss.values <= SOLVED)])


def nearest(run: Any, point: Array) -> float:
    """The least |a(t) - point| / |point| of a run."""
    gaps = np.linalg.norm(run.predictor.values - point, axis=1)
    return float(gaps.min() / np.linalg.norm(point))


def dominance(run: Any) -> tuple[float, float]:
    """The least |G|/(beta|H|) up to t1 and the largest after 400 steps."""
    ratio = run.gradient_norm.values / run.penalty_gradient_norm.values
    steps = run.step.values
    return float(ratio[steps < first(run)].min()), float(ratio[steps > 400].max())


def fastest(problem: Regression) -> int:
    """t1 if every direction went as fast as the fastest one."""
    top = float(np.linalg.norm(problem.X, 2)) ** 2
    loss = 0.5 * float(problem.y @ problem.y)
    return math.ceil(math.log(loss / SOLVED) / (-2 * math.log(abs(1 - STEP * top))))


def from_afar(problem: Regression) -> tuple[float, float]:
    """How near a run from 1 in every coordinate comes to the printed and to the right point."""
    penalty, record = BETA * L1(), At(range(100, 2000, 50))
    method, model = Subgradient(STEP), LinearPredictor(1.0)
    run = train(model, problem, method, penalty=penalty, stop=Steps(2000), record=record).dataset
    start = np.ones(problem.dimension)
    points = [least_squares_limit(problem.X, problem.y, STEP, s).point for s in (None, start)]
    return nearest(run, points[0]), nearest(run, points[1])


def balance(run: Any) -> Plot:
    steps = run.step.values[1:]
    series = [
        Series("|G|", steps, run.gradient_norm.values[1:]),
        Series("beta |H|", steps, run.penalty_gradient_norm.values[1:]),
    ]
    return Plot("which gradient dominates", "steps", "norm", series, "log", "log")
