"""Lemmas 10 and 12: the closed form of w(t) at depth 2 and beyond, against training."""

from __future__ import annotations

import numpy as np

from penchant.lab import (
    Array,
    Check,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    at_least,
    at_most,
    log_log,
    sized,
    within,
)
from penchant_papers.moroshko2020.lemmas.runs import (
    RecordedTraining,
    TimedRun,
    cases,
    h,
    h_inverse,
    h_slope,
    nth,
    numbered,
    of_kind,
    run_far,
    run_in_time,
    single,
)

DEPTHS = (3, 4, 5, 8)


def relative(values: Array, true: Array) -> float:
    """The largest deviation of any row, relative to the largest entry of that row."""
    return float((np.abs(values - true).max(axis=1) / np.abs(true).max(axis=1)).max())


def deviations(run: TimedRun, w: Array, wrong: Array, slopes: Array) -> dict[str, float]:
    """How far training is from the laws w and dw/dt = slopes X r, and from two wrong ones.

    `wrong` is another law of w; a kernel that never moves gives a wrong law of both.
    """
    case = run.case
    still = 2 * case.depth**2 * case.alpha ** (2 * case.depth - 2)
    return {
        "law": relative(w, run.predictor),
        "speed": relative(slopes * run.drive, run.growth),
        "law_wrong": relative(wrong, run.predictor),
        "law_of_kernel": relative(still * run.impulse @ case.rows, run.predictor),
        "speed_of_kernel": relative(still * run.drive, run.growth),
        "scale": case.mu,
    }


def row_space(run: RecordedTraining) -> tuple[float, float]:
    """Misfit of arcsinh(w/2 alpha^2) = 4 X rho over all records, and the lowest weight found."""
    s = np.arcsinh(run.predictor / (2 * run.case.mu))
    rho = np.linalg.lstsq(run.case.rows.T, s.T)[0].T / 4
    return relative(4 * rho @ run.case.rows, s), float((rho / np.abs(rho).max()).min())


def sinh_cell(run: str, *, factor: float, seed: int) -> dict[str, float]:
    """Deviations of a run from eqs. (13), (14); "far" ones have fewer samples than features."""
    kind, number = run.split()
    if kind == "far":
        wide = (case for case in cases(seed, 1) if len(case.rows) < case.problem.dimension)
        misfit, lowest = row_space(run_far(nth(wide, int(number)), rtol=1e-8))
        return {"misfit": misfit, "lowest": lowest}
    training = run_in_time(nth(cases(seed), int(number)))
    case, z = training.case, factor * training.impulse @ training.case.rows
    law, not_averaged = (2 * case.mu * np.sinh(z / over) for over in (1, len(case.rows)))
    return deviations(training, law, not_averaged, 4 * np.hypot(training.predictor, 2 * case.mu))


def reach(run: TimedRun) -> Array:
    """alpha^(D-2) D (D-2) X int r, which eq. (24) keeps in [-1, 1]."""
    case, D = run.case, run.case.depth
    return np.asarray(case.alpha ** (D - 2) * D * (D - 2) * run.impulse @ case.rows)


def power_cell(run: str, *, deeper: int, seed: int) -> dict[str, float]:
    """Deviations of one run from the laws with h of depth D + deeper, and its largest argument."""
    if run == "depth 2":
        shallow = run_in_time(single(2, 0.3))
        return {"most": np.abs(4 * shallow.impulse @ shallow.case.rows).max()}
    training = run_in_time(nth(cases(seed, depths=DEPTHS), int(run.split()[1])))
    case, D, z = training.case, training.case.depth, reach(training)
    law, wrong = (case.mu * h(z, D + more) for more in (deeper, deeper + 1))
    inverse = h_inverse(training.predictor / case.mu, D)
    slopes = case.alpha ** (2 * D - 2) * D * (D - 2) * h_slope(inverse, D)
    own = {"most": np.abs(z).max(), "inverse": relative(z, inverse)}
    return own | deviations(training, law, wrong, slopes)


sinh = sized(
    "M-L10",
    function=sinh_cell,
    arguments={"factor": 4.0, "seed": 10},
    grid={"run": [*numbered("near", 3), *numbered("far", 1)]},
    printed={"grid": {"run": [*numbered("near", 60), *numbered("far", 12)]}},
)
power = sized(
    "M-L12",
    function=power_cell,
    arguments={"deeper": 0, "seed": 13},
    grid={"run": [*numbered("near", 4), "depth 2"]},
    printed={"grid": {"run": [*numbered("near", 60), "depth 2"]}},
)


