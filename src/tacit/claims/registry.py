"""The ledger of claims: one decorator registers, everything else reads from here."""

from __future__ import annotations

import importlib
import pkgutil
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from tacit.arguments import one_of
from tacit.evidence.evidence import Evidence, Premise
from tacit.evidence.verdict import Verdict
from tacit.records import Record
from tacit.sources import in_order
from tacit.studies.sizes import Size
from tacit.threads import one_blas_thread

Experiment = Callable[[Size], Evidence]


@dataclass(frozen=True, repr=False)
class Claim(Record):
    """One row of the ledger: what is claimed, where, and the experiment that can refute it."""

    id: str
    statement: str
    place: str
    experiment: Experiment
    seconds: float = 1.0  # a hint: the runner starts the longest first

    @property
    def source(self) -> str:
        return self.id.split("-")[0]

    studies = ()

    @property
    def roots(self) -> list[tuple[str, str | None]]:
        return [(self.experiment.__module__, self.experiment.__qualname__)]

    def run(self, setting: Any = None, progress: Any = None) -> Verdict:
        """The verdict of one run; an experiment that raises gives an inconclusive one."""
        start = perf_counter()
        size: Size = setting.size if setting else "quick"
        with warnings.catch_warnings(record=True) as seen, one_blas_thread():
            try:
                evidence = self.experiment(size)
                if not isinstance(evidence, Evidence):
                    raise TypeError(f"the experiment returned {type(evidence).__name__}")
            except Exception as error:
                evidence = unfinished(told(error))
        evidence = _with_warnings(evidence, seen)
        return self.verdict(evidence, size, perf_counter() - start)

    def verdict(self, evidence: Evidence, size: Size, seconds: float = 0.0) -> Verdict:
        return Verdict(self.id, self.statement, self.place, evidence, size, seconds)


RAN = "ran to the end"


def unfinished(sentence: str) -> Evidence:
    """The evidence of an experiment that did not run to its end: none, and the reason."""
    return Evidence(
        ran="the experiment did not run to its end",
        premises={RAN: Premise(False, sentence)},
        findings=[sentence],
    )


def broke_off(evidence: Evidence) -> bool:
    """True for the evidence of an experiment that did not run to its end."""
    return not evidence.premises.get(RAN, Premise(True)).holds


def told(error: Exception) -> str:
    """The error in one sentence, with the module line where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}, line {last.lineno}"
    return f"{type(error).__name__}: {error} ({where})"


def _with_warnings(evidence: Evidence, seen: list[warnings.WarningMessage]) -> Evidence:
    lines = dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in seen)
    return replace(evidence, findings=[*evidence.findings, *lines]) if lines else evidence


class Registry:
    """Claims by id; modules of `package` are imported when the first claim is asked for."""

    def __init__(self, package: str | None = None):
        self._package = package
        self._claims: dict[str, Claim] = {}

    def __repr__(self) -> str:
        return f"<Registry of {self._package or f'{len(self._claims)} claims'}>"

    def claim(
        self, id: str, *, statement: str, place: str, seconds: float = 1.0
    ) -> Callable[[Experiment], Experiment]:
        """A decorator that enters the function below it into the ledger."""

        def enter(experiment: Experiment) -> Experiment:
            key = id.upper()
            if key in self._claims:
                raise ValueError(f"claim: {id!r} is already registered; choose another id")
            if not (statement.strip() and place.strip()):
                raise ValueError(f"claim: {id!r} needs a statement and its place in the source")
            self._claims[key] = Claim(id, statement, place, experiment, seconds)
            return experiment

        return enter

    def claims(self) -> tuple[Claim, ...]:
        """Every claim, in the order of the sources, whatever was imported first."""
        if self._package:
            package = importlib.import_module(self._package)
            for module in pkgutil.walk_packages(package.__path__, f"{self._package}."):
                importlib.import_module(module.name)
        return tuple(self._claims[key] for key in in_order(self._claims))

    def select(self, names: str | Iterable[str] | None = None) -> tuple[Claim, ...]:
        """The claims named by ids or sources, any case, in ledger order; None means all."""
        known = self.claims()
        if names is None:
            return known
        wanted: set[str] = set()
        for name in [names] if isinstance(names, str) else names:
            wanted |= {claim.id for claim in self._named(name, known)}
        if not wanted:
            raise ValueError("verify: no claim id given; name one, or pass None for all of them")
        return tuple(claim for claim in known if claim.id in wanted)

    def _named(self, name: str, known: tuple[Claim, ...]) -> list[Claim]:
        if not isinstance(name, str):
            raise ValueError(f"verify: a claim id must be a string such as 'W-T1', got {name!r}")
        key = name.strip().upper()
        if key in self._claims:
            return [self._claims[key]]
        of_source = [claim for claim in known if claim.source.upper() == key]
        if not of_source:
            ids = [claim.id for claim in known]
            one_of("verify", "claim id", name, dict.fromkeys([*ids, *(c.source for c in known)]))
        return of_source

    def is_one(self, name: object) -> bool:
        """True if `name` is the id of a single claim rather than a source or a list."""
        return isinstance(name, str) and name.strip().upper() in self._claims


ledger = Registry(__package__)
claim = ledger.claim
