"""Non-linear Teacher-student: students with an l1 penalty, or with the teacher's derivatives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Check, Evidence
from tacit.papers.experiment import Experiment
from tacit.papers.instances import slope
from tacit.papers.notsawo2025.figures.runs import runs_of
from tacit.papers.notsawo2025.figures.students import BETAS, LARGE, LEVEL, controls, descent, study
from tacit.plotting.style import BLACK, CYCLE, GREY, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def among(runs: Sequence[Any], **wanted: Any) -> list[Any]:
    """The runs with these values."""
    return [run for run in runs if all(run[name] == value for name, value in wanted.items())]


def rows(runs: Sequence[Any]) -> list[list[Any]]:
    """The runs of every seed, in their order."""
    return [among(runs, split=seed) for seed in dict.fromkeys(int(run.split) for run in runs)]


def later(row: Sequence[Any], time: str = "t2") -> float:
    """The least factor by which t2, or t1, grows from a beta to the next smaller one; 0 if none."""
    pairs = [(float(a[time]), float(b[time])) for a, b in itertools.pairwise(row)]
    return min(b / a if math.isfinite(a + b) else 0.0 for a, b in pairs)


def share_of_groks(runs: Sequence[Any]) -> float:
    return float(np.mean([run.verdict == "grok" for run in runs]))


def values(runs: Sequence[Any], name: str) -> Array:
    return np.array([float(run[name]) for run in runs])


def exponent(row: Sequence[Any]) -> float:
    """The exponent of t2 in step beta; NaN unless every t2 was reached."""
    return slope(values(row, "learning_rate") * values(row, "beta"), values(row, "t2"))


def check(dataset: xarray.Dataset, controls: xarray.Dataset, descent: xarray.Dataset) -> Evidence:
    """Which students grok, what is left, how t2 grows, and its exponent under descent."""
    runs, others, steps = (runs_of(one) for one in (dataset, controls, descent))
    small = alike(others, runs[0])
    of = {name: among(runs, penalty=name) for name in ("l1", "derivatives")}
    found = {name: _checks(name, row) for name, row in of.items()}
    grok, left, slow = found["l1"]
    left_too = found["derivatives"][1]
    powers = [exponent(row) for row in rows(steps)]
    law = Check(
        "median over the seeds of the exponent in step beta of descent's t2 with l1",
        float(np.median(powers)),
        -1.0,
        0.05,
    )
    free, euclid, dense, untold, misled = groups(small)
    everyone = [*runs, *small, *steps]
    return Evidence(
        ran=f"constructed: students of width 50, {len(rows(runs))} seed(s), Adam with step"
        f" {float(runs[0].learning_rate):g} and beta {', '.join(f'{b:g}' for b in BETAS)}; l1: 60"
        " samples of 30 inputs, 3 units that read 2 inputs each; Sobolev: 60 samples of 10 inputs,"
        f" 10 Gaussian units; labels of variance 1, solved at {LEVEL:g} of it; loss (1/2) sum of"
        " squares",
        premises={
            "training is solved in every run, including the controls": (
                bool(np.isfinite(values(everyone, "t1")).all()),
                f"{len(everyone)} runs",
            )
        },
        checks=[grok, left, slow, law, *found["derivatives"]],
        controls={
            "no penalty": left.control(values(free, "left").min()),
            "no penalty, share that groks": grok.control(share_of_groks(free)),
            "the squared l2 norm": left.control(values(euclid, "left").min()),
            "l1 and a dense teacher": left.control(values(dense, "left").min()),
            "memorization is delayed as well": slow.control(
                max(later(row, "t1") for row in rows(of["l1"]))
            ),
            "Adam's exponent in beta": law.control(exponent(rows(of["l1"])[0])),
            "no derivatives": left_too.control(values(untold, "left").min()),
            "the derivatives at other samples": left_too.control(values(misled, "left").min()),
        },
        findings=[*findings(of, small, steps, powers), *more(rows(of["l1"])[0], others)],
    )


def _checks(name: str, runs: Sequence[Any]) -> tuple[Check, Check, Check]:
    """Kinds, errors and times of the students with one penalty."""
    short = {"l1": "l1", "derivatives": "derivatives"}[name]
    teacher = " and a sparse teacher" if name == "l1" else ""
    return (
        Check(
            f"share of the runs with {short}{teacher} that grok",
            share_of_groks(runs),
            1.0,
            kind="at least",
        ),
        Check(
            f"largest test error that {short} {'leaves' if name == 'l1' else 'leave'}",
            values(runs, "left").max(),
            LEVEL,
            kind="at most",
        ),
        Check(
            f"least growth of t2 with {short} from a beta to a third of it",
            min(map(later, rows(runs))),
            1.3,
            kind="at least",
        ),
    )


def alike(others: Sequence[Any], one: Any) -> list[Any]:
    """The runs with the samples and the step of `one`."""
    return among(others, samples=one.samples, learning_rate=one.learning_rate)


def groups(small: Sequence[Any]) -> list[list[Any]]:
    """No penalty, squared l2, a dense teacher; no derivatives, those of other samples."""
    return [
        among(small, teacher="sparse", penalty="none"),
        among(small, teacher="sparse", penalty="l2^2"),
        among(small, teacher="dense", penalty="l1"),
        among(small, teacher="smooth", penalty="none"),
        among(small, teacher="smooth", penalty="derivatives of other samples"),
    ]


def findings(
    of: Mapping[str, list[Any]], small: Sequence[Any], steps: Sequence[Any], powers: Sequence[float]
) -> list[str]:
    """What the runs say beyond the checks."""
    first, told = (rows(of[name])[0] for name in ("l1", "derivatives"))
    paced = rows(steps)[0]
    _, euclid, dense, untold, misled = groups(small)
    kinds = sorted({str(run.verdict.values) for run in dense})
    return [
        f"seed 0, beta {', '.join(f'{b:g}' for b in BETAS)}: t1 = {float(first[0].t1):.0f} and"
        f" t2 = {times(first)} with l1; t1 = {float(told[0].t1):.0f} and t2 = {times(told)} with"
        " derivatives",
        f"with Adam the exponent of t2 in beta is {exponent(first):.2f} with l1 and"
        f" {exponent(told):.2f} with derivatives",
        "for subgradient descent with l1, t2 step beta is "
        + ", ".join(f"{float(run.t2 * run.learning_rate * run.beta):.3f}" for run in paced)
        + " at (step, beta) = "
        + ", ".join(f"({float(run.learning_rate):g}, {float(run.beta):g})" for run in paced)
        + f"; the exponents of the seeds are {', '.join(f'{p:.2f}' for p in powers)}",
        "with a dense Gaussian teacher like N's, l1 has no sparsity to recover: it leaves a"
        f" test error of {span(dense)}, the verdict is {' or '.join(kinds)}",
        f"the squared l2 norm leaves {span(euclid)}: it does not exploit that the units read few"
        " inputs",
        f"derivatives at other samples leave {span(misled)}, none at all {span(untold)}",
    ]


def more(first: Sequence[Any], others: Sequence[Any]) -> list[str]:
    """Another step size, more samples and N's own size, where they were run."""
    lines = []
    for run in others:
        same = run.hidden == 50 and run.penalty == "l1" and run.teacher == "sparse"
        if same and run.learning_rate < first[0].learning_rate:
            power = exponent([first[0], run])
            lines.append(
                f"with Adam, t2 does not depend on step beta alone: at beta {float(run.beta):g}"
                f" its exponent in the step is {power:.2f}"
            )
        elif run.samples == 180 or run.hidden == 500:
            lines.append(
                f"{int(run.samples)} samples, {int(run.hidden)} hidden units, {run.teacher.values}"
                f" teacher, {run.penalty.values} with beta {float(run.beta):g}:"
                f" {run.verdict.values}, t1 = {float(run.t1):.0f}, t2 = {float(run.t2):.0f}, test"
                f" error {float(run.best):.3f} at best and {float(run.left):.3f} at the end"
            )
    return lines


