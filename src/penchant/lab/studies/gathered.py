"""Reading a gathered study: from a file that is not trusted, and its parts by name.

penchant.lab.studies.gather, which writes it, describes the layout.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penchant import store
from penchant.door import Invalid

if TYPE_CHECKING:
    import xarray

MOST_BYTES = 200_000_000  # of the file, and of what it declares


def read_gathered(file: str | Path) -> xarray.Dataset:
    """The gathered study in `file`; any other file raises a ValueError with the reason."""
    path = Path(file)
    if not path.is_file():
        raise Invalid(f"there is no file {str(path)!r}")
    if path.stat().st_size > MOST_BYTES:
        seen = f"has {path.stat().st_size} bytes, more than {MOST_BYTES}"
        raise Invalid(f"{path.name} {seen}")
    try:
        dataset = store.contents(path, most=MOST_BYTES)
    except ValueError as reason:  # a page shows the name of a file, not its folder
        raise Invalid(str(reason).replace(str(path), path.name)) from None
    refusal = _refusal(dataset)
    if refusal:
        raise Invalid(f"{path.name} {refusal}")
    return dataset


def _refusal(dataset: xarray.Dataset) -> str:
    """Why a result is no study whose `status` says how every cell of its grid ended."""
    status = dataset.get("status")
    if status is None or status.dtype.kind != "U" or "study" not in dataset.attrs:
        return "is a result of penchant, but not a study; open it with `penchant show`"
    if not status.dims or not status.size:
        return "is a study without a grid, so there is no diagram to show"
    return ""


def description_of(dataset: xarray.Dataset) -> dict[str, Any]:
    """The description of the study, as `Study.describe` gave it; empty if there is none."""
    description: dict[str, Any] = json.loads(dataset.attrs.get("description", "{}"))
    return description


def dimensions_of(dataset: xarray.Dataset) -> tuple[str, ...]:
    """The axes of the grid, and the seed."""
    return tuple(map(str, dataset.status.dims))


def variables_of(dataset: xarray.Dataset, more: int = 0) -> list[str]:
    """The variables of numbers that have, in every cell, this many dimensions more."""
    dims = dataset.status.dims
    return [
        str(name)
        for name, variable in dataset.data_vars.items()
        if variable.dims[: len(dims)] == dims
        and len(variable.dims) == len(dims) + more
        and variable.dtype.kind in "fiub"
    ]
