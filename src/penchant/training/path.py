"""The path that training took, how it is saved, and how another run continues it."""

from __future__ import annotations

import collections
import dataclasses
import importlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from penchant import store
from penchant.arguments import Array
from penchant.description import IS, made_from
from penchant.door import Invalid, door_as, speaking_as
from penchant.records import Kind, Outcome
from penchant.results import LabelledResult
from penchant.words import digest_of

MARK = "penchant_path"  # the attribute for everything that is not an array
PREFIX = "path_"  # of the variables that hold parameters and memory
OWN = (
    "penchant.models."  # modules whose named tuples are restored; those of others become plain ones
)


def _structure(tree: Any, arrays: list[Any]) -> Any:
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


def _rebuilt(structure: Any, arrays: list[Any]) -> Any:
    if structure is None:
        return None
    if "array" in structure:
        return arrays[structure["array"]]
    if "dict" in structure:
        return {key: _rebuilt(part, arrays) for key, part in structure["dict"].items()}
    if "named" in structure:
        fields = {name: _rebuilt(part, arrays) for name, part in structure["fields"].items()}
        return _named(structure["named"], tuple(fields))(**fields)
    (kind, parts), *_ = structure.items()
    return {"tuple": tuple, "list": list}[kind](_rebuilt(part, arrays) for part in parts)


def _named(name: str, fields: tuple[str, ...]) -> Any:
    """The named tuple "module:class" if it is ours; otherwise a new one with its fields.

    No other module is imported, since a file may come from anyone.
    """
    module, _, title = name.partition(":")
    if module.startswith(OWN):
        try:
            kind = getattr(importlib.import_module(module), title, None)
        except ImportError:
            kind = None
        if getattr(kind, "_fields", None) == fields:
            return kind
    return collections.namedtuple(title.split(".")[-1], fields)


_noted: ContextVar[list[Outcome] | None] = ContextVar("noted", default=None)


@contextmanager
def noted_outcomes() -> Iterator[list[Outcome]]:
    """A context in which the outcome of every path that `train` makes is entered into the list.

    A thread that is started inside has a context of its own, and is not seen.
    """
    outcomes: list[Outcome] = []
    token = _noted.set(outcomes)
    try:
        yield outcomes
    finally:
        _noted.reset(token)


def are_noted() -> bool:
    """Whether the outcomes of paths are entered into a list, as in a cell of a study."""
    return _noted.get() is not None


