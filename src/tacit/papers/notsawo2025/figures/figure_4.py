"""Figure 4: grokking without understanding, and a penalty that recovers the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Evidence, at_least, at_most, within
from tacit.lazy import Axes, Dataset, Figure
from tacit.papers.experiment import Experiment
from tacit.papers.notsawo2025.figures.runs import dims_of, plain
from tacit.papers.notsawo2025.recoveries import (
    SPARSE,
    Recovery,
    arguments_of,
    count,
    log_steps,
    recoverable,
)
from tacit.plotting.style import BLACK, BLUE, GREY, PURPLE, RED, caption_of, sheet
from tacit.plotting.transition import LEGEND, mark
from tacit.solvers.least_squares import descent_points, error_floor
from tacit.studies.sizes import sized

CURVES = ("step", "loss", "test_error", "norm_l2")


def cell(
    penalty: str,
    *,
    step: float,
    beta: float,
    start: float,
    steps: int,
    level: float,
    points_per_decade: int,
    linear_points: int,
    **problem: Any,
) -> dict[str, Any]:
    """One run with beta |a|_2^2 or with the norm that recovers the truth, and its classification.

    `predicted_end` is the predicted end of the late fall; `deviation` is the largest factor between
    the squared error and its final value plus the remaining fall of the squared l2 norm.
    """
    case, draws = recoverable(**problem)
    even = np.linspace(0, steps, linear_points)
    taken: Array = np.unique(np.round(np.append(log_steps(steps, points_per_decade), even)))
    begin = np.full(len(case.truth), start)
    if penalty == "l2":
        points = descent_points(case.X, case.y, step, beta, begin, taken)
        end = start_decay(case, begin) / -np.log1p(-2 * step * beta)
    else:
        points = case.points(case.run(step, beta, taken, start))
        end = case.slow(start).reaches(case.truth, np.sqrt(level)) / (step * beta)
    found = case.grokking(taken, points, level)
    error, norm = case.error(points) ** 2, np.linalg.norm(points, axis=1)
    late = taken >= 10 * found.t1
    remaining = error[-1] + np.maximum(norm**2 - norm[-1] ** 2, 0)
    ratios = np.abs(np.log(error / remaining))[late]
    return {
        "t1": found.t1,
        "t2": found.t2,
        "plateau": found.plateau,
        "grokking_kind": found.kind,
        "reason": found.reason,
        "floor": error_floor(case.X, case.truth),
        "predicted_end": float(end),
        "final_error": float(error[-1]),
        "deviation": float(np.exp(ratios.max())) if late.any() else np.nan,
        "trajectory_step": taken,
        "trajectory_loss": case.loss(points),
        "trajectory_test_error": error,
        "trajectory_norm_l2": norm,
    }


def start_decay(case: Recovery, begin: Array) -> float:
    """log(|P start| / |P truth|), where P projects onto the null space of X.

    There the start shrinks by the factor 1 - 2 step beta per step; memorization is much faster.
    """
    null = np.eye(len(begin)) - np.linalg.pinv(case.X) @ case.X
    return float(np.log(np.linalg.norm(null @ begin) / np.linalg.norm(null @ case.truth)))


LABELS = {
    "penalty": "the penalty h: l2 is beta |a|_2^2, l1 is beta |a|_1",
    "t1": "step from which the training loss is below the level",
    "t2": "step from which the test error is below the level; inf if never",
    "final_error": "test error at the end",
    "plateau": "test error when the late fall begins",
    "grokking_kind": "how tacit.grokking classifies the run",
    "reason": "the reason for this classification",
    "floor": "|(I - X^+ X) a*|^2, a lower bound for every point in the row space of X",
    "predicted_end": "predicted end of the late fall, for l1 by the slow phase",
    "deviation": "largest factor between the squared error and the remaining fall of the squared"
    " norm",
    "trajectory_test_error": "squared distance |a - a*|^2 to the truth",
    "trajectory_loss": "training loss g, half the sum of squared residuals",
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
        "start": 1.0,
        "steps": 600_000,
        "level": 1e-4,
        "points_per_decade": 40,
        "linear_points": 300,
    },
    grid={"penalty": ["l2", "l1"]},
    seeds=[0],
    dims=dims_of(CURVES),
    labels=LABELS,
    draw={"x": "penalty", "colour": "final_error", "log": True},
    printed={
        "arguments": {
            "beta": 1e-5,
            "steps": 6_000_000,
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
        "start": 10.0,
        "steps": 100_000,
        "level": 0.1,
        "points_per_decade": 30,
        "linear_points": 30,
    },
    grid={"penalty": ["l2", "nuclear"]},
    seeds=[2],
    dims=dims_of(CURVES),
    labels=LABELS,
)


def check(dataset: Dataset, matrix: Dataset) -> Evidence:
    """With l2 the error falls late with the norm and ends at the floor; with l1 it ends below."""
    shrunk, found = (
        [one.isel(penalty=place, seed=0) for one in (dataset, matrix)] for place in (0, 1)
    )
    fall = at_least(min(float(run.plateau / run.final_error) for run in shrunk), 100.0)
    floor = within(
        max(abs(float(run.final_error / run.floor) - 1) for run in shrunk), tolerance=0.02
    )
    follows = at_most(max(float(run.deviation) for run in shrunk), 2.0)
    mirage = within(sum(run.grokking_kind != "mirage" for run in shrunk))
    grok = within(sum(run.grokking_kind != "grok" for run in found))
    end = within(max(abs(float(run.t2 / run.predicted_end) - 1) for run in found), tolerance=0.05)
    return Evidence(
        ran="sparse recovery (100, 5, 30) and a 6 x 6 matrix of rank 1 from 24 entries, from a"
        " large start, with an l2 penalty and with the norm that recovers",
        premises={
            "the training loss is solved first": all(
                float(run.t1) < 0.01 * float(run.predicted_end) for run in (*shrunk, *found)
            )
        },
        checks={
            "least fall of the l2 test error after memorization, its plateau"
            " over its final value": fall,
            "largest |end/floor - 1| of the l2 test error": floor,
            "largest factor between the l2 error and its final value plus the"
            " remaining fall of |a|^2": follows,
            "l2 runs not classified as a mirage": mirage,
            "l1 and nuclear runs not classified as a grok": grok,
            "largest |t2/t2 by the slow phase - 1| of l1 and nuclear runs": end,
        },
        controls={
            "the norm that recovers ends at the lower bound too": floor.control(
                min(abs(float(run.final_error / run.floor) - 1) for run in found)
            ),
            "the l2 norm drives the fall with l1 and nuclear norm": follows.control(
                min(float(run.deviation) for run in found)
            ),
            "the l1 and nuclear runs as mirages": mirage.control(
                sum(run.grokking_kind != "mirage" for run in found)
            ),
            "the l2 runs as groks": grok.control(
                sum(run.grokking_kind != "grok" for run in shrunk)
            ),
            "the fall of the l2 norm predicts t2": end.control(
                min(
                    abs(float(g.t2 / m.predicted_end) - 1)
                    for m, g in zip(shrunk, found, strict=True)
                )
            ),
        },
        findings=[
            f"{run.penalty.item()}: {run.grokking_kind.item()}, {run.reason.item()}; end of the"
            f" fall predicted at {count(run.predicted_end)}"
            for run in (*shrunk, *found)
        ],
    )


def draw(dataset: Dataset, matrix: Dataset) -> Figure:
    """For both penalties: the error, then its logarithm over logarithmic and linear time."""
    runs = [plain(dataset.isel(penalty=place, seed=0)) for place in (0, 1)]
    level, floor = arguments_of(dataset)["level"], float(runs[0].floor)
    caption = (
        f"{caption_of(dataset.attrs)} Floor: the part of the truth that the data do not"
        f" determine, {floor:.3g}. Predicted: t2 by the slow phase (l1), or the time when the"
        " undetermined part of the start is as small as that of the truth (l2). Solved: loss or"
        f" squared error <= {level:g}. tacit.grokking on l2: {runs[0].reason.item()}; on l1:"
        f" {runs[1].reason.item()}."
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
    statement="From a large start, an l2 penalty alone gives an abrupt late fall of the"
    " generalization error that is driven by the l2 norm of the parameters and does not"
    " lead to the truth; with the norm that recovers the truth, the same fall leads to"
    " the truth.",
    place="Grokking without understanding, Figure 4",
    study=(study, matrix),
    check=check,
    draw=draw,
    ours="the seed, equal entries in the start (norm 10), the run with l1 and the matrix; at size"
    " quick also beta",
    seconds=3,
)
