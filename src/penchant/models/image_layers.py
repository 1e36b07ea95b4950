"""What nets on images compute: dense layers or 3x3 convolutions, ReLUs and poolings, no biases."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

from penchant.door import Invalid
from penchant.lazy import jax

Params = dict[str, Any]
POOL, LAST = "M", "FC"
WAYS = "write numbers of channels, M for pooling and FC at the end, such as 64-M-128-M-FC"


def name_of(layer: int) -> str:
    """What the weights of a layer are called; the first is 1."""
    return f"layer {layer}"


def number_of(name: str) -> int:
    """Which layer the weights of this name belong to."""
    return int(name.split()[-1])


def in_order(params: Params) -> Params:
    """The same weights, first layer first: JAX sorts by name, and then 10 comes before 2."""
    return {name_of(k + 1): params[name_of(k + 1)] for k in range(len(params))}


@dataclasses.dataclass(frozen=True)
class ImageFunction:
    """f(params, X): the outputs of a net, one row per image and one column per class.

    `plan` lists the units or channels of the hidden layers, "M" where 2x2 maxima are taken, and
    ends with "FC", the dense layer to the classes. Weights have their outputs as the last axis,
    those of convolutions before it height, width and channel. Equal plans are equal, so that what
    is compiled for one net serves every start.
    """

    plan: tuple[int | str, ...]
    convolutions: bool

    @property
    def depth(self) -> int:
        """The number of weight layers."""
        return sum(part != POOL for part in self.plan)

    def shapes(self, image: tuple[int, ...], classes: int) -> list[tuple[int, ...]]:
        """The shapes of the weights of every layer for images of this shape."""
        if not self.convolutions:
            sizes = [math.prod(image), *(int(units) for units in self.plan[:-1]), classes]
            return list(itertools.pairwise(sizes))
        height, width, channels = _grid(image)
        shapes: list[tuple[int, ...]] = []
        for part in self.plan[:-1]:
            if part == POOL:
                height, width = _pooled(self.plan, image, height, width)
            else:
                shapes.append((3, 3, channels, int(part)))
                channels = int(part)
        return [*shapes, (height * width * channels, classes)]

    def __call__(self, params: Params, X: Any) -> Any:
        return self.features(params, X) @ params[name_of(self.depth)]

    def features(self, params: Params, X: Any) -> Any:
        """What the last layer sees, one row per image."""
        x = X if self.convolutions else X.reshape(len(X), -1)
        layer = 0
        for part in self.plan[:-1]:
            if part == POOL:
                x = maxima(x)
            else:
                layer += 1
                weights = params[name_of(layer)]
                x = jax.nn.relu(convolved(x, weights) if self.convolutions else x @ weights)
        return x.reshape(len(x), -1)


def convolved(x: Any, weights: Any) -> Any:
    """3x3 cross-correlations over images with a margin of zeros, so that their size stays."""
    axes = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, weights, (1, 1), "SAME", dimension_numbers=axes)


def maxima(x: Any) -> Any:
    """The largest of every 2x2 pixels; an odd last row or column is left out.

    Equal largest ones share the gradient.
    """
    count, height, width, channels = x.shape
    even = x[:, : height // 2 * 2, : width // 2 * 2]
    return even.reshape(count, height // 2, 2, width // 2, 2, channels).max((2, 4))


def read_plan(text: object, slimmer: int) -> tuple[int | str, ...]:
    """The parts of a plan such as "64-M-128-M-FC", with 1/slimmer of its channels."""
    if not isinstance(text, str):
        raise Invalid(f"plan must be a text, got {text!r}; {WAYS}")
    parts = text.replace(" ", "").upper().split("-")
    for part in parts:
        known = part in (POOL, LAST) or (part.isascii() and part.isdigit() and int(part) > 0)
        if not known:
            raise Invalid(f"plan must not contain {part!r}, got {text!r}; {WAYS}")
    if parts[-1] != LAST or parts.count(LAST) != 1:
        raise Invalid(f"plan must have one FC, at its end, got {text!r}; {WAYS}")
    uneven = [part for part in parts if part.isdigit() and int(part) % slimmer]
    if uneven:
        raise Invalid(
            f"slimmer must divide every number of channels, got {slimmer} for {uneven[0]}"
        )
    return tuple(int(part) // slimmer if part.isdigit() else part for part in parts)


def _grid(image: tuple[int, ...]) -> tuple[int, int, int]:
    if len(image) != 3:
        raise Invalid(
            f"convolutions need images of height x width x channels, got the shape "
            f"{image}; load them with flat=False"
        )
    return image


def _pooled(
    plan: tuple[int | str, ...], image: tuple[int, ...], height: int, width: int
) -> tuple[int, int]:
    if min(height, width) < 2:
        raise Invalid(
            f"images of {image[0]}x{image[1]} pixels are too small for "
            f"{plan.count(POOL)} poolings, each of which halves them; take {POOL}s out of the plan"
        )
    return height // 2, width // 2