def span(runs: Sequence[Any]) -> str:
    """The test errors that are left, from the least to the largest."""
    left = values(runs, "left")
    return " to ".join(dict.fromkeys(f"{end:.2f}" for end in (left.min(), left.max())))


def times(runs: Sequence[Any]) -> str:
    return ", ".join(f"{float(run.t2):.0f}" for run in runs)


def draw(dataset: xarray.Dataset, controls: xarray.Dataset, descent: xarray.Dataset) -> Figure:
    """Errors over the steps with t1 and t2, above; t2 over step times beta, below."""
    runs, others, steps = (among(runs_of(one), split=0) for one in (dataset, controls, descent))
    free, euclid, dense, untold, misled = (group[0] for group in groups(alike(others, runs[0])))
    l1, told = (among(runs, penalty=name) for name in ("l1", "derivatives"))
    large = among(others, hidden=LARGE["sizes"][1])
    height = 13.6 if large else 8.8
    picture, whole = sheet(dataset.title, caption_of(dataset.attrs), (5.6, 5.6), height)
    for axes in whole:
        axes.remove()
    heights = (1.25, 1, 1.25) if large else (1.25, 1)
    grid = picture.add_gridspec(len(heights), 2, height_ratios=heights)
    panels = [picture.add_subplot(grid[place]) for place in range(2 * len(heights))]
    without = {"no penalty": free, r"squared $\ell_2$ norm": euclid}
    _errors(panels[0], l1, {**without, r"$\ell_1$, dense teacher": dense})
    _errors(panels[1], told, {"no penalty": untold, "derivatives of other samples": misled})
    panels[0].set_title(r"$\ell_1$ penalty, teacher with sparse weights")
    panels[1].set_title("penalty on wrong first derivatives (Sobolev)")
    _scaling(panels[2], l1, steps)
    _scaling(panels[3], told, [])
    for axes, teacher in zip(panels[4:], ("sparse", "dense"), strict=False):
        _errors(axes, among(large, teacher=teacher), {})
        axes.set_title(rf"the source's size, 100-500-2: $\ell_1$, {teacher} teacher")
    return picture


