"""When a net with weight decay groks that is trained on small batches with noisy labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import L1, GradientDescent, Regression, Time, forecast, interpolate, train
from penchant.forecasts import predict_run
from penchant.lab import (
    DRAWS,
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_most,
    drawn,
    exponents,
    mean_within,
    sized,
)
from penchant.plotting import BLACK, CYCLE, sheet_of
from penchant.problems import sparse_regression
from penchant.record import At
from penchant_papers.beyond import OWN_RUNS
from penchant_papers.beyond.clock import net

MOMENTS = np.linspace(0.005, 1.0, 120)  # when training is recorded, in units of its length
LONGER = 1.5  # length of a run in units of the later one of two times: the flow's, the predicted
SHARE = 0.6  # of the learning rate at which the prediction fails for single samples
EXACT = 1e-6  # relative to the kernel regime's: the test error of a truth of least l1 norm
TENTH = 0.1


def problem(seed: int, samples: int, dimension: int) -> tuple[Regression, int]:
    """A truth of one entry that has the least l1 norm of all fits, and the draws that it took."""

    def make(number: int) -> Regression:
        sizes: Any = {"sparsity": 1, "noise": 0.0}
        return sparse_regression(samples, dimension, **sizes, seed=DRAWS * seed + number)

    return drawn(make, recoverable, 0)


def recoverable(problem: Regression) -> bool:
    """True if the least l1 norm is the truth: else there is nothing to grok."""
    return kernel_error(problem) * EXACT > problem.population_error(interpolate(problem, L1()).beta)


def kernel_error(problem: Regression) -> float:
    """The test error in the kernel regime."""
    return float(problem.population_error(np.linalg.lstsq(problem.X, problem.y)[0]))


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
    data, draws = problem(seed, samples, dimension)
    model, error = net(alpha), data.population_error
    flow = forecast(model, data, decay, measure=error).transition
    limit = predict_run(model, data, GradientDescent(1e-6), batch=1, stop=Time(flow)).fails_from
    method = GradientDescent(SHARE * limit, label_noise=label_noise, weight_decay=decay)
    predicted = forecast(model, data, method=method, batch=batch, measure=error).transition
    length = LONGER * max(flow, predicted)
    steps = np.round(MOMENTS * length / method.learning_rate).astype(int)
    record = At(steps=[int(step) for step in steps])
    path = train(model, data, method, batch=batch, seed=seed, stop=Time(length), record=record)
    curve = np.interp(MOMENTS, path.dataset.t.values / length, path.dataset.test_error.values)
    high = curve > kernel_error(data) / 2
    above = np.diff(MOMENTS, prepend=0.0) * high  # the curve is noisy
    plus, minus = np.split(np.asarray(path.parameters), 2)
    falls = float(-np.log(np.abs(plus * minus) / alpha**2).mean() / 2 / length)
    return {
        "measured": float(above.sum()) * length,
        "predicted": predicted,
        "flow": flow,
        "ended": float(not high[-1]),
        "falls": falls,
        "shrinks": falls - decay,
        "draws": draws,
        "time": MOMENTS * length,
        "error": curve,
    }


study = sized(
    "beyond-sgd-grokking",
    title="Label noise shifts the time of grokking by as much as predicted",
    function=cell,
    arguments={"alpha": 1.0, "samples": 4, "dimension": 8, "decay": 0.03, "label_noise": 0.5},
    grid={"batch": [1, 2, 4]},
    seeds=8,
    dims={"error": ["moment"], "time": ["moment"]},
    labels={
        "batch": "samples per step",
        "measured": "time at which the test error has halved",
        "predicted": "the same, predicted from the hyperparameters",
        "flow": "the same, predicted for a flow with this decay",
        "falls": "rate at which the log of the scale falls",
        "shrinks": "the same in addition to the decay",
        "error": "test error",
    },
    draw={"x": "batch", "colour": "measured"},
    tiny={"grid": {"batch": [1, 4]}, "seeds": 6},
    printed={"seeds": 100},
)


def check(dataset: Dataset) -> Evidence:
    """The mean relative error of the predicted times, and how the scale falls, by batch size."""
    time = at_most(errors(dataset, "predicted").max(), TENTH)
    rates, whole = (dataset[n].transpose("seed", "batch").values for n in ("shrinks", "falls"))
    # label noise adds gamma (N/B); the next order in gamma changes the power by up to a tenth
    falls = mean_within(exponents(dataset.batch.values, rates), -1.0, bias=0.1)
    ended = int(dataset.ended.sum())
    count = dataset.sizes["seed"]
    draws = int(dataset.draws.isel(batch=0).sum())
    later = (dataset.measured > dataset.flow).sum("seed").values
    return Evidence(
        ran=rf"{dataset.measured.size} runs of depth 2 from $\alpha = 1$ on {count} regressions "
        "with 4 samples of 8 features and a truth of one entry, by SGD with weight decay "
        f"0.03, label noise 0.5 and {SHARE:g} of the learning rate at which predictions fail "
        rf"for single samples; {count} of {draws} draws have a truth of least $\ell_1$ norm",
        premises={
            "no run was stopped before its test error had halved": (
                ended == dataset.ended.size,
                f"{ended} of {dataset.ended.size} have halved it",
            )
        },
        checks={
            "largest mean relative error of the predicted time, over batch sizes": time,
            "power of the batch size in the rate at which noise shrinks the scale": falls,
        },
        controls={
            "the prediction without noise": time.control(errors(dataset, "flow").min()),
            "the same power for noise and decay together": falls.control(
                exponents(dataset.batch.values, whole).mean()
            ),
        },
        findings=[
            f"batches of {batch}: the error halves at {ratio(dataset.sel(batch=batch))} of the"
            f" flow's time; noise delays it in {delayed} of {count} problems: it shrinks every"
            " coordinate at its own rate, which can favour a wrong one"
            for batch, delayed in zip(dataset.batch.values, later, strict=True)
        ],
    )


def ratio(dataset: Dataset) -> str:
    share = dataset.measured / dataset.flow
    return f"{float(share.min()):.2f} to {float(share.max()):.2f}"


def errors(dataset: Dataset, name: str) -> DataArray:
    """|predicted / measured - 1|, mean over seeds."""
    return np.abs(dataset[name] / dataset.measured - 1).mean("seed")


def draw(dataset: Dataset) -> Figure:
    """Test errors with the predicted times, and predicted against measured times."""
    picture, (a, b) = sheet_of(dataset, widths=(6.0, 6.0), height=4.8)
    for k, batch in enumerate(dataset.batch.values):
        all_of = dataset.sel(batch=batch)
        first = all_of.isel(seed=0)
        label = "1 sample per step" if batch == 1 else f"{batch} samples per step"
        a.plot(first.time, first.error, color=CYCLE[k], label=label)
        a.axvline(float(first.predicted), color=CYCLE[k], linestyle="--")
        b.plot(all_of.measured, all_of.predicted, "o^D"[k % 3], color=CYCLE[k], label=label)
        b.plot(all_of.measured, all_of.flow, "o^D"[k % 3], color=CYCLE[k], fillstyle="none")
    a.axvline(float(first.flow), color=BLACK, linestyle=":", label="predicted without noise")
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
    statement="Under SGD with weight decay and label noise, one can predict before training when "
    "a diagonal net of depth 2 leaves the kernel regime for the sparse truth, where that has "
    r"the least $\ell_1$ norm: within a tenth on average over problems, for every batch size. "
    "Noise shrinks the scale of the start in addition to the decay, at a rate inversely "
    "proportional to the batch size.",
    place=r"the $(1/\mathrm{decay}) \log \alpha$ of Lyu et al. 2023, with the noise of "
    "Pillaud-Vivien et al. 2022 (arXiv 2206.09841): ours",
    study=study,
    check=check,
    draw=draw,
    ours="all parameters",
    scope=OWN_RUNS,
    seconds=4,
)
