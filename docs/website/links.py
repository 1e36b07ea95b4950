"""Public names in the code of a sentence become links to their pages."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes

from reference_pages import targets

CODE = re.compile(r"(?:penchant\.)?([\w.]+)(?:\(.*\))?")


def link(app: Any, doctree: Any) -> None:
    """Wrap every `name`, `penchant.name` and `name(...)` that is public and not in a link yet."""
    for code in list(doctree.findall(nodes.literal)):
        found = CODE.fullmatch(code.astext())
        if not found or found[1] not in targets():
            continue
        if isinstance(code.parent, nodes.reference | addnodes.pending_xref | nodes.title):
            continue
        about = {"refdomain": "py", "reftype": "obj", "reftarget": targets()[found[1]]}
        place = addnodes.pending_xref("", refexplicit=True, refdoc=app.env.docname, **about)
        code.replace_self(place)
        place += code
