"""The version of the code behind a study: its source files, packages, and data files."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Mapping
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import penchant
from penchant.door import door_as
from penchant.lab.studies.code.disk import content, digest_of
from penchant.lab.studies.code.inputs import digests
from penchant.lab.studies.code.modules import (
    dependencies,
    file_of,
    own_files,
    package_version,
)
from penchant.lab.studies.parts import function_named
from penchant.versions import versions

if TYPE_CHECKING:
    from penchant.lab.studies.study import Study

PLAIN = (bool, int, float, str, tuple)  # values of a notebook that count as they are written
NUMERICAL = ("numpy", "scipy", "jax", "jaxlib", "sympy")
_SEEN: dict[str, tuple[str, Any]] = {}  # module -> digest of its file when first read, its import
_INPUTS: dict[str, str] = {}  # data file -> the digest of its content when first read


@dataclasses.dataclass(frozen=True)
class CodeVersion:
    """The version that cells carry, and what another machine must have to give the same.

    `files` are the user's modules, `own` is the digest of penchant's; `inputs` are data files.
    """

    version: str
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    libraries: Mapping[str, str] = dataclasses.field(default_factory=dict)
    own: str = ""
    inputs: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def difference(self) -> str | None:
        """How this process differs from the plan, in words; None if it does not."""
        packages = set(self.libraries) - set(numerical_versions())
        libraries = library_versions(packages)
        for name in {*libraries, *self.libraries}:
            here, there = libraries.get(name), self.libraries.get(name)
            if here != there:
                return f"{name} {here or 'is not installed'}, the study was planned with {there}"
        for name, digest in self.files.items():
            file = file_of(name)
            if file is None or content(str(file)) != digest:
                return f"a different version of the module {name}"
        if self.own and combined(own_files()) != self.own:
            return "different files of penchant"
        now = digests(self.inputs)
        changed = [file for file, digest in self.inputs.items() if now[file] != digest]
        return f"a different content of {changed[0]}" if changed else None


@door_as(lambda study: study.source)
def code_of(study: Study) -> CodeVersion:
    """The code of a study as it is on disk now."""
    used, own_modules = dependencies(roots_of(study)), own_files()
    libraries, files, own = library_versions(used.packages), used.digests(), combined(own_modules)
    _refuse_outdated({**own_modules, **files})
    parts = [
        penchant.__version__,
        combined({**files, "penchant": own}),
        combined(libraries),
    ]
    if any(module not in files for module in roots_of(study)):  # as in a notebook
        parts.append(digest_of(_source(function_named(study.function))))
    inputs = digests(study.inputs)
    for file, digest in inputs.items():
        _INPUTS.setdefault(file, digest)
    if inputs:  # by the names that the study gives: a folder may be moved with its cells
        parts.append(combined(dict(zip(study.inputs, inputs.values(), strict=True))))
    return CodeVersion("+".join(parts), files, libraries, own, inputs)


def roots_of(study: Study) -> list[str]:
    """The module of the function of a study; tables name only what is in penchant."""
    return [] if study.function is None else [study.function.partition(":")[0]]


def combined(entries: Mapping[str, str]) -> str:
    """One digest of several names, each with its digest or version."""
    return digest_of(str(sorted(entries.items())).encode())


def numerical_versions() -> dict[str, str]:
    """The versions of Python and of the libraries that decide the digits."""
    known = versions()
    python = ".".join(known["python"].split(".")[:2])
    return {"python": python} | {name: known[name] for name in NUMERICAL if name in known}


def library_versions(packages: set[str] | frozenset[str]) -> dict[str, str]:
    """The same and the versions of these packages."""
    return {name: package_version(name) for name in sorted(packages)} | numerical_versions()


def _refuse_outdated(digests: Mapping[str, str]) -> None:
    """Raise if a module was edited after this process imported it: its old text would run."""
    for name, digest in digests.items():
        spec = getattr(sys.modules.get(name), "__spec__", None)
        first, import_ = _SEEN.setdefault(name, (digest, spec))
        if first == digest:
            continue
        if spec is not None and spec is import_:
            file = file_of(name)
            raise ValueError(
                f"study: {file.name if file else name} was changed after it was imported here; "
                "reload it (importlib.reload) or start Python again"
            )
        _SEEN[name] = (digest, spec)


def refuse_changed_inputs(code: CodeVersion) -> None:
    """Raise if a data file was changed since this process saw it: a module may hold the old one."""
    for file, digest in code.inputs.items():
        if _INPUTS.get(file, digest) != digest:
            raise ValueError(
                f"study: {file} was changed after this process saw it first, and a module may "
                "still hold what it read; start Python again, or use the engine 'processes'"
            )


def _source(function: Any) -> bytes:
    """The text of a function that has no file, as in a notebook, and of all that it uses there."""
    todo, seen = [("", function)], {}
    while todo:
        name, value = todo.pop()
        if isinstance(value, FunctionType) and name not in seen:
            seen[name] = _text_of(value)
            used = {n: value.__globals__.get(n) for n in sorted(_names_in(value.__code__))}
            todo += [(n, v) for n, v in used.items() if _is_beside(v, value)]
            seen |= {n: repr(v) for n, v in used.items() if isinstance(v, PLAIN)}
    return str(sorted(seen.items())).encode()


def _is_beside(value: Any, function: FunctionType) -> bool:
    return isinstance(value, FunctionType) and value.__globals__ is function.__globals__


def _names_in(code: CodeType) -> set[str]:
    """The names that compiled code uses, also in the functions within it."""
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*map(_names_in, inner))


def _text_of(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):  # there is only its compiled form
        return f"{function.__code__.co_code!r} {_constants(function.__code__)}"


def _constants(code: CodeType) -> list[str]:
    """Constants without the addresses of the functions among them."""
    return [
        f"{c.co_code!r} {_constants(c)}" if isinstance(c, CodeType) else repr(c)
        for c in code.co_consts
    ]
