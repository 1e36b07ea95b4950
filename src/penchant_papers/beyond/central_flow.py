"""The end of descent beyond its largest stable rate, and the central flow's."""

from __future__ import annotations

import dataclasses

import numpy as np

from penchant import DiagonalNet, DualFlow, GradientDescent, Q, Steps, interpolate, train
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_most,
    sized,
)
from penchant.methods import CentralFlow
from penchant.plotting import BLACK, CYCLE, sheet_of
from penchant.problems import sparse_regression
from penchant.record import At
from penchant.stop import Interpolated
from penchant_papers.beyond import OWN_RUNS

FITTED, MOST, LONG = Interpolated(1e-10), 6_000, 300  # steps of descent, and of its average
ENDS = {
    "central": "the central flow",
    "still": "the same without the oscillation",
    "flow": "gradient flow",
    "start": r"$Q$ at the start's $\alpha$",
}
NEAR, CLOSER = 0.06, 0.5  # fixed on problems of seeds that no size of the study draws


def largest_stable(X: Array, predictor: Array, alpha: float) -> float:
    """2 over the largest eigenvalue of the Hessian where the flow of depth 2 fits the data.

    The Hessian of a fit is 2 J^T J, and w+ w- = alpha^2 along the flow.
    """
    squares = np.hypot(predictor, 2 * alpha**2)  # w+^2 + w-^2
    return 1.0 / float(np.linalg.norm(2 * X * np.sqrt(squares), 2)) ** 2


def starts_unstable(X: Array, y: Array, alpha: float, rate: float) -> bool:
    """True if the Hessian at the start has an eigenvalue at 2/rate; no average exists there."""
    J = 2 * alpha * np.hstack([X, -X])
    bend = -4 * np.concatenate([y @ X, -(y @ X)])
    return bool(np.linalg.eigvalsh(2 * J.T @ J + np.diag(bend))[-1] >= 2 / rate)


def cell(
    share: float, seed: int, *, alpha: float, samples: int, dimension: int
) -> dict[str, float]:
    """One problem, and one rate over the largest that is stable where the flow ends."""
    problem = sparse_regression(samples, dimension, sparsity=3, seed=seed)
    net, last = DiagonalNet(2, alpha=alpha), At(times=[])
    flow = train(net, problem, DualFlow(), record=last)
    rate = share * largest_stable(problem.X, flow.predictor, alpha)
    steps = GradientDescent(rate, check=False)
    stop = [Steps(MOST), FITTED]
    descent = train(net, problem, steps, stop=stop, record=At(steps=[]))
    if not descent.outcome.ok or starts_unstable(problem.X, problem.y, alpha, rate):
        return dict.fromkeys(("central", "published", "still", "flow", "start"), np.nan) | {
            "settles": 0.0
        }
    method = CentralFlow(rate, max_steps=LONG)
    central, published, still = (
        train(net, problem, dataclasses.replace(method, **change), stop=FITTED, record=last)
        for change in ({}, {"finite_steps": False}, {"oscillates": False})
    )
    end = descent.predictor

    def far(predictor: Array) -> float:
        return float(np.linalg.norm(predictor - end) / np.linalg.norm(end))

    return {
        "settles": float(central.outcome.ok),
        "central": far(central.predictor),
        "published": far(published.predictor),
        "still": far(still.predictor),
        "flow": far(flow.predictor),
        "start": far(interpolate(problem, Q(2, alpha=alpha)).beta),
    }


study = sized(
    "beyond-central-flow",
    title="Descent that fits beyond its largest stable rate ends near the central flow's end",
    function=cell,
    arguments={"alpha": 0.1, "samples": 15, "dimension": 40},
    grid={"share": [1.0, 1.2, 1.5, 1.9]},
    seeds=5,
    labels={
        "share": "learning rate over the largest one that is stable where the flow ends",
        "settles": "1 where descent and the central flow fit the data",
        "published": "distance of the end of descent to that without finite steps, over its size",
    }
    | {
        name: f"distance of the end of descent to {text}, over its size"
        for name, text in ENDS.items()
    },
    draw={"x": "share", "colour": "central"},
    tiny={"grid": {"share": [1.0, 1.2]}, "seeds": 3},
    printed={"grid": {"share": [1.0, 1.1, 1.2, 1.35, 1.5, 1.7, 1.9]}, "seeds": 40},
)


def check(dataset: Dataset) -> Evidence:
    """The ends at the stable rate and beyond it, of the runs that settle."""
    beyond = dataset.sel(share=dataset.share > 1)
    bound = dataset.sel(share=[1.0])
    settled = float(beyond.sel(share=beyond.share <= 1.5).settles.mean())
    near = at_most(beyond.central.mean(), NEAR)
    closer = at_most(float(bound.central.mean() / bound.flow.mean()), CLOSER)
    runs = f"{int(dataset.settles.sum())} of {dataset.settles.size} runs fit in {MOST} steps"
    by_share = []
    for row in (dataset.sel(share=share) for share in dataset.share):
        fits, mean = int(row.settles.sum()), float(row.central.mean())
        text = f"{mean:.2g}" if fits else "none fits"
        by_share.append(f"{text} at {float(row.share):g} ({fits} of {row.settles.size} runs)")
    return Evidence(
        ran="nets of depth 2 on sparse regressions with 15 samples of 40 features, at rates from "
        f"the largest stable one on; {runs}",
        premises={"most runs up to 1.5 times the stable rate settle": (settled >= 0.5, settled)},
        checks={
            "mean distance to the end of the central flow, beyond the stable rate": near,
            "at the stable rate, this distance over that to the flow": closer,
        },
        controls={
            "gradient flow": near.control(beyond.flow.mean()),
            "the central flow without the oscillation": near.control(beyond.still.mean()),
            r"$Q$ at the start's $\alpha$": near.control(beyond.start.mean()),
            "the central flow without finite steps, at the stable rate": closer.control(
                float(bound.published.mean() / bound.flow.mean())
            ),
        },
        findings=["mean distances by share of the stable rate: " + ", ".join(by_share)],
    )


def draw(dataset: Dataset) -> Figure:
    """Distances of the end of descent to each prediction, along the rate."""
    picture, (axes,) = sheet_of(dataset, widths=(7.0,), height=4.6)
    for k, (name, text) in enumerate(ENDS.items()):
        values = dataset[name]
        if name == "start":  # the flow ends there
            continue
        axes.plot(dataset.share, values.mean("seed"), "o^D"[k] + "-", color=CYCLE[k], label=text)
        axes.plot(dataset.share, values, "o^D"[k], color=CYCLE[k], alpha=0.3, markersize=4)
    axes.axvline(1, color=BLACK, linewidth=1.2)
    axes.set(yscale="log", xlabel="learning rate / largest stable rate where the flow ends")
    axes.set_ylabel("relative distance of the end of descent")
    axes.legend()
    return picture


experiment = Experiment(
    "beyond-central-flow",
    statement="Up to 1.5 times the largest stable rate, runs of gradient descent on "
    "$w_+^2 - w_-^2$ that fit the data end near the end of the central flow with the effect of "
    "finite steps, and far from the end of the flow.",
    place="the flow of Cohen, Damian et al. 2025 (arXiv 2410.24206); the finite steps: ours",
    study=study,
    check=check,
    draw=draw,
    ours="the data and the learning rates",
    scope=OWN_RUNS,
    seconds=5,
)
