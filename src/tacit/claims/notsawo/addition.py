"""N-F1: modular addition is memorized early and understood late; the plateau between is twins."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.claims.evidence import Check, Evidence
from tacit.claims.plot import Plot, Series
from tacit.claims.registry import claim
from tacit.claims.verdict import Size
from tacit.flows.token_adam import TokenAdam
from tacit.models.token_mlp import TokenMLP
from tacit.probes.grokking import grokking
from tacit.problems.operations import modular_arithmetic

LEVEL = 0.99  # validation accuracy at t2
PRINTED = {"t1": 540, "t2": 9150}  # read by the source off its figure


@dataclasses.dataclass(frozen=True)
class Setting:
    """One size of the experiment, and where t1 and t2 must lie."""

    modulus: int
    fraction: float
    step: float
    beta: float
    steps: int
    seeds: tuple[int, ...]
    soon: int  # t1 is at most this
    late: tuple[int, int]  # t2 is between these


SETTINGS = {
    "quick": Setting(47, 0.5, 2e-3, 1e-5, 6000, (0,), 500, (2000, 6000)),
    "full": Setting(97, 0.4, 1e-3, 1e-6, 20_000, (0, 1, 2), 1000, (6000, 20_000)),
}


def train(setting: Setting, seed: int, variant: str = "source", **changes: Any) -> Any:
    """The dataset of a run, with the share of validation pairs that are twins as attribute."""
    problem = modular_arithmetic("+", setting.modulus, setting.fraction, seed)
    given = {"step": setting.step, "steps": setting.steps, "beta": setting.beta}
    adam = TokenAdam(**(given | changes), seed=seed)
    run = adam.run(TokenMLP(64, 64, variant=variant, seed=seed), problem).dataset
    return run.assign_attrs(twins=problem.twins.sum() / problem.test.sum())


def landmarks(run: Any, level: float = LEVEL) -> dict[str, float]:
    """t1, t2 (nan where they are not reached) and both validation accuracies between them."""
    steps = run.step.values.astype(float)
    t1 = _first(steps, run.train_accuracy.values, 1.0)
    t2 = _first(steps, run.test_accuracy.values, level)
    found = {"t1": t1, "t2": t2, "plateau": math.nan, "novel_plateau": math.nan}
    if 0 < t1 < t2:
        middle = int(np.searchsorted(steps, math.sqrt(t1 * t2)))
        found["plateau"] = float(run.test_accuracy[middle])
        found["novel_plateau"] = float(run.novel_accuracy[middle])
    return found


def _first(steps: Array, curve: Array, level: float) -> float:
    there = np.flatnonzero(curve >= level)
    return float(steps[there[0]]) if len(there) else math.nan


def outside(times: list[float], span: tuple[int, int]) -> int:
    """How many lie outside, those that were never reached among them."""
    return sum(not span[0] <= t <= span[1] for t in times)


@claim(
    "N-F1",
    statement="an MLP with a small l2^2 penalty, trained by Adam on 40% of the table of addition"
    " mod 97, answers all training pairs after about 540 steps and the others after about 9150",
    place="What is Grokking?, Figure 1",
    seconds=20,
)
def figure_1(size: Size) -> Evidence:
    setting = SETTINGS[size]
    runs = [train(setting, seed) for seed in setting.seeds]
    found = [landmarks(run) for run in runs]
    bare = train(setting, setting.seeds[0], beta=0.0)
    between = round(5 * found[0]["t1"])
    ordered = train(setting, setting.seeds[0], "code", steps=between)
    soon = Check("largest t1", max(f["t1"] for f in found), setting.soon, kind="at most")
    late = Check(f"runs whose t2 is not within {setting.late[0]} and {setting.late[1]}",
                 outside([f["t2"] for f in found], setting.late))  # fmt: skip
    grok = Check("runs not called a grok", sum(kind(run) != "grok" for run in runs))
    gaps = [f["plateau"] - run.twins for f, run in zip(found, runs, strict=True)]
    twins = Check("largest gap of the plateau from the share of twins", max(gaps, key=abs),
                  tolerance=0.03)  # fmt: skip
    novel = Check("largest accuracy on the plateau without twins",
                  max(f["novel_plateau"] for f in found), 0.05, kind="at most")  # fmt: skip
    times = "; ".join(f"t1 = {f['t1']:.0f}, t2 = {f['t2']:.0f}" for f in found)
    return Evidence(
        ran=f"the MLP as the source writes it, embedding 64, hidden 64, p = {setting.modulus},"
        f" {setting.fraction:.0%} of the pairs, Adam at {setting.step:g}, beta {setting.beta:g},"
        f" full batches, seeds {', '.join(map(str, setting.seeds))}; the same without penalty, and"
        " with the net of the authors' code, which tells (a, b) from (b, a)",
        checks=[soon, late, grok, twins, novel],
        controls={
            "t1 for t2": late.control(outside([f["t1"] for f in found], setting.late)),
            "t2 for t1": soon.control(max(f["t2"] for f in found)),
            "no penalty": late.control(outside([landmarks(bare)["t2"]], setting.late)),
            "no penalty as a grok": grok.control(kind(bare) != "grok"),
            "a net that is not symmetric": twins.control(
                float(ordered.test_accuracy[-1]) - ordered.twins),
            "all pairs as novel": novel.control(found[0]["plateau"]),
        },
        findings=[
            f"{times}; the source reads t1 = {PRINTED['t1']} and t2 = {PRINTED['t2']} off its"
            " figure for p = 97",
            f"the plateau at {found[0]['plateau']:.3f} is made of pairs (a, b) whose mirror (b, a)"
            f" is in training, {runs[0].twins:.3f} of the validation pairs: without them the"
            f" accuracy there is {found[0]['novel_plateau']:.3f}",
        ],
        plots=[
            Plot("accuracy", "steps of Adam", "accuracy",
                 [Series("training", *curve(runs[0], "train_accuracy"), "dashed"),
                  Series("validation", *curve(runs[0], "test_accuracy")),
                  Series("validation without twins", *curve(runs[0], "novel_accuracy"))], "log"),
        ],
    )  # fmt: skip


def kind(run: Any) -> str:
    """What the detector calls a run."""
    steps, train = curve(run, "train_accuracy")
    return grokking(steps, train, run.test_accuracy.values[1:], LEVEL).kind


def curve(run: Any, name: str) -> tuple[Array, Array]:
    """Steps from the first on, and what was measured there."""
    return run.step.values[1:], run[name].values[1:]
