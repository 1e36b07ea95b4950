"""JAX functions that are compiled once: later calls with the same function and shapes reuse this.

Functions are compared by identity and referenced weakly, so that compiled code is freed with its
function. Every call traces the function on one row and compiles it again if its program changed.
"""

from __future__ import annotations

import functools
import math
import re
import types
import weakref
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from penchant.lazy import jax
from penchant.measures.kernels.factors import factors

SHAPES = 16  # the most compilations of one function; the oldest are dropped

Function = Callable[[Any, Any], Any]


class CompiledFunction:
    """Compiled f(params, x) and its gradients, as functions of the arrays among the leaves.

    `fixed` are the leaves of `params`, with None in the `places` of the `arrays`; `row` has the
    shape and dtype of one row of x.
    """

    def __init__(
        self,
        function: Function,
        tree: Any,
        fixed: list[Any],
        places: list[int],
        arrays: list[Any],
        row: Any,
    ):
        method = isinstance(function, types.MethodType)
        self.function = weakref.WeakMethod(function) if method else weakref.ref(function)
        self.tree, self.fixed, self.places = tree, fixed, places
        self.gradients: Any = None  # until `differentiate` traces them
        self.blocks: dict[int, Any] = {}
        self.rows: set[int] = set()  # numbers of rows for which the outputs have the right shape
        self.run = jax.jit(self.outputs)
        self.pair = jax.jit(self._pair)
        traced = jax.make_jaxpr(self.outputs)(arrays, row)
        self.program = re.sub(" at 0x[0-9a-f]+", "", str(traced.jaxpr))
        self.constants = traced.consts

    def computes(self, other: CompiledFunction) -> bool:
        """True if both are the same program with the same constants."""
        alike = self.program == other.program and len(self.constants) == len(other.constants)
        return alike and all(
            own is theirs or np.array_equal(own, theirs)
            for own, theirs in zip(self.constants, other.constants, strict=True)
        )

    def differentiate(
        self, arrays: list[Any], learned: list[int], sample: Any, selected: Any, factored: bool
    ) -> None:
        """Trace the gradients of one sample in the arrays at the places `learned`.

        This sets their bytes and the number of uses of a layer. `selected` is the index of one
        output; any other value selects all.
        """

        def sample_outputs(arrays: list[Any], x: Any) -> Any:
            outputs = self.outputs(arrays, x[None]).reshape(-1)
            return outputs[selected : selected + 1] if isinstance(selected, int) else outputs

        at = [self.places.index(place) for place in learned]
        self.sample, self.gradients = sample, factors(sample_outputs, arrays, at, sample, factored)
        alone = jax.ShapeDtypeStruct((1, *sample.shape), sample.dtype)
        shapes = jax.eval_shape(self.gradients, arrays, alone)
        parts = jax.tree.leaves(shapes)
        self.held = sum(math.prod(a.shape) * a.dtype.itemsize for a in parts)
        self.times = max((h.shape[1] for h, _ in shapes.layers.values()), default=1)
        counts = [row.shape[1] for row in shapes.rows.values()]
        counts += [slopes.shape[2] for _, slopes in shapes.layers.values()]
        self.count = counts[0]

    def block(self, arrays: list[Any], size: int) -> Any:
        """The compiled gradients of `size` samples."""
        if size not in self.blocks:
            many = jax.ShapeDtypeStruct((size, *self.sample.shape), self.sample.dtype)
            self.blocks[size] = jax.jit(self.gradients).lower(arrays, many).compile()
        return self.blocks[size]

    def outputs(self, arrays: list[Any], x: Any) -> Any:
        function = self.function()
        assert function is not None, "the caller holds a reference to the function"
        leaves = list(self.fixed)
        for place, array in zip(self.places, arrays, strict=True):
            leaves[place] = array
        return function(jax.tree.unflatten(self.tree, leaves), x)

    def _pair(self, arrays: list[Any], x: Any) -> Any:
        """The outputs of the first row, computed together with the others and alone."""
        return self.outputs(arrays, x)[0], self.outputs(arrays, x[:1]).reshape(-1)


class Compilations:
    """The compilations of one function, by shapes."""

    def __init__(self, owner: Any):
        self.owner = weakref.ref(owner, functools.partial(_forget, id(owner)))
        self.shapes: dict[Hashable, CompiledFunction] = {}


_compilations: dict[int, Compilations] = {}


def compiled(function: Function, shapes: Hashable, fresh: CompiledFunction) -> CompiledFunction:
    """The stored compilation of `function` for `shapes`, or `fresh` if its program differs."""
    owner = function.__self__ if isinstance(function, types.MethodType) else function
    key = (getattr(function, "__func__", None), shapes)
    try:
        hash(key)
        known = _compilations.setdefault(id(owner), Compilations(owner)).shapes
    except TypeError:  # it has no weak reference, or leaves of its parameters have no hash
        return fresh
    if key not in known or not known[key].computes(fresh):
        known[key] = fresh
        if len(known) > SHAPES:
            del known[next(iter(known))]
    return known[key]


def _forget(owner: int, _: Any) -> None:
    _compilations.pop(owner, None)
