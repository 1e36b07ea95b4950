"""penchant: a laboratory for the implicit bias of gradient descent.

The public names are listed in `__init__.pyi`, each with the module it lives in. A name is imported
when it is first used, so that a program pays only for what it needs.
"""

import ast as _ast
import importlib as _importlib
from pathlib import Path as _File
from typing import Any as _Any

__version__ = "0.2.0"


def _homes() -> dict[str, str]:
    """The module of every public name, taken from the `from ... import ...` lines of the stub."""
    stub = _ast.parse((_File(__file__).parent / "__init__.pyi").read_text(encoding="utf-8"))
    lines = (line for line in stub.body if isinstance(line, _ast.ImportFrom))
    return {name.name: str(line.module) for line in lines for name in line.names}


_HOMES = _homes()
_ROOMS = {entry.stem for entry in _File(__file__).parent.iterdir() if entry.suffix in ("", ".py")}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> _Any:
    if name in _HOMES:
        value = getattr(_importlib.import_module(_HOMES[name]), name)
    elif name in _ROOMS:
        value = _importlib.import_module(f"penchant.{name}")
    else:
        raise AttributeError(f"module 'penchant' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
