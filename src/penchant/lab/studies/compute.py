"""Computing one cell: its values, or a message that says why there are none.

A cell that raises anything but KeyboardInterrupt has failed. One that returns may be doubtful: it
gave no value, a value that is NaN throughout, or it trained a path that did not end well. Its
values are kept, and its status says which of the three it is.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

from penchant.description import IS, named
from penchant.door import door_as
from penchant.lab.studies.cells import OPTIONAL, PARTS, RESERVED, canonical
from penchant.lab.studies.parts import (
    DescriptionError,
    built,
    function_named,
    resolved,
    variable,
)
from penchant.records import Kind, NumericalError, Outcome
from penchant.training.path import noted_outcomes
from penchant.training.train import train

OK = (Kind.SOLVED.value, Kind.NOT_UNIQUE.value)
ERROR = "error"  # the status of a cell that raised anything but a NumericalError
EMPTY, NAN = "empty", "not a number"
PATHS = {kind: f"path {kind.value}" for kind in Kind if kind.value not in OK}
DOUBTFUL = (EMPTY, NAN, *PATHS.values())
USABLE = (*OK, *DOUBTFUL)  # the cell returned, and its values are what it gave
# what may not happen at the next try is not stored
PASSING = (MemoryError, OSError, ImportError)
TRAJECTORY = "trajectory_"

Value = float | int | bool | str | tuple[tuple[str, ...], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a cell; `stored` is False if a second try may give another one."""

    status: str
    sentence: str
    values: Mapping[str, Value]
    seconds: float
    stored: bool = True
    made_with: Mapping[str, str] = dataclasses.field(default_factory=dict)


def compute(spec: Mapping[str, Any]) -> Result:
    """The result of a cell; only an error in the description and Ctrl-C raise."""
    start = perf_counter()
    try:
        with _forks_end(), noted_outcomes() as outcomes:
            status, sentence, values = _function(spec) if "function" in spec else _run(spec)
        if status in OK:
            status, sentence = _doubt(values, outcomes) or (status, sentence)
    except (DescriptionError, KeyboardInterrupt):
        raise
    except NumericalError as error:
        status, sentence, values = error.outcome.kind.value, error.outcome.sentence, {}
    except PASSING as error:
        return Result(ERROR, message_of(error), {}, perf_counter() - start, stored=False)
    except SystemExit as error:
        status, sentence, values = ERROR, f"the cell called sys.exit({error.code!r:.80})", {}
    except BaseException as error:  # one failed cell must not stop the others
        status, sentence, values = ERROR, message_of(error), {}
    return Result(status, sentence, values, perf_counter() - start)


@contextmanager
def _forks_end() -> Iterator[None]:
    """Ends a child that a cell has forked where it would leave the cell: it has no value to store.

    It also must not go on in place of its parent, which computes the next cell.
    """
    process = os.getpid()
    try:
        yield
    except BaseException as error:
        if os.getpid() != process:
            code = getattr(error, "code", 1)  # SystemExit has one
            os._exit(code if isinstance(code, int) else int(code is not None))
        raise
    if os.getpid() != process:
        os._exit(0)


def _doubt(values: Mapping[str, Value], outcomes: Sequence[Outcome]) -> tuple[str, str] | None:
    """(status, sentence) of a cell that returned, if there is something to doubt."""
    if not values:
        return EMPTY, "the cell returned no value"
    failed = [outcome for outcome in outcomes if not outcome.ok]
    if failed:
        count = f"{len(failed)} of {len(outcomes)} paths did not end well; the first: "
        return PATHS[failed[0].kind], f"{count * (len(outcomes) > 1)}{failed[0].sentence}"
    names = [name for name, value in values.items() if _is_nan(value)]
    return (NAN, f"{', '.join(names)}: NaN") if names else None


def _is_nan(value: Value) -> bool:
    """True for NaN, and for an array that holds nothing else."""
    array = np.asarray(value[1] if isinstance(value, tuple) else value)
    return array.dtype.kind == "f" and array.size > 0 and bool(np.isnan(array).all())


def message_of(error: BaseException) -> str:
    """The error on one line, with its type where that adds information."""
    words = " ".join(str(error).split())
    plain = isinstance(error, ValueError) and words
    return words if plain else f"{type(error).__name__}: {words}".rstrip(": ")


