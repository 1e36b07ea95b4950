"""Non-linear teacher-student: students with an l1 penalty, or with the teacher's derivatives."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.lab import (
    TRAJECTORY,
    Axes,
    Check,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    at_most,
    door_as,
    one_of,
    sized,
    within,
)
from penchant.plotting import BLACK, CYCLE, GREY, caption_of, log_axes, sheet
from penchant_papers.instances import listed, slope
from penchant_papers.notsawo2025.figures.runs import Runs, arguments, dims_of, plain, runs_of

if TYPE_CHECKING:
    from penchant import FunctionModel
    from penchant.problems import TeacherStudent
    from penchant.regularizers import Term

LEVEL = 0.05  # a smaller error, over the variance of the labels, counts as solved
BETAS = (0.1, 0.03, 0.01)
PAIRS = ((4e-3, 0.1), (4e-3, 0.02), (2e-3, 0.1))  # step and beta of descent
REACH = 1.6  # t2 of descent is 0.3/(step beta) to 1.1/(step beta)
OTHER_SAMPLES = "derivatives of other samples"
PENALTIES = ("none", "l1", "l2^2", "derivatives", OTHER_SAMPLES)
# `sizes` are the inputs, hidden units and outputs of the teacher; it uses `units` of its hidden
# units, each of which reads `reads` inputs (all if not given); `width` is that of the student
GIVEN = {"samples": 60, "sizes": [30, 50, 1], "width": 50, "method": "Adam", "learning_rate": 3e-3}
GIVEN |= {"steps": 5000, "seed": 0, "per_decade": 20}
QUICK = {"steps": 4000, "per_decade": 12}
SPARSE = {"teacher": "sparse", "units": 3, "reads": 2}  # 3 units that read 2 inputs each
SMOOTH = {"teacher": "smooth", "sizes": [10, 10, 1]}  # its derivatives are known
DENSE = {"teacher": "dense"}  # every weight Gaussian, as in N


@functools.lru_cache(maxsize=16)
def _data(samples: int, sizes: tuple[int, ...], seed: int, **used: Any) -> TeacherStudent:
    from penchant.problems import teacher_student

    inputs, hidden, outputs = sizes
    own: Any = {"width": hidden, "outputs": outputs, "seed": seed, "standard": True}
    return teacher_student(samples, inputs, **own, **used)


@functools.lru_cache(maxsize=16)
def _student(width: int, outputs: int, seed: int) -> FunctionModel:
    """The student; all its runs share one object, so that its steps are compiled once."""
    from penchant.models import student

    return student(width, outputs, alpha=1.0, seed=100 + seed)


@functools.lru_cache(maxsize=16)
@door_as("student")
def _penalty(name: str, data: TeacherStudent, model: FunctionModel) -> Term | None:
    """The penalty of this name, one object for all runs.

    "derivatives of other samples" gives every sample the derivatives at another one.
    """
    from penchant import L1, L2
    from penchant.regularizers import DerivativeMatch

    one_of("penalty", name, PENALTIES)
    if name in ("none", "l1", "l2^2"):
        return {"none": None, "l1": L1(), "l2^2": L2()}[name]
    shift = 0 if name == "derivatives" else data.outputs
    return DerivativeMatch(model, data.training.X, np.roll(data.slopes, shift, axis=0))


def cell(run: int, *, runs: Runs, given: Mapping[str, Any]) -> dict[str, Any]:
    """Errors of one student in units of the variance of the labels, t1, t2 and the kind."""
    from penchant import Adam, GradientDescent, Steps, train
    from penchant.measures import grokking
    from penchant.record import LogSpaced

    settings = {**given, **runs[run]}
    used = {name: settings[name] for name in ("units", "reads") if name in settings}
    data = _data(settings["samples"], tuple(settings["sizes"]), settings["seed"], **used)
    model = _student(settings["width"], data.outputs, settings["seed"])
    penalty = _penalty(settings["penalty"], data, model)
    path = train(
        model,
        data.training,
        Adam(settings["learning_rate"])
        if settings["method"] == "Adam"
        else GradientDescent(settings["learning_rate"], subgradient=True),
        penalty=None if penalty is None else settings["beta"] * penalty,
        stop=Steps(settings["steps"]),
        record=LogSpaced(settings["per_decade"]),
        throw=True,
    )
    steps = path.dataset.step.values.astype(float)
    fitted = data.share(path.dataset.loss.values, data.training)
    tested = data.share(path.dataset.test_loss.values, data.test)
    transition = grokking(steps, fitted, tested, LEVEL, error=True)
    own = ("teacher", "penalty", "samples", "method", "learning_rate")
    return {
        **{name: settings[name] for name in own},
        "split": settings["seed"],
        "beta": settings.get("beta", 0.0),
        "hidden": settings["sizes"][1],
        "t1": transition.t1 if math.isfinite(transition.t1) else math.nan,
        "t2": transition.t2 if math.isfinite(transition.t2) else math.nan,
        "kind": transition.kind,
        "final_error": tested[-1],
        "best_error": tested.min(),
        f"{TRAJECTORY}step": steps,
        f"{TRAJECTORY}train": fitted,
        f"{TRAJECTORY}test": tested,
    }


def penalized_runs(seeds: Iterable[int], betas: Sequence[float] = BETAS) -> list[dict[str, Any]]:
    """Both kinds of students at every beta."""
    kinds: dict[str, Any] = {"l1": SPARSE, "derivatives": SMOOTH}
    return [
        {**teacher, "penalty": name, "beta": beta, "seed": seed}
        for seed, (name, teacher), beta in itertools.product(seeds, kinds.items(), betas)
    ]


def control_runs(seeds: Iterable[int]) -> list[dict[str, Any]]:
    """Students without the penalty or the data that make the others generalize."""
    wrong = {"penalty": OTHER_SAMPLES, "beta": BETAS[1]}
    cases: list[dict[str, Any]] = [
        {**SPARSE, "penalty": "none"},
        {**SPARSE, "penalty": "l2^2", "beta": BETAS[0]},
        {**DENSE, "penalty": "l1", "beta": BETAS[0]},
        {**SMOOTH, "penalty": "none"},
        {**SMOOTH, **wrong},
    ]
    return [{**case, "seed": seed} for seed in seeds for case in cases]


def descent_runs(seeds: Iterable[int], pairs: Any = PAIRS) -> list[dict[str, Any]]:
    """Subgradient descent with l1, for REACH/(step beta) steps."""
    return [
        {"learning_rate": step, "beta": beta, "steps": round(REACH / (step * beta)), "seed": seed}
        for seed in seeds
        for step, beta in pairs
    ]


SLOWER = {**SPARSE, "penalty": "l1", "beta": BETAS[0], "learning_rate": 1e-3, "steps": 15_000}
LARGE: dict[str, Any] = {"samples": 100, "sizes": [100, 500, 2], "width": 500}  # N's size
LARGE_SPARSE = {"teacher": "sparse", "units": 5, "reads": 3, "penalty": "l1", "steps": 3000}
LARGE_DENSE = {**DENSE, "penalty": "l1", "beta": 0.3, "steps": 1000}
MORE = [  # for the findings
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
    "t1": "step after which the training error stays below the level; NaN if never",
    "t2": "step after which the test error stays below the level; NaN if never",
    "final_error": "test error at the end, over the variance of the labels",
    "best_error": "least test error, over the variance of the labels",
    "kind": "how penchant.measures.grokking classifies the run",
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
    **arguments(penalized_runs(range(2), BETAS[:2]), **GIVEN | QUICK),
    printed=arguments(penalized_runs(range(5)), **GIVEN),
)
controls = sized(
    "N-F-ts-controls",
    title="Students without the penalty or data that make the others generalize",
    draw={"x": "run", "colour": "final_error"},
    **FORM,
    **arguments(control_runs([0]), **GIVEN | QUICK),
    printed=arguments([*control_runs(range(5)), *MORE], **GIVEN),
)
descent = sized(
    "N-F-ts-descent",
    title=r"With subgradient descent, $t_2$ scales like $1/(\mathrm{step}\,\beta)$",
    draw={"x": "run", "colour": "t2", "log": True},
    **FORM,
    **arguments(descent_runs(range(3)), **DESCENT),
    printed=arguments(descent_runs(range(8), (*PAIRS, (4e-3, 0.01))), **DESCENT),
)


def among(runs: Dataset, **wanted: Any) -> Dataset:
    """The runs with these values."""
    chosen = np.all([runs[name].values == value for name, value in wanted.items()], axis=0)
    return runs.isel(run=np.flatnonzero(chosen))


def by_seed(runs: Dataset) -> list[Dataset]:
    """The runs of every seed."""
    return [among(runs, split=seed) for seed in np.unique(runs.split)]


def least_growth(runs: Dataset, time: str = "t2") -> float:
    """The least factor by which t2 (or t1) grows from a beta to the next; 0 if one is missing."""
    times = runs[time].values
    return float(np.nan_to_num(times[1:] / times[:-1]).min())


def share_of_groks(runs: Dataset) -> float:
    return float((runs.kind == "grok").mean())


def exponent(runs: Dataset) -> float:
    """The exponent of t2 in step beta; NaN unless every t2 was reached."""
    return slope(runs.learning_rate * runs.beta, runs.t2)


def check(dataset: Dataset, controls: Dataset, descent: Dataset) -> Evidence:
    """Which students grok, their final errors, the growth of t2, and its exponent in descent."""
    control, one = control_groups(controls, dataset), dataset.isel(run=0)
    of = {name: among(dataset, penalty=name) for name in ("l1", "derivatives")}
    first, second = (_checks(name, runs) for name, runs in of.items())
    grok, error, slow = first.values()
    _, other_error, _ = second.values()
    # a run that has not recovered after REACH/(step beta) steps has no t2
    powers = [exponent(runs) for runs in by_seed(descent) if np.isfinite(runs.t2).all()]
    late = len(by_seed(descent)) - len(powers)
    law = within(np.mean(powers) if powers else math.nan, -1.0, 0.2)
    t1 = np.concatenate([runs.t1 for runs in (dataset, *control.values(), descent)])
    least = {name: float(runs.final_error.min()) for name, runs in control.items()}
    seeds = by_seed(of["l1"])
    return Evidence(
        ran=f"constructed: students of width 50, {len(seeds)} seed(s), Adam with step "
        rf"{float(one.learning_rate):g} and $\beta$ {listed(np.unique(dataset.beta)[::-1])}; "
        r"$\ell_1$: 60 samples of 30 inputs, 3 units that read 2 inputs each; Sobolev: 60 "
        f"samples of 10 inputs, 10 Gaussian units; labels of variance 1, solved at {LEVEL:g} "
        "of it; loss (1/2) sum of squares",
        premises={
            "training is solved in every run, including the controls": (
                bool(np.isfinite(t1).all()),
                f"{len(t1)} runs",
            ),
            "descent reaches every $t_2$ for more than half of the teachers": (
                late < len(powers),
                f"{len(powers)} of {late + len(powers)}",
            ),
        },
        checks={
            **first,
            r"mean over the teachers of the exponent in step $\beta$ of descent's $t_2$ with "
            r"$\ell_1$": law,
            **second,
        },
        controls={
            "no penalty": error.control(least["no penalty"]),
            "no penalty, share that groks": grok.control(share_of_groks(control["no penalty"])),
            r"the squared $\ell_2$ norm": error.control(least["squared l2"]),
            r"$\ell_1$ and a dense teacher": error.control(least["dense teacher"]),
            "memorization is delayed as well": slow.control(
                max(least_growth(runs, "t1") for runs in seeds)
            ),
            r"Adam's exponent in $\beta$": law.control(np.mean([exponent(runs) for runs in seeds])),
            "no derivatives": other_error.control(least["no derivatives"]),
            "the derivatives at other samples": other_error.control(least[OTHER_SAMPLES]),
        },
        findings=[*findings(of, control, descent, powers), *more(one, controls)],
    )


def _checks(name: str, runs: Dataset) -> dict[str, Check]:
    """Checks of the kinds, final errors and times of the students with one penalty."""
    penalty, group, leaves = {
        "l1": (r"$\ell_1$", r"$\ell_1$ and a sparse teacher", r"$\ell_1$ leaves"),
        "derivatives": ("derivatives", "derivatives", "derivatives leave"),
    }[name]
    growth = at_least(min(map(least_growth, by_seed(runs))), 1.3)
    return {
        f"share of the runs with {group} that grok": at_least(share_of_groks(runs), 1.0),
        f"largest test error that {leaves}": at_most(runs.final_error.max(), LEVEL),
        rf"least growth of $t_2$ with {penalty} from a $\beta$ to a third of it": growth,
    }


def control_groups(controls: Dataset, dataset: Dataset) -> dict[str, Dataset]:
    """The controls by name, among the runs with the samples and the step of the dataset."""
    same = {name: dataset[name].values[0] for name in ("samples", "learning_rate")}
    cases = {
        "no penalty": ("sparse", "none"),
        "squared l2": ("sparse", "l2^2"),
        "dense teacher": ("dense", "l1"),
        "no derivatives": ("smooth", "none"),
        OTHER_SAMPLES: ("smooth", OTHER_SAMPLES),
    }
    return {
        name: among(controls, teacher=teacher, penalty=penalty, **same)
        for name, (teacher, penalty) in cases.items()
    }


def findings(
    of: Mapping[str, Dataset],
    control: Mapping[str, Dataset],
    descent: Dataset,
    powers: Sequence[float],
) -> list[str]:
    """The times, exponents and errors behind the checks."""
    first, smooth = (by_seed(of[name])[0] for name in ("l1", "derivatives"))
    steps = by_seed(descent)[0]
    step, beta = steps.learning_rate.values, steps.beta.values
    errors = {name: span(runs.final_error) for name, runs in control.items()}
    return [
        rf"the first teacher, $\beta$ {listed(first.beta)}: $t_1 = {float(first.t1[0]):.0f}$ and "
        rf"$t_2$ = {listed(first.t2, '.0f')} with $\ell_1$; $t_1 = {float(smooth.t1[0]):.0f}$ "
        f"and $t_2$ = {listed(smooth.t2, '.0f')} with derivatives",
        rf"with Adam the exponent of $t_2$ in $\beta$ is {exponent(first):.2f} with $\ell_1$ and "
        f"{exponent(smooth):.2f} with derivatives",
        r"for subgradient descent with $\ell_1$, $t_2$ step $\beta$ is "
        rf"{listed(steps.t2 * step * beta, '.3f')} at (step, $\beta$) = "
        + ", ".join(f"({a:g}, {b:g})" for a, b in zip(step, beta, strict=True))
        + f"; the exponents of the seeds are {listed(powers, '.2f')}",
        r"with a dense Gaussian teacher like N's, $\ell_1$ has no sparsity to recover: it leaves "
        f"a test error of {errors['dense teacher']}, and penchant.measures.grokking calls it "
        f"{' or '.join(np.unique(control['dense teacher'].kind))}",
        rf"the squared $\ell_2$ norm leaves {errors['squared l2']}: it does not exploit that the "
        "units read few inputs",
        f"derivatives at other samples leave {errors[OTHER_SAMPLES]}, none at all"
        f" {errors['no derivatives']}",
    ]


def more(one: Dataset, controls: Dataset) -> list[str]:
    """Findings from a step smaller than in `one`, more samples and N's own size, if run."""
    lines = []
    for run in runs_of(controls):
        same = run.hidden == 50 and run.penalty == "l1" and run.teacher == "sparse"
        if same and run.learning_rate < one.learning_rate:
            power = np.log(run.t2 / one.t2) / np.log(run.learning_rate / one.learning_rate)
            lines.append(
                r"with Adam, $t_2$ does not depend on step $\beta$ alone: at $\beta$ "
                f"{float(run.beta):g} its exponent in the step is {float(power):.2f}"
            )
        elif run.samples == 180 or run.hidden == 500:
            lines.append(
                f"{int(run.samples)} samples, {int(run.hidden)} hidden units, "
                rf"{run.teacher.values} teacher, {run.penalty.values} with $\beta$ "
                f"{float(run.beta):g}: {run.kind.values}, $t_1 = {float(run.t1):.0f}$, $t_2 = "
                f"{float(run.t2):.0f}$, test error {float(run.best_error):.3f} at best and "
                f"{float(run.final_error):.3f} at the end"
            )
    return lines


