"""What a function calls, through the user's modules and tacit's, read off the text of the code.

From the definitions of the roots every name that they use is followed to its definition, also
through imports inside functions. A name that is not used changes nothing: neither a caption nor a
claim beside a cell. Code that is reached by a name made at run time (`importlib`, `eval`) cannot be
followed; a user's module that does so counts with all the files of its folder.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
from collections.abc import Iterable

import tacit
from tacit.studies.code.modules import Module, Reference, module_named


@dataclasses.dataclass
class Slice:
    """The definitions that some roots reach."""

    texts: dict[Reference, str] = dataclasses.field(default_factory=dict)
    modules: dict[str, Module] = dataclasses.field(default_factory=dict)
    files: dict[str, Module | None] = dataclasses.field(default_factory=dict)

    def module(self, name: str) -> Module | None:
        """The module of this name as it is on disk now, read once a slice."""
        if name not in self.files:
            self.files[name] = module_named(name)
        return self.files[name]

    def digest(self) -> str:
        """Twelve hexadecimal digits that change when a definition does."""
        whole = hashlib.blake2b(digest_size=6)
        for key, text in sorted(self.texts.items(), key=str):
            whole.update(f"{key} {len(text)}\n{text}".encode())
        return whole.hexdigest()


def reached(roots: Iterable[Reference]) -> Slice:
    """All that the roots use, transitively."""
    found = Slice()
    todo = list(roots)
    seen: set[Reference] = set()
    while todo:
        reference = todo.pop()
        if reference not in seen:
            seen.add(reference)
            todo += _follow(found, *reference)
    return found


def _follow(found: Slice, name: str, wanted: str | None) -> list[Reference]:
    """Enter one definition into the slice; what it refers to comes back."""
    module = found.module(name)
    if module is None:
        return []
    more = _entered(found, name)
    if wanted is None:
        return more + [(name, known) for known in (*module.bindings, *module.imports)]
    if wanted in module.bindings:
        found.texts[name, wanted], references = module.definition(wanted)
        return more + references
    if wanted in module.imports:
        return [*more, module.imports[wanted]]
    if found.module(f"{name}.{wanted}"):
        return [*more, (f"{name}.{wanted}", None)]
    if name == tacit.__name__ and wanted in tacit.__all__:
        return [*more, (getattr(tacit, wanted).__module__, wanted)]
    return more + [(star, wanted) for star in module.stars]


def _entered(found: Slice, name: str) -> list[Reference]:
    """What runs when a module and the packages around it are imported, the first time."""
    parts = name.split(".")
    around = (found.module(".".join(parts[: n + 1])) for n in range(len(parts)))
    new = [module for module in around if module and module.name not in found.modules]
    more: list[Reference] = []
    for module in new:
        found.modules[module.name] = module
        found.texts[module.name, None], references = module.definition(None)
        more += references
        if parts[0] != tacit.__name__:
            more += _unwritten(module)
    return more


def _unwritten(module: Module) -> list[Reference]:
    """What a user's module may use although no definition names it."""
    found = _unused(module)
    if any(module.dynamic(node) for nodes in module.bindings.values() for node in nodes):
        found += _beside(module)
    return [(name, None) for name in found]


def _unused(module: Module) -> list[str]:
    """Modules that a user's module imports and never names: they are imported for what they do."""
    used = {name for nodes in module.bindings.values() for n in nodes for name in _names(n)}
    used |= {name for node in module.always for name in _names(node)}
    return [
        target
        for alias, (target, name) in module.imports.items()
        if alias not in used and name is None
    ]


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _beside(module: Module) -> list[str]:
    """The modules in the folder of a module that looks code up while it runs."""
    package = f"{module.package}." if module.package else ""
    return [
        f"{package}{file.stem}"
        for file in sorted(module.file.parent.glob("*.py"))
        if file.stem != "__init__"
    ]
