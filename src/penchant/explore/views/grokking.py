"""Grokking under weight decay: accuracies over time, with the predicted and measured transition."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.explore.controls import Choice, Number
from penchant.explore.picture import Curve, Panel, Picture, level, line
from penchant.explore.state import Values, View
from penchant.forecasts.transition import Forecast, forecast
from penchant.measures.transition import Grokking, grokking
from penchant.models.diagonal import DiagonalNet
from penchant.plotting.style import BLACK, BLUE, GREEN, ORANGE, PALE, PURPLE, RED
from penchant.problems.classification import Classification
from penchant.problems.population import MajorityCube, majority, wide_margin
from penchant.regularizers.norms import L1, L2
from penchant.solvers.max_margin import max_margin
from penchant.training.exact.dual.flow import DualFlow
from penchant.training.record import At
from penchant.training.train import train

SAMPLES, DIMENSION = 40, 100
TASKS = {"majority": "majority of three signs: grok", "margin": "dense wide margin: misgrok"}
CONTROLS = (
    Choice("task", "task", TASKS, "majority"),
    Number("log10_alpha", "initial scale α", 0, 3, 0.125, 1.5, power=True),
    Number("log10_decay", "weight decay", -4, -1, 0.25, -3, power=True),
)
BEGIN = 1e-2  # the first time shown
RTOL = 1e-2  # errs by 3e-4 in the accuracies and by 0.1 percent in the transition, below a pixel


@lru_cache(maxsize=4)
def problem_of(task: str) -> Classification:
    """The data; of the majority's signs 9 are enumerated, the others act as Gaussian."""
    if task == "margin":
        return wide_margin(SAMPLES, DIMENSION, gamma=2.5, seed=0)
    problem = majority(SAMPLES, DIMENSION, seed=3)
    return dataclasses.replace(problem, population=MajorityCube(DIMENSION, 3, exact=9))


@lru_cache(maxsize=4)
def limits(task: str) -> tuple[float, float]:
    """Test accuracies of the l1 and of the l2 max margin classifier."""
    problem = problem_of(task)
    assert problem.population is not None
    l1, l2 = (
        problem.population.accuracy(max_margin(problem.X, problem.y, norm).beta)
        for norm in (L1(), L2())
    )
    return l1, l2


@lru_cache(maxsize=256)
def predict_transition(task: str, log10_alpha: float, log10_decay: float) -> Forecast | str:
    """The transition predicted from the initialization alone, or the reason why there is none."""
    net = DiagonalNet(depth=2, alpha=10.0**log10_alpha)
    try:
        return forecast(net, problem_of(task), 10.0**log10_decay)
    except ValueError as reason:
        return str(reason)


def times(rate: float, predicted: Forecast | str) -> Array:
    """The recorded times: few before the earliest possible transition, more around it."""
    last = 14.0 if isinstance(predicted, str) else max(5.0, 1.8 * predicted.high * rate)
    early = np.geomspace(BEGIN, 0.3 / rate, 10)
    return np.concatenate([early[:-1], np.linspace(0.3, last, 32) / rate])


@lru_cache(maxsize=256)
def run(task: str, log10_alpha: float, log10_decay: float) -> dict[str, Array]:
    """Time, accuracies and parameter norm along the exact flow."""
    rate, net = 10.0**log10_decay, DiagonalNet(depth=2, alpha=10.0**log10_alpha)
    record = At(times=times(rate, predict_transition(task, log10_alpha, log10_decay)))
    flow = DualFlow(rtol=RTOL, weight_decay=rate)
    path = train(net, problem_of(task), flow, record=record).dataset.isel(time=slice(1, None))
    names = ("t", "train_accuracy", "test_accuracy", "parameter_norm")
    return {name: path[name].values for name in names}


def measured(curves: dict[str, Array]) -> Grokking:
    """The measured transition."""
    return grokking(curves["t"], curves["train_accuracy"], curves["test_accuracy"])


def picture(values: Values) -> Picture:
    """Accuracies with the predicted and measured transition, and the norm of the parameters."""
    key: Any = (str(values["task"]), float(values["log10_alpha"]), float(values["log10_decay"]))
    curves, predicted = run(*key), predict_transition(*key)
    verdict = measured(curves)
    shown = _accuracies(curves, predicted, verdict, limits(key[0]))
    panels = (shown, _closer(shown, predicted), _norm(curves, key))
    seen = (
        f"measured at t = {verdict.jump:.4g}" if np.isfinite(verdict.jump) else "none was measured"
    )
    if isinstance(predicted, str):
        return Picture(panels, f"{predicted.capitalize()}; {seen}: {verdict.kind}.")
    sentence = (
        f"Transition predicted at t = {predicted.transition:.4g} ({predicted.low:.4g} to "
        f"{predicted.high:.4g}), {seen}: {verdict.kind}."
    )
    return Picture(panels, sentence, {"predicted": predicted.transition, "measured": verdict.jump})


