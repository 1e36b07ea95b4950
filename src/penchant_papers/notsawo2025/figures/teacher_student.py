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
    share_at_least,
    sized,
    upper_share,
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
MOST = 0.5  # a statement about most teachers is one about more than half of them
GROWN = 1.3  # t2 has grown if it is so many times that of a beta three times as large
BETAS = (0.3, 0.1, 0.03)
# Step and beta of descent. The step is in units of the largest one at which descent on the start's
# linearization converges: beyond it the weights first explode, and the point that is memorized,
# from which the penalty needs t2, depends on the step.
PAIRS = ((0.5, 0.3), (0.5, 0.12), (0.25, 0.3))
REACH = 0.8  # t2 of descent is 0.2/(step beta) to 0.6/(step beta)
OTHER_SAMPLES = "derivatives of other samples"
PENALTIES = ("none", "l1", "l2^2", "derivatives", OTHER_SAMPLES)
# `sizes` are the inputs, hidden units and outputs of the teacher; it uses `units` of its hidden
# units, each of which reads `reads` inputs (all if not given); `width` is that of the student.
# N: a property of the weights makes a student grok "provided the number of training samples is
# large enough". 100 are N's own number; with 60, one of twenty sparse teachers is not recovered.
GIVEN = {"samples": 100, "sizes": [40, 50, 1], "width": 50, "method": "Adam"}
GIVEN |= {"learning_rate": 3e-3, "steps": 5000, "seed": 0, "per_decade": 20}
QUICK = {"steps": 1600, "per_decade": 10}
SPARSE = {"teacher": "sparse", "units": 3, "reads": 2}  # 3 units that read 2 inputs each
SMOOTH = {"teacher": "smooth", "sizes": [20, 5, 1], "width": 30, "steps": 4000}
DENSE = {"teacher": "dense"}  # every weight Gaussian, as in N
PLENTY = 300  # samples, for the findings


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
def _penalty(name: str, data: TeacherStudent, model: FunctionModel) -> Term:
    """The penalty of this name, one object for all runs.

    Without a penalty it is l1 with the strength 0, so that the compiled steps are the same ones.
    "derivatives of other samples" gives every sample the derivatives at another one.
    """
    from penchant import L1, L2
    from penchant.regularizers import DerivativeMatch

    one_of("penalty", name, PENALTIES)
    if name in ("none", "l1", "l2^2"):
        return {"none": L1(), "l1": L1(), "l2^2": L2()}[name]
    shift = 0 if name == "derivatives" else data.outputs
    return DerivativeMatch(model, data.training.X, np.roll(data.slopes, shift, axis=0))


def largest_step(model: FunctionModel, data: TeacherStudent) -> float:
    """The step from which on descent on the start's linearization does not converge."""
    slopes = model.jacobian(model.start(data.training.dimension), data.training.X)
    return 2 / float(np.linalg.norm(slopes, 2)) ** 2


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
    if settings["method"] == "Adam":
        rate, steps = settings["learning_rate"], settings["steps"]
        method: Any = Adam(rate)
    else:
        rate = settings["learning_rate"] * largest_step(model, data)
        steps = round(REACH / (rate * settings["beta"]))
        method = GradientDescent(rate, subgradient=True)
    path = train(
        model,
        data.training,
        method,
        penalty=settings.get("beta", 0.0) * penalty,
        stop=Steps(steps),
        record=LogSpaced(settings["per_decade"]),
        throw=True,
    )
    taken = path.dataset.step.values.astype(float)
    fitted = data.share(path.dataset.loss.values, data.training)
    tested = data.share(path.dataset.test_loss.values, data.test)
    transition = grokking(taken, fitted, tested, LEVEL, error=True)
    own = ("teacher", "penalty", "samples", "method")
    return {
        **{name: settings[name] for name in own},
        "learning_rate": rate,
        "split": settings["seed"],
        "beta": settings.get("beta", 0.0),
        "hidden": settings["sizes"][1],
        "t1": transition.t1 if math.isfinite(transition.t1) else math.nan,
        "t2": transition.t2 if math.isfinite(transition.t2) else math.nan,
        "kind": transition.kind,
        "final_error": tested[-1],
        "best_error": tested.min(),
        f"{TRAJECTORY}step": taken,
        f"{TRAJECTORY}train": fitted,
        f"{TRAJECTORY}test": tested,
    }


