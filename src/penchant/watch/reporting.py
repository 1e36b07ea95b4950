"""The report of a record: its findings in sentences and a headline, printed, drawn and written."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import functools
import io
import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from penchant.door import Invalid, door_as
from penchant.records import Record
from penchant.store import whole
from penchant.watch.backends.backend import WHO
from penchant.watch.export import LookTracker, findings, tracker_for
from penchant.watch.modules import module_moves
from penchant.watch.panel.sentences import panel_cost, panel_sentences
from penchant.watch.prediction import (
    GrokkingVerdict,
    JumpForecast,
    forecast_jump,
    forecasts_read,
    verdict,
)
from penchant.watch.record import save
from penchant.watch.regime import DISTANCE_LIMITS, Regime, regime, regimes
from penchant.watch.schedule import HEAD

RECORDS, PICTURES = (".nc", ".json"), (".png", ".svg")
Guard = Callable[[], contextlib.AbstractContextManager[Any]]

HEADLINES = {
    "kernel": "Kernel regime (the model is lazy)",
    "leaving": "Leaving the kernel regime",
    "rich": "Rich regime",
    "unknown": "Regime not known yet",
}
EVENTS = {"test accuracy": "jump of the test accuracy", "weights": "end of the kernel regime"}


@dataclasses.dataclass(frozen=True, repr=False)
class Report(Record):
    """The findings of a record, and the `files` that were written; a notebook shows its figure."""

    regime: Regime
    verdict: GrokkingVerdict
    forecast: JumpForecast
    files: tuple[Path, ...] = ()
    dataset: Any = dataclasses.field(default=None, repr=False)

    @property
    def headline(self) -> str:
        """Regime, verdict and forecast in one line, the title of the figure."""
        parts = [HEADLINES[self.regime.kind], _grokking(self.verdict)]
        if self.forecast.ahead:
            low, high = (_count(step) for step in (self.forecast.low, self.forecast.high))
            parts.append(f"{EVENTS[self.forecast.event]} forecast for steps {low} to {high}")
        return ", ".join(part for part in parts if part)

    @functools.cached_property
    def forecasts(self) -> list[tuple[float, JumpForecast]]:
        """The forecasts that a user could have read during the run, each with its step."""
        return forecasts_read(self.dataset)

    def rows(self) -> list[tuple[str, str]]:
        """(name, sentence) of every finding, and what the watch cost."""
        said = findings(self.dataset, (self.regime, self.verdict, self.forecast))
        rows = list(said.items())
        if score := _made(self.forecasts, self.forecast, self.dataset.attrs["start_step"]):
            rows.append(("forecasts", score))
        rows += panel_sentences(self.dataset).items()
        if cost := panel_cost(self.dataset):
            rows.append(("measures", cost))
        rows.append(("overhead", _overhead(self.dataset.attrs, self.dataset.sizes["time"])))
        rows += [("note", note) for note in self.dataset.attrs["notes"]]
        rows += [("failure", _failure(*failure)) for failure in self.dataset.attrs["failures"]]
        return rows + [("written", str(file)) for file in self.files]

    def print(self, console: Any = None) -> None:
        """Print the looks, the layers and all sentences; `console` is one of rich."""
        from penchant.plotting.watch_table import print_watch

        layers = module_moves(self.dataset).last
        print_watch(self.dataset, regimes(self.dataset), layers, self.rows(), console)

    def figure(self) -> Any:
        """The matplotlib figure: curves, forecasts, regimes in time, norms, and what moved."""
        from penchant.plotting.watch import draw_watch

        verdict, f, moves = self.verdict, self.forecast, module_moves(self.dataset)
        seen = f.state == "happened" and f.event != "weights"
        marks = [
            (verdict.t1, "training solved"),
            (verdict.t2, "test solved"),
            (f.step if seen else verdict.jump, "half of the jump"),
        ]
        first = float(self.dataset["call_step"].values.min(initial=math.inf))
        return draw_watch(
            self.dataset,
            self.headline,
            regimes(self.dataset),
            DISTANCE_LIMITS,
            [(step, text) for step, text in marks if math.isfinite(step) and step > first],
            (f.low, f.step, f.high) if f.ahead else None,
            f.step if f.state == "happened" else math.nan,
            (moves.names, moves.moved),
            [(step, f.low, f.step, f.high) for step, f in self.forecasts],
        )

    def _repr_html_(self) -> str:
        held, figure = io.BytesIO(), self.figure()
        _draw(figure, held, "png")
        data = base64.b64encode(held.getvalue()).decode()
        wide = round(100 * figure.get_figwidth())  # pixels; the picture has twice as many
        return f"<img src='data:image/png;base64,{data}' style='width: {wide}px; max-width: 100%'>"


def read(dataset: Any, files: Iterable[Path] = ()) -> Report:
    """The report of a record, silent."""
    return Report(regime(dataset), verdict(dataset), forecast_jump(dataset), tuple(files), dataset)


def report(dataset: Any, *files: str | os.PathLike[str], to: str | None = None) -> Report:
    """The report of a record, printed; see Watch.report."""
    summary = read(dataset, deliver(dataset, files, to))
    summary.print()
    return summary


def deliver(
    dataset: Any,
    files: Iterable[str | os.PathLike[str]],
    to: str | None,
    guard: Guard = contextlib.nullcontext,
    trackers: dict[str, LookTracker] | None = None,
    live: Any = None,
) -> list[Path]:
    """Write the files and send the record to a tracker, each inside its own guard.

    `trackers` are those that were used before; they get only new values, of the record `live`
    without the looks that were taken after their steps.
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
            known.setdefault(key, fresh).finish(dataset if live is None else live)
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


