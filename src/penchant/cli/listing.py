"""`penchant list`: the experiments of the papers and the studies, one line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.text import Text

from penchant.cli.claims import heading, told
from penchant.cli.console import errors_in_one_line, output
from penchant.lab.paper import letters_of, papers
from penchant.lab.reading import named_studies
from penchant.lab.record import read_record
from penchant.lab.registry import all_claims
from penchant.mathematics import in_terminal
from penchant.suggestions import nearest

SINGULAR = {"experiment": "experiments", "study": "studies"}
KINDS = ("experiments", "studies")


class Entry(NamedTuple):
    """One line of the list."""

    kind: str
    id: str
    text: str
    note: str

    def matches(self, word: str) -> bool:
        """True for a kind, the letter of a source, an id, or a text that occurs in the line."""
        kind = SINGULAR.get(word.lower(), word.lower())
        if kind in KINDS:
            return self.kind == kind
        if word.upper() in {paper.letters.upper() for paper in papers()}:
            return self.id.upper().startswith(f"{word.upper()}-")
        return any(word.lower() in part.lower() for part in self[1:])


@errors_in_one_line
def listing(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="Only entries that match every word: letters of a paper, studies, an id, any text."
        ),
    ] = None,
) -> None:
    """List the experiments of the papers and the other studies.

    `penchant verify ID`, `penchant figure ID` and `penchant run ID` accept every experiment.

    \b
    [bold]Examples[/bold]
      penchant list                  everything, one line each
      penchant list W                only the paper whose ids begin with W-
      penchant list studies          studies that only `penchant run` accepts
      penchant list N nuclear        entries that match both words
      penchant list ID               the entry with this id, in full
      penchant list | grep margin    in a pipe or a file, lines are not cut
    """
    known = list(_entries())
    entries = [entry for entry in known if all(entry.matches(word) for word in words or ())]
    if not entries:
        raise ValueError(_nothing(words or [], known))
    console = output()
    for title, group in groupby(entries, _title):
        lines = list(group)
        if len(entries) > 1:
            _print_heading(console, title, lines)
        for entry in lines:
            _print(console, entry, max(len(line.id) for line in lines), whole=len(entries) == 1)


def _title(entry: Entry) -> str:
    """What the heading above an entry names: the letters of its paper, or its kind."""
    return letters_of(entry.id) if entry.kind == "experiments" else entry.kind


def _print_heading(console: Console, title: str, lines: Sequence[Entry]) -> None:
    first = lines[0]
    if first.kind == "experiments":
        letters = first.id.split("-")[0]
        text = heading(letters, f"{len(lines)}: penchant verify {letters}")
    else:
        text = Text.assemble((title, "bold"), (f"  ({len(lines)}: penchant run NAME)", "dim"))
    if console.is_terminal:
        text.truncate(console.width, overflow="ellipsis")
    console.print(text, soft_wrap=True)


def _entries() -> Iterator[Entry]:
    known = all_claims()
    for experiment in known.experiments():
        record = read_record(experiment.id)
        known_as = f"; {told(record)}" if record and record.largest else ""
        note = f"{experiment.place}{known_as}"
        yield Entry("experiments", experiment.id, experiment.statement, note)
    for name, (title, sizes) in named_studies(known).items():
        if name not in known.ids:
            yield Entry("studies", name, title, ", ".join(sizes))


def _print(console: Console, entry: Entry, width: int, whole: bool) -> None:
    """One line, cut at the width of a terminal; a single entry is shown in full."""
    line = Text.assemble((f"{entry.id:<{width}}", "bold"), f"  {in_terminal(entry.text)}")
    line.append(f"  [{in_terminal(entry.note)}]", style="dim")
    if console.is_terminal and not whole:
        line.truncate(console.width, overflow="ellipsis")
    console.print(line, soft_wrap=not (console.is_terminal and whole))


def _nothing(words: list[str], known: list[Entry]) -> str:
    names = dict.fromkeys([*KINDS, *(entry.id for entry in known)])
    unknown = next((w for w in words if not any(e.matches(w) for e in known)), None)
    if unknown is None:
        return f"list: nothing matches all of {', '.join(words)}; give fewer words"
    near = nearest(unknown, names)
    hint = f"did you mean {', '.join(near)}?" if near else "`penchant list` alone shows everything"
    return f"list: nothing matches {unknown!r}; {hint}"
