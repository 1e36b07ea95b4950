"""The digits inside scikit-learn, split the same way everywhere."""

from __future__ import annotations

import numpy as np

from tacit.problems.images.catalogue import DIGITS, PARTS, Arrays
from tacit.problems.images.checksums import complaint


def read(who: str) -> Arrays:
    """The arrays of the digits, their checksums verified.

    They come without a split; here the last 360 are for testing. Neighbours in the file resemble
    each other, so that this is harder than a random split: the nearest neighbour errs on 4.4% of
    the test images instead of about 1.1%.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ImportError(
            f"{who}: the digits come inside scikit-learn, which is not installed; "
            "pip install 'tacit[data]'"
        ) from None
    found = load_digits()
    images, labels = found.images.astype(np.uint8)[..., None], found.target.astype(np.uint8)
    train = DIGITS.counts[0]
    arrays = dict(
        zip(PARTS, (images[:train], labels[:train], images[train:], labels[train:]), strict=True)
    )
    if wrong := complaint(DIGITS, arrays):
        raise ValueError(f"{who}: the digits of this scikit-learn are not the known ones ({wrong})")
    return arrays
