"""The reference: a page for every namespace, on which autosummary lists its public names.

autosummary also writes the page of every name, by templates/name.rst.
"""

import functools
import importlib
import inspect
import re
from pathlib import Path

import penchant

ROOT = Path(__file__).resolve().parent.parent.parent
TITLES = {  # part of penchant -> the title of its page
    "problems": "Problems",
    "models": "Models",
    "methods": "Methods",
    "stop": "When to stop",
    "record": "What to record",
    "regularizers": "Regularizers",
    "solvers": "Predictions",
    "measures": "Measures",
    "forecasts": "Forecasts",
    "bounds": "Bounds",
    "watch": "Your own training loop",
    "lab": "Studies and verdicts",
    "plotting": "Pictures",
}
FIRST = "The first names"
TOP = penchant.__all__
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

    Constants have no page; an everyday name that a namespace repeats has one, at the top.
    """
    found = {"penchant": [_full(name) for name in penchant.__all__]}
    for room in TITLES:
        space = importlib.import_module(f"penchant.{room}")
        things = {name: getattr(space, name) for name in space.__all__}
        own = [
            name for name, one in things.items() if inspect.isclass(one) or inspect.isroutine(one)
        ]
        found[f"penchant.{room}"] = [f"penchant.{room}.{name}" for name in own if name not in TOP]
    return found


def _full(name: str) -> str:
    """`penchant.watch` is a package that can be called; the function is inside."""
    return "penchant.watch.watch" if name == "watch" else f"penchant.{name}"


@functools.cache
def targets() -> dict[str, str]:
    """The full name of what a sentence calls `train`, `problems.Regression`, `Regression`."""
    every = [full for names in groups().values() for full in names]
    short = {full.rpartition(".")[2]: full for full in reversed(every)}  # the top comes first
    repeated = {f"{room}.{name}": short[name] for room in TITLES for name in _everyday(room)}
    return short | repeated | {full.removeprefix("penchant."): full for full in every}


def _everyday(room: str) -> list[str]:
    """The names of a namespace that stand at the top too."""
    return [name for name in importlib.import_module(f"penchant.{room}").__all__ if name in TOP]


def document(full: str) -> str:
    """The docstring of a public name."""
    room, _, name = full.rpartition(".")
    return inspect.getdoc(getattr(importlib.import_module(room), name)) or ""


def pages() -> dict[str, str]:
    """The page of every namespace, and the overview."""
    found = {f"reference/{namespace}.rst": _page(namespace) for namespace in groups()}
    return found | {"reference/index.md": _overview()}


def _page(namespace: str) -> str:
    room = namespace.rpartition(".")[2]
    title = TITLES.get(room, FIRST)
    names = "\n".join(f"   ~{full}" for full in groups()[namespace])
    options = "   :toctree:\n   :nosignatures:\n   :template: name.rst\n"
    repeated = _everyday(room) if room in TITLES else []
    links = ", ".join(f":py:obj:`~{targets()[name]}`" for name in repeated)
    also = f"\nAlso here, with a page among the first names: {links}.\n" if links else ""
    return f"{title}\n{'=' * len(title)}\n{also}\n.. autosummary::\n{options}\n{names}\n"


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
