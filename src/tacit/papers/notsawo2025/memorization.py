"""Theorems 3.1 and 3.4 (i): recovery with a penalty first goes to the least squares point."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Check, Evidence, at_least, at_most, within
from tacit.evidence.plot import Plot, Series
from tacit.papers.experiment import Experiment
from tacit.papers.instances import slope
from tacit.papers.notsawo2025.recoveries import (
    LOW_RANK,
    SOLVED,
    SPARSE,
    Recovery,
    given,
    log_steps,
    reached,
    recovery,
)
from tacit.studies.sizes import Sizes, sized

if TYPE_CHECKING:
    import xarray

BETAS = [1e-4, 1e-5, 1e-6]  # too weak to disturb the memorization
NOISES = [1e-8, 0.1]  # N's signal-to-noise ratio is 1e8; 10 is a lot of noise
STEP = 0.1
FAR = 1e-5  # beta of the runs from a large start


def cell(beta: float, step: float, steps: int, late: int, **problem: Any) -> dict[str, Any]:
    """When a run memorizes and how near it comes to the least squares point and to the truth.

    `after` is the largest share of the loss in the gradient from step `late` on.
    """
    case = recovery(**problem)
    foreseen = case.t1(step)
    around = np.arange(max(foreseen - 5, 1), foreseen + 6)  # every step there, few elsewhere
    run = case.run(step, beta, np.append(log_steps(steps, 25), around))
    taken, points = run.step.values.astype(float), case.points(run)
    ratio = run.gradient_norm.values / run.penalty_gradient_norm.values
    t1 = math.ceil(reached(taken, run.loss.values, SOLVED))
    return {
        "measurements": len(case.y),
        "entries": len(case.truth),
        "t1": t1,
        "t1_foreseen": foreseen,
        "t1_fastest": fastest(case, step),
        "to_hat": nearest(points, case.memorized()),
        "to_truth": nearest(points, case.truth),
        "before": float(ratio[taken < t1].min()),
        "after": float(ratio[taken > late].max()),
        "taken": taken[1:],
        "G": run.gradient_norm.values[1:],
        "H": run.penalty_gradient_norm.values[1:],
    }


def far_cell(step: float, **problem: Any) -> dict[str, float]:
    """How near a run from 1 per entry comes to the printed point and to the right one."""
    case = recovery(**problem)
    points = case.points(case.run(step, FAR, range(100, 2000, 50), start=1.0))
    return {
        "to_printed": nearest(points, case.memorized()),
        "to_right": nearest(points, case.memorized(1.0)),
    }


def nearest(points: Array, goal: Array) -> float:
    """The least |a - goal| / |goal| of the points."""
    return float(np.linalg.norm(points - goal, axis=1).min() / np.linalg.norm(goal))


def fastest(case: Recovery, step: float) -> float:
    """t1 if every direction went as fast as the fastest one."""
    shrinks = abs(1 - 2 * step / case.bound)
    loss = 0.5 * float(case.y @ case.y)
    return math.log(loss / SOLVED) / (-2 * math.log(shrinks))


def evidence(
    dataset: xarray.Dataset, far: xarray.Dataset, ran: str, a: str, timed: str, time: Check
) -> Evidence:
    """What both theorems say of t1, of the distance to the point and of the gradients.

    `a` is how the statement writes the predictor; `time` is the check
    named `timed`, which compares t1 with what is foreseen.
    """
    weakest, asked = dataset.sel(beta=BETAS[-1]), given(dataset)
    fastest = np.abs(dataset.t1_fastest - dataset.t1_foreseen)
    fastest = fastest if time.tolerance >= 1 else fastest / dataset.t1_foreseen
    near = at_most(weakest.to_hat.max(), 1e-3)
    order = at_least(min(_exponents(dataset.to_hat)), 0.8)
    fit, pull = at_least(dataset.before.min(), 1.0), at_most(dataset.after.max(), 1.0)
    t1 = sorted({int(t) for t in weakest.t1.values.flat})
    one = weakest.isel(dict.fromkeys(weakest.status.dims, 0))
    return Evidence(
        ran=f"{weakest.t1.size} {ran}, with noise over signal"
        f" {', '.join(f'{n:g}' for n in dataset.noise.values)} (powers), step 0.1, beta 1e-4 to"
        f" 1e-6, start 1e-6, {asked['steps']} steps",
        premises={
            "fewer measurements than entries": (
                bool((dataset.measurements < dataset.entries).all()),
                float((dataset.measurements / dataset.entries).max()),
            )
        },
        checks={
            timed: time,
            f"largest |{a}(t) - {a}_hat|/|{a}_hat| at its nearest, beta = 1e-6": near,
            "least exponent of that distance in beta": order,
            "least |G|/(beta |H|) before t1": fit,
            f"largest |G|/(beta |H|) after {asked['late']} steps": pull,
        },
        controls={
            "the rate of the largest singular value": time.control(float(fastest.max())),
            f"the truth in place of {a}_hat": near.control(float(weakest.to_truth.min())),
            f"the printed {a}_hat from a start of 1 per entry": near.control(
                float(far.to_printed.min())
            ),
            f"the truth in place of {a}_hat, over beta": order.control(
                max(_exponents(dataset.to_truth))
            ),
            "the loss dominates to the end": fit.control(float(dataset.after.max())),
        },
        findings=[
            f"t1 (loss {SOLVED:g}) is {t1[0]} to {t1[-1]} steps for every beta; no iterate comes"
            f" nearer to the truth than {float(weakest.to_truth.min()):.2g} |{a}*|",
            "(X^T X)^+ X^T y is the limit of a start in the row space only: from 1 per entry the"
            f" iterates stay {float(far.to_printed.min()):.2g} |{a}_hat| away from it, but come"
            f" within {float(far.to_right.max()):.1e} of start + X^+ (y - X start)",
        ],
        plots=[
            Plot(
                "the loss dominates until t1, the penalty afterwards",
                "steps",
                "norm of a part of the gradient, beta = 1e-6",
                [
                    Series("|G|, loss", one.taken, one.G),
                    Series("beta |H|, penalty", one.taken, one.H),
                ],
                "log",
                "log",
            ),
            Plot(
                "the distance to least squares falls with beta",
                "beta",
                f"least |{a}(t) - {a}_hat|/|{a}_hat|",
                [
                    Series(name, dataset.beta, variable.median(_others(variable)))
                    for name, variable in (
                        (f"to {a}_hat", dataset.to_hat),
                        (f"to {a}*, the truth", dataset.to_truth),
                    )
                ],
                "log",
                "log",
            ),
        ],
    )


def _others(variable: Any) -> list[str]:
    return [name for name in variable.dims if name != "beta"]


def _exponents(distance: Any) -> list[float]:
    """The exponent in beta for every problem."""
    rows = distance.transpose(..., "beta").values.reshape(-1, distance.sizes["beta"])
    return [slope(np.array(BETAS), row) for row in rows]


EITHER = {"kind": ["completion", "sensing"]}
LONG = {"steps": 10_000}


def studies(
    name: str,
    problem: dict[str, Any],
    lengths: dict[str, int],
    grid: dict[str, Any],
    seeds: list[int],
    full: int,
) -> tuple[Sizes, Sizes]:
    """The runs from a small start over beta, and those from a large one."""
    most = {"grid": {"noise": [0.0, *NOISES]}, "seeds": full}
    shared: dict[str, Any] = {"seeds": seeds, "tiny": {"seeds": seeds[-1:]}}
    return (
        sized(
            name,
            function=cell,
            arguments={**problem, **lengths, "step": STEP},
            grid={**grid, "noise": NOISES, "beta": BETAS},
            dims={"taken": ["record"], "G": ["record"], "H": ["record"]},
            standard={"arguments": LONG},
            full={**most, "arguments": LONG},
            **shared,
        ),
        sized(
            f"{name}-far",
            function=far_cell,
            arguments={**problem, "step": STEP},
            grid={**grid, "noise": NOISES},
            full=most,
            **shared,
        ),
    )


def check_vectors(dataset: xarray.Dataset, far: xarray.Dataset) -> Evidence:
    """t1, the distance to a_hat and the norms of both gradients."""
    off = float(np.abs(dataset.t1 - dataset.t1_foreseen).max())
    ran, timed = "sparse recoveries (100, 5, 30)", "largest |t1 - prediction| in steps"
    return evidence(dataset, far, ran, "a", timed, within(off, tolerance=1))


def check_matrices(dataset: xarray.Dataset, far: xarray.Dataset) -> Evidence:
    """t1, the distance to A_hat and the norms of both gradients."""
    ran = "completions and Gaussian sensings, 10 x 10 of rank 2 from 70 numbers"
    off = float(np.abs(dataset.t1 / dataset.t1_foreseen - 1).max())
    timed = "largest |t1/t1 without a penalty - 1|"
    return evidence(dataset, far, ran, "A", timed, within(off, tolerance=0.05))


vectors = Experiment(
    "N-T31",
    statement="On f = (1/2)|X a - y|^2 + beta |a|_1 the iterates first come near the least"
    " squares solution (X^T X)^+ X^T y, at a finite step t1; the gradient G of the loss"
    " dominates the subgradient beta H of the penalty until t1.",
    place="Sparsity, Theorem 3.1 (i); Figure 5",
    study=studies("N-T31", SPARSE, {**LONG, "late": 400}, {}, [0, 1], 6),
    check=check_vectors,
    title="Sparse recovery first goes to the least squares point, where the penalty takes over"
    " from the loss",
    ours="the seeds, the strengths and the noise levels other than the source's",
    seconds=2,
)
matrices = Experiment(
    "N-T34",
    statement="Subgradient descent on (1/2)|X vec(A) - y|^2 + beta |A|_* first goes near"
    " vec(A_hat) = (X^T X)^+ X^T y, at a finite step t1; until then the gradient G of"
    " the loss dominates the subgradient beta H of the penalty, and from then on it"
    " does not.",
    place="Low-rankness, Theorems 3.4 and 3.5 (i); Figure 5",
    study=studies("N-T34", LOW_RANK, {"steps": 6000, "late": 5000}, EITHER, [2], 4),
    check=check_matrices,
    title="Low-rank recovery first goes to the least squares point, where the penalty takes over"
    " from the loss",
    ours="the seeds, the strengths and the noise",
    seconds=3,
)
