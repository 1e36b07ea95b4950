"""The table [draw] of a study: how its picture is drawn, checked as far as a description can be.

    [draw]
    x = "alpha"                 # an axis of the grid, by its name in the result
    y = "k"                     # a second axis: a map; without y: curves over x
    colour = "excess"           # the variable: colour of a map, height of curves; seeds' median
    contours = {excess = 0.5, scale = 1.0}  # lines where a variable crosses a level, measured first
    range = [0.0, 1.0]          # of the colour, or of the height
    log = false                 # logarithmic colour, or height

Every key may be left out. Variables are known only after a run; a wrong one is told when the
picture is drawn. The table is no part of a cell, so a picture can be changed without a new run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tacit.arguments import one_of, real

if TYPE_CHECKING:
    from tacit.studies.study import Study

KEYS = ("x", "y", "colour", "contours", "range", "log")


def check_draw(study: Study) -> None:
    """A sentence for the first thing of the table that cannot be drawn."""
    who, table = study.source, study.draw
    for key in table:
        one_of(who, "key in draw", key, KEYS)
    _check_axes(study)
    colour = table.get("colour", "")
    if "colour" in table and not _named(colour):
        raise ValueError(f"{who}: draw.colour must be a variable's name, got {colour!r:.80}")
    _check_contours(who, table.get("contours", {}))
    if not isinstance(table.get("log", False), bool):
        raise ValueError(f"{who}: draw.log must be true or false, got {table['log']!r:.80}")
    if "range" in table:
        _check_range(who, table["range"], table.get("log", False))


def _check_axes(study: Study) -> None:
    who, names = study.source, [axis.name for axis in study.axes]
    for key in ("x", "y"):
        given = study.draw.get(key)
        if given is None:
            continue
        if not names:
            raise ValueError(f"{who}: draw.{key} must name an axis, but the grid has none")
        if not isinstance(given, str):
            raise ValueError(f"{who}: draw.{key} must be the name of an axis, got {given!r:.80}")
        one_of(who, f"axis in draw.{key}", given, names)
    if "x" in study.draw and study.draw["x"] == study.draw.get("y"):
        raise ValueError(f"{who}: draw.x and draw.y are both {study.draw['x']!r}; name two axes")


def _check_contours(who: str, given: Any) -> None:
    if not isinstance(given, Mapping):
        raise ValueError(
            f"{who}: draw.contours must be a table such as {{excess = 0.5}}, got {given!r:.80}"
        )
    for name, level in given.items():
        real(who, f"draw.contours.{name}", level)


def _check_range(who: str, given: Any, log: bool) -> None:
    if not isinstance(given, list) or len(given) != 2:
        raise ValueError(f"{who}: draw.range must be [low, high], got {given!r:.80}")
    low, high = (real(who, "draw.range", end) for end in given)
    if not low < high or (log and low <= 0):
        rule = "0 < low < high, as log is true" if log else "low < high"
        raise ValueError(f"{who}: draw.range must have {rule}, got {given!r:.80}")


def _named(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
