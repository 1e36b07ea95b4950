"""When a run will grok, as the watch says it and as its rivals do, beside when it did."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.evidence.evidence import Evidence, at_least, at_most
from tacit.papers.experiment import Experiment
from tacit.papers.watch.forecast_rules import ASKED, RULES, Recorded, Score, moments, score
from tacit.papers.watch.grokking_runs import LEAGUE, NEW, QUICK, RUNS, TINY
from tacit.papers.watch.trajectories import CURVES, record
from tacit.plotting.style import BLUE, GREY, ORANGE, RED, end_label, sheet_of
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

GOAL = 1.2  # times the memorization, when the forecast is held to ERROR and COVERAGE
ERROR, COVERAGE = 0.25, 0.8
WIDEST = 4.0  # upper end of an interval over its lower one: a wide one contains every jump


def cell(setting: str, seed: int) -> dict[str, Any]:
    """The curves of one run."""
    found = record(RUNS[setting], seed)
    return {name: found[name] for name in CURVES}


study = sized(
    "watch-forecast",
    title="Forecasts of grokking beside when it came",
    function=cell,
    dims={name: ["record"] for name in CURVES},
    grid={"setting": [run.name for run in QUICK]},
    seeds=[2],  # the rules were fitted on others
    labels={"turn": "angle from the start in degrees", "norm": "norm of the parameters"},
    draw={"x": "setting", "colour": "norm"},
    tiny={"grid": {"setting": [run.name for run in TINY]}},
    printed={"grid": {"setting": [run.name for run in LEAGUE]}},
)


def recorded(dataset: xarray.Dataset) -> list[Recorded]:
    """The runs of the dataset, each with its moments."""
    found = []
    for seed in dataset.seed.values.tolist():
        for setting in dataset.setting.values.tolist():
            at = dataset.sel(seed=seed, setting=setting)
            steps = at["step"].values
            curves = {name: at[name].values[np.isfinite(steps)] for name in CURVES}
            sides = (curves[name] for name in ("step", "train_accuracy", "test_accuracy"))
            found.append(Recorded(RUNS[setting], curves, moments(*sides)))
    return found


def scores(runs: list[Recorded]) -> dict[str, dict[float, Score]]:
    """The score of every rule, by how many times the memorization it was asked."""
    return {
        name: {factor: score(runs, rule, factor) for factor in ASKED}
        for name, rule in RULES.items()
    }


def check(dataset: xarray.Dataset) -> Evidence:
    """How far the forecasts are off, and those of its rivals on the same runs."""
    runs = recorded(dataset)
    by = scores(runs)
    at = {name: found[GOAL] for name, found in by.items()}
    ours = at["the watch"]
    error, coverage = at_most(ours.error, ERROR), at_least(ours.coverage, COVERAGE)
    width = at_most(ours.width, WIDEST)
    return Evidence(
        ran=f"{len(runs)} runs, {ours.asked} of which grok later than {GOAL:g} times their"
        f" memorization and {ours.quiet} never; seeds that had no part in choosing the rules",
        premises={"there are runs that grok": (ours.asked > 0, ours.asked)},
        checks={
            f"mean error of the step of the jump, asked at {GOAL:g} times the memorization": error,
            "share of the runs with the jump in the 80% interval": coverage,
            "upper end of the interval over its lower end, in the median": width,
        },
        controls={
            "a clock, fitted on other runs": error.control(at["clock"].error),
            "norm separation, with the norm at the end": error.control(at["norm separation"].error),
            "the norm rule": coverage.control(at["norm rule"].coverage),
            "the interval of the clock": width.control(at["clock"].width),
        },
        findings=[*_findings(by), *_parts(runs)],
    )


def _findings(by: dict[str, dict[float, Score]]) -> list[str]:
    """The watch whenever it is asked, and its rivals at the goal."""
    return [
        f"{name}, asked at {factor:g} t_mem: {sentence(found)}"
        for name, rows in by.items()
        for factor, found in rows.items()
        if name == "the watch" or factor == GOAL
    ]


def _parts(runs: list[Recorded]) -> list[str]:
    """The watch on settings that were not in the runs of development, and family by family."""
    parts = {"settings without a run in development": [r for r in runs if r.run in NEW]}
    for run in runs:
        family = "digits" if run.run.task == "digits" else run.run.net
        parts.setdefault(family, []).append(run)
    found = {name: score(part, RULES["the watch"], GOAL) for name, part in parts.items()}
    return [f"the watch, {name}: {sentence(s)}" for name, s in found.items() if s.asked]


def inside(found: Score) -> str:
    """The coverage of a rule in words."""
    return "no interval" if math.isnan(found.coverage) else f"{found.coverage:.0%} inside"


def sentence(found: Score) -> str:
    """A score in words."""
    return (
        f"error {found.error:.0%}, {inside(found)}, no forecast for {found.refused} of"
        f" {found.asked} runs, {found.alarms} false alarms of {found.quiet}"
    )


COLOURS = {"the watch": BLUE, "norm rule": ORANGE, "norm separation": RED, "clock": GREY}


def draw(dataset: xarray.Dataset) -> Figure:
    """The step that each rule said over the step of the jump; in the band it is right."""
    runs = recorded(dataset)
    picture, axes = sheet_of(dataset, widths=(3.4,) * len(RULES), height=4.2)
    by = {name: score(runs, rule, GOAL) for name, rule in RULES.items()}
    steps = [
        step for found in by.values() for said, truth in found.pairs for step in (said.step, truth)
    ]
    ends = np.array([min(steps) / 1.5, max(steps) * 1.5])
    for panel, (name, found) in zip(axes, by.items(), strict=True):
        panel.fill_between(ends, ends * (1 - ERROR), ends * (1 + ERROR), color=GREY, alpha=0.25)
        for said, truth in found.pairs:
            if math.isfinite(said.high):
                panel.plot([truth] * 2, [said.low, said.high], color=COLOURS[name], alpha=0.35)
            panel.plot(truth, said.step, "o", color=COLOURS[name], markersize=4)
        panel.set(xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel="step of the jump")
        panel.set_ylabel(f"forecast at {GOAL:g} times the memorization")
        refused = f"{found.refused} of {found.asked} not forecast"
        panel.set_title(f"{name}: {found.error:.0%} off\n{inside(found)}, {refused}", fontsize=10)
    end_label(axes[0], ends[1] / 1.4, ends[0] * 1.6, f"band: within {ERROR:.0%}", GREY, ha="right")
    return picture


experiment = Experiment(
    "watch-forecast",
    statement="At 1.2 times the memorization tacit.watch says when the test accuracy will have"
    " risen half way: within a quarter on average, by an interval that contains it in four of five"
    " runs, for MLPs, quadratic nets and transformers by SGD, momentum and AdamW.",
    place="ours",
    study=study,
    check=check,
    draw=draw,
    title="The step at which the test accuracy jumps: forecast and seen",
    ours="nets, data, optimizers and training times",
    seconds=15,
)
