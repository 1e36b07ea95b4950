"""Section 3: D layers that start equal stay equal, and train like one shared weight vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import Classification, DiagonalNet, GradientDescent, Steps, train
from penchant.lab import Array, Dataset, Evidence, Experiment, Plot, Series, sized, within
from penchant.models import DiagonalLayers, Separable
from penchant.problems import separable_points
from penchant.record import At

EVERY = 20  # steps between records


def descend(
    problem: Classification, model: Separable, rate: float, steps: int
) -> tuple[Array, Array]:
    """The parameters and the predictors in gradient descent, at every EVERY-th step."""
    record, stop = At(steps=range(EVERY, steps, EVERY)), Steps(steps)
    path = train(model, problem, GradientDescent(rate), stop=stop, record=record, throw=True)
    return path.dataset.parameters.values, path.dataset.predictor.values


def spread(records: Array, depth: int) -> Array:
    """How far the layers differ in every record, over the largest weight there."""
    layers = records.reshape(len(records), 2, depth, -1)
    return np.ptp(layers, axis=2).max(axis=(1, 2)) / np.abs(layers).max(axis=(1, 2, 3))


def cell(depth: int, seed: int, *, steps: int, unequal: float) -> dict[str, Any]:
    """D separate layers against one shared one; the first layer starts 1 + unequal times as large.

    A shared vector moves D times as fast, so its rate is that of the layers divided by D; the same
    rate gives a different run.
    """
    data = separable_points(5, 4, margin=0.3, seed=seed)
    rng = np.random.default_rng([seed, 1])  # not that of the data
    start = rng.uniform(0.5, 1.0, data.dimension)
    u = np.tile(start, (depth, 1))
    u[0] *= 1 + unequal
    rate = 0.02 / depth
    layers, w = descend(data, DiagonalLayers(u), rate, steps)
    net = DiagonalNet(depth, alpha=1.0, shape=start)
    shared, same_rate = (descend(data, net, rate / times, steps)[1] for times in (depth, 1))
    scale = np.abs(w).max()
    return {
        "apart": spread(layers, depth),
        "step": EVERY * np.arange(len(w)),
        "off_shared": float(np.abs(w - shared).max() / scale),
        "off_same_rate": float(np.abs(w - same_rate).max() / scale),
        "loss_left": float(np.exp(-data.signed_rows @ w[-1]).mean()),
    }


study = sized(
    "M-layers",
    function=cell,
    arguments={"steps": 1000, "unequal": 0.0},
    grid={"depth": [2, 3]},
    seeds=1,
    dims={"apart": ["record"], "step": ["record"]},
    printed={"arguments": {"steps": 20000}, "grid": {"depth": [2, 3, 4, 5, 8]}, "seeds": 6},
)
unequal = sized(
    "M-layers-unequal",
    function=cell,
    arguments={"steps": 1000, "unequal": 0.1},
    grid={"depth": [3]},
    seeds=1,
    dims={"apart": ["record"], "step": ["record"]},
    printed={"arguments": {"steps": 2000}},
)


def check(dataset: Dataset, unequal: Dataset) -> Evidence:
    """The layers stay equal to rounding, and the predictor is that of the shared model (5)."""
    equal = within(dataset.apart.values.max(), tolerance=1e-12)
    shared = within(dataset.off_shared.values.max(), tolerance=1e-10)
    loss = float(dataset.loss_left.max())
    shown = [
        (f"$D = {D}$, equal start", dataset.sel(depth=D).isel(seed=0)) for D in dataset.depth.values
    ]
    shown += [("$D = 3$, one layer 10 % larger", unequal.isel(depth=0, seed=0))]
    return Evidence(
        ran=f"gradient descent on 2dD separate weights at depths"
        f" {', '.join(map(str, dataset.depth.values))} from random starts that all layers share,"
        f" {dataset.sizes['seed']} data sets each, against descent on one shared vector",
        checks={
            "largest difference of two layers during training, relative": equal,
            "largest distance of the predictor to that of one shared vector, relative": shared,
        },
        premises={"training lowers the loss from 1 (largest final loss)": (loss < 0.5, loss)},
        controls={
            "one layer 10 % larger at the start": equal.control(unequal.apart.max()),
            "the shared vector trained at the same rate, not at rate / $D$ (least)": shared.control(
                dataset.off_same_rate.values.min()
            ),
        },
        findings=[
            "one vector that $D$ layers share moves $D$ times as fast as $D$ separate layers do"
        ],
        plots=[
            Plot(
                "layers that start equal stay equal",
                "step",
                "largest difference of two layers, relative",
                [
                    Series(name, row.step, np.maximum(row.apart.values, 1e-17))
                    for name, row in shown
                ],
                y_scale="log",
                caption="Equal layers are drawn at $10^{-17}$.",
            )
        ],
    )


experiment = Experiment(
    "M-layers",
    statement="If all $D$ layers start with the same weights, they stay equal throughout "
    "training, and the net trains like one with a single shared vector of weights.",
    place="section 3, the paragraph on Figure 2",
    study=(study, unequal),
    check=check,
    title="$D$ layers that start equal stay equal throughout training",
    ours="the data sets, the starts and the learning rate",
    seconds=2,
)
