"""Saved verdicts as a page: the list of claims, and one of them with its evidence and figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penchant.explore.controls import WHO, Choice
from penchant.explore.page import template, variables
from penchant.explore.picture import Picture
from penchant.explore.state import State, View
from penchant.lab.evidence.verdict import Verdicts
from penchant.lab.evidence.verdict_json import read_verdicts

MOST_BYTES = 100_000_000
ABOUT = "Each claim, what was measured for it, and the controls that must miss the tolerance."


def read_claims(source: str | Path) -> Verdicts:
    """The verdicts of a report folder or of its verdicts.json, judged by their own numbers."""
    file = Path(source)
    file = file / "verdicts.json" if file.is_dir() else file
    if not file.is_file():
        raise ValueError(f"{WHO}: there is no file {str(file)!r}; `penchant verify` writes one")
    if file.stat().st_size > MOST_BYTES:
        raise ValueError(f"{WHO}: {file.name} has more than {MOST_BYTES} bytes")
    try:
        verdicts = read_verdicts(file)
    except RecursionError:
        raise ValueError(f"{WHO}: {file.name} is nested too deeply for verdicts") from None
    if not len(verdicts):
        raise ValueError(f"{WHO}: {file.name} holds no verdict")
    return verdicts


def claims_view(verdicts: Verdicts) -> View:
    """The view of saved verdicts, one claim at a time."""
    words = {verdict.id: verdict.id for verdict in verdicts}
    chosen = Choice("claim", "claim", words, verdicts[0].id)
    title = f"Claims: {verdicts.summary}"
    return View("claims", title, ABOUT, (chosen,), lambda values: Picture((), ""))


class ClaimsPage:
    """State to HTML."""

    def __init__(self, verdicts: Verdicts, views: Mapping[str, View]):
        self.verdicts, self.views = verdicts, views

    def __call__(self, state: State) -> str:
        view, chosen = self.views["claims"], self.verdicts[str(state.values["claim"])]
        frame = variables(view.title, view.words, self.views, "claims")
        return template("claims.html").render(**frame, verdicts=self.verdicts, chosen=chosen)
