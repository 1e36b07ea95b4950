"""Lemmas 11 and 13: the bound of |w|_inf at depth 2, and beyond, where it does not always hold."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from penchant.bounds import largest_log_weight
from penchant.lab import Array, Dataset, Evidence, Experiment, at_least, at_most, log_log, sized
from penchant_papers.moroshko2020.lemmas.runs import (
    Case,
    RecordedTraining,
    h,
    listed,
    of_kind,
    run_in_time,
    run_named,
    single,
    trials,
)

DEPTHS = {"near": (3, 4, 5, 8), "far": (3, 4)}
SPECIAL = ["one point", "small start"]
LARGE = np.array([1e2, 1e4, 1e6])
BY_KERNEL = r"the kernel's bound $\bar{x} \tilde{\gamma}/\gamma_2^2$, one point, $\alpha = 0.3$"


def linear_excess(run: RecordedTraining) -> Array:
    """log |w|_inf minus log(x_bar gtilde / gamma_2^2), the bound of a kernel that never moves."""
    bound = run.case.x_bar / run.case.gamma_2**2 * run.smoothed_margin
    return np.asarray(np.log(np.abs(run.predictor).max(axis=1) / bound))


# depth 2


def sinh_excess(run: RecordedTraining, factor: float) -> Array:
    """log |w|_inf minus the logarithm of the bound of lemma 11, whose factor is 1/2, per record."""
    case, g = run.case, 2 * factor * run.smoothed_margin
    bound = largest_log_weight(case.problem, case.model, g)
    return np.asarray(np.log(np.abs(run.predictor).max(axis=1)) - bound)


def kernel_bracket(case: Case, alphas: Array) -> tuple[Array, Array]:
    """[2 alpha^2 gamma_2^2/x_bar sinh(...) - 1] of appendix F.1, gtilde = alpha; and corrected."""
    z = case.x_bar / (2 * alphas**2 * case.gamma_2**2)
    return np.sinh(z * alphas) / z - 1, np.sinh(z * alphas) / (z * alphas) - 1


def sinh_cell(run: str, *, factor: float, seed: int) -> dict[str, Any]:
    """How much of the bound one run uses, at every record; `factor` is that of lemma 11."""
    if run in SPECIAL:
        training: RecordedTraining = run_in_time(
            single(2, {"one point": 100.0, "small start": 0.3}[run])
        )
    else:
        training = run_named(run, seed, {"near": (2,), "far": (2,)})
    excess = sinh_excess(training, factor)
    norms = np.linalg.norm(training.predictor, axis=1) / np.abs(training.predictor).max(axis=1)
    printed, mended = kernel_bracket(training.case, LARGE)
    return {
        "label": str(training.case),
        "name": training.case.name,
        "margin": training.smoothed_margin,
        "excess": excess,
        "most": excess.max(),
        "least": excess.min(),
        "most_l2": (excess + np.log(norms)).max(),
        "most_linear": linear_excess(training).max(),
        "printed": printed,
        "mended": mended,
    }


at_depth_2 = sized(
    "M-L11",
    function=sinh_cell,
    arguments={"factor": 0.5, "seed": 11},
    **trials(SPECIAL),
    dims={"margin": ["record"], "excess": ["record"], "printed": ["alpha"], "mended": ["alpha"]},
)


def check_depth_2(dataset: Dataset) -> Evidence:
    """The bound at every record of every run."""
    near, far = of_kind(dataset, "near", "one point"), of_kind(dataset, "far")
    third, sharp = dataset.sel(run="near 2"), dataset.sel(run="one point")
    worst, beyond = (at_most(runs.most.values.max(), tolerance=1e-8) for runs in (near, far))
    shown = [third, dataset.sel(run="far 2")]
    series = [(str(run.label.values), run.margin, -run.excess) for run in shown]
    title = "ratio of the bound of lemma 11 to training"
    return Evidence(
        ran=f"{near.sizes['run']} data sets in the parameters and in $t$ to loss $e^{{-25}}$, "
        rf"{far.sizes['run']} to loss $e^{{-1000000}}$; $\alpha^2$ from 0.1 to 100, one point "
        r"with $\alpha = 100$",
        checks={
            r"largest log of $|w|_\infty$ over the bound, to loss $e^{-25}$": worst,
            "the same to loss $e^{-1000000}$": beyond,
        },
        controls={
            BY_KERNEL: worst.control(dataset.most_linear.sel(run="small start")),
            r"$|w|_2$ in place of $|w|_\infty$, on one point": worst.control(sharp.most_l2),
        },
        findings=[
            r"the bound is attained by one point in the kernel regime ($\alpha = 100$, to loss "
            rf"$e^{{-25}}$: log of bound/$|w|_\infty$ at most {-float(sharp.least):.1e}) and "
            r"exponentially loose beyond $\tilde{\gamma} \sim \alpha^2$: at loss "
            f"$e^{{-1000000}}$ its logarithm is too large by {-float(far.least.max()):.3g} at "
            "least",
            "appendix F.1, the display after eq. (50): the sinh lacks a factor "
            r"$1/\tilde{\gamma}$. With $\tilde{\gamma} = \alpha$, on "
            rf"{third.name.item()}, the bracket is {listed(third.printed.values)} at $\alpha$ "
            f"= {listed(LARGE)} as printed and {listed(third.mended.values)} with the factor; "
            "only this one tends to 0, as the proof needs",
        ],
        plots=[log_log(title, "smoothed margin", r"log of bound / $|w|_\infty$", series)],
    )


# greater depths


def argument(run: RecordedTraining) -> Array:
    """(D-2) x_bar gtilde / (2 D gamma_2^2 alpha^D), the argument of h_D in lemma 13."""
    case, D = run.case, run.case.depth
    scale = (D - 2) * case.x_bar / (2 * D * case.gamma_2**2 * case.mu)
    return np.asarray(scale * run.smoothed_margin)


def mended_bound(run: RecordedTraining, tightened: float) -> Array:
    """The bound of lemma 13 while its argument is below 1, infinite beyond."""
    case, g = run.case, tightened * run.smoothed_margin
    return np.exp(largest_log_weight(case.problem, case.model, g))


def bracket(case: Case) -> tuple[Array, Array]:
    """gtilde/alpha^2 and the bracket of appendix G.1 for gtilde = alpha^(D - 1/2), alpha large."""
    g = LARGE ** (case.depth - 0.5)
    scale = (case.depth - 2) * case.x_bar / (2 * case.depth * case.gamma_2**2)
    z = scale * g / LARGE**case.depth
    bracket = 2 * case.gamma_2**2 * LARGE**case.depth / (case.x_bar * g) * h(z, case.depth) - 2
    return g / LARGE**2, bracket


def power_cell(run: str, *, tightened: float, seed: int) -> dict[str, Any]:
    """Bound and norm at every record of one run; the argument is multiplied by `tightened`."""
    if run in SPECIAL:
        training: RecordedTraining = run_in_time(
            single(3, {"one point": 30.0, "small start": 0.3}[run])
        )
    else:
        training = run_named(run, seed, DEPTHS)
    z, (over_square, own_bracket) = tightened * argument(training), bracket(training.case)
    return {
        "label": str(training.case),
        "depth": training.case.depth,
        "margin": training.smoothed_margin,
        "argument": z,
        "bound": training.case.mu * h(z, training.case.depth),
        "mended": mended_bound(training, tightened),
        "largest": np.abs(training.predictor).max(axis=1),
        "length": np.linalg.norm(training.predictor, axis=1),
        "least_linear": np.expm1(-linear_excess(training)).min(),
        "over_square": over_square,
        "bracket": own_bracket,
    }


RECORDED = {
    key: ["record"] for key in ("margin", "argument", "bound", "mended", "largest", "length")
}
beyond_depth_2 = sized(
    "M-L13",
    function=power_cell,
    arguments={"tightened": 1.0, "seed": 14},
    **trials(SPECIAL),
    dims={**RECORDED, "over_square": ["alpha"], "bracket": ["alpha"]},
)


def check_beyond(dataset: Dataset) -> Evidence:
    """The bound at all records as printed, and where its argument is below 1."""
    runs = of_kind(dataset, "near", "far", "one point")
    sharp, recorded = runs.sel(run="one point"), runs.margin.notnull()
    left = (runs.bound / runs.largest - 1).where(np.isfinite(runs.bound))
    inside = np.isfinite(runs.mended)
    used = (runs.mended / runs.largest - 1).where(inside)
    crossed = int((runs.argument > 1).any("record").sum())
    share = float(inside.sum() / recorded.sum())
    printed, mended = (at_least(values.min(), tolerance=1e-8) for values in (left, used))
    sizes = {kind: of_kind(runs, kind).sizes["run"] for kind in ("near", "far")}
    series = [
        (str(runs.label.sel(run=name).values), runs.argument.sel(run=name), used.sel(run=name))
        for name in ("near 0", "near 1", "far 0", "one point")
    ]
    title = "ratio of the bound of lemma 13 to training while its argument is below 1"
    return Evidence(
        ran=f"{sizes['near'] + 1} data sets at depths {DEPTHS['near']} in the parameters and in "
        f"$t$ to loss $e^{{-25}}$, {sizes['far']} at depths 3 and 4 to loss $e^{{-1000000}}$; "
        r"$\alpha^D$ from 0.1 to 100, one point with $\alpha = 30$",
        checks={r"least bound/$|w|_\infty - 1$ at all $t$": printed},
        corrected={r"least bound/$|w|_\infty - 1$ while the argument is below 1": mended},
        correction=r"the bound holds while its argument $(D-2) \bar{x} \tilde{\gamma} / (2 D "
        r"\gamma_2^2 \alpha^D)$ is below 1; beyond, $h_D$ is not defined and Grönwall's "
        "inequality bounds nothing",
        counterexample=broken(runs.isel(run=int(left.min("record").values.argmin()))),
        premises={
            "some runs pass the argument 1": (crossed > 0, crossed),
            "some of training is inside the range of the bound": (share > 0.2, share),
        },
        controls={
            BY_KERNEL: mended.control(dataset.least_linear.sel(run="small start")),
            r"$|w|_2$ in place of $|w|_\infty$, on one point": mended.control(
                (sharp.mended / sharp.length - 1).min()
            ),
        },
        findings=[
            f"{crossed} of {runs.sizes['run']} runs pass the argument 1; read as a formula there, "
            f"$h_D$ is negative for $D = 3$ ($h_3(2) = {float(h(np.array(2.0), 3)):.3g}$), falls "
            f"for $D = 4$ ($h_4(2) = {float(h(np.array(2.0), 4)):.3g}$) and is not "
            "real for $D = 5$; the proof of Theorem 4 uses the lemma only where its argument "
            "tends to 0, so the theorem holds",
            r"the bound is attained by one point in the kernel regime ($\alpha = 30$, to loss "
            r"$e^{-25}$: bound/$|w|_\infty - 1$ at most "
            f"{float((sharp.bound / sharp.largest - 1).max()):.1e})",
            scale_of_g1(dataset.sel(run="near 0")),
        ],
        plots=[log_log(title, "argument of $h_D$", r"bound / $|w|_\infty - 1$", series)],
    )


def broken(run: Dataset) -> dict[str, float | str]:
    """The first record where the bound as printed is violated."""
    bad = np.flatnonzero((run.bound < run.largest).values)
    at = run.isel(record=int(bad[0]) if len(bad) else 0)
    return {
        "data": str(run.label.values),
        "smoothed margin": float(at.margin),
        "argument of $h_D$": float(at.argument),
        r"$|w|_\infty$ in training": float(at.largest),
        "the bound as printed": float(at.bound),
    }


def scale_of_g1(run: Dataset) -> str:
    """A finding: appendix G.1 needs gtilde/alpha^D -> 0, and gtilde/alpha^2 -> 0 need not hold."""
    ratio, bracket, depth = run.over_square.values, run.bracket.values, int(run.depth)
    grows = all(b > a for a, b in pairwise(ratio))
    falls = all(b < a for a, b in pairwise(bracket))
    return (
        r"appendix G.1 uses $\tilde{\gamma}/\alpha^2 \to 0$ where the premise, and all it needs, "
        rf"is $\tilde{{\gamma}}/\alpha^D \to 0$: with $D = {depth}$ and $\tilde{{\gamma}} = "
        rf"\alpha^{{{depth - 0.5:g}}}$ at $\alpha$ = {listed(LARGE)}, "
        rf"$\tilde{{\gamma}}/\alpha^2$ {'grows' if grows else 'does not grow'} "
        f"({listed(ratio)}) and the bracket {'falls' if falls else 'does not fall'} "
        f"({listed(bracket)})"
    )


lemma_11 = Experiment(
    "M-L11",
    statement=r"At depth 2 and at all $t$, $|w|_\infty$ is at most $2 \alpha^2 \sinh(\bar{x} "
    r"\tilde{\gamma} / (2 \gamma_2^2 \alpha^2))$, with $\tilde{\gamma} = "
    r"\log(1/\mathrm{loss})$.",
    place="appendix C.1, Lemma 11, eqs. (18)-(20); used in appendix F.1",
    study=at_depth_2,
    check=check_depth_2,
    title=r"At depth 2 the predictor stays below a sinh of $\log(1/\mathrm{loss})$",
    seconds=2,
)
lemma_13 = Experiment(
    "M-L13",
    statement=r"At depth $D > 2$ and at all $t$, $|w|_\infty$ is at most $\alpha^D h_D((D-2) "
    r"\bar{x} \tilde{\gamma} / (2 D \gamma_2^2 \alpha^D))$.",
    place="appendix C.2, Lemma 13, eqs. (27)-(29); used in appendix G.1",
    study=beyond_depth_2,
    check=check_beyond,
    title="Beyond depth 2 the bound on the predictor holds until its argument reaches 1",
    seconds=2,
)
