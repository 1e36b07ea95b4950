"""The known image sets: their sizes, classes, checksums and sources."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import one_of
from penchant.problems.images.formats import IDX, KERAS, PARTS, RECORDS, STORED, Layout

Bytes = NDArray[np.uint8]
Arrays = dict[str, Bytes]


@dataclasses.dataclass(frozen=True)
class Published:
    """A published file: its name at the end of every mirror's address, md5 and size in bytes."""

    name: str
    md5: str
    bytes: int


@dataclasses.dataclass(frozen=True)
class ImageSet:
    """One image set; `checksums` are the sha256 of the bytes of its four arrays, in `PARTS`."""

    name: str
    title: str
    credit: str
    counts: tuple[int, int]  # training and test images
    shape: tuple[int, int, int]  # height, width, channels
    white: int  # the number that stands for full brightness
    classes: tuple[str, ...]
    checksums: tuple[str, str, str, str]
    layouts: tuple[Layout, ...] = ()
    mirrors: tuple[str, ...] = ()  # addresses of folders; the first one that answers is taken
    files: tuple[Published, ...] = ()
    compress: bool = True  # photographs shrink by 8% only, and then load ten times slower

    @property
    def built_in(self) -> bool:
        """Whether it comes inside scikit-learn."""
        return not self.files


_DIGITS = tuple("0123456789")
_CLOTHES = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
_THINGS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

MNIST = ImageSet(
    "mnist",
    "handwritten digits, MNIST",
    "LeCun et al. 1998",
    (60000, 10000),
    (28, 28, 1),
    255,
    _DIGITS,
    (
        "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
        "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
        "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
        "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
    ),
    (IDX, KERAS, STORED),
    (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    (
        Published("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
        Published("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432", 28_881),
        Published("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3", 1_648_877),
        Published("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c", 4_542),
    ),
)
FASHION = ImageSet(
    "fashion-mnist",
    "pictures of clothes, Fashion-MNIST",
    "Xiao et al. 2017",
    (60000, 10000),
    (28, 28, 1),
    255,
    _CLOTHES,
    (
        "2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012",
        "657fbd221bfc9f4198cc14b5619cc33ec57c58dd0e47af4d99d6650759e869a7",
        "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
        "3d0e6c6ea990b53b6f8f500a41cac93881d981b315f84578b7d915342ade01e9",
    ),
    (IDX, KERAS, STORED),
    (
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ),
    (
        Published("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
        Published("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe", 29_515),
        Published("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79", 4_422_102),
        Published("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310", 5_148),
    ),
)
CIFAR10 = ImageSet(
    "cifar10",
    "small photographs, CIFAR-10",
    "Krizhevsky 2009",
    (50000, 10000),
    (32, 32, 3),
    255,
    _THINGS,
    (
        "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
        "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
        "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
        "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
    ),
    (RECORDS, STORED),
    ("https://www.cs.toronto.edu/~kriz/",),
    (Published("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", 170_052_171),),
    compress=False,
)
DIGITS = ImageSet(
    "digits",
    "small handwritten digits",
    "Alpaydin and Kaynak 1998",
    (1437, 360),
    (8, 8, 1),
    16,
    _DIGITS,
    (
        "b284d50d1ff250076877f9fa076dc54f7a48937f997c4571de6cae27017f4f99",
        "00d355536cfe54c3c5aaa1bbc756008bcc5ba7030407f225954ebda1d1ca46c9",
        "cfff6ae4478611800cb91b9d2c5ae329e83dec33ba4d539ec56620f0182f6b56",
        "7a7a9acee298b8862700d7c2a0341a0ee3744e1369c9107a26149f5d0e61b304",
    ),
)

CATALOGUE = {images.name: images for images in (MNIST, FASHION, CIFAR10, DIGITS)}


def find(name: str) -> ImageSet:
    """The image set called `name`, however it is written: `CIFAR-10` is `cifar10`."""
    plain = {_plain(known): known for known in CATALOGUE}
    spelled = plain.get(_plain(str(name)))
    return CATALOGUE[spelled or one_of("image set", str(name), CATALOGUE)]


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def checksum(array: Bytes) -> str:
    """The sha256 of the bytes of an array, rows first."""
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def complaint(images: ImageSet, arrays: Mapping[str, Bytes]) -> str:
    """What is wrong with the arrays of a set, as the end of a sentence; empty if they are right."""
    seen = {part: checksum(arrays[part]) for part in PARTS}
    expected = dict(zip(PARTS, images.checksums, strict=True))
    for part in PARTS:
        if seen[part] != expected[part]:
            return (
                f"{part} have the sha256 {seen[part][:12]}… instead of {expected[part][:12]}…"
                f"{_another(images, seen)}"
            )
        if arrays[part].dtype != np.uint8 or arrays[part].shape != _shapes(images)[part]:
            return f"{part} have the shape {arrays[part].shape}, not {_shapes(images)[part]}"
    return ""


def _shapes(images: ImageSet) -> dict[str, tuple[int, ...]]:
    train, test = images.counts
    shapes = ((train, *images.shape), (train,), (test, *images.shape), (test,))
    return dict(zip(PARTS, shapes, strict=True))


def _another(images: ImageSet, seen: Mapping[str, str]) -> str:
    """A hint if these are the arrays of another set: two of them share their file names."""
    same = [known.name for known in CATALOGUE.values() if known.checksums == tuple(seen.values())]
    return f": these are the images of {same[0]}" if same and same[0] != images.name else ""
