"""Python modules as text: what each top-level name is bound to, and what the text refers to."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib.util
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Reference = tuple[str, str | None]  # (module, name in it; None stands for all of the module)
DYNAMIC = ("__import__", "import_module", "exec", "eval", "globals")


@dataclasses.dataclass(frozen=True)
class Module:
    """One source file, taken apart."""

    name: str
    file: Path
    text: bytes
    bindings: dict[str, list[ast.stmt]]  # name -> the statements that bind it
    imports: dict[str, Reference]  # alias -> what it stands for
    stars: list[str]  # modules of `from ... import *`
    always: list[ast.stmt]  # what runs at import beside bindings and imports
    read: dict[str | None, tuple[str, list[Reference]]] = dataclasses.field(
        default_factory=dict, compare=False
    )  # what `definition` has given before: many studies reach the same code

    def definition(self, name: str | None) -> tuple[str, list[Reference]]:
        """The text that binds `name` and what it refers to; None is what always runs."""
        if name not in self.read:
            nodes = self.always if name is None else self.bindings[name]
            self.read[name] = words(nodes), [r for node in nodes for r in self.references(node)]
        return self.read[name]

    @property
    def package(self) -> str:
        return self.name if self.file.name == "__init__.py" else self.name.rpartition(".")[0]

    def references(self, node: ast.AST) -> Iterator[Reference]:
        """Every name of this or another module that the text below `node` may use."""
        local: dict[str, Reference] = {}
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                local |= imported(inner, self.package)[0]
                yield from ((star, None) for star in imported(inner, self.package)[1])
        known = {**self.imports, **local}
        for chain in _chains(node):
            if chain[0] in local or (chain[0] in known and chain[0] not in self.bindings):
                yield _deepest(known[chain[0]], chain[1:])
            elif chain[0] in self.bindings or self.stars:
                yield self.name, chain[0]

    def dynamic(self, node: ast.AST) -> bool:
        """True if the text can reach code by a name that is not written in it."""
        return any(
            isinstance(inner, ast.Name | ast.Attribute)
            and (inner.id if isinstance(inner, ast.Name) else inner.attr) in DYNAMIC
            for inner in ast.walk(node)
        )


def module_named(name: str) -> Module | None:
    """The module of this name, if it is a file of tacit or of the user; libraries give None."""
    file = _file_of(name)
    if file is None:
        return None
    return _taken_apart(name, file, file.read_bytes())


@functools.lru_cache(maxsize=2048)
def _taken_apart(name: str, file: Path, text: bytes) -> Module:
    found = Module(name, file, text, {}, {}, [], [])
    for statement in _without_docstring(ast.parse(text)).body:  # type: ignore[attr-defined]
        _take(found, statement)
    return found


def _take(module: Module, statement: ast.stmt) -> None:
    """Enter a top-level statement under what it imports, binds or does."""
    for inner in ast.walk(statement):
        if isinstance(inner, ast.Import | ast.ImportFrom) and not isinstance(statement, Definition):
            names, stars = imported(inner, module.package)
            module.imports.update(names)
            module.stars.extend(stars)
    if isinstance(statement, ast.If) and _for_types_only(statement):
        for otherwise in statement.orelse:
            _take(module, otherwise)
        return
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return
    bound = set(_bound(statement))
    for name in bound:
        module.bindings.setdefault(name, []).append(statement)
    plain = isinstance(statement, Definition | ast.Assign | ast.AnnAssign)
    if not plain or not bound:
        module.always.append(statement)


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


def _for_types_only(statement: ast.If) -> bool:
    return ast.unparse(statement.test).endswith("TYPE_CHECKING")


def imported(
    statement: ast.Import | ast.ImportFrom, package: str
) -> tuple[dict[str, Reference], list[str]]:
    """(alias -> what it stands for, modules whose names are all taken)."""
    if isinstance(statement, ast.Import):
        return {
            alias.asname or alias.name.split(".")[0]: (
                alias.name if alias.asname else alias.name.split(".")[0],
                None,
            )
            for alias in statement.names
        }, []
    above = package.split(".")[: len(package.split(".")) - statement.level + 1]
    parts = [*(above if statement.level else []), *([statement.module] if statement.module else [])]
    base = ".".join(parts)
    names = {a.asname or a.name: (base, a.name) for a in statement.names if a.name != "*"}
    return dict(names), [base for a in statement.names if a.name == "*"]


def _chains(node: ast.AST) -> Iterator[list[str]]:
    """["a", "b", "c"] for every a.b.c below `node`, and ["a"] for every name alone."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        yield [node.id, *reversed(names)]
    for inner in ast.iter_child_nodes(node):
        yield from _chains(inner)


def _deepest(start: Reference, rest: list[str]) -> Reference:
    """What a chain of attributes reaches: through modules as far as they go, then one name."""
    module, name = start
    names = [*([] if name is None else [name]), *rest]
    while names and _file_of(f"{module}.{names[0]}") is not None:
        module = f"{module}.{names.pop(0)}"
    return module, names[0] if names else None


def _file_of(name: str) -> Path | None:
    """The source file of a module of tacit or of the user; its parents are imported to find it."""
    if _is_library(name.split(".")[0]):
        return None
    return _located(name)


def _located(name: str) -> Path | None:
    loaded = sys.modules.get(name)
    file = getattr(loaded, "__file__", None)
    if loaded is None:
        with suppress(ImportError, AttributeError, ValueError):
            spec = importlib.util.find_spec(name)
            file = spec.origin if spec else None
    return Path(file).resolve() if file and file.endswith(".py") else None


@functools.cache
def _is_library(name: str) -> bool:
    """True for the standard library and for what pip installed, except tacit."""
    found = [file] if (file := _located(name)) else _folders_of(name)
    inside = any(place.is_relative_to(p) for place in found for p in library_places())
    return name != "tacit" and (not found or inside)


def _folders_of(name: str) -> list[Path]:
    """The folders of a package without __init__.py, which has no file of its own."""
    with suppress(ImportError, AttributeError, ValueError):
        spec = importlib.util.find_spec(name)
        return [Path(place).resolve() for place in (spec and spec.submodule_search_locations) or ()]
    return []


@functools.cache
def library_places() -> tuple[Path, ...]:
    """Folders of the standard library and of installed packages."""
    paths = sysconfig.get_paths()
    found = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    found += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple(dict.fromkeys(Path(place).resolve() for place in found))


def words(nodes: Iterable[ast.AST]) -> str:
    """The program of these nodes, whatever their comments, layout and docstrings."""
    return "\n".join(ast.dump(_without_docstring(node)) for node in nodes)


def _without_docstring(node: ast.AST) -> ast.AST:
    for inner in ast.walk(node):
        body = getattr(inner, "body", None)
        if isinstance(inner, Definition | ast.Module) and body and _is_text(body[0]):
            inner.body = body[1:] or ([] if isinstance(inner, ast.Module) else [ast.Pass()])
    return node


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
