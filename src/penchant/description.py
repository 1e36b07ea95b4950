"""One description of an object: as the text of a call, as plain JSON values, as a table of TOML.

How it works: an object is taken apart into the public name that makes it and the arguments of that
call, either those of its class, read from the attributes that hold them, or its `recipe`, which a
function such as `sparse_regression` leaves in what it returns. `call` writes them as text, without
what is a default; that is the `repr`. `describe` writes them as plain values,

    {"is": "DiagonalNet", "depth": 2, "alpha": 0.01, "signed": true}

with the defaults, which may change; that is what a saved path holds. `build` makes the object of
such values, wherever they come from: a file may be anyone's, so it calls public names that compute,
and imports and runs nothing else. Four keys have a meaning of their own:

    is      the public name that is called with the other keys as its arguments
    times   a number that the regularizer is multiplied by: {"is": "L1", "times": 0.1} is 0.1 * L1()
    part    what is used of the result: {"is": "circle_teacher", "seed": 3, "part": "training"}
    array   numbers in another type than float64 and int64, or the digest of a large array

A function or an object of the user is known by words only, {"words": "cube()"}. They serve to
compare two runs; `build` says in one sentence that it cannot make the object again.
"""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import math
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, ParamSpec, TypeVar

import numpy as np

from penchant.arguments import one_of, real
from penchant.door import Invalid, door, door_as
from penchant.namespaces import public, public_names
from penchant.words import digest_of, in_words, is_optimizer

IS, TIMES, PART, ARRAY, WORDS = "is", "times", "part", "array", "words"
LONGEST = 120  # characters of a list, a dict or a text that a call shows in full
FEW = 8  # numbers of an array that a call shows in full
INLINE = 64  # numbers of an array that are listed where larger arrays are kept apart
LONG = 2000  # characters of words that are kept in full
DTYPES = [
    "bool",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
ROOMS = ("regularizers", "problems", "solvers", "models", "training", "measures", "forecasts")
REFUSED = ("import_images", "train")  # they read files or run a whole study
LISTED = "penchant.namespaces.public_names() holds them"
#: classes without a public name that public objects are made of
INNER = {
    "ImageFunction": "penchant.models.image_layers",
    "MajorityCube": "penchant.problems.population",
    "PenaltySum": "penchant.regularizers.penalty",
    "TokenPairs": "penchant.problems.arithmetic",
    "WideMargin": "penchant.problems.population",
}

Arrays = MutableMapping[str, Any]
P = ParamSpec("P")
T = TypeVar("T")


# --- taking apart ---------------------------------------------------------------------------


def with_recipe(function: Callable[P, T]) -> Callable[P, T]:
    """`function`, with its call as the `recipe` of what it returns.

    There is none if an argument is a function of the user or a large array, if `function` is not
    public, and in a changed copy of the result, by dataclasses.replace. Problems inside the result
    that its class lists in `recipe_parts` have one with the key `part`.
    """

    signature, inner = inspect.signature(function), inspect.unwrap(function)

    @functools.wraps(function)
    def make(*given: P.args, **named: P.kwargs) -> T:
        thing = function(*given, **named)
        name = function.__name__
        if name not in public_names() or inspect.unwrap(public(name)) is not inner:
            return thing
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        large: dict[str, Any] = {}
        arguments = {name: describe(value, large) for name, value in bound.arguments.items()}
        known = {name: value for name, value in arguments.items() if value is not None}
        if not large and not any(_in_words(value) for value in known.values()):
            recipe = {IS: function.__name__, **known}
            object.__setattr__(thing, "recipe", recipe)
            for name in getattr(thing, "recipe_parts", ()):
                object.__setattr__(getattr(thing, name), "recipe", {**recipe, PART: name})
        return thing

    return make


def _in_words(description: Any) -> bool:
    return isinstance(description, Mapping) and WORDS in description


@functools.cache
def _parameters(maker: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(maker).parameters


def _arguments(thing: Any) -> dict[str, Any]:
    """The arguments of the constructor, from the attributes that hold them."""
    stored_as, implied = getattr(thing, "stored_as", {}), getattr(thing, "implied", {})
    kind: Any = type(thing)
    names = _parameters(kind)
    given = {name: getattr(thing, stored_as.get(name, name), None) for name in names}
    if given.get("log_alpha") is not None and "alpha" in given:
        _keep_one_scale(given)
    followed = {name for by, those in implied.items() if given[by] is not None for name in those}
    return {
        name: value
        for name, value in given.items()
        if name not in followed and not inspect.ismethod(value)
    }


def _keep_one_scale(given: dict[str, Any]) -> None:
    """Leaves alpha where it gives log_alpha to the last bit, else log_alpha."""
    log_alpha, numbers = given["log_alpha"], [given["alpha"]]
    if given["alpha"] is None:
        with np.errstate(over="ignore", under="ignore"):
            alpha = float(np.exp(log_alpha))
        numbers = [float(f"{alpha:.12g}"), alpha]
    exact = [n for n in numbers if 0 < n < math.inf and math.log(n) == log_alpha]
    given["alpha"], given["log_alpha"] = (exact[0], None) if exact else (None, log_alpha)


# --- the call -------------------------------------------------------------------------------


@door_as("repr")
def call(thing: Any) -> str:
    """`thing` as the call of its class, or of the function that made it, without defaults.

    What was made from plain values, small arrays and such objects is made again by `eval`; a large
    array, a dataset and a function without a name are abbreviated in angle brackets.
    """
    recipe = getattr(thing, "recipe", None)
    if recipe is None:
        given, part = _arguments(thing), None
        maker: Callable[..., Any] = type(thing)
    else:
        given = {name: value for name, value in recipe.items() if name not in (IS, PART)}
        maker, part = named("recipe", recipe[IS]), recipe.get(PART)
    parameters = _parameters(maker)
    written = ", ".join(
        f"{name}={shown(value)}"
        for name, value in given.items()
        if not _same(value, parameters[name].default)
    )
    name = getattr(maker, "called", None) or maker.__name__
    return f"{name}({written})" + (f".{part}" if part else "")


def _same(value: Any, default: Any) -> bool:
    """True if the value need not be written; an empty mapping is what a factory makes."""
    if type(default).__name__ == "_HAS_DEFAULT_FACTORY_CLASS":
        return not value
    if isinstance(value, list) and isinstance(default, tuple):  # of a recipe
        value = tuple(value)
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))


