"""Recipes for a wanted regularizer, computed before training, and trained."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from penchant import L2, DiagonalNet, GradientDescent, Q, interpolate, train
from penchant.forecasts import Design, design, effective_regularizer
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_most,
    share_at_least,
    sized,
)
from penchant.methods import EffectiveScale
from penchant.plotting import BLACK, CYCLE, sheet_of
from penchant.problems import sparse_regression
from penchant.record import At
from penchant_papers.beyond import OWN_RUNS


class Way(NamedTuple):
    """What shrinks the scale, the batch, and the range of the wanted fall of its log."""

    method: str
    batch: int | None
    falls: tuple[float, float]
    alpha: float | None = None  # of the start; None leaves start and shape to the design


WAYS = {
    "decay, two samples": Way("decay", 2, (1.5, 5.0)),
    "label noise": Way("label noise", None, (0.3, 0.8)),
    "learning rate, one sample": Way("learning rate", 1, (0.05, 0.12), 0.03),
}
NEAR = 0.05  # of the fall of the mean log scale
SHARE = 0.6  # of the runs, by its lower bound
CLOSER = 0.3  # distance to the target's minimiser over that of the start's


MEASURED = (
    "fallen",
    "fallen_wrong",
    "inside",
    "distance",
    "distance_wrong",
    "distance_start",
    "expected",
)


def wrongly(plan: Design) -> Design:
    """The recipe of a rule that forgets what a part of the run differs in.

    Decay that is not switched off would be half as strong. Noise under a rate that does not fall
    would have the variance times the mean square of the factors, 2/3. Steps on all samples have no
    noise of batches.
    """
    if isinstance(plan.method, GradientDescent):
        return dataclasses.replace(plan, batch=None)
    plain: Any = plan.method.method
    weaker = dataclasses.replace(
        plain,
        weight_decay=plain.weight_decay / 2,
        label_noise=plain.label_noise * math.sqrt(2 / 3),
    )
    return dataclasses.replace(plan, method=dataclasses.replace(plan.method, method=weaker))


def cell(way: str, problem: int, seed: int, *, steps: int) -> dict[str, Any]:
    """One problem and target: the end of the recipe, and that of a wrong one."""
    rng = np.random.default_rng([seed, problem])
    method, batch, falls, alpha = WAYS[way]
    data = sparse_regression(10, 25, sparsity=3, noise=0.1, seed=int(rng.integers(2**31)))
    start = alpha or float(np.sqrt(np.square(interpolate(data, L2()).beta).mean()) ** 0.5)
    model = None if alpha is None else DiagonalNet(2, alpha=alpha)
    fall = float(rng.uniform(*falls))
    target = Q(2, alpha=start * math.exp(-fall))
    try:
        plan = design(data, target, steps=steps, method=method, batch=batch, model=model)
    except ValueError:  # says that the target cannot be reached in these steps
        return {"wanted": fall} | dict.fromkeys(MEASURED, math.nan)
    wanted, unchanged = (interpolate(data, q).beta for q in (target, Q(2, alpha=start)))
    scale, end = trained(plan, seed)
    wrong, wrong_end = trained(wrongly(plan), seed)
    low, high = plan.prediction.low, plan.prediction.high

    def far(predictor: Array) -> float:
        return float(np.linalg.norm(predictor - wanted) / np.linalg.norm(wanted))

    return {
        "wanted": fall,
        "fallen": float(math.log(start) - np.log(scale).mean()),
        "fallen_wrong": float(math.log(start) - np.log(wrong).mean()),
        "inside": float(((low <= scale) & (scale <= high)).mean()),
        "distance": far(end),
        "distance_wrong": far(wrong_end),
        "distance_start": far(unchanged),
        "expected": plan.distance,
    }


def trained(plan: Design, seed: int) -> tuple[Array, Array]:
    """The effective scale of every coordinate at the end of a recipe, and the end."""
    arguments = plan.arguments | {"method": EffectiveScale(plan.method)}
    path = train(**arguments, seed=seed, record=At(steps=[plan.stop.count]))
    q: Any = effective_regularizer(path)
    return np.asarray(q.shape), path.predictor


study = sized(
    "beyond-design",
    title="Recipes for a wanted scale, computed before training",
    function=cell,
    arguments={"steps": 10_000},
    grid={"way": list(WAYS), "problem": list(range(7))},
    seeds=1,
    labels={
        "wanted": "wanted fall of the log of the scale",
        "fallen": "fall of the mean log scale of the trained recipe",
        "fallen_wrong": "the same of the recipe of a wrong rule",
        "inside": "share of coordinates whose scale is in its interval",
        "distance": "distance of the end to the target's minimiser, over its size",
        "distance_wrong": "the same of the recipe of a wrong rule",
        "distance_start": "the same of the minimiser at the start's scale",
        "expected": "the same of the predicted end",
    },
    draw={"x": "problem", "colour": "fallen"},
    tiny={"grid": {"problem": [0, 1, 2, 3, 4]}},
    printed={"grid": {"problem": list(range(40))}, "arguments": {"steps": 50_000}},
)


def ratios(dataset: Dataset, name: str) -> list[float]:
    """Mean distances to the target's minimiser over that of the start's, by way."""
    means = dataset.mean(["problem", "seed"])
    return [float(value) for value in means[name] / means.distance_start]


def check(dataset: Dataset) -> Evidence:
    """Falls of the scale against the wanted ones, and distances to the target's minimiser."""
    total = int(np.isfinite(dataset.fallen).sum())
    near, wrong = (
        int((np.abs(dataset[name] / dataset.wanted - 1) <= NEAR).sum())
        for name in ("fallen", "fallen_wrong")
    )
    scale = share_at_least(near, total, SHARE)
    free = dataset.sel(way=[name for name, way in WAYS.items() if way.alpha is None])
    end = at_most(max(ratios(free, "distance")), CLOSER)
    worst = float(np.abs(dataset.fallen / dataset.wanted - 1).max())
    asked = int(dataset.wanted.size)
    return Evidence(
        ran=f"{total} recipes of {asked} asked for, trained on regressions with 10 samples of 25"
        " features and noise: " + ", ".join(WAYS),
        premises={"most targets can be reached": (total > 0.8 * asked, total)},
        checks={
            f"share of runs whose scale falls as wanted, up to {NEAR:.0%} (lower bound)": scale,
            "distance of the ends to the target's minimiser over that of the start's, mean of the"
            " worst way with a free start": end,
        },
        controls={
            "decay as if never switched off, noise as if the rate did not fall, steps on all"
            " samples": scale.control(share_at_least(wrong, total, SHARE).measured),
            "the ends of these recipes": end.control(max(ratios(free, "distance_wrong"))),
        },
        findings=[
            f"largest error of a fall {worst:.1%}; {float(dataset.inside.mean()):.0%} of the"
            " scales lie in their intervals",
            "mean distance of the ends to the target's minimiser: "
            + ", ".join(
                f"{name} {float(dataset.sel(way=name).distance.mean()):.2g}" for name in WAYS
            ),
        ],
    )