def penalized_runs(
    sparse: int, smooth: int, betas: Sequence[float] = BETAS, soft: Sequence[float] = BETAS
) -> list[dict[str, Any]]:
    """Students of so many teachers of both kinds at every beta; `soft` is for derivatives.

    A new teacher costs seconds where the penalty knows its derivatives, and tenths under l1.
    """
    kinds: Any = (("l1", SPARSE, sparse, betas), ("derivatives", SMOOTH, smooth, soft))
    return [
        {**teacher, "penalty": name, "beta": beta, "seed": seed}
        for name, teacher, count, strengths in kinds
        for seed, beta in itertools.product(range(count), strengths)
    ]


def control_runs(without: int, others: int, smooth: int, strange: int) -> list[dict[str, Any]]:
    """Students without the penalty or the data that make the others generalize.

    `without` sparse teachers have no penalty, `others` have the squared l2 norm or are dense;
    `smooth` have no derivatives, `strange` the derivatives of other samples.
    """
    cases: list[tuple[dict[str, Any], int]] = [
        ({**SPARSE, "penalty": "none"}, without),
        ({**SPARSE, "penalty": "l2^2", "beta": BETAS[0]}, others),
        ({**DENSE, "penalty": "l1", "beta": BETAS[0]}, others),
        ({**SMOOTH, "penalty": "none"}, smooth),
        ({**SMOOTH, "penalty": OTHER_SAMPLES, "beta": BETAS[1]}, strange),
    ]
    return [{**case, "seed": seed} for case, count in cases for seed in range(count)]


def descent_runs(seeds: Iterable[int], pairs: Any = PAIRS) -> list[dict[str, Any]]:
    """Subgradient descent with l1, for REACH/(step beta) steps."""
    return [
        {"learning_rate": step, "beta": beta, "seed": seed}
        for seed in seeds
        for step, beta in pairs
    ]


SLOWER = {**SPARSE, "penalty": "l1", "beta": BETAS[0], "learning_rate": 1e-3, "steps": 15_000}
LARGE: dict[str, Any] = {"samples": 100, "sizes": [100, 500, 2], "width": 500}  # N's size
LARGE_SPARSE = {"teacher": "sparse", "units": 5, "reads": 3, "penalty": "l1", "steps": 3000}
LARGE_DENSE = {**DENSE, "penalty": "l1", "beta": 0.3, "steps": 1000}
MORE = [  # for the findings
    SLOWER,
    {**SPARSE, "penalty": "l2^2", "beta": BETAS[0], "samples": PLENTY},
    {**DENSE, "penalty": "l1", "beta": BETAS[0], "samples": PLENTY},
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
    **arguments(penalized_runs(16, 2, BETAS[:2], BETAS[1:]), **GIVEN | QUICK),
    printed=arguments(penalized_runs(20, 5), **GIVEN),
)
controls = sized(
    "N-F-ts-controls",
    title="Students without the penalty or data that make the others generalize",
    draw={"x": "run", "colour": "final_error"},
    **FORM,
    **arguments(control_runs(11, 3, 1, 1), **GIVEN | QUICK),
    printed=arguments([*control_runs(20, 5, 5, 5), *MORE], **GIVEN),
)
descent = sized(
    "N-F-ts-descent",
    title=r"With subgradient descent, $t_2$ scales like $1/(\mathrm{step}\,\beta)$",
    draw={"x": "run", "colour": "t2", "log": True},
    **FORM,
    **arguments(descent_runs(range(5)), **DESCENT | {"per_decade": 16}),
    printed=arguments(descent_runs(range(8), (*PAIRS, (0.5, 0.03))), **DESCENT),
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


def groks(runs: Dataset) -> bool:
    """Whether the student of a teacher groks in all these runs, and ends below the LEVEL."""
    return bool(((runs.kind == "grok") & (runs.final_error <= LEVEL)).all())


def share_of_groks(runs: Dataset) -> float:
    return float((runs.kind == "grok").mean())


def exponent(runs: Dataset) -> float:
    """The exponent of t2 in step beta; NaN unless every t2 was reached."""
    return slope(runs.learning_rate * runs.beta, runs.t2)


def check(dataset: Dataset, controls: Dataset, descent: Dataset) -> Evidence:
    """Which students grok, their final errors, the growth of t2, and its exponent in descent."""
    control, first_run = control_groups(controls, dataset), dataset.isel(run=0)
    runs_of = {name: among(dataset, penalty=name) for name in ("l1", "derivatives")}
    first, second = sparse_checks(runs_of["l1"]), smooth_checks(runs_of["derivatives"])
    grok, error, slow = first.values()
    _, other_error, _ = second.values()
    # a run that has not recovered after REACH/(step beta) steps has no t2
    powers = [exponent(runs) for runs in by_seed(descent) if np.isfinite(runs.t2).all()]
    late = len(by_seed(descent)) - len(powers)
    law = within(np.median(powers) if powers else math.nan, -1.0, 0.2)
    t1 = np.concatenate([runs.t1 for runs in (dataset, *control.values(), descent)])
    middle = {name: float(runs.final_error.median()) for name, runs in control.items()}
    seeds, smooth = (by_seed(runs) for runs in runs_of.values())
    plain_groks = sum(map(groks, by_seed(control["no penalty"])))
    as_late = sum(least_growth(runs, "t1") >= GROWN for runs in seeds)
    adam = [exponent(runs) for runs in seeds if np.isfinite(runs.t2).all()]
    return Evidence(
        ran=f"constructed: {len(seeds)} sparse and {len(smooth)} smooth teachers, 100 samples, "
        rf"Adam with step {float(first_run.learning_rate):g} and $\beta$ "
        rf"{listed(np.unique(dataset.beta)[::-1])}; $\ell_1$: students of width 50, 40 inputs, 3 "
        "units that read 2 inputs each; Sobolev: students of width 30, 20 inputs, 5 Gaussian "
        f"units; labels of variance 1, solved at {LEVEL:g} of it; loss (1/2) sum of squares; "
        f"descent on {late + len(powers)} teachers with steps of "
        f"{listed([PAIRS[0][0], PAIRS[-1][0]])} of the largest at the start",
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
            r"median over the teachers of the exponent in step $\beta$ of descent's $t_2$ with "
            r"$\ell_1$": law,
            **second,
        },
        controls={
            "no penalty": error.control(middle["no penalty"]),
            "no penalty, share that groks (0.999 upper limit)": grok.control(
                upper_share(plain_groks, len(by_seed(control["no penalty"])))
            ),
            r"the squared $\ell_2$ norm": error.control(middle["squared l2"]),
            r"$\ell_1$ and a dense teacher": error.control(middle["dense teacher"]),
            "share whose memorization is delayed as well": slow.control(as_late / len(seeds)),
            r"Adam's exponent in $\beta$": law.control(np.median(adam) if adam else math.nan),
            "no derivatives": other_error.control(middle["no derivatives"]),
            "the derivatives at other samples": other_error.control(middle[OTHER_SAMPLES]),
        },
        findings=[*findings(runs_of, control, descent, powers), *more(first_run, controls)],
    )


