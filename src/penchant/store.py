"""Results on disk: netCDF files that are whole or absent, and are read back unchanged."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from penchant import inspection
from penchant.door import Invalid, NotFound, NotPermitted, door_as

MARK = "penchant_format"
VERSION = 2
ATTRIBUTES = "penchant_attributes"
TYPES = "penchant_dtypes"
CHECKSUM = "penchant_checksum"
SHOWN = ("long_name", "units", "description")  # attributes that other programs see as well
STORED = {"M": "i8", "m": "i8", "b": "i1"}  # kinds that netCDF lacks, and what is written
SEAL = b"penchant-seal"  # behind what HDF5 reads, with a digest of every byte before it
NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable. %10d"  # netCDF-4's own words
DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, OverflowError)


@door_as("save")
def write(dataset: Any, file: str | os.PathLike[str]) -> FilePath:
    """Write an xarray.Dataset to `file`, and return its path.

    The file appears whole or not at all: it is written next to its destination under another name
    and then moved there, so that a failure leaves an older file unchanged.
    """
    import xarray

    if not isinstance(dataset, xarray.Dataset):
        raise Invalid(f"can write a path or an xarray.Dataset, got {type(dataset).__name__}")
    with whole(file) as draft:
        # in memory first: the HDF5 library does not survive a disk that fills under it
        content = _netcdf(_pack(dataset))
        draft.write_bytes(content + SEAL + _seal(content))
    return FilePath(file)


@contextmanager
def whole(file: str | os.PathLike[str]) -> Iterator[FilePath]:
    """A draft to write, which becomes `file` if the block ends well; otherwise nothing is left.

    A replaced file keeps its permissions, and a symbolic link still points to it.
    """
    target = FilePath(os.path.realpath(file))
    if target.is_dir() or not target.parent.is_dir():
        where = "is a folder" if target.is_dir() else f"lies in no existing folder: {target.parent}"
        raise Invalid(f"{file} {where}; give the name of a file")
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        raise Invalid(f"{file} is a device or a pipe; give the name of a file")
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        yield draft
        if mode is not None:
            draft.chmod(stat.S_IMODE(mode))
        with open(draft, "rb") as written:
            os.fsync(written.fileno())  # or a power cut may move an empty file into place
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


@door_as("load")
def read(file: str | os.PathLike[str], *, most: int | None = None) -> Any:
    """The xarray.Dataset that `write` wrote to `file`, in memory.

    One that points elsewhere, was damaged or was not written by penchant is refused. `most` is the
    most bytes that the file may have and declare; by default 4 GB, and in proportion to its size.
    """
    return contents(file, most=most)


def contents(file: str | os.PathLike[str], *, most: int | None = None) -> Any:
    """The same, for a caller that has a door of its own."""
    target = FilePath(file)
    if not target.exists():
        raise NotFound(f"there is no file {target}")
    if target.is_dir():
        raise Invalid(f"{target} is a folder; give the name of a file")
    try:
        return _read(target, most)
    except inspection.Refusal as reason:
        raise Invalid(f"{target} {reason}") from None
    except PermissionError:
        raise NotPermitted(f"no permission to read {target}") from None
    except MemoryError:
        size = target.stat().st_size
        raise Invalid(f"{target} ({size} bytes) does not fit into memory") from None
    except RecursionError:
        raise Invalid(f"{target} has attributes that are nested too deep") from None
    except DAMAGED as reason:
        cause = first_line(reason)[:200]
        raise Invalid(f"{target} is cut short or damaged ({cause})") from None


def _read(target: FilePath, most: int | None) -> Any:
    import xarray

    inspection.refuse_special(target)
    inspection.refuse_large(target, inspection.LARGEST if most is None else most)
    _refuse_damaged(target)
    inspection.inspect(target, most)
    _refuse_foreign(target)
    packed = xarray.load_dataset(
        target, engine="h5netcdf", decode_times=False, mask_and_scale=False
    )
    types = json.loads(packed.attrs[TYPES])
    inspection.inspect_types(packed.variables, types, target.stat().st_size, most)
    return _unpack(packed)


def _seal(content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _refuse_damaged(target: FilePath) -> None:
    """Raise if bytes have changed since `save`: HDF5 does not always return from a damaged file."""
    with open(target, "rb") as stream:
        if stream.read(len(inspection.MAGIC)) != inspection.MAGIC:
            return  # `inspect` says that it is no netCDF file
    content = target.read_bytes()
    at = content.rfind(SEAL)
    if at >= 0 and _seal(memoryview(content)[:at]) != content[at + len(SEAL) :]:
        raise inspection.Refusal("is cut short or damaged: its checksum is wrong")


def _refuse_foreign(target: FilePath) -> None:
    import h5py

    with h5py.File(target, "r") as opened:
        version = opened.attrs.get(MARK)
    if version is None:
        raise inspection.Refusal("is a netCDF file, but not one that penchant wrote")
    if version != VERSION:
        seen = version if isinstance(version, int | np.integer) else "of something else"
        raise inspection.Refusal(f"has the format {seen}, and this is {VERSION}; run it again")


def _pack(dataset: Any) -> Any:
    """A copy that netCDF can hold: plain types, texts as they are, and everything as one JSON."""
    for name, variable in dataset.variables.items():
        if name in dataset.sizes and variable.dims != (name,):  # HDF5 fails without a sentence
            raise ValueError(
                f"save: {name!r} is a variable on the axes {variable.dims} and the name of a"
                " dimension; rename one of them"
            )
    packed = dataset.copy()
    packed.attrs = _texts(dataset.attrs)
    every = {"": dataset.attrs}
    for name, variable in dataset.variables.items():
        every[str(name)] = variable.attrs
        packed[name] = (variable.dims, _stored(str(name), variable.values))
    for name, variable in dataset.variables.items():
        packed[name].attrs = {k: v for k, v in _texts(variable.attrs).items() if k in SHOWN}
        packed[name].encoding = {}
    try:
        packed.attrs[ATTRIBUTES] = json.dumps(every)
    except (TypeError, ValueError) as reason:
        raise ValueError(f"save: attributes must be plain JSON values ({reason})") from None
    packed.attrs[MARK] = VERSION
    packed.attrs[TYPES] = json.dumps(
        {str(n): v.dtype.str for n, v in dataset.variables.items() if v.dtype.kind in "UMmb"}
    )
    packed.attrs[CHECKSUM] = checksum(dataset.variables, packed.attrs[ATTRIBUTES])
    return packed


def _netcdf(packed: Any) -> bytes:
    """The content of a netCDF-4 file; xarray would take eight times as long to write it.

    Dimensions are scales of HDF5: the variable of that name, or a placeholder if there is none.
    """
    import h5py
    from xarray.conventions import encode_dataset_coordinates

    variables, attributes = encode_dataset_coordinates(packed)
    stream = io.BytesIO()
    with h5py.File(stream, "w", track_order=True) as file:
        for name, variable in variables.items():
            texts = variable.dtype.kind == "U"
            kind = h5py.string_dtype() if texts else variable.dtype
            values = variable.values.astype(object) if texts else variable.values
            written = file.create_dataset(name, data=values, dtype=kind, track_order=True)
            written.attrs.update(variable.attrs)
        for number, (name, size) in enumerate(packed.sizes.items()):
            if name in file:
                file[name].make_scale(name)
            else:
                file.create_dataset(name, (size,), ">f4", track_order=True)
                file[name].make_scale(NO_VARIABLE % size)
            file[name].attrs["_Netcdf4Dimid"] = np.int32(number)
        for name, variable in variables.items():
            for axis, dimension in enumerate(variable.dims):
                if variable.dims != (name,):
                    file[name].dims[axis].attach_scale(file[dimension])
        file.attrs.update(attributes)
    return stream.getvalue()


def _stored(name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in STORED:
        return _as(values, STORED[values.dtype.kind])
    if values.dtype.kind not in "iufU":
        raise ValueError(f"save: {name} must hold numbers, texts or times, got {values.dtype}")
    return values


def _as(values: np.ndarray, kind: Any) -> np.ndarray:
    """The values in another type: times as the whole numbers behind them, and back."""
    times = values.dtype.kind in "Mm" or np.dtype(kind).kind in "Mm"
    return np.ascontiguousarray(values).view(kind) if times else values.astype(kind)


def checksum(variables: Any, attributes: str) -> str:
    """A digest of every value and attribute, so that a flipped byte is noticed."""
    whole = hashlib.blake2b(attributes.encode(), digest_size=16)
    for name in sorted(variables, key=str):
        values = variables[name].values
        head = [str(name), list(variables[name].dims), values.dtype.str, list(values.shape)]
        whole.update(json.dumps(head).encode())
        whole.update(np.ascontiguousarray(values).tobytes())
    return whole.hexdigest()


def json_checksum(content: dict[str, Any]) -> str:
    """A digest of what a JSON file says, its own entry `checksum` left out."""
    entries = {key: value for key, value in content.items() if key != "checksum"}
    text = json.dumps(entries, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _unpack(packed: Any) -> Any:
    """The dataset as it was before `_pack`."""
    text, expected = packed.attrs[ATTRIBUTES], packed.attrs[CHECKSUM]
    every, types = json.loads(text), json.loads(packed.attrs[TYPES])
    for name, dtype in types.items():
        packed[name] = (packed[name].dims, _as(packed[name].values, np.dtype(dtype)))
    packed.attrs = every.pop("")
    packed.encoding = {}
    for name in packed.variables:
        packed[name].attrs = every.pop(str(name))
        packed[name].encoding = {}
    if not isinstance(expected, str) or checksum(packed.variables, text) != expected:
        raise inspection.Refusal("was changed or damaged: its checksum is wrong")
    return packed


def _texts(attributes: dict[Any, Any]) -> dict[Any, str]:
    return {name: value for name, value in attributes.items() if isinstance(value, str)}


def first_line(reason: BaseException) -> str:
    """The first line of an error, or its kind where it says nothing."""
    return (str(reason) or type(reason).__name__).strip().splitlines()[0]
