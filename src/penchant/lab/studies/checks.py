"""Checks of a description before anything runs; each error names the file and the key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penchant.arguments import one_of, real
from penchant.description import check_call
from penchant.door import Invalid, door_as
from penchant.lab.studies.cells import OPTIONAL, PARTS, RESERVED, placed, spec_at
from penchant.lab.studies.parts import (
    built,
    check_part,
    check_tables,
    function_named,
    takes_seed,
)

if TYPE_CHECKING:
    from penchant.lab.studies.study import Study


NAME = re.compile(r"\w([\w.+-]{0,98}[\w+-])?")
DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def check_file_name(name: Any) -> None:
    """Raise unless files can have this name on every system."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise Invalid(
            f"name must be letters, digits and . + - _, not with . at the end, because it "
            f"names files; got {name!r:.80}"
        )
    if DEVICE.fullmatch(name):
        raise Invalid(
            f"name must not be that of a device of Windows, because it names files; got {name!r}"
        )


@door_as(lambda study: study.source)
def check_parts(study: Study) -> None:
    """Check each part at every value of every axis, with the other axes at their first value."""
    for key in ("arguments", "dims"):
        if getattr(study, key):
            raise Invalid(f"{key} needs a function; add one or drop {key}")
    missing = [part for part in PARTS if getattr(study, part) is None]
    if missing:
        raise Invalid(f"{missing[0]} is missing; give {', '.join(PARTS)}, or a function")
    for axis in study.axes:
        _check_axis_key(study, axis.key)
    if not (study.final or study.trajectory or study.probes):
        raise Invalid("no result is kept; name variables in final, or add probes")
    _check_values(study)


def _check_axis_key(study: Study, key: str) -> None:
    head, *rest = key.split(".")
    one_of(f"part in grid key {key!r}:", head, (*PARTS, *OPTIONAL, "probes"))
    if isinstance(getattr(study, head), list):
        raise ValueError(f"{study.source}: grid.{key} needs one table [{head}], not several")
    if not rest:
        raise ValueError(
            f"{study.source}: grid.{key} must name the parameter it sets, such as {key}.alpha"
        )


def _check_values(study: Study) -> None:
    first = [axis.values[0] for axis in study.axes]
    seed = None if study.seed_values is None else study.seed_values[0]
    start = study.template()
    for axis, value in zip(study.axes, first, strict=True):
        start = placed(start, axis.key.split("."), value)
    given = () if seed is None else ("seed",)
    for part in PARTS:
        check_part(part, start[part], given)
    for part in OPTIONAL:
        check_tables(part, start.get(part))
    for name, probe in start["probes"].items():
        check_part(f"probes.{name}", probe)
    taken = any(takes_seed(p, start[p]) for p in PARTS) or study.batch is not None
    if seed is not None and not taken:
        raise ValueError(f"{study.source}: seeds are given, but no part takes a seed; drop them")
    _check_built(study, (*PARTS, *OPTIONAL), first, "")
    for number, axis in enumerate(study.axes):
        touched = tuple(part for part in (*PARTS, *OPTIONAL) if axis.key.startswith(f"{part}."))
        for value in axis.values[1:]:
            at = [*first[:number], value, *first[number + 1 :]]
            _check_built(study, touched, at, f" at {axis.key} = {value!r}")


def _check_built(study: Study, parts: tuple[str, ...], at: list[Any], where: str) -> None:
    seed = None if study.seed_values is None else study.seed_values[0]
    spec = spec_at(study, at, seed)
    for part in parts:
        check_tables(part, spec.get(part))
        try:
            built(part, spec.get(part))
        except (ValueError, TypeError) as reason:
            raise ValueError(f"{study.source}: [{part}]{where}: {reason}") from None


@door_as(lambda study: study.source)
def check_function(study: Study) -> None:
    surplus = [
        key
        for key in (*PARTS, *OPTIONAL, "batch", "final", "trajectory", "probes")
        if getattr(study, key)
    ]
    if surplus:
        raise Invalid(f"give a function or {surplus[0]}, not both")
    call = function_named(study.function)
    keys = [axis.key for axis in study.axes]
    if study.seed_values is not None:
        keys.append("seed")
    twice = [key for key in keys if key in study.arguments]
    if twice:
        raise Invalid(f"{twice[0]!r} is both an argument and an axis; keep one")
    for name, own in study.dims.items():
        if set(own) & set(study.dimensions):
            raise Invalid(f"dims.{name} must not repeat an axis of the grid, got {own}")
    check_call("grid", call, keys, tuple(study.arguments))
    check_call("arguments", call, list(study.arguments), tuple(keys))


def check_adaptive(study: Study) -> None:
    """The plain study behind an adaptive one: at the two ends, or on the finest grid."""
    from penchant.lab.studies.adaptive.refine import on_lattice
    from penchant.lab.studies.adaptive.threshold import with_axis

    if study.threshold is not None and study.refine is not None:
        raise ValueError(f"{study.source}: give threshold or refine, not both")
    if study.threshold is not None:
        with_axis(study)
    else:
        on_lattice(study)


def check_names(study: Study) -> None:
    """Raise if two variables or axes of the result have the same name."""
    taken = [*study.dimensions, *RESERVED[1:]]
    for name in (*study.final, *study.probes):
        if name in taken:
            raise ValueError(f"{study.source}: {name!r} names two results or axes; rename one")


KEYS = ("x", "y", "colour", "contours", "range", "log")


@door_as(lambda study: study.source)
def check_draw(study: Study) -> None:
    """Raise for the first entry of the table that cannot be drawn."""
    table = study.draw
    for key in table:
        one_of("key in draw", key, KEYS)
    _check_axes(study)
    colour = table.get("colour", "any")
    if not isinstance(colour, str) or not colour:
        raise Invalid(f"draw.colour must be a variable's name, got {colour!r:.80}")
    _check_contours(table.get("contours", {}))
    if not isinstance(table.get("log", False), bool):
        raise Invalid(f"draw.log must be true or false, got {table['log']!r:.80}")
    if "range" in table:
        _check_range(table["range"], table.get("log", False))


@door_as(lambda study: study.source)
def _check_axes(study: Study) -> None:
    names = [axis.name for axis in study.axes]
    for key in ("x", "y"):
        given = study.draw.get(key)
        if given is None:
            continue
        if not names:
            raise Invalid(f"draw.{key} must name an axis, but the grid has none")
        if not isinstance(given, str):
            raise Invalid(f"draw.{key} must be the name of an axis, got {given!r:.80}")
        one_of(f"axis in draw.{key}", given, names)
    if "x" in study.draw and study.draw["x"] == study.draw.get("y"):
        raise Invalid(f"draw.x and draw.y are both {study.draw['x']!r}; name two axes")


def _check_contours(given: Any) -> None:
    if not isinstance(given, Mapping):
        raise Invalid(f"draw.contours must be a table such as {{excess = 0.5}}, got {given!r:.80}")
    for name, level in given.items():
        real(f"draw.contours.{name}", level)


def _check_range(given: Any, log: bool) -> None:
    if not isinstance(given, list) or len(given) != 2:
        raise Invalid(f"draw.range must be [low, high], got {given!r:.80}")
    low, high = (real("draw.range", end) for end in given)
    if not low < high or (log and low <= 0):
        rule = "0 < low < high, as log is true" if log else "low < high"
        raise Invalid(f"draw.range must have {rule}, got {given!r:.80}")
