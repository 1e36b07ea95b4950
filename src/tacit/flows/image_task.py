"""What is trained on images: the arrays on the device, the trained weights and the others."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.flows.image_pixels import LivePixels, live_pixels
from tacit.models.image_layers import LAST, ImageFunction, Params, in_order, name_of
from tacit.models.image_net import ImageNet
from tacit.problems.images.arrays import Images

DTYPES: dict[str, Any] = {"single": np.float32, "double": np.float64}
BLOCK = 500  # images that pass the net at once outside training
OUTPUT = ImageFunction((LAST,), convolutions=False)  # a last layer on ready features


class Part(NamedTuple):
    """Inputs, labels and the outputs to be subtracted, for the images of training or testing."""

    inputs: Any
    labels: Any
    offsets: Any


@dataclasses.dataclass(frozen=True, eq=False)
class ImageTask:
    """A function of the trained weights and of inputs, with the inputs.

    If only the output layer is trained, the inputs are what it sees, and `below` are the layers
    that stay. If there are `pixels`, training inputs have only these, and test inputs all.
    """

    function: ImageFunction
    origin: Params
    below: Params
    pixels: LivePixels | None
    train: Part
    test: Part

    def wide(self, params: Params) -> Params:
        """The weights for test inputs from those for training inputs."""
        return params if self.pixels is None else self.pixels.widen(params)

    def whole(self, params: Params) -> dict[str, NDArray[Any]]:
        """The weights of the whole net from the trained ones."""
        parts = [*self.below.values(), *in_order(self.wide(params)).values()]
        return {name_of(k): np.asarray(part) for k, part in enumerate(parts, 1)}

    def trained(self, params: Params) -> Params:
        """The trained ones of the weights of the whole net."""
        kept = list(in_order(params).values())[len(self.below) :]
        wide = _on_device(dict(zip(self.origin, kept, strict=True)), None)
        return wide if self.pixels is None else self.pixels.cut(wide)


def make_task(net: ImageNet, images: Images, part: str, dtype: Any) -> ImageTask:
    """The training of all layers of `net`, or of the "output" layer only."""
    start = _on_device(net.start(images), dtype)
    if part == "output":
        return _output_task(net, images, start, dtype)
    dense = not net.function.convolutions
    pixels = live_pixels(images.train_images, start) if dense else None
    train, origin = images.train_images, start
    if pixels is not None:
        train, origin = train.reshape(len(train), -1)[:, pixels.rows], pixels.cut(start)
    parts = _parts(net, net.function, images, (train, images.test_images), start, origin, dtype)
    return ImageTask(net.function, origin, {}, pixels, *parts)


def _output_task(net: ImageNet, images: Images, start: Params, dtype: Any) -> ImageTask:
    import jax.numpy as jnp

    last = name_of(net.homogeneity)
    below = {name: start[name] for name in start if name != last}
    seen = [features(net.function, start, jnp.asarray(X, dtype))
            for X in (images.train_images, images.test_images)]  # fmt: skip
    origin = {name_of(1): start[last]}
    parts = _parts(net, OUTPUT, images, seen, origin, origin, dtype)
    return ImageTask(OUTPUT, origin, below, None, *parts)


def _parts(
    net: ImageNet,
    function: ImageFunction,
    images: Images,
    sets: Sequence[Any],
    wide: Params,
    origin: Params,
    dtype: Any,
) -> list[Part]:
    """The inputs of training and testing on the device, with labels and offsets."""
    import jax.numpy as jnp

    inputs = [jnp.asarray(X, dtype) for X in sets]
    labels = images.train_labels, images.test_labels
    return [
        Part(X, jnp.asarray(y, np.int32), _offsets(net, function, start, X))
        for X, y, start in zip(inputs, labels, (origin, wide), strict=True)
    ]


def features(function: ImageFunction, params: Params, X: Any) -> Any:
    """What the last layer sees of all images, computed in blocks."""
    import jax
    import jax.numpy as jnp

    size = block_size(len(X))
    width = jax.eval_shape(function.features, params, X[:size]).shape[1]
    found = jnp.zeros((len(X), width), X.dtype)
    for begin in block_starts(len(X)):
        found = _filled()(found, params, X, begin, function, size)
    return found


def block_size(count: int) -> int:
    """How many of `count` images pass the net at once."""
    return min(BLOCK, count)


def block_starts(count: int) -> list[int]:
    """The first image of every block; the last block reaches back, so that all are full."""
    size = block_size(count)
    return [min(begin, count - size) for begin in range(0, count, size)]


@functools.cache
def _filled() -> Any:
    import jax

    # the array of all features is given away and written in place: it is there only once
    @functools.partial(jax.jit, static_argnums=(4, 5), donate_argnums=0)
    def filled(found: Any, params: Params, X: Any, begin: Any, function: Any, size: int) -> Any:
        block = jax.lax.dynamic_slice_in_dim(X, begin, size)
        return jax.lax.dynamic_update_slice_in_dim(
            found, function.features(params, block), begin, 0
        )

    return filled


@functools.cache
def looker() -> Any:
    """A compiled function (f, size, parameters of f ..., inputs, first image) -> outputs."""
    import jax

    @functools.partial(jax.jit, static_argnums=(0, 1))
    def look(function: Any, size: int, weights: tuple[Params, ...], X: Any, begin: Any) -> Any:
        return function(*weights, jax.lax.dynamic_slice_in_dim(X, begin, size))

    return look


def _offsets(net: ImageNet, function: ImageFunction, origin: Params, X: Any) -> Any:
    """The outputs of the start for an unbiased net, and zeros for another."""
    import jax
    import jax.numpy as jnp

    size = block_size(len(X))
    classes = jax.eval_shape(function, origin, X[:size]).shape[1]
    found = np.zeros((len(X), classes), X.dtype)
    for begin in block_starts(len(X)) if net.unbiased else ():
        found[begin : begin + size] = looker()(function, size, (origin,), X, begin)
    return jnp.asarray(found)


def _on_device(params: Params, dtype: Any) -> Params:
    import jax.numpy as jnp

    return {name: jnp.asarray(part, dtype) for name, part in params.items()}
