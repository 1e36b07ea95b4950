"""Modular addition with a two-layer net, from a large and from a small start."""

from __future__ import annotations

import json
import math

import numpy as np

from penchant.lab import Axes, Dataset, Evidence, Experiment, Figure, at_least, sized, within
from penchant.plotting import BLACK, BLUE, CYCLE, LEGEND, RED, caption_of, latex, mark, panel_rows

HEIGHTS = (2.3, 1.1, 1.1, 1.1)  # accuracy, norm, turn, kernel distance
CURVES = (
    "t",
    "step",
    "train_accuracy",
    "test_accuracy",
    "novel_accuracy",
    "parameter_norm",
    "turn",
    "kernel_distance",
)
study = sized(
    "L-F3b",
    title="Modular addition: a net with a large start memorizes first and generalizes late",
    problem={"is": "modular_arithmetic", "modulus": 37, "fraction": 0.7},
    model={"is": "TwoTokenNet", "width": 128, "shared": True, "precision": "single"},
    # a step is `scaled` over |theta|^2 while the start is large
    method={
        "is": "GradientDescent",
        "learning_rate": 3.0,
        "scaled": 9e3,
        "weight_decay": 2e-3,
    },
    stop={"is": "Time", "t": 5e3},
    record={"is": "LogSpaced", "per_decade": 10},
    probes={
        "late": {
            "is": "grokking",
            "t": "$t",
            "train": "$train_accuracy",
            "test": "$novel_accuracy",
            "level": 0.95,
        }
    },
    trajectory=CURVES,
    final=("train_accuracy", "novel_accuracy", "parameter_norm"),
    grid={"model": {"alpha": [20.0, 0.3]}},
    seeds=1,
    labels={
        "alpha": "scale of the start",
        "late_t1": "time from which the training accuracy stays above the level",
        "late_t2": "time from which the accuracy without mirrored pairs stays above the level",
        "late_kind": "how penchant.measures.grokking classifies the run",
        "late_delay": "late_t2 - late_t1",
        "late_jump": "time at which the late rise of the accuracy without mirrored pairs is half"
        " done",
        "train_accuracy": "accuracy on the training pairs",
        "novel_accuracy": "accuracy on the test pairs without mirrored pairs",
        "trajectory_train_accuracy": "accuracy on the training pairs",
        "trajectory_test_accuracy": "accuracy on all test pairs",
        "trajectory_novel_accuracy": "accuracy on the test pairs without mirrored pairs",
    },
    draw={"x": "alpha", "colour": "late_t2"},
    # 4.1e4/|theta|^2 is the printed step 0.002 at the printed start, alpha = 100 and width 1024
    printed={
        "problem": {"modulus": 97, "fraction": 0.4},
        "model": {"width": 1024, "precision": "double"},
        "method": {"learning_rate": 6.0, "scaled": 4.1e4, "weight_decay": 1e-4},
        "stop": {"t": 1.5e5},
        "record": {"per_decade": 20},
        "grid": {"model": {"alpha": [100.0, 1.0]}},
    },
)


def runs_of(dataset: Dataset) -> list[Dataset]:
    """One run for every start, the largest first: its curves, and (1/rate) log alpha.

    The latter is the time in which pure decay takes the start from alpha to 1; NaN up to alpha = 1.
    """
    rate = json.loads(dataset.description)["method"]["weight_decay"]
    named = dataset.isel(seed=0).drop_vars(["train_accuracy", "novel_accuracy", "parameter_norm"])
    named = named.rename({f"trajectory_{name}": name for name in CURVES})
    runs = []
    for alpha in sorted(dataset.alpha.values, reverse=True):
        run = named.sel(alpha=alpha)
        predicted = math.log(alpha) / rate if alpha > 1 and rate > 0 else math.nan
        # the first record is at t = 0
        runs.append(run.isel(time=run.t.values > 0).assign(predicted=predicted))
    return runs


def check(dataset: Dataset) -> Evidence:
    """Only from the large start is training solved long before the test."""
    large, *_, small = runs_of(dataset)
    waits = [math.log10(float(run.late_jump / run.late_t1)) for run in (large, small)]
    half = float(np.interp(float(large.predicted) / 2, large.t.values, large.novel_accuracy.values))
    solved = at_least(large.novel_accuracy[-1], 0.8)  # the last pairs come later
    delayed = at_least(waits[0], 1.0)
    time = within(math.log(float(large.late_jump / large.predicted)), tolerance=math.log(2))
    trained = [float(run.late_t1) for run in (large, small)]
    return Evidence(
        ran=rf"a two-layer net on sums of pairs, from $\alpha = {latex(float(large.alpha))}$ and "
        f"{float(small.alpha):g}, gradient descent with weight decay; test pairs whose mirror "
        "is in training are left out",
        checks={
            "accuracy without mirrored pairs at the end, largest start": solved,
            "decades of time between solving training and half of the late"
            " rise, largest start": delayed,
            r"natural logarithm of the time of half of the rise over $(1/\lambda) \log "
            r"\alpha$": time,
        },
        premises={
            "runs from both starts solve the training pairs": (
                all(map(math.isfinite, trained)),
                str(trained),
            )
        },
        controls={
            "the accuracy after half of that time": solved.control(half),
            "the small start": delayed.control(waits[1]),
            "the test accuracy rises with the training accuracy": time.control(
                math.log(float(large.late_t1 / large.predicted))
            ),
        },
        findings=[
            *map(_sentence, (large, small)),
            "from the small start the net memorizes later and generalizes soon after; so a large"
            " start makes memorization faster, and generalization waits for the decay",
        ],
    )


