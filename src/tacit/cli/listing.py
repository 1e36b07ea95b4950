"""`tacit list`: the claims and figures there are."""

from __future__ import annotations

from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from tacit.claims.registry import ledger
from tacit.cli.spoken import output, spoken


@spoken
def listing() -> None:
    """List the claims (for `tacit verify`) and the figures (for `tacit figure`)."""
    from tacit.figures import registry

    claims = ((claim.id, claim.statement, claim.place) for claim in ledger.claims())
    figures = ((entry.id, entry.title, entry.source) for entry in registry.figures().values())
    console = output()
    console.print(_table("claim", "statement", claims))
    console.print(_table("figure", "title", figures))


def _table(what: str, says: str, rows: Iterable[tuple[str, str, str]]) -> Table:
    table = Table(what, says, "place", box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
