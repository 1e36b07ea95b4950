"""Public names in the code of a sentence become links to their pages."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes

from penchant.namespaces import public_names

CODE = re.compile(r"(?:penchant\.)?(\w+)(?:\(.*\))?")


def target(name: str) -> str:
    """The full name of a public name in the reference."""
    return "penchant.watch.watch" if name == "watch" else f"penchant.{name}"


def link(app: Any, doctree: Any) -> None:
    """Wrap every `name`, `penchant.name` and `name(...)` that is public and not in a link yet."""
    for code in list(doctree.findall(nodes.literal)):
        found = CODE.fullmatch(code.astext())
        if not found or found[1] not in public_names():
            continue
        if isinstance(code.parent, nodes.reference | addnodes.pending_xref | nodes.title):
            continue
        about = {"refdomain": "py", "reftype": "obj", "reftarget": target(found[1])}
        place = addnodes.pending_xref("", refexplicit=True, refdoc=app.env.docname, **about)
        code.replace_self(place)
        place += code
