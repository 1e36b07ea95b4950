"""Theorems 3.1 and 3.4 (i): descent with a penalty first comes near the least squares point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Sizes,
    at_least,
    at_most,
    exponents,
    log_log,
    sized,
)
from penchant_papers.instances import listed
from penchant_papers.notsawo2025.recoveries import (
    LOW_RANK,
    SOLVED,
    SPARSE,
    Recovery,
    arguments_of,
    log_steps,
    over_beta,
    reached,
    recovery,
)

BETAS = [1e-4, 1e-5, 1e-6]  # too weak to disturb the memorization
NOISES = [1e-8, 0.1]  # N's signal-to-noise ratio is 1e8; 10 is a lot of noise
STEP = 0.1
FAR_BETA = 1e-5  # of the runs from a large start


def cell(beta: float, step: float, steps: int, late: int, **problem: Any) -> dict[str, Any]:
    """When a run memorizes, and its least distances to the least squares point and to the truth.

    `before` is the least |G|/(beta |H|) before t1, `after` the largest one after step `late`.
    """
    case = recovery(**problem)
    predicted = case.t1(step)
    around = np.arange(max(predicted - 5, 1), predicted + 6)  # every step near t1
    run = case.run(step, beta, np.append(log_steps(steps, 25), around))
    taken, points = run.step.values.astype(float), case.points(run)
    ratio = run.gradient_norm.values / run.penalty_gradient_norm.values
    t1 = math.ceil(reached(run.step, run.loss, SOLVED))
    return {
        "measurements": len(case.y),
        "entries": len(case.truth),
        "t1": t1,
        "t1_predicted": predicted,
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
    """The least distances of a run from 1 per entry to the printed point and to the right one."""
    case = recovery(**problem)
    points = case.points(case.run(step, FAR_BETA, range(100, 2000, 50), start=1.0))
    return {
        "to_printed": nearest(points, case.memorized()),
        "to_right": nearest(points, case.memorized(1.0)),
    }


def nearest(points: Array, goal: Array) -> float:
    """The least |a - goal| / |goal| over the points."""
    return float(np.linalg.norm(points - goal, axis=1).min() / np.linalg.norm(goal))


def fastest(case: Recovery, step: float) -> float:
    """t1 if every direction converged as fast as the fastest one."""
    shrinks = abs(1 - 2 * step / case.bound)
    loss = 0.5 * float(case.y @ case.y)
    return math.log(loss / SOLVED) / (-2 * math.log(shrinks))


def evidence(dataset: Dataset, far: Dataset, ran: str, a: str) -> Evidence:
    """The checks of both theorems: t1, the distance to the point, and the gradients.

    `a` is how the statement writes the predictor.
    """
    weakest, arguments = dataset.sel(beta=BETAS[-1]), arguments_of(dataset)
    allowed = 1 + 0.05 * dataset.t1_predicted  # one step, by rounding, and 5% for the penalty
    time, fastest = (
        at_most((np.abs(t1 - dataset.t1_predicted) / allowed).max(), 1.0)
        for t1 in (dataset.t1, dataset.t1_fastest)
    )
    near = at_most(weakest.to_hat.max(), 0.01)
    # beta log(1/beta) or more, as a smaller beta is reached later: below 0.91 between these
    powers, of_truth = (
        exponents(BETAS, over_beta(distance)).mean()
        for distance in (dataset.to_hat, dataset.to_truth)
    )
    order = at_least(powers, 0.7)
    fit, pull = at_least(dataset.before.min(), 1.0), at_most(dataset.after.max(), 1.0)
    t1 = sorted({int(t) for t in weakest.t1.values.flat})
    first = weakest.isel(dict.fromkeys(weakest.status.dims, 0))
    return Evidence(
        ran=f"{weakest.t1.size} {ran}, with noise over signal {listed(dataset.noise)} (powers), "
        r"step 0.1, $\beta$ $10^{-4}$ to $10^{-6}$, start $10^{-6}$, "
        f"{arguments['steps']} steps",
        premises={
            "fewer measurements than entries": (
                bool((dataset.measurements < dataset.entries).all()),
                float((dataset.measurements / dataset.entries).max()),
            )
        },
        checks={
            "largest |$t_1$ - $t_1$ without a penalty| over one step plus 5%": time,
            rf"largest $|{a}(t) - \hat{{{a}}}|/|\hat{{{a}}}|$ at its nearest, $\beta = "
            f"10^{{-6}}$": near,
            r"mean exponent of that distance in $\beta$": order,
            r"least $|G|/(\beta |H|)$ before $t_1$": fit,
            rf"largest $|G|/(\beta |H|)$ after {arguments['late']} steps": pull,
        },
        controls={
            "the rate of the largest singular value": time.control(fastest.measured),
            rf"the truth in place of $\hat{{{a}}}$": near.control(weakest.to_truth.min()),
            rf"the printed $\hat{{{a}}}$ from a start of 1 per entry": near.control(
                far.to_printed.min()
            ),
            rf"the truth in place of $\hat{{{a}}}$, over $\beta$": order.control(of_truth),
            "the loss dominates to the end": fit.control(dataset.after.max()),
        },
        findings=[
            rf"$t_1$ (loss {SOLVED:g}) is {t1[0]} to {t1[-1]} steps for every $\beta$; no iterate "
            f"comes nearer to the truth than {float(weakest.to_truth.min()):.2g} $|{a}^*|$",
            "$(X^T X)^+ X^T y$ is the limit only if the start is in the row space: from 1 per "
            rf"entry the iterates stay {float(far.to_printed.min()):.2g} $|\hat{{{a}}}|$ away from "
            f"it, but come within {float(far.to_right.max()):.1e} of start + $X^+ (y - X "
            r"\mathrm{start})$",
        ],
        plots=[
            log_log(
                "the loss dominates until $t_1$, the penalty afterwards",
                "steps",
                r"norm of a part of the gradient, $\beta = 10^{-6}$",
                [
                    ("$|G|$, loss", first.taken, first.G),
                    (r"$\beta |H|$, penalty", first.taken, first.H),
                ],
            ),
            log_log(
                "distance to the least squares point",
                r"$\beta$",
                rf"least $|{a}(t) - \hat{{{a}}}|/|\hat{{{a}}}|$",
                [
                    (name, dataset.beta, np.median(over_beta(variable), axis=0))
                    for name, variable in (
                        (rf"to $\hat{{{a}}}$", dataset.to_hat),
                        (f"to ${a}^*$, the truth", dataset.to_truth),
                    )
                ],
            ),
        ],
    )


EITHER = {"kind": ["completion", "sensing"]}
LONG = {"steps": 10_000}


def studies(
    name: str,
    problem: dict[str, Any],
    lengths: dict[str, int],
    grid: dict[str, Any],
    seeds: int,
    printed: int,
) -> tuple[Sizes, Sizes]:
    """The runs from a small start over beta, and those from a large one."""
    most = {"grid": {"noise": [0.0, *NOISES]}, "seeds": printed}
    shared: dict[str, Any] = {"seeds": seeds, "tiny": {"seeds": 1}}
    return (
        sized(
            name,
            function=cell,
            arguments={**problem, **lengths, "step": STEP},
            grid={**grid, "noise": NOISES, "beta": BETAS},
            dims={"taken": ["record"], "G": ["record"], "H": ["record"]},
            printed={**most, "arguments": LONG},
            **shared,
        ),
        sized(
            f"{name}-far",
            function=far_cell,
            arguments={**problem, "step": STEP},
            grid={**grid, "noise": NOISES},
            printed=most,
            **shared,
        ),
    )


def check_vectors(dataset: Dataset, far: Dataset) -> Evidence:
    """t1, the distance to a_hat, and the norms of both gradients."""
    return evidence(dataset, far, "sparse recoveries (100, 5, 30)", "a")


def check_matrices(dataset: Dataset, far: Dataset) -> Evidence:
    """t1, the distance to A_hat, and the norms of both gradients."""
    ran = "completions and Gaussian sensings, 10 x 10 of rank 2 from 70 numbers"
    return evidence(dataset, far, ran, "A")


vectors = Experiment(
    "N-T31",
    statement=r"On $f = (1/2)|X a - y|^2 + \beta |a|_1$ the iterates first come near the least "
    "squares solution $(X^T X)^+ X^T y$, at a finite step $t_1$; the gradient $G$ of the loss "
    r"dominates the subgradient $\beta H$ of the penalty until $t_1$.",
    place="Sparsity, Theorem 3.1 (i); Figure 5",
    study=studies("N-T31", SPARSE, {**LONG, "late": 400}, {}, 4, 10),
    check=check_vectors,
    title="Sparse recovery first comes near the least squares point; from there on the penalty"
    " dominates",
    ours="the seeds, the strengths and the noise levels other than the source's",
    seconds=2,
)
matrices = Experiment(
    "N-T34",
    statement=r"Subgradient descent on $(1/2)|X \operatorname{vec}(A) - y|^2 + \beta |A|_*$ first "
    r"comes near $\operatorname{vec}(\hat{A}) = (X^T X)^+ X^T y$, at a finite step $t_1$; "
    r"until then the gradient $G$ of the loss dominates the subgradient $\beta H$ of the "
    "penalty, and from then on it does not.",
    place="Low-rankness, Theorems 3.4 and 3.5 (i); Figure 5",
    study=studies("N-T34", LOW_RANK, {"steps": 6000, "late": 5000}, EITHER, 1, 6),
    check=check_matrices,
    title="Low-rank recovery first comes near the least squares point; from there on the penalty"
    " dominates",
    ours="the seeds, the strengths and the noise",
    seconds=3,
)
