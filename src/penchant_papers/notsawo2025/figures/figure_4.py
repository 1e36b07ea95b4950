"""Figure 4: grokking without understanding, and a penalty that recovers the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penchant.lab import (
    DRAWS,
    Array,
    Axes,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    at_most,
    drawn,
    sized,
    within,
)
from penchant.plotting import BLACK, BLUE, GREY, LEGEND, PURPLE, RED, caption_of, latex, mark, sheet
from penchant.solvers import descent_points, error_floor
from penchant_papers.notsawo2025.figures.runs import NAMES, dims_of, plain
from penchant_papers.notsawo2025.recoveries import (
    FAR,
    SPARSE,
    Recovery,
    arguments_of,
    count,
    log_steps,
    recoverable,
    recovery,
)

# Samples far below what is needed: 5 entries and their places are 10 numbers, rank 1 is 11.
FEW = {"sparse": 8, "completion": 8}
SPARE = {"points_per_decade": 15, "linear_points": 60}
SHORT = 0.05  # step of a vector, whose 8 samples have a larger singular value than 30
CURVES = ("step", "loss", "test_error", "norm_l2")


def cell(
    penalty: str,
    *,
    step: float,
    beta: float,
    start: float,
    level: float,
    points_per_decade: int,
    linear_points: int,
    recovers: bool = True,
    **problem: Any,
) -> dict[str, Any]:
    """One run with beta |a|_2^2 or with the norm that recovers the truth, and its classification.

    Unless it `recovers`, the problem has too few samples for that norm, which only l2 is run on.

    The entries of the start are equal, its norm is `start` times that of the truth, or `start` for
    a vector. The run lasts half as long again as the late fall of its error, whose end
    `predicted_end` is predicted. `deviation` is the largest factor between the squared error and
    its final value plus the remaining fall of the squared l2 norm; if the norm alone falls, it is
    at most 1/(1 - |c|), c the cosine of start and truth where the data do not determine them.
    """
    case, draws = (recoverable if recovers else hopeless)(**problem)
    size = 1.0 if problem["kind"] == "sparse" else float(np.linalg.norm(case.truth))
    entry = start * size / np.sqrt(len(case.truth))
    begin = np.full(len(case.truth), entry)
    if penalty == "l2":
        end = start_decay(case, begin) / -np.log1p(-2 * step * beta)
        steps = end + 3 / (step * beta)  # the rest of the start falls by e^6 more
        taken = recorded(steps, points_per_decade, linear_points)
        points = descent_points(case.X, case.y, step, beta, begin, taken)
    else:
        end = case.slow(entry).reaches(case.truth, np.sqrt(level)) / (step * beta)
        taken = recorded(1.5 * end, points_per_decade, linear_points)
        points = case.points(case.run(step, beta, taken, entry))
    transition = case.grokking(taken, points, level)
    error, norm = case.error(points) ** 2, np.linalg.norm(points, axis=1)
    late = taken >= 10 * transition.t1
    remaining = error[-1] + np.maximum(norm**2 - norm[-1] ** 2, 0)
    ratios = np.abs(np.log(error / remaining))[late]
    return {
        "draws": draws,
        "t1": transition.t1,
        "t2": transition.t2,
        "plateau": transition.plateau,
        "grokking_kind": transition.kind,
        "reason": transition.reason,
        "floor": error_floor(case.X, case.truth),
        "least_off": np.nan if recovers else case.off(case.least),
        "predicted_end": float(end),
        "final_error": float(error[-1]),
        "deviation": float(np.exp(ratios.max())) if late.any() else np.nan,
        "cosine": cosine(case, begin),
        "trajectory_step": taken,
        "trajectory_loss": case.loss(points),
        "trajectory_test_error": error,
        "trajectory_norm_l2": norm,
    }


def hopeless(kind: str, *, seed: int, **given: Any) -> tuple[Recovery, int]:
    """A recovery of this seed whose interpolator of least norm is FAR from the truth, and draws."""
    return drawn(
        lambda k: recovery(kind, seed=k, **given),
        lambda case: case.off(case.least) > FAR,
        seed=DRAWS * seed,
    )


def recorded(steps: float, points_per_decade: int, linear_points: int) -> Array:
    """Whole numbers of steps, dense on a logarithmic and on a linear axis."""
    even = np.linspace(0, round(steps), linear_points)
    return np.unique(np.round(np.append(log_steps(round(steps), points_per_decade), even)))


def undetermined(case: Recovery, begin: Array) -> tuple[Array, Array]:
    """The parts of start and truth in the null space of X."""
    null = np.eye(len(begin)) - np.linalg.pinv(case.X) @ case.X
    return null @ begin, null @ case.truth


def start_decay(case: Recovery, begin: Array) -> float:
    """log(|P start| / |P truth|), where P projects onto the null space of X.

    There the start shrinks by the factor 1 - 2 step beta per step; memorization is much faster.
    """
    start, truth = undetermined(case, begin)
    return float(np.log(np.linalg.norm(start) / np.linalg.norm(truth)))


def cosine(case: Recovery, begin: Array) -> float:
    """The cosine of the angle between P start and P truth."""
    start, truth = undetermined(case, begin)
    return float(start @ truth / np.linalg.norm(start) / np.linalg.norm(truth))


LABELS = {
    "penalty": r"the penalty $h$: $\ell_2$ is $\beta |a|_2^2$, $\ell_1$ is $\beta |a|_1$",
    "t1": "step from which the training loss is below the level",
    "t2": r"step from which the test error is below the level; $\infty$ if never",
    "final_error": "test error at the end",
    "plateau": "test error when the late fall begins",
    "grokking_kind": "how penchant.measures.grokking classifies the run",
    "reason": "the reason for this classification",
    "floor": "$|(I - X^+ X) a^*|^2$, a lower bound for every point in the row space of $X$",
    "least_off": "relative error of the interpolator of least norm, where it is not the truth",
    "predicted_end": r"predicted end of the late fall, for $\ell_1$ by the slow phase",
    "draws": "how many problems were drawn until one met the premises",
    "cosine": "cosine of start and truth where the data do not determine them",
    "deviation": "largest factor between the squared error and the remaining fall of the squared"
    " norm",
    "trajectory_test_error": "squared distance $|a - a^*|^2$ to the truth",
    "trajectory_loss": "training loss $g$, half the sum of squared residuals",
}
study = sized(
    "N-F-mirage",
    title="The test error falls late with either penalty, but only ℓ₁ recovers the truth",
    function=cell,
    arguments=SPARSE
    | {
        "noise": 1e-8,
        "step": 0.1,
        "beta": 1e-4,
        "start": 10.0,
        "level": 1e-4,
        "points_per_decade": 40,
        "linear_points": 300,
    },
    grid={"penalty": ["l2", "l1"]},
    seeds=2,
    tiny={"seeds": 1},
    dims=dims_of(CURVES),
    labels=LABELS,
    draw={"x": "penalty", "colour": "final_error", "log": True},
    printed={
        "arguments": {
            "beta": 1e-5,
            "points_per_decade": 80,
            "linear_points": 600,
        }
    },
)
matrix = sized(
    "N-F-mirage-matrix",
    title="The same for a matrix: only the nuclear norm recovers the truth",
    function=cell,
    arguments={
        "kind": "completion",
        "samples": 24,
        "dimension": 6,
        "few": 1,
        "noise": 0.0,
        "step": 0.5,
        "beta": 2e-3,
        "start": 20.0,
        "level": 0.1,
        "points_per_decade": 30,
        "linear_points": 30,
    },
    grid={"penalty": ["l2", "nuclear"]},
    seeds=3,
    tiny={"seeds": 2},
    printed={"seeds": 10},
    dims=dims_of(CURVES),
    labels=LABELS,
)
few = sized(
    "N-F-mirage-few",
    title="The same with far too few samples: there is nothing to recover",
    function=cell,
    arguments={
        **study.quick["arguments"],
        "samples": FEW["sparse"],
        "step": SHORT,
        "recovers": False,
        **SPARE,
    },
    grid={"penalty": ["l2"]},
    seeds=20,
    tiny={"seeds": 4},
    printed={"arguments": {"beta": 1e-5}, "seeds": 200},
    dims=dims_of(CURVES),
    labels=LABELS,
)
few_matrix = sized(
    "N-F-mirage-few-matrix",
    title="The same for a matrix with far too few entries",
    function=cell,
    arguments={
        **matrix.quick["arguments"],
        "samples": FEW["completion"],
        "recovers": False,
        **SPARE,
    },
    grid={"penalty": ["l2"]},
    seeds=20,
    tiny={"seeds": 4},
    printed={"seeds": 200},
    dims=dims_of(CURVES),
    labels=LABELS,
)


def runs_with(data: Sequence[Dataset], place: int) -> list[Dataset]:
    """The runs of all problems with the l2 penalty (0) or with the norm that recovers (1)."""
    return [
        one.isel(penalty=place, seed=number) for one in data for number in range(one.sizes["seed"])
    ]


def excess(run: Dataset) -> float:
    """`deviation` over the most that it can be if the norm of the start alone falls."""
    return float(run.deviation * (1 - abs(run.cosine)))


def check(dataset: Dataset, matrix: Dataset, few: Dataset, few_matrix: Dataset) -> Evidence:
    """With l2 the error falls late with the norm and ends at the floor; with l1 it ends below."""
    hopeless_runs = runs_with((few, few_matrix), 0)
    nothing = min(float(run.least_off) for run in hopeless_runs)
    paired, recovering = (runs_with((dataset, matrix), place) for place in (0, 1))
    shrunk = [*paired, *hopeless_runs]
    fall = at_least(min(float(run.plateau / run.final_error) for run in shrunk), 100.0)
    floor = within(
        max(abs(float(run.final_error / run.floor) - 1) for run in shrunk), tolerance=0.02
    )
    follows = at_most(max(map(excess, shrunk)), 1.0, 0.05)
    mirage = within(sum(run.grokking_kind != "mirage" for run in shrunk))
    grok = within(sum(run.grokking_kind != "grok" for run in recovering))
    end = within(
        max(abs(float(run.t2 / run.predicted_end) - 1) for run in recovering), tolerance=0.05
    )
    first = max(float(run.t1 / run.predicted_end) for run in (*shrunk, *recovering))
    draws, tried = (
        sum(int(one.draws.isel(penalty=0).sum()) for one in pair)
        for pair in ((dataset, matrix), (few, few_matrix))
    )
    return Evidence(
        ran=f"{dataset.sizes['seed']} sparse recoveries (100, 5, 30) and {matrix.sizes['seed']} 6 "
        r"x 6 matrices of rank 1 from 24 entries, from a large start, with an $\ell_2$ "
        "penalty and with the norm that recovers; the $\\ell_2$ penalty also on "
        f"{few.sizes['seed']} vectors and {few_matrix.sizes['seed']} matrices with 8 samples, for "
        "which nothing recovers",
        premises={
            "the training loss is solved first": (first < 0.05, first),
            "with too few samples the interpolator of least norm is not the truth: its least "
            "relative error": (nothing > FAR, nothing),
        },
        checks={
            r"least fall of the $\ell_2$ test error after memorization, its plateau over its "
            "final value": fall,
            r"largest |end/floor - 1| of the $\ell_2$ test error": floor,
            r"largest factor between the $\ell_2$ error and its final value plus the remaining "
            "fall of $|a|^2$, over its bound": follows,
            r"$\ell_2$ runs not classified as a mirage": mirage,
            r"$\ell_1$ and nuclear runs not classified as a grok": grok,
            r"largest |$t_2$ / $t_2$ by the slow phase - 1| of $\ell_1$ and nuclear runs": end,
        },
        controls={
            "the norm that recovers ends at the lower bound too": floor.control(
                min(abs(float(run.final_error / run.floor) - 1) for run in recovering)
            ),
            r"the $\ell_2$ norm drives the fall with $\ell_1$ and nuclear norm": follows.control(
                max(map(excess, recovering))
            ),
            r"the $\ell_1$ and nuclear runs as mirages": mirage.control(
                sum(run.grokking_kind != "mirage" for run in recovering)
            ),
            r"the $\ell_2$ runs as groks": grok.control(
                sum(run.grokking_kind != "grok" for run in shrunk)
            ),
            r"the fall of the $\ell_2$ norm predicts $t_2$": end.control(
                max(
                    abs(float(g.t2 / m.predicted_end) - 1)
                    for m, g in zip(paired, recovering, strict=True)
                )
            ),
        },
        findings=[
            f"problems whose truth has the least norm: {len(recovering)} of {draws} drawn; whose "
            f"interpolator of least norm is not the truth, with 8 samples: {len(hopeless_runs)} "
            f"of {tried}",
            *(
                f"{NAMES[run.penalty.item()]}: {run.grokking_kind.item()}, {run.reason.item()}; "
                f"end of the fall predicted at {count(run.predicted_end)}"
                for run in (*paired, *recovering)
            ),
        ],
    )


def draw(dataset: Dataset, *_: Dataset) -> Figure:
    """For both penalties: the error, then its logarithm over logarithmic and linear time."""
    runs = [plain(dataset.isel(penalty=place, seed=0)) for place in (0, 1)]
    level, floor = arguments_of(dataset)["level"], float(runs[0].floor)
    caption = (
        f"{caption_of(dataset.attrs)} Floor: the part of the truth that the data do not "
        rf"determine, {floor:.3g}. Predicted: $t_2$ by the slow phase ($\ell_1$), or the time "
        "when the undetermined part of the start is as small as that of the truth "
        rf"($\ell_2$). Solved: loss or squared error $\leq {latex(level)}$. measures.grokking "
        rf"calls $\ell_2$ a {runs[0].grokking_kind.item()} and $\ell_1$ a "
        f"{runs[1].grokking_kind.item()}."
    )
    title = dataset.attrs["title"]
    picture, panels = sheet(title, caption, (6.0, 6.0), height=8.2, rows=(1.0, 1.25, 1.25))
    grid = [panels[:2], panels[2:4], panels[4:]]
    for first, second in grid:
        second.sharey(first)
        second.tick_params(labelleft=False)
    for column, run in enumerate(runs):
        later = run.isel(time=run.step.values > 0)
        for row, shown in enumerate((later, later, run)):
            _draw_run(grid[row][column], shown, level)
        _label_axes([line[column] for line in grid], run)
        _marks([line[column] for line in grid], run)
    grid[1][1].legend(*grid[0][1].get_legend_handles_labels(), **LEGEND)  # one for all panels
    picture.align_ylabels([line[0] for line in grid])
    return picture


def _draw_run(axes: Axes, run: Dataset, level: float) -> None:
    axes.plot(run.step, run.loss, "--", color=BLUE, label=r"training loss $g$")
    axes.plot(
        run.step, run.test_error, color=RED, linewidth=3, label=r"test error $\|a - a^*\|_2^2$"
    )
    axes.axhline(
        float(run.floor),
        color=PURPLE,
        linestyle="-.",
        linewidth=1.6,
        label="floor: part of the truth\nthat the data do not determine",
    )
    axes.axhline(level, color=GREY, linewidth=0.9, label="solved below this level")


def _marks(axes: list[Axes], run: Dataset) -> None:
    """t1, t2 and the predicted end of the fall."""
    lines = (
        ("t1", "$t_1$: training solved", BLUE, "-"),
        ("t2", "$t_2$: test solved", RED, "-"),
        ("predicted_end", "predicted end of the fall", BLACK, ":"),
    )
    for name, text, colour, line in lines:
        if np.isfinite(run[name]):
            mark(axes, float(run[name]), text, colour, line)


def _label_axes(axes: list[Axes], run: Dataset) -> None:
    plain, log, linear = axes
    name, last = str(run.penalty.values), float(run.step[-1])
    late = f"= {count(run.t2)}" if np.isfinite(run.t2) else "not reached"
    times = f"$t_1$ = {count(run.t1)}, $t_2$ {late}"
    plain.set_title(rf"{_law(name)}: {run.grokking_kind.item()} ({times})")
    for one in (plain, log):
        one.set(xscale="log", xlim=(1, last))
    linear.set(xlim=(0, last), xlabel="steps (linear)")
    linear.locator_params(axis="x", nbins=3)
    linear.xaxis.set_major_formatter(lambda step, _: count(step))
    plain.tick_params(labelbottom=False)
    log.set(yscale="log", xlabel="steps (logarithmic)")
    linear.set(yscale="log")
    if name == "l2":
        plain.set_ylabel("loss and error\n(linear)")
        for one in (log, linear):
            one.set_ylabel("loss and error\n(logarithmic)")


def _law(name: str) -> str:
    return r"penalty $\beta\,\|a\|_2^2$" if name == "l2" else r"penalty $\beta\,\|a\|_1$"


experiment = Experiment(
    "N-F-mirage",
    statement=r"From a large start, an $\ell_2$ penalty alone gives an abrupt late fall of the "
    r"generalization error that is driven by the $\ell_2$ norm of the parameters and does not "
    "lead to the truth, also where the samples are far too few for any recovery; with the norm "
    "that recovers the truth, the same fall leads to the "
    "truth.",
    place="Grokking without understanding, Figure 4",
    study=(study, matrix, few, few_matrix),
    check=check,
    draw=draw,
    ours=r"the seeds, equal entries in the start (norm 10), the run with $\ell_1$ and the matrix",
    scope={"quick": r"$\beta$ $10^{-4}$ in place of $10^{-5}$"},
    seconds=3,
)
