"""The source files that a cell depends on: the user's modules, penchant, and installed packages.

How it works. A file is the unit: any change in it counts, that of a comment too.

* The user's modules. From the module of the cell's function, the imports that are written in its
  text, also those inside functions, are followed from file to file; the packages around a module
  count, because they run when it is imported. Nothing is imported to find a file. So a registry
  that another module fills, a constant or a decorator all count, as the call graph that was used
  before could not see. A module that reaches code by a name made at run time (`import_module`,
  `eval`) counts with all files of its folder and below.
* penchant is one unit: all its files except those of the edges (page, pictures, report, commands),
  which no numerical code imports. Papers count like modules of a user, file by file.
* An installed package counts by its version, the standard library by that of Python.

Not seen: what a user's module reaches in ways that are in no text, such as entry points.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib.machinery
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

import penchant
from penchant.lab.studies.code.disk import content, is_installed_file

OWN = "penchant"
EDGES = tuple(f"{OWN}.{room}" for room in ("cli", "explore", "plotting", "lab.report"))
DYNAMIC = {
    "__import__", "import_module", "exec", "eval", "iter_modules", "walk_packages", "run_path",
    "run_module", "spec_from_file_location",
}  # fmt: skip
MOST_BESIDE = 1000  # files of a folder that a dynamic module counts with


@dataclasses.dataclass(frozen=True)
class Dependencies:
    """Module -> file, of the user's own modules; and the names of installed packages."""

    files: Mapping[str, Path]
    packages: frozenset[str]

    def digests(self) -> dict[str, str]:
        """Module -> digest of its file as it is on disk now."""
        return {name: content(str(file)) for name, file in sorted(self.files.items())}


def dependencies(modules: Iterable[str]) -> Dependencies:
    """What the modules import, transitively."""
    files: dict[str, Path] = {}
    packages: set[str] = set()
    todo = [name for module in modules for name in _around(module)]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        if _is_installed(name.partition(".")[0]):
            packages.add(name.partition(".")[0])
        elif _is_own(name) and (file := file_of(name)) is not None:
            files[name] = file
            todo += (around for wanted in _imported(name, file) for around in _around(wanted))
    return Dependencies(files, frozenset(packages))


def _around(name: str) -> list[str]:
    """A module and the packages around it, which are imported before it."""
    parts = name.split(".")
    return [".".join(parts[: n + 1]) for n in range(len(parts))]


def _is_own(name: str) -> bool:
    """True for the user's modules and for papers; penchant itself is one unit."""
    top = name.partition(".")[0]
    return top != OWN and top not in sys.stdlib_module_names


def _imported(name: str, file: Path) -> tuple[str, ...]:
    if file.suffix != ".py":
        return ()
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    names, dynamic = _read_imports(str(file), package, content(str(file)))
    return (*names, *_beside(package, file)) if dynamic and not name.startswith(OWN) else names


@functools.lru_cache(maxsize=4096)
def _read_imports(file: str, package: str, digest: str) -> tuple[tuple[str, ...], bool]:
    """(what the text imports, whether it can reach code by a name that is not in it)."""
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (SyntaxError, ValueError):  # Python says so when it is imported
        return (), False
    names = dict.fromkeys(name for node in ast.walk(tree) for name in _names_in(node, package))
    used = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Name)
    }
    return tuple(names), bool(used & DYNAMIC)


def _names_in(node: ast.AST, package: str) -> Iterator[str]:
    """The modules that a statement imports; a name taken from a package may be one, too."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
        if base:
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names if alias.name != "*")


def _beside(package: str, file: Path) -> list[str]:
    """The modules in the folder of a file and below it."""
    names = []
    for path in sorted(file.parent.rglob("*.py"))[:MOST_BESIDE]:
        parts = path.relative_to(file.parent).with_suffix("").parts
        if all(part.isidentifier() for part in parts):
            inner = parts[:-1] if parts[-1] == "__init__" else parts
            names.append(".".join([*filter(None, [package]), *inner]))
    return [name for name in names if name]


def file_of(name: str) -> Path | None:
    """The file of a module; nothing is imported to find it. None if there is none."""
    loaded = sys.modules.get(name)
    origin = _searched(name) if loaded is None else getattr(loaded, "__file__", None)
    return _resolved(origin) if origin and Path(origin).is_file() else None


def _searched(name: str) -> str | None:
    spec = _spec(name)
    return spec.origin if spec is not None and spec.has_location else None


def _spec(name: str) -> importlib.machinery.ModuleSpec | None:
    """What the finders of Python say about a module; they are asked from package to package."""
    spec, path = None, None
    for part in _around(name):
        finders = (finder for finder in sys.meta_path if hasattr(finder, "find_spec"))
        answers = (finder.find_spec(part, path) for finder in finders)
        spec = next((answer for answer in answers if answer is not None), None)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or []) or None
        if path is None and part != name:
            return None
    return spec


@functools.cache
def _resolved(file: str) -> Path:
    return Path(file).resolve()


@functools.cache
def _is_installed(name: str) -> bool:
    """True for a package that was installed, except penchant, wherever its folder is."""
    if name == OWN or name in sys.stdlib_module_names:
        return False
    file = file_of(name)
    spec = _spec(name) if file is None else None
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    return any(is_installed_file(path) for path in ([file] if file else map(Path, folders)))


@functools.cache
def package_version(name: str) -> str:
    """The version of an installed package by the name under which it is imported."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        owners = sorted(set(metadata.packages_distributions().get(name, [])))
        return ", ".join(f"{owner} {metadata.version(owner)}" for owner in owners) or "unknown"


def own_files(*, edges: bool = False) -> dict[str, str]:
    """Module of penchant -> digest of its file, with or without the edges."""
    left_out = () if edges else EDGES
    return dict(_walked(str(Path(penchant.__file__).parent), OWN, left_out))


def _walked(folder: str, name: str, left_out: Collection[str]) -> Iterator[tuple[str, str]]:
    """(module, digest) of all files below a folder; pathlib would take ten times as long."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.endswith(".py"):
                stem = entry.name.removesuffix(".py")
                yield name if stem == "__init__" else f"{name}.{stem}", content(entry.path)
            elif (
                entry.name.isidentifier()
                and f"{name}.{entry.name}" not in left_out
                and entry.is_dir()
            ):
                yield from _walked(entry.path, f"{name}.{entry.name}", left_out)
