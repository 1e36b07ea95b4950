"""Lemma 10: the closed form of w(t) at depth 2, against training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.papers.experiment import Experiment
from tacit.papers.moroshko2020.lemmas.runs import (
    Run,
    TimedRun,
    cases,
    kernel_law,
    nth,
    numbered,
    of_kind,
    relative,
    run_far,
    run_in_time,
)
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    import xarray


def sinh_law(run: TimedRun, factor: float) -> float:
    """Deviation of the trained w from 2 alpha^2 sinh(factor X int r), M eq. (13)."""
    return relative(2 * run.case.mu * np.sinh(factor * run.impulse @ run.case.rows), run.predictor)


def speed_law(run: TimedRun) -> float:
    """Deviation of dw/dt from 4 sqrt(w^2 + 4 alpha^4) X r, M eq. (14)."""
    A = 4 * np.sqrt(run.predictor**2 + 4 * run.case.alpha**4)
    return relative(A * run.drive, run.growth)


def row_space(run: Run) -> tuple[float, float]:
    """Misfit of arcsinh(w/2 alpha^2) = 4 X rho over all records, and the lowest weight found."""
    s = np.arcsinh(run.predictor / (2 * run.case.mu))
    rho = np.linalg.lstsq(run.case.rows.T, s.T)[0].T / 4
    return relative(4 * rho @ run.case.rows, s), float((rho / np.abs(rho).max()).min())


def cell(run: str, *, factor: float) -> dict[str, float]:
    """Deviations of one run; "far" ones have fewer samples than features."""
    kind, number = run.split()
    if kind == "far":
        wide = (case for case in cases(10) if len(case.rows) < case.problem.dimension)
        misfit, lowest = row_space(run_far(nth(wide, int(number)), rtol=1e-8))
        return {"misfit": misfit, "lowest": lowest}
    found = run_in_time(nth(cases(10), int(number)))
    kernel, kernel_speed = kernel_law(found)
    return {
        "law": sinh_law(found, factor),
        "speed": speed_law(found),
        "law_not_averaged": sinh_law(found, factor / len(found.case.rows)),
        "law_of_kernel": kernel,
        "speed_of_kernel": kernel_speed,
        "scale": found.case.mu,
    }


study = sized(
    "M-L10",
    function=cell,
    arguments={"factor": 4.0},
    grid={"run": [*numbered("near", 9), *numbered("far", 2)]},
    tiny={"grid": {"run": [*numbered("near", 3), *numbered("far", 1)]}},
    full={"grid": {"run": [*numbered("near", 60), *numbered("far", 12)]}},
)


def check(dataset: xarray.Dataset) -> Evidence:
    """Both equations on the way, and the span of the data at losses that float64 does not hold."""
    near, far = of_kind(dataset, "near"), of_kind(dataset, "far")
    law = Check("largest deviation of w from eq. (13)", near.law.values.max(), tolerance=1e-7)
    speed = Check(
        "largest deviation of dw/dt from eq. (14)", near.speed.values.max(), tolerance=1e-7
    )
    shown = {
        "eq. (13)": near.law,
        "eq. (14)": near.speed,
        "4/N in place of 4": near.law_not_averaged,
        "the kernel of the start: w": near.law_of_kernel,
    }
    return Evidence(
        ran=f"{near.sizes['run']} data sets with labels of both signs, alpha² from 0.1 to 100,"
        " trained in the parameters and in t to loss e^-25 with int r carried along; "
        f"{far.sizes['run']} with fewer samples than features to loss e^-1000000",
        checks=[
            law,
            speed,
            Check(
                "to loss e^-1000000: distance of arcsinh(w/2 alpha²) from the span of the data",
                far.misfit.values.max(),
                tolerance=1e-5,
            ),
            Check(
                "the same: lowest weight, relative", far.lowest.values.min(), 0.0, 1e-5, "at least"
            ),
        ],
        controls={
            "the kernel of the start for ever: w (least deviation)": law.control(
                near.law_of_kernel.values.min()
            ),
            "the factor 4/N inside the sinh, r not averaged (median)": law.control(
                np.median(near.law_not_averaged.values)
            ),
            "the kernel of the start for ever: dw/dt (least deviation)": speed.control(
                near.speed_of_kernel.values.min()
            ),
        },
        plots=[
            Plot(
                "largest deviation of training from each law, to loss e^-25",
                "alpha^2",
                "relative deviation",
                [Series(name, near.scale, values, "points") for name, values in shown.items()],
                x_scale="log",
                y_scale="log",
            )
        ],
    )


experiment = Experiment(
    "M-L10",
    statement="At depth 2 the predictor is w(t) = 2 alpha^2 sinh(4 X int_0^t r), and"
    " dw/dt = A(t) X r with A = diag(4 sqrt(w^2 + 4 alpha^4)).",
    place="appendix C.1, Lemma 10, eqs. (13)-(17)",
    study=study,
    check=check,
    title="At depth 2 the predictor is a sinh of what the losses have summed up to",
    seconds=1,
)
