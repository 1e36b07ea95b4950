"""A net on images of which only the last layer is trained: a kernel machine on random features."""

from __future__ import annotations

import dataclasses
from typing import Any

from tacit.models.image_layers import Params, name_of
from tacit.models.image_net import ImageNet
from tacit.problems.images.arrays import Images
from tacit.records import Record

WHO = "OutputLayer"


@dataclasses.dataclass(frozen=True)
class LastLayer:
    """f(params, features): a dense layer on what the layers below made of the images."""

    name: str
    convolutions = False

    def __call__(self, params: Params, features: Any) -> Any:
        return features @ params[self.name]


@dataclasses.dataclass(frozen=True, repr=False)
class OutputLayer(Record):
    """`net` with all layers but the last held at their start; the last one is the parameters.

    Training computes what the last layer sees once and keeps it, for float32 4 bytes per image
    and unit. `net.start(images) | parameters` are the weights of the whole net.

    Parameters
    ----------
    net
        A net on images, from `dense_net` or `conv_net`.

    Examples
    --------
    >>> import tacit
    >>> images = tacit.load_images("digits", train=20, test=10)
    >>> model = tacit.OutputLayer(tacit.dense_net(widths=(5,)))
    >>> {name: part.shape for name, part in model.start(images).items()}
    {'layer 2': (5, 10)}
    """

    net: ImageNet

    def __post_init__(self) -> None:
        if not isinstance(self.net, ImageNet):
            raise ValueError(
                f"{WHO}: the net must be one on images, got {type(self.net).__name__}; use "
                "dense_net() or conv_net()"
            )

    @property
    def homogeneity(self) -> int:
        """1: outputs are linear in the last layer."""
        return 1

    @property
    def function(self) -> LastLayer:
        """The outputs as a function of the parameters and of what the last layer sees."""
        return LastLayer(name_of(self.net.homogeneity))

    def start(self, images: Images) -> dict[str, Any]:
        """The first weights of the last layer."""
        name = self.function.name
        return {name: self.net.start(images)[name]}

    def describe(self) -> dict[str, Any]:
        return {"model": WHO, "of": self.net.describe()}
