"""Lemma 12: the closed form of w(t) beyond depth 2, against training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.papers.experiment import Experiment
from tacit.papers.moroshko2020.lemmas.power import h, h_inverse, h_slope
from tacit.papers.moroshko2020.lemmas.runs import (
    TimedRun,
    cases,
    kernel_law,
    nth,
    numbered,
    of_kind,
    relative,
    run_in_time,
    single,
)
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    import xarray

DEPTHS = (3, 4, 5, 8)


def reach(run: TimedRun) -> Array:
    """alpha^(D-2) D (D-2) X int r, which eq. (24) keeps in [-1, 1]."""
    case, D = run.case, run.case.depth
    return np.asarray(case.alpha ** (D - 2) * D * (D - 2) * run.impulse @ case.rows)


def power_law(run: TimedRun, deeper: int) -> float:
    """Deviation of the trained w from alpha^D h_D(alpha^(D-2) D (D-2) X int r)."""
    return relative(run.case.mu * h(reach(run), run.case.depth + deeper), run.predictor)


def speed_law(run: TimedRun) -> float:
    """Deviation of dw/dt from A_D X r."""
    D, alpha = run.case.depth, run.case.alpha
    z = h_inverse(run.predictor / run.case.mu, D)
    A = alpha ** (2 * D - 2) * D * (D - 2) * h_slope(z, D)
    return relative(A * run.drive, run.growth)


def cell(run: str, *, deeper: int) -> dict[str, float]:
    """Deviations of one run from the laws with h of depth D + deeper, and its largest argument."""
    if run == "depth 2":
        shallow = run_in_time(single(2, 0.3))
        return {"most": np.abs(4 * shallow.impulse @ shallow.case.rows).max()}
    found = run_in_time(nth(cases(13, DEPTHS), int(run.split()[1])))
    case, kernel = found.case, kernel_law(found)
    return {
        "most": np.abs(reach(found)).max(),
        "law": power_law(found, deeper),
        "law_deeper": power_law(found, deeper + 1),
        "inverse": relative(reach(found), h_inverse(found.predictor / case.mu, case.depth)),
        "speed": speed_law(found),
        "law_of_kernel": kernel[0],
        "speed_of_kernel": kernel[1],
        "scale": case.mu,
    }


study = sized(
    "M-L12",
    function=cell,
    arguments={"deeper": 0},
    grid={"run": [*numbered("near", 9), "depth 2"]},
    tiny={"grid": {"run": [*numbered("near", 4), "depth 2"]}},
    full={"grid": {"run": [*numbered("near", 60), "depth 2"]}},
)


def check(dataset: xarray.Dataset) -> Evidence:
    """The law, its inverse and the speed at every record, and the box of the argument."""
    near = of_kind(dataset, "near")
    law = Check("largest deviation of w from h_D", near.law.values.max(), tolerance=1e-6)
    inverse = Check(
        "largest deviation of the argument from h_D^-1(w/alpha^D), eq. (25)",
        near.inverse.values.max(),
        tolerance=1e-7,
    )
    speed = Check(
        "largest deviation of dw/dt from A_D X r", near.speed.values.max(), tolerance=1e-6
    )
    most = near.most.values.max()
    box = Check("largest argument of h_D", most, 1.0, kind="at most")
    shown = {
        "h of depth D": near.law,
        "dw/dt": near.speed,
        "h of depth D + 1": near.law_deeper,
        "the kernel of the start": near.law_of_kernel,
    }
    return Evidence(
        ran=f"{near.sizes['run']} data sets at depths {DEPTHS}, alpha^D from 0.1 to 100, trained in"
        " the parameters and in t to loss e^-25 with int r carried along",
        checks=[law, inverse, speed, box],
        controls={
            "h of depth D + 1 (least deviation)": law.control(near.law_deeper.values.min()),
            "the kernel of the start for ever: w (least deviation)": law.control(
                near.law_of_kernel.values.min()
            ),
            "the kernel of the start for ever: dw/dt (least deviation)": speed.control(
                near.speed_of_kernel.values.min()
            ),
            "a box at depth 2: the argument of the sinh": box.control(
                float(dataset.most.sel(run="depth 2"))
            ),
        },
        findings=[f"eq. (24) is strict at finite t: the argument comes to {most:.6f}"],
        plots=[
            Plot(
                "largest deviation of training from each law, to loss e^-25",
                "alpha^D",
                "relative deviation",
                [Series(name, near.scale, values, "points") for name, values in shown.items()],
                x_scale="log",
                y_scale="log",
            )
        ],
    )


experiment = Experiment(
    "M-L12",
    statement="At depth D > 2 the predictor is w(t) = alpha^D h_D(alpha^(D-2) D (D-2) X int_0^t r)"
    " with the argument in [-1, 1], and dw/dt = A_D(t) X r.",
    place="appendix C.2, Lemma 12, eqs. (21)-(26)",
    study=study,
    check=check,
    title="Beyond depth 2 the predictor is a power law of what the losses have summed up to",
    seconds=1,
)
