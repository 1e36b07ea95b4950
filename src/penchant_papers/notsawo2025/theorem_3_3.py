"""Theorems 3.3 and 3.5 (ii): when a sparse vector or a low-rank matrix is recovered, and how well.

The norm of the iterates converges to that of the truth as well, up to the remaining error.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    at_most,
    exponents,
    log_log,
    sized,
    within,
)
from penchant.solvers import slow_flow
from penchant_papers.instances import furthest, listed
from penchant_papers.notsawo2025.delays import Words, cell, evidence
from penchant_papers.notsawo2025.recoveries import (
    FOUND,
    LOW_RANK,
    SPARSE,
    arguments_of,
    over,
    over_beta,
)

VECTOR = SPARSE | {"level": 0.01, "relative": False}  # |a - a*|^2 = 1e-4 at t2
WEAK = [3e-4, 1e-4, 3e-5]  # the deviations are of order beta over the required error
LOUD = [1e-8, 1e-4, 1e-3]  # the source's noise, and two levels above it
vectors = sized(
    "N-T33",
    function=cell,
    arguments=VECTOR | {"step": 0.1, "noise": 0.0},
    grid={"beta": WEAK},
    seeds=5,
    tiny={"seeds": 3},
    printed={"grid": {"beta": [1e-4, 1e-5, 1e-6]}, "seeds": 10},
)
vector_noise = sized(
    "N-T33-noise",
    function=cell,
    arguments=VECTOR | {"step": 0.1},
    grid={"noise": LOUD, "beta": [3e-4, 3e-5]},
    seeds=3,
    tiny={"seeds": 3},
    printed={"grid": {"noise": [*LOUD, 1e-2], "beta": [1e-4, 1e-5, 1e-6]}, "seeds": 10},
)
vector_steps = sized(
    "N-T33-step",
    function=cell,
    arguments=VECTOR | {"beta": 1e-4, "noise": 0.0},
    grid={"step": [0.1, 0.03, 0.01]},
    seeds=4,
    tiny={"seeds": 3},
    printed={"grid": {"step": [0.1, 0.03, 0.01, 0.003]}, "seeds": 10},
)


def narrow(epsilon: float) -> tuple[float, float]:
    """tau and |a_hat - a*|_inf for X = (1, eps - 1), y = -1; (-1, 0) is best by a small margin."""
    X = np.array([[1.0, epsilon - 1]])
    hat = np.linalg.pinv(X) @ [-1.0]
    return slow_flow(X, hat).time, float(np.abs(hat - [-1.0, 0.0]).max())


def suitable(*clean: Dataset) -> dict[str, Any]:
    """The premise of the theorems: X is such that the truth has the least norm."""
    worst = max(float((one.noise_error / one.of_truth).max()) for one in clean)
    return {"suitable X: the point of least norm is the truth": (worst < FOUND, worst)}


def check_vectors(dataset: Dataset, noise: Dataset, steps: Dataset) -> Evidence:
    """The delay on several problems, and the final error over beta, over the step, with noise."""
    tau, gap = narrow(0.01)
    return evidence(
        Words("a", "|a_hat - a*|_inf", "1", "l1 norm", "a_beta"),
        [dataset],
        noise,
        steps,
        0.05,
        ran=f"sparse recovery (100, 5, 30): {dataset.sizes['seed']} problems without noise, step"
        f" 0.1, beta {float(dataset.beta[0]):g} to {float(dataset.beta[-1]):g};"
        f" {noise.sizes['seed']} with noise over signal {listed(noise.noise)} (powers);"
        f" {steps.sizes['seed']} at beta = 1e-4 with steps of 0.1 to"
        f" {float(steps.step[-1]):g}; t2 at |a - a*|^2 = 1e-4",
        premises=suitable(dataset, steps),
        counterexample={
            "no constant": f"X = (1, -0.99), y = -1, a* = (-1, 0): tau = {tau:.4g} ="
            f" {tau / gap:.0f} |a_hat - a*|_inf, and it grows like 2/eps for X = (1, eps - 1)",
        },
    )


of_vectors = Experiment(
    "N-T33",
    statement="After t1, |a(t) - a*|_1 = O(step beta) if and only if t >= t1 + |a_hat - a*|_inf/"
    "(step beta), for suitable X; t2 is proportional to |a_hat - a*|_inf/(step beta) and the error"
    " at t2 to step beta.",
    place="Sparsity, Theorems 3.1 and 3.3 (ii); Figures 6 and 7",
    study=(vectors, vector_noise, vector_steps),
    check=check_vectors,
    title="The slow phase predicts when a sparse vector is recovered; the remaining error is of"
    " order β",
    ours="the seeds, the strengths, and the noise levels other than the source's",
    scope={"quick": "beta of 3e-4 to 3e-5 in place of 1e-5"},
    seconds=4,
)

SMALL = {"samples": 24, "dimension": 6, "few": 1}
MATRIX = {"level": 0.1, "relative": True}  # steps in units of the largest, beta and error of |A*|
KINDS = ["completion", "sensing"]
matrices = sized(
    "N-T35",
    function=cell,
    arguments=SMALL | MATRIX | {"step": 0.25, "noise": 0.0},
    grid={"kind": KINDS, "beta": [1e-3, 2.5e-4]},
    seeds=2,
    printed={"grid": {"beta": [1e-3, 2.5e-4, 5e-5]}, "seeds": 4},
)
printed_matrices = sized(
    "N-T35-printed",
    function=cell,
    arguments=LOW_RANK | MATRIX | {"step": 0.25, "noise": 0.0},
    grid={"kind": ["completion"], "beta": [1e-3]},
    seeds=1,
    printed={"grid": {"kind": KINDS, "beta": [1e-5]}, "seeds": 3},  # 1e-4 in N's units, |A*| = 10
)
matrix_noise = sized(
    "N-T35-noise",
    function=cell,
    arguments=SMALL | MATRIX | {"step": 0.25, "kind": "completion"},
    grid={"noise": LOUD, "beta": [4e-3, 1e-3]},
    seeds=3,
    printed={"grid": {"beta": [4e-3, 1e-3, 2.5e-4]}, "seeds": 8},
)
matrix_steps = sized(
    "N-T35-step",
    function=cell,
    arguments=SMALL | MATRIX | {"beta": 8e-3, "noise": 0.0, "kind": "completion"},
    grid={"step": [0.075, 0.025]},
    seeds=4,
    printed={"grid": {"step": [0.075, 0.025, 0.0075]}, "seeds": 8},
)


def corner(a: float, b: float, c: float, until: float) -> float:
    """The exact tau at which the unknown entry x of [[a, b], [c, x]] has grown from 0 to `until`.

    For 0 <= until <= bc/a < a, where |A|_* = sqrt((a - x)^2 + (b + c)^2) falls in x.
    """
    w = b + c

    def antiderivative(u: float) -> float:  # of sqrt(u^2 + w^2)/u = 1/speed with u = a - x
        return math.hypot(u, w) - w * math.asinh(w / u)

    return antiderivative(a) - antiderivative(a - until)


def check_matrices(
    dataset: Dataset,
    printed: Dataset,
    noise: Dataset,
    steps: Dataset,
) -> Evidence:
    """The delay on several problems, and the final error over beta, over the step, with noise."""
    tight = corner(1.001, 1.0, 1.0, 1 / 1.001)
    return evidence(
        Words("A", "|A_hat - A*|_op", "*", "nuclear norm", "A_beta"),
        [dataset, printed],
        noise,
        steps,
        0.1,
        ran=f"completions and Gaussian sensings, {len(over_beta(dataset.tau))} 6 x 6 of rank 1 from"
        f" 24 numbers with beta {float(dataset.beta[0]):g} to {float(dataset.beta[-1]):g} and"
        f" {printed.tau.size} 10 x 10 of rank 2 from 70 with beta = {float(printed.beta[0]):g}, in"
        f" units of |A*|, steps of 1/4 of the largest; {noise.sizes['seed']} completions with noise"
        f" over signal {listed(noise.noise)} (powers), and {steps.sizes['seed']} at beta ="
        f" {arguments_of(steps)['beta']:g} with smaller steps; t2 at a relative error of 0.1",
        premises=suitable(dataset, printed, steps),
        counterexample={
            "no constant": "[[a, 1], [1, x]] with x unknown, a = 1.001, A* of rank 1 and least"
            f" nuclear norm: tau = {tight:.4g} = {tight * 1.001:.3g} |A_hat - A*|_op exactly, and"
            " it grows like 2 log(1/(a - 1))",
        },
    )


of_matrices = Experiment(
    "N-T35",
    statement="After t1, |A(t) - A*|_* = O(step beta) if and only if t >= t1 + |A_hat - A*|_op/"
    "(step beta), for suitable X; t2 is proportional to |A_hat - A*|_op/(step beta) and the error"
    " at t2 to step beta.",
    place="Low-rankness, Theorems 3.4 and 3.5 (ii); Figure 6",
    study=(matrices, printed_matrices, matrix_noise, matrix_steps),
    check=check_matrices,
    title="The slow phase predicts when a matrix is recovered; the remaining error is of order β",
    ours="the small matrices, certificates of at most 0.95, the seeds, the strengths and the noise",
    scope={
        "quick": "6 x 6 matrices of rank 1 with beta of 1e-3 and 2.5e-4 of |A*|, and one of 10 x 10"
        " with beta 1e-3 of |A*| in place of 1e-4, about 1e-5 of |A*|; steps of 1/4 of the largest"
        " in place of 0.1",
        "printed": "the exponents by 6 x 6 matrices of rank 1; beta of 1e-5 |A*|, about 1e-4; steps"
        " of 1/4 of the largest in place of 0.1",
    },
    seconds=8,
)


def growth(gap: Any, step_beta: Any) -> Array:
    """|gap|/(step beta) at the smallest step over that at the largest, for every problem."""
    ratios = over(np.abs(gap / step_beta), "step")
    return np.asarray(ratios[:, -1] / ratios[:, 0])


def check_norms(
    vectors: Dataset,
    by_step: Dataset,
    matrices: Dataset,
    matrix_by_step: Dataset,
) -> Evidence:
    """h(a) - h(a*) over the step, and its two parts: h(a) - h(a_beta) and h(a_beta) - h(a*)."""
    varied = {"l1": by_step, "nuclear": matrix_by_step}
    growths = {
        name: np.concatenate([growth(one[name], one.step_beta) for one in varied.values()])
        for name in ("above_truth", "above_point")
    }
    printed, corrected = (at_most(values.max(), 2.0) for values in growths.values())
    grows = "largest growth of |h(a) - h({})|/(step beta) as the step falls"
    slopes, in_step = (
        np.concatenate([exponents(one[axis], over(values, axis)) - 1 for one, values in pairs])
        for axis, pairs in (
            ("beta", [(one, one.of_truth - one.of_point) for one in (vectors, matrices)]),
            ("step", [(one, np.abs(one.above_truth)) for one in varied.values()]),
        )
    )
    power = within(furthest(slopes), tolerance=0.05)
    every = [vectors, by_step, matrices, matrix_by_step]
    above = max(float((one.above_truth / one.step_beta).max()) for one in every)
    one, last = by_step.isel(seed=0), by_step.isel(seed=0, step=-1)
    return Evidence(
        ran=f"the runs of both theorems after convergence, long after t2: {len(slopes)} problems"
        f" over beta, {by_step.sizes['seed']} sparse recoveries with steps of 0.1 to"
        f" {float(last.step):g} and {matrix_by_step.sizes['seed']} completions with steps of"
        f" {listed(matrix_by_step.step)} of the largest",
        premises=suitable(*every),
        checks={grows.format("a*"): printed},
        corrected={
            grows.format("a_beta"): corrected,
            "largest deviation of the exponent of h(a*) - h(a_beta) in beta from 1": power,
        },
        correction="h(a) - h(a*) = O(step beta) holds from above only. The iterates converge to"
        " the minimiser a_beta of g + beta h, up to O(step beta), and h(a_beta) lies"
        " below h(a*) by an amount of order beta, however small the step is: h(a) -"
        " h(a*) = O(beta).",
        counterexample=f"sparse recovery, beta = 1e-4, step {float(last.step):g}: |a|_1 - |a*|_1 ="
        f" {float(last.above_truth):.3g} = {float(last.above_truth / last.step_beta):.0f} step"
        f" beta; at step 0.1 it is {float(one.above_truth[0]):.3g}",
        controls={
            "O(step beta) around the truth": corrected.control(growths["above_truth"].min()),
            "|h(a) - h(a*)| proportional to the step": power.control(min(in_step, key=abs)),
        },
        findings=[
            f"from above h(a) - h(a*) is at most {above:.1f} step beta",
            "(h(a) - h(a*))/(step beta) = "
            + "; ".join(
                f"{listed((one.above_truth / one.step_beta).isel(seed=0), '.3g')} ({name})"
                for name, one in varied.items()
            )
            + " as the step falls, on the first problem of each",
        ],
        plots=[
            log_log(
                f"{title}, beta fixed",
                "step beta",
                "difference of norms at convergence",
                [
                    (f"|h({a}) - h({a}*)|", one.step_beta, np.abs(one.above_truth)),
                    (f"h({a}) - h({a}_beta)", one.step_beta, one.above_point),
                    ("step beta, the printed order", one.step_beta, one.step_beta, "dashed"),
                ],
            )
            for one, title, a in (
                (one, "(a) l1 norm h of a vector a", "a"),
                (matrix_by_step.isel(seed=0), "(b) nuclear norm h of a matrix A", "A"),
            )
        ],
    )


of_norms = Experiment(
    "N-norm",
    statement="About |a_hat - a*|_inf/(step beta) steps after t1, |a(t)|_1 - |a*|_1 is"
    " O(step beta); for matrices, |A(t)|_* - |A*|_* is O(step beta).",
    place="Sparsity, Theorems 3.1 and 3.3 (ii); Low-rankness, Theorems 3.4 and 3.5 (ii)",
    study=(vectors, vector_steps, matrices, matrix_steps),
    check=check_norms,
    title="The norm ends below that of the truth by an amount of order β, however small the step"
    " is",
    ours="the problems, the strengths and the steps",
    scope={
        "quick": "beta of 3e-4 to 3e-5 in place of 1e-5; 6 x 6 matrices of rank 1 in place of 10 x"
        " 10 of rank 2, with beta of 2.5e-4 to 8e-3 of |A*|",
        "printed": "6 x 6 matrices of rank 1 in place of 10 x 10 of rank 2, with beta of 5e-5 to"
        " 8e-3 of |A*|",
    },
    seconds=0.5,
)
