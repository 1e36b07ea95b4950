"""The tables of a study, such as {is = "DualFlow"}: descriptions, checked before anything runs.

A table is what penchant.description writes and reads, so that a file from somebody else can start
no study, and read or write no file. A study adds the seeds of its cells and references to a path.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from penchant.arguments import one_of
from penchant.description import IS, arguments_in, check_call, made_from, named
from penchant.door import Invalid, door_as, speaking_as
from penchant.lab.studies.code.inputs import importing
from penchant.training import record as recording
from penchant.training import stop as stopping
from penchant.training.descent.method import StepMethod
from penchant.training.exact.flow import Flow


def check_part(where: str, spec: Any, given: tuple[str, ...] = ()) -> None:
    """Raise if a table cannot become a call; `given` are arguments that come from elsewhere."""
    if not isinstance(spec, Mapping):
        raise Invalid(f"{where} must be a table such as {{is = ...}}, got {spec!r:.80}")
    if IS not in spec:
        raise Invalid(f"{where} needs the key `is`, a public name of penchant")
    maker = named(where, spec[IS])
    check_call(where, maker, arguments_in(maker, spec), given)
    for key in spec:
        inner = spec[key] if isinstance(spec[key], list) else [spec[key]]
        for value in inner:
            if isinstance(value, Mapping) and IS in value:
                check_part(f"{where}.{key}", value)


def check_tables(where: str, spec: Any) -> None:
    """The same for one table or a list of them."""
    for table in spec if isinstance(spec, list) else [spec]:
        if table is not None:
            check_part(where, table)


def takes_seed(where: str, spec: Mapping[str, Any]) -> bool:
    """Whether the seed of a cell goes to this part: it takes one and does not set its own."""
    return "seed" not in spec and _has_seed(named(where, spec[IS]))


@functools.cache
def _has_seed(call: Callable[..., Any]) -> bool:
    return "seed" in inspect.signature(call).parameters


@door_as("study")
def built(part: str, spec: Any) -> Any:
    """The object that the table of a part describes, checked for use in `train`."""
    if spec is None:
        return None
    made = made_from(spec)
    if part == "penalty":
        return 1.0 * made
    if part == "stop":
        return stopping.rules(made)
    if part == "record":
        return recording.rules(made)
    if part == "method" and not (isinstance(made, Flow | StepMethod) or hasattr(made, "run")):
        raise ValueError(f"method.is names {spec[IS]}, which cannot train")
    return made


def function_named(name: Any) -> Callable[..., Any]:
    """The module-level function behind "package.module:function"."""
    module, _, attribute = str(name).partition(":")
    if not module or not attribute.isidentifier():
        raise Invalid(f'function must read "package.module:function", got {name!r:.80}')
    try:
        with importing(module):
            function = getattr(importlib.import_module(module), attribute, None)
    except (ImportError, SystemExit) as reason:
        why = f"it calls sys.exit({reason})" if isinstance(reason, SystemExit) else reason
        raise Invalid(f"function {name!r:.80} cannot be imported ({why})") from None
    if not callable(function):
        raise Invalid(f"the module {module} has no function {attribute!r}")
    return function


def name_of_function(function: Any) -> str:
    """ "package.module:function" of a function, or the text itself."""
    if isinstance(function, str):
        return function
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", "")
    if not module or not name.isidentifier():
        raise Invalid(
            f"function must be defined at the top of a module, so that another process can "
            f"find it; got {name or function!r:.80}"
        )
    return f"{module}:{name}"


MARK = "$"
OBJECTS = ("path", "model", "problem", "method")


class DescriptionError(ValueError):
    """An error in the description that appears only while a cell runs; it stops the study."""


def resolved(where: str, value: Any, scope: Mapping[str, Any]) -> Any:
    """The object behind a reference or a table with `is`; other values as they are."""
    if not (isinstance(value, str) and value.startswith(MARK)):
        with speaking_as(where):
            return made_from(value)
    first, *rest = value[1:].split(".")
    if first not in OBJECTS:
        return variable(where, scope["path"], value[1:]).values
    target = scope[first]
    for name in rest:
        if name.startswith("_") or not hasattr(target, name):
            raise DescriptionError(f"{where}: {value!r} is unknown: {first} has no {name!r}")
        target = getattr(target, name)
    if rest and callable(target):  # a method could do more than give a value
        raise DescriptionError(f"{where}: {value!r} is a method, not a value")
    return target


def variable(where: str, path: Any, name: str) -> Any:
    """The variable `name` of a path's dataset; the nearest spelling is offered otherwise."""
    try:
        known = map(str, path.dataset.variables)
        with speaking_as(where):
            return path.dataset[one_of("variable of the path", name, known)]
    except ValueError as reason:
        raise DescriptionError(str(reason)) from None
