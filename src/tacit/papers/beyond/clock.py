"""Gradient steps of any size, batch and decay: their effective scale and tilt select the end."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Evidence, at_most, below, within
from tacit.lazy import Dataset, Figure
from tacit.models.diagonal import DiagonalNet
from tacit.papers.experiment import Experiment
from tacit.plotting.style import CYCLE, sheet_of
from tacit.problems.regression import Regression, sparse_regression
from tacit.regularizers.q import Q
from tacit.solvers.interpolate import interpolate
from tacit.studies.sizes import sized
from tacit.training.descent.effective_scale import EffectiveScale, effective_regularizer
from tacit.training.descent.methods import GradientDescent
from tacit.training.stop import Steps
from tacit.training.train import train

KINDS = ("all samples", "one sample", "decay")
TARGETS = {
    "to_effective": "effective scale and tilt",
    "to_scale": "effective scale alone",
    "to_start": "scale of the start",
}


@functools.lru_cache(maxsize=1)
def net(alpha: float) -> DiagonalNet:
    """One object for all runs, so that their steps are compiled once."""
    return DiagonalNet(2, alpha=alpha)


def cell(
    kind: str,
    learning_rate: float,
    seed: int,
    *,
    alpha: float,
    samples: int,
    dimension: int,
    time: float,
    decay: float,
) -> dict[str, Any]:
    """Distances of one end to the least Q of three kinds, over its own size."""
    of = sparse_regression(samples, dimension, sparsity=2, noise=0.1, seed=seed)
    method = GradientDescent(learning_rate, weight_decay=decay if kind == "decay" else 0.0)
    steps, batch = round(time / learning_rate), 1 if kind == "one sample" else None
    clocked = EffectiveScale(method)
    path = train(net(alpha), of, clocked, batch=batch, seed=seed, stop=Steps(steps))
    q: Any = effective_regularizer(path)
    scale = float(np.exp(np.log(q.shape).mean()))
    return {**distances(of, path.predictor, q, alpha), "scale": scale}


def distances(of: Regression, end: Array, q: Any, alpha: float) -> dict[str, float]:
    """Relative distances of an end to the least Q of every TARGET, and of its outputs to y."""
    own = Regression(of.X, of.X @ end)  # with decay the labels are not fitted

    def far(regularizer: Q) -> float:
        apart = interpolate(own, regularizer).beta - end
        return float(np.linalg.norm(apart) / np.linalg.norm(end))

    return {
        "to_effective": far(q),
        "to_scale": far(Q(2, alpha=1.0, shape=q.shape)),
        "to_start": far(Q(2, alpha=alpha)),
        "misfit": float(np.linalg.norm(of.X @ end - of.y) / np.linalg.norm(of.y)),
    }


study = sized(
    "beyond-clock",
    title="Gradient steps shrink the scale of the start; this scale and a tilt determine the end",
    function=cell,
    arguments={"alpha": 0.1, "samples": 8, "dimension": 20, "time": 200.0, "decay": 0.01},
    grid={"kind": list(KINDS), "learning_rate": [0.005, 0.01, 0.02]},
    seeds=3,
    labels={
        "learning_rate": "learning rate",
        "to_effective": "distance of the endpoint to the minimiser of Q with effective scale and"
        " tilt",
        "to_scale": "the same without the tilt",
        "to_start": "the same with the scale of the start",
        "scale": "effective scale, geometric mean over coordinates",
    },
    draw={"x": "learning_rate", "colour": "to_start", "log": True},
    tiny={"grid": {"learning_rate": [0.01, 0.02]}, "seeds": 1},
    printed={"seeds": 20},
)


def check(dataset: Dataset) -> Evidence:
    """The law to rounding; what is left without the tilt, and without the scale."""
    exact = within(dataset.to_effective.max(), tolerance=1e-9)
    scale = dataset["scale"].mean("seed")
    fitted = dataset.misfit.sel(kind=list(KINDS[:2]))
    shrinks = at_most((scale.values[:2, 1:] / scale.values[:2, :-1]).max(), 0.99)
    return Evidence(
        ran=f"{dataset.to_start.size} runs of depth 2 from alpha = 0.1 on sparse regressions with 8"
        " samples of 20 features and noise, by gradient steps on all samples, on one sample, and"
        " with decoupled weight decay",
        premises={"runs without decay fit the data": below(fitted.max(), 1e-6)},
        checks={
            "largest relative distance of an endpoint to the minimiser of Q with its effective"
            " scale and tilt": exact,
            "largest ratio of the mean effective scale at one learning rate"
            " to that at half of it": shrinks,
        },
        controls={
            TARGETS["to_scale"]: exact.control(dataset.to_scale.min()),
            TARGETS["to_start"]: exact.control(dataset.to_start.min()),
            "the scale of a flow, which does not change": shrinks.control(1.0),
        },
        findings=[
            f"{name}: the mean effective scale falls from {row[0]:.3g} to {row[-1]:.3g} as the"
            f" learning rate grows from {dataset.learning_rate.values[0]:g} to"
            f" {dataset.learning_rate.values[-1]:g}; without the tilt the prediction misses the"
            f" endpoint by up to {float(dataset.to_scale.sel(kind=name).max()):.1%}, with the"
            f" scale of the start by up to {float(dataset.to_start.sel(kind=name).max()):.1%}"
            for name, row in zip(KINDS, scale.values, strict=True)
        ],
    )


def draw(dataset: Dataset) -> Figure:
    """The three distances over the learning rate, a panel for each kind of run."""
    picture, axes = sheet_of(dataset, widths=(4.2,) * 3, height=4.4)
    for panel, kind in zip(axes, KINDS, strict=True):
        for colour, (name, label) in zip(CYCLE, TARGETS.items(), strict=False):
            rows: Array = dataset[name].sel(kind=kind).transpose("learning_rate", "seed").values
            rates = np.repeat(dataset.learning_rate.values, rows.shape[1])
            panel.plot(rates, np.maximum(rows.ravel(), 1e-17), "o", color=colour, label=label)
        panel.set(xscale="log", yscale="log", ylim=(1e-17, 3), xlabel="learning rate", title=kind)
        rates = dataset.learning_rate.values
        panel.set_xticks(rates, [f"{rate:g}" for rate in rates])
        panel.minorticks_off()
        panel.set_ylabel("relative distance of the endpoint to the least $Q$")
    axes[0].legend(loc="center left")
    return picture


experiment = Experiment(
    "beyond-clock",
    statement="Under gradient steps on w+^2 - w-^2, with any learning rate, any batches and"
    " decoupled weight decay, the predictor at every step minimises Q with an effective"
    " scale and a tilt among all predictors with the same outputs; larger steps make"
    " the scale smaller.",
    place="Even et al. 2023 (arXiv 2302.08982) for SGD, Jacobs et al. 2025 (arXiv 2504.12883) for"
    " decay; the form for any sequence of steps: ours",
    study=study,
    check=check,
    draw=draw,
    ours="the data, learning rates and training times",
    seconds=4,
)
