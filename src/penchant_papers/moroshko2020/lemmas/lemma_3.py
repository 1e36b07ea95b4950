"""Lemma 3: how fast the loss falls."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant.bounds import largest_log_loss
from penchant.lab import Array, Dataset, Evidence, Experiment, at_most, log_log, sized
from penchant.problems import three_points
from penchant_papers.moroshko2020.lemmas.runs import (
    Case,
    RecordedTraining,
    of_kind,
    run_far,
    run_in_time,
    run_named,
    single,
    trials,
)

DEPTHS = (2, 3, 5)


def log_excess(run: RecordedTraining, factor: float, gamma: float) -> Array:
    """log of L(t) (1 + factor D^2 alpha^(2D-2) gamma^2 t) per record: <= 0 by lemma 3.

    The bound has the factor 2 and gamma_2; with other ones it is that of another time.
    """
    return -run.smoothed_margin - log_bound(run, factor, gamma)


def log_bound(run: RecordedTraining, factor: float, gamma: float) -> Array:
    """The bound itself, per record."""
    case = run.case
    log_t = run.log_t + np.log(factor / 2) + 2 * np.log(gamma / case.gamma_2)
    return largest_log_loss(case.problem, case.model, log_t)


def run_of(run: str, seed: int) -> RecordedTraining:
    kind, _, number = run.rpartition(" ")
    if kind == "one point":
        return run_in_time(single(int(number), 100.0))
    if kind == "one point far":
        return run_far(single(int(number), 0.3))
    if kind == "panel":
        return run_in_time(Case("panel 3b", three_points("3b"), int(number), 100.0))
    return run_named(run, seed, {"near": DEPTHS, "far": DEPTHS})


def cell(run: str, *, factor: float, seed: int) -> dict[str, Any]:
    """How far the bound with this factor is above the loss at every record of one run."""
    training = run_of(run, seed)
    gamma = training.case.gamma_2
    excess = log_excess(training, factor, gamma)
    with np.errstate(over="ignore"):  # to losses that no exponential reaches
        as_squared = np.expm1(-log_bound(training, factor, gamma)) - training.smoothed_margin
    return {
        "label": str(training.case),
        "margin": training.smoothed_margin,
        "excess": excess,
        "most": excess.max(),
        "least": excess.min(),
        "last": excess[-1],
        "most_as_squared": as_squared.max(),
        "most_x_max": log_excess(training, factor, training.case.x_max).max(),
    }


SPECIAL = [*(f"one point {depth}" for depth in DEPTHS), "panel 2", "one point far 2"]
study = sized(
    "M-L3",
    function=cell,
    arguments={"factor": 2.0, "seed": 3},
    **trials(SPECIAL),
    dims={"margin": ["record"], "excess": ["record"]},
)


def check(dataset: Dataset) -> Evidence:
    """The bound at every record of every run."""
    near, far = of_kind(dataset, "near"), of_kind(dataset, "far")
    equal = dataset.sel(run=SPECIAL[: len(DEPTHS)])
    kernel, small = dataset.sel(run="panel 2"), dataset.sel(run="one point far 2")
    most = np.concatenate([near.most, equal.most, [kernel.most]]).max()
    short = at_most(most, tolerance=1e-8)
    digits = -far["last"].values / np.log(10)
    return Evidence(
        ran=rf"{near.sizes['run']} data sets at depths {DEPTHS}, $\alpha^D$ from 0.1 to 100, in "
        f"the parameters and in $t$ to loss $e^{{-25}}$, {far.sizes['run']} to loss "
        r"$e^{-1000000}$ with $\log t$; one point and panel 3b with $\alpha = 100$",
        checks={
            "largest log of loss over bound, to loss $e^{-25}$": short,
            "the same to loss $e^{-1000000}$": at_most(far.most.values.max(), tolerance=1e-8),
        },
        controls={
            r"$\exp(-2 D^2 \alpha^{2 D-2} \gamma_2^2 t)$, as for the squared loss, one "
            "point": short.control(equal.most_as_squared.values.min()),
            r"$x_{\max}$ in place of $\gamma_2$, on panel 3b": short.control(kernel.most_x_max),
        },
        findings=[
            r"attained when all points are equal, in the kernel regime: one point at $\alpha = "
            f"100$ has log(bound/loss) at most {-equal.least.values.min():.1e} for $D$ = "
            rf"{', '.join(map(str, DEPTHS))} to loss $e^{{-25}}$. On panel 3b at $\alpha = "
            f"100$ bound/loss rises to {np.exp(-float(kernel.least)):.4f} and returns to "
            f"{np.exp(-float(kernel['last'])):.6f}, because there the weights turn to those "
            r"of the $\ell_2$ max margin",
            r"loose outside the kernel regime: with $\log(1/\mathrm{loss}) = 1000000$ the bound "
            f"is too large by a factor $10^{{{digits.min():.2f}}}$ to "
            rf"$10^{{{digits.max():.2f}}}$; one point with $\alpha = 0.3$: "
            f"$10^{{{-float(small['last']) / np.log(10):.2f}}}$",
        ],
        plots=[
            log_log(
                "ratio of the bound of lemma 3 to the loss",
                r"$\log(1/\mathrm{loss})$",
                "bound / loss",
                [
                    (str(run.label.values), run.margin, np.exp(-run.excess))
                    for run in (kernel, *(dataset.sel(run=f"near {k}") for k in range(3)))
                ],
            )
        ],
    )


experiment = Experiment(
    "M-L3",
    statement=r"At any depth $D \geq 2$, any $\alpha$ and all $t$, the loss is at most $1/(1 + 2 "
    r"D^2 \alpha^{2 D-2} \gamma_2^2 t)$.",
    place="section 4, Lemma 3; appendix D, eqs. (30)-(33)",
    study=study,
    check=check,
    title="The loss falls at least as fast as $1/t$, at a rate set by the ℓ₂ margin",
    seconds=2,
)
