"""Wide ReLU nets on images of digits: one run, what Figure 6 (c) measures of it, and its panels."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from penchant import GradientDescent, train
from penchant.lab import Array, Axes, Dataset, Figure, Sizes, door_as, one_of, sized
from penchant.models import OutputLayer, dense_net
from penchant.plotting import BLACK, BLUE, GREY, RED, sheet_of
from penchant.problems import Images, load_images
from penchant.record import At
from penchant.stop import Accuracy, Epochs
from penchant_papers.woodworth2020.figures.digit_images import MOST, digits, present

EARLY = 2  # epochs after which runs that may differ in their end are compared
TRAININGS = ("printed", "kernel", "output")
INPUTS = 500  # training images whose tangent features are followed
LABELS = {
    "alpha": r"initial scale $\alpha$, as a factor on the He initialization",
    "step": "learning rate",
    "error": "share of the test images misclassified",
    "train_accuracy": "share of the training images classified correctly",
    "taken": "passes over the training images until all are classified correctly",
    "turned": "grad distance: 1 - cosine of the tangent features, start to end",
    "moved": "distance of the weights from their start, over its norm",
    "early": "the same after two epochs",
    "tested": "test images",
    "instead": "which images stand in for those of the source",
}
# arguments of a cell: small digits; a part of MNIST, digits where it is absent; and as printed
DIGITS = {
    "images": "digits",
    "otherwise": "",
    "train": 512,
    "width": 300,
    "batch": 64,
    "epochs": 300,
}
WHOLE = {"images": "mnist", "train": 0, "width": 5000, "batch": 256, "epochs": 60}


@functools.lru_cache(maxsize=4)
def loaded(name: str, count: int, seed: int) -> Images:
    """Images of which `count` are for training (0: all of them), drawn by the seed."""
    if name == "digits":
        return digits(seed, train=min(count, MOST))
    return load_images(name, train=count or None, seed=seed, flat=True)


def trained(
    images: Images,
    *,
    width: int,
    alpha: float,
    step: float,
    seed: int,
    batch: int,
    epochs: int,
    unbiased: bool = False,
    output: bool = False,
) -> dict[str, float]:
    """One net, trained until every training image is right or epochs run out.

    `unbiased` subtracts the outputs of the start, `output` trains the last layer only. Errors and
    distances are shares of one: `turned` is the grad distance between start and end, `moved` the
    distance of the weights from their start over its norm, `early` the same after two epochs.
    """
    net = dense_net((width,), alpha=alpha, seed=seed, unbiased=unbiased)
    path = train(
        OutputLayer(net) if output else net,
        images,
        GradientDescent(step),
        batch=batch,
        seed=seed,
        stop=[Epochs(epochs), Accuracy(train=1.0)],
        record=At(epochs=[min(EARLY, epochs)]),
    )
    rows, start = path.dataset, net.start(images)
    last, passed = rows.isel(time=-1), rows.epoch.values
    return {
        "error": 1 - float(last.test_accuracy),
        "train_accuracy": float(last.train_accuracy),
        "taken": round(passed[-1]),
        "turned": grad_distance(start, {**start, **path.parameters}, images.train_images[:INPUTS]),
        "moved": float(last.moved),
        "early": float(rows.moved[passed <= EARLY][-1]),
    }


@door_as("Figure 6 (c)")
def cell(
    alpha: float,
    step: float,
    seed: int,
    *,
    training: str,
    images: str,
    otherwise: str,
    train: int,
    width: int,
    batch: int,
    epochs: int,
) -> dict[str, Any]:
    """One run; `taken` are the epochs that it took, at most `epochs`.

    The net is trained as "printed"; as its "kernel" machine, with the outputs of its start
    subtracted and steps that hardly move it; or its "output" layer alone. The seed draws the split
    or the subset of the images, the start and the batches.

    f = alpha^2 g(w / alpha), so the tangent kernel grows as alpha^2, and a step over alpha^2 moves
    the outputs as `step` does at alpha = 1; the weights move by 1/alpha^2 of themselves. Below
    alpha = 1 the weights grow, and such a step would soon be too long.
    """
    one_of("training", training, TRAININGS)
    name, instead = present(images, otherwise)
    data = loaded(name, train, seed)
    run = trained(
        data,
        width=width,
        alpha=alpha,
        step=step * min(1.0, alpha**2) / alpha**2 if training == "kernel" else step,
        seed=seed,
        batch=batch,
        epochs=epochs,
        unbiased=training == "kernel",
        output=training == "output",
    )
    return {**run, "tested": len(data.test_labels), "instead": instead}


def net_study(name: str, title: str, given: Mapping[str, Any], few: int = 0, **words: Any) -> Sizes:
    """A study of these cells; sizes name only what differs from DIGITS and WHOLE.

    `few` are the epochs at every size.
    """
    own, last = words.get("printed", {}), {"epochs": few} if few else {}
    printed = {**WHOLE, **last, **own.get("arguments", {})}
    words["printed"] = {"seeds": 1, **own, "arguments": printed}
    words = {"seeds": 4, "labels": LABELS, "arguments": {**DIGITS, **last, **given}, **words}
    return sized(name, title=title, function=cell, **words)


def grad_distance(start: Any, end: Any, X: Any) -> float:
    """1 - cosine between the tangent features of a two-layer ReLU net at two sets of weights.

    They are the derivatives of all outputs by all weights at the rows of X, in closed form: of
    output c by w2[k, c] the unit h_k, by w1[:, k] the image where the unit is on, times w2[k, c].
    """
    X = np.asarray(X, float).reshape(len(X), -1)
    parts = [_features(params, X) for params in (start, end)]
    squares = [_product(X, part, part) for part in parts]
    return float(1 - _product(X, *parts) / np.sqrt(squares[0] * squares[1]))


def _features(params: Any, X: Array) -> tuple[Array, Array]:
    """Units of every image, and the outer weights, relative to their size."""
    w1, w2 = (np.asarray(params[f"layer {k}"], float) for k in (1, 2))
    size = np.sqrt(np.mean(w2**2))  # a common factor turns nothing; large starts stay finite
    return (X @ w1) / size, w2 / size


def _product(X: Array, one: tuple[Array, Array], other: tuple[Array, Array]) -> float:
    """The inner product of two arrays of tangent features."""
    (z, v), (y, u) = one, other
    outer = v.shape[1] * np.sum(np.maximum(z, 0) * np.maximum(y, 0))
    both_on = (z > 0) & (y > 0)
    inner = np.sum((X**2).sum(axis=1) * (both_on @ (v * u).sum(axis=1)))
    return float(outer + inner)


def best(rows: Dataset) -> float:
    """The step of the least mean test error among those that fit all; NaN if none does."""
    fits = (rows.train_accuracy == 1).all("seed")
    errors = rows.error.mean("seed").where(fits, np.inf).values
    return float(rows.step[errors.argmin()]) if np.isfinite(errors).any() else float("nan")


def at_best(printed: Dataset, name: str) -> Array:
    """A measure as printed at the best step of every alpha, by seed; NaN where no step fits."""
    rows = []
    for alpha in printed.alpha.values:
        row = printed.sel(alpha=alpha)
        step = best(row)
        rows.append(row[name].sel(step=step).values if step == step else row[name][0] * np.nan)
    return np.array(rows)


def draw(*datasets: Dataset) -> Figure:
    """Test error and grad distance over alpha: as printed, and without the start's outputs."""
    printed, _, kernel, output = datasets
    picture, (a, b) = sheet_of(printed, (6.0, 6.0), 4.9, before=printed.instead.values.flat[0])
    label = r"outputs of the start subtracted, step$/\alpha^2$"
    for axes, name, factor in ((a, "error", 100), (b, "turned", 1)):
        _curve(axes, printed.alpha, factor * at_best(printed, name), "as printed", RED, "s")
        machines = kernel[name].transpose("alpha", "seed").values
        _curve(axes, kernel.alpha, factor * machines, label, BLUE, "o")
        axes.set(xscale="log", xlabel=r"scale of the start $\alpha$")
        axes.axvline(1.0, color=GREY, linewidth=1.0, label=r"He initialization, $\alpha = 1$")
    proxy = 100 * float(output.error.mean())
    a.axhline(proxy, color=BLACK, linestyle="--", linewidth=1.4, label="output layer alone")
    a.set(
        ylabel="test error (% of the test images)",
        title="(a) test error: large starts exceed their kernel machine",
    )
    a.set_ylim(bottom=0)
    b.set(
        yscale="log",
        ylabel="grad distance (1 - cosine)",
        title="(b) as printed, the tangent features always change",
    )
    a.legend(loc="lower right", frameon=True, edgecolor="none")
    b.legend(loc="lower left", frameon=True, edgecolor="none")
    return picture


def _curve(axes: Axes, x: Any, values: Array, label: str, colour: str, marker: str) -> None:
    """Means over the seeds, in a band from the least to the largest."""
    means = values.mean(axis=1)
    axes.plot(x, means, color=colour, marker=marker, markersize=4, label=label)
    low, high = values.min(axis=1), values.max(axis=1)
    axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
