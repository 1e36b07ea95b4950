"""A net on images as step-by-step methods see it: the loss, the arrays on the device, the start."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.models.image_layers import ImageFunction, Params
from tacit.models.image_net import ImageNet
from tacit.models.linearized import LinearizedImageNet
from tacit.models.output_layer import OutputLayer
from tacit.precision import double_precision
from tacit.problems.images.arrays import Images
from tacit.training.cross_entropy import cross_entropy, log_cross_entropy
from tacit.training.descent.batches import Shared, per_sample
from tacit.training.images.checks import ImageModel, check_model
from tacit.training.images.measures import ImageMeter, ImageNumbers
from tacit.training.images.pixels import LivePixels, live_pixels
from tacit.training.task import Task

BLOCK = 500  # images that pass the net at once outside training


class Part(NamedTuple):
    """The images of training or testing: inputs, labels and the outputs to be subtracted.

    A linearized net also has its `origin`, the weights it is linearized at.
    """

    inputs: Any
    labels: Any
    offsets: Any
    origin: Shared | None = None


@dataclasses.dataclass(frozen=True)
class ImageLoss:
    """The mean cross-entropy of a net; equal functions share what is compiled."""

    function: Any

    def outputs(self, data: Part, parameters: Params) -> Any:
        found = self.function(parameters, data.inputs, *(data.origin or ()))
        return found if data.offsets is None else found - data.offsets

    def value(self, data: Part, parameters: Params, share: Any = None) -> Any:
        import jax.numpy as jnp

        losses = cross_entropy(self.outputs(data, parameters), data.labels)
        if share is None:
            return jnp.mean(losses)
        return jnp.sum(jnp.where(share, losses, 0.0)) / jnp.sum(share)

    def log_value(self, data: Part, parameters: Params) -> Any:
        import jax

        logs = log_cross_entropy(self.outputs(data, parameters), data.labels)
        return jax.nn.logsumexp(logs) - math.log(len(data.labels))


class ImageTask(Task):
    """A checked pair of a net and images.

    If parameters without a gradient stay `still`, the weights at pixels that are black in all
    training images are left out of training; `whole` puts them back.
    """

    linear = False

    def __init__(self, who: str, model: ImageModel, images: Images, still: bool = False) -> None:
        check_model(who, model, images)
        self.who, self.model, self.problem = who, model, images
        self.objective = ImageLoss(model.function)
        self.outside = model.function.convolutions
        self.samples = len(images.train_labels)
        whole = model.start(images)
        dense = not isinstance(model, OutputLayer) and not self.outside
        self.pixels: LivePixels | None = None
        if still and dense:
            self.pixels = live_pixels(images.train_images, whole)
        self.start = self.trained(whole)
        with double_precision():
            self.data, self.test = (self._part(which) for which in ("train", "test"))
            self.first = ImageNumbers(self, self.start, None)

    def trained(self, parameters: Params) -> Params:
        return dict(parameters) if self.pixels is None else self.pixels.cut(parameters)

    def whole(self, parameters: Params) -> Params:
        all_of_them = parameters if self.pixels is None else self.pixels.widen(parameters)
        return {name: all_of_them[name] for name in self.start}  # JAX sorts 10 before 2

    def log_unit(self) -> float:
        return float(self.first["log_loss"])

    def smoothness(self) -> None:
        return None

    def predictor(self, parameters: Params) -> Array:
        raise ValueError(f"{self.who}: a net on images has no linear predictor")

    def meter(self, penalty: Any) -> ImageMeter:
        return ImageMeter(self, penalty)

    def describe(self) -> dict[str, Any]:
        images = self.problem
        problem = {
            "description": images.description,
            "recipe": images.recipe,
            "fingerprint": fingerprint(images),
        }
        return {"problem": problem, "model": self.model.describe()}

    def judged(self, part: Part, parameters: Params) -> Iterator[tuple[Any, Any]]:
        """Logarithms of the losses, and right answers, of the images of `part`, block by block."""
        count, done = len(part.labels), 0
        for begin in block_starts(count):
            size = min(BLOCK, count)
            logs, right = _judge()(self.objective, size, part, parameters, begin)
            yield np.asarray(logs)[done - begin :], np.asarray(right)[done - begin :]
            done = begin + size

    def _part(self, which: str) -> Part:
        """The images of training or testing on the device."""
        import jax.numpy as jnp

        images, model = self.problem, self.model
        dtype = net_of(model).dtype
        pixels = np.asarray(getattr(images, f"{which}_images"))
        weights = model.start(images)
        if which == "train" and self.pixels is not None:
            pixels = pixels.reshape(len(pixels), -1)[:, self.pixels.rows]
            weights = self.start
        inputs = jnp.asarray(pixels, dtype)
        labels = jnp.asarray(getattr(images, f"{which}_labels"), np.int32)
        if isinstance(model, LinearizedImageNet):
            origin = {name: jnp.asarray(part) for name, part in weights.items()}
            return Part(inputs, labels, None, Shared(origin))
        if isinstance(model, OutputLayer):
            inputs = outputs(Features(model.net.function), model.net.start(images), inputs)
        offsets = outputs(model.function, weights, inputs) if net_of(model).unbiased else None
        return Part(inputs, labels, offsets)


def net_of(model: ImageModel) -> ImageNet:
    """The net itself."""
    if isinstance(model, OutputLayer):
        return model.net
    return model.model if isinstance(model, LinearizedImageNet) else model


def fingerprint(images: Images) -> str:
    """A short text that other images or labels would change."""
    found = hashlib.sha256()
    for part in (images.train_images, images.train_labels, images.test_images, images.test_labels):
        found.update(f"{part.dtype} {part.shape}".encode())
        found.update(np.ascontiguousarray(part).data)
    return found.hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class Features:
    """What the last layer of a net sees, as a function of weights and images."""

    function: ImageFunction

    def __call__(self, params: Params, X: Any) -> Any:
        return self.function.features(params, X)


def outputs(function: Any, params: Params, X: Any) -> Any:
    """function(params, X), computed in blocks of rows."""
    import jax
    import jax.numpy as jnp

    size = min(BLOCK, len(X))
    width = jax.eval_shape(function, dict(params), X[:size]).shape[1]
    found = jnp.zeros((len(X), width), X.dtype)
    for begin in block_starts(len(X)):
        found = _filled()(found, dict(params), X, begin, function, size)
    return found


def block_starts(count: int) -> list[int]:
    """The first image of every block; the last block reaches back, so that all are full."""
    size = min(BLOCK, count)
    return [min(begin, count - size) for begin in range(0, count, size)]


@functools.cache
def _filled() -> Any:
    import jax

    # the array of all outputs is given away and written in place: it is there only once
    @functools.partial(jax.jit, static_argnums=(4, 5), donate_argnums=0)
    def filled(found: Any, params: Params, X: Any, begin: Any, function: Any, size: int) -> Any:
        block = jax.lax.dynamic_slice_in_dim(X, begin, size)
        return jax.lax.dynamic_update_slice_in_dim(found, function(params, block), begin, 0)

    return filled


@functools.cache
def _judge() -> Any:
    """A compiled (loss, size, part, parameters, first image) -> log losses and right answers."""
    import jax
    import jax.numpy as jnp

    @functools.partial(jax.jit, static_argnums=(0, 1))
    def judge(loss: ImageLoss, size: int, part: Part, parameters: Params, begin: Any) -> Any:
        block = per_sample(lambda a: jax.lax.dynamic_slice_in_dim(a, begin, size), part)
        found = loss.outputs(block, parameters)
        right = jnp.argmax(found, axis=1) == block.labels
        return log_cross_entropy(found.astype(jnp.float64), block.labels), right

    return judge
