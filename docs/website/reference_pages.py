"""The reference: a page for every namespace, on which autosummary lists its public names.

autosummary also writes the page of every name, by templates/name.rst.
"""

import functools
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import penchant

ROOT = Path(__file__).resolve().parent.parent.parent
TITLES = {  # part of penchant -> the title of its page
    "problems": "Problems",
    "models": "Models",
    "training": "Training",
    "methods": "Methods",
    "stop": "When to stop",
    "record": "What to record",
    "regularizers": "Regularizers",
    "solvers": "Predictions",
    "measures": "Measures",
    "forecasts": "Forecasts",
    "watch": "Your own training loop",
    "lab": "Studies and verdicts",
    "plotting": "Pictures",
}
FIRST = "The first names"
HEAD = """# Reference

Every public name has a page with its parameters, what it returns and an example that runs. A wrong
argument raises `ValueError` with one sentence: the function, the rule, the value and a way out.
A computation that fails numerically raises `NumericalError`; a study records
the failure and goes on. Which method trains which model on which problem is a
[table](../howto/combinations.md).

"""


@functools.cache
def groups() -> dict[str, list[str]]:
    """The full names of what is public, by the namespace whose page lists them.

    A namespace lists its names as `__all__`. A name at the top stands on the page `penchant`,
    unless the room in which it lives has no list of its own.
    """
    rooms = {room: list(getattr(_room(room), "__all__", ())) for room in TITLES}
    rooms["watch"] = []  # a function with a room behind it: the names at the top are its list
    found = {"penchant": []} | {f"penchant.{room}": [] for room in TITLES}
    for name in penchant.__all__:
        if inspect.ismodule(getattr(penchant, name)) and name != "watch":
            continue
        home = getattr(penchant, "_HOMES", {}).get(name, "penchant").split(".")
        room = home[1] if len(home) > 1 and rooms.get(home[1]) == [] else None
        found[f"penchant.{room}" if room else "penchant"].append(_full(name))
    for room, names in rooms.items():
        found[f"penchant.{room}"] += [f"penchant.{room}.{name}" for name in names]
    return {namespace: names for namespace, names in found.items() if names}


def _room(name: str) -> Any:
    try:
        return importlib.import_module(f"penchant.{name}")
    except ModuleNotFoundError:
        return None


def _full(name: str) -> str:
    """`penchant.watch` is a room that can be called; the function is inside."""
    return "penchant.watch.watch" if name == "watch" else f"penchant.{name}"


@functools.cache
def targets() -> dict[str, str]:
    """The full name of what a sentence calls `train`, `problems.Regression`, `Regression`."""
    every = [full for names in groups().values() for full in names]
    short = {full.rpartition(".")[2]: full for full in reversed(every)}  # the top comes first
    return short | {full.removeprefix("penchant."): full for full in every}


def document(full: str) -> str:
    """The docstring of a public name."""
    room, _, name = full.rpartition(".")
    return inspect.getdoc(getattr(importlib.import_module(room), name)) or ""


def pages() -> dict[str, str]:
    """The page of every namespace, and the overview."""
    found = {f"reference/{namespace}.rst": _page(namespace) for namespace in groups()}
    return found | {"reference/index.md": _overview()}


def _page(namespace: str) -> str:
    title = TITLES.get(namespace.rpartition(".")[2], FIRST)
    names = "\n".join(f"   ~{full}" for full in groups()[namespace])
    options = "   :toctree:\n   :nosignatures:\n   :template: name.rst\n"
    return f"{title}\n{'=' * len(title)}\n\n.. autosummary::\n{options}\n{names}\n"


def _overview() -> str:
    rows = [f"| {{doc}}`{ns}` | {', '.join(map(_code, own))} |" for ns, own in groups().items()]
    table = "\n".join(["| part | names |", "|---|---|", *rows])
    tree = "\n".join(groups())
    return f"{HEAD}{table}\n\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"


def _code(full: str) -> str:
    return f"{{py:obj}}`~{full}`"


def uses(known: dict[str, str]) -> dict[str, list[str]]:
    """The pages that teach by examples and use a name, by its full name."""
    texts = _texts(known)
    return {
        full: [page for page, text in texts if re.search(rf"\b{re.escape(_called(full))}\b", text)]
        for names in groups().values()
        for full in names
    }


def _called(full: str) -> str:
    """How a page calls it."""
    return "penchant.watch" if full == "penchant.watch.watch" else full


def _texts(known: dict[str, str]) -> list[tuple[str, str]]:
    """(page without its suffix, text) of every page that teaches by examples."""
    taught = [(ROOT / file, page) for file, page in known.items() if page.split("/")[0] in TAUGHT]
    return [
        (page.rpartition(".")[0], file.read_text(encoding="utf-8"))
        for file, page in taught
        if file.is_file()
    ]


TAUGHT = ("start", "howto", "gallery")
