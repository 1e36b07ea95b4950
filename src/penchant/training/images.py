"""A net on images for step-by-step methods: the start, the data, the loss, the measures."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.door import Invalid
from penchant.lazy import jax, jnp
from penchant.models.image_layers import ImageFunction, Params, name_of, number_of
from penchant.models.image_model import ImageModel
from penchant.models.linearized import LinearizedImageModel, OutputLayer
from penchant.precision import double_precision
from penchant.problems.images.load import Images
from penchant.training.cross_entropy import cross_entropy, log_cross_entropy
from penchant.training.descent.compiled import SharedPart, per_sample
from penchant.training.descent.method import Objective
from penchant.training.exact.loss import log_sum
from penchant.training.task import Measures, Moment, Task

BLOCK = 500  # images that pass the net at once outside training


class Part(NamedTuple):
    """Images of training or testing; `origin` holds the weights a net is linearized at."""

    inputs: Any
    labels: Any
    offsets: Any
    origin: SharedPart | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class ImageLoss(Objective):
    """The mean cross-entropy of a net; equal functions share what is compiled."""

    function: Any

    @property
    def key(self) -> Any:
        return self.function

    def outputs(self, data: Part, parameters: Params) -> Any:
        logits = self.function(parameters, data.inputs, *(data.origin or ()))
        return logits if data.offsets is None else logits - data.offsets

    def value(self, data: Part, parameters: Params, share: Any = None) -> Any:
        losses = cross_entropy(self.outputs(data, parameters), data.labels)
        if share is None:
            return jnp.mean(losses)
        return jnp.sum(jnp.where(share, losses, 0.0)) / jnp.sum(share)

    def log_value(self, data: Part, parameters: Params) -> Any:
        logs = log_cross_entropy(self.outputs(data, parameters), data.labels)
        return jax.nn.logsumexp(logs) - math.log(len(data.labels))

    def judged(self, part: Part, parameters: Params) -> Iterator[tuple[Any, Any]]:
        """Logarithms of the losses, and right answers, of the images of `part`, block by block."""
        count, done = len(part.labels), 0
        for begin in block_starts(count):
            size = min(BLOCK, count)
            logs, right = _judge()(self, size, part, parameters, begin)
            yield np.asarray(logs)[done - begin :], np.asarray(right)[done - begin :]
            done = begin + size


@dataclasses.dataclass(frozen=True)
class Features:
    """The inputs of the last layer of a net, as a function of weights and images."""

    function: ImageFunction

    def __call__(self, params: Params, X: Any) -> Any:
        return self.function.features(params, X)


def outputs(function: Any, params: Params, X: Any) -> Any:
    size = min(BLOCK, len(X))
    width = jax.eval_shape(function, dict(params), X[:size]).shape[1]
    logits = jnp.zeros((len(X), width), X.dtype)
    for begin in block_starts(len(X)):
        logits = _filled()(logits, dict(params), X, begin, function, size)
    return logits


def block_starts(count: int) -> list[int]:
    """The first image of every block; the last block reaches back, so that all are full."""
    size = min(BLOCK, count)
    return [min(begin, count - size) for begin in range(0, count, size)]


@functools.cache
def _filled() -> Any:
    # the array of all outputs is donated and written in place, so that it exists only once
    @functools.partial(jax.jit, static_argnums=(4, 5), donate_argnums=0)
    def filled(logits: Any, params: Params, X: Any, begin: Any, function: Any, size: int) -> Any:
        block = jax.lax.dynamic_slice_in_dim(X, begin, size)
        return jax.lax.dynamic_update_slice_in_dim(logits, function(params, block), begin, 0)

    return filled


@functools.cache
def _judge() -> Any:
    @functools.partial(jax.jit, static_argnums=(0, 1))
    def judge(loss: ImageLoss, size: int, part: Part, parameters: Params, begin: Any) -> Any:
        block = per_sample(lambda a: jax.lax.dynamic_slice_in_dim(a, begin, size), part)
        logits = loss.outputs(block, parameters)
        right = jnp.argmax(logits, axis=1) == block.labels
        return log_cross_entropy(logits.astype(jnp.float64), block.labels), right

    return judge


Trainable = ImageModel | OutputLayer | LinearizedImageModel
FIRST = name_of(1)


class ImageTask(Task):
    """A checked pair of a net and images.

    A weight at a pixel that is black in every training image has a gradient of exactly zero; this
    is so for 67 of the 784 pixels of MNIST. If parameters without a gradient stay `still`, these
    weights are left out of training; `whole` puts them back, since they matter on test images. With
    a penalty or weight decay they would move, and a method whose steps depend on all parameters at
    once would be affected by them.
    """

    def __init__(self, model: Trainable, images: Images, still: bool = False) -> None:
        _check(model, images)
        self.model, self.problem = model, images
        self.objective = ImageLoss(model.function)
        self.outside = model.function.convolutions
        self.samples = len(images.train_labels)
        whole = model.start(images)
        self.live: Any = None  # the pixels that are seen in training, if others are not
        if still and not self.outside and not isinstance(model, OutputLayer):
            seen = np.asarray(images.train_images.reshape(self.samples, -1).any(axis=0))
            # in sixteens, so that most draws of the images share what is compiled
            count = -(-int(seen.sum()) // 16) * 16
            if 0 < count < len(seen):
                self.live = np.sort(np.argsort(~seen, kind="stable")[:count])
        self.start = self.trained(whole)
        with double_precision():
            self.data, self.test = self._part("train", self.live), self._part("test", None)

    def trained(self, parameters: Params) -> Params:
        if self.live is None:
            return dict(parameters)
        return parameters | {FIRST: parameters[FIRST][self.live]}

    def whole(self, parameters: Params) -> Params:
        if self.live is not None:
            first = np.array(self.model.start(self.problem)[FIRST])
            first[self.live] = parameters[FIRST]
            parameters = parameters | {FIRST: first}
        return {name: parameters[name] for name in self.start}  # JAX sorts 10 before 2

    def measures(self, moment: Moment) -> Measures:
        parameters = moment.state
        return {
            ("loss", "log_loss", "train_accuracy"): lambda: self._on_training(parameters),
            ("test_loss", "test_accuracy"): lambda: self._on_test(parameters),
            ("parameter_norm", "moved"): lambda: self._sizes(parameters),
        }

    def penalized(self, penalty: Any, moment: Moment) -> dict[str, float]:
        return {"penalty": float(penalty.value(moment.state))}

    def bounds(self, parameters: Params) -> Iterator[Mapping[str, float]]:
        """Successively tighter bounds on the numbers, from more and more training images."""
        lost, wrong = -math.inf, 0
        for logs, right in self.objective.judged(self.data, parameters):
            lost = log_sum(np.append(logs, lost))
            wrong += int((~right).sum())
            right_share = (self.samples - wrong) / self.samples
            yield _losses(lost - math.log(self.samples)) | {"train_accuracy": right_share}

    def record(self, moment: Moment, numbers: Mapping[str, Any]) -> dict[str, Any]:
        norms = _norms(self.whole(moment.state))
        return super().record(moment, numbers) | {"layer_norm": norms}

    def columns(
        self, moments: Sequence[Moment], recorded: dict[str, Array], rate: float
    ) -> dict[str, Array]:
        return recorded | {"layer": np.array(sorted(map(number_of, self.start)))}

    def _part(self, which: str, live: Any) -> Part:
        images, model = self.problem, self.model
        net = _net(model)
        pixels, weights = np.asarray(getattr(images, f"{which}_images")), model.start(images)
        if live is not None:
            pixels, weights = pixels.reshape(len(pixels), -1)[:, live], self.start
        inputs = jnp.asarray(pixels, net.dtype)
        labels = jnp.asarray(getattr(images, f"{which}_labels"), np.int32)
        if isinstance(model, LinearizedImageModel):
            origin = {name: jnp.asarray(part) for name, part in weights.items()}
            return Part(inputs, labels, None, SharedPart(origin))
        if isinstance(model, OutputLayer):
            inputs = outputs(Features(net.function), net.start(images), inputs)
        nothing = np.zeros((len(labels), len(images.classes)), net.dtype)
        offsets = outputs(model.function, weights, inputs) if net.unbiased else nothing
        return Part(inputs, labels, jnp.asarray(offsets))

    def _on_training(self, parameters: Params) -> dict[str, float]:
        log_loss, right = _means(self.objective.judged(self.data, parameters))
        return _losses(log_loss) | {"train_accuracy": right}

    def _on_test(self, parameters: Params) -> dict[str, float]:
        log_loss, right = _means(self.objective.judged(self.test, self.whole(parameters)))
        return {"test_loss": _losses(log_loss)["loss"], "test_accuracy": right}

    def _sizes(self, parameters: Params) -> dict[str, float]:
        first, now = self.model.start(self.problem), self.whole(parameters)
        moves = {name: now[name] - first[name] for name in first}
        moved, begun, norm = (np.linalg.norm(_norms(weights)) for weights in (moves, first, now))
        return {"parameter_norm": float(norm), "moved": float(moved / begun)}


def _check(model: Any, images: Images) -> None:
    """A ValueError if `model` cannot be trained on `images`, which users may construct."""
    if not isinstance(model, Trainable):
        raise Invalid(
            f"on Images the model must be a net on images, got {type(model).__name__}; use "
            "dense_net() or conv_net(), or linearize() or OutputLayer of one"
        )
    for which in ("train", "test"):
        pixels, labels = getattr(images, f"{which}_images"), getattr(images, f"{which}_labels")
        if not len(labels) or len(pixels) != len(labels):
            raise Invalid(
                f"there must be as many {which} images as labels and at least one, got "
                f"{len(pixels)} and {len(labels)}"
            )
        if not np.isfinite(pixels).all():
            raise Invalid(f"{which} images must be finite, got one that is not")
        if not 0 <= labels.min() <= labels.max() < len(images.classes):
            raise Invalid(
                f"{which} labels must be between 0 and {len(images.classes) - 1}, got "
                f"{labels.min()} to {labels.max()}"
            )


def _net(model: Trainable) -> ImageModel:
    if isinstance(model, OutputLayer):
        return model.net
    return model.model if isinstance(model, LinearizedImageModel) else model


def _means(blocks: Iterator[tuple[Any, Any]]) -> tuple[float, float]:
    logs, right = (np.concatenate(column) for column in zip(*blocks, strict=True))
    return log_sum(logs) - math.log(len(logs)), float(right.mean())


def _losses(log_loss: float) -> dict[str, float]:
    with np.errstate(over="ignore", under="ignore"):
        return {"log_loss": log_loss, "loss": float(np.exp(log_loss))}


def _norms(weights: Params) -> list[float]:
    layers = [weights[name] for name in sorted(weights, key=number_of)]
    return [float(np.linalg.norm(np.ravel(part).astype(np.float64))) for part in layers]
