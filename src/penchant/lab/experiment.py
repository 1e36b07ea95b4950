"""An experiment: cells computed by a study, a check that can fail, a picture; one file each."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import tempfile
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import flag, integer, one_of
from penchant.door import Invalid, door
from penchant.lab.evidence.evidence import Evidence, Premise
from penchant.lab.evidence.verdict import AS_PRINTED, Verdict
from penchant.lab.paper import paper_of
from penchant.lab.pictures import keep_picture, picture_key, small_image
from penchant.lab.studies.changes import changed, words
from penchant.lab.studies.compute import USABLE
from penchant.lab.studies.run import compute_study
from penchant.lab.studies.sizes import SIZES, Size, Sizes
from penchant.lazy import Dataset, Figure
from penchant.records import Record
from penchant.threads import one_blas_thread

if TYPE_CHECKING:
    from penchant.lab.studies.engines.complete import RunProgress
    from penchant.lab.studies.engines.named import Engine
    from penchant.problems.classification import Classification

RAN = "ran to the end"


@dataclasses.dataclass(frozen=True)
class Setting:
    """How experiments are run: at which size, where cells are stored, who computes them.

    Without a folder nothing is stored. `pictures` draws each one into its verdict, and `shift` is
    added to every seed. `changes` are parameters that the cells have instead of their own.
    """

    size: Size = "quick"
    folder: Path | None = None
    engine: str | Engine = "here"
    jobs: int | None = None
    pictures: bool = False
    shift: int = 0
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @door
    def __post_init__(self) -> None:
        one_of("size", self.size, SIZES)
        flag("pictures", self.pictures)
        integer("shift", self.shift, least=0)
        if self.jobs is not None:
            integer("jobs", self.jobs, least=1)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Experiment(Record):
    """One statement or figure of a paper: what is computed, checked and drawn.

    Parameters
    ----------
    id
        The letters of the paper and the place, joined by a dash.
    statement
        What is claimed, one sentence in our words.
    place
        Where the paper says it.
    study
        Its cells, at every size; several studies are given to `check` and `draw` in this order.
    check
        The evidence, computed from the datasets of the studies alone.
    draw
        The picture of the same datasets; without it the plots of the evidence are drawn.
    draw_points
        The picture of points of one's own, a `Classification`, where the claim is about points.
    title
        What the picture shows, a short sentence; by default the title of the (first) study, or the
        statement.
    ours
        Which parameters are ours because the paper does not print them.
    scope
        What is smaller or other than in the source, by size; a size that is not named is "as
        printed".
    seconds
        About how long the quick size takes: the longest of a paper start first.
    """

    id: str
    statement: str
    place: str
    study: Sizes | Sequence[Sizes]
    check: Callable[..., Evidence]
    draw: Callable[..., Figure] | None = None
    draw_points: Callable[[Classification], Figure] | None = None
    title: str = ""
    ours: str = ""
    scope: Mapping[str, str] = dataclasses.field(default_factory=dict)
    seconds: float = 1.0

    def __post_init__(self) -> None:
        if not (self.statement.strip() and self.place.strip()):
            raise ValueError(f"Experiment: {self.id} needs a statement and its place in the paper")
        title = self.title or self.studies[0].quick.get("title") or self.statement
        object.__setattr__(self, "title", title)

    @property
    def source(self) -> str:
        """The letter of the paper."""
        return self.id.split("-")[0]

    @property
    def studies(self) -> tuple[Sizes, ...]:
        """The studies as a tuple, also if there is one."""
        return (self.study,) if isinstance(self.study, Sizes) else tuple(self.study)

    def data(
        self, setting: Setting | None = None, progress: RunProgress | None = None
    ) -> tuple[Dataset, ...]:
        """The dataset of every study; cells that are stored in the folder are not computed."""
        how = setting or Setting()
        with _folder(how.folder) as folder:
            studies = [sizes.at(how.size, how.shift) for sizes in self.studies]
            datasets = [
                compute_study(study, folder, how.engine, how.jobs, progress)
                for study in changed(studies, how.changes)
            ]
        attributes = self.attributes(how.size, how.shift)
        if how.changes:
            own = f"changed here: {words(how.changes)}"
            attributes["ours"] = "; ".join(filter(None, [self.ours, own]))
        return tuple(dataset.assign_attrs(attributes) for dataset in datasets)

    def attributes(self, size: Size, shift: int = 0) -> dict[str, str]:
        """The attributes of every dataset of the experiment; pictures show them in the caption."""
        paper = paper_of(self.id)
        place = f"{paper.short}, {self.place}" if paper else self.place
        return {
            "experiment": self.id,
            "title": self.title,
            "source": place,
            "size": size,
            "shift": str(shift),
            "ours": self.ours,
        }

    def evidence(self, data: Sequence[Dataset]) -> Evidence:
        """What the datasets show; a cell that failed makes it undecided, with its sentence."""
        failed = failures(data)
        if not failed:
            evidence = self.check(*data)
            if not isinstance(evidence, Evidence):
                raise TypeError(f"the experiment returned {type(evidence).__name__}")
            return evidence
        sentence = f"{len(failed)} cells failed; the first says: {failed[0]}"
        try:
            evidence = self.check(*data)
        except Exception:  # a missing value may break any check; the cell says why it is missing
            return unfinished(sentence)
        premises = {**evidence.premises, RAN: Premise(False, sentence)}
        return dataclasses.replace(evidence, premises=premises)

    def picture(self, data: Sequence[Dataset], evidence: Evidence | None = None) -> Figure:
        """The picture of the datasets, or of their evidence; nothing is computed."""
        from penchant.plotting.mplstyle import styled
        from penchant.plotting.plots import panels
        from penchant.plotting.style import caption_of, clear_logs

        with styled():
            if self.draw is not None:
                return clear_logs(self.draw(*data))
            attributes = data[0].attrs
            plots = (evidence or self.check(*data)).plots
            return panels(attributes["title"], plots, caption_of(attributes))

    def picture_of_points(self, problem: Classification) -> Figure:
        """The picture of points of one's own."""
        from penchant.plotting.mplstyle import styled
        from penchant.plotting.style import clear_logs

        if self.draw_points is None:
            raise Invalid(f"{self.id} has no points that can be replaced")
        with styled():
            return clear_logs(self.draw_points(problem))

    def _encoded_picture(self, data: Sequence[Dataset], evidence: Evidence, how: Setting) -> str:
        """The picture in base64, as a page can hold it; an equal one is not drawn again."""
        functions = [function for function in (self.check, self.draw) if function is not None]
        key = None if how.folder is None else picture_key(functions, data)
        if how.folder is None or key is None:
            return base64.b64encode(small_image(self.picture(data, evidence))).decode()
        shift = f".shift-{how.shift}" if how.shift else ""
        file = how.folder / "pictures" / f"{self.id}.{how.size}{shift}.webp"
        image = keep_picture(file, key, lambda: self.picture(data, evidence))
        return base64.b64encode(image).decode()

    def run(self, setting: Setting | None = None, progress: RunProgress | None = None) -> Verdict:
        """The verdict of one run; an experiment that raises gives an inconclusive one."""
        how, start, picture = setting or Setting(), perf_counter(), ""
        with warnings.catch_warnings(record=True) as seen, one_blas_thread():
            try:
                data = self.data(how, progress)
                evidence = self.evidence(data)
                if how.pictures and (self.draw is not None or evidence.plots):
                    picture = self._encoded_picture(data, evidence, how)
            except Exception as error:
                evidence = unfinished(sentence_of(error))
        evidence = with_warnings(evidence, seen)
        took = perf_counter() - start
        return self.verdict(evidence, how.size, how.shift, seconds=took, picture=picture)

    def verdict(
        self,
        evidence: Evidence,
        size: Size,
        shift: int = 0,
        *,
        seconds: float = 0.0,
        picture: str = "",
    ) -> Verdict:
        """The verdict that the evidence gives."""
        scope = self.scope.get(size, AS_PRINTED)
        told = (self.id, self.statement, self.place)
        return Verdict(*told, evidence, size, scope, shift, seconds, picture)


def _folder(folder: Path | None) -> contextlib.AbstractContextManager[Any]:
    """The folder for cells, or a temporary one."""
    return contextlib.nullcontext(folder) if folder else tempfile.TemporaryDirectory()


def failures(data: Sequence[Dataset]) -> list[str]:
    """What the failed cells say."""
    pairs = [(d.status.values.ravel(), d.sentence.values.ravel()) for d in data]
    return [str(s) for status, sentence in pairs for s in sentence[~np.isin(status, USABLE)]]


def unfinished(sentence: str) -> Evidence:
    """The evidence of an experiment that did not run to its end: none, and the reason."""
    return Evidence(
        ran="the experiment did not run to its end",
        premises={RAN: Premise(False, sentence)},
        findings=[sentence],
    )


def sentence_of(error: Exception) -> str:
    """The error in one sentence, with the module line where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}, line {last.lineno}"
    return f"{type(error).__name__}: {error} ({where})"


def with_warnings(evidence: Evidence, seen: list[warnings.WarningMessage]) -> Evidence:
    """The same evidence, warnings of the run among its findings."""
    lines = dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in seen)
    if not lines:
        return evidence
    return dataclasses.replace(evidence, findings=[*evidence.findings, *lines])
