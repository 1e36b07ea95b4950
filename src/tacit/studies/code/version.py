"""The version of the code behind a study: what its cells call, and the numerical libraries."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import tacit
from tacit.studies.cells import OPTIONAL, PARTS
from tacit.studies.code.definitions import Reference, Slice, module_named, reached
from tacit.studies.parts import IS, function_named
from tacit.versions import versions

if TYPE_CHECKING:
    from tacit.studies.study import Study

MACHINERY: Reference = ("tacit.studies.compute", "compute")
NUMERICAL = ("numpy", "scipy", "jax", "jaxlib", "sympy")
_SEEN: dict[str, tuple[bytes, Any]] = {}  # module -> its text when first read, and its import


@dataclasses.dataclass(frozen=True)
class Code:
    """The version that cells carry, and what another machine must have to give the same."""

    version: str
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    libraries: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def difference(self) -> str | None:
        """How this process differs from the plan, in words; None if it does not."""
        libraries = numerical_versions()
        for name in {*libraries, *self.libraries}:
            here, there = libraries.get(name), self.libraries.get(name)
            if here != there:
                return f"{name} {here or 'is not installed'}, the study was planned with {there}"
        for name, digest in self.files.items():
            module = module_named(name)
            if module is None or digest_of(module.text) != digest:
                return f"a different version of the module {name}"
        return None


def code_of(study: Study) -> Code:
    """The code of a study as it is on disk now."""
    found = reached(roots_of(study))
    _refuse_outdated(found)
    libraries = numerical_versions()
    parts = [tacit.__version__, found.digest(), digest_of(str(sorted(libraries.items())).encode())]
    if study.function is not None and module_named(study.function.partition(":")[0]) is None:
        parts.append(digest_of(_source(function_named(study.source, study.function))))
    files = {name: digest_of(module.text) for name, module in sorted(found.modules.items())}
    return Code("+".join(parts), files, libraries)


def roots_of(study: Study) -> list[Reference]:
    """Where the code of a study begins: its function, or the public names in its tables."""
    if study.function is not None:
        module, _, name = study.function.partition(":")
        return [(module, name)]
    tables = [getattr(study, part) for part in (*PARTS, *OPTIONAL)] + [study.probes]
    names = {name for table in tables for name in _named_in(table)}
    for axis in study.axes:
        if axis.key.split(".")[-1] == IS:
            names |= set(map(str, axis.values))
    return [MACHINERY, *((tacit.__name__, name) for name in sorted(names))]


def _named_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from ([str(value[IS])] if IS in value else [])
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _named_in(inner)


def numerical_versions() -> dict[str, str]:
    """The versions of Python and of the libraries that decide the digits."""
    found = versions()
    python = ".".join(found["python"].split(".")[:2])
    return {"python": python} | {name: found[name] for name in NUMERICAL if name in found}


def _refuse_outdated(found: Slice) -> None:
    """Raise if a module was edited after this process imported it: its old text would run."""
    for name, module in found.modules.items():
        spec = getattr(sys.modules.get(name), "__spec__", None)
        text, import_ = _SEEN.setdefault(name, (module.text, spec))
        if text == module.text:
            continue
        if spec is not None and spec is import_:
            raise ValueError(
                f"study: {module.file.name} was changed after it was imported here; reload it "
                "(importlib.reload) or start Python again"
            )
        _SEEN[name] = (module.text, spec)


def digest_of(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=6).hexdigest()


def _source(function: object) -> bytes:
    """The text of a function that has no file, as in a notebook; else its compiled form."""
    try:
        return inspect.getsource(function).encode()  # type: ignore[arg-type]
    except (OSError, TypeError):
        return getattr(getattr(function, "__code__", None), "co_code", b"")
