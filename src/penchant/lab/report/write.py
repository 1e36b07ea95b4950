"""Writing and reading the report; a file is written completely or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from penchant import inspection
from penchant.lab.evidence import saved
from penchant.lab.evidence.verdict import Verdicts
from penchant.lab.report.page import page
from penchant.store import whole


def refuse_unwritable(who: str, folder: Path) -> None:
    """Raise before any work is done if a report cannot be written into `folder`."""
    here = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not here.is_dir():
        raise ValueError(f"{who}: {str(folder)!r} must be a directory, but {here} is a file")
    if not os.access(here, os.W_OK | os.X_OK):
        raise ValueError(f"{who}: no permission to write into {str(here)!r}; choose another --out")


def write_report(verdicts: Verdicts, folder: str | Path) -> tuple[Path, Path]:
    """The paths of the page and of the JSON file, written into `folder`."""
    folder = Path(folder)
    texts = {"index.html": page(verdicts), "verdicts.json": saved.dumps(verdicts)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_whole(folder / name, text)
    return folder / "index.html", folder / "verdicts.json"


def write_whole(file: Path, text: str) -> None:
    """Write `text` to `file` in one step, so that no reader sees a partial file."""
    with whole("report", file) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")


def read_verdicts(file: str | Path) -> Verdicts:
    """The verdicts saved in `file`; a ValueError names a file that holds none."""
    try:
        text = inspection.read_text(Path(file))
    except inspection.Refusal as reason:
        raise ValueError(f"{file} {reason}, so it holds no verdicts of penchant") from None
    except UnicodeDecodeError:
        raise ValueError(
            f"{file} is not a text file, so it holds no verdicts of penchant"
        ) from None
    return saved.loads(text, name=str(file))