def draw(dataset: Dataset) -> Figure:
    """Wanted against trained falls, and distances of the ends from the target's minimiser."""
    picture, (a, b) = sheet_of(dataset, widths=(5.5, 5.5), height=4.6)
    for k, name in enumerate(WAYS):
        rows = dataset.sel(way=name)
        a.plot(np.ravel(rows.wanted), np.ravel(rows.fallen), "o^Ds"[k], color=CYCLE[k], label=name)
        a.plot(np.ravel(rows.wanted), np.ravel(rows.fallen_wrong), "x", color=CYCLE[k])
        for values, marker in ((rows.distance, "o^Ds"[k]), (rows.distance_wrong, "x")):
            b.plot(np.ravel(rows.distance_start), np.ravel(values), marker, color=CYCLE[k])
    ends = np.array([float(dataset.wanted.min()), float(dataset.wanted.max())])
    a.plot(ends, ends, "--", color=BLACK, linewidth=1.2, label="as wanted")
    a.set(xscale="log", yscale="log", xlabel="wanted fall of the log of the scale")
    a.set(ylabel="trained", title="crosses: the recipe of a wrong rule")
    a.legend()
    ends = np.array([float(dataset.distance_start.min()), float(dataset.distance_start.max())])
    b.plot(ends, ends, "--", color=BLACK, linewidth=1.2, label="no nearer than the start's")
    b.set(xscale="log", yscale="log", xlabel="start's minimiser: distance to the target's")
    b.set(ylabel="trained end: distance to the target's", title="over the size of the predictor")
    b.legend()
    return picture


experiment = Experiment(
    "beyond-design",
    statement="A weight decay that is switched off, a label noise or a learning rate that `design`"
    " computes before training bring the effective scale of $w_+^2 - w_-^2$ to a wanted value; if"
    " the start is free, training ends near the minimiser of $Q$ at this scale.",
    place="ours, the inverse of the sums of Even et al. 2023 (arXiv 2302.08982) and Jacobs et al."
    " 2025 (arXiv 2504.12883)",
    study=study,
    check=check,
    draw=draw,
    ours="the data, starts and targets",
    scope=OWN_RUNS,
    seconds=6,
)
