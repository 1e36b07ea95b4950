"""ReLU nets on images, dense or convolutional, without biases.

They are the nets of Woodworth et al. 2020, appendix B.2.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import integer, log_scale, one_of
from penchant.description import with_recipe
from penchant.door import Invalid, door, door_as
from penchant.models.image_layers import LAST, ImageFunction, Params, in_order, name_of, read_plan
from penchant.models.relu_nets import STARTS, he_weights, layer_factors
from penchant.precision import DTYPES
from penchant.problems.images.load import Images
from penchant.records import Record

VGG = "64-M-128-M-256-256-M-512-512-M-512-M-FC"
LARGEST = {"single": 1e30, "double": 1e300}  # what a type can hold with room for the weights


@dataclasses.dataclass(frozen=True, repr=False)
class ImageModel(Record):
    """A net on images and where it starts: alpha times weights of variance 2/inputs.

    `dense_net` and `conv_net` make one.

    Parameters
    ----------
    name
        The name of the net.
    function
        What it computes.
    alpha
        The scale of the start.
    drawn
        How the weights of the start are distributed.
    seed
        The seed of all random numbers.
    layers
        A factor per layer.
    unbiased
        The outputs of the start are subtracted, so that the net begins at zero.
    precision
        Training is in "single" or "double" precision.

    Examples
    --------
    >>> import penchant
    >>> net = penchant.models.dense_net(widths=(5,), alpha=2.0)
    >>> net.alpha, net.homogeneity, net.unbiased
    (2.0, 2, False)
    """

    name: str
    function: ImageFunction
    _: dataclasses.KW_ONLY
    alpha: float
    drawn: str
    seed: int
    layers: tuple[float, ...]
    unbiased: bool
    precision: str = "single"

    @property
    def homogeneity(self) -> int:
        """The number of weight layers: c times the weights give c to this power the outputs."""
        return self.function.depth

    @property
    def dtype(self) -> Any:
        """The type of the weights."""
        return DTYPES[self.precision]

    @door_as(lambda model: model.name)
    def start(self, images: Images) -> dict[str, NDArray[Any]]:
        """The first weights on these images, layer by layer."""
        if not isinstance(images, Images):
            raise Invalid(
                f"the problem must be Images, got {type(images).__name__}; use load_images()"
            )
        pixels, classes = images.train_images.shape[1:], len(images.classes)
        return dict(_start(self, tuple(self.function.shapes(pixels, classes))))

    def logits(self, params: Params, X: Any, origin: Params | None = None) -> Any:
        """The outputs for rows of images, one column per class; a JAX function.

        An unbiased net subtracts those at `origin`, its start, which it draws anew if none is
        given; a compiled function then holds it as a constant.
        """
        outputs = self.function(params, X)
        if not self.unbiased:
            return outputs
        if origin is None:
            origin = _start(self, tuple(part.shape for part in in_order(params).values()))
        return outputs - self.function(origin, X)


@with_recipe
@door
def dense_net(
    widths: Sequence[int] = (5000,),
    *,
    alpha: float | None = None,
    log_alpha: float | None = None,
    start: str = "gaussian",
    seed: int = 0,
    layers: Sequence[float] | None = None,
    unbiased: bool = False,
    precision: str = "single",
) -> ImageModel:
    """A fully connected ReLU net on images as vectors, with one output per class.

    It starts from alpha times weights of variance 2/inputs of their layer.

    Parameters
    ----------
    widths
        The units of its hidden layers.
    alpha
        The scale of the start, 1 if not given.
    log_alpha
        Its natural logarithm, instead of alpha.
    start
        Gaussian ("gaussian") or uniform ("he_uniform") weights.
    seed
        The seed of all random numbers.
    layers
        An additional factor for each layer.
    unbiased
        Subtracts the outputs of the start.
    precision
        Training is in "single" or "double" precision.

    Returns
    -------
    ImageModel
        The net.

    Examples
    --------
    >>> import penchant
    >>> images = penchant.problems.load_images("digits", train=20, test=10)
    >>> start = penchant.models.dense_net(widths=(5, 4), alpha=2.0).start(images)
    >>> [weights.shape for weights in start.values()]
    [(64, 5), (5, 4), (4, 10)]
    """
    sizes: list[Any] = [widths] if np.ndim(widths) == 0 else list(widths)
    plan: tuple[int | str, ...] = (
        *(integer("widths", units, least=1) for units in sizes),
        LAST,
    )
    function = ImageFunction(plan, convolutions=False)
    return _net("dense_net", function, alpha, log_alpha, start, seed, layers, unbiased, precision)


@with_recipe
@door
@door
def conv_net(
    plan: str = VGG,
    *,
    alpha: float | None = None,
    log_alpha: float | None = None,
    start: str = "he_uniform",
    seed: int = 0,
    layers: Sequence[float] | None = None,
    unbiased: bool = False,
    slimmer: int = 1,
    precision: str = "single",
) -> ImageModel:
    """A convolutional ReLU net on images, with one output per class.

    It starts like `dense_net`; a convolution has 9 inputs per channel.

    Parameters
    ----------
    plan
        A number stands for a 3x3 convolution with so many channels, followed by a ReLU, M for
        2x2 max-pooling and FC for the dense layer at the end.
    alpha
        The scale of the start, 1 if not given.
    log_alpha
        Its natural logarithm, instead of alpha.
    start
        Uniform ("he_uniform") or Gaussian ("gaussian") weights.
    seed
        The seed of all random numbers.
    layers
        An additional factor for each layer.
    unbiased
        Subtracts the outputs of the start.
    slimmer
        Divides the numbers of channels.
    precision
        Training is in "single" or "double" precision.

    Returns
    -------
    ImageModel
        The net.

    Examples
    --------
    >>> import penchant
    >>> images = penchant.problems.load_images("digits", train=20, test=10)
    >>> start = penchant.models.conv_net(plan="4-M-FC", alpha=1.0).start(images)
    >>> [weights.shape for weights in start.values()]
    [(3, 3, 1, 4), (64, 10)]
    """
    parts = read_plan(plan, integer("slimmer", slimmer, least=1))
    function = ImageFunction(parts, convolutions=True)
    return _net("conv_net", function, alpha, log_alpha, start, seed, layers, unbiased, precision)


def _net(
    name: str,
    function: ImageFunction,
    alpha: float | None,
    log_alpha: float | None,
    start: str,
    seed: int,
    layers: Sequence[float] | None,
    unbiased: bool,
    precision: str,
) -> ImageModel:
    one_of("start", start, STARTS)
    largest = LARGEST[one_of("precision", precision, DTYPES)]
    seed = integer("seed", seed, least=0)
    given = 1.0 if alpha is None and log_alpha is None else alpha
    log_scaled = log_scale(function.depth, given, log_alpha)
    factors = layer_factors(function.depth, layers)
    for factor in factors:
        size = log_scaled + math.log(factor)
        if abs(size) > math.log(largest):
            raise Invalid(
                f"alpha must be between {1 / largest:g} and {largest:g}, or "
                f"{np.dtype(DTYPES[precision]).name} cannot hold the weights, got "
                f"exp({size:.4g}) in a layer"
            )
    scale = math.exp(log_scaled) if log_alpha is not None else float(given or 1.0)
    return ImageModel(
        name,
        function,
        alpha=scale,
        drawn=start,
        seed=seed,
        layers=factors,
        unbiased=bool(unbiased),
        precision=precision,
    )


@functools.lru_cache(maxsize=4)
def _start(net: ImageModel, shapes: tuple[tuple[int, ...], ...]) -> dict[str, NDArray[Any]]:
    """The weights that a net starts from, read-only."""
    rng = np.random.default_rng(net.seed)
    weights = {}
    for layer, (shape, factor) in enumerate(zip(shapes, net.layers, strict=True), 1):
        drawn = he_weights(rng, net.drawn, math.prod(shape[:-1]), shape)
        weights[name_of(layer)] = (net.alpha * factor * drawn).astype(net.dtype)
        weights[name_of(layer)].setflags(write=False)
    return weights