def draw(dataset: Dataset) -> Figure:
    """Accuracy, norm, turn and kernel distance of every start over one time axis."""
    runs = runs_of(dataset)
    colours = [RED, BLUE] if len(runs) == 2 else [CYCLE[k % len(CYCLE)] for k in range(len(runs))]
    picture, axes = panel_rows(dataset.title, caption_of(dataset.attrs), HEIGHTS)
    for run, colour in zip(runs, colours, strict=True):
        _draw_run(axes, run, colour)
    for run in runs:
        if np.isfinite(run.predicted):
            time = rf"$(1/\lambda)\,\log {float(run.alpha):g}$ = {float(run.predicted):.0f}"
            mark(axes, float(run.predicted), f"predicted: {time}", BLACK, "--")
    _furnish(axes, runs)
    picture.align_ylabels(axes)
    return picture


def _draw_run(axes: list[Axes], run: Dataset, colour: str) -> None:
    accuracy, norm, turn, kernel = axes
    name = rf"$\alpha = {float(run.alpha):g}$"
    accuracy.plot(
        run.t, run.train_accuracy, "--", color=colour, linewidth=1.4, label=f"training, {name}"
    )
    accuracy.plot(run.t, run.novel_accuracy, color=colour, linewidth=3, label=f"test, {name}")
    norm.plot(run.t, run.parameter_norm, color=colour)
    turn.plot(run.t, run.turn, color=colour)
    kernel.plot(run.t, run.kernel_distance, color=colour)


def _furnish(axes: list[Axes], runs: list[Dataset]) -> None:
    accuracy, norm, turn, kernel = axes
    accuracy.set(ylabel="accuracy\n(test without mirrors)", ylim=(-0.03, 1.05), xscale="log")
    lines = [rf"$\alpha = {float(run.alpha):g}$: {_sentence(run).split(': ')[1]}" for run in runs]
    accuracy.set_title("\n".join(lines), fontsize=9)
    times = np.concatenate([run.t.values for run in runs])
    accuracy.set_xlim(times.min(), times.max())
    norm.set(ylabel="parameter\nnorm", yscale="log")
    turn.set(ylabel="turn from\nstart (degrees)", ylim=(0, 92), yticks=(0, 45, 90))
    kernel.set(ylabel="kernel\ndistance", xlabel="training time $t$ (sum of the steps)")
    accuracy.legend(**LEGEND)


def _sentence(run: Dataset) -> str:
    """When training and test were solved."""
    t1, t2, jump = (float(run[f"late_{name}"]) for name in ("t1", "t2", "jump"))
    rise = "" if math.isnan(jump) else f", half of its late rise done by {jump:.0f}"
    end = f"test from $t = {t2:.0f}$" if math.isfinite(t2) else "test not solved"
    return (
        rf"$\alpha = {latex(float(run.alpha))}$: training solved from $t = "
        f"{latex(t1, '.3g')}$, {end}{rise}"
    )


experiment = Experiment(
    "L-F3b",
    statement="A two-layer net that learns modular addition from a large start under a small "
    r"weight decay memorizes first and generalizes late, near $(1/\lambda) \log \alpha$; from "
    "a small start it generalizes soon after training is solved.",
    place="not on the poster: an experiment of the paper of Lyu et al. (2023) that the poster is "
    "about",
    study=study,
    check=check,
    draw=draw,
    ours=r"ReLU units, the sum of one-hot codes as input, steps like $1/|\theta|^2$ as the norm "
    r"falls, the small start; at the size quick also $p$, $h$, $\alpha$, training share, decay",
    scope={
        "quick": "$p = 37$ in place of 97, 70% of the pairs in place of 40%, 128 units in place "
        r"of 1024, $\alpha = 20$ in place of 100, decay $2 \times 10^{-3}$ in place of "
        "$10^{-4}$; steps that grow as the norm falls",
        "printed": "steps that grow as the norm falls in place of 0.002 throughout",
    },
    seconds=6,
)
