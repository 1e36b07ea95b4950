"""The cross-entropy of a net on images, and its outputs and errors block by block."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tacit.lazy import jax, jnp
from tacit.models.image_layers import ImageFunction, Params
from tacit.training.cross_entropy import cross_entropy, log_cross_entropy
from tacit.training.descent.batches import Shared, per_sample
from tacit.training.descent.method import Objective

BLOCK = 500  # images that pass the net at once outside training


class Part(NamedTuple):
    """The images of training or testing: inputs, labels and the outputs to be subtracted.

    A linearized net has its `origin` instead of these, the weights it is linearized at.
    """

    inputs: Any
    labels: Any
    offsets: Any
    origin: Shared | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class ImageLoss(Objective):
    """The mean cross-entropy of a net; equal functions share what is compiled."""

    function: Any

    @property
    def key(self) -> Any:
        return self.function

    def outputs(self, data: Part, parameters: Params) -> Any:
        found = self.function(parameters, data.inputs, *(data.origin or ()))
        return found if data.offsets is None else found - data.offsets

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
    """What the last layer of a net sees, as a function of weights and images."""

    function: ImageFunction

    def __call__(self, params: Params, X: Any) -> Any:
        return self.function.features(params, X)


def outputs(function: Any, params: Params, X: Any) -> Any:
    """function(params, X), computed in blocks of rows."""
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
    # the array of all outputs is given away and written in place: it is there only once
    @functools.partial(jax.jit, static_argnums=(4, 5), donate_argnums=0)
    def filled(found: Any, params: Params, X: Any, begin: Any, function: Any, size: int) -> Any:
        block = jax.lax.dynamic_slice_in_dim(X, begin, size)
        return jax.lax.dynamic_update_slice_in_dim(found, function(params, block), begin, 0)

    return filled


@functools.cache
def _judge() -> Any:
    """A compiled (loss, size, part, parameters, first image) -> log losses and right answers."""

    @functools.partial(jax.jit, static_argnums=(0, 1))
    def judge(loss: ImageLoss, size: int, part: Part, parameters: Params, begin: Any) -> Any:
        block = per_sample(lambda a: jax.lax.dynamic_slice_in_dim(a, begin, size), part)
        found = loss.outputs(block, parameters)
        right = jnp.argmax(found, axis=1) == block.labels
        return log_cross_entropy(found.astype(jnp.float64), block.labels), right

    return judge