def span(errors: Any) -> str:
    """The least and the largest error, or one number if they are equal."""
    ends = float(errors.min()), float(errors.max())
    return " to ".join(dict.fromkeys(f"{end:.2f}" for end in ends))


def draw(dataset: Dataset, controls: Dataset, descent: Dataset) -> Figure:
    """Errors over the steps with t1 and t2, and below them t2 over step times beta."""
    seed = int(dataset.split[0])
    first, others, steps = (among(one, split=seed) for one in (dataset, controls, descent))
    l1, derivatives = (among(first, penalty=name) for name in ("l1", "derivatives"))
    large = among(others, hidden=LARGE["sizes"][1])
    height, rows = (13.6, (1.25, 1, 1.25)) if large.sizes["run"] else (8.8, (1.25, 1))
    caption = caption_of(dataset.attrs)
    picture, panels = sheet(dataset.title, caption, (5.6, 5.6), height, rows)
    without, squared, dense, unaided, other_samples = control_groups(others, first).values()
    beside = {"no penalty": without, r"squared $\ell_2$ norm": squared}
    _errors(panels[0], l1, {**beside, r"$\ell_1$, dense teacher": dense})
    beside = {"no penalty": unaided, OTHER_SAMPLES: other_samples}
    _errors(panels[1], derivatives, beside)
    panels[0].set_title(r"$\ell_1$ penalty, teacher with sparse weights")
    panels[1].set_title("penalty on wrong first derivatives (Sobolev)")
    _scaling(panels[2], l1, steps)
    _scaling(panels[3], derivatives)
    for axes, teacher in zip(panels[4:], ("sparse", "dense"), strict=False):
        _errors(axes, among(large, teacher=teacher), {})
        axes.set_title(rf"the source's size, 100-500-2: $\ell_1$, {teacher} teacher")
    return picture