def shown(value: Any) -> str:
    """A value inside a call."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, enum.Enum):
        return str(value)
    if hasattr(value, "sizes") and hasattr(value, "data_vars"):  # an xarray.Dataset
        return f"<dataset of {', '.join(f'{n} {size}' for n, size in value.sizes.items())}>"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return _shown_array(np.asarray(value))
    if isinstance(value, str):
        return repr(value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…")
    if isinstance(value, Mapping | list | tuple):
        return _collection(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return "<lambda>" if value.__name__ == "<lambda>" else str(value.__name__)
    text = repr(value)
    return f"<{type(value).__name__}>" if " at 0x" in text else text


def _shown_array(array: np.ndarray) -> str:
    if array.size <= FEW and np.isfinite(array).all():
        return repr(array.tolist())
    return f"<array of {' x '.join(map(str, array.shape))}>"


def _collection(value: Any) -> str:
    if isinstance(value, Mapping):
        text = f"{{{', '.join(f'{shown(k)}: {shown(v)}' for k, v in value.items())}}}"
    else:
        inside = ", ".join(map(shown, value))
        comma = "," if len(value) == 1 else ""
        text = f"[{inside}]" if isinstance(value, list) else f"({inside}{comma})"
    return text if len(text) <= LONGEST else f"<{type(value).__name__} of {len(value)}>"


# --- plain values ---------------------------------------------------------------------------


def describe(thing: Any, arrays: Arrays | None = None) -> Any:
    """`thing` as plain JSON values, of which `build` makes an equal one.

    Large arrays are put into `arrays` by their digests; without it they are listed.
    """
    if isinstance(thing, np.generic):
        thing = thing.item()
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, enum.Enum):
        return thing.value
    if hasattr(thing, "shape") and hasattr(thing, "dtype"):
        return _array(np.asarray(thing), arrays)
    if isinstance(thing, Mapping):
        return {str(name): describe(value, arrays) for name, value in thing.items()}
    if _has_call(thing):
        return _described(thing, arrays)
    if isinstance(thing, list | tuple | range) and not is_optimizer(thing):
        return [describe(value, arrays) for value in thing]
    text = in_words(thing)
    return {WORDS: text if len(text) <= LONG else f"{text[:LONG]} {digest_of(text)}"}


def _has_call(thing: Any) -> bool:
    """Whether the object is one of penchant's, or of a class of the user made from one of them."""
    mro = () if isinstance(thing, type) else type(thing).__mro__
    return any(_is_own(kind) for kind in mro)


