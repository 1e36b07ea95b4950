"""What a record says, in sentences and a headline; printed, drawn, written and handed on."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import io
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tacit.records import Record
from tacit.store import whole
from tacit.watch.backend import WHO
from tacit.watch.export import Tracker, tracker_for
from tacit.watch.prediction import JumpForecast, Verdict, forecast_jump, verdict
from tacit.watch.record import save
from tacit.watch.regime import DISTANCE, Regime, regime, regimes

RECORDS, PICTURES = (".nc", ".json"), (".png", ".svg")
FEW = 6  # looks, below which the report tells how to get more
Guard = Callable[[], contextlib.AbstractContextManager[Any]]

HEADLINES = {
    "kernel": "Kernel regime (the model is lazy)",
    "leaving": "Leaving the kernel regime",
    "rich": "Rich regime",
    "unknown": "Regime not known yet",
}


@dataclasses.dataclass(frozen=True, repr=False)
class Report(Record):
    """The findings of a record, and the `files` that were written; a notebook shows its figure."""

    regime: Regime
    verdict: Verdict
    forecast: JumpForecast
    files: tuple[Path, ...] = ()
    dataset: Any = dataclasses.field(default=None, repr=False)

    @property
    def headline(self) -> str:
        """Regime, verdict and forecast in one line, the title of the figure."""
        parts = [HEADLINES[self.regime.kind], _grokking(self.verdict)]
        if self.ahead:
            low, high = (_count(step) for step in (self.forecast.low, self.forecast.high))
            parts.append(f"transition forecast for steps {low} to {high}")
        return ", ".join(part for part in parts if part)

    @property
    def ahead(self) -> bool:
        """Whether there is a forecast of something that has not happened yet."""
        seen = self.dataset["glance_step"].values
        return self.forecast.known and self.forecast.step > float(seen.max(initial=0.0))

    def rows(self) -> list[tuple[str, str]]:
        """(name, sentence) of every finding, and what the watch cost."""
        told = [
            ("regime", f"{self.regime.kind}: {self.regime.evidence}"),
            ("verdict", f"{self.verdict.kind}: {self.verdict.sentence}"),
            ("forecast", self.forecast.sentence),
            ("overhead", _overhead(self.dataset.attrs, self.dataset.sizes["time"])),
        ]
        told += [("note", note) for note in self.dataset.attrs["notes"]]
        told += [("failure", _failure(*failure)) for failure in self.dataset.attrs["failures"]]
        return told + [("written", str(file)) for file in self.files]

    def print(self, console: Any = None) -> None:
        """Prints a table of the looks and all sentences; `console` is one of rich."""
        from tacit.plotting.watch_table import print_watch

        print_watch(self.dataset, regimes(self.dataset), self.rows(), console)

    def figure(self) -> Any:
        """The matplotlib figure: curves, regimes in time, norms, and the interval forecast."""
        from tacit.plotting.watch import draw_watch

        marks = [(self.verdict.t1, "training solved"), (self.verdict.t2, "test solved")]
        first = float(self.dataset["call_step"].values.min(initial=math.inf))
        f = self.forecast
        return draw_watch(
            self.dataset,
            self.headline,
            regimes(self.dataset),
            DISTANCE,
            [(step, text) for step, text in marks if math.isfinite(step) and step > first],
            (f.low, f.step, f.high) if f.known else None,
        )

    def _repr_html_(self) -> str:
        held = io.BytesIO()
        _draw(self.figure(), held, "png")
        return f"<img src='data:image/png;base64,{base64.b64encode(held.getvalue()).decode()}'>"


def read(dataset: Any, files: Iterable[Path] = ()) -> Report:
    """The report of a record, silent."""
    return Report(regime(dataset), verdict(dataset), forecast_jump(dataset), tuple(files), dataset)


def report(dataset: Any, *files: str | os.PathLike[str], to: str | None = None) -> Report:
    """The report of a record, printed; see Watch.report."""
    found = read(dataset, deliver(dataset, files, to))
    found.print()
    return found


def deliver(
    dataset: Any,
    files: Iterable[str | os.PathLike[str]],
    to: str | None,
    guard: Guard = contextlib.nullcontext,
    trackers: dict[str, Tracker] | None = None,
) -> list[Path]:
    """Writes the files and hands the record to a tracker, each inside a guard of its own.

    `trackers` are those of before, which know what they have.
    """
    known = {} if trackers is None else trackers
    written: list[Path] = []
    places = [Path(file) for file in files]
    folders = [place for place in places if to is not None and place.suffix not in KNOWN]
    for place in places:
        if place not in folders:
            with guard():
                written.append(_write(dataset, place))
    if to is not None:
        with guard():
            key, fresh = tracker_for(to, folders)
            known.setdefault(key, fresh).finish(dataset)
            written += folders
    return written


KNOWN = (*RECORDS, *PICTURES)


def _write(dataset: Any, file: Path) -> Path:
    if file.suffix in RECORDS:
        return save(dataset, file)
    if file.suffix in PICTURES:
        return save_figure(read(dataset), file)
    raise ValueError(
        f"{WHO}: a report is written as {', '.join(KNOWN)}, got {file.name!r} (a folder is for "
        "to='tensorboard')"
    )


def save_figure(found: Report, file: Path) -> Path:
    """Draw a report into `file`, whole or not at all, and return its path."""
    if file.suffix not in PICTURES:
        raise ValueError(f"{WHO}: a figure is written as .png or .svg, got {file.name!r}")
    with whole(WHO, file) as draft:
        _draw(found.figure(), draft, file.suffix[1:])
    return file


def _draw(figure: Any, target: Any, kind: str) -> None:
    from tacit.plotting.style import styled

    with styled():
        # a date inside would make equal pictures differ
        figure.savefig(target, format=kind, metadata={"Date": None} if kind == "svg" else None)


def _grokking(found: Verdict) -> str:
    if found.kind == "grok":
        return f"grokked (training solved at step {_count(found.t1)}, test at {_count(found.t2)})"
    told = {
        "misgrok": "misgrokked",
        "mirage": "a mirage of grokking",
        "slow": "a slow rise of the test curve",
        "in progress": "grokking in progress",
        "double descent": "double descent",
        "none": "no grokking so far",
    }
    return told.get(found.kind, "")


def _overhead(attributes: dict[str, Any], looks: int) -> str:
    spent, trained = attributes["look_seconds"], attributes["training_seconds"]
    share = f"{spent / trained:.1%}" if trained > 0 else "an unknown share"
    budget = attributes["budget"]
    limit = "no limit" if budget is None else f"at most {100 * budget:.3g}% allowed"
    text = (
        f"{looks} looks took {spent:.3g} s, {share} of {trained:.3g} s of training ({limit}); the "
        f"set-up took {attributes['setup_seconds']:.3g} s"
    )
    if budget is not None and looks < FEW:
        text += "; a larger budget= or fewer probe inputs give more looks"
    return text


def _failure(kind: str, step: float | None, count: int, sentence: str) -> str:
    at = "" if step is None or math.isnan(step) else f", first at step {step:g}"
    return f"{sentence} ({count} time{'s' if count > 1 else ''}{at})"


def _count(step: float) -> str:
    """A step in words: three digits are enough."""
    return f"{float(f'{step:.3g}'):,.0f}" if step < 1e7 else f"{step:.3g}"
