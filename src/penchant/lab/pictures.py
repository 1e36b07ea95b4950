"""Pictures of experiments as WebP, drawn again only if something that they show has changed.

Drawing all claims takes several times as long as judging them from their cells. So a picture is
kept beside the cells, with a key behind its last byte: a digest of the datasets, of the source
files of the drawing and of the packages that they import. A picture whose key does not fit is drawn
again, so a damaged file is too. Code that is in no file, as in a notebook, has no key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penchant.door import door_as
from penchant.lab.studies.code.modules import dependencies, own_files, package_version
from penchant.lab.studies.code.version import combined, library_versions
from penchant.lazy import Dataset, Figure
from penchant.store import checksum, whole

MARK = b"penchant-picture "


def picture_key(functions: Sequence[Callable[..., Any]], data: Sequence[Dataset]) -> str | None:
    """The digest of all that a picture shows, drawn by these functions; None if it has no file."""
    modules = [getattr(function, "__module__", None) or "" for function in functions]
    used = dependencies(modules)
    if any(module not in used.files for module in modules):
        return None
    packages = {**library_versions(used.packages), "matplotlib": package_version("matplotlib")}
    code = {**own_files(edges=True), **used.digests(), **packages}
    shown = {str(k): checksum(d.variables, _attributes(d)) for k, d in enumerate(data)}
    return combined({**code, **shown})


def _attributes(dataset: Dataset) -> str:
    own = {str(name): variable.attrs for name, variable in dataset.variables.items()}
    return json.dumps([dataset.attrs, own], sort_keys=True, default=str)


@door_as("picture")
def keep_picture(file: Path, key: str, draw: Callable[[], Figure]) -> bytes:
    """The picture in `file` if it has this key; otherwise it is drawn and written there."""
    tail = MARK + key.encode()
    content = file.read_bytes() if file.is_file() else b""
    if content.endswith(tail):
        return content.removesuffix(tail)
    content = small_image(draw())
    file.parent.mkdir(parents=True, exist_ok=True)
    with whole(file) as draft:
        draft.write_bytes(content + tail)
    return content


DPI = 80  # of a picture as a page shows it, about as many points as it is wide there
COLOURS = 48  # of lines and of the rims of letters: a third of the bytes of all of them


def small_image(figure: Figure) -> bytes:
    """A picture for a page: a WebP file of few colours, without loss beyond that."""
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    figure.set_dpi(DPI)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # savefig would draw twice: for the layout, then all
    whole = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    few, stream = whole.quantize(COLOURS, dither=Image.Dither.NONE).convert("RGB"), io.BytesIO()
    few.save(stream, format="WEBP", lossless=True)
    return stream.getvalue()
