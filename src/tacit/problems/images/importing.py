"""A package that the user has, checked and stored in the cache folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tacit.problems.images import cache
from tacit.problems.images.catalogue import Arrays, ImageSet, Package, find
from tacit.problems.images.checksums import complaint
from tacit.problems.images.formats import Layout
from tacit.problems.images.package import Unreadable, files_in

WHO = "import_images"


def import_images(name: str, source: str | os.PathLike[str]) -> Path:
    """Store the image set `name` from a folder, .tgz or .deb and return the file in the cache.

    What `source` holds must be the published images, bit for bit, by the sha256 of the arrays;
    otherwise nothing is stored. `tacit data NAME` tells which package holds a set.

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
    >>> import tacit
    >>> try:
    ...     tacit.import_images("mnist", "no-such-package.deb")
    ... except (OSError, ValueError) as reason:
    ...     print(type(reason).__name__)
    ValueError
    """
    images = find(WHO, name)
    if images.package is None:
        raise ValueError(
            f"{WHO}: {images.name} come inside scikit-learn and need no import; "
            "pip install 'tacit[data]'"
        )
    arrays = _arrays(images, images.package, Path(source))
    if wrong := complaint(images, arrays):
        raise ValueError(
            f"{WHO}: {str(source)!r} does not hold the published {images.name}: {wrong}; "
            "nothing was stored"
        )
    return cache.write(WHO, images, arrays)


def _arrays(images: ImageSet, package: Package, source: Path) -> Arrays:
    names = [name for layout in images.layouts for name in layout.names]
    try:
        files = files_in(source, names, package.file)
        return _layout(images, files).decode(files)
    except Unreadable as reason:
        raise ValueError(f"{WHO}: {str(source)!r} {reason}; nothing was stored") from None
    except (ValueError, ImportError) as reason:
        kind = ImportError if isinstance(reason, ImportError) else ValueError
        raise kind(f"{WHO}: in {str(source)!r}, {reason}; nothing was stored") from None


def _layout(images: ImageSet, files: Mapping[str, bytes]) -> Layout:
    """The layout whose files are all there, or a complaint about the one that comes nearest."""

    def missing(layout: Layout) -> list[str]:
        return [name for name in layout.names if name not in files]

    nearest = min(images.layouts, key=lambda layout: len(missing(layout)))
    if lacking := missing(nearest):
        whole = len(lacking) == len(nearest.names)
        why = "is it another package?" if whole else "was the download interrupted?"
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise Unreadable(f"lacks {lacking[0]}{more} of {images.name} ({why})")
    return nearest