@door_as(WHO)
def save_figure(summary: Report, file: Path) -> Path:
    """Draw a report into `file`, completely or not at all, and return its path."""
    if file.suffix not in PICTURES:
        raise Invalid(f"a figure is written as .png or .svg, got {file.name!r}")
    with whole(file) as draft:
        _draw(summary.figure(), draft, file.suffix[1:])
    return file


@door_as(WHO)
def draw_together(records: Mapping[str, Any], file: Path) -> Path:
    """Draw several records with their names in one picture, and return its path."""
    from penchant import plot

    if file.suffix not in PICTURES:
        raise Invalid(f"a figure is written as .png or .svg, got {file.name!r}")
    with whole(file) as draft:
        _draw(plot(dict(records)), draft, file.suffix[1:])
    return file


def _draw(figure: Any, target: Any, kind: str) -> None:
    from penchant.plotting.mplstyle import styled

    with styled():
        # a date would make equal pictures differ
        figure.savefig(target, format=kind, metadata={"Date": None} if kind == "svg" else None)


def _grokking(finding: GrokkingVerdict) -> str:
    if finding.kind == "grok":
        return (
            f"grokked (training solved at step {_count(finding.t1)}, test at {_count(finding.t2)})"
        )
    words = {
        "misgrok": "misgrokked",
        "mirage": "a mirage of grokking",
        "slow": "a slow rise of the test curve",
        "in progress": "grokking in progress",
        "double descent": "double descent",
        "none": "no grokking so far",
    }
    return words.get(finding.kind, "")


def _made(made: list[tuple[float, JumpForecast]], now: JumpForecast, start: float) -> str:
    """How the forecasts compare with what happened; empty if there were none."""
    if not made:
        return ""
    low, step, high = np.array([(f.low, f.step, f.high) for _, f in made]).T
    ends = f"{_count(made[0][0])} to step {_count(made[-1][0])}"
    text = f"{len(made)} could be read from step {ends}"
    if now.state != "happened":
        ends = f"{_count(step.min())} to {_count(step.max())}"
        return f"{text}, for steps {ends}; the {EVENTS[now.event]} has not been seen"
    held = int(np.count_nonzero((low <= now.step) & (now.step <= high)))
    error = float(np.mean(np.abs(step - now.step)) / (now.step - start))
    return (
        f"{text}; the {EVENTS[now.event]} came at step {_count(now.step)}, which {held} of the "
        f"{len(made)} intervals contain (mean error {error:.0%})"
    )


def _overhead(attributes: dict[str, Any], looks: int) -> str:
    spent, trained = attributes["look_seconds"], attributes["training_seconds"]
    share = f"{spent / trained:.1%}" if trained > 0 else "an unknown share"
    budget = attributes["budget"]
    limit = "no limit"
    if budget is not None:
        limit = f"at most {100 * budget:.3g}% allowed"
        if trained < HEAD:
            limit += f" in {HEAD:g} s and more, and {budget * HEAD:.3g} s in less"
    text = (
        f"{looks} looks took {spent:.3g} s, {share} of {trained:.3g} s of training ({limit}); the "
        f"set-up took {attributes['setup_seconds']:.3g} s"
    )
    if asked := attributes.get("asked_seconds", 0.0):
        text += f", and looks that were asked for, such as the last one, {asked:.3g} s"
    return text


def _failure(kind: str, step: float | None, count: int, sentence: str) -> str:
    at = "" if step is None or math.isnan(step) else f", first at step {step:g}"
    return f"{sentence} ({count} time{'s' if count > 1 else ''}{at})"


def _count(step: float) -> str:
    """A step in words: three digits are enough."""
    return f"{float(f'{step:.3g}'):,.0f}" if step < 1e7 else f"{step:.3g}"
