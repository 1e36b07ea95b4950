"""Lemma 11: the bound of |w|_inf at depth 2, against training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.papers.experiment import Experiment
from tacit.papers.moroshko2020.lemmas.runs import (
    Case,
    Run,
    cases,
    linear_excess,
    listed,
    nth,
    numbered,
    of_kind,
    run_far,
    run_in_time,
    single,
)
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    import xarray

SEEDS = {"near": 11, "far": 12}
ONE_POINT = {"one point": 100.0, "small start": 0.3}  # alpha
LARGE = np.array([1e2, 1e4, 1e6])


def log_sinh(z: Array) -> Array:
    return np.asarray(z + np.log(-np.expm1(-2 * z)) - np.log(2))


def sinh_excess(run: Run, factor: float) -> Array:
    """log |w|_inf minus the logarithm of the bound of lemma 11, per record."""
    case = run.case
    z = factor * case.x_bar / (case.gamma_2**2 * case.alpha**2) * run.smoothed_margin
    return np.asarray(np.log(np.abs(run.predictor).max(axis=1)) - np.log(2 * case.mu) - log_sinh(z))


def kernel_bracket(case: Case, alphas: Array) -> tuple[Array, Array]:
    """[2 alpha^2 gamma_2^2/x_bar sinh(...) - 1] of appendix F.1 at gtilde = alpha; and mended."""
    z = case.x_bar / (2 * alphas**2 * case.gamma_2**2)
    return np.sinh(z * alphas) / z - 1, np.sinh(z * alphas) / (z * alphas) - 1


def cell(run: str, *, factor: float) -> dict[str, Any]:
    """How much of the bound one run uses, at every record; `factor` is that of lemma 11."""
    if run in ONE_POINT:
        found: Run = run_in_time(single(2, ONE_POINT[run]))
    else:
        kind, number = run.split()
        case = nth(cases(SEEDS[kind]), int(number))
        found = run_in_time(case) if kind == "near" else run_far(case)
    excess = sinh_excess(found, factor)
    norms = np.linalg.norm(found.predictor, axis=1) / np.abs(found.predictor).max(axis=1)
    printed, mended = kernel_bracket(found.case, LARGE)
    return {
        "label": str(found.case),
        "name": found.case.name,
        "margin": found.smoothed_margin,
        "excess": excess,
        "most": excess.max(),
        "least": excess.min(),
        "most_l2": (excess + np.log(norms)).max(),
        "most_linear": linear_excess(found).max(),
        "printed": printed,
        "mended": mended,
    }


study = sized(
    "M-L11",
    function=cell,
    arguments={"factor": 0.5},
    grid={"run": [*numbered("near", 9), *numbered("far", 4), *ONE_POINT]},
    dims={"margin": ["record"], "excess": ["record"], "printed": ["alpha"], "mended": ["alpha"]},
    tiny={"grid": {"run": [*numbered("near", 3), *numbered("far", 3), *ONE_POINT]}},
    full={"grid": {"run": [*numbered("near", 60), *numbered("far", 24), *ONE_POINT]}},
)


def check(dataset: xarray.Dataset) -> Evidence:
    """The bound at every record of every run."""
    near, far = of_kind(dataset, "near", "one point"), of_kind(dataset, "far")
    third, sharp = dataset.sel(run="near 2"), dataset.sel(run="one point")
    worst = Check(
        "largest log of |w|_inf over the bound, to loss e^-25",
        near.most.values.max(),
        0.0,
        1e-8,
        "at most",
    )
    beyond = Check("the same to loss e^-1000000", far.most.values.max(), 0.0, 1e-8, "at most")
    return Evidence(
        ran=f"{near.sizes['run']} data sets in the parameters and in t to loss e^-25,"
        f" {far.sizes['run']} to loss e^-1000000; alpha² from 0.1 to 100, one point with"
        " alpha = 100",
        checks=[worst, beyond],
        controls={
            "the kernel's bound x_bar gtilde/gamma_2², one point, alpha = 0.3": worst.control(
                float(dataset.most_linear.sel(run="small start"))
            ),
            "|w|_2 in place of |w|_inf, on one point": worst.control(float(sharp.most_l2)),
        },
        findings=[
            "the bound is attained by one point in the kernel regime (alpha = 100, to loss e^-25:"
            f" log of bound/|w|_inf at most {-float(sharp.least):.1e}) and exponentially"
            " loose beyond gtilde ~ alpha²: at loss e^-1000000 its logarithm is too large by"
            f" {-float(far.least.max()):.3g} at least",
            "appendix F.1, the display after eq. (50): the sinh lacks a factor 1/gtilde. With"
            f" gtilde = alpha, on {third.name.item()}, the bracket is"
            f" {listed(third.printed.values)} at alpha = {listed(LARGE)} as printed and"
            f" {listed(third.mended.values)} with the factor; only this one tends to 0, as the"
            " proof needs",
        ],
        plots=[
            Plot(
                "what lemma 11 leaves unused",
                "smoothed margin",
                "log of bound / |w|_inf",
                [
                    Series(str(run.label.values), run.margin, -run.excess)
                    for run in (third, dataset.sel(run="far 2"))
                ],
                "log",
                "log",
            )
        ],
    )


experiment = Experiment(
    "M-L11",
    statement="At depth 2 and at all t, |w|_inf is at most 2 alpha^2 sinh(x_bar gtilde /"
    " (2 gamma_2^2 alpha^2)), with gtilde = log(1/loss).",
    place="appendix C.1, Lemma 11, eqs. (18)-(20); used in appendix F.1",
    study=study,
    check=check,
    title="At depth 2 the predictor stays below a sinh of log(1/loss)",
    seconds=2,
)