def _accuracies(
    curves: dict[str, Array],
    predicted: Forecast | str,
    verdict: Grokking,
    ends: tuple[float, float],
) -> Panel:
    t, span = curves["t"], (0.4, 1.03)
    reach = (BEGIN, float(t[-1]))
    when = (np.nan,) * 3
    if not isinstance(predicted, str):
        when = predicted.low, predicted.transition, predicted.high
    low, middle, high = np.maximum(when, BEGIN)
    shown = (
        Curve(
            "predicted interval",
            np.array([low, high, high, low]),
            np.repeat(span, 2).astype(float),
            "band",
            PALE,
        ),
        Curve("ℓ₁ max margin, new samples", *level(reach, ends[0]), "dotted", BLACK),
        Curve("ℓ₂ max margin, new samples", *level(reach, ends[1]), "dashed", BLACK, 1.5),
        Curve("predicted", *line(middle, span), "line", GREEN),
        Curve("measured", *line(verdict.jump, span), "dashed", ORANGE, 3),
        Curve("training samples", t, curves["train_accuracy"], "line", BLUE),
        Curve("new samples", t, curves["test_accuracy"], "line", RED, 3),
    )
    return Panel(
        "accuracy",
        "Accuracy",
        "training time",
        "accuracy",
        shown,
        "log",
        x_range=reach,
        y_range=span,
    )


def _closer(whole: Panel, predicted: Forecast | str) -> Panel:
    """The same curves around the transition, over linear time."""
    assert whole.x_range is not None
    last = whole.x_range[1]
    reach = (0.0, last) if isinstance(predicted, str) else (0.5 * predicted.low, last)
    curves = tuple(dataclasses.replace(curve, in_legend=False) for curve in whole.curves)
    return dataclasses.replace(
        whole,
        name="closer",
        title="The same around the transition, in linear time",
        curves=curves,
        x_scale="linear",
        x_range=reach,
    )


def _norm(curves: dict[str, Array], key: tuple[str, float, float]) -> Panel:
    t, norm = curves["t"], curves["parameter_norm"]
    decayed = 10.0 ** key[1] * np.sqrt(2 * DIMENSION) * np.exp(-(10.0 ** key[2]) * t)
    shown = (
        Curve("start, decayed", t, decayed, "dashed", PURPLE),
        Curve("parameters", t, norm, "line", BLUE),
    )
    span = (float(norm.min()) / 3, float(norm.max()) * 3)
    return Panel(
        "norm",
        "Norm of the parameters, and of the initial ones under decay alone",
        "training time",
        "Euclidean norm",
        shown,
        "log",
        "log",
        (BEGIN, float(t[-1])),
        span,
    )


def python(values: Values) -> str:
    """The forecast and the run of these values."""
    alpha, decay = (10.0 ** float(values[name]) for name in ("log10_alpha", "log10_decay"))
    made = f"penchant.problems.majority({SAMPLES}, {DIMENSION}, seed=3)"
    if values["task"] == "margin":
        made = f"penchant.problems.wide_margin({SAMPLES}, {DIMENSION}, gamma=2.5, seed=0)"
    return f"""\
import penchant

problem = {made}
net, decay = penchant.DiagonalNet(2, alpha={alpha:.6g}), {decay:.6g}
print(penchant.forecast(net, problem, decay))
flow = penchant.DualFlow(weight_decay=decay)
path = penchant.train(net, problem, flow, stop=penchant.Time(14 / decay))
seen = path.dataset
end = penchant.measures.grokking(seen.t, seen.train_accuracy, seen.test_accuracy)
print(end.kind, end.jump)
"""


VIEW = View(
    "grokking",
    "Grokking: the transition, predicted and measured",
    f"{SAMPLES} samples in dimension {DIMENSION}, a diagonal net under weight decay. From a large "
    "initialization the net first fits the samples as its kernel does, and much later becomes the "
    "sparse classifier.",
    CONTROLS,
    picture,
    python,
    sweep="log10_alpha",
)
