"""A gathered study from a file that is not trusted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penchant import store
from penchant.explore.controls import WHO

if TYPE_CHECKING:
    import xarray

MOST_BYTES = 200_000_000  # of the file, and of what it declares


def read_study(file: str | Path) -> xarray.Dataset:
    """The gathered study in `file`; any other file raises a ValueError with the reason."""
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"{WHO}: there is no file {str(path)!r}")
    if path.stat().st_size > MOST_BYTES:
        raise refused(path, f"has {path.stat().st_size} bytes, more than {MOST_BYTES}")
    try:
        return _study(path, store.read(path, who=WHO, most=MOST_BYTES))
    except ValueError as reason:  # a page shows the name of a file, not its folder
        raise ValueError(str(reason).replace(str(path), path.name)) from None


def refused(path: Path, reason: str) -> ValueError:
    return ValueError(f"{WHO}: {path.name} {reason}")


def _study(path: Path, dataset: xarray.Dataset) -> xarray.Dataset:
    """The dataset if `status` says how every cell of its grid ended."""
    status = dataset.get("status")
    if status is None or status.dtype.kind != "U" or "study" not in dataset.attrs:
        raise refused(
            path, "is a result of penchant, but not a study; open it with `penchant show`"
        )
    if not status.dims or not status.size:
        raise refused(path, "is a study without a grid, so there is no diagram to show")
    return dataset