def sparse_checks(runs: Dataset) -> dict[str, Check]:
    """Checks of the share of sparse teachers whose students grok later, and of their errors."""
    teachers = by_seed(runs)
    grow = sum(least_growth(one) >= GROWN for one in teachers)
    return {
        r"share of the sparse teachers whose students grok under $\ell_1$ at every $\beta$ (0.999 "
        "lower limit)": share_at_least(sum(map(groks, teachers)), len(teachers), MOST),
        r"test error that $\ell_1$ leaves, median over the teachers and $\beta$": at_most(
            runs.final_error.median(), LEVEL
        ),
        rf"share of them whose $t_2$ grows by {GROWN:g} or more from a $\beta$ to a third of it "
        "(0.999 lower limit)": share_at_least(grow, len(teachers), MOST),
    }


def smooth_checks(runs: Dataset) -> dict[str, Check]:
    """Checks of the kinds, final errors and times of the students with derivatives."""
    return {
        "share of the runs with derivatives that grok": at_least(share_of_groks(runs), 1.0),
        "largest test error that derivatives leave": at_most(runs.final_error.max(), LEVEL),
        r"least growth of $t_2$ with derivatives from a $\beta$ to a third of it": at_least(
            min(map(least_growth, by_seed(runs))), GROWN
        ),
    }


def control_groups(controls: Dataset, dataset: Dataset) -> dict[str, Dataset]:
    """The controls by name, among the runs with the samples and the step of the dataset.

    The runs at N's size are for the findings.
    """
    controls = controls.isel(run=np.flatnonzero(controls.hidden.values != LARGE["sizes"][1]))
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
        elif run.samples == PLENTY or run.hidden == 500:
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
    "teacher generalizes late if the samples are enough: for most teachers with sparse weights "
    r"under an $\ell_1$ penalty, and under a penalty on wrong first derivatives (Sobolev), later "
    r"for smaller $\beta$; under subgradient descent with $\ell_1$ and a stable step the median "
    r"exponent of $t_2$ in step $\beta$ is -1 within 0.2 (ours: N only names its figures).",
    place="Non-linear Teacher-student",
    study=(study, controls, descent),
    check=check,
    draw=draw,
    ours="the whole experiment: sizes, sparse weights of the teacher, start, labels of variance "
    r"1, steps and values of $\beta$",
    scope={
        "quick": "the source prints no sizes, all are ours; 16 sparse and 2 smooth teachers, two "
        "strengths",
        "printed": "the source prints no sizes, all are ours",
    },
    seconds=14,
)
