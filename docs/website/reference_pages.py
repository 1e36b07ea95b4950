"""One page for every public name, from its docstring, and the overview by what names are for."""

import functools
import inspect
import re
from pathlib import Path

from penchant.namespaces import public, public_names

ROOT = Path(__file__).resolve().parent.parent.parent
ROOMS = {  # heading -> the parts of penchant whose names stand under it
    "Problems": ("problems",),
    "Models": ("models",),
    "Training": ("training",),
    "Regularizers": ("regularizers",),
    "Predictions": ("solvers",),
    "Measures": ("measures",),
    "Your own training loop": ("watch",),
    "Studies and verdicts": ("lab",),
    "Results and files": ("records", "store", "plotting"),
}
HEAD = """# Reference

Every public name has a page with its parameters, what it returns and an example that runs. A wrong
argument raises `ValueError` with one sentence: the function, the rule, the value and a way out.
A computation that fails numerically raises [`NumericalError`](NumericalError.rst); a study records
the failure and goes on. Which method trains which model on which problem is a
[table](../howto/combinations.md).
"""


def room_of(name: str) -> str:
    """The part of penchant in which a public name lives."""
    return public(name).__module__.split(".")[1]


def page_of(name: str) -> str:
    """The name of its page: `Watch` and `watch` are two files on every file system."""
    twin = any(other != name and other.lower() == name.lower() for other in public_names())
    return f"{name}-class" if twin and name[0].isupper() else name


def groups() -> dict[str, list[str]]:
    """The public names under each heading; a room without a heading is an error."""
    rooms = {room: heading for heading, own in ROOMS.items() for room in own}
    found: dict[str, list[str]] = {heading: [] for heading in ROOMS}
    for name in public_names():
        found[rooms[room_of(name)]].append(name)
    return found


def document(name: str) -> str:
    thing = public(name)
    return inspect.getdoc(getattr(thing, "watch", thing)) or ""  # of the function, not of its room


def pages(known: dict[str, str]) -> dict[str, str]:
    """The page of every public name, and the overview."""
    found = {f"reference/{page_of(name)}.rst": _page(name, known) for name in public_names()}
    return found | {"reference/index.md": _overview()}


def _overview() -> str:
    lines = [HEAD]
    for heading, names in groups().items():
        lines += [f"## {heading}", "", "| name | what it is |", "|---|---|"]
        lines += [f"| [`{name}`]({page_of(name)}.rst) | {_first(name)} |" for name in names]
        tree = "\n".join(f"{name} <{page_of(name)}>" for name in names)
        lines += ["", f"```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{tree}\n```", ""]
    return "\n".join(lines)


def _first(name: str) -> str:
    line = document(name).partition("\n\n")[0].replace("\n", " ")
    parts = re.split(r"(`[^`]*`)", line)
    plain = (re.sub(r"([\\*_<>|~\[\]])", r"\\\1", part) for part in parts[::2])
    parts[::2] = plain
    return "".join(parts).replace("|", r"\|").replace(r"\\|", r"\|")


def _page(name: str, known: dict[str, str]) -> str:
    kind = "autoclass" if inspect.isclass(public(name)) else "autofunction"
    full = "penchant.watch.watch" if name == "watch" else f"penchant.{name}"
    lines = [name, "=" * len(name), "", f".. {kind}:: {full}"]
    if kind == "autoclass":
        lines += ["   :members:"]
    lines += ["", *_uses(name, known)]
    return "\n".join(lines) + "\n"


def _uses(name: str, known: dict[str, str]) -> list[str]:
    """Links to the pages that use the name."""
    pages = [
        page
        for page, text in _texts(tuple(known.items()))
        if re.search(rf"penchant\.{name}\b", text)
    ]
    if not pages:
        return []
    links = ", ".join(f":doc:`/{page.rpartition('.')[0]}`" for page in dict.fromkeys(pages))
    return [".. rubric:: Used in", "", links]


@functools.cache
def _texts(known: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """The pages that teach by examples, with their text."""
    taught = [(file, page) for file, page in known if page.split("/")[0] in TAUGHT]
    return [
        (page, (ROOT / file).read_text(encoding="utf-8"))
        for file, page in taught
        if (ROOT / file).is_file()
    ]


TAUGHT = ("start", "howto", "gallery")
