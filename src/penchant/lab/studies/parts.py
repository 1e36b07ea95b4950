"""Problems, models and methods by their public names, as tables such as {is = "DualFlow"}.

A table with the key `is` becomes the object of that public name of penchant, with the other keys as
its keyword arguments; tables nest. Only names that compute are allowed: a file from somebody else
must not start a study, read a file or write one.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from penchant.arguments import one_of, real
from penchant.lab.studies.code.inputs import importing
from penchant.namespaces import public, public_names
from penchant.training import record as recording
from penchant.training import stop as stopping
from penchant.training.descent.method import StepMethod
from penchant.training.exact.flow import Flow

IS = "is"
PENALTY, TIMES = "penalty", "times"  # a penalty is a number times a regularizer
ROOMS = ("regularizers", "problems", "solvers", "models", "training", "measures", "forecasts")
REFUSED = ("import_images", "load_path", "train")  # they read files or run a whole study
LISTED = "penchant.namespaces.public_names() holds them"


def is_part(value: object) -> bool:
    return isinstance(value, Mapping) and IS in value


def named(who: str, where: str, name: object) -> Callable[..., Any]:
    """The public object of penchant called `name`."""
    if not isinstance(name, str):
        raise ValueError(f"{who}: {where}.is must be a public name of penchant, got {name!r:.80}")
    if name not in public_names():
        one_of(who, f"name in {where}.is", name, public_names(), LISTED)
    found: Callable[..., Any] = public(name)
    if getattr(found, "__module__", ".").split(".")[1] not in ROOMS or name in REFUSED:
        raise ValueError(
            f"{who}: {where}.is names {name}; a table may name problems, models, methods, "
            "regularizers, measures and rules, nothing else"
        )
    return found


def check_part(who: str, where: str, spec: Any, given: tuple[str, ...] = ()) -> None:
    """Raise if a table cannot become a call; `given` are arguments that come from elsewhere."""
    if not isinstance(spec, Mapping):
        raise ValueError(f"{who}: {where} must be a table such as {{is = ...}}, got {spec!r:.80}")
    if IS not in spec:
        raise ValueError(f"{who}: {where} needs the key `is`, a public name of penchant")
    keys = [key for key in spec if key != IS]
    check_call(who, where, named(who, where, spec[IS]), keys, given)
    for key in keys:
        inner = spec[key] if isinstance(spec[key], list) else [spec[key]]
        for value in inner:
            if is_part(value):
                check_part(who, f"{where}.{key}", value)


def check_tables(who: str, where: str, spec: Any) -> None:
    """The same for one table or a list of them, of which a penalty may have the key `times`."""
    if where == PENALTY and isinstance(spec, Mapping):
        spec = {key: value for key, value in spec.items() if key != TIMES}
    for table in spec if isinstance(spec, list) else [spec]:
        if table is not None:
            check_part(who, where, table)


def check_call(
    who: str, where: str, call: Callable[..., Any], keys: list[str], given: tuple[str, ...] = ()
) -> None:
    """Raise if `call` does not take one of `keys`, or lacks an argument that it needs."""
    parameters = inspect.signature(call).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        for key in keys:
            one_of(who, f"key in {where}", key, parameters)
    for name, parameter in parameters.items():
        plain = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if plain and parameter.default is parameter.empty and name not in (*keys, *given):
            needs = f"which {getattr(call, '__name__', repr(call))} needs"
            raise ValueError(f"{who}: {where} lacks {name!r}, {needs}")


def takes_seed(who: str, where: str, spec: Mapping[str, Any]) -> bool:
    """Whether the seed of a cell goes to this part: it takes one and does not set its own."""
    return "seed" not in spec and _has_seed(named(who, where, spec[IS]))


@functools.cache
def _has_seed(call: Callable[..., Any]) -> bool:
    return "seed" in inspect.signature(call).parameters


def build(value: Any) -> Any:
    """The object that a table describes; other values as they are."""
    if is_part(value):
        arguments = {key: build(inner) for key, inner in value.items() if key != IS}
        return named("study", IS, value[IS])(**arguments)
    if isinstance(value, list):
        return [build(inner) for inner in value]
    return value


def built(part: str, spec: Any) -> Any:
    """The object that the table of a part describes, checked for use in `train`."""
    if spec is None:
        return None
    if part == PENALTY:
        plain = {key: value for key, value in spec.items() if key != TIMES}
        return real("study", "penalty.times", spec.get(TIMES, 1.0)) * build(plain)
    made = build(spec)
    if part == "stop":
        return stopping.rules("study", made)
    if part == "record":
        return recording.rules("study", made)
    if part == "method" and not (isinstance(made, Flow | StepMethod) or hasattr(made, "run")):
        raise ValueError(f"method.is names {spec[IS]}, which cannot train")
    return made


def function_named(who: str, name: Any) -> Callable[..., Any]:
    """The module-level function behind "package.module:function"."""
    module, _, attribute = str(name).partition(":")
    if not module or not attribute.isidentifier():
        raise ValueError(f'{who}: function must read "package.module:function", got {name!r:.80}')
    try:
        with importing(module):
            found = getattr(importlib.import_module(module), attribute, None)
    except (ImportError, SystemExit) as reason:
        why = f"it calls sys.exit({reason})" if isinstance(reason, SystemExit) else reason
        raise ValueError(f"{who}: function {name!r:.80} cannot be imported ({why})") from None
    if not callable(found):
        raise ValueError(f"{who}: the module {module} has no function {attribute!r}")
    return found


def name_of_function(who: str, function: Any) -> str:
    """ "package.module:function" of a function, or the text itself."""
    if isinstance(function, str):
        return function
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", "")
    if not module or not name.isidentifier():
        raise ValueError(
            f"{who}: function must be defined at the top of a module, so that another process can "
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
        return build(value)
    first, *rest = value[1:].split(".")
    if first not in OBJECTS:
        return variable(where, scope["path"], value[1:]).values
    found = scope[first]
    for name in rest:
        if name.startswith("_") or not hasattr(found, name):
            raise DescriptionError(f"{where}: {value!r} is unknown: {first} has no {name!r}")
        found = getattr(found, name)
    if rest and callable(found):  # a method could do more than give a value
        raise DescriptionError(f"{where}: {value!r} is a method, not a value")
    return found


def variable(where: str, path: Any, name: str) -> Any:
    """The variable `name` of a path's dataset; the nearest spelling is offered otherwise."""
    try:
        known = map(str, path.dataset.variables)
        return path.dataset[one_of(where, "variable of the path", name, known)]
    except ValueError as reason:
        raise DescriptionError(str(reason)) from None
