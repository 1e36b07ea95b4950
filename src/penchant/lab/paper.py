"""The papers whose claims are installed, found by entry points.

A package with claims names a sequence of `Paper` in its pyproject.toml:

    [project.entry-points."penchant.papers"]
    mine = "my_claims.papers:papers"

Each paper is a package: its `__init__` makes the `Paper`, each claim is one module of it, studies
that are tables are .toml files in its folder, and what was measured is in its folder `record`.
One .toml file is no study: `statements.toml` lists what the source prints, row by row, with the
claims that judge it.
"""

from __future__ import annotations

import functools
import importlib.util
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from penchant.arguments import text
from penchant.door import door
from penchant.records import Record

GROUP = "penchant.papers"


@dataclass(frozen=True, repr=False)
class Paper(Record):
    """One source of claims.

    Parameters
    ----------
    letters
        What the ids of its claims begin with, before the first dash.
    title
        The title of the document, or what its claims are about.
    package
        The name of the package with its modules, the `__name__` of the file that makes this.
    statements
        The ids of its claims in the order of the source, each with its module in the package.
    authors, year
        Who wrote it, and when; claims of one's own have none.
    form
        What was read: only what is printed there is checked.
    url
        Where it is to be read.
    """

    letters: str
    title: str
    package: str
    statements: Mapping[str, str] = field(default_factory=dict)
    authors: tuple[str, ...] = ()
    year: int | None = None
    form: str = "paper"
    url: str = ""

    def __post_init__(self) -> None:
        wrong = [id for id in self.statements if letters_of(id) != self.letters.upper()]
        if wrong:
            raise ValueError(f"Paper: the id {wrong[0]!r} does not begin with {self.letters}-")

    @property
    def short(self) -> str:
        """For instance Woodworth et al. 2020; the title of claims of one's own."""
        if not self.authors:
            return self.title
        names = [author.split()[-1] for author in self.authors]
        known = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
        return f"{known} {self.year}" if self.year else known

    @property
    def folder(self) -> Path:
        """The folder of its package."""
        spec = importlib.util.find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise ValueError(f"Paper: {self.package} is no package; its claims need a folder")
        return Path(next(iter(spec.submodule_search_locations)))

    @property
    def record(self) -> Path:
        """The folder with what was measured of its claims."""
        return self.folder / "record"

    @property
    def printed(self) -> Path:
        """The file that lists what the source prints, if there is one."""
        return self.folder / "statements.toml"

    @property
    def tables(self) -> dict[str, Path]:
        """The studies that come as TOML files, by name."""
        files = sorted(self.folder.glob("*.toml"))
        return {file.stem: file for file in files if file != self.printed}


def letters_of(id: str) -> str:
    """What an id begins with, in capitals."""
    return id.split("-")[0].upper()


@functools.cache
def papers() -> tuple[Paper, ...]:
    """The papers of all installed packages: those of penchant first, others by name."""
    known: dict[str, Paper] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda e: (e.name != "penchant", e.name)):
        for paper in _loaded(entry):
            other = known.setdefault(paper.letters.upper(), paper)
            if other is not paper:
                raise ValueError(
                    f"papers: the ids of {paper.package} and {other.package} both begin with "
                    f"{paper.letters}; one of the packages has to choose other letters"
                )
    return tuple(known.values())


def _loaded(entry: EntryPoint) -> tuple[Paper, ...]:
    """The papers of one package; one that cannot be imported does not stop the others."""
    try:
        return tuple(entry.load())
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        warnings.warn(f"papers: {entry.value} cannot be used ({reason})", stacklevel=2)
        return ()


@door
def paper_of(id: str) -> Paper | None:
    """The paper of a claim or study, by what its id begins with."""
    letters = letters_of(text("id", id))
    return next((p for p in papers() if p.letters.upper() == letters), None)
