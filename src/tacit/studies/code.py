"""The version of the code behind a cell: what was released, and a digest of what is there.

A release number alone would keep cells of a tree that was edited since. The digest covers the
rooms that compute (not claims, figures or commands) and, for a function cell, the package folder
of its module, or its one file. Functions of tacit itself are in figures, and share code with
claims.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import inspect
from collections.abc import Iterable
from pathlib import Path

import tacit

ROOMS = ("bias", "problems", "models", "flows", "probes")
BEHIND_FUNCTIONS = ("claims", "figures")
OWN = ("studies/compute.py", "studies/parts.py", "studies/references.py")


@functools.cache
def code_version(function: str | None = None) -> str:
    """For instance 0.1.0+1f0c9a2b77de, and one more digest for a function cell."""
    version = f"{tacit.__version__}+{_tacit_digest()}"
    return version if function is None else f"{version}+{_function_digest(function)}"


@functools.cache
def _tacit_digest() -> str:
    root = Path(tacit.__file__).parent
    return _room_digest(ROOMS, [*root.glob("*.py"), *(root / name for name in OWN)])


def _room_digest(rooms: Iterable[str], besides: Iterable[Path] = ()) -> str:
    root = Path(tacit.__file__).parent
    files = [*besides, *(file for room in rooms for file in (root / room).rglob("*.py"))]
    return _digest((str(file.relative_to(root).as_posix()), file.read_bytes()) for file in files)


def _function_digest(function: str) -> str:
    module, _, name = function.partition(":")
    if module.startswith("tacit."):
        return _room_digest(BEHIND_FUNCTIONS)
    spec = None if module == "__main__" else importlib.util.find_spec(module)
    origin = Path(spec.origin) if spec is not None and spec.origin else None
    if origin is None or origin.suffix != ".py":
        found = getattr(importlib.import_module(module), name)
        return _digest([(name, _source(found))])
    package = spec is not None and bool(spec.parent)
    files = origin.parent.glob("*.py") if package else [origin]
    return _digest((file.name, file.read_bytes()) for file in files)


def _source(function: object) -> bytes:
    try:
        return inspect.getsource(function).encode()  # type: ignore[arg-type]
    except (OSError, TypeError):
        return getattr(getattr(function, "__code__", None), "co_code", b"")


def _digest(texts: Iterable[tuple[str, bytes]]) -> str:
    whole = hashlib.blake2b(digest_size=6)
    for name, text in sorted(texts):
        whole.update(f"{name} {len(text)}\n".encode() + text)
    return whole.hexdigest()
