"""Preparing the page: read and check the files, collect the views, start the server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penchant.door import Invalid, door_as
from penchant.explore.controls import WHO
from penchant.explore.server import Explorer, check_binding, require_bokeh
from penchant.explore.state import State, View
from penchant.explore.tables import MOST_BYTES, keep
from penchant.explore.views import own_data_view, sphere, theory_views, watch_view
from penchant.inspection import Refusal, refuse_large


@door_as(WHO)
def prepared(
    study: Path | None = None,
    verdicts: Path | None = None,
    data: Path | None = None,
    watch: Path | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    public: bool = False,
    warm: bool = True,
) -> Explorer:
    """A server that listens; a wrong file raises before it starts.

    What the user named comes first in the menu: a study, a table, a record. `warm` computes the
    first pictures in advance, so that the first visits are fast.
    """
    require_bokeh()
    check_binding(host, port, token, public)
    views, plain = {**theory_views(), "data": own_data_view()}, {}
    if data is not None:
        views = {"data": own_data_view(_table(data)), **theory_views()}
    if watch is not None:
        views = {"watch": watch_view(watch), **views}
    if study is not None:
        from penchant.explore.study.view import study_view
        from penchant.lab.studies.gathered import read_gathered

        views = {"study": study_view(read_gathered(study)), **views}
    if verdicts is not None:
        from penchant.explore.claims import ClaimsPage, claims_view, read_claims

        claims = read_claims(verdicts)
        views["claims"] = claims_view(claims)
        plain["claims"] = ClaimsPage(claims, views)
    if warm:
        sphere.prepare()
        _visit({name: view for name, view in views.items() if name not in plain})
    return Explorer(views, plain, host, port, token, public)


def _table(file: Path) -> str:
    """The key of the table in a file."""
    try:
        refuse_large(file, MOST_BYTES)
        return keep(file.read_bytes(), file.name)
    except OSError as reason:
        raise Invalid(f"cannot read {str(file)!r} ({reason.strerror})") from None
    except Refusal as reason:
        raise Invalid(f"{str(file)!r} {reason}") from None


def _visit(views: Mapping[str, View]) -> None:
    """Build every document once in advance, so that the first visits are fast."""
    from bokeh.document import Document

    from penchant.explore.document import Live

    for view in views.values():
        Live(Document(), State(view.name, view.start), views)