def laws(
    near: Dataset, names: tuple[str, str, str, str], tolerance: float
) -> tuple[dict[str, Check], dict[str, Check], Plot]:
    """The checks of w and of dw/dt, the kernel of the start as their control, and the plot."""
    law, speed = (within(near[key].values.max(), tolerance=tolerance) for key in ("law", "speed"))
    checks = {
        f"largest deviation of $w$ from {names[0]}": law,
        f"largest deviation of $dw/dt$ from {names[1]}": speed,
    }
    controls = {
        f"the kernel of the start at all times: {what} (least deviation)": check.control(
            values.min()
        )
        for what, check, values in (
            ("$w$", law, near.law_of_kernel.values),
            ("$dw/dt$", speed, near.speed_of_kernel.values),
        )
    }
    shown = zip(names, ("law", "speed", "law_wrong"), strict=False)
    series = [(name, near.scale, near[key].values, "points") for name, key in shown]
    kernel = ("the kernel of the start: $w$", near.scale, near.law_of_kernel.values, "points")
    title = "largest deviation of training from each formula, to loss $e^{-25}$"
    axes = names[3], "relative deviation", [*series, kernel]
    return checks, controls, log_log(title, *axes)


def check_sinh(dataset: Dataset) -> Evidence:
    """Both equations during training, and the span of the data at losses below float64."""
    near, far = of_kind(dataset, "near"), of_kind(dataset, "far")
    names = ("eq. (13)", "eq. (14)", "$4/N$ in place of 4", r"$\alpha^2$")
    checks, controls, plot = laws(near, names, 1e-7)
    law, _ = checks.values()
    span = within(far.misfit.values.max(), tolerance=1e-5)
    return Evidence(
        ran=rf"{near.sizes['run']} data sets with labels of both signs, $\alpha^2$ from 0.1 to "
        r"100, trained in the parameters and in $t$ to loss $e^{-25}$ with $\int r$ "
        f"integrated alongside; {far.sizes['run']} with fewer samples than features to loss "
        "$e^{-1000000}$",
        checks={
            **checks,
            r"to loss $e^{-1000000}$: distance of $\operatorname{arcsinh}(w/2 \alpha^2)$ from the "
            "span of the data": span,
            "the same: lowest weight, relative": at_least(far.lowest.values.min(), tolerance=1e-5),
        },
        controls={
            **controls,
            "the factor $4/N$ inside the sinh, $r$ not averaged (median)": law.control(
                np.median(near.law_wrong.values)
            ),
        },
        plots=[plot],
    )


def check_power(dataset: Dataset) -> Evidence:
    """The law, its inverse and the speed at every record, and the box of the argument."""
    near = of_kind(dataset, "near")
    checks, controls, plot = laws(
        near, ("$h_D$", "$A_D X r$", "$h$ of depth $D + 1$", r"$\alpha^D$"), 1e-6
    )
    (first, law), (second, speed) = checks.items()
    inverse = within(near.inverse.values.max(), tolerance=1e-7)
    most = near.most.values.max()
    box = at_most(most, 1.0)
    unbounded = float(dataset.most.sel(run="depth 2"))
    return Evidence(
        ran=rf"{near.sizes['run']} data sets at depths {DEPTHS}, $\alpha^D$ from 0.1 to 100, "
        r"trained in the parameters and in $t$ to loss $e^{-25}$ with $\int r$ integrated "
        "alongside",
        checks={
            first: law,
            r"largest deviation of the argument from $h_D^{-1}(w/\alpha^D)$, eq. (25)": inverse,
            second: speed,
            "largest argument of $h_D$": box,
        },
        controls={
            "$h$ of depth $D + 1$ (least deviation)": law.control(near.law_wrong.values.min()),
            **controls,
            "a bound of 1 at depth 2: the argument of the sinh": box.control(unbounded),
        },
        findings=[f"eq. (24) is strict at finite $t$: the argument comes to {most:.6f}"],
        plots=[plot],
    )


lemma_10 = Experiment(
    "M-L10",
    statement=r"At depth 2 the predictor is $w(t) = 2 \alpha^2 \sinh(4 X \int_0^t r)$, and $dw/dt "
    r"= A(t) X r$ with $A = \operatorname{diag}(4 \sqrt{w^2 + 4 \alpha^4})$.",
    place="appendix C.1, Lemma 10, eqs. (13)-(17)",
    study=sinh,
    check=check_sinh,
    title="At depth 2 the predictor is a sinh of the integrated loss weights",
)
lemma_12 = Experiment(
    "M-L12",
    statement=r"At depth $D > 2$ the predictor is $w(t) = \alpha^D h_D(\alpha^{D-2} D (D-2) X "
    r"\int_0^t r)$ with the argument in [-1, 1], and $dw/dt = A_D(t) X r$.",
    place="appendix C.2, Lemma 12, eqs. (21)-(26)",
    study=power,
    check=check_power,
    title="Beyond depth 2 the predictor is a power law of the integrated loss weights",
)
