"""Convolutional nets as W-F6d and W-F8 train them: one run, and what is measured of it."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.claims.woodworth.digit_images import digits
from tacit.models.image_layers import Params
from tacit.models.image_net import ImageNet, conv_net
from tacit.models.output_layer import OutputLayer
from tacit.problems.images.arrays import Images
from tacit.problems.images.load import load_images
from tacit.training.descent.methods import SGD
from tacit.training.path import Path
from tacit.training.record import At, log_spaced
from tacit.training.stop import Accuracy, Epochs, Stop
from tacit.training.task import Progress
from tacit.training.train import train

DEPTH = 8  # weight layers of W's net: outputs grow as alpha^8
INPUTS = 20  # training images whose tangent features are followed
BLOCK = 500  # test images looked at together
POINTS = 10  # recorded epochs per decade of a curve
PIXELS = 32  # five poolings need this many rows and columns

Guesses = NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Scene:
    """The images and the net of a family of runs; 0 images and no classes stand for all there are.

    `slimmer` divides the channels of W's net. The seed of a run draws the images, the start and
    the batches.
    """

    images: str
    train: int
    test: int
    slimmer: int
    batch: int
    classes: tuple[str, ...] = ()

    def load(self, seed: int) -> Images:
        return _loaded(self.images, self.train, self.test, self.classes, seed)

    @property
    def told(self) -> str:
        """What is trained on what, in a few words."""
        count = f"{self.train} images" if self.train else "all images"
        of = f" of {', '.join(self.classes)}" if self.classes else ""
        slim = f", 1/{self.slimmer} of the channels" if self.slimmer > 1 else ""
        return f"{count} of {self.images}{of}{slim}"


@dataclasses.dataclass(frozen=True)
class Course:
    """How a net is trained: until every training image is right, at most for `epochs`.

    `output` trains the last layer only; `whole` spends all epochs, `curve` records
    log-spaced ones.
    """

    alpha: float
    step: float
    epochs: int = 100
    unbiased: bool = False
    output: bool = False
    whole: bool = False
    curve: bool = False


class Trained(NamedTuple):
    """What one run gave: errors and accuracies are shares of one, `guesses` those of test images.

    `linear` are those of the net linearized at its start, with the same weights, and `turned` is
    the grad distance between start and end. `losses` and `accuracies` of the training images,
    `errors` of the test images and `moved`, the distance of the weights from their start over its
    norm, belong to `epochs`, the recorded ones.
    """

    error: float
    train_accuracy: float
    turned: float
    guesses: Guesses
    linear: Guesses
    epochs: NDArray[np.float64]
    losses: NDArray[np.float64]
    accuracies: NDArray[np.float64]
    errors: NDArray[np.float64]
    moved: NDArray[np.float64]


@functools.lru_cache(maxsize=4)
def _loaded(name: str, train: int, test: int, classes: tuple[str, ...], seed: int) -> Images:
    if name != "digits":
        return load_images(name, train or None, test or None, classes or None, seed)
    found = digits(seed, train=train, enlarged=PIXELS // 8)
    cut = slice(test or None)
    return dataclasses.replace(
        found, test_images=found.test_images[cut], test_labels=found.test_labels[cut]
    )


def steady(alpha: float, step: float) -> float:
    """The learning rate that moves large starts as `step` does at alpha = 1.

    f(alpha v) = alpha^D g(v), and cross-entropy with outputs that large is a perceptron's loss,
    whose gradient does not depend on their size: v moves by rate alpha^(D - 2) grad g.
    """
    return step * max(alpha, 1.0) ** (2 - DEPTH)


def kernel_course(alpha: float, step: float, epochs: int) -> Course:
    """The kernel machine of a start: its outputs subtracted, and moves that vanish beside it.

    The tangent kernel grows as alpha^(2 D - 2); a step over that moves outputs as at alpha = 1.
    """
    return Course(alpha, step * alpha ** (2 - 2 * DEPTH), epochs, unbiased=True)


def trained(scene: Scene, course: Course, seed: int, progress: Progress | None = None) -> Trained:
    """One net of the scene, trained until every training image is right or epochs run out."""
    images = scene.load(seed)
    net = conv_net(alpha=course.alpha, slimmer=scene.slimmer, seed=seed, unbiased=course.unbiased)
    stop: list[Stop] = [Epochs(course.epochs)]
    path = train(
        OutputLayer(net) if course.output else net,
        images,
        SGD(course.step),
        batch=scene.batch,
        seed=seed,
        stop=stop if course.whole else [*stop, Accuracy(train=1.0)],
        record=At(epochs=log_spaced(course.epochs, POINTS) if course.curve else ()),
        progress=progress,
    )
    return measured(net, images, path)


def measured(net: ImageNet, images: Images, path: Path) -> Trained:
    """What a run gave, measured on all test images and on the first training images."""
    start, rows = net.start(images), path.dataset
    end = {**start, **path.parameters}
    turned = grad_distance(net, start, end, images.train_images[:INPUTS])
    guesses, linear = guessed(net, start, end, images)
    return Trained(
        error=float(np.mean(guesses != images.test_labels)),
        train_accuracy=float(rows.train_accuracy[-1]),
        turned=turned,
        guesses=guesses,
        linear=linear,
        epochs=rows.epoch.values,
        losses=rows.loss.values,
        accuracies=rows.train_accuracy.values,
        errors=1 - rows.test_accuracy.values,
        moved=rows.moved.values,
    )


def grad_distance(net: ImageNet, start: Params, end: Params, X: Any) -> float:
    """1 - cosine between the tangent features at both weights; NaN where those of the end vanish.

    A net whose units are all off for these images has no tangent features left.
    """
    one, other, apart = np.sqrt(_lengths()(net.function, dict(start), dict(end), X))
    if not 0 < one * other < np.inf:
        return float("nan")
    # 2 |a| |b| (1 - cos) = |a - b|^2 - (|a| - |b|)^2, which keeps the digits of small angles
    return float((apart**2 - (one - other) ** 2) / (2 * one * other))


@functools.cache
def _lengths() -> Any:
    """A compiled (f, start, end, X) -> squared lengths of the features, and of their difference.

    One image after another: the features of all would not fit into memory.
    """
    import jax

    def lengths(function: Any, start: Params, end: Params, X: Any) -> Any:
        slopes = jax.jacrev(lambda at, x: function(at, x[None])[0])

        def one(x: Any) -> Any:
            pair = slopes(start, x), slopes(end, x)
            apart = jax.tree.map(lambda old, new: new - old, *pair)
            return jax.numpy.stack([_square(part) for part in (*pair, apart)])

        return jax.lax.map(one, X).sum(axis=0)

    return jax.jit(lengths, static_argnums=0)


def _square(parts: Params) -> Any:
    return sum((part**2).sum() for part in parts.values())


def guessed(net: ImageNet, start: Params, end: Params, images: Images) -> tuple[Guesses, Guesses]:
    """The class of the largest output for every test image: of the net, and linearized at start."""
    ask, found = _outputs(), []
    for begin in range(0, len(images.test_labels), BLOCK):
        X = images.test_images[begin : begin + BLOCK]
        pair = ask(net.function, net.unbiased, dict(start), dict(end), X)
        found.append([np.asarray(outputs).argmax(axis=1) for outputs in pair])
    both = np.concatenate(found, axis=1)
    return both[0], both[1]


@functools.cache
def _outputs() -> Any:
    """A compiled (f, unbiased, start, end, X) -> f(end, X), and f(start, X) + J (end - start)."""
    import jax

    def outputs(function: Any, unbiased: bool, start: Params, end: Params, X: Any) -> Any:
        moved = jax.tree.map(lambda new, old: new - old, end, start)
        first, change = jax.jvp(lambda at: function(at, X), (start,), (moved,))
        last = function(end, X)
        return (last - first, change) if unbiased else (last, first + change)

    return jax.jit(outputs, static_argnums=(0, 1))
