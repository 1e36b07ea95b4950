"""Convolutional nets on images: one run, and what Figures 6 (d) and 8 measure of it."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penchant import GradientDescent, Path, train
from penchant.lab import Dataset, Sizes, door_as, drawn, one_of, sized
from penchant.models import ImageModel, OutputLayer, conv_net
from penchant.problems import Images, load_images
from penchant.record import At, log_spaced
from penchant.stop import Accuracy, Epochs, Stop
from penchant_papers.woodworth2020.figures.digit_images import MOST, digits, present

DEPTH = 8  # weight layers of W's net: outputs grow as alpha^8
INPUTS = 20  # training images whose tangent features are followed
BLOCK = 500  # test images per block
ORDER_ONE = (1 / 3, 3.0)  # mean size of the outputs at the start
POINTS = 10  # recorded epochs per decade of a curve
PIXELS = 32  # five poolings need this many rows and columns
TRAININGS = ("all", "output", "kernel")
Labels = NDArray[np.int64]
THREE = ("airplane", "automobile", "frog")  # a thousand images of all ten classes are too few
LABELS = {
    "alpha": r"initial scale $\alpha$, as a factor on the uniform He initialization",
    "error": "share of the test images misclassified at the end",
    "train_accuracy": "share of the training images classified correctly at the end",
    "turned": "grad distance: 1 - cosine of the tangent features, start to end",
    "apart": "share of the test images that the net and its linearization classify differently",
    "first": "distance of the weights from their start after one epoch, over its norm",
    "rate": "learning rate",
    "labels": "number of classes",
    "tries": r"draws of a start until its outputs at $\alpha = 1$ are of order one",
    "instead": "which images stand in for those of the source",
    "trajectory_t": "passes over the training images",
    "trajectory_loss": "mean cross-entropy over the training images",
    "trajectory_accuracy": "share of the training images classified correctly",
    "trajectory_error": "share of the test images misclassified",
}
DIMS = {name: ["time"] for name in LABELS if name.startswith("trajectory_")}
# arguments of a cell: small digits; a part of CIFAR-10, digits where it is absent
DIGITS = {
    "images": "digits",
    "otherwise": "",
    "classes": [],
    "train": 100,
    "test": 100,
    "slimmer": 16,
    "batch": 10,
    "whole": False,
}
PART = {
    "images": "cifar10",
    "otherwise": "digits",
    "classes": list(THREE),
    "train": 900,
    "test": 1500,
    "slimmer": 8,
    "batch": 45,
}


@functools.lru_cache(maxsize=4)
def loaded(name: str, count: int, test: int, classes: tuple[str, ...], seed: int) -> Images:
    """Images drawn by the seed; 0 images or no classes mean all of them."""
    if name != "digits":
        return load_images(name, count or None, test or None, classes or None, seed)
    images = digits(seed, train=min(count, MOST), enlarged=PIXELS // 8)
    cut = slice(test or None)
    return dataclasses.replace(
        images, test_images=images.test_images[cut], test_labels=images.test_labels[cut]
    )


def rate(training: str, alpha: float, step: float, even: bool) -> float:
    """The learning rate of a run.

    f(alpha v) = alpha^D g(v), and cross-entropy with outputs that large is a perceptron's loss,
    whose gradient does not depend on their size: v moves by rate alpha^(D - 2) grad g. An `even`
    step falls accordingly above alpha = 1. The tangent kernel grows as alpha^(2 D - 2): a step
    over that moves the outputs of the kernel machine as at alpha = 1.
    """
    if training == "kernel":
        return step * alpha ** (2 - 2 * DEPTH)
    return step * max(alpha, 1.0) ** (2 - DEPTH) if even and training == "all" else step


@door_as("conv_nets")
def cell(
    alpha: float,
    seed: int,
    *,
    training: str,
    step: float,
    even: bool,
    whole: bool,
    tangents: bool,
    epochs: int,
    images: str,
    otherwise: str,
    classes: Sequence[str],
    train: int,
    test: int,
    slimmer: int,
    batch: int,
) -> dict[str, Any]:
    """One run: its ends and its curves over epochs; `slimmer` divides the channels of W's net.

    "all" layers are trained, the "output" layer alone, or the net's "kernel" machine: the outputs
    of the start subtracted, and steps that hardly move it. The seed draws the images, the batches
    and, until one has outputs of order one, the start. Training ends when every training image is
    right, unless `whole` is true. Without `tangents` nothing is measured that needs the derivatives
    of the net: NaN.
    """
    one_of("training", training, TRAININGS)
    name, instead = present(images, otherwise)
    known = loaded(name, train, test, tuple(classes) if name == images else (), seed)
    start, tries = drawn(int, lambda start: is_of_order_one(known, slimmer, start), seed)
    net = conv_net(alpha=alpha, slimmer=slimmer, seed=start, unbiased=training == "kernel")
    taken = rate(training, alpha, step, even)
    path = trained(net, known, taken, epochs, batch, seed, training == "output", whole)
    return {
        **measured(net, known, path, tangents),
        "rate": taken,
        "labels": len(known.classes),
        "tries": tries,
        "instead": instead,
    }


@functools.lru_cache(maxsize=32)
def is_of_order_one(images: Images, slimmer: int, seed: int) -> bool:
    """Whether a He start has outputs of order one, as that of a wide net has.

    Through eight layers of a few channels they shrink or grow tenfold by chance, and alpha means
    another scale; from the faintest starts small alphas never leave their plateau.
    """
    net = conv_net(alpha=1.0, slimmer=slimmer, seed=seed)
    size = float(np.abs(net.logits(net.start(images), images.train_images)).mean())
    return ORDER_ONE[0] <= size <= ORDER_ONE[1]


def trained(
    net: ImageModel,
    images: Images,
    step: float,
    epochs: int,
    batch: int,
    seed: int,
    output: bool = False,
    whole: bool = False,
) -> Path:
    """The path of SGD until every training image is right or epochs run out."""
    stop: list[Stop] = [Epochs(epochs)]
    return train(
        OutputLayer(net) if output else net,
        images,
        GradientDescent(step),
        batch=batch,
        seed=seed,
        stop=stop if whole else [*stop, Accuracy(train=1.0)],
        record=At(epochs=log_spaced(epochs, POINTS)),
    )


def measured(net: ImageModel, images: Images, path: Path, tangents: bool = True) -> dict[str, Any]:
    """The measurements of a run on all test images and on the first training images."""
    start, rows, turned, apart = net.start(images), path.dataset, np.nan, np.nan
    if tangents:
        end = {**start, **path.parameters}
        turned = grad_distance(net, start, end, images.train_images[:INPUTS])
        guesses, linear = guessed(net, start, end, images)
        apart = float(np.mean(guesses != linear))
    passed = rows.epoch.values
    return {
        "error": 1 - float(rows.test_accuracy[-1]),
        "train_accuracy": float(rows.train_accuracy[-1]),
        "turned": turned,
        "apart": apart,
        # a run that diverges in its first epoch has no record of its end
        "first": float(rows.moved.values[passed == 1].sum()) if 1 in passed else np.nan,
        "trajectory_t": passed.astype(float),
        "trajectory_loss": rows.loss.values.astype(float),
        "trajectory_accuracy": rows.train_accuracy.values.astype(float),
        "trajectory_error": 1 - rows.test_accuracy.values.astype(float),
    }


def net_study(name: str, title: str, arguments: Mapping[str, Any], **given: Any) -> Sizes:
    """A study of these cells, by one seed."""
    words = {"seeds": 1, "dims": DIMS, "labels": LABELS, **given}
    return sized(name, title=title, function=cell, arguments=arguments, **words)


def in_words(dataset: Dataset) -> str:
    """The net and its images, in a few words."""
    given = json.loads(dataset.attrs["description"])["arguments"]
    instead = str(dataset.instead.values.flat[0])
    count = f"{given['train']} images" if given["train"] else "all images"
    classes = f" of {', '.join(given['classes'])}" if given["classes"] and not instead else ""
    slim = f", 1/{given['slimmer']} of the channels" if given["slimmer"] > 1 else ""
    return f"{count} of {'digits' if instead else given['images']}{classes}{slim}"


def starts_in_words(dataset: Dataset) -> str:
    """How many starts had to be drawn."""
    tries = dataset.tries.isel(alpha=0) if "alpha" in dataset.dims else dataset.tries
    return f"starts with outputs of order one, {tries.size} of {int(tries.sum())} draws"


def grad_distance(net: ImageModel, start: dict[str, Any], end: dict[str, Any], X: Any) -> float:
    """1 - cosine between the tangent features at both weights; NaN where those of the end vanish.

    A net whose units are all off for these images has no tangent features left.
    """
    squares = np.zeros(3)  # of the start, of the end, of their difference
    for x in X:  # one image after another: the features of all would not fit into memory
        old, new = (_slopes()(net.function, dict(weights), x) for weights in (start, end))
        for name in old:
            first, last = np.asarray(old[name]), np.asarray(new[name])
            squares += [np.sum(part**2, dtype=float) for part in (first, last, last - first)]
    one, other, apart = np.sqrt(squares)
    if not 0 < one * other < np.inf:
        return float("nan")
    # 2 |a| |b| (1 - cos) = |a - b|^2 - (|a| - |b|)^2, which keeps the digits of small angles
    return float((apart**2 - (one - other) ** 2) / (2 * one * other))


@functools.cache
def _slopes() -> Any:
    """A compiled (f, weights, image) -> the derivatives of all outputs, layer by layer."""
    import jax

    def slopes(function: Any, weights: dict[str, Any], x: Any) -> Any:
        return jax.jacrev(lambda at: function(at, x[None])[0])(weights)

    return jax.jit(slopes, static_argnums=0)


def guessed(
    net: ImageModel, start: dict[str, Any], end: dict[str, Any], images: Images
) -> tuple[Labels, Labels]:
    """The class of the largest output for every test image: of the net, and linearized at start."""
    ask, guesses = _outputs(), []
    for begin in range(0, len(images.test_labels), BLOCK):
        X = images.test_images[begin : begin + BLOCK]
        last, first, change = ask(net.function, dict(start), dict(end), X)
        pair = (last - first, change) if net.unbiased else (last, first + change)
        guesses.append([np.asarray(outputs).argmax(axis=1) for outputs in pair])
    both = np.concatenate(guesses, axis=1)
    return both[0], both[1]


@functools.cache
def _outputs() -> Any:
    """A compiled (f, start, end, X) -> f(end, X), f(start, X) and J (end - start)."""
    import jax

    def outputs(function: Any, start: dict[str, Any], end: dict[str, Any], X: Any) -> Any:
        moved = jax.tree.map(lambda new, old: new - old, end, start)
        return function(end, X), *jax.jvp(lambda at: function(at, X), (start,), (moved,))

    return jax.jit(outputs, static_argnums=0)
