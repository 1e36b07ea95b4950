"""When a net with weight decay groks that is trained on small batches with noisy labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.evidence.evidence import Evidence, within
from tacit.lazy import DataArray, Dataset, Figure
from tacit.measures.forecast import forecast
from tacit.papers.beyond.clock import net
from tacit.papers.experiment import Experiment
from tacit.plotting.style import BLACK, CYCLE, sheet_of
from tacit.problems.regression import sparse_regression
from tacit.studies.sizes import sized
from tacit.training.descent.methods import SGD
from tacit.training.descent.predict_run import predict_run
from tacit.training.record import At
from tacit.training.stop import Time
from tacit.training.train import train

MOMENTS = np.linspace(0.005, 1.3, 200)  # when training is recorded, in units of the flow's time
SHARE = 0.6  # of the learning rate at which the prediction fails for single samples
SHOWN = 0  # the seed whose curves are drawn


def cell(
    batch: int,
    seed: int,
    *,
    alpha: float,
    samples: int,
    dimension: int,
    decay: float,
    label_noise: float,
) -> dict[str, Any]:
    """Times at which the test error has halved: predicted with and without noise, and measured."""
    of = sparse_regression(samples, dimension, sparsity=1, noise=0.0, seed=seed)
    model, error = net(alpha), of.population_error
    flow = forecast(model, of, decay, measure=error).transition
    stop = Time(MOMENTS[-1] * flow)
    limit = predict_run(model, of, SGD(1e-6), batch=1, stop=stop).fails_from
    method = SGD(SHARE * limit, label_noise=label_noise, weight_decay=decay)
    predicted = forecast(model, of, method=method, batch=batch, measure=error).transition
    steps = np.round(MOMENTS * flow / method.learning_rate).astype(int)
    record = At(steps=[int(step) for step in steps])
    path = train(model, of, method, batch=batch, seed=seed, stop=stop, record=record).dataset
    curve = np.interp(MOMENTS, path.t.values / flow, path.test_error.values)
    half = error(np.linalg.lstsq(of.X, of.y)[0]) / 2  # of the error in the kernel regime
    above = np.diff(MOMENTS, prepend=0.0) * (curve > half)  # the curve is noisy
    measured = float(above.sum()) * flow
    return {"measured": measured, "predicted": predicted, "flow": flow, "error": curve}


study = sized(
    "beyond-sgd-grokking",
    title="Label noise shifts the time of grokking by as much as predicted",
    function=cell,
    arguments={"alpha": 1.0, "samples": 4, "dimension": 8, "decay": 0.03, "label_noise": 0.5},
    grid={"batch": [1, 2, 4]},
    seeds=3,
    dims={"error": ["moment"]},
    labels={
        "batch": "samples per step",
        "measured": "time at which the test error has halved",
        "predicted": "the same, predicted from the hyperparameters",
        "flow": "the same, predicted for a flow with this decay",
        "error": "test error",
    },
    draw={"x": "batch", "colour": "measured"},
    tiny={"grid": {"batch": [1, 4]}, "seeds": 1},
    printed={"seeds": 20},
)


def check(dataset: Dataset) -> Evidence:
    """The mean relative error of the predicted times, for each batch size."""
    found = within(errors(dataset, "predicted").max(), tolerance=0.08)
    single = dataset.sel(batch=1)
    later = int((single.measured > single.flow).sum())
    return Evidence(
        ran=f"{dataset.measured.size} runs of depth 2 from alpha = 1 on regressions with 4 samples"
        " of 8 features and a truth of one entry, by SGD with weight decay 0.03, label noise 0.5",
        checks={"largest mean relative error of the predicted time, over batch sizes": found},
        controls={"the prediction without noise": found.control(errors(dataset, "flow").min())},
        findings=[
            f"with single samples the error halves at {ratio(single, 'measured')} of the flow's"
            f" time; in {later} of {single.sizes['seed']} problems noise delays it: it shrinks"
            " every coordinate at its own rate, which can favour a wrong one"
        ],
    )


def ratio(dataset: Dataset, name: str) -> str:
    share = dataset[name] / dataset.flow
    return f"{float(share.min()):.2f} to {float(share.max()):.2f}"


def errors(dataset: Dataset, name: str) -> DataArray:
    """|predicted / measured - 1|, mean over seeds."""
    return np.abs(dataset[name] / dataset.measured - 1).mean("seed")


def draw(dataset: Dataset) -> Figure:
    """Test errors with the predicted times, and predicted against measured times."""
    picture, (a, b) = sheet_of(dataset, widths=(6.0, 6.0), height=4.8)
    for k, batch in enumerate(dataset.batch.values):
        one, all_of = dataset.sel(batch=batch, seed=SHOWN), dataset.sel(batch=batch)
        label = "1 sample per step" if batch == 1 else f"{batch} samples per step"
        times = MOMENTS * float(one.flow)
        a.plot(times, one.error, color=CYCLE[k], label=label)
        a.axvline(float(one.predicted), color=CYCLE[k], linestyle="--")
        b.plot(all_of.measured, all_of.predicted, "o^D"[k % 3], color=CYCLE[k], label=label)
        b.plot(all_of.measured, all_of.flow, "o^D"[k % 3], color=CYCLE[k], fillstyle="none")
    a.axvline(float(one.flow), color=BLACK, linestyle=":", label="predicted without noise")
    a.set(xlabel="training time", ylabel="test error", title="one problem; dashed: predicted")
    a.legend()
    ends = np.array([dataset.measured.min(), dataset.measured.max()])
    b.plot(ends, ends, "--", color=BLACK, linewidth=1.2, label="as predicted")
    b.set(xlabel="measured time at which the error has halved", ylabel="predicted time")
    b.set(title="all problems; hollow: predicted without noise")
    b.legend()
    return picture


experiment = Experiment(
    "beyond-sgd-grokking",
    statement="Under SGD with weight decay and label noise, one can predict before training when"
    " a diagonal net of depth 2 leaves the kernel regime for the sparse truth: noise"
    " shrinks the scale of the start in addition to the decay, and more so with smaller"
    " batches.",
    place="the (1/decay) log alpha of Lyu et al. 2023, with the noise of Pillaud-Vivien et al. 2022"
    " (arXiv 2206.09841): ours",
    study=study,
    check=check,
    draw=draw,
    ours="all parameters",
    seconds=4,
)
