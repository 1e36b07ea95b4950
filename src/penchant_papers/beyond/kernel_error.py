"""The test error of the kernel phase before training, and what features are worth beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penchant import Regression, train
from penchant.forecasts import kernel_error
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_most,
    margin_of_mean,
    mean_within,
    sized,
)
from penchant.measures import InfiniteKernel, kernel_regression
from penchant.methods import TangentFlow
from penchant.models import relu_net
from penchant.plotting import BLACK, CYCLE, sheet_of
from penchant.record import At
from penchant.stop import Interpolated
from penchant_papers.beyond import OWN_RUNS

POOL, TEST = 800, 300
DRAWS = 20  # training sets of one regression
WIDTH = 256
KERNEL_SCALE, RICH_SCALE = 3.0, 0.03  # alpha of the nets in both phases
BIAS = 0.2  # of the log of an error: half of the least log of the inflation, 1.4
WORTH = 0.5  # features halve the error

KERNELS = {
    "ReLU, two layers": InfiniteKernel("relu", (1,)),
    "ReLU and biases, three layers": InfiniteKernel("relu", (1, 1), biases=0.1),
    "erf and biases, two layers": InfiniteKernel("erf", (1,), biases=0.1),
}


def pairs(Z: Array) -> Array:
    return Z[:, 0] * Z[:, 1]


def ridge(Z: Array) -> Array:
    return np.abs(Z[:, 0]) - 0.8


def mixed(Z: Array) -> Array:
    return Z[:, 0] + (Z[:, 1] ** 2 - 1) / 2


TARGETS: tuple[Callable[[Array], Array], ...] = (pairs, ridge, mixed)


def on_sphere(rng: np.random.Generator, count: int, dimension: int) -> Array:
    """Uniform rows of length sqrt(dimension)."""
    Z = rng.normal(size=(count, dimension))
    return np.asarray(np.sqrt(dimension) * Z / np.linalg.norm(Z, axis=1)[:, None])


def squared(values: Array) -> float:
    return float(np.mean(values**2))


def cell(seed: int) -> dict[str, Any]:
    """One setting: the mean error of regressions with a kernel, and its predictions."""
    rng = np.random.default_rng((seed, 1))
    kernel = KERNELS[list(KERNELS)[seed % len(KERNELS)]]
    target = TARGETS[int(rng.integers(len(TARGETS)))]
    dimension, samples = int(rng.integers(5, 10)), int(rng.integers(20, 60))
    pool, test = on_sphere(rng, POOL, dimension), on_sphere(rng, TEST, dimension)
    predicted = kernel_error(kernel, pool, target(pool), samples=samples)
    errors, alone = [], []
    for _ in range(DRAWS):
        X = on_sphere(rng, samples, dimension)
        answer = kernel_regression(kernel, X, target(X))
        errors.append(squared(answer.predict(test) - target(test)))
        alone.append(kernel_error(kernel, X, target(X)).error)
    return {
        "measured": float(np.mean(errors)),
        "predicted": predicted.error,
        "plain": predicted.error / predicted.inflation,
        "alone": float(np.mean(alone)),
    }


def trained_error(alpha: float, X: Array, test: Array, target: Any, seed: int) -> float:
    """The test error of a ReLU net trained from this scale to a thousandth of its first loss."""
    model = relu_net(2, WIDTH, alpha=alpha, start="gaussian", unbiased=True, seed=seed)
    problem, stop = Regression(X, target(X)), Interpolated(1e-3)
    path = train(model, problem, TangentFlow(rtol=3e-2), stop=stop, record=At(times=[]))
    return squared(model.predict(path.parameters, test) - target(test))


def net_cell(seed: int) -> dict[str, float]:
    """Nets in both phases on a target of one direction, and the prediction for the first."""
    rng = np.random.default_rng((seed, 2))
    dimension, samples = 10, 60
    pool, test = on_sphere(rng, 10 * samples, dimension), on_sphere(rng, TEST, dimension)
    X = on_sphere(rng, samples, dimension)
    scales = {"kernel": KERNEL_SCALE, "rich": RICH_SCALE}
    start = int(rng.integers(2**31))
    relu = InfiniteKernel("relu", (WIDTH,))
    return {
        "predicted": kernel_error(relu, pool, ridge(pool), samples=samples).error,
        **{
            name: trained_error(alpha, X, test, ridge, seed=start) for name, alpha in scales.items()
        },
    }


study = sized(
    "beyond-kernel-error",
    title="The error of regression with a kernel, predicted before any is done",
    function=cell,
    seeds=24,
    labels={
        "measured": "mean squared error on new inputs",
        "predicted": "error predicted from a pool of inputs",
        "plain": "the same without the variance of few samples",
        "alone": "error predicted from the training data alone",
    },
    tiny={"seeds": 9},
    printed={"seeds": 200},
)
nets = sized(
    "beyond-kernel-error-nets",
    title="Nets in the kernel phase and in the rich one on a target of one direction",
    function=net_cell,
    seeds=12,
    labels={
        "predicted": "error predicted for the kernel phase",
        "kernel": "error of the net in the kernel phase",
        "rich": "error of the net in the rich phase",
    },
    tiny={"seeds": 12},
    printed={"seeds": 100},
)


def logs(dataset: Dataset, name: str, to: str = "predicted") -> Array:
    return np.asarray(np.log(dataset[name].values / dataset[to].values))


def check(dataset: Dataset, trained: Dataset) -> Evidence:
    """Means of logarithms of errors over their predictions, and how often features halve them."""
    count = trained.rich.size
    predicted = mean_within(logs(dataset, "measured"), 0.0, BIAS)
    # nets of finite width are somewhat worse than their kernel
    lazy = mean_within(logs(trained, "kernel"), 0.0, 2 * BIAS)
    rich, plain = logs(trained, "rich", "kernel"), logs(trained, "kernel")
    worth = at_most(float(np.exp(rich.mean() + margin_of_mean(rich))), WORTH)
    return Evidence(
        ran=f"{dataset.measured.size} settings on spheres of 5 to 9 dimensions with 20 to 59 "
        f"samples, {DRAWS} regressions each, predicted from {POOL} inputs; {count} pairs of "
        f"ReLU nets with {WIDTH} units trained by flow on 60 samples in dimension 10",
        checks={
            "log of the error of regressions over the predicted one, mean": predicted,
            "log of the error of nets in the kernel phase over the predicted one, mean": lazy,
            "error of nets in the rich phase over that in the kernel phase, geometric mean (0.999 "
            "upper limit)": worth,
        },
        controls={
            "without the variance of few samples": predicted.control(
                float(logs(dataset, "measured", "plain").mean())
            ),
            "nets in the rich phase": lazy.control(float(logs(trained, "rich").mean())),
            "the net in the kernel phase over the predicted error (0.999 lower limit)": (
                worth.control(float(np.exp(plain.mean() - margin_of_mean(plain))))
            ),
        },
        findings=[
            "error predicted from the training data alone over the measured one, geometric mean: "
            f"{float(np.exp(logs(dataset, 'alone', 'measured').mean())):.2g}",
            "what features are worth: the rich phase has "
            f"{float(np.exp(logs(trained, 'rich', 'kernel').mean())):.2g} times the error of the "
            "kernel phase",
        ],
    )


def draw(dataset: Dataset, trained: Dataset) -> Figure:
    """Measured over predicted errors: of regressions, and of nets in both phases."""
    picture, (left, right) = sheet_of(dataset, widths=(5, 5), height=4.6)
    left.plot(dataset.predicted, dataset.measured, "o", color=CYCLE[0], label="predicted")
    left.plot(
        dataset.plain,
        dataset.measured,
        "v",
        color=CYCLE[1],
        label="without the variance",
        alpha=0.6,
    )
    number = np.arange(trained.rich.size) + 1
    right.plot(number, trained.predicted, "--", color=BLACK, label="predicted before training")
    right.plot(number, trained.kernel, "o", color=CYCLE[0], label="kernel phase")
    right.plot(number, trained.rich, "s", color=CYCLE[2], label="rich phase")
    line = np.array([float(dataset.predicted.min()) / 2, float(dataset.predicted.max()) * 1.5])
    left.loglog(line, line, "--", color=BLACK, linewidth=1.2, label="equal")
    left.set(
        xlabel="error predicted before training",
        ylabel="error on new inputs",
        title="regression with a kernel",
    )
    right.set(
        yscale="log",
        xlabel="number of the draw",
        ylabel="error on new inputs",
        title="trained nets: what features are worth",
    )
    left.legend()
    right.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return picture


experiment = Experiment(
    "beyond-kernel-error",
    statement="The kernel of infinite width and a pool of inputs predict the test error of "
    "regression and of a wide net in the kernel phase before training; on a target of one "
    "direction a net in the rich phase has less than half of its error.",
    place="Bordelon et al. 2020 and Simon et al. 2023 (arXiv 2110.03922) for regression; nets "
    "beside it: ours",
    study=(study, nets),
    check=check,
    draw=draw,
    ours="data, kernels, nets and scales",
    scope=OWN_RUNS,
    seconds=8,
)