def note_outcome(outcome: Outcome) -> None:
    """Enter an outcome into the list of the context, if there is one."""
    outcomes = _noted.get()
    if outcomes is not None:
        outcomes.append(outcome)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Path(LabelledResult):
    """The path of a training run; `dataset` holds everything that was recorded, with labels.

    `train(**path.arguments)` repeats the run. Model, problem and method are built from the
    description that the dataset holds, so a path from a file has them too; a function of yours is
    not in it, and the error says so.

    Attributes
    ----------
    outcome
        How training ended.
    dataset
        What was recorded along `time`, an xarray.Dataset.
    parameters
        The final parameters, an array or a pytree of arrays; None where float64 cannot hold them.
    memory
        What a step-by-step method carries from step to step, for `resume`.
    arrays
        The large arrays that the description of the run names, such as data without a generator.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(5, 8, sparsity=1)
    >>> net, stop = penchant.DiagonalNet(2, alpha=0.1), penchant.Steps(100)
    >>> path = penchant.train(net, problem, penchant.GradientDescent(1e-3), stop=stop)
    >>> path.steps, path.t, path.predictor.shape
    (100, 0.1, (8,))
    """

    outcome: Outcome
    dataset: Any = dataclasses.field(repr=False)
    parameters: Any = dataclasses.field(default=None, repr=False)
    memory: tuple[Array, ...] | None = dataclasses.field(default=None, repr=False)
    arrays: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def description(self) -> dict[str, Any]:
        """The arguments of the run as plain JSON values, and the versions of the libraries."""
        try:
            description = json.loads(self.dataset.attrs["description"])
        except (LookupError, TypeError, ValueError, RecursionError):
            description = None
        if not isinstance(description, dict):
            raise ValueError("Path: the dataset does not hold the description of a run")
        return description

    @property
    def model(self) -> Any:
        """The model that was trained, made again."""
        return self._made_again("model")

    @property
    def problem(self) -> Any:
        """The problem that it was trained on, made again."""
        return self._made_again("problem")

    @property
    def method(self) -> Any:
        """The method that trained it, made again."""
        return self._made_again("method")

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments with which `train` repeats the run."""
        given = (name for name in (*SAME, "stop", "record") if name in self.description)
        return {name: self._made_again(name) for name in given}

    def _made_again(self, name: str) -> Any:
        told = self.description
        if name not in told:
            raise ValueError(f"Path: the description of the run has no {name}")
        with speaking_as(f"the {name} of the path"):
            return made_from(told[name], self.arrays)

    @property
    def t(self) -> float:
        """The training time at the end."""
        return float(self.dataset.t.values[-1])

    @property
    def steps(self) -> int:
        """The number of steps taken; a flow has none."""
        if "step" not in self.dataset.coords:
            raise AttributeError("Path.steps: an exact flow has no steps; see t")
        return int(self.dataset.step.values[-1])

    @property
    def log_loss(self) -> float:
        """The natural logarithm of the training loss at the end."""
        return float(self.dataset.log_loss.values[-1])

    @property
    def error(self) -> float:
        """The largest error of an exact flow along the path, over the largest entry."""
        if "error" not in self.dataset:
            raise AttributeError("Path.error: not measured; use an exact flow with certify=True")
        return float(self.dataset.error.values.max())

    @property
    def predictor(self) -> Array:
        """The linear predictor at the end, a vector or a matrix."""
        return self._last("predictor", "the model has no linear predictor; see predictions")

    @property
    def predictions(self) -> Array:
        """The outputs of the model on the samples at the end."""
        return self._last("predictions", "they were not recorded; see predictor")

    def save(self, file: str | os.PathLike[str]) -> FilePath:
        """Write everything to `file` for `penchant.load`, including what `resume` needs.

        It has a checksum, and appears completely or not at all.
        """
        arrays: list[Any] = []
        header: dict[str, Any] = {"outcome": [self.outcome.kind.value, self.outcome.sentence]}
        for name in ("parameters", "memory"):
            header[name] = _structure(getattr(self, name), arrays)
        held = [key for key in _digests(self.dataset) if key in self.arrays]
        apart = {key: array for key, array in self.arrays.items() if key not in held}
        header |= {"arrays": _structure(apart, arrays), "held": held}
        dataset = self.dataset
        for k, array in enumerate(arrays):
            axes = [f"{PREFIX}{k}_{axis}" for axis in range(array.ndim)]
            dataset = dataset.assign({f"{PREFIX}{k}": (axes, array)})
        return store.write(dataset.assign_attrs({MARK: json.dumps(header)}), file)

    def _last(self, name: str, why: str) -> Array:
        if name not in self.dataset:
            raise AttributeError(f"Path.{name}: {why}")
        return np.asarray(self.dataset[name].values[-1])

    def rows(self) -> list[tuple[str, str]]:
        rows = [("outcome", str(self.outcome)), ("t", f"{self.t:.6g}")]
        if "step" in self.dataset.coords:
            rows.append(("steps", str(self.steps)))
        rows.append(("log_loss", f"{self.log_loss:.6g}"))
        sizes = ", ".join(f"{name} {size}" for name, size in self.dataset.sizes.items())
        return [*rows, ("dataset", f"{', '.join(map(str, self.dataset.data_vars))} ({sizes})")]


def _digests(dataset: Any) -> dict[str, Array]:
    """The variables of a dataset that do not change with time, by their digests."""
    fixed = (v.values for v in dataset.variables.values() if "time" not in v.dims)
    return {digest_of(values): values for values in fixed if values.dtype.kind in "iufb"}


def is_path(dataset: Any) -> bool:
    """Whether the dataset of a file holds a path."""
    return MARK in dataset.attrs


def path_of(file: str | os.PathLike[str], dataset: Any) -> Path:
    """The path that `path.save(file)` wrote as this dataset."""
    try:
        header = json.loads(dataset.attrs.pop(MARK))
        count = sum(str(name).startswith(PREFIX) for name in dataset.variables)
        leaves = [dataset[f"{PREFIX}{k}"].values for k in range(count)]
        names = ("parameters", "memory", "arrays")
        parameters, memory, apart = (_rebuilt(header[name], leaves) for name in names)
        kind, sentence = header["outcome"]
        outcome = Outcome(Kind(kind), sentence)
        dataset = dataset.drop_vars([f"{PREFIX}{k}" for k in range(count)])
        fixed = _digests(dataset)
        arrays = apart | {key: fixed[key] for key in header["held"]}
        return Path(outcome, dataset, parameters, memory, arrays)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as reason:
        raise Invalid(
            f"{file} was not written by path.save ({type(reason).__name__}: {reason!s:.200})"
        ) from None


SAME = ("problem", "model", "method", "penalty", "batch", "seed")


@door_as("train")
def resumed(before: Path, description: dict[str, Any], last: int) -> tuple[Any, Any, int]:
    """Parameters, memory and steps of `before`, if the run differs only in stop and record."""
    if not isinstance(before, Path):
        raise Invalid(f"resume must be the path of an earlier run, got {type(before).__name__}")
    if before.memory is None:
        raise Invalid("resume must be a path of steps that did not diverge")
    earlier = before.description
    for part in SAME:
        old, new = earlier.get(part), description.get(part)
        if old != new:
            name = part
            if isinstance(old, dict) and isinstance(new, dict):
                key = next(k for k in {IS: None, **new, **old} if old.get(k) != new.get(k))
                old, new = old.get(key), new.get(key)
                name = part if key == IS else f"{key} of the {part}"
            raise Invalid(
                f"resume must have the same {name}, which was {old} and now is {new};"
                " start a new run"
            )
    if last <= before.steps:
        raise Invalid(f"resume has taken {before.steps} steps already, which stop must exceed")
    return before.parameters, before.memory, before.steps


def joined(before: Path, belongs: Any, dataset: Any) -> Any:
    import xarray

    old = before.dataset.drop_vars("epoch", errors="ignore")
    parts = [old.isel(time=np.flatnonzero(belongs)), dataset.isel(time=slice(1, None))]
    how: Any = {
        "data_vars": "minimal",
        "coords": "minimal",
        "compat": "override",
        "join": "override",
    }
    both = xarray.concat(parts, "time", **how, combine_attrs="override")
    if "final_parameters" in dataset:
        both["final_parameters"] = dataset["final_parameters"]
    return both
