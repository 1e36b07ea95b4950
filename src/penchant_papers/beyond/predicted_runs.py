"""Runs predicted before training at any depth, for other maps and losses, momentum, schedules."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from penchant import Classification, DiagonalNet, GradientDescent, Regression, Steps, train
from penchant.forecasts import PredictedRun, effective_regularizer, predict_run
from penchant.lab import Array, Dataset, Evidence, Experiment, Figure, at_least, at_most, sized
from penchant.methods import EffectiveScale, Scheduled
from penchant.models import Reparametrized
from penchant.plotting import BLACK, CYCLE, sheet_of
from penchant.problems import sparse_regression
from penchant.record import At
from penchant_papers.beyond import OWN_RUNS


def quartic(w: Any) -> Any:
    return w**2 + w**4


class WideRun(NamedTuple):
    """What is trained, and how."""

    model: DiagonalNet | Reparametrized
    batch: int
    loss: str = "squares"
    momentum: float = 0.0
    decay: float = 0.0  # switched off in the middle, when the rate begins to fall
    time: float = 15.0


CUBIC = DiagonalNet(3, alpha=0.3)
KINDS = {
    "depth 3": WideRun(CUBIC, 1),
    "w² + w⁴": WideRun(Reparametrized(quartic, start=0.3), 2),
    "momentum": WideRun(DiagonalNet(2, alpha=0.1), 1, momentum=0.9),
    "depth 3, momentum, exp": WideRun(CUBIC, 2, loss="exp", momentum=0.8),
    "logistic": WideRun(DiagonalNet(2, alpha=0.3), 1, loss="logistic", time=30.0),
    "depth 3, schedules": WideRun(CUBIC, 2, decay=0.03),
}
FAINT, ROUNDS = 1e-4, 3  # a learning rate far below the limit, and estimates of the limit from it
SHARE = 0.8  # of the learning rate from which on predictions fail
COVERED, NEAR = 0.75, 0.3  # of nine of ten scales; of the mean fall of a kind


def data_of(kind: WideRun, seed: int) -> Regression | Classification:
    problem = sparse_regression(8, 20, sparsity=2, noise=0.1, seed=seed)
    if kind.loss == "squares":
        return problem
    return Classification(problem.X, np.where(problem.y > 0, 1.0, -1.0), loss=kind.loss)


def run_of(kind: WideRun, rate: float, momentum: float) -> tuple[Any, int]:
    """The method at a learning rate of the flow, and its number of steps."""
    steps = round(kind.time / rate)
    plain = GradientDescent(
        rate * (1 - momentum), momentum=momentum, weight_decay=kind.decay, check=False
    )
    if not kind.decay:
        return plain, steps
    half = steps // 2
    factors, decays = [1.0, 1.0, 1.0, 0.3], [1.0, 1.0, 0.0, 0.0]
    return Scheduled(plain, [0, half, half, steps], factors, decays=decays), steps


@functools.lru_cache(maxsize=64)
def limit(name: str, seed: int) -> float:
    """The learning rate of the flow from which on the prediction is marked as failing."""
    kind, rate = KINDS[name], FAINT
    for _ in range(ROUNDS):
        method, steps = run_of(kind, rate, kind.momentum)
        run = predict_run(
            kind.model, data_of(kind, seed), method, batch=kind.batch, stop=Steps(steps)
        )
        rate = min(run.fails_from / (1 - kind.momentum), 30 * rate)
    return rate


def cell(kind: str, seed: int) -> dict[str, Any]:
    """One run, its prediction, and that of the same run on all samples and without momentum."""
    name, kind_ = kind, KINDS[kind]
    problem, rate = data_of(kind_, seed), SHARE * limit(name, seed)
    method, steps = run_of(kind_, rate, kind_.momentum)

    def predicted(rate: float, momentum: float, batch: int | None) -> PredictedRun:
        method, steps = run_of(kind_, rate, momentum)
        return predict_run(kind_.model, problem, method, batch=batch, stop=Steps(steps))

    run = predicted(rate, kind_.momentum, kind_.batch)
    calm, flow = predicted(rate, 0.0, None), predicted(1e-3 * rate, 0.0, None)
    own, last = EffectiveScale(method), At(steps=[steps])
    path = train(
        kind_.model, problem, own, batch=kind_.batch, seed=seed, stop=Steps(steps), record=last
    )
    scale, end = scale_of(path, kind_.model), path.predictor
    low, high = np.log(run.low), np.log(run.high)

    def far(beta: Array) -> float:
        return float(np.linalg.norm(beta - end) / np.linalg.norm(end))

    return {
        "fallen": float(np.log(flow.scale / scale).mean()),
        "predicted": float(np.log(flow.scale / run.scale).mean()),
        "calm": float(np.log(flow.scale / calm.scale).mean()),
        "inside": float(((low <= np.log(scale)) & (np.log(scale) <= high)).mean()),
        "inside_calm": float((np.abs(np.log(scale / calm.scale)) <= (high - low) / 2).mean()),
        "to_predicted": far(run.predictor),
        "to_flow": far(flow.predictor),
        "trusted": float(run.fails_at is None),
    }


def scale_of(path: Any, model: DiagonalNet | Reparametrized) -> Array:
    """The shape of Q, or the geometric mean of the effective starts of w+ and w-."""
    if isinstance(model, DiagonalNet):
        q: Any = effective_regularizer(path)
        return np.asarray(q.shape)
    derived: Any = effective_regularizer(path, model)
    starts = derived.starts
    return np.sqrt(np.abs(starts.plus * starts.minus)).ravel()


study = sized(
    "beyond-predict-run",
    title="Runs at any depth, with other maps, losses, momentum and schedules are predicted",
    function=cell,
    arguments={},
    grid={"kind": list(KINDS)},
    seeds=4,
    labels={
        "fallen": "fall of the log of the scale below that of the flow",
        "predicted": "the same, predicted",
        "calm": "the same, predicted as if on all samples and without momentum",
        "inside": "share of coordinates whose scale is in its interval",
        "inside_calm": "the same, around the prediction on all samples without momentum",
        "to_predicted": "distance of the end to the predicted one, over its size",
        "to_flow": "distance of the end to that of the flow, over its size",
    },
    draw={"x": "kind", "colour": "inside"},
    tiny={"seeds": 3, "grid": {"kind": ["depth 3", "momentum", "logistic"]}},
    printed={"seeds": 20},
)


def check(dataset: Dataset) -> Evidence:
    """Coverage of the intervals and the mean falls, kind by kind."""
    means = dataset.mean("seed")
    covered = at_least(float(means.inside.min()), COVERED)
    wrong = np.abs(means.predicted / means.fallen - 1)
    calm = np.abs(means.calm / means.fallen - 1)
    near = at_most(float(wrong.max()), NEAR)
    by_kind = [
        f"{name} {float(means.to_predicted.sel(kind=name)):.2g} against"
        f" {float(means.to_flow.sel(kind=name)):.2g}"
        for name in dataset.kind.values
    ]
    return Evidence(
        ran=f"{dataset.fallen.size} runs at {SHARE:g} of the learning rate from which on"
        " predictions fail, on sparse regressions with 8 samples of 20 features and noise, or the"
        " signs of their labels: " + ", ".join(dataset.kind.values),
        premises={"all predictions are marked as valid": (bool(dataset.trusted.all()), "")},
        checks={
            "share of scales in their intervals, kind by kind": covered,
            "largest error of the mean fall of a kind": near,
        },
        controls={
            "intervals of the same width around the prediction on all samples without momentum":
                covered.control(float(means.inside_calm.min())),
            "the fall on all samples without momentum": near.control(float(calm.max())),
        },
        findings=[
            "mean distance of the ends to the predicted ones, and to those of the flow: "
            + "; ".join(by_kind)
        ],
    )  # fmt: skip


def draw(dataset: Dataset) -> Figure:
    """Predicted against trained falls, and shares of scales in their intervals."""
    picture, (a, b) = sheet_of(dataset, widths=(5.5, 5.5), height=4.8)
    names = list(dataset.kind.values)
    for k, name in enumerate(names):
        rows = dataset.sel(kind=name)
        marker = "o^DsvP"[k % 6]
        a.plot(np.ravel(rows.fallen), np.ravel(rows.predicted), marker, color=CYCLE[k], label=name)
        a.plot(np.ravel(rows.fallen), np.ravel(rows.calm), "x", color=CYCLE[k], markersize=5)
        b.plot(float(rows.inside.mean()), k, marker, color=CYCLE[k])
        b.plot(float(rows.inside_calm.mean()), k, "x", color=CYCLE[k])
    ends = np.array([float(dataset.fallen.min()), float(dataset.fallen.max())])
    a.plot(ends, ends, "--", color=BLACK, linewidth=1.2)
    a.set(xscale="log", yscale="log", xlabel="fall of the log of the scale, trained")
    a.set(ylabel="predicted", title="crosses: as if all samples, no momentum")
    a.legend(fontsize="small")
    b.axvline(0.9, color=BLACK, linewidth=1.2)
    b.set_yticks(range(len(names)), names)
    b.set(xlabel="share of scales in their interval", xlim=(-0.03, 1.03))
    b.set(ylabel="kind of run", title="intervals of nine of ten")
    return picture


experiment = Experiment(
    "beyond-predict-run",
    statement="Before training, the effective scale of each coordinate is predicted, with an"
    " interval, also for nets of depth 3, for $w^2 + w^4$, for logistic and exponential loss, with"
    " heavy-ball momentum, and with schedules of learning rate and decay.",
    place="ours; the lag of momentum after Papazov et al. 2024 (arXiv 2403.05293)",
    study=study,
    check=check,
    draw=draw,
    ours="the whole statement, the data, models and learning rates",
    scope=OWN_RUNS,
    seconds=8,
)
