"""Mathematics in statements as MathML, which browsers render without a script or a network.

`typeset` finds the mathematics in a text (alpha^2 k, |a - a*|, l1, 1e-5) and writes it as the
formulas that pictures have; here these formulas become elements.
"""

from __future__ import annotations

import re

from penchant.lab.report.markup import Markup, joined, tag
from penchant.limits import Turns
from penchant.plotting.typeset import FORMULA, LETTERS, typeset

TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[{}_^]|\d+(?:\.\d+)?|[A-Za-z]|\S")


def mathematics(text: str) -> Markup:
    """The text with its formulas as MathML; everything else is escaped."""
    parts = FORMULA.split(typeset(text))
    return joined(
        *(
            tag("math", _row(TOKEN.findall(part[1:-1]))) if k % 2 else part.replace(r"\$", "$")
            for k, part in enumerate(parts)
        )
    )


def _row(tokens: list[str]) -> Markup:
    """All of the tokens, side by side."""
    queue, found = list(reversed(tokens)), []
    turns = Turns(1_000_000, "the formula")
    while queue:
        turns.take()
        found.append(_scripted(queue))
    return tag("mrow", *found)


def _scripted(queue: list[str]) -> Markup:
    """The next symbol with what stands below and above it."""
    base, scripts = _symbol(queue), {}
    while queue and queue[-1] in "_^":
        sign = queue.pop()
        scripts[sign] = _symbol(queue)
    if len(scripts) == 2:
        return tag("msubsup", base, scripts["_"], scripts["^"])
    if scripts:
        ((sign, script),) = scripts.items()
        return tag("msub" if sign == "_" else "msup", base, script)
    return base


def _symbol(queue: list[str]) -> Markup:
    """The next symbol or group."""
    token = queue.pop() if queue else ""
    if token == "{":
        return _row(_group(queue))
    if token == r"\mathrm":
        queue.pop()
        return tag("mi", "".join(_group(queue)), mathvariant="normal")
    if token == r"\hat":
        return tag("mover", _symbol(queue), tag("mo", "^"))
    if token == r"\,":
        return tag("mspace", width="0.17em")
    if token == r"\times":
        return tag("mo", "×")
    if token.startswith("\\"):
        return tag("mi", LETTERS.get(token[1:], token[1:]))
    kind = "mn" if token[:1].isdigit() else "mi" if token.isalpha() else "mo"
    return tag(kind, token.replace("-", "−"))


def _group(queue: list[str]) -> list[str]:
    """The tokens up to the brace that closes the group, which are taken from the queue."""
    found, depth = [], 1
    while queue:
        token = queue.pop()
        depth += (token == "{") - (token == "}")
        if not depth:
            break
        found.append(token)
    return found
