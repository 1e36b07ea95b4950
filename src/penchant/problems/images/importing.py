"""A folder or an archive that the user has, checked and stored in the cache folder."""

from __future__ import annotations

import bz2
import functools
import gzip
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from penchant.door import Invalid, door
from penchant.problems.images import cache
from penchant.problems.images.catalogue import Arrays, ImageSet, complaint, find
from penchant.problems.images.formats import Layout
from penchant.store import first_line

LARGEST = 2**28  # bytes; the largest true file has 154 MB, so more is a trap or a mistake
TOTAL = 2**29  # bytes of all that an archive holds; the largest true one has 184 MB
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    gzip.BadGzipFile,
    NotImplementedError,  # a zip archive packed in a way that Python does not know
    RuntimeError,  # a zip archive with a password
)


class Unreadable(ValueError):
    """What is wrong with a package, as the end of a sentence."""


def files_in(source: Path, layouts: Sequence[Layout], archives: Iterable[str]) -> dict[str, bytes]:
    """The files of the layouts in `source`, by their base name; a `.gz` counts as what it holds.

    A folder is searched with all below it; when it holds one of `archives` instead, that is
    read. Members of an archive are found by base name and kept in memory: whatever path or
    link an archive contains, nothing is written.
    """
    if not source.exists():
        raise Unreadable("does not exist")
    if not source.is_dir() and not source.is_file():
        raise Unreadable("is a device or a pipe, not a file or a folder")
    if not source.is_dir():
        return _selected(_members(source), layouts)
    files = _selected(_walked(source), layouts)
    packed = [source / name for name in archives if (source / name).is_file()]
    return files if files or not packed else _selected(_members(packed[0]), layouts)


Entry = tuple[str, Callable[[], IO[bytes]]]  # the path, and what opens it


def _selected(entries: Iterable[Entry], layouts: Sequence[Layout]) -> dict[str, bytes]:
    """The contents of the wanted entries, the first of each name, until a layout is complete."""
    wanted = {name for layout in layouts for name in layout.names}
    contents: dict[str, bytes] = {}
    try:
        for path, opened in entries:
            name = path.rsplit("/", 1)[-1]
            plain = name.removesuffix(".gz")
            if plain in wanted - contents.keys():
                with opened() as stream:
                    contents[plain] = _content(name, stream)
            if sum(map(len, contents.values())) > TOTAL:
                raise Unreadable(f"holds more than {TOTAL} bytes, which cannot be right")
            if any(contents.keys() >= set(layout.names) for layout in layouts):
                break
    except _BROKEN as reason:
        raise Unreadable(f"is cut short or damaged ({first_line(reason)})") from None
    return contents


def _content(name: str, stream: IO[bytes]) -> bytes:
    """All bytes of one file, decompressed, if they are not too many."""
    plain = gzip.GzipFile(fileobj=stream) if name.endswith(".gz") else stream
    data = plain.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise Unreadable(f"holds {name} with more than {LARGEST} bytes, which cannot be right")
    return data


def _walked(folder: Path) -> Iterator[Entry]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if (file := Path(parent, name)).is_file():
                yield name, functools.partial(_opened, file)


def _opened(file: Path) -> IO[bytes]:
    return open(file, "rb")


def _members(file: Path) -> Iterator[Entry]:
    """The regular files of an archive; links and devices are passed over."""
    if (size := file.stat().st_size) > TOTAL:
        raise Unreadable(f"has {size} bytes, more than {TOTAL}, which cannot be right")
    with open(file, "rb") as raw:
        if _is_tar(raw):
            with tarfile.open(fileobj=_unpacked(raw), mode="r:") as archive:
                for member in archive:
                    if member.isreg():
                        extract = cast(Callable[..., IO[bytes]], archive.extractfile)
                        yield member.name, functools.partial(extract, member)
        elif zipfile.is_zipfile(raw):
            with zipfile.ZipFile(raw) as packed:
                for entry in packed.infolist():
                    yield entry.filename, functools.partial(packed.open, entry)
        else:
            raise Unreadable("is no folder, no .tar.gz, .zip or .npz file, or it is cut short")


