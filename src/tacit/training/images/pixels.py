"""Pixels that are black in every training image, and the weights at them, left out of training.

Such a weight has no part in any output on training images and a gradient of exactly zero, so that
SGD, momentum and Adam all leave it where it started; 67 of the 784 pixels of MNIST are such. On
test images it counts, and it is put back. With a penalty or weight decay it would move, and a
method whose steps depend on all parameters at once would feel it: then it is not left out.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.models.image_layers import Params, name_of

FIRST = name_of(1)


@dataclasses.dataclass(frozen=True, eq=False)
class LivePixels:
    """The pixels that are seen in training, and the first weights at all pixels."""

    rows: NDArray[np.intp]
    start: Any

    def cut(self, params: Params) -> Params:
        """The weights at the live pixels only."""
        return params | {FIRST: params[FIRST][self.rows]}

    def widen(self, params: Params) -> Params:
        """The weights at all pixels from those at the live ones."""
        whole = np.array(self.start)
        whole[self.rows] = params[FIRST]
        return params | {FIRST: whole}


def live_pixels(images: NDArray[Any], start: Params) -> LivePixels | None:
    """The pixels that some training image has; None if those are all, or none."""
    rows = np.flatnonzero(images.reshape(len(images), -1).any(axis=0))
    return LivePixels(rows, start[FIRST]) if 0 < len(rows) < len(start[FIRST]) else None
