"""A study: what to run, over which grid and seeds, and what to keep of every run."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from penchant.arguments import integer
from penchant.door import Invalid, door_as
from penchant.lab.studies.cells import OPTIONAL, PARTS, Axis, read_axes, read_seeds, refuse_endless
from penchant.lab.studies.checks import (
    check_adaptive,
    check_draw,
    check_file_name,
    check_function,
    check_names,
    check_parts,
)
from penchant.lab.studies.parts import name_of_function
from penchant.records import Record

SEEDED = ("problem", "model", "method", "penalty", "arguments")  # tables that may hold a seed


@dataclasses.dataclass(frozen=True, repr=False, kw_only=True, eq=False)
class Study(Record):
    """A study: what to run, over which grid, and what to keep. Wrong keys and values raise at once.

    There are two kinds. Either `problem`, `model` and `method` are tables of public names
    ({"is": "DualFlow", ...}) that are passed to `train`, and `final`, `trajectory` and `probes`
    name the results to keep; or `function` computes each cell.

    Parameters
    ----------
    name
        Letters, digits and . + - _, because it names files.
    problem
        A table that makes the problem.
    model
        A table that makes the model.
    method
        A table that makes the method.
    penalty
        A regularizer with the number it is multiplied by, {"is": "L1", "times": 1e-3}.
    stop
        One table or several that make stop rules, {"is": "Time", "t": 10.0}.
    record
        One table or several that make record rules.
    batch
        The number of samples in a step.
    final
        Names of values to keep at the end.
    trajectory
        Names of whole curves to keep.
    probes
        Calls on the path, by name.
    function
        A function at the top of a module, "module:function". It returns a dict of numbers,
        texts and arrays.
    arguments
        Its arguments that do not vary.
    dims
        The names of the axes of an array that it returns.
    inputs
        Data files, or folders of them, that the cells read: their content is part of the key of
        every cell, so that cells are computed again when it changes.
    grid
        The axes: {"model.alpha": [0.1, 1.0], "problem.samples": {"linspace": [10, 90, 9]}}, or
        names of arguments of the function.
    seeds
        A number or a list; the seed goes to every part that takes one.
    title
        What the study is about.
    labels
        Labels for the axes of pictures, by name.
    draw
        How its picture is drawn (penchant.lab.studies.checks). Like `title` and `labels`, it does
        not affect the cells.
    threshold
        Makes the study adaptive: it bisects for the value at which a measure changes.
    refine
        Makes the study adaptive: it refines the grid where a measure changes.
    source
        The name at the beginning of error messages.

    Examples
    --------
    >>> import penchant
    >>> function = "penchant_papers.woodworth2020.lemmas.lemma_13:cell"
    >>> grid = {"rows": [2, 3], "ratio": [1, 4]}
    >>> given = {"function": function, "arguments": {"draws": 9, "seed": 0}}
    >>> study = penchant.Study(name="q", grid=grid, **given)
    >>> study.dimensions, study.shape
    (('rows', 'ratio'), (2, 2))
    """

    name: str
    problem: Mapping[str, Any] | None = None
    model: Mapping[str, Any] | None = None
    method: Mapping[str, Any] | None = None
    penalty: Mapping[str, Any] | None = None
    stop: Any = None
    record: Any = None
    batch: int | None = None
    final: tuple[str, ...] = ()
    trajectory: tuple[str, ...] = ()
    probes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    function: Any = None
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    dims: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    grid: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    seeds: Any = None
    title: str = ""
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    draw: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    threshold: Mapping[str, Any] | None = None
    refine: Mapping[str, Any] | None = None
    source: str = dataclasses.field(default="Study", repr=False)
    axes: tuple[Axis, ...] = dataclasses.field(init=False, repr=False)
    seed_values: tuple[int, ...] | None = dataclasses.field(init=False, repr=False)

    @door_as(lambda self: self.source)
    def __post_init__(self) -> None:
        check_file_name(self.name)
        for field in ("final", "trajectory", "inputs"):
            object.__setattr__(self, field, _names(field, getattr(self, field)))
        tables = ("problem", "model", "method", "penalty", "probes", "arguments", "dims")
        for field in (*tables, "labels", "draw"):
            object.__setattr__(self, field, _plain(field, getattr(self, field)))
        for field in ("stop", "record"):
            object.__setattr__(self, field, _rules(field, getattr(self, field)))
        object.__setattr__(self, "axes", read_axes(self.grid))
        object.__setattr__(self, "seed_values", read_seeds(self.seeds))
        refuse_endless("the grid", math.prod(self.shape))
        if self.function is not None:
            object.__setattr__(self, "function", name_of_function(self.function))
        if self.threshold is not None or self.refine is not None:
            check_adaptive(self)
        elif self.function is None:
            check_parts(self)
        else:
            check_function(self)
        check_names(self)
        check_draw(self)

    def template(self) -> dict[str, Any]:
        """A cell without the values of the axes and the seed."""
        cell: dict[str, Any] = {part: getattr(self, part) for part in PARTS}
        options = {name: getattr(self, name) for name in (*OPTIONAL, "batch")}
        cell |= {name: value for name, value in options.items() if value is not None}
        recorded = {"final": list(self.final), "trajectory": list(self.trajectory)}
        return cell | recorded | {"probes": self.probes}

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of every axis, and of the seeds."""
        sizes = tuple(len(axis.values) for axis in self.axes)
        return sizes if self.seed_values is None else (*sizes, len(self.seed_values))

    @property
    def dimensions(self) -> tuple[str, ...]:
        names = tuple(axis.name for axis in self.axes)
        return names if self.seed_values is None else (*names, "seed")

    @door_as("Study")
    def shifted(self, shift: int) -> Study:
        """The same study with `shift` added to every seed, under a name of its own.

        Seeds are those of `seeds`, of an axis that ends in `seed`, and every number under the key
        `seed` in `arguments` and the tables of parts.
        """
        if integer("shift", shift, least=0) == 0:
            return self
        told = self.describe()
        tables = {key: _shifted(told[key], shift) for key in SEEDED if key in told}
        grid = {
            key: _moved(values, shift) if key.rpartition(".")[2] == "seed" else values
            for key, values in told["grid"].items()
        }
        seeds = None if told["seeds"] is None else _moved(told["seeds"], shift)
        name = f"{self.name}-shift-{shift}"
        own = {"name": name, "source": name, "grid": grid, "seeds": seeds}
        return Study(**{**told, **tables, **own})

    def describe(self) -> dict[str, Any]:
        """The whole description as plain JSON values; `Study(**...)` makes the study again."""
        grid = {axis.key: list(axis.values) for axis in self.axes}
        seeds = None if self.seed_values is None else list(self.seed_values)
        own = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.init and field.name not in ("grid", "seeds", "source")
        }
        given = {key: value for key, value in own.items() if value not in (None, (), {}, "")}
        description = json.loads(json.dumps({**given, "grid": grid, "seeds": seeds}))
        return dict(description)


