"""Writing the report: the page for people, the JSON file for programs."""

from __future__ import annotations

from pathlib import Path

from penchant.door import door_as
from penchant.lab.evidence.verdict import Verdicts
from penchant.lab.evidence.verdict_json import dumps
from penchant.lab.report.page import page
from penchant.lab.writing import write_text


@door_as("report")
def write_report(verdicts: Verdicts, folder: str | Path) -> tuple[Path, Path]:
    """The paths of the page and of the JSON file, written into `folder`."""
    folder = Path(folder)
    texts = {"index.html": page(verdicts), "verdicts.json": dumps(verdicts)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_text(folder / name, text)
    return folder / "index.html", folder / "verdicts.json"
