"""Lemma 13: the bound of |w|_inf beyond depth 2, which holds only while its argument is below 1."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.papers.experiment import Experiment
from tacit.papers.moroshko2020.lemmas.power import h
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

DEPTHS = {"near": (3, 4, 5, 8), "far": (3, 4)}
SEEDS = {"near": 14, "far": 15}
ONE_POINT = {"one point": 30.0, "small start": 0.3}  # alpha
LARGE = np.array([1e2, 1e4, 1e6])


def argument(run: Run) -> Array:
    """(D-2) x_bar gtilde / (2 D gamma_2^2 alpha^D), the argument of h_D in lemma 13."""
    case, D = run.case, run.case.depth
    scale = (D - 2) * case.x_bar / (2 * D * case.gamma_2**2 * case.mu)
    return np.asarray(scale * run.smoothed_margin)


def bracket(case: Case) -> tuple[Array, Array]:
    """gtilde/alpha^2 and the bracket of appendix G.1 for gtilde = alpha^(D - 1/2), alpha large."""
    g = LARGE ** (case.depth - 0.5)
    scale = (case.depth - 2) * case.x_bar / (2 * case.depth * case.gamma_2**2)
    z = scale * g / LARGE**case.depth
    bracket = 2 * case.gamma_2**2 * LARGE**case.depth / (case.x_bar * g) * h(z, case.depth) - 2
    return g / LARGE**2, bracket


def cell(run: str, *, tightened: float) -> dict[str, Any]:
    """Bound and norm at every record of one run; the argument is multiplied by `tightened`."""
    if run in ONE_POINT:
        found: Run = run_in_time(single(3, ONE_POINT[run]))
    else:
        kind, number = run.split()
        case = nth(cases(SEEDS[kind], DEPTHS[kind]), int(number))
        found = run_in_time(case) if kind == "near" else run_far(case)
    z, (over_square, own_bracket) = tightened * argument(found), bracket(found.case)
    return {
        "label": str(found.case),
        "depth": found.case.depth,
        "margin": found.smoothed_margin,
        "argument": z,
        "bound": found.case.mu * h(z, found.case.depth),
        "largest": np.abs(found.predictor).max(axis=1),
        "length": np.linalg.norm(found.predictor, axis=1),
        "least_linear": np.expm1(-linear_excess(found)).min(),
        "over_square": over_square,
        "bracket": own_bracket,
    }


RECORDED = {key: ["record"] for key in ("margin", "argument", "bound", "largest", "length")}
study = sized(
    "M-L13",
    function=cell,
    arguments={"tightened": 1.0},
    grid={"run": [*numbered("near", 9), *numbered("far", 4), *ONE_POINT]},
    dims={**RECORDED, "over_square": ["alpha"], "bracket": ["alpha"]},
    tiny={"grid": {"run": [*numbered("near", 3), *numbered("far", 3), *ONE_POINT]}},
    full={"grid": {"run": [*numbered("near", 60), *numbered("far", 24), *ONE_POINT]}},
)


def check(dataset: xarray.Dataset) -> Evidence:
    """The bound at all records as printed, and where its argument is below 1."""
    runs = of_kind(dataset, "near", "far", "one point")
    sharp, recorded = runs.sel(run="one point"), runs.margin.notnull()
    left = (runs.bound / runs.largest - 1).where(np.isfinite(runs.bound))
    inside = runs.argument < 1
    used = left.where(inside)
    crossed = int((runs.argument > 1).any("record").sum())
    share = float(inside.sum() / recorded.sum())
    printed, mended = (
        Check(f"least bound/|w|_inf - 1{where}", float(values.min()), 0.0, 1e-8, "at least")
        for where, values in (
            (" at all t", left),
            (" while the argument is below 1", used),
        )
    )
    sizes = {kind: of_kind(runs, kind).sizes["run"] for kind in ("near", "far")}
    return Evidence(
        ran=f"{sizes['near'] + 1} data sets at depths {DEPTHS['near']} in the parameters and in t"
        f" to loss e^-25, {sizes['far']} at depths 3 and 4 to loss e^-1000000; alpha^D from 0.1 to"
        " 100, one point with alpha = 30",
        checks=[printed],
        corrected=[mended],
        correction="the bound holds while its argument (D-2) x_bar gtilde / (2 D gamma_2² alpha^D)"
        " is below 1; beyond, h_D is not defined and Grönwall's inequality bounds nothing",
        counterexample=broken(runs.isel(run=int(left.min("record").values.argmin()))),
        premises={
            "training passes the argument 1": (crossed > 0, crossed),
            "training is also seen inside": (share > 0.2, share),
        },
        controls={
            "the kernel's bound x_bar gtilde/gamma_2², one point, alpha = 0.3": mended.control(
                float(dataset.least_linear.sel(run="small start"))
            ),
            "|w|_2 in place of |w|_inf, on one point": mended.control(
                float((sharp.bound / sharp.length - 1).where(sharp.argument < 1).min())
            ),
        },
        findings=[
            f"{crossed} of {runs.sizes['run']} runs pass the argument 1; read as a formula there,"
            f" h_D is negative for D = 3 (h_3(2) = {h(np.array(2.0), 3):.3g}), falls for D = 4"
            f" (h_4(2) = {h(np.array(2.0), 4):.3g}) and is not real for D = 5; the proof of"
            " Theorem 4 uses the lemma only where its argument tends to 0, so that it stands",
            "the bound is attained by one point in the kernel regime (alpha = 30, to loss e^-25:"
            f" bound/|w|_inf - 1 at most {float((sharp.bound / sharp.largest - 1).max()):.1e})",
            scale_of_g1(dataset.sel(run="near 0")),
        ],
        plots=[
            Plot(
                "what lemma 13 leaves unused while its argument is below 1",
                "argument of h_D",
                "bound / |w|_inf - 1",
                [
                    Series(str(run.label.values), run.argument, used.sel(run=name))
                    for name in ("near 0", "near 1", "far 0", "one point")
                    for run in (runs.sel(run=name),)
                ],
                "log",
                "log",
            )
        ],
    )


def broken(run: xarray.Dataset) -> dict[str, float | str]:
    """The first record where the bound as printed is violated."""
    bad = np.flatnonzero((run.bound < run.largest).values)
    at = run.isel(record=int(bad[0]) if len(bad) else 0)
    return {
        "data": str(run.label.values),
        "smoothed margin": float(at.margin),
        "argument of h_D": float(at.argument),
        "|w|_inf in training": float(at.largest),
        "the bound as printed": float(at.bound),
    }


def scale_of_g1(run: xarray.Dataset) -> str:
    """That appendix G.1 needs gtilde/alpha^D -> 0 and does not have gtilde/alpha^2 -> 0."""
    ratio, bracket, depth = run.over_square.values, run.bracket.values, int(run.depth)
    grows = all(b > a for a, b in pairwise(ratio))
    falls = all(b < a for a, b in pairwise(bracket))
    return (
        "appendix G.1 uses gtilde/alpha² -> 0 where the premise, and all it needs, is"
        f" gtilde/alpha^D -> 0: with D = {depth} and gtilde = alpha^{depth - 0.5:g} at"
        f" alpha = {listed(LARGE)}, gtilde/alpha² {'grows' if grows else 'does not grow'}"
        f" ({listed(ratio)}) and the bracket {'falls' if falls else 'does not fall'}"
        f" ({listed(bracket)})"
    )


experiment = Experiment(
    "M-L13",
    statement="At depth D > 2 and at all t, |w|_inf is at most alpha^D h_D((D-2) x_bar gtilde /"
    " (2 D gamma_2^2 alpha^D)).",
    place="appendix C.2, Lemma 13, eqs. (27)-(29); used in appendix G.1",
    study=study,
    check=check,
    title="Beyond depth 2 the bound of the predictor holds until its argument is 1",
    seconds=2,
)
