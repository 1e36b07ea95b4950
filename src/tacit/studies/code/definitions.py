"""What a function calls, through the user's modules and tacit's, found in the source text.

From the definitions of the roots every name that they use is followed to its definition, also
through imports inside functions. A name that is not used changes nothing: neither a caption nor a
claim beside a cell. Code that is reached by a name made at run time (`importlib`, `eval`) cannot be
followed; a user's module that does so counts with all the files of its folder.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import importlib.util
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import tacit

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Reference = tuple[str, str | None]  # (module, name in it; None stands for all of the module)
Chain = tuple[str, ...]  # ("a", "b", "c") for a.b.c
IMPORTS = (ast.Import, ast.ImportFrom)
DYNAMIC = {"__import__", "import_module", "exec", "eval", "globals"}


class Text:
    """What statements say, read once: their program, the names they use, what they import."""

    def __init__(self, nodes: Iterable[ast.AST], package: str):
        self.package = package
        self.program: list[str] = []  # whatever their comments, layout and docstrings
        self.chains: dict[Chain, None] = {}
        self.imports: dict[str, Reference] = {}
        self.stars: list[str] = []
        for node in nodes:
            self._visit(node)
        program = "\n".join(self.program).encode()
        self.digest = hashlib.blake2b(program, digest_size=8).hexdigest()
        self.program.clear()

    @property
    def dynamic(self) -> bool:
        """True if the text can reach code by a name that is not written in it."""
        return any(DYNAMIC & set(chain) for chain in self.chains)

    def _visit(self, node: ast.AST, rest: Chain = ()) -> None:
        self.program.append(type(node).__name__)
        if isinstance(node, ast.Attribute):
            self.program += (node.attr, type(node.ctx).__name__)
            self._visit(node.value, (node.attr, *rest))
            return
        if isinstance(node, ast.Name):
            self.program += (node.id, type(node.ctx).__name__)
            self.chains[node.id, *rest] = None
            return
        if rest:  # an attribute of a result
            self.chains["", *rest] = None
        if type(node) in IMPORTS:
            names, stars = imported(node, self.package)  # type: ignore[arg-type]
            self.imports |= names
            self.stars += stars
        for field in node._fields:
            value: Any = getattr(node, field, None)
            if isinstance(value, ast.AST):
                self._visit(value)
            elif isinstance(value, list):
                self._visit_all(value[1:] if _documented(node, field) else value)
            else:
                self.program.append(repr(value))

    def _visit_all(self, parts: list[Any]) -> None:
        self.program.append(str(len(parts)))
        for part in parts:
            if isinstance(part, ast.AST):
                self._visit(part)
            else:
                self.program.append(repr(part))


def _documented(node: ast.AST, field: str) -> bool:
    return field == "body" and isinstance(node, Definition) and _is_text(node.body[0])


@dataclasses.dataclass(frozen=True)
class Module:
    """One source file, taken apart; its syntax tree is dropped, for it slows every collection."""

    name: str
    file: Path
    text: bytes
    bindings: dict[str, Text]  # name -> what the statements that bind it say
    imports: dict[str, Reference]  # alias -> what it stands for
    stars: list[str]  # modules of `from ... import *`
    always: Text  # what runs at import, except bindings and imports
    read: dict[str | None, list[Reference]] = dataclasses.field(
        default_factory=dict, compare=False
    )  # the references that `definition` has given before: many studies reach the same code

    def definition(self, name: str | None) -> tuple[str, list[Reference]]:
        """The digest of what binds `name` and what it refers to; None is what always runs."""
        text = self.always if name is None else self.bindings[name]
        if name not in self.read:
            self.read[name] = list(self._references(text))
        return text.digest, self.read[name]

    @property
    def package(self) -> str:
        return self.always.package

    def _references(self, text: Text) -> Iterator[Reference]:
        """Every name of this or another module that the text may use."""
        yield from ((star, None) for star in text.stars)
        known = {**self.imports, **text.imports}
        for first, *rest in text.chains:
            if first in text.imports or (first in known and first not in self.bindings):
                yield _deepest(known[first], rest)
            elif first in self.bindings or (first and self.stars):
                yield self.name, first

    def unwritten(self) -> list[Reference]:
        """What a user's module may use although no definition names it.

        These are modules that it imports and never names, for their effects on import, and the
        folder around it if it looks code up at run time.
        """
        texts = self.bindings.values()
        names = {chain[0] for text in (*texts, self.always) for chain in text.chains}
        found = [
            target
            for alias, (target, name) in self.imports.items()
            if alias not in names and name is None
        ]
        if any(text.dynamic for text in texts):
            package = f"{self.package}." if self.package else ""
            beside = sorted(self.file.parent.glob("*.py"))
            found += [f"{package}{file.stem}" for file in beside if file.stem != "__init__"]
        return [(name, None) for name in found]


@dataclasses.dataclass
class Slice:
    """The definitions that some roots reach, each with its digest, and the modules around them."""

    definitions: dict[Reference, str] = dataclasses.field(default_factory=dict)
    modules: dict[str, Module] = dataclasses.field(default_factory=dict)
    files: dict[str, Module | None] = dataclasses.field(default_factory=dict)

    def module(self, name: str) -> Module | None:
        """The module of this name as it is on disk now, read once a slice."""
        if name not in self.files:
            self.files[name] = module_named(name)
        return self.files[name]

    def digest(self) -> str:
        """Twelve hexadecimal digits that change when a definition does."""
        lines = sorted(f"{home} {name} {own}" for (home, name), own in self.definitions.items())
        return hashlib.blake2b("\n".join(lines).encode(), digest_size=6).hexdigest()

    def follow(self, name: str, wanted: str | None) -> list[Reference]:
        """Enter one definition into the slice; what it refers to comes back."""
        module = self.module(name)
        if module is None:
            return []
        more = [] if name in self.modules else self._enter(name)
        if wanted is None:
            return more + [(name, known) for known in (*module.bindings, *module.imports)]
        if wanted in module.bindings:
            self.definitions[name, wanted], references = module.definition(wanted)
            return more + references
        if wanted in module.imports:
            return [*more, module.imports[wanted]]
        if self.module(f"{name}.{wanted}"):
            return [*more, (f"{name}.{wanted}", None)]
        if name == tacit.__name__ and wanted in tacit.__all__:
            return [*more, (getattr(tacit, wanted).__module__, wanted)]
        return more + [(star, wanted) for star in module.stars]

    def _enter(self, name: str) -> list[Reference]:
        """What runs when a module and the packages around it are imported, the first time."""
        parts = name.split(".")
        around = (self.module(".".join(parts[: n + 1])) for n in range(len(parts)))
        more: list[Reference] = []
        for module in around:
            if module and module.name not in self.modules:
                self.modules[module.name] = module
                self.definitions[module.name, None], references = module.definition(None)
                more += references
                more += [] if parts[0] == tacit.__name__ else module.unwritten()
        return more


def reached(roots: Iterable[Reference], files: dict[str, Module | None] | None = None) -> Slice:
    """All that the roots use, transitively; several slices may share the files that were read."""
    found = Slice(files={} if files is None else files)
    todo = list(roots)
    seen: set[Reference] = set()
    while todo:
        reference = todo.pop()
        if reference not in seen:
            seen.add(reference)
            todo += found.follow(*reference)
    return found


def module_named(name: str) -> Module | None:
    """The module of this name, if it is a file of tacit or of the user; libraries give None."""
    file = _file_of(name)
    return None if file is None else _taken_apart(name, file, file.read_bytes())


@functools.lru_cache(maxsize=2048)
def _taken_apart(name: str, file: Path, text: bytes) -> Module:
    body = ast.parse(text).body
    parts = _Parts(name if file.name == "__init__.py" else name.rpartition(".")[0])
    for statement in body[1:] if body and _is_text(body[0]) else body:
        parts.take(statement)
    bindings = {bound: Text(nodes, parts.package) for bound, nodes in parts.bindings.items()}
    always = Text(parts.always, parts.package)
    return Module(name, file, text, bindings, parts.imports, parts.stars, always)


@dataclasses.dataclass
class _Parts:
    """The statements of a module by what they bind, while it is taken apart."""

    package: str
    bindings: dict[str, list[ast.stmt]] = dataclasses.field(default_factory=dict)
    imports: dict[str, Reference] = dataclasses.field(default_factory=dict)
    stars: list[str] = dataclasses.field(default_factory=list)
    always: list[ast.stmt] = dataclasses.field(default_factory=list)

    def take(self, statement: ast.stmt) -> None:
        """Enter a top-level statement under what it imports, binds or does."""
        if not isinstance(statement, Definition):
            text = Text([statement], self.package)
            self.imports.update(text.imports)
            self.stars.extend(text.stars)
        if isinstance(statement, ast.If) and ast.unparse(statement.test).endswith("TYPE_CHECKING"):
            for otherwise in statement.orelse:
                self.take(otherwise)
            return
        if isinstance(statement, ast.Import | ast.ImportFrom):
            return
        bound = set(_bound(statement))
        for name in bound:
            self.bindings.setdefault(name, []).append(statement)
        plain = isinstance(statement, Definition | ast.Assign | ast.AnnAssign)
        if not plain or not bound:
            self.always.append(statement)


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a top-level statement binds, also inside `if`, `try`, `for` and `with`."""
    if isinstance(statement, Definition):
        yield statement.name
        return
    for inner in ast.iter_child_nodes(statement):
        if isinstance(inner, ast.stmt):
            yield from _bound(inner)
        elif isinstance(inner, ast.ExceptHandler):
            for part in inner.body:
                yield from _bound(part)
        else:
            stored = (n for n in ast.walk(inner) if isinstance(n, ast.Name))
            yield from (n.id for n in stored if isinstance(n.ctx, ast.Store))