def _errors(axes: Axes, runs: Sequence[Any], others: Mapping[str, Any]) -> None:
    """Training dashed, test solid, t1 and t2 as marks on the level; controls in grey."""
    for run, colour in zip(runs, CYCLE, strict=False):
        run = run.isel(time=slice(1, None))
        label = rf"test error, $\beta$ = {float(run.beta):g}"
        axes.plot(run.step, run.train, "--", color=colour, linewidth=1)
        axes.plot(run.step, run.test, color=colour, label=label)
        axes.plot(float(run.t1), LEVEL, "o", color=colour, markersize=7, zorder=4)
        axes.plot(float(run.t2), LEVEL, "*", color=colour, markersize=14, zorder=4)
    for (name, run), line in zip(others.items(), ("-", ":", "-."), strict=False):
        run = run.isel(time=slice(1, None))
        axes.plot(run.step, run.test, line, color=GREY, lw=1.6, label=name, zorder=1)
    axes.plot([], [], "--", color=BLACK, linewidth=1, label="training error")
    axes.axhline(LEVEL, color=GREY, linewidth=0.9, zorder=1, label=f"level {LEVEL:g}")
    axes.plot([], [], "ok", label="$t_1$: training at the level", markersize=6)
    axes.plot([], [], "*k", label="$t_2$: test at the level", markersize=11)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="steps of Adam",
        xlim=(1, float(runs[0].step[-1])),
        ylim=(1e-5, None),
        ylabel="error over the variance of the labels",
    )
    axes.legend(loc="lower left", fontsize=8)


def _scaling(axes: Axes, runs: Sequence[Any], descent: Sequence[Any]) -> None:
    """t2 over step times beta, for Adam and for descent."""
    pace = values(runs, "learning_rate") * values(runs, "beta")
    label = rf"Adam, step $\alpha$ = {float(runs[0].learning_rate):g}"
    axes.plot(pace, values(runs, "t2"), "o:", color=CYCLE[3], lw=1, label=label)
    words = f"Adam: exponent ${exponent(runs):.2f}$ in $\\beta$"
    if descent:
        pace, t2 = values(descent, "learning_rate") * values(descent, "beta"), values(descent, "t2")
        axes.plot(pace, t2, "^", color=BLACK, markersize=8, label="subgradient descent")
        factor = np.exp(np.nanmean(np.log(pace * t2))) if np.isfinite(t2).any() else math.nan
        ends = np.array([pace.min(), pace.max()])
        label = rf"$t_2 = {factor:.2g} / (\alpha\beta)$"
        axes.plot(ends, factor / ends, color=BLACK, linewidth=1, label=label)
        words += f"; descent: ${exponent(descent):.2f}$ in $\\alpha\\beta$"
    axes.set_title(words, fontsize=9)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel=r"step times strength, $\alpha\beta$",
        ylabel="$t_2$ (steps)",
    )
    axes.legend(loc="upper right", fontsize=8)


experiment = Experiment(
    "N-F-ts",
    statement="A two-layer ReLU student that has memorized the answers of a two-layer ReLU teacher"
    " generalizes late under an l1 penalty if the teacher's weights are sparse, and late under a"
    " penalty on wrong first derivatives (Sobolev), later for smaller beta; under subgradient"
    " descent with l1 the median exponent of t2 in step beta is -1 (ours: N only names its"
    " figures).",
    place="Non-linear Teacher-student",
    study=(study, controls, descent),
    check=check,
    draw=draw,
    title="A student that has memorized generalizes late under ℓ₁ or Sobolev penalties",
    ours="the whole experiment: sizes, sparse weights of the teacher, start, labels of variance 1,"
    " steps and values of beta",
    seconds=12,
)
