"""Results on disk: netCDF files that are whole or absent, and come back as they went in."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Any

import numpy as np

MARK = "tacit_format"
VERSION = 1
ATTRIBUTES = "tacit_attributes"
LOST = "tacit_dtype"


def save(result: Any, file: str | os.PathLike[str]) -> FilePath:
    """Write an xarray.Dataset, or the dataset of a path, to `file`, and return its path.

    The file appears whole or not at all: it is written beside its destination under another name
    and then moved there, so that a failure leaves an older file as it was.
    """
    import xarray

    dataset = getattr(result, "dataset", result)
    if not isinstance(dataset, xarray.Dataset):
        raise ValueError(
            f"save: can write a path or an xarray.Dataset, got {type(result).__name__}"
        )
    with whole("save", file) as draft:
        packed = _pack(dataset)
        encoding = {name: {"_FillValue": None} for name in packed.variables}
        # in memory first: the HDF5 library does not survive a disk that fills under it
        draft.write_bytes(packed.to_netcdf(engine="h5netcdf", encoding=encoding))
    return FilePath(file)


@contextmanager
def whole(who: str, file: str | os.PathLike[str]) -> Iterator[FilePath]:
    """A draft to write, which becomes `file` if the block ends well; otherwise nothing is left."""
    target = FilePath(file)
    if target.is_dir() or not target.parent.is_dir():
        where = "is a folder" if target.is_dir() else f"lies in no existing folder: {target.parent}"
        raise ValueError(f"{who}: {target} {where}; give the name of a file")
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        yield draft
        with open(draft, "rb+") as written:
            os.fsync(written.fileno())  # or a power cut may move an empty file into place
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def load(file: str | os.PathLike[str]) -> Any:
    """The xarray.Dataset that `save` wrote to `file`, in memory."""
    import xarray

    target = FilePath(file)
    if not target.exists():
        raise FileNotFoundError(f"load: there is no file {target}")
    if target.is_dir():
        raise ValueError(f"load: {target} is a folder; give the name of a file")
    try:
        packed = xarray.load_dataset(
            target,
            engine="h5netcdf",
            decode_times=False,
            mask_and_scale=False,
            phony_dims="sort",  # so that HDF5 files of other programs open, and are refused below
        )
    except (OSError, ValueError, KeyError, RuntimeError) as reason:
        raise ValueError(
            f"load: {target} is cut short or is no netCDF file ({_first_line(reason)})"
        ) from None
    if packed.attrs.get(MARK) != VERSION:
        raise ValueError(f"load: {target} is a netCDF file, but not one that tacit wrote")
    return _unpack(packed)


def _pack(dataset: Any) -> Any:
    """A copy whose attributes netCDF can hold: texts as they are, and everything as one JSON."""
    packed = dataset.copy()
    packed.attrs = _texts(dataset.attrs)
    every = {"": dataset.attrs}
    for name, variable in dataset.variables.items():
        every[str(name)] = variable.attrs
        packed[name].attrs = _texts(variable.attrs)
        packed[name].encoding = {}
    try:
        packed.attrs[ATTRIBUTES] = json.dumps(every)
    except TypeError as reason:
        raise ValueError(f"save: attributes must be plain JSON values ({reason})") from None
    packed.attrs[MARK] = VERSION
    packed.attrs[LOST] = json.dumps(
        {str(n): v.dtype.str for n, v in dataset.variables.items() if v.dtype.kind == "U"}
    )
    return packed


def _unpack(packed: Any) -> Any:
    """The dataset as it was before `_pack`."""
    every = json.loads(packed.attrs[ATTRIBUTES])
    texts = json.loads(packed.attrs[LOST])
    for name, dtype in texts.items():
        packed[name] = packed[name].astype(np.dtype(dtype))
    packed.attrs = every.pop("")
    packed.encoding = {}
    for name, attributes in every.items():
        packed[name].attrs = attributes
        packed[name].encoding = {}
    return packed


def _texts(attributes: dict[Any, Any]) -> dict[Any, str]:
    return {name: value for name, value in attributes.items() if isinstance(value, str)}


def _first_line(reason: BaseException) -> str:
    return (str(reason) or type(reason).__name__).strip().splitlines()[0]
