"""Finished verdicts on disk, one file per claim, so that an interrupted run can continue."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from penchant.lab.evidence import saved
from penchant.lab.evidence.verdict import Verdict, Verdicts
from penchant.lab.experiment import Experiment, broke_off
from penchant.lab.report.section import simple
from penchant.lab.report.write import read_verdicts, write_whole
from penchant.lab.studies.code.files import dependencies, own_files
from penchant.lab.studies.code.version import combined
from penchant.lab.studies.sizes import Size
from penchant.versions import versions

JUDGE = "penchant.lab.experiment"
Fingerprint = dict[str, str] | None


@dataclass(frozen=True)
class Finished:
    """The verdicts in `folder`, with their pictures, on instances of one size.

    A verdict counts only for the code, the packages and the image sets it was found with.
    """

    folder: Path
    size: Size
    shift: int = 0
    begun: dict[str, Fingerprint] = field(default_factory=dict)  # what there was before the run

    def read(self, claims: Iterable[Experiment], fresh: bool = False) -> dict[str, Verdict]:
        """Claim id -> the verdict that running the claim again would give; none if `fresh`."""
        found: dict[str, Verdict] = {}
        for claim in claims:
            self.begun[claim.id] = fingerprint(claim, self.size, self.shift)
            verdict = None if fresh else self._read(claim)
            found |= {claim.id: verdict} if verdict else {}
        return found

    def _read(self, claim: Experiment) -> Verdict | None:
        found_with = self.begun[claim.id]
        try:
            stored = read_verdicts(self._file(claim.id))
        except (OSError, ValueError):  # none is there, or it is damaged or of another format
            return None
        if found_with is None or stored.versions != found_with or len(stored) != 1:
            return None
        verdict = stored[0]
        expected = claim.verdict(verdict.evidence, self.size, self.shift)
        told = ("id", "statement", "place", "size", "scope", "shift")
        same = all(getattr(verdict, name) == getattr(expected, name) for name in told)
        return verdict if same else None

    def write(self, claim: Experiment, verdict: Verdict) -> None:
        """Store a verdict in one step, unless its run was interrupted.

        A verdict is not stored either if the code changed during the run.
        """
        found_with = fingerprint(claim, self.size, self.shift)
        changed = self.begun.get(claim.id, found_with) != found_with
        if found_with is None or changed or broke_off(verdict.evidence):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._file(claim.id), saved.dumps(Verdicts((verdict,), found_with)))

    def _file(self, id: str) -> Path:
        shift = f".shift-{self.shift}" if self.shift else ""
        return self.folder / f"{simple(id)}.{self.size}{shift}.json"


def fingerprint(claim: Experiment, size: Size = "quick", shift: int = 0) -> Fingerprint:
    """What a verdict and its picture depend on; None if the code of the claim is in no file."""
    files = dependencies([*claim.roots, JUDGE]).digests()
    if any(home not in files for home in claim.roots):
        return None
    code = combined({**own_files(edges=True), **files})
    studies = [sizes.at(size, shift).describe() for sizes in claim.studies]
    settings = [claim.attributes(size, shift), *studies]
    cells = hashlib.blake2b(
        json.dumps(settings, sort_keys=True).encode(), digest_size=6
    ).hexdigest()
    return {**versions(), "code": code, "cells": cells, "images": _images()}


def _images() -> str:
    """The image sets in the cache folder, which claims on images use."""
    from penchant.problems.images import cache
    from penchant.problems.images.catalogue import CATALOGUE

    files = [cache.file_of(images) for images in CATALOGUE.values()]
    return ", ".join(f"{file.stem} {file.stat().st_size}" for file in files if file.exists())
