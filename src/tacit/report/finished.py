"""Finished verdicts on disk, one file a claim, so that an interrupted run goes on where it was."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import tacit
from tacit.claims import saved
from tacit.claims.registry import Claim, broke_off
from tacit.claims.verdict import Size, Verdict, Verdicts
from tacit.report.write import read_verdicts, write_whole
from tacit.versions import versions

ROOMS = ("bias", "problems", "models", "flows", "probes", "studies", "claims")  # not later ones


@dataclass(frozen=True)
class Finished:
    """The verdicts in `folder` on instances of one size.

    A verdict counts only for the code, the packages and the image sets it was found with.
    """

    folder: Path
    size: Size

    def read(self, claims: Iterable[Claim]) -> dict[str, Verdict]:
        """Claim id -> the verdict that running the claim again would give."""
        found = {claim.id: self._read(claim) for claim in claims}
        return {id: verdict for id, verdict in found.items() if verdict is not None}

    def _read(self, claim: Claim) -> Verdict | None:
        found_with = circumstances(claim)
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

    def write(self, claim: Claim, verdict: Verdict) -> None:
        """Keep a verdict, whole or not at all; one of a run that broke off is no result."""
        found_with = circumstances(claim)
        if found_with is None or broke_off(verdict.evidence):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._file(claim.id), saved.dumps(Verdicts((verdict,), found_with)))

    def _file(self, id: str) -> Path:
        return self.folder / f"{re.sub(r'[^A-Za-z0-9-]', '_', id)}.{self.size}.json"


def circumstances(claim: Claim) -> dict[str, str] | None:
    """What a verdict depends on besides the claim; None if the code of the claim is in no file."""
    try:
        own = inspect.getsourcefile(claim.experiment)
    except TypeError:
        return None
    if own is None or not Path(own).is_file():
        return None
    return {**versions(), "code": code_digest(Path(own)), "images": _images()}


@functools.cache
def code_digest(own: Path) -> str:
    """A digest of the file of a claim and of everything in tacit that claims may import.

    It is coarse: a change to one claim of tacit makes the verdicts on the others old, too.
    """
    root = Path(tacit.__file__).parent
    files = {own, *root.glob("*.py")}.union(*((root / room).rglob("*.py") for room in ROOMS))
    whole = hashlib.blake2b(digest_size=6)
    for file in sorted(files):
        text = file.read_bytes()
        whole.update(f"{file.name} {len(text)}\n".encode() + text)
    return whole.hexdigest()


def _images() -> str:
    """The image sets in the cache folder: claims on images take what is there."""
    from tacit.problems.images import cache
    from tacit.problems.images.catalogue import CATALOGUE

    files = [cache.file_of(images) for images in CATALOGUE.values()]
    return ", ".join(f"{file.stem} {file.stat().st_size}" for file in files if file.exists())
