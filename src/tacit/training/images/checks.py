"""What training on images can be given."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.models.image_net import ImageNet
from tacit.models.linearized import LinearizedImageNet
from tacit.models.output_layer import OutputLayer
from tacit.problems.images.arrays import Images

ImageModel = ImageNet | OutputLayer | LinearizedImageNet


def check_model(who: str, model: Any, images: Images) -> None:
    """A ValueError if `model` cannot be trained on `images`."""
    if not isinstance(model, ImageModel):
        raise ValueError(
            f"{who}: on Images the model must be a net on images, got {type(model).__name__}; use "
            "dense_net() or conv_net(), or Linearized or OutputLayer of one"
        )
    _sound(who, images)


def _sound(who: str, images: Images) -> None:
    """A ValueError for images or labels that a set made by hand may have."""
    for which in ("train", "test"):
        pixels, labels = getattr(images, f"{which}_images"), getattr(images, f"{which}_labels")
        if not len(labels) or len(pixels) != len(labels):
            raise ValueError(
                f"{who}: there must be as many {which} images as labels and at least one, got "
                f"{len(pixels)} and {len(labels)}"
            )
        if not np.isfinite(pixels).all():
            raise ValueError(f"{who}: {which} images must be finite, got one that is not")
        if not 0 <= labels.min() <= labels.max() < len(images.classes):
            raise ValueError(
                f"{who}: {which} labels must be between 0 and {len(images.classes) - 1}, got "
                f"{labels.min()} to {labels.max()}"
            )