class Bounded:
    """An unpacked stream of which no more than TOTAL bytes are read or skipped.

    A few megabytes can unpack to many gigabytes, and a header of tar can ask for all of them.
    """

    def __init__(self, stream: IO[bytes]):
        self.stream = stream

    def read(self, size: int = -1) -> bytes:
        self._refuse(self.stream.tell() + max(size, 0))
        return self.stream.read(size if size >= 0 else TOTAL)

    def seek(self, place: int) -> int:
        self._refuse(place)
        return self.stream.seek(place)

    def tell(self) -> int:
        return self.stream.tell()

    def _refuse(self, place: int) -> None:
        if place > TOTAL:
            raise Unreadable(f"unpacks to more than {TOTAL} bytes, which cannot be right")


def _unpacked(raw: IO[bytes]) -> IO[bytes]:
    """The tar archive in a stream, unpacked by what its first bytes say."""
    start = raw.read(6)
    raw.seek(0)
    opener = next((open_ for magic, open_ in _PACKED.items() if start.startswith(magic)), None)
    return cast(IO[bytes], Bounded(opener(raw) if opener else raw))


_PACKED: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"BZh": bz2.BZ2File,
}


def _is_tar(raw: IO[bytes]) -> bool:
    try:
        tarfile.open(fileobj=_unpacked(raw), mode="r:").close()
    except (*_BROKEN, OSError):
        return False
    finally:
        raw.seek(0)
    return True


@door
def import_images(name: str, source: str | os.PathLike[str]) -> Path:
    """Store the image set `name` from a folder or an archive and return the file in the cache.

    `source` must hold the published images, bit for bit, by the sha256 of the arrays;
    otherwise nothing is stored. `penchant data NAME` shows which files hold a set.

    Parameters
    ----------
    name
        The name of the set.
    source
        A folder with the published files, a .tar.gz or .zip file with them, or an .npz file as
        Keras or the cache folder has it.

    Returns
    -------
    pathlib.Path
        The file in the cache.

    Examples
    --------
    >>> import penchant
    >>> try:
    ...     penchant.problems.import_images("mnist", "no-such-file.tar.gz")
    ... except (OSError, ValueError) as reason:
    ...     print(type(reason).__name__)
    ValueError
    """
    images = find(name)
    if images.built_in:
        raise Invalid(
            f"{images.name} are part of scikit-learn and need no import; "
            "pip install 'penchant[data]'"
        )
    arrays = _arrays(images, Path(source))
    if wrong := complaint(images, arrays):
        raise Invalid(
            f"{str(source)!r} does not hold the published {images.name}: {wrong}; "
            "nothing was stored"
        )
    return cache.write(images, arrays)


def _arrays(images: ImageSet, source: Path) -> Arrays:
    try:
        files = files_in(source, images.layouts, [file.name for file in images.files])
        return _layout(images, files).decode(files)
    except Unreadable as reason:
        raise ValueError(f"import_images: {str(source)!r} {reason}; nothing was stored") from None
    except ValueError as reason:
        raise ValueError(
            f"import_images: in {str(source)!r}, {first_line(reason)}; nothing was stored"
        ) from None


def _layout(images: ImageSet, files: Mapping[str, bytes]) -> Layout:
    """The layout whose files are all there, or an error about the one that comes nearest."""

    def missing(layout: Layout) -> list[str]:
        return [name for name in layout.names if name not in files]

    nearest = min(images.layouts, key=lambda layout: len(missing(layout)))
    if lacking := missing(nearest):
        whole = len(lacking) == len(nearest.names)
        why = "is it another set?" if whole else "was the download interrupted?"
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise Unreadable(f"lacks {lacking[0]}{more} of {images.name} ({why})")
    return nearest
