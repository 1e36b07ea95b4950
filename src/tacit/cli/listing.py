"""`tacit list`: the claims, figures and studies there are."""

from __future__ import annotations

from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from tacit.claims.registry import ledger
from tacit.cli.spoken import output, spoken


@spoken
def listing() -> None:
    """List claims (for `tacit verify`), figures (`tacit figure`) and studies (`tacit run`)."""
    from tacit.figures import registry
    from tacit.studies.reading import preset_forms

    claims = ((claim.id, claim.statement, claim.place) for claim in ledger.claims())
    figures = ((entry.id, entry.title, entry.source) for entry in registry.figures().values())
    studies = ((name, title, ", ".join(forms)) for name, (title, forms) in preset_forms().items())
    console = output()
    console.print(_table("claim", "statement", "place", claims))
    console.print(_table("figure", "title", "place", figures))
    console.print(_table("study", "title", "presets", studies))


def _table(what: str, says: str, last: str, rows: Iterable[tuple[str, str, str]]) -> Table:
    table = Table(what, says, last, box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