def _shifted(value: Any, shift: int) -> Any:
    """Tables and lists with `shift` added to every number under the key `seed`."""
    if isinstance(value, Mapping):
        return {
            key: _moved(entry, shift) if key == "seed" else _shifted(entry, shift)
            for key, entry in value.items()
        }
    return [_shifted(entry, shift) for entry in value] if isinstance(value, list) else value


def _moved(seeds: Any, shift: int) -> Any:
    """A seed, or a list of seeds, with `shift` added."""
    return [seed + shift for seed in seeds] if isinstance(seeds, list) else seeds + shift


def _names(field: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not all(isinstance(name, str | os.PathLike) for name in given):
        raise Invalid(f"{field} must be a list of names, got {given!r:.80}")
    return tuple(dict.fromkeys(map(os.fspath, given)))


def _rules(field: str, given: Any) -> Any:
    """A table, or a list of several, in plain JSON values."""
    if isinstance(given, list | tuple):
        return [_plain(field, table) for table in given]
    return _plain(field, given)


def _plain(field: str, given: Any) -> Any:
    """A copy in plain JSON values: arrays and tuples become lists."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise Invalid(f"{field} must be a table, got {given!r:.80}")
    try:
        return json.loads(json.dumps(given, default=_unwrapped, allow_nan=False))
    except (TypeError, ValueError) as reason:
        raise Invalid(
            f"{field} must hold finite numbers, texts, lists and tables ({reason})"
        ) from None


def _unwrapped(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"got {type(value).__name__}")
