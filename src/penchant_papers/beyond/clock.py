"""Gradient steps with batches and decay: sums over their gradients give the scale and tilt."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from penchant import (
    DiagonalNet,
    GradientDescent,
    Path,
    Q,
    Regression,
    Steps,
    Time,
    interpolate,
    train,
)
from penchant.forecasts import predict_run
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    exponents,
    mean_within,
    sized,
    within,
)
from penchant.methods import Descent, SignDescent
from penchant.plotting import CYCLE, sheet_of
from penchant.problems import sparse_regression
from penchant.record import At
from penchant_papers.beyond import OWN_RUNS
from penchant_papers.beyond.step_sums import GradientSums, summed_regularizer

KINDS = ("all samples", "one sample", "decay")
TARGETS = {
    "to_formula": "scale and tilt by the sums",
    "to_scale": "scale by the sums, no tilt",
    "to_start": "scale of the start",
}
PLAIN = list(KINDS[:2])


@functools.lru_cache(maxsize=1)
def net(alpha: float) -> DiagonalNet:
    """One object for all runs, so that their steps are compiled once."""
    return DiagonalNet(2, alpha=alpha)


def cell(
    kind: str,
    share: float,
    seed: int,
    *,
    alpha: float,
    samples: int,
    dimension: int,
    time: float,
    decay: float,
) -> dict[str, Any]:
    """Distances of one end to the least Q of three kinds, and of one by steps along signs."""
    problem = sparse_regression(samples, dimension, sparsity=2, noise=0.1, seed=seed)
    batch, stop = 1 if kind == "one sample" else None, Time(time)
    lost = decay if kind == "decay" else 0.0
    rate = (
        share
        * predict_run(net(alpha), problem, GradientDescent(1e-4), batch=batch, stop=stop).fails_from
    )
    steps = round(time / rate)
    how: Any = {"batch": batch, "seed": seed, "stop": Steps(steps), "record": At(steps=[steps])}

    def run(method: Descent) -> Path:
        return train(net(alpha), problem, GradientSums(method), **how)

    path, signs = run(GradientDescent(rate, weight_decay=lost)), run(SignDescent(alpha * rate))
    q: Any = summed_regularizer(path, alpha)
    plain, upright = Q(2, alpha=alpha), Q(2, alpha=1.0, shape=q.shape)
    return {
        "to_formula": far(problem, path.predictor, q),
        "to_scale": far(problem, path.predictor, upright),
        "to_start": far(problem, path.predictor, plain),
        "to_signs": far(problem, signs.predictor, summed_regularizer(signs, alpha)),
        "fallen": float(-np.log(q.shape / alpha).mean()),
        "rate": rate,
    }


def far(problem: Regression, end: Array, regularizer: Any) -> float:
    """The distance of an end to the least regularizer among all with its outputs, over its size."""
    own = Regression(problem.X, problem.X @ end)  # with decay the labels are not fitted
    return float(np.linalg.norm(interpolate(own, regularizer).beta - end) / np.linalg.norm(end))


study = sized(
    "beyond-clock",
    title="Gradient steps shrink the scale of the start; this scale and a tilt determine the end",
    function=cell,
    arguments={"alpha": 0.1, "samples": 8, "dimension": 20, "time": 15.0, "decay": 0.05},
    grid={"kind": list(KINDS), "share": [0.25, 0.5, 1.0]},
    seeds=6,
    labels={
        "share": "learning rate over the rate from which on the prediction of a run fails",
        "to_formula": "distance of the endpoint to the minimiser of $Q$ with scale and tilt by "
        "sums over its gradients",
        "to_scale": "the same without the tilt",
        "to_start": "the same with the scale of the start",
        "to_signs": "the same sums for the endpoint of sign descent",
        "fallen": "fall of the log of the scale, mean over coordinates",
        "rate": "learning rate",
    },
    draw={"x": "share", "colour": "to_start", "log": True},
    tiny={"seeds": 4, "arguments": {"time": 8.0}},
    printed={"seeds": 100, "arguments": {"time": 100.0}},
)


def powers(dataset: Dataset, kind: str) -> Array:
    """The power of the learning rate that the fall of the scale follows, problem by problem."""
    falls = dataset.fallen.sel(kind=kind).transpose("seed", "share").values
    return exponents(dataset.share.values, falls)


def next_order(dataset: Dataset) -> float:
    """What the next order adds to the power, at most.

    The residual of a step is larger than the flow's by half the strain, which is at most the share
    of the rate, and falls faster by the same factor: a sum of its squares gains 1 + share/2.
    """
    low, high = dataset.share.values[[0, -1]]
    return float(np.log((1 + high / 2) / (1 + low / 2)) / np.log(high / low))


def check(dataset: Dataset) -> Evidence:
    """The two sums to rounding; the order of the fall of the scale in the learning rate."""
    exact = within(dataset.to_formula.max(), tolerance=1e-9)
    orders = {kind: mean_within(powers(dataset, kind), 1.0, next_order(dataset)) for kind in PLAIN}
    rates = dataset.rate
    return Evidence(
        ran=rf"{dataset.to_start.size} runs of depth 2 from $\alpha = 0.1$ on sparse regressions "
        "with 8 samples of 20 features and noise, by gradient steps on all samples, on one "
        "sample, and with decoupled weight decay; learning rates from "
        f"{float(rates.min()):.2g} to {float(rates.max()):.2g}, up to the one from which on "
        "predict_run says that it fails",
        checks={
            "largest relative distance of an endpoint to the minimiser of $Q$ with the scale and "
            "the tilt that the sums give": exact,
            **{f"{kind}: power of the learning rate in the fall": orders[kind] for kind in PLAIN},
        },
        controls={
            "the same sums for steps along signs": exact.control(dataset.to_signs.min()),
            TARGETS["to_scale"]: exact.control(dataset.to_scale.min()),
            TARGETS["to_start"]: exact.control(dataset.to_start.min()),
            "the fall with decay, most of which no step size changes": orders[PLAIN[0]].control(
                powers(dataset, "decay").mean()
            ),
        },
        findings=[
            f"{name}: at the largest steps the log of the scale falls by"
            f" {float(last.fallen.mean()):.2g} in the mean; without the tilt the prediction misses"
            f" the endpoint by {float(last.to_scale.median()):.2g}, with the scale of the start by"
            f" {float(last.to_start.median()):.2g} in the median"
            for name in KINDS
            for last in [dataset.sel(kind=name).isel(share=-1)]
        ],
    )


def draw(dataset: Dataset) -> Figure:
    """The three distances over the learning rate, a panel for each kind of run."""
    picture, axes = sheet_of(dataset, widths=(4.2,) * 3, height=4.4)
    for panel, kind in zip(axes, KINDS, strict=True):
        for colour, (name, label) in zip(CYCLE, TARGETS.items(), strict=False):
            rows: Array = dataset[name].sel(kind=kind).transpose("share", "seed").values
            places = np.repeat(dataset.share.values, rows.shape[1])
            panel.plot(places, np.maximum(rows.ravel(), 1e-17), "o", color=colour, label=label)
        panel.set(xscale="log", yscale="log", ylim=(1e-17, 3), title=kind)
        panel.set_xlabel("learning rate / rate from which on a prediction fails")
        panel.set_xticks(dataset.share.values, [f"{share:g}" for share in dataset.share.values])
        panel.minorticks_off()
        panel.set_ylabel("relative distance of the endpoint to the least $Q$")
    axes[0].legend(loc="center left")
    return picture


experiment = Experiment(
    "beyond-clock",
    statement=r"Gradient steps on $w_+^2 - w_-^2$ with learning rate $\gamma$, on any batches and "
    r"with decoupled weight decay $\lambda$, end where $Q$ of an effective scale minus a tilt "
    r"is least among all predictors with the same outputs. With $q = 2 \gamma g/(1 - \gamma "
    r"\lambda)$ for the gradient $g$ of a step in the predictor, the log of the scale gains "
    r"$\log((1 - \gamma \lambda)^2 (1 - q^2))/2$ at every step and the tilt gains $-2 "
    r"(\operatorname{artanh} q - q)$. Without decay the fall of the scale is of first order "
    r"in $\gamma$.",
    place="Even et al. 2023 (arXiv 2302.08982) for SGD, Jacobs et al. 2025 (arXiv 2504.12883) for"
    " decay; the form for any sequence of steps: ours",
    study=study,
    check=check,
    draw=draw,
    ours="the data, learning rates and training times",
    scope=OWN_RUNS,
    seconds=4,
)
