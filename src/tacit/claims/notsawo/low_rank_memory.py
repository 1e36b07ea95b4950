"""N-T34: low-rank recovery with the nuclear norm first goes to the least squares point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.claims.notsawo.nuclear_runs import (
    SOLVED,
    memorized,
    more,
    noisy,
    nuclear_run,
    printed,
    small,
    truth,
)
from tacit.claims.notsawo.runs import crossing
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.papers.instances import slope
from tacit.problems.matrices import MatrixProblem
from tacit.solvers.delay import memorization_steps
from tacit.studies.sizes import Size

STEP = 0.1  # N
EARLY = np.array([1e-4, 1e-5, 1e-6])  # too weak to disturb the memorization


@claim(
    "N-T34",
    statement="subgradient descent on (1/2)|X vec(A) - y|^2 + beta |A|_* first goes near"
    " vec(A_hat) = (X^T X)^+ X^T y, at a finite step t1; until then G dominates beta H, and"
    " from then on it does not",
    place="Low-rankness, Theorems 3.4 and 3.5 (i); Figure 5",
    seconds=5,
)
def theorem_3_4(size: Size) -> Evidence:
    clean = printed() if size == "quick" else [*printed(), *small(), *more()]
    problems = [*clean, *(noisy(clean[0], snr) for snr in (1e8, 10))]
    record = np.unique(np.geomspace(1, 5000, 120).astype(int)).tolist()
    runs = [[nuclear_run(p, STEP, float(b), record) for b in EARLY] for p in problems]
    pairs = list(zip(problems, runs, strict=True))
    t1 = [memorization_steps(p.design, p.y, STEP, SOLVED) for p in problems]
    seen = [first(row[-1]) for row in runs]
    gaps = [[nearest(run, memorized(p)) for run in row] for p, row in pairs]
    before, after = zip(*(dominance(run) for row in runs for run in row), strict=True)
    late = max(abs(s / t - 1) for s, t in zip(seen, t1, strict=True))
    on_time = Check("largest |t1/t1 of plain descent - 1|", late, tolerance=0.05)
    near = Check(
        "largest least |A(t) - A_hat|/|A_hat| at beta = 1e-6",
        max(r[-1] for r in gaps),
        0.0,
        1e-3,
        "at most",
    )
    power = min(slope(EARLY, np.array(row)) for row in gaps)
    order = Check("least exponent of that distance in beta", power, 0.8, 0.0, "at least")
    rules = Check("least |G|/(beta |H|) before t1", min(before), 1.0, 0.0, "at least")
    yields = Check("largest |G|/(beta |H|) at the end", max(after), 1.0, 0.01, "at most")
    far = min(nearest(row[-1], truth(p)) for p, row in pairs)
    return Evidence(
        ran=f"{len(problems)} problems, the first 10 x 10 of rank 2 from 70 entries or Gaussian"
        " measurements, the last two with signal-to-noise ratios of 1e8 and 10, step 0.1, beta 1e-4"
        " to 1e-6, 5000 steps",
        premises={
            "fewer measurements than entries": all(p.samples < p.dimension for p in problems)
        },
        checks=[near, on_time, order, rules, yields],
        controls={
            "the truth for A_hat": near.control(far),
            "t1 of the fastest direction": on_time.control(
                max(abs(s / fastest(p) - 1) for s, p in zip(seen, problems, strict=True))
            ),
            "the truth for A_hat, over beta": order.control(
                max(
                    slope(EARLY, np.array([nearest(run, truth(p)) for run in row]))
                    for p, row in pairs
                )
            ),
            "dominance of G without an end": yields.control(min(before)),
            "dominance of G at every step": rules.control(max(after)),
        },
        findings=[
            f"t1 (loss {SOLVED:g}) is {', '.join(f'{s:.0f}' for s in seen)} steps at"
            f" beta = 1e-6; no iterate comes nearer to the truth than {far:.2g} |A*|"
        ],
        plots=[balance(runs[0][-1])],
    )


def first(run: Any) -> float:
    """t1, where the loss comes down to its level."""
    return crossing(run.step.values.astype(float), run.loss.values, SOLVED)


def nearest(run: Any, point: Array) -> float:
    """The least |A(t) - point| / |point| of a run."""
    gaps = np.linalg.norm(run.predictor.values - point, axis=(1, 2))
    return float(gaps.min() / np.linalg.norm(point))


def dominance(run: Any) -> tuple[float, float]:
    """The least |G|/(beta|H|) up to t1, and its last value."""
    ratio = run.gradient_norm.values / run.penalty_gradient_norm.values
    return float(ratio[run.step.values < first(run)].min()), float(ratio[-1])


def fastest(problem: MatrixProblem) -> float:
    """t1 if every direction went as fast as the fastest one."""
    shrinks = abs(1 - STEP * float(np.linalg.norm(problem.design, 2)) ** 2)
    loss = 0.5 * float(problem.y @ problem.y)
    return math.log(loss / SOLVED) / (-2 * math.log(shrinks))


def balance(run: Any) -> Plot:
    steps = run.step.values[1:]
    series = [
        Series("|G|", steps, run.gradient_norm.values[1:]),
        Series("beta |H|", steps, run.penalty_gradient_norm.values[1:]),
    ]
    return Plot("which gradient dominates", "steps", "norm", series, "log", "log")
