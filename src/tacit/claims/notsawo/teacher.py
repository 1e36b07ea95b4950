"""N-F-ts: a student of a non-linear teacher, with an l1 penalty or with derivatives."""

from __future__ import annotations

import numpy as np

from tacit.claims.notsawo.courses import Course, course, exponent
from tacit.claims.notsawo.teacher_runs import (
    BETAS,
    DESCENT,
    LEVEL,
    STEP,
    Runs,
    adam_powers,
    dense,
    flat,
    later,
    least,
    most,
    powers,
    share_of_groks,
    span,
    sparse,
    taught,
    times,
)
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.models.student import student
from tacit.problems.teacher import teacher_student
from tacit.regularizers.norms import L1, L2
from tacit.studies.sizes import Size
from tacit.training.descent.methods import Adam


@claim(
    "N-F-ts",
    statement="(ours: N only names its figures) a two-layer ReLU student that has memorized the"
    " answers of a two-layer ReLU teacher generalizes late under an l1 penalty if the teacher's"
    " weights are sparse, and late under a penalty on wrong first derivatives (Sobolev), later for"
    " smaller beta; under subgradient descent with l1 the median exponent of t2 in step beta is"
    " -1",
    place="Non-linear Teacher-student",
    seconds=15,
)
def teacher_and_student(size: Size) -> Evidence:
    # the first seed is done at 0.3/(step beta), the slowest of the first five at 0.9/(step beta)
    runs = Runs(range(1), 0.6) if size == "quick" else Runs(range(5), 1.2)
    l1, sobolev = flat(runs.l1), flat(runs.sobolev)
    grok = Check(
        "part of the runs with l1 and a sparse teacher that grok",
        share_of_groks(l1),
        1.0,
        0.0,
        "at least",
    )
    left = Check("largest test error that l1 leaves", most(l1), LEVEL, 0.0, "at most")
    slow = Check(
        "least growth of t2 with l1 from a beta to a third of it",
        min(map(later, runs.l1)),
        1.3,
        0.0,
        "at least",
    )
    law = Check(
        "median over the seeds of the exponent in step beta of descent's t2 with l1",
        float(np.median(powers(runs.descent))),
        -1.0,
        0.05,
    )
    grok_too = Check(
        "part of the runs with derivatives that grok", share_of_groks(sobolev), 1.0, 0.0, "at least"
    )
    left_too = Check(
        "largest test error that derivatives leave", most(sobolev), LEVEL, 0.0, "at most"
    )
    slow_too = Check(
        "least growth of t2 with derivatives from a beta to a third of it",
        min(map(later, runs.sobolev)),
        1.3,
        0.0,
        "at least",
    )
    in_beta, in_step = adam_powers(0, runs.l1[0])
    everyone = [*l1, *sobolev, *flat(runs.descent), *runs.controls]
    found = findings(runs, in_beta, in_step)
    return Evidence(
        ran=f"constructed: students of width 50, {len(runs.seeds)} seed(s), Adam with step"
        f" {STEP:g} and beta {', '.join(f'{b:g}' for b in BETAS)}; l1: 60 samples of 30 inputs, 3"
        " units that read 2 inputs each; Sobolev: 60 samples of 10 inputs, 10 Gaussian units;"
        f" labels of variance 1, solved at {LEVEL:g} of it; loss (1/2) sum of squares",
        premises={
            "training is solved in every run, the controls too": (
                all(np.isfinite(one.verdict.t1) for one in everyone),
                f"{len(everyone)} runs",
            )
        },
        checks=[grok, left, slow, law, grok_too, left_too, slow_too],
        controls={
            "no penalty": left.control(least(runs.free)),
            "no penalty, groks": grok.control(share_of_groks(runs.free)),
            "the squared l2 norm": left.control(least(runs.euclid)),
            "l1 and a dense teacher": left.control(least(runs.dense)),
            "memorization is later as well": slow.control(max(later(row, "t1") for row in runs.l1)),
            "Adam's exponent in beta": law.control(in_beta),
            "no derivatives": left_too.control(least(runs.untold)),
            "the derivatives at other samples": left_too.control(least(runs.misled)),
        },
        findings=found + ([*more_samples(), *source_size()] if size == "full" else []),
        plots=[
            panel("l1 and a sparse teacher", runs.l1[0], runs.free[0], "no penalty"),
            panel("first derivatives", runs.sobolev[0], runs.misled[0], "those of other samples"),
        ],
    )