@door_as("study")
def _function(spec: Mapping[str, Any]) -> tuple[str, str, dict[str, Value]]:
    answer = function_named(spec["function"])(**spec["arguments"])
    if not isinstance(answer, Mapping):
        raise DescriptionError(
            f"study: {spec['function']} must return a dict of named values, got "
            f"{type(answer).__name__}"
        )
    dims = spec["dims"]
    taken = [name for name in answer if name in (*spec["arguments"], *RESERVED)]
    if taken:
        raise DescriptionError(
            f"study: {spec['function']} returns {taken[0]!r}, which already names an argument or a "
            "column of the result; rename it"
        )
    values = {name: _value(name, value, dims.get(name)) for name, value in answer.items()}
    return OK[0], "", values


def _run(spec: Mapping[str, Any]) -> tuple[str, str, dict[str, Value]]:
    """Train, then read off the requested values; a failed path keeps those it has."""
    scope = {part: _made(part, canonical(spec[part])) for part in PARTS}
    path = _trained(spec, **scope)
    scope["path"] = path
    values: dict[str, Value] = {}
    for name in spec["final"]:
        values[name] = _last(variable("final", path, name))
    for name in spec["trajectory"]:
        whole = variable("trajectory", path, name)
        values[TRAJECTORY + name] = (tuple(map(str, whole.dims)), np.asarray(whole.values))
    if path.outcome.ok:
        for name, probe in spec["probes"].items():
            values |= _probed(name, probe, scope)
    return path.outcome.kind.value, path.outcome.sentence, values


def _trained(spec: Mapping[str, Any], problem: Any, model: Any, method: Any) -> Any:
    if hasattr(method, "run"):  # a method that `train` has not taken over yet
        return method.run(model, problem)
    options = {name: built(name, spec[name]) for name in OPTIONAL if name in spec}
    numbers = {name: spec[name] for name in ("batch", "seed") if name in spec}
    return train(model, problem, method, **options, **numbers)


@functools.lru_cache(maxsize=8)
def _made(part: str, text: str) -> Any:
    """The object of a table; neighbouring cells share their problem."""
    return built(part, json.loads(text))


def _last(whole: Any) -> Value:
    """A variable at the last recorded time."""
    at = whole.isel(time=-1) if "time" in whole.dims else whole
    if at.ndim == 0:
        return _scalar(at.values.item())
    return tuple(map(str, at.dims)), np.asarray(at.values)


@door_as("study")
def _probed(name: str, probe: Mapping[str, Any], scope: Mapping[str, Any]) -> dict[str, Value]:
    """A probe's value under its name, or the fields of its record as name_field."""
    arguments = {
        key: resolved(f"probes.{name}", value, scope) for key, value in probe.items() if key != IS
    }
    result = named(f"probes.{name}", probe[IS])(**arguments)
    if dataclasses.is_dataclass(result):
        result = {f.name: getattr(result, f.name) for f in dataclasses.fields(result) if f.repr}
    if not isinstance(result, Mapping):
        return {name: _value(name, result, None)}
    return {
        f"{name}_{key}": _value(f"{name}_{key}", value, None)
        for key, value in result.items()
        if isinstance(value, bool | int | float | str | np.generic | np.ndarray)
    }


def _value(name: str, value: Any, dims: Any) -> Value:
    """A value that a cell file can hold; an array's dimensions are named, by `dims` or its own."""
    if not str(name).isidentifier():
        raise DescriptionError(f"study: a result must have a plain name, got {name!r}")
    array = np.asarray(value)
    if array.dtype.kind not in "biufU":
        raise DescriptionError(
            f"study: {name} must be numbers or text, got {type(value).__name__} ({array.dtype})"
        )
    if array.ndim == 0:
        return _scalar(array.item())
    own = tuple(dims or (f"{name}_{axis}" for axis in range(array.ndim)))
    if len(own) != array.ndim:
        raise DescriptionError(
            f"study: dims.{name} must name {array.ndim} dimension(s), got {list(own)}"
        )
    return own, array


def _scalar(value: Any) -> float | int | bool | str:
    return value if isinstance(value, bool | int | str) else float(value)
