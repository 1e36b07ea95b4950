"""Finished verdicts on disk, one file a claim, so that an interrupted run goes on where it was."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tacit.evidence import saved
from tacit.evidence.verdict import Verdict, Verdicts
from tacit.papers.experiment import Experiment, broke_off
from tacit.report.write import read_verdicts, write_whole
from tacit.studies.code.dependencies import Slice, reached
from tacit.studies.code.modules import module_named
from tacit.studies.sizes import Size
from tacit.versions import versions

JUDGES = [("tacit.papers.experiment", "Experiment"), ("tacit.evidence.evidence", "judge")]


@dataclass(frozen=True)
class Finished:
    """The verdicts in `folder` on instances of one size.

    A verdict counts only for the code, the packages and the image sets it was found with.
    """

    folder: Path
    size: Size

    def read(self, claims: Iterable[Experiment]) -> dict[str, Verdict]:
        """Claim id -> the verdict that running the claim again would give."""
        found = {claim.id: self._read(claim) for claim in claims}
        return {id: verdict for id, verdict in found.items() if verdict is not None}

    def _read(self, claim: Experiment) -> Verdict | None:
        found_with = circumstances(claim, self.size)
        try:
            stored = read_verdicts(self._file(claim.id))
        except (OSError, ValueError):  # none is there, or it is damaged or of another format
            return None
        if found_with is None or stored.versions != found_with or len(stored) != 1:
            return None
        verdict = stored[0]
        expected = (claim.id, claim.statement, claim.place, self.size)
        same = (verdict.id, verdict.statement, verdict.place, verdict.size) == expected
        return verdict if same else None

    def write(self, claim: Experiment, verdict: Verdict) -> None:
        """Keep a verdict, whole or not at all; one of a run that broke off is no result."""
        found_with = circumstances(claim, self.size)
        if found_with is None or broke_off(verdict.evidence):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._file(claim.id), saved.dumps(Verdicts((verdict,), found_with)))

    def _file(self, id: str) -> Path:
        return self.folder / f"{re.sub(r'[^A-Za-z0-9-]', '_', id)}.{self.size}.json"


def circumstances(claim: Experiment, size: Size = "quick") -> dict[str, str] | None:
    """What a verdict depends on besides the claim; None if the code of the claim is in no file."""
    if any(module_named(home) is None for home, _ in claim.roots):
        return None
    code: Slice = reached([*claim.roots, *JUDGES])
    asked = json.dumps([sizes.at(size).describe() for sizes in claim.studies], sort_keys=True)
    cells = hashlib.blake2b(asked.encode(), digest_size=6).hexdigest()
    return {**versions(), "code": code.digest(), "cells": cells, "images": _images()}


def _images() -> str:
    """The image sets in the cache folder: claims on images take what is there."""
    from tacit.problems.images import cache
    from tacit.problems.images.catalogue import CATALOGUE

    files = [cache.file_of(images) for images in CATALOGUE.values()]
    return ", ".join(f"{file.stem} {file.stat().st_size}" for file in files if file.exists())