def _is_own(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "penchant"


def _described(thing: Any, arrays: Arrays | None) -> dict[str, Any]:
    if getattr(thing, "recipe", None) is not None:
        return dict(thing.recipe)
    kind = type(thing)
    name = getattr(thing, "called", None) or kind.__name__
    if not _is_own(kind):
        name = f"{kind.__module__}.{kind.__qualname__}"
    given = {key: describe(value, arrays) for key, value in _arguments(thing).items()}
    if name == "Penalty" and _takes_weight(given["regularizer"]):
        return {**given["regularizer"], TIMES: given["weight"]}
    return {IS: name, **{key: value for key, value in given.items() if value is not None}}


def _array(array: np.ndarray, arrays: Arrays | None) -> Any:
    if arrays is not None and array.size > INLINE:
        key = digest_of(array)
        arrays[key] = array
        return {ARRAY: key}
    if array.dtype in (np.float64, np.int64) and array.size:
        return array.tolist()
    return {ARRAY: array.tolist(), "dtype": array.dtype.name, "shape": list(array.shape)}


# --- building -------------------------------------------------------------------------------


@door
def build(description: Any, arrays: Mapping[str, Any] | None = None) -> Any:
    """The object that `describe` described; plain values as they are.

    Parameters
    ----------
    description
        Plain values, from a file or from a table of TOML.
    arrays
        The large arrays that the description names, by their digests.
    """
    return made_from(description, arrays)


def made_from(description: Any, arrays: Mapping[str, Any] | None = None) -> Any:
    """The same, for a caller that has a door of its own."""
    try:
        return _built(description, arrays or {}, "the description")
    except RecursionError:
        raise Invalid("the description is nested too deeply") from None


def _built(value: Any, arrays: Mapping[str, Any], where: str) -> Any:
    if isinstance(value, list):
        return [_built(inner, arrays, where) for inner in value]
    if not isinstance(value, Mapping):
        return value
    if WORDS in value:
        raise Invalid(
            f"{where} is known by words alone, {value[WORDS]!r:.200}: it is a function or an"
            " object of yours, which no description can make again; make it yourself"
        )
    if ARRAY in value:
        return _read_array(value, arrays, where)
    given = {
        str(key): _built(inner, arrays, f"{where}.{key}" if IS in value else where)
        for key, inner in value.items()
        if key != IS
    }
    return _called(value[IS], given, where) if IS in value else given


def _called(name: object, given: dict[str, Any], where: str) -> Any:
    maker = named(where, name)
    keys = arguments_in(maker, given)
    check_call(where, maker, keys)
    own = {key: value for key, value in given.items() if key not in keys}
    try:
        thing = maker(**{key: given[key] for key in keys})
    except ValueError:
        raise
    except (TypeError, AttributeError, LookupError, ArithmeticError) as reason:
        sentence = str(reason).strip().partition("\n")[0]
        raise Invalid(f"{name} of {where} cannot be made ({sentence:.200})") from None
    if PART in own:
        parts = getattr(thing, "recipe_parts", ())
        thing = getattr(thing, one_of(f"part of {where}", own[PART], parts))
    if TIMES not in own:
        return thing
    weight = real(f"{TIMES} of {where}", own[TIMES])
    if not hasattr(thing, "subgradient"):
        raise Invalid(f"{where} has the key `times`, but {name} is no regularizer")
    return weight * thing


def _read_array(value: Mapping[str, Any], arrays: Mapping[str, Any], where: str) -> np.ndarray:
    content = value[ARRAY]
    if isinstance(content, str):
        if content not in arrays:
            raise Invalid(f"the array {content!r:.40} of {where} is not in the file")
        return np.asarray(arrays[content])
    try:
        array = np.array(content, dtype=str(value["dtype"])).reshape(value["shape"])
    except (LookupError, TypeError, ValueError, OverflowError, MemoryError):
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        raise Invalid(f"{where} is no array of numbers, got {content!r:.80}")
    return array


def named(where: str, name: object) -> Callable[..., Any]:
    """The public object of penchant called `name`, if it only computes."""
    if not isinstance(name, str):
        raise Invalid(f"{where}.is must be a public name of penchant, got {name!r:.80}")
    if name in INNER:
        return _inner(name)
    if name not in public_names():
        one_of(f"name in {where}.is", name, public_names(), LISTED)
    target: Callable[..., Any] = public(name)
    if getattr(target, "__module__", ".").split(".")[1] not in ROOMS or name in REFUSED:
        raise Invalid(
            f"{where}.is names {name}; a table may name problems, models, methods, "
            "regularizers, measures and rules, nothing else"
        )
    return target


@functools.cache
def _inner(name: str) -> Callable[..., Any]:
    maker: Callable[..., Any] = getattr(importlib.import_module(INNER[name]), name)
    return maker


@door_as("describe")
def _takes_weight(description: Mapping[str, Any]) -> bool:
    """Whether `times` is free to be the weight of what is described; not for a class of the user,
    whose arguments are not known here.
    """
    if description[IS] not in public_names():  # a sum of penalties has no weight of its own
        return False
    maker = named("it", description[IS])
    return TIMES not in {*description, *_parameters(maker)}


def arguments_in(maker: Callable[..., Any], table: Mapping[str, Any]) -> list[str]:
    """The keys of a description that are arguments of `maker`, without those that say more."""
    more = {IS} | ({TIMES, PART} - _parameters(maker).keys())
    return [key for key in table if key not in more]


def check_call(
    where: str, maker: Callable[..., Any], keys: list[str], given: tuple[str, ...] = ()
) -> None:
    """Raise if `maker` does not take one of `keys`, or lacks an argument that it needs."""
    parameters = _parameters(maker)
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        for key in keys:
            one_of(f"key in {where}", key, parameters)
    for name, parameter in parameters.items():
        plain = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if plain and parameter.default is parameter.empty and name not in (*keys, *given):
            needs = f"which {getattr(maker, '__name__', repr(maker))} needs"
            raise Invalid(f"{where} lacks {name!r}, {needs}")
