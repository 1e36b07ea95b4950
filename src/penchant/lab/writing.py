"""Writing into a folder of the user: refused early, and each file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penchant.door import Invalid
from penchant.store import whole


def refuse_unwritable(folder: Path) -> None:
    """Raise before any work is done if files cannot be written into `folder`."""
    here = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not here.is_dir():
        raise Invalid(f"{str(folder)!r} must be a directory, but {here} is a file")
    if not os.access(here, os.W_OK | os.X_OK):
        raise Invalid(f"no permission to write into {str(here)!r}; choose another --out")


def write_text(file: Path, text: str) -> None:
    """Write `text` to `file` in one step, so that no reader sees a partial file."""
    with whole(file) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def staged(folder: Path) -> Iterator[tuple[Path, list[Path]]]:
    """A hidden stage inside `folder`, and the list that names the files once they are in place.

    When the block ends well each file on the stage is renamed into `folder`; when it raises,
    the stage goes away, and so do the folders that were created for it.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"figure: the folder {str(folder)!r} is a file; name a directory")
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    try:
        with tempfile.TemporaryDirectory(prefix=".penchant-", dir=folder) as stage:
            yield Path(stage), written
            files = sorted(Path(stage).iterdir())
            blocked = [file.name for file in files if (folder / file.name).is_dir()]
            if blocked:
                raise ValueError(f"figure: {blocked[0]} in {str(folder)!r} is a directory; move it")
            for file in files:
                os.replace(file, folder / file.name)
                written.append(folder / file.name)
    except BaseException:
        for path in created:
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        raise
