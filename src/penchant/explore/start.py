"""Preparing the page: read and check the files, collect the views, start the server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penchant.door import door_as
from penchant.explore import sphere
from penchant.explore.controls import WHO
from penchant.explore.server import Explorer, check_binding, require_bokeh
from penchant.explore.state import State, View
from penchant.explore.views import theory_views


@door_as(WHO)
def prepared(
    study: Path | None = None,
    verdicts: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    warm: bool = True,
) -> Explorer:
    """A server that listens; a wrong file raises before it starts.

    A study comes first in the menu, because the user named it. `warm` computes the first pictures
    in advance, so that the first visits are fast.
    """
    require_bokeh()
    check_binding(host, port, token)
    views, plain = theory_views(), {}
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
    return Explorer(views, plain, host, port, token)


def _visit(views: Mapping[str, View]) -> None:
    """Build every document once in advance, so that the first visits are fast."""
    from bokeh.document import Document

    from penchant.explore.document import Live

    for view in views.values():
        Live(Document(), State(view.name, view.start), views)