def imported(
    statement: ast.Import | ast.ImportFrom, package: str
) -> tuple[dict[str, Reference], list[str]]:
    """(alias -> what it stands for, modules whose names are all taken)."""
    if isinstance(statement, ast.Import):
        firsts = [alias.name.split(".")[0] for alias in statement.names]
        pairs = zip(statement.names, firsts, strict=True)
        return {a.asname or first: (a.name if a.asname else first, None) for a, first in pairs}, []
    above = package.split(".")[: len(package.split(".")) - statement.level + 1]
    parts = [*(above if statement.level else []), *([statement.module] if statement.module else [])]
    base = ".".join(parts)
    names = {a.asname or a.name: (base, a.name) for a in statement.names if a.name != "*"}
    return dict(names), [base for a in statement.names if a.name == "*"]


def _deepest(start: Reference, rest: list[str]) -> Reference:
    """What a chain of attributes reaches: through modules as far as they go, then one name."""
    module, name = start
    names = [*([] if name is None else [name]), *rest]
    while names and _is_package(module) and _file_of(f"{module}.{names[0]}") is not None:
        module = f"{module}.{names.pop(0)}"
    return module, names[0] if names else None


def _is_package(name: str) -> bool:
    """False for a module in one file: to look for modules below it would import it."""
    file = _file_of(name)
    return file is None or file.name == "__init__.py"