def findings(runs: Runs, in_beta: float, in_step: float) -> list[str]:
    """What the runs say beyond the checks."""
    first, told = runs.l1[0], runs.sobolev[0]
    paced = [c.verdict.t2 * a * b for c, (a, b) in zip(runs.descent[0], DESCENT, strict=True)]
    kinds = sorted({one.verdict.kind for one in runs.dense})
    return [
        f"seed 0, beta {', '.join(f'{b:g}' for b in BETAS)}: t1 = {first[0].verdict.t1:.0f} and"
        f" t2 = {times(first)} with l1; t1 = {told[0].verdict.t1:.0f} and t2 = {times(told)} with"
        " derivatives",
        "with Adam t2 is no function of step beta: its exponent is"
        f" {in_beta:.2f} in beta and, at beta {BETAS[0]:g}, {in_step:.2f} in the step; with"
        " derivatives"
        f" {exponent(np.array(BETAS), np.array([c.verdict.t2 for c in told])):.2f} in beta",
        "of subgradient descent with l1 t2 step beta is "
        + ", ".join(f"{p:.3f}" for p in paced)
        + " at (step, beta) = "
        + ", ".join(f"({a:g}, {b:g})" for a, b in DESCENT)
        + "; the exponents of the seeds are "
        + ", ".join(f"{p:.2f}" for p in powers(runs.descent)),
        "from a dense Gaussian teacher as N's l1 has nothing to find: it leaves a test error of"
        f" {span(runs.dense)}, the verdict is {' or '.join(kinds)}",
        f"the squared l2 norm leaves {span(runs.euclid)}: it does not see that the units read few"
        " inputs",
        f"derivatives at other samples leave {span(runs.misled)}, none at all {span(runs.untold)}",
    ]


def more_samples() -> list[str]:
    """What the penalties of the controls do with three times the samples."""
    few = taught(sparse(0, 180), 0, L2(), BETAS[0])
    many = taught(dense(0, 180), 0, L1(), BETAS[0])
    return [
        f"with 180 samples the squared l2 norm leaves {few.left:.3f} ({few.verdict.kind}): it sees"
        f" that the units are few; l1 and the dense teacher leave {many.left:.2f}"
        f" ({many.verdict.kind})"
    ]


def source_size() -> list[str]:
    """The same at N's size, 100-500-2: two penalties on a sparse teacher, one on a dense one."""
    model = student(500, 2, alpha=1.0, seed=7)
    few = teacher_student(100, units=5, reads=3, standard=True)
    lines = []
    for beta in (0.3, 0.03):
        one = course(few, model, Adam(STEP), beta * L1(), 3000, LEVEL)
        lines.append(
            f"100-500-2, 5 units that read 3 inputs, N = 100, l1 with beta {beta:g}:"
            f" {one.verdict.kind}, t1 = {one.verdict.t1:.0f}, t2 = {one.verdict.t2:.0f},"
            f" test error {one.left:.4f}"
        )
    for samples in (100, 1000):
        data = teacher_student(samples, standard=True)
        one = course(data, model, Adam(STEP), 0.3 * L1(), 1000, LEVEL)
        lines.append(
            f"100-500-2, N's dense teacher, N = {samples}, l1 with beta 0.3:"
            f" {one.verdict.kind}, test error {one.test.min():.2f} at best and"
            f" {one.left:.2f} after 1000 steps"
        )
    return lines


def panel(title: str, row: list[Course], other: Course, name: str) -> Plot:
    """Test errors of every beta, and of the control."""

    def series(label: str, one: Course, style: str = "line") -> Series:
        return Series(label, one.step[1:], one.test[1:], style)  # type: ignore[arg-type]

    curves = [series(f"beta {b:g}", one) for b, one in zip(BETAS, row, strict=True)]
    return Plot(
        title,
        "steps of Adam",
        "test error / variance",
        [*curves, series(name, other, "dashed")],
        "log",
        "log",
    )
