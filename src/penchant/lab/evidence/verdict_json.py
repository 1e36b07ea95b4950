"""Verdicts as JSON: in the files of the report and of the record, and between processes.

NaN and infinity survive in strict JSON.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from penchant import inspection
from penchant.lab.evidence.evidence import Check, Evidence, Premise
from penchant.lab.evidence.plot import Plot, Series
from penchant.lab.evidence.verdict import Verdict, Verdicts
from penchant.store import json_checksum

FORMAT = "penchant verdicts 4"
CHECKS = ("checks", "proof", "corrected")  # stored as lists, because a check has its name
AGAIN = "run `penchant verify` again"


def dumps(verdicts: Verdicts) -> str:
    """The verdicts as JSON text: the evidence of each claim, and its status for readers."""
    entries = [entry_of(verdict) for verdict in verdicts]
    content = packed({"format": FORMAT, "versions": verdicts.versions, "verdicts": entries})
    content["checksum"] = json_checksum(content)
    return json_text(content)


def json_text(content: Any) -> str:
    """The one form in which JSON is written here: strict, indented, in UTF-8."""
    return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


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
    return loads(text, name=str(file))


def pack_verdict(verdict: Verdict) -> dict[str, Any]:
    """The verdict as strict JSON values."""
    return dict(packed(entry_of(verdict)))


def unpack_verdict(content: dict[str, Any], name: str) -> Verdict:
    """The verdict that `pack_verdict` described."""
    return verdict_of(unpacked(content), name)


def entry_of(verdict: Verdict) -> dict[str, Any]:
    """The verdict as JSON values, NaN and infinity aside, with its status for readers."""
    entry = asdict(verdict)
    entry["evidence"] |= {part: list(entry["evidence"][part].values()) for part in CHECKS}
    return {**entry, "status": verdict.status, "reason": verdict.reason}


def loads(text: str, name: str = "verdicts") -> Verdicts:
    """The verdicts in `text`; truncated, foreign or edited text raises a ValueError."""
    try:
        stored = json.loads(text)
        content = unpacked(stored)
    except json.JSONDecodeError as error:
        raise ValueError(f"{name} is not a complete JSON file ({error}); {AGAIN}") from None
    except RecursionError:
        raise ValueError(f"{name} is JSON that is nested too deeply; {AGAIN}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{name} is not a verdict file of penchant (format {FORMAT!r} is missing)")
    try:
        items = tuple(verdict_of(entry, name) for entry in content["verdicts"])
        verdicts = Verdicts(items, dict(content["versions"]))
        intact = content["checksum"] == json_checksum(stored)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{name} is a damaged verdict file ({error!r:.200}); {AGAIN}") from None
    if not intact:
        raise ValueError(f"{name} was changed or damaged: its checksum is wrong; {AGAIN}")
    return verdicts


def verdict_of(entry: dict[str, Any], name: str) -> Verdict:
    """The verdict that `entry_of` described; the status follows from its numbers."""
    entry = dict(entry)
    status, _ = entry.pop("status"), entry.pop("reason")
    texts = ("id", "statement", "place", "size", "scope", "picture")
    if not all(isinstance(entry[key], str) for key in texts):
        raise TypeError(f"{', '.join(texts)} must be texts")
    if not re.fullmatch(r"[A-Za-z0-9+/]*=*", entry["picture"]):
        raise TypeError("the picture must be in base64")
    if not isinstance(entry["seconds"], int | float) or not isinstance(entry["shift"], int):
        raise TypeError("seconds and shift must be numbers")
    verdict = Verdict(**{**entry, "evidence": _evidence(**entry["evidence"])})
    if verdict.status != status:  # the numbers decide, not the word written beside them
        seen = f"says {verdict.id} {status!r} but its own numbers give {verdict.status!r}"
        raise ValueError(f"{name}: {seen}; the file was edited; {AGAIN}")
    return verdict


def _evidence(**stored: Any) -> Evidence:
    if not isinstance(stored["ran"], str) or not isinstance(stored["correction"], str | None):
        raise TypeError("ran and correction must be texts")
    parts = {part: {seen["name"]: Check(**seen) for seen in stored[part]} for part in CHECKS}
    parts["controls"] = {name: Check(**seen) for name, seen in stored["controls"].items()}
    premises = {name: Premise(**seen) for name, seen in stored["premises"].items()}
    plots = [
        Plot(**{**plot, "series": [Series(**curve) for curve in plot["series"]]})
        for plot in stored["plots"]
    ]
    return Evidence(**{**stored, **parts, "premises": premises, "plots": plots})


def packed(value: Any) -> Any:
    """`value` with every NaN and infinity written as {"$float": "nan"}."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(value)}
    if isinstance(value, dict):
        return {key: packed(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [packed(entry) for entry in value]
    return value


def unpacked(value: Any) -> Any:
    """What `packed` was made from."""
    if isinstance(value, dict):
        if list(value) == ["$float"] and value["$float"] in ("nan", "inf", "-inf"):
            return float(value["$float"])
        return {key: unpacked(entry) for key, entry in value.items()}
    return [unpacked(entry) for entry in value] if isinstance(value, list) else value
