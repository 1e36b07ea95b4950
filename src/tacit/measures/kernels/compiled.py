"""JAX functions compiled once: later calls with the same function and shapes find what is there.

Functions are known by identity and held weakly, so that all that was compiled goes with them. As
with jax.jit, arrays and lists that a function reads besides its arguments count as constants; a
global, a variable of an outer function or an attribute of its object that has got another value
is noticed, and the function is compiled anew.
"""

from __future__ import annotations

import dis
import functools
import math
import types
import weakref
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from tacit.lazy import jax
from tacit.measures.kernels.factors import factors

SHAPES = 16  # kept of one function; the oldest go first

Function = Callable[[Any, Any], Any]


class CompiledFunction:
    """f(params, x) of the arrays among the leaves of `params`, and its gradients, when compiled.

    `fixed` are the leaves, with None in the `places` of the arrays; those in `learned` are
    parameters. `asked` is the index of an output, or anything else for all of them.
    """

    def __init__(self, function: Function, tree: Any, fixed: list[Any], places: list[int]):
        method = isinstance(function, types.MethodType)
        self.function = weakref.WeakMethod(function) if method else weakref.ref(function)
        self.tree, self.fixed, self.places = tree, fixed, places
        self.blocks: dict[int, Any] = {}
        self.rows: set[int] = set()  # numbers of rows for which the outputs have the right shape
        self.run = jax.jit(self.outputs)
        self.pair = jax.jit(self._pair)

    def differentiate(
        self, arrays: list[Any], learned: list[int], sample: Any, asked: Any, factored: bool
    ) -> None:
        """Traces the gradients of one sample; notes their bytes and the uses of a layer."""

        def one(arrays: list[Any], x: Any) -> Any:
            found = self.outputs(arrays, x[None]).reshape(-1)
            return found[asked : asked + 1] if isinstance(asked, int) else found

        at = [self.places.index(place) for place in learned]
        self.sample, self.gradients = sample, factors(one, arrays, at, sample, factored)
        alone = jax.ShapeDtypeStruct((1, *sample.shape), sample.dtype)
        found = jax.eval_shape(self.gradients, arrays, alone)
        parts = jax.tree.leaves(found)
        self.held = sum(math.prod(a.shape) * a.dtype.itemsize for a in parts)
        self.times = max((h.shape[1] for h, _ in found.layers), default=1)
        self.count = found.rows[0].shape[1] if found.rows else found.layers[0][1].shape[2]

    def block(self, arrays: list[Any], size: int) -> Any:
        """The compiled gradients of `size` samples."""
        if size not in self.blocks:
            many = jax.ShapeDtypeStruct((size, *self.sample.shape), self.sample.dtype)
            self.blocks[size] = jax.jit(self.gradients).lower(arrays, many).compile()
        return self.blocks[size]

    def outputs(self, arrays: list[Any], x: Any) -> Any:
        function = self.function()
        assert function is not None, "whoever calls holds the function"
        leaves = list(self.fixed)
        for place, array in zip(self.places, arrays, strict=True):
            leaves[place] = array
        return function(jax.tree.unflatten(self.tree, leaves), x)

    def _pair(self, arrays: list[Any], x: Any) -> Any:
        """The outputs of the first row in company and alone."""
        return self.outputs(arrays, x)[0], self.outputs(arrays, x[:1]).reshape(-1)


class Kept:
    """What was compiled of one function, with what it read besides its arguments."""

    def __init__(self, owner: Any):
        self.owner = weakref.ref(owner, functools.partial(_forget, id(owner)))
        self.read: list[Any] = []
        self.shapes: dict[Hashable, CompiledFunction] = {}


_kept: dict[int, Kept] = {}


def compiled(
    function: Function, shapes: Hashable, make: Callable[[], CompiledFunction]
) -> CompiledFunction:
    """What was compiled of `function` for these `shapes`, or else what `make` gives."""
    owner = function.__self__ if isinstance(function, types.MethodType) else function
    key = (getattr(function, "__func__", None), shapes)
    try:
        hash(key)
        kept = _kept.setdefault(id(owner), Kept(owner))
    except TypeError:  # it cannot be held weakly, or leaves of its parameters have no hash
        return make()
    read = list(_read(function))
    if not _same(kept.read, read):
        kept.shapes.clear()
        kept.read = [_held(value) for value in read]
    if key not in kept.shapes:
        kept.shapes[key] = make()
        if len(kept.shapes) > SHAPES:
            del kept.shapes[next(iter(kept.shapes))]
    return kept.shapes[key]


def _forget(owner: int, _: Any) -> None:
    _kept.pop(owner, None)


def _read(function: Any) -> Iterator[Any]:
    """The values that a function finds outside: attributes of its object, globals, closures.

    Python functions of its own package among them are looked into as well.
    """
    if isinstance(function, functools.partial):
        yield from _read(function.func)
    if isinstance(function.__call__, types.MethodType):  # an object; a function has a built-in one
        function = function.__call__
    if isinstance(function, types.MethodType):
        stored = _names(function.__func__.__code__)[1] if _package(function.__func__) else ()
        attributes = getattr(function.__self__, "__dict__", {})
        yield from (value for name, value in attributes.items() if name not in stored)
        function = function.__func__
    package = _package(function)
    waiting, seen = [function], {id(function)}
    while waiting:
        for value in _outside(waiting.pop()):
            yield value
            if id(value) not in seen and _package(value) == package is not None:
                seen.add(id(value))
                waiting.append(value)


def _package(value: Any) -> str | None:
    """The package of a function; one that `exec` made may have none."""
    module = value.__module__ if isinstance(value, types.FunctionType) else None
    return module.split(".")[0] if module else None


def _outside(function: Any) -> Iterator[Any]:
    if not isinstance(function, types.FunctionType):
        return
    read, stored = _names(function.__code__)
    spaces = function.__globals__
    yield from (spaces[name] for name in read if name in spaces)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        if name not in stored:
            try:
                yield cell.cell_contents
            except ValueError:  # not assigned yet
                yield None
    yield from function.__defaults__ or ()


@functools.lru_cache(maxsize=1024)
def _names(code: types.CodeType) -> tuple[tuple[str, ...], frozenset[str]]:
    """The global names that a function and those inside it read; the outer names and attributes
    that they set.
    """
    inner = [_names(part) for part in code.co_consts if isinstance(part, types.CodeType)]
    writes = {"STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR"}
    stored = {i.argval for i in dis.get_instructions(code) if i.opname in writes}
    stored = stored.union(*(part[1] for part in inner))
    read = {*code.co_names, *(name for part in inner for name in part[0])} - stored
    return tuple(sorted(read)), frozenset(stored)


def _held(value: Any) -> Any:
    try:
        return weakref.ref(value)
    except TypeError:
        return value


def _same(before: list[Any], now: list[Any]) -> bool:
    return len(before) == len(now) and all(map(_unchanged, before, now))


def _unchanged(before: Any, now: Any) -> bool:
    if isinstance(before, weakref.ref):
        return before() is now
    if before is now:
        return True
    return type(before) is type(now) and isinstance(now, int | float | str) and before == now
