"""What training on images can be given."""

from __future__ import annotations

import numpy as np

from tacit.models.image_net import ImageNet
from tacit.problems.images.arrays import Images


def check_problem(who: str, net: object, images: object, batch: int) -> None:
    """A ValueError if `net` cannot be trained on `images`."""
    if not isinstance(net, ImageNet):
        raise ValueError(
            f"{who}: the model must be an ImageNet, got {type(net).__name__}; use dense_net() or "
            "conv_net()"
        )
    if not isinstance(images, Images):
        raise ValueError(
            f"{who}: the problem must be Images, got {type(images).__name__}; use load_images()"
        )
    if batch > len(images.train_labels):
        raise ValueError(
            f"{who}: batch must be at most {len(images.train_labels)}, the training images there "
            f"are, got {batch}"
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
