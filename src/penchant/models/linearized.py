"""Models linear in what is trained: expanded at the start, or their last layer."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.lazy import jax
from penchant.models.image_layers import ImageFunction, Params, name_of
from penchant.models.image_model import ImageModel
from penchant.models.model import Separable
from penchant.problems.images.load import Images
from penchant.records import Record

WHO = "linearize"


class Anchor(NamedTuple):
    """A start with the predictor and the slopes (copies x features) of the model there."""

    start: Array
    predictor: Array
    slopes: Array


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Linearized(Record, Separable):
    """beta(u) = beta(u0) + sum_k slope_k(u0) (u - u0)_k of `model`, from its own start u0.

    Training it is training with the tangent kernel of the start, held fixed (Moroshko et al. 2020,
    theorem 1).

    Parameters
    ----------
    model
        A model with a separable linear predictor, such as DiagonalNet.
    """

    called = WHO

    model: Separable

    homogeneity = None  # a constant start plus a linear change has no degree

    @property
    def copies(self) -> int:
        return self.model.copies

    @functools.cached_property
    def _anchors(self) -> dict[int, Anchor]:
        return {}

    def anchor(self, dimension: int) -> Anchor:
        """Where the model is expanded, for data with `dimension` features."""
        if dimension not in self._anchors:
            start = self.model.start(dimension)
            with np.errstate(over="ignore", invalid="ignore"):
                predictor, slopes = self.model.predictor(start), self.model.slopes(start)
            if not (np.isfinite(predictor).all() and np.isfinite(slopes).all()):
                raise ValueError(
                    f"{WHO}: the predictor or the slopes of this start are beyond float64 "
                    f"(largest parameter {np.abs(start).max():.3g}); take a smaller start"
                )
            self._anchors[dimension] = Anchor(start, predictor, slopes)
        return self._anchors[dimension]

    def start(self, dimension: int) -> Array:
        return self.anchor(dimension).start.copy()

    def predictor(self, parameters: Array) -> Array:
        anchor = self._anchor_of(parameters)
        return anchor.predictor + self._tilt(anchor, parameters - anchor.start)

    def change(self, start: Array, displacement: Array) -> Array:
        # the same from every point, so that nothing can cancel
        return self._tilt(self._anchor_of(start), displacement)

    def slopes(self, parameters: Array) -> Array:
        return self._anchor_of(parameters).slopes.copy()

    def bends(self, parameters: Array) -> Array:
        return np.zeros((self.copies, *self.table(parameters).shape))

    def _anchor_of(self, parameters: Array) -> Anchor:
        return self.anchor(self.table(parameters).shape[1])

    def _tilt(self, anchor: Anchor, displacement: Array) -> Array:
        return (anchor.slopes * self.table(displacement)).sum(axis=0)


@dataclasses.dataclass(frozen=True)
class LinearFunction:
    """f(u0, X) + J(u0, X) (u - u0), a function of u, X and u0; of a net `function`.

    An unbiased one has no f(u0, X).
    """

    function: ImageFunction
    unbiased: bool

    @property
    def convolutions(self) -> bool:
        return self.function.convolutions

    def __call__(self, params: Params, X: Any, origin: Params) -> Any:
        moved = jax.tree.map(lambda new, old: new - old, dict(params), dict(origin))
        value, change = jax.jvp(lambda at: self.function(at, X), (dict(origin),), (moved,))
        return change if self.unbiased else value + change


@dataclasses.dataclass(frozen=True, repr=False)
class LinearizedImageModel(Record):
    """A net on images, linearized in its weights at the start."""

    called = WHO

    model: ImageModel

    homogeneity = None  # a constant start plus a linear change has no degree

    @property
    def function(self) -> LinearFunction:
        """The outputs as a function of the weights, rows of images and the start."""
        return LinearFunction(self.model.function, self.model.unbiased)

    def start(self, images: Images) -> dict[str, Any]:
        """The first weights on these images, layer by layer."""
        return self.model.start(images)

    def logits(self, params: Params, X: Any, origin: Params) -> Any:
        """The outputs for rows of images, one column per class; a JAX function."""
        return self.function(params, X, origin)


@dataclasses.dataclass(frozen=True)
class LastLayer:
    """f(params, features): a dense layer on the outputs of the layers below it."""

    name: str
    convolutions = False

    def __call__(self, params: Params, features: Any) -> Any:
        return features @ params[self.name]


@dataclasses.dataclass(frozen=True, repr=False)
class OutputLayer(Record):
    """`net` with all layers but the last fixed at their start; only the last one is trained.

    Training computes the inputs of the last layer once and stores them, in float32 with 4 bytes per
    image and unit. `net.start(images) | parameters` are the weights of the whole net.

    Parameters
    ----------
    net
        A net on images, from `dense_net` or `conv_net`.

    Examples
    --------
    >>> import penchant
    >>> images = penchant.problems.load_images("digits", train=20, test=10)
    >>> model = penchant.models.OutputLayer(penchant.models.dense_net(widths=(5,)))
    >>> {name: part.shape for name, part in model.start(images).items()}
    {'layer 2': (5, 10)}
    """

    net: ImageModel

    def __post_init__(self) -> None:
        if not isinstance(self.net, ImageModel):
            raise ValueError(
                f"OutputLayer: the net must be one on images, got {type(self.net).__name__}; use "
                "dense_net() or conv_net()"
            )

    homogeneity = 1

    @property
    def function(self) -> LastLayer:
        """The outputs as a function of the parameters and of the inputs of the last layer."""
        return LastLayer(name_of(self.net.homogeneity))

    def start(self, images: Images) -> dict[str, Any]:
        """The first weights of the last layer."""
        name = self.function.name
        return {name: self.net.start(images)[name]}
