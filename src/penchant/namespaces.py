"""The public names: in which namespace each stands, and where it is defined.

A namespace is a module with a stub beside it, such as `problems/__init__.pyi`. The stub lists the
public names as `from penchant.problems.regression import Regression`, for type checkers and for
`attach`, which imports a name when it is first used: a program pays only for what it needs.
"""

from __future__ import annotations

import ast
import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMESPACES = (
    "problems",
    "models",
    "methods",
    "stop",
    "record",
    "regularizers",
    "solvers",
    "measures",
    "forecasts",
    "bounds",
    "lab",
    "plotting",
)
Attached = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def attach(module: str, *more: str) -> Attached:
    """`__getattr__`, `__dir__` and `__all__` of a namespace; `more` names modules inside it."""
    homes = _homes(module)
    names = sorted(homes)

    def get(name: str) -> Any:
        if name in homes:
            value = getattr(importlib.import_module(homes[name]), name)
            inside = sys.modules.get(f"{module}.{name}")
            if callable(inside):  # `watch` is a function, and a module that can be called like it
                value = inside
        elif name in more:
            value = importlib.import_module(f"{module}.{name}")
        else:
            from penchant.suggestions import unknown_name

            raise AttributeError(unknown_name(module, name, public_names()))
        setattr(sys.modules[module], name, value)
        return value

    return get, lambda: [*names, *more], names


@functools.cache
def _homes(module: str) -> dict[str, str]:
    """The module in which every name of a namespace is defined, as its stub says."""
    name = module.partition(".")[2]
    folder = Path(__file__).parent / name if name else Path(__file__).parent
    file = folder / "__init__.pyi" if folder.is_dir() else folder.with_suffix(".pyi")
    lines = ast.parse(file.read_text(encoding="utf-8")).body
    imports = [line for line in lines if isinstance(line, ast.ImportFrom) and line.module != module]
    return {alias.name: str(line.module) for line in imports for alias in line.names}


@functools.cache
def public_names() -> dict[str, str]:
    """Every public name with its shortest path, such as penchant.L1 or penchant.problems.Images."""
    paths: dict[str, str] = {}
    for module in ("penchant", *(f"penchant.{name}" for name in NAMESPACES)):
        for name in _homes(module):
            paths.setdefault(name, f"{module}.{name}")
    return paths


def public(name: str) -> Any:
    """What a public name stands for, in whichever namespace it is."""
    module, _, own = public_names()[name].rpartition(".")
    return getattr(importlib.import_module(module), own)
