"""A dataset, an outcome and pytrees of arrays in one file, and back."""

from __future__ import annotations

import collections
import importlib
import json
import os
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from tacit import store
from tacit.records import Kind, Outcome

MARK = "tacit_path"  # the attribute that holds what is no array
PREFIX = "path_"  # of the variables that hold parameters and memory
OWN = "tacit.models."  # modules whose named tuples are made again; others get a plain one


def write(
    file: str | os.PathLike[str], outcome: Outcome, dataset: Any, parameters: Any, memory: Any
) -> FilePath:
    """Write all of it to `file`, whole or not at all and sealed by a checksum."""
    arrays: list[Any] = []
    header = {"outcome": [outcome.kind.value, outcome.sentence]}
    header |= {"parameters": _structure(parameters, arrays), "memory": _structure(memory, arrays)}
    for k, array in enumerate(arrays):
        axes = [f"{PREFIX}{k}_{axis}" for axis in range(array.ndim)]
        dataset = dataset.assign({f"{PREFIX}{k}": (axes, array)})
    return store.save(dataset.assign_attrs({MARK: json.dumps(header)}), file)


def read(who: str, file: str | os.PathLike[str]) -> tuple[Outcome, Any, Any, Any]:
    """The outcome, the dataset, the parameters and the memory that `write` wrote to `file`."""
    dataset = store.load(file, who=who)
    if MARK not in dataset.attrs:
        raise ValueError(
            f"{who}: {file} holds a dataset and no path; read it with load(), or write the path "
            "with path.save(file)"
        )
    try:
        header = json.loads(dataset.attrs.pop(MARK))
        count = sum(str(name).startswith(PREFIX) for name in dataset.variables)
        arrays = [dataset[f"{PREFIX}{k}"].values for k in range(count)]
        parameters, memory = (_rebuilt(header[name], arrays) for name in ("parameters", "memory"))
        kind, sentence = header["outcome"]
        outcome = Outcome(Kind(kind), sentence)
    except (KeyError, IndexError, TypeError, ValueError) as reason:
        raise ValueError(
            f"{who}: {file} is no file of path.save ({type(reason).__name__}: {reason})"
        ) from None
    dataset = dataset.drop_vars([f"{PREFIX}{k}" for k in range(count)])
    return outcome, dataset, parameters, memory


def _structure(tree: Any, arrays: list[Any]) -> Any:
    """The structure of a pytree as plain JSON values; its arrays are added to `arrays`."""
    if tree is None:
        return None
    if isinstance(tree, dict) and all(isinstance(key, str) for key in tree):
        return {"dict": {key: _structure(part, arrays) for key, part in tree.items()}}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        fields = {name: _structure(getattr(tree, name), arrays) for name in tree._fields}
        kind = type(tree)
        return {"named": f"{kind.__module__}:{kind.__qualname__}", "fields": fields}
    if isinstance(tree, tuple | list):
        return {type(tree).__name__: [_structure(part, arrays) for part in tree]}
    array = np.asarray(tree)
    if array.dtype.kind not in "iufb":
        raise ValueError(
            "Path.save: parameters must be arrays of numbers in dicts, lists, tuples and named "
            f"tuples, got a {type(tree).__name__}"
        )
    arrays.append(array)
    return {"array": len(arrays) - 1}


def _rebuilt(told: Any, arrays: list[Any]) -> Any:
    """The pytree that `_structure` described."""
    if told is None:
        return None
    if "array" in told:
        return arrays[told["array"]]
    if "dict" in told:
        return {key: _rebuilt(part, arrays) for key, part in told["dict"].items()}
    if "named" in told:
        fields = {name: _rebuilt(part, arrays) for name, part in told["fields"].items()}
        return _named(told["named"], tuple(fields))(**fields)
    (kind, parts), *_ = told.items()
    return {"tuple": tuple, "list": list}[kind](_rebuilt(part, arrays) for part in parts)


def _named(name: str, fields: tuple[str, ...]) -> Any:
    """The named tuple of tacit called "module:class"; for another one a new one alike.

    No other module is imported: a file may come from anyone.
    """
    module, _, title = name.partition(":")
    if module.startswith(OWN):
        try:
            found = getattr(importlib.import_module(module), title, None)
        except ImportError:
            found = None
        if getattr(found, "_fields", None) == fields:
            return found
    return collections.namedtuple(title.split(".")[-1], fields)
