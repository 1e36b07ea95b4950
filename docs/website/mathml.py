"""Formulas of the pages as MathML, which a browser sets without a script or a network."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx import addnodes

from formulas import split


def typeset(app: Any, doctree: Any) -> None:
    """Replace the formulas of a page; code, titles and signatures stay as they are."""
    for block in list(doctree.findall(nodes.literal_block)):
        indented = block.get("language") == "none"
        if indented and app.env.docname.startswith("theory/"):
            block.replace_self(_display(block.astext()))
    skipped = (
        *(nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.title),
        *(nodes.raw, nodes.doctest_block, addnodes.desc_signature, addnodes.toctree, nodes.strong),
        nodes.term,
    )
    for text in list(doctree.findall(nodes.Text)):
        if not any(isinstance(above, skipped) for above in _above(text)) or _bold(text):
            text.parent.replace(text, _nodes(text.astext()))


def _above(node: Any) -> Any:
    while node.parent is not None:
        node = node.parent
        yield node


def _bold(text: Any) -> bool:
    """True for a statement, which is bold and begins its paragraph."""
    return isinstance(text.parent, nodes.strong) and len(text.astext()) > 40


def _nodes(text: str) -> list[Any]:
    return [
        nodes.math(part, part) if formula else nodes.Text(part) for formula, part in split(text)
    ]


def _display(text: str) -> Any:
    """A formula on lines of its own, which the theory indents."""
    block = nodes.container(classes=["display"])
    for line in text.splitlines():
        wide = re.split(r"\s{3,}", line.strip())
        paragraph = nodes.paragraph()
        for k, piece in enumerate(wide):
            paragraph += [nodes.Text("\u2003\u2003")] if k else []
            paragraph += _nodes(piece)
        block += paragraph
    return block


def inline(translator: Any, node: Any) -> None:
    """Write a formula within a sentence."""
    _write(translator, node, "inline")


def block(translator: Any, node: Any) -> None:
    """Write a formula on a line of its own."""
    _write(translator, node, "block")


def _write(translator: Any, node: Any, display: str) -> None:
    text = convert(node.astext(), display=display)
    bar = '<mo stretchy="false"{}>&#x0007C;</mo>'  # of a norm: no space beside it
    text = text.replace(bar.format(""), bar.format(' lspace="0" rspace="0"'))
    translator.body.append(text)
    raise nodes.SkipNode
