"""The published files of an image set, downloaded with pooch and checked by their md5."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penchant.door import Invalid, NotInstalled
from penchant.problems.images import cache
from penchant.problems.images.catalogue import ImageSet, Published
from penchant.store import first_line

Progress = Callable[[int, int], None] | None  # called with (bytes received, bytes of all files)
CHUNK = 2**16  # bytes received at a time
SHOWN = 200  # characters of an error of the network, which can go on for lines


@contextmanager
def downloaded(images: ImageSet, progress: Progress = None) -> Iterator[Path]:
    """A temporary folder with the published files of a set; it is removed afterwards."""
    pooch = _pooch()
    folder = _temporary_folder()
    meter = _DownloadMeter(sum(file.bytes for file in images.files), progress)
    try:
        for file in images.files:
            _retrieve(pooch, images, file, folder, meter)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pooch() -> Any:
    try:
        import pooch
    except ImportError:
        raise NotInstalled(
            "a download needs pooch, which is not installed; pip install 'penchant[data]'"
        ) from None
    pooch.get_logger().setLevel("WARNING")  # the progress is shown by the caller
    return pooch


def _temporary_folder() -> Path:
    """A new folder in the cache folder, because /tmp may be too small."""
    try:
        return Path(tempfile.mkdtemp(prefix=".fetch-", dir=cache.prepared()))
    except PermissionError as reason:
        raise cache.unwritable(reason) from None


def _retrieve(
    pooch: Any, images: ImageSet, file: Published, folder: Path, meter: _DownloadMeter
) -> None:
    """Put one file into the folder, from the first mirror that has it."""
    complaints = []
    for mirror in images.mirrors:
        meter.start(file)
        downloader = pooch.HTTPDownloader(progressbar=meter, chunk_size=CHUNK)
        try:
            pooch.retrieve(
                mirror + file.name,
                known_hash=f"md5:{file.md5}",
                fname=file.name,
                path=folder,
                downloader=downloader,
            )
            return
        except (OSError, ValueError) as reason:  # no connection, a refusal, or another file
            complaints.append(f"{mirror + file.name}: {first_line(reason)[:SHOWN]}")
    raise Invalid(
        f"{file.name} could not be downloaded ({'; '.join(complaints)}); try again later, "
        f"or get the files elsewhere and pass them with --from"
    )


class _DownloadMeter:
    """What pooch calls while it receives a file; it ends a download that is longer than it may be.

    pooch counts whole chunks while it receives and sets the right number at the end.
    """

    def __init__(self, all_files: int, progress: Progress):
        self.all_files, self.progress = all_files, progress
        self.before = self.received = 0  # bytes of finished files, bytes of the present one
        self.total = self.largest = 0

    def start(self, file: Published) -> None:
        self.received, self.largest = 0, file.bytes + CHUNK

    def update(self, count: int) -> None:
        self.received += count
        if self.received > self.largest:
            raise ValueError(f"it sends more than {self.largest} bytes")
        if self.progress:
            self.progress(min(self.before + self.received, self.all_files), self.all_files)

    def reset(self) -> None:
        self.received = 0

    def close(self) -> None:
        self.before += self.received