def _errors(axes: Axes, runs: Dataset, others: Mapping[str, Dataset]) -> None:
    """Training dashed, test solid, t1 and t2 as marks on the level; controls in grey."""
    for run, colour in zip(runs_of(runs, after=0), CYCLE, strict=False):
        label = rf"test error, $\beta$ = {float(run.beta):g}"
        axes.plot(run.step, run.train, "--", color=colour, linewidth=1)
        axes.plot(run.step, run.test, color=colour, label=label)
        axes.plot(float(run.t1), LEVEL, "o", color=colour, markersize=7, zorder=4)
        axes.plot(float(run.t2), LEVEL, "*", color=colour, markersize=14, zorder=4)
    for (name, run), line in zip(others.items(), ("-", ":", "-."), strict=False):
        run = plain(run.isel(run=0), after=0)
        axes.plot(run.step, run.test, line, color=GREY, lw=1.6, label=name, zorder=1)
    axes.plot([], [], "--", color=BLACK, linewidth=1, label="training error")
    axes.axhline(LEVEL, color=GREY, linewidth=0.9, zorder=1, label=f"level {LEVEL:g}")
    axes.plot([], [], "ok", label="$t_1$: training at the level", markersize=6)
    axes.plot([], [], "*k", label="$t_2$: test at the level", markersize=11)
    last = float(runs[f"{TRAJECTORY}step"].isel(run=0).max())
    limits: Any = {"xlim": (1, last), "ylim": (1e-5, None)}
    log_axes(axes, "steps of Adam", "error over the variance of the labels", **limits)
    axes.legend(loc="lower left", fontsize=8)


