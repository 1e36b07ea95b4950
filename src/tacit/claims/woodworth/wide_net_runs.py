"""Wide ReLU nets on images of digits as W-F6c trains them: one run, and what is measured of it."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.claims.woodworth.digit_images import digits
from tacit.models.image_net import dense_net
from tacit.models.output_layer import OutputLayer
from tacit.problems.images.arrays import Images
from tacit.problems.images.load import load_images
from tacit.training.descent.methods import SGD
from tacit.training.record import At
from tacit.training.stop import Accuracy, Epochs
from tacit.training.task import Progress
from tacit.training.train import train

EARLY = 2  # epochs after which runs that may differ in their end are compared
INPUTS = 500  # training images whose tangent features are followed


@dataclasses.dataclass(frozen=True)
class Scene:
    """The images and the net of a family of runs; `train` = 0 stands for all of MNIST.

    `seed` of a run draws the split or the subset, the start and the batches.
    """

    images: str
    train: int
    width: int
    batch: int

    def load(self, seed: int) -> Images:
        return _loaded(self.images, self.train, seed)


@dataclasses.dataclass(frozen=True)
class Course:
    """How a net is trained; `output` trains its last layer only."""

    alpha: float
    step: float
    unbiased: bool = False
    output: bool = False
    epochs: int = 300


class Trained(NamedTuple):
    """What one run gave: errors and distances are shares of one.

    `turned` is the grad distance between start and end, `moved` the distance of the weights from
    their start over its norm, `early` the same after two epochs.
    """

    error: float
    train_accuracy: float
    epochs: int
    turned: float
    moved: float
    early: float


@functools.lru_cache(maxsize=4)
def _loaded(name: str, train: int, seed: int) -> Images:
    if name == "digits":
        return digits(seed, train=train)
    return load_images(name, train=train or None, seed=seed, flat=True)


def kernel_course(alpha: float, step: float, epochs: int = 300) -> Course:
    """The kernel machine of a start: its outputs subtracted, and moves that vanish beside it.

    f = alpha^2 g(w / alpha), so the tangent kernel grows as alpha^2, and a step over alpha^2 moves
    the outputs as `step` does at alpha = 1; the weights move by 1/alpha^2 of themselves.
    """
    return Course(alpha, step / alpha**2, unbiased=True, epochs=epochs)


def trained(scene: Scene, course: Course, seed: int, progress: Progress | None = None) -> Trained:
    """One net of the scene, trained until every training image is right or epochs run out."""
    images = scene.load(seed)
    net = dense_net((scene.width,), alpha=course.alpha, seed=seed, unbiased=course.unbiased)
    path = train(
        OutputLayer(net) if course.output else net,
        images,
        SGD(course.step),
        batch=scene.batch,
        seed=seed,
        stop=[Epochs(course.epochs), Accuracy(train=1.0)],
        record=At(epochs=[min(EARLY, course.epochs)]),
        progress=progress,
    )
    rows, start = path.dataset, net.start(images)
    last, epochs = rows.isel(time=-1), rows.epoch.values
    return Trained(
        error=1 - float(last.test_accuracy),
        train_accuracy=float(last.train_accuracy),
        epochs=round(epochs[-1]),
        turned=grad_distance(start, {**start, **path.parameters}, images.train_images[:INPUTS]),
        moved=float(last.moved),
        early=float(rows.moved[epochs <= EARLY][-1]),
    )


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
