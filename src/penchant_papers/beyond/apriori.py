"""Scale and end of gradient steps, predicted from their hyperparameters alone."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from penchant import GradientDescent, Time, train
from penchant.forecasts import effective_regularizer, predict_run
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    at_most,
    sized,
    within,
)
from penchant.methods import EffectiveScale
from penchant.plotting import BLACK, CYCLE, sheet_of
from penchant.problems import sparse_regression
from penchant.record import At
from penchant_papers.beyond import OWN_RUNS
from penchant_papers.beyond.clock import net


class RunKind(NamedTuple):
    """The batch, label noise and weight decay of a run."""

    batch: int | None
    label_noise: float = 0.0
    decay: float = 0.0


KINDS = {
    "all samples": RunKind(None),
    "one sample": RunKind(1),
    "two samples and decay": RunKind(2, decay=0.01),
    "one sample, noisy labels": RunKind(1, label_noise=0.2),
}
FAINT, ROUNDS = 1e-4, 3  # a learning rate far below the limit, and estimates of the limit from it
DRAWN = [name for name, kind in KINDS.items() if kind.batch is not None]


@functools.lru_cache(maxsize=64)  # the shares of a run have the same limit
def limit(
    kind: str, seed: int, *, alpha: float, samples: int, dimension: int, time: float
) -> float:
    """The learning rate from which on the prediction is marked as failing.

    A prediction estimates it from its own rate, so that it is asked again at that estimate.
    """
    batch, noise, decay = KINDS[kind]
    problem = sparse_regression(samples, dimension, sparsity=2, noise=0.1, seed=seed)
    rate = FAINT
    for _ in range(ROUNDS):
        method = GradientDescent(rate, label_noise=noise, weight_decay=decay)
        rate = predict_run(net(alpha), problem, method, batch=batch, stop=Time(time)).fails_from
    return rate


def cell(
    kind: str, share: float, seed: int, *, alpha: float, samples: int, dimension: int, time: float
) -> dict[str, Any]:
    """One run at a share of the learning rate from which on its prediction is said to fail."""
    batch, noise, decay = KINDS[kind]
    problem = sparse_regression(samples, dimension, sparsity=2, noise=0.1, seed=seed)
    model, stop = net(alpha), Time(time)

    def method(rate: float) -> GradientDescent:
        return GradientDescent(rate, label_noise=noise, weight_decay=decay)

    rate = share * limit(kind, seed, alpha=alpha, samples=samples, dimension=dimension, time=time)
    predicted = predict_run(model, problem, method(rate), batch=batch, stop=stop)
    flow = predict_run(model, problem, GradientDescent(1e-3 * rate, weight_decay=decay), stop=stop)
    calm = predict_run(model, problem, GradientDescent(rate, weight_decay=decay), stop=stop)
    own, last = EffectiveScale(method(rate)), At(steps=[round(time / rate)])
    path = train(model, problem, own, batch=batch, seed=seed, stop=stop, record=last)
    q, end = effective_regularizer(path), path.predictor

    def log_scale(regularizer: Any) -> Array:
        return np.asarray(np.log(regularizer.shape))

    def far(predictor: Array) -> float:
        return float(np.linalg.norm(predictor - end) / np.linalg.norm(end))

    still, scale = log_scale(flow.regularizer), log_scale(q)
    low, high = np.log(predicted.low), np.log(predicted.high)
    middle = log_scale(calm.regularizer)
    return {
        "fallen": float((still - scale).mean()),
        "predicted": float((still - log_scale(predicted.regularizer)).mean()),
        "inside": float(((low <= scale) & (scale <= high)).mean()),
        "calm": float((still - middle).mean()),
        "inside_calm": float((np.abs(scale - middle) <= (high - low) / 2).mean()),
        "to_predicted": far(predicted.predictor),
        "to_calm": far(calm.predictor),
        "to_flow": far(flow.predictor),
        "trusted": float(predicted.fails_at is None),
    }


study = sized(
    "beyond-apriori",
    title="The scale and the endpoint of a run can be predicted from its hyperparameters",
    function=cell,
    arguments={"alpha": 0.1, "samples": 8, "dimension": 20, "time": 25.0},
    grid={"kind": list(KINDS), "share": [0.3, 0.9, 2.0]},
    seeds=4,
    labels={
        "share": "learning rate over the rate beyond which the prediction is expected to fail",
        "fallen": "fall of the log of the scale below that of the flow",
        "predicted": "the same, predicted",
        "calm": "the same, predicted as if every step used all samples and there were no label"
        " noise",
        "inside": "share of coordinates whose scale is in its interval",
        "to_predicted": "distance of the end to the predicted one, over its size",
        "to_flow": "distance of the end to that of the flow, over its size",
    },
    draw={"x": "share", "colour": "inside", "log": True},
    tiny={"grid": {"share": [0.9, 2.0]}, "seeds": 5, "arguments": {"time": 10.0}},
    printed={"grid": {"share": [0.1, 0.3, 0.9, 2.0]}, "seeds": 100, "arguments": {"time": 40.0}},
)


def check(dataset: Dataset) -> Evidence:
    """Scale, interval and end below the limit that the prediction states."""
    below = dataset.sel(share=dataset.share < 1)
    beyond = dataset.sel(share=dataset.share > 1)
    drawn = below.sel(kind=DRAWN)
    scale = within(worst(below), tolerance=0.1)
    inside = at_least(drawn.inside.mean(), 0.8)
    end = at_most(float(below.to_predicted.mean() / below.to_flow.mean()), 0.6)
    fallen, calm = (drawn[name].mean(["seed", "share"]) for name in ("fallen", "calm"))
    said = bool((below.trusted == 1).all() and (beyond.trusted == 0).all())
    return Evidence(
        ran=rf"{dataset.fallen.size} runs of depth 2 from $\alpha = 0.1$ on sparse regressions "
        "with 8 samples of 20 features and noise: " + ", ".join(KINDS),
        premises={"the prediction is marked valid up to its limit and not beyond": (said, "")},
        checks={
            "largest relative error of the predicted fall of the scale, mean over runs": scale,
            "share of scales in their intervals": inside,
            "mean distance of the ends to the predicted ones, over that to the ends of the"
            " flow": end,
        },
        controls={
            "the fall as if on all samples, without label noise": scale.control(
                np.abs(calm / fallen - 1).min()
            ),
            "intervals of the same width around that fall": inside.control(
                drawn.inside_calm.mean()
            ),
            "the endpoint predicted from that fall": end.control(
                float(drawn.to_calm.mean() / drawn.to_flow.mean())
            ),
        },
        findings=[
            "at twice the limit the error of the predicted fall of the scale is up to"
            f" {worst(beyond):.0%}"
        ],
    )


def worst(dataset: Dataset) -> float:
    """The largest relative error of the predicted fall over kinds, of means over their runs."""
    fallen, predicted = (dataset[n].mean(["seed", "share"]) for n in ("fallen", "predicted"))
    return float(np.abs(predicted / fallen - 1).max())


def draw(dataset: Dataset) -> Figure:
    """Predicted against measured falls of the scale, and the distances of the ends."""
    picture, (a, b) = sheet_of(dataset, widths=(6.0, 6.0), height=4.8)
    for k, name in enumerate(KINDS):
        runs = dataset.sel(kind=name)
        falls = runs.fallen.values.ravel(), runs.predicted.values.ravel()
        a.plot(*falls, "o^Ds"[k], color=CYCLE[k], label=name)
        mean = runs.mean("seed")
        b.plot(runs.share, mean.to_predicted, "o^Ds"[k] + "-", color=CYCLE[k], label=name)
        b.plot(runs.share, mean.to_flow, "o^Ds"[k] + ":", color=CYCLE[k], fillstyle="none")
    ends = np.array([dataset.fallen.min(), dataset.fallen.max()])
    a.plot(ends, ends, "--", color=BLACK, linewidth=1.2, label="as predicted")
    a.set(xscale="log", yscale="log", title="fall of the log of the scale")
    a.set(xlabel="trained", ylabel="predicted")
    a.legend()
    b.axvline(1, color=BLACK, linewidth=1.2)
    b.set(
        xscale="log", yscale="log", title="filled: predicted endpoint, hollow: endpoint of the flow"
    )
    b.set(xlabel="learning rate / rate beyond which the prediction is expected to fail")
    b.set_ylabel("relative distance of the trained endpoint")
    b.set_xticks(dataset.share.values, [f"{share:g}" for share in dataset.share.values])
    b.minorticks_off()
    return picture


experiment = Experiment(
    "beyond-apriori",
    statement="From the learning rate, batch size, label noise, weight decay, number of steps and "
    "data alone, one can predict before training the effective scale and the endpoint of "
    "gradient steps on $w_+^2 - w_-^2$, with an interval over seeds, and the learning rate "
    "beyond which this prediction fails.",
    place="the sums of Even et al. 2023 (arXiv 2302.08982), Pesme et al. 2021 (arXiv 2106.09524)"
    " and, for label noise, Pillaud-Vivien et al. 2022 (arXiv 2206.09841), in expectation: ours",
    study=study,
    check=check,
    draw=draw,
    ours="the data, learning rates and training times",
    scope=OWN_RUNS,
    seconds=4,
)