def _scaling(axes: Axes, runs: Dataset, descent: Dataset | None = None) -> None:
    """t2 over step times beta, for Adam and for descent."""
    label = rf"Adam, step $\alpha$ = {float(runs.learning_rate[0]):g}"
    axes.plot(runs.learning_rate * runs.beta, runs.t2, "o:", color=CYCLE[3], lw=1, label=label)
    words = f"Adam: exponent ${exponent(runs):.2f}$ in $\\beta$"
    if descent is not None:
        step_beta, t2 = (descent.learning_rate * descent.beta).values, descent.t2.values
        axes.plot(step_beta, t2, "^", color=BLACK, markersize=8, label="subgradient descent")
        factor = np.exp(np.nanmean(np.log(step_beta * t2))) if np.isfinite(t2).any() else math.nan
        ends = np.array([step_beta.min(), step_beta.max()])
        label = rf"$t_2 = {factor:.2g} / (\alpha\beta)$"
        axes.plot(ends, factor / ends, color=BLACK, linewidth=1, label=label)
        words += f"; descent: ${exponent(descent):.2f}$ in $\\alpha\\beta$"
    axes.set_title(words, fontsize=9)
    log_axes(axes, r"step times strength, $\alpha\beta$", "$t_2$ (steps)")
    axes.legend(loc="upper right", fontsize=8)


experiment = Experiment(
    "N-F-ts",
    statement="A two-layer ReLU student that has memorized the answers of a two-layer ReLU "
    r"teacher generalizes late under an $\ell_1$ penalty if the teacher's weights are sparse, "
    "and late under a penalty on wrong first derivatives (Sobolev), later for smaller "
    r"$\beta$; under subgradient descent with $\ell_1$ the mean exponent of $t_2$ in step "
    r"$\beta$ is -1 within 0.2 (ours: N only names its figures).",
    place="Non-linear Teacher-student",
    study=(study, controls, descent),
    check=check,
    draw=draw,
    ours="the whole experiment: sizes, sparse weights of the teacher, start, labels of variance "
    r"1, steps and values of $\beta$",
    scope={
        "quick": "the source prints no sizes, all are ours; 2 teachers of each kind, two strengths",
        "printed": "the source prints no sizes, all are ours",
    },
    seconds=14,
)
