"""Where the training of a net on images went, on disk and back, and whether it may go on."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import zipfile
import zlib
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.flows.image_measures import labelled
from tacit.flows.resume import check_same
from tacit.models.image_layers import in_order
from tacit.problems.images.arrays import Images
from tacit.records import Kind, Outcome, Record
from tacit.store import whole

FREE = ("epochs", "record", "until", "until_loss")  # what a resumed run may change
MARK, VERSION = "tacit_image_path", 1
LOADER = "load_image_path"
_DAMAGED = (zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError, NotImplementedError,
            TypeError, AttributeError)  # fmt: skip
Weights = dict[str, NDArray[Any]]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class ImagePath(Record):
    """Where training went; `dataset` holds what was recorded, `params` are the last weights.

    `twin` are those of the linearized twin, if there was one. With `kept`, what the optimizers
    remember, training can be resumed; `save` and `load_image_path` keep all of it in a file.
    """

    outcome: Outcome
    epochs: int
    params: Weights = dataclasses.field(repr=False)
    twin: Weights | None = dataclasses.field(repr=False)
    kept: dict[str, tuple[NDArray[Any], ...]] = dataclasses.field(repr=False)
    dataset: Any = dataclasses.field(repr=False)

    def save(self, file: str | os.PathLike[str]) -> FilePath:
        """Write everything to `file`, an .npz, and return its path.

        The file appears whole or not at all: it is written beside its destination and then moved
        there, so that a failure leaves an older file as it was.
        """
        savez: Any = np.savez
        with whole("ImagePath.save", file) as draft, open(draft, "wb") as stream:
            savez(stream, **_packed(self))
        return FilePath(file)


def load_image_path(file: str | os.PathLike[str]) -> ImagePath:
    """The ImagePath that `save` wrote to `file`."""
    target = FilePath(file)
    if not target.exists():
        raise FileNotFoundError(f"{LOADER}: there is no file {target}")
    if target.is_dir():
        raise ValueError(f"{LOADER}: {target} is a folder; give the name of a file")
    if not zipfile.is_zipfile(target):
        raise ValueError(f"{LOADER}: {target} is cut short or no file of ImagePath.save")
    try:
        with np.load(target, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(arrays.pop("header").item())
        if header[MARK] != VERSION:
            raise ValueError(f"its format is {header[MARK]}, not {VERSION}")
        return _unpacked(header, arrays)
    except _DAMAGED as reason:
        said = str(reason).splitlines()[0] if str(reason) else type(reason).__name__
        raise ValueError(
            f"{LOADER}: {target} is damaged or no file of ImagePath.save ({said})"
        ) from None


def _packed(path: ImagePath) -> dict[str, NDArray[Any]]:
    """All of a path as named arrays; what is no array is JSON in `header`."""
    header = {MARK: VERSION, "kind": path.outcome.kind.value, "sentence": path.outcome.sentence,
              "epochs": path.epochs, "attrs": path.dataset.attrs,
              "kept": {name: len(leaves) for name, leaves in path.kept.items()}}  # fmt: skip
    arrays = {"header": np.array(json.dumps(header))}
    arrays |= {f"params/{name}": part for name, part in path.params.items()}
    arrays |= {f"twin/{name}": part for name, part in (path.twin or {}).items()}
    for name, leaves in path.kept.items():
        arrays |= {f"kept {name}/{k}": leaf for k, leaf in enumerate(leaves)}
    recorded = {name: variable.values for name, variable in path.dataset.variables.items()}
    return arrays | {f"dataset/{name}": part for name, part in recorded.items() if name != "layer"}


def _unpacked(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ImagePath:
    """The path as it was before `_packed`."""

    def part(name: str) -> dict[str, NDArray[Any]]:
        begin = f"{name}/"
        return {key[len(begin) :]: x for key, x in arrays.items() if key.startswith(begin)}

    kept = {
        name: tuple(arrays[f"kept {name}/{k}"] for k in range(count))
        for name, count in header["kept"].items()
    }
    outcome = Outcome(Kind(header["kind"]), header["sentence"])
    dataset = labelled(part("dataset")).assign_attrs(header["attrs"])
    twin = in_order(part("twin")) or None
    return ImagePath(outcome, header["epochs"], in_order(part("params")), twin, kept, dataset)


def fingerprint(images: Images) -> str:
    """A short text that other images or labels would change."""
    found = hashlib.sha256()
    for part in (images.train_images, images.train_labels, images.test_images, images.test_labels):
        found.update(f"{part.dtype} {part.shape}".encode())
        found.update(np.ascontiguousarray(part).data)
    return found.hexdigest()[:16]


def check_resume(who: str, path: object, told: dict[str, Any], epochs: int) -> None:
    """A ValueError if `path` is not the beginning of the run `told`."""
    if not isinstance(path, ImagePath):
        raise ValueError(
            f"{who}: resume must be an ImagePath, got {type(path).__name__}; use the result of "
            f"run() or {LOADER}(file)"
        )
    check_same(who, path.dataset, told, FREE)
    if epochs <= path.epochs:
        raise ValueError(
            f"{who}: resume has had {path.epochs} epochs already, which epochs={epochs} must exceed"
        )
