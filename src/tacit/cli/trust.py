"""Whether to run the function that a study in TOML names: a flag, or a question the first time."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from tacit.problems.images import cache


def asked(path: Path, function: str) -> bool:
    """True if the user said so before, or says so now; False where nobody can be asked."""
    key = f"{path} {function}"
    known = _remembered()
    if key in known:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    question = f"{path.name} runs the function {function!r} of a file that came with it. Run it?"
    if not typer.confirm(question, err=True):
        return False
    _remember([*known, key])
    return True


def _file() -> Path:
    return cache.folder() / "trusted.json"


def _remembered() -> list[str]:
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [str(entry) for entry in found] if isinstance(found, list) else []


def _remember(keys: list[str]) -> None:
    from tacit.store import whole

    _file().parent.mkdir(parents=True, exist_ok=True)
    with whole("run", _file()) as draft:
        draft.write_text(json.dumps(keys, indent=1), encoding="utf-8")
