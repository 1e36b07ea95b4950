"""Bars against the tolerance: how far the measurements and the controls lie from the tolerance."""

from __future__ import annotations

import math

from tacit.evidence.evidence import Check, Evidence
from tacit.report.markup import Markup, tag

SPAN = 9.0  # powers of ten shown on either side of the tolerance


def strain(check: Check) -> float:
    """The share of the tolerance that is used: below 1 inside, above 1 outside; NaN if none."""
    if check.kind == "error" and check.tolerance > 0:
        return abs(check.measured - check.predicted) / check.tolerance
    limit = check.predicted + check.tolerance * (1 if check.kind == "at most" else -1)
    if check.kind == "error" or limit <= 0 or check.measured <= 0:
        return math.nan
    return check.measured / limit if check.kind == "at most" else limit / check.measured


def place(check: Check) -> float:
    """Where the check stands, 0 to 1 from left to right with the tolerance at one half."""
    used = strain(check)
    power = -SPAN if used == 0 else math.log10(used)
    return 0.5 + 0.5 * max(-1.0, min(1.0, power / SPAN))


def tolerance_bars(evidence: Evidence) -> Markup | None:
    """One track a check and a control; None if nothing can be placed on it."""
    rows = [_track(check, "check") for check in evidence.deciding if _placeable(check)]
    rows += [_track(c, "control") for c in evidence.controls.values() if _placeable(c)]
    if not rows:
        return None
    scale = tag(
        "div",
        tag("span", "← inside"),
        tag("span", "tolerance"),
        tag("span", "outside →"),
        class_="scale",
    )
    note = f"Distance in units of the tolerance, one power of ten a tick, cut at 10^±{SPAN:.0f}."
    return tag("figure", *rows, scale, tag("figcaption", note), class_="tolerance_bars")


def _placeable(check: Check) -> bool:
    return not math.isnan(strain(check))


def _track(check: Check, kind: str) -> Markup:
    dot = tag("i", "●" if kind == "check" else "×", style=f"left:{100 * place(check):.2f}%")
    name = tag("span", check.name, class_="name")
    return tag("div", name, tag("div", dot, class_="track"), class_=f"row {kind}")