def _file_of(name: str) -> Path | None:
    """The source file of a module of tacit or of the user; its parents are imported to find it."""
    return None if _is_library(name.partition(".")[0]) else _located(name)


def _located(name: str) -> Path | None:
    loaded = sys.modules.get(name)
    file = getattr(loaded, "__file__", None)
    if loaded is None:
        with suppress(ImportError, AttributeError, ValueError):
            spec = importlib.util.find_spec(name)
            file = spec.origin if spec else None
    return _resolved(file) if file and file.endswith(".py") else None


@functools.cache
def _resolved(file: str) -> Path:
    return Path(file).resolve()


@functools.cache
def _is_library(name: str) -> bool:
    """True for the standard library and for what pip installed, except tacit."""
    found = [file] if (file := _located(name)) else _folders_of(name)
    inside = any(folder.is_relative_to(p) for folder in found for p in library_folders())
    return name != "tacit" and (not found or inside)


def _folders_of(name: str) -> list[Path]:
    """The folders of a package without __init__.py, which has no file of its own."""
    with suppress(ImportError, AttributeError, ValueError):
        spec = importlib.util.find_spec(name)
        return [
            Path(folder).resolve() for folder in (spec and spec.submodule_search_locations) or ()
        ]
    return []


@functools.cache
def library_folders() -> tuple[Path, ...]:
    """Folders of the standard library and of installed packages."""
    paths = sysconfig.get_paths()
    found = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    found += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple(dict.fromkeys(Path(folder).resolve() for folder in found))


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
