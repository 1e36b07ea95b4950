"""The gathered file on disk: whole or absent, and an older one stays if there is no room."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

from tacit import store
from tacit.studies.files import CannotWrite

if TYPE_CHECKING:
    import xarray


def write_dataset(dataset: xarray.Dataset, file: Path) -> None:
    """Write the gathered file whole, and wait until the disk has it."""
    try:
        store.save(dataset, file)
    except OSError as reason:
        if reason.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise CannotWrite(
            reason.errno,
            f"study: {reason.strerror} for {file}; the cells are safe: make room and run the "
            "same again",
        ) from None
