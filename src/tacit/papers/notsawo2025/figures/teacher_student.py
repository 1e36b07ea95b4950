"""Non-linear Teacher-student: students with an l1 penalty, or with the teacher's derivatives."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array, one_of
from tacit.evidence.evidence import Check, Evidence, at_least, at_most, within
from tacit.papers.experiment import Experiment
from tacit.papers.instances import slope
from tacit.papers.notsawo2025.figures.runs import Runs, arguments, dims_of, runs_of
from tacit.plotting.style import BLACK, CYCLE, GREY, caption_of, sheet
from tacit.studies.compute import TRAJECTORY
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tacit.models.function import FunctionModel
    from tacit.problems.teacher import TeacherStudent
    from tacit.regularizers.penalty import Term

LEVEL = 0.05  # of the variance of the labels: what counts as solved
BETAS = (0.1, 0.03, 0.01)
PAIRS = ((4e-3, 0.1), (4e-3, 0.03), (4e-3, 0.01), (2e-3, 0.1))  # step and beta of descent
PENALTIES = ("none", "l1", "l2^2", "derivatives", "derivatives of other samples")
# `sizes` are inputs, hidden units and outputs of the teacher, of whose hidden units `units` are
# used, each reading `reads` inputs (all of them where there is none); `width` is the student's
GIVEN = {"samples": 60, "sizes": [30, 50, 1], "width": 50, "method": "Adam", "learning_rate": 3e-3}
GIVEN |= {"steps": 5000, "seed": 0, "per_decade": 20}
QUICK = {"steps": 3600, "per_decade": 12}  # the latest t2 of seed 0 is 2815
SPARSE = {"teacher": "sparse", "units": 3, "reads": 2}  # 3 units that read 2 inputs each
SMOOTH = {"teacher": "smooth", "sizes": [10, 10, 1]}  # its derivatives are known
DENSE = {"teacher": "dense"}  # every weight Gaussian, as in N


@functools.lru_cache(maxsize=16)
def _data(samples: int, sizes: tuple[int, ...], seed: int, **used: Any) -> TeacherStudent:
    from tacit.problems.teacher import teacher_student

    inputs, hidden, outputs = sizes
    own: Any = {"width": hidden, "outputs": outputs, "seed": seed, "standard": True}
    return teacher_student(samples, inputs, **own, **used)


@functools.lru_cache(maxsize=16)
def _student(width: int, outputs: int, seed: int) -> FunctionModel:
    """One object for all of its runs, so that its steps are compiled once."""
    from tacit.models.two_layer import student

    return student(width, outputs, alpha=1.0, seed=100 + seed)


@functools.lru_cache(maxsize=16)
def _penalty(name: str, data: TeacherStudent, model: FunctionModel) -> Term | None:
    """The penalty of this name, one object; samples may be given the derivatives of others."""
    from tacit.regularizers.custom import DerivativeMatch
    from tacit.regularizers.norms import L1, L2

    one_of("student", "penalty", name, PENALTIES)
    if name in ("none", "l1", "l2^2"):
        return {"none": None, "l1": L1(), "l2^2": L2()}[name]
    shift = 0 if name == "derivatives" else data.outputs
    return DerivativeMatch(model, data.training.X, np.roll(data.slopes, shift, axis=0))


def cell(run: int, *, runs: Runs, given: Mapping[str, Any]) -> dict[str, Any]:
    """Errors of one student over the steps, over the variance of the labels; t1, t2 and kind."""
    from tacit.measures.grokking import grokking
    from tacit.records import NumericalError
    from tacit.training.descent.methods import SGD, Adam
    from tacit.training.record import LogSpaced
    from tacit.training.stop import Steps
    from tacit.training.train import train

    one = {**given, **runs[run]}
    used = {name: one[name] for name in ("units", "reads") if name in one}
    data = _data(one["samples"], tuple(one["sizes"]), one["seed"], **used)
    model = _student(one["width"], data.outputs, one["seed"])
    penalty = _penalty(one["penalty"], data, model)
    path = train(
        model,
        data.training,
        {"Adam": Adam, "SGD": SGD}[one["method"]](one["learning_rate"]),
        penalty=None if penalty is None else one["beta"] * penalty,
        stop=Steps(one["steps"]),
        record=LogSpaced(one["per_decade"]),
    )
    if not path.outcome.ok:
        raise NumericalError("student", path.outcome)
    steps = path.dataset.step.values.astype(float)
    fitted = data.share(path.dataset.loss.values, data.training)
    tested = data.share(path.dataset.test_loss.values, data.test)
    found = grokking(steps, fitted, tested, LEVEL, error=True)
    own = ("teacher", "penalty", "samples", "method", "learning_rate")
    return {
        **{name: one[name] for name in own},
        "split": one["seed"],
        "beta": one.get("beta", 0.0),
        "hidden": one["sizes"][1],
        "t1": found.t1 if math.isfinite(found.t1) else math.nan,
        "t2": found.t2 if math.isfinite(found.t2) else math.nan,
        "verdict": found.kind,
        "left": tested[-1],
        "best": tested.min(),
        f"{TRAJECTORY}step": steps,
        f"{TRAJECTORY}train": fitted,
        f"{TRAJECTORY}test": tested,
    }


def penalized(seeds: Iterable[int]) -> list[dict[str, Any]]:
    """Both kinds of students at every beta."""
    kinds: dict[str, Any] = {"l1": SPARSE, "derivatives": SMOOTH}
    return [
        {**teacher, "penalty": name, "beta": beta, "seed": seed}
        for seed, (name, teacher), beta in itertools.product(seeds, kinds.items(), BETAS)
    ]


def unhelped(seeds: Iterable[int]) -> list[dict[str, Any]]:
    """Students without what makes the others generalize."""
    wrong = {"penalty": "derivatives of other samples", "beta": BETAS[1]}
    cases: list[dict[str, Any]] = [
        {**SPARSE, "penalty": "none"},
        {**SPARSE, "penalty": "l2^2", "beta": BETAS[0]},
        {**DENSE, "penalty": "l1", "beta": BETAS[0]},
        {**SMOOTH, "penalty": "none"},
        {**SMOOTH, **wrong},
    ]
    return [{**case, "seed": seed} for seed in seeds for case in cases]


def descended(seeds: Iterable[int], reach: float, pairs: Any = PAIRS) -> list[dict[str, Any]]:
    """Subgradient descent with l1, for `reach` times 1/(step beta) steps."""
    return [
        {"learning_rate": step, "beta": beta, "steps": round(reach / (step * beta)), "seed": seed}
        for seed in seeds
        for step, beta in pairs
    ]


SLOWER = {**SPARSE, "penalty": "l1", "beta": BETAS[0], "learning_rate": 1e-3, "steps": 15_000}
LARGE: dict[str, Any] = {"samples": 100, "sizes": [100, 500, 2], "width": 500}  # N's size
LARGE_SPARSE = {"teacher": "sparse", "units": 5, "reads": 3, "penalty": "l1", "steps": 3000}
LARGE_DENSE = {**DENSE, "penalty": "l1", "beta": 0.3, "steps": 1000}
MORE = [  # what is reported beside the checks
    SLOWER,
    {**SPARSE, "penalty": "l2^2", "beta": BETAS[0], "samples": 180},
    {**DENSE, "penalty": "l1", "beta": BETAS[0], "samples": 180},
    {**LARGE, **LARGE_SPARSE, "beta": 0.3},
    {**LARGE, **LARGE_SPARSE, "beta": 0.03},
    {**LARGE, **LARGE_DENSE},
    {**LARGE, **LARGE_DENSE, "samples": 1000},
]
CURVES = ("step", "train", "test")
LABELS = {
    "run": "number of the run",
    "split": "seed of teacher and start",
    "beta": "strength of the penalty",
    "learning_rate": "step size",
    "t1": "step after which the training error stays below the level; NaN if it does not",
    "t2": "step after which the test error stays below the level; NaN if it does not",
    "left": "test error at the end, over the variance of the labels",
    "best": "least test error, over the variance of the labels",
    "verdict": "how tacit.grokking classifies the run",
    f"{TRAJECTORY}test": "test error, mean square over the variance of the labels",
    f"{TRAJECTORY}train": "training error, mean square over the variance of the labels",
}
FORM: dict[str, Any] = {"function": cell, "dims": dims_of(CURVES), "labels": LABELS}
DESCENT = {**GIVEN, **SPARSE, "penalty": "l1", "method": "SGD", "per_decade": 40}

study = sized(
    "N-F-ts",
    title="A student that has memorized generalizes late under ℓ₁ or Sobolev penalties",
    draw={"x": "run", "colour": "t2", "log": True},
    **FORM,
    **arguments(penalized([0]), **GIVEN | QUICK),
    standard=arguments(penalized([0]), **GIVEN),
    full=arguments(penalized(range(5)), **GIVEN),
)
controls = sized(
    "N-F-ts-controls",
    title="Students without the penalty or data that make the others generalize",
    draw={"x": "run", "colour": "left"},
    **FORM,
    **arguments(unhelped([0]), **GIVEN | QUICK),
    standard=arguments([*unhelped([0]), SLOWER], **GIVEN),
    full=arguments([*unhelped(range(5)), *MORE], **GIVEN),
)
# the first seed is done at 0.3/(step beta), the slowest of the first five at 0.9/(step beta)
descent = sized(
    "N-F-ts-descent",
    title="With subgradient descent, t₂ scales like 1/(step β)",
    draw={"x": "run", "colour": "t2", "log": True},
    **FORM,
    **arguments(descended([0], 0.4, (PAIRS[0], *PAIRS[2:])), **DESCENT),
    standard=arguments(descended([0], 0.6), **DESCENT),
    full=arguments(descended(range(5), 1.2), **DESCENT),
)


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
    first, second = (_checks(name, row) for name, row in of.items())
    grok, left, slow = first.values()
    _, left_too, _ = second.values()
    powers = [exponent(row) for row in rows(steps)]
    law = within(np.median(powers), -1.0, 0.05)
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
        checks={
            **first,
            "median over the seeds of the exponent in step beta of descent's t2 with l1": law,
            **second,
        },
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


def _checks(name: str, runs: Sequence[Any]) -> dict[str, Check]:
    """Kinds, errors and times of the students with one penalty."""
    group, leaves = {
        "l1": ("l1 and a sparse teacher", "l1 leaves"),
        "derivatives": ("derivatives", "derivatives leave"),
    }[name]
    growth = at_least(min(map(later, rows(runs))), 1.3)
    return {
        f"share of the runs with {group} that grok": at_least(share_of_groks(runs), 1.0),
        f"largest test error that {leaves}": at_most(values(runs, "left").max(), LEVEL),
        f"least growth of t2 with {name} from a beta to a third of it": growth,
    }


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
    height, rows = (13.6, (1.25, 1, 1.25)) if large else (8.8, (1.25, 1))
    caption = caption_of(dataset.attrs)
    picture, panels = sheet(dataset.title, caption, (5.6, 5.6), height, rows)
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
