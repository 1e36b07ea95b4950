"""A model of a JAX library under watch: compiled once, computed in its own precision."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np

from penchant.arguments import Array
from penchant.door import Nameless, door_as
from penchant.lazy import jax
from penchant.measures.kernels.blocks import grouped_kernels, output_kernels
from penchant.measures.kernels.gradients import FunctionGradients
from penchant.measures.kernels.inputs import Packed, digest, mapped, several
from penchant.measures.kernels.outputs import SAMPLES, Output, Projection, projection_error
from penchant.measures.kernels.tangent import MEMORY, checked_outputs, samples
from penchant.precision import double_precision
from penchant.watch.backends.backend import (
    WHO,
    ChangedModel,
    LookOptions,
    groups_note,
    layers_of,
    projection_note,
)
from penchant.watch.backends.jax_models import ApplyFunction, JaxModel
from penchant.watch.state import State, state_note, warmed


class HeldTree(NamedTuple):
    """Trained arrays that a watch kept, in the place of those of a call."""

    tree: Any


class JaxBackend:
    """A model at the parameters of each call, compiled once, at the first use.

    It computes in float64 if some parameter is float64 and in float32 otherwise; lower
    precisions are raised to float32. Leaves that are not floating-point arrays are constants.
    """

    out_axis = -1

    @door_as(WHO)
    def __init__(self, model: Any, given: Any, x: Any, how: LookOptions | None = None):
        self.how = how or LookOptions()
        self.model = model if isinstance(model, JaxModel) else ApplyFunction(model)
        self.output = self.how.reader()
        if self.how.batch_axis:
            x = mapped(x, lambda leaf: _turned(leaf, self.how.batch_axis, 0))
        params = self.model.trained(given)
        self.packed = Packed(self._outputs, x) if several(x) else None
        self.x = samples("probe_inputs", _raised(x), self.packed or model)
        self.digest = digest(x)
        if self.how.warm_batch is not None:
            self.model.hold(self._warmed(given))
        shape = _require_rows(self.apply, params, self.x, self.output)
        self.count = math.prod(shape)
        self.index = self.how.index(self.output, self.count)
        sums = self.how.sums(self.output, self.count)
        self.projected = sums is not None
        if sums is not None:
            self.output.projection = Projection(self.output.shape, sums, np.asarray)
        self._compile(params)
        self.tree: Any = jax.tree.structure(params)
        self.names = tuple(self.gradients.names.values())
        self.groups = layers_of(self.names, len(self.x))
        self.notes = self._notes()
        self.start = [array.copy() for array in self._trained(given)]

    def apply(self, trained: Any, x: Any) -> Any:
        """The outputs that are looked at, of rows of inputs or their numbers."""
        return self.output((self.packed or self._outputs)(trained, x))

    def _outputs(self, trained: Any, x: Any) -> Any:
        """The return value of the model for inputs whose samples are on the first axis."""
        axis = self.how.batch_axis
        return self.model(trained, mapped(x, lambda leaf: _turned(leaf, 0, axis)) if axis else x)

    @door_as(WHO)
    def _compile(self, params: Any) -> None:
        axis = self.how.batch_axis
        bare = (
            not axis
            and type(self.model) is ApplyFunction
            and self.packed is None
            and self.output.untouched
        )
        # a bare function reuses its earlier compilation
        function = cast(ApplyFunction, self.model).apply if bare else self.apply
        selected = checked_outputs("mean" if self.index is None else self.index)
        self.gradients = FunctionGradients(function, params, self.x, outputs=selected)
        self.frozen = list(self.gradients.leaves)
        # new functions, because compiled ones contain the state at the time of compilation
        self._values = jax.jit(lambda trained: self._run(trained))
        self._slope = jax.jit(lambda start, change: jax.jvp(self._run, (start,), (change,)))

    @contextlib.contextmanager
    def at(self, arrays: dict[str, Any]) -> Iterator[HeldTree]:
        leaves = list(self.frozen)
        for place, name in zip(self.gradients.learned, self.names, strict=True):
            leaves[place] = arrays[name]
        yield HeldTree(jax.tree.unflatten(self.tree, leaves))

    def _tree(self, given: Any) -> Any:
        """The tree of trained arrays in what a call gives."""
        return given.tree if isinstance(given, HeldTree) else self.model.trained(given)

    def state(self) -> dict[str, Any]:
        return dict(self.model.state())

    @door_as(WHO)
    def restore(self, start: dict[str, Any], state: dict[str, Any]) -> None:
        self.start = [np.asarray(start[name], self._dtype) for name in self.names]
        if state:
            self.model.hold(state)
            leaves = list(self.frozen)
            for place, array in zip(self.gradients.learned, self.start, strict=True):
                leaves[place] = array
            self._compile(jax.tree.unflatten(self.tree, leaves))

    @door_as(WHO)
    def check(self, given: Any) -> None:
        params = self._tree(given)
        tree: Any = jax.tree.structure(params)
        if tree != self.tree:
            raise ChangedModel(
                f"{WHO}: the parameters have another structure than at the start ({tree} instead "
                f"of {self.tree}); start a new watch for a changed model"
            )
        leaves = jax.tree.leaves(params)
        for name, place, before in zip(self.names, self.gradients.learned, self.start, strict=True):
            _require_alike(name, leaves[place], before)

    def arrays(self, params: Any) -> dict[str, Any]:
        return dict(zip(self.names, self._trained(params), strict=True))

    @door_as(WHO)
    def outputs(self, params: Any) -> Array:
        with self._precision():
            outputs = np.asarray(self._values(self._trained(params)), dtype=np.float64)
        return outputs.reshape(len(self.x), -1)

    @door_as(WHO)
    def kernels(self, params: Any) -> Array:
        self.gradients.move(self._tree(params))
        groups = dict(zip(self.gradients.names, self.groups, strict=True))
        return grouped_kernels(self.gradients, self.x, None, False, MEMORY, groups)

    @door_as(WHO)
    def linearized(self, params: Any) -> Array:
        change = [now - old for now, old in zip(self._trained(params), self.start, strict=True)]
        with self._precision():
            f0, slope = self._slope(self.start, change)
            outputs = np.asarray(f0, dtype=np.float64) + np.asarray(slope, dtype=np.float64)
        return outputs.reshape(len(self.x), -1)

    def _trained(self, given: Any) -> list[Any]:
        leaves = jax.tree.leaves(self._tree(given))
        return [np.asarray(leaves[i], dtype=self._dtype) for i in self.gradients.learned]

    def _run(self, trained: list[Any]) -> Any:
        leaves = list(self.frozen)
        for place, array in zip(self.gradients.learned, trained, strict=True):
            leaves[place] = array
        x = self.x if self.x.dtype.kind != "f" else self.x.astype(self._dtype)
        return self.apply(jax.tree.unflatten(self.tree, leaves), x)

    def _warmed(self, given: Any) -> State:
        batch, model = self.how.warm_batch, self.model
        return warmed(lambda state: model.passed(state, given, batch), model.state())

    @door_as(WHO)
    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self.model.averages:
            notes.append(state_note(list(self.model.averages), self.how.warm_batch is not None))
        if sums := self.how.sums(self.output, self.count):
            some = output_kernels(self.gradients, self.x[:SAMPLES], MEMORY)
            notes.append(projection_note(self.output.shape, sums, projection_error(some)))
        return (*notes, *groups_note(self.names, self.groups))

    @property
    def _dtype(self) -> Any:
        return np.float64 if self.gradients.double else np.float32

    def _precision(self) -> contextlib.AbstractContextManager[Any]:
        return double_precision() if self.gradients.double else contextlib.nullcontext()


def _require_alike(name: str, now: Any, before: Any) -> None:
    """Raise an error unless a parameter has numbers, and as many as at the start."""
    if isinstance(now, jax.core.Tracer):
        raise ValueError(
            f"{WHO}: parameter {name} has no numbers at this call, which was traced (inside "
            "jax.jit, grad or scan); call the watch in the Python loop around it"
        )
    if hasattr(now, "is_deleted") and now.is_deleted():
        raise ValueError(
            f"{WHO}: parameter {name} is gone (donated to a compiled step); call "
            "watch.look(parameters) with the latest ones"
        )
    if np.shape(now) != before.shape:
        raise ChangedModel(
            f"{WHO}: parameter {name} has shape {np.shape(now)} instead of {before.shape} as at "
            "the start; start a new watch for a changed model"
        )
    kind = np.dtype(getattr(now, "dtype", float))
    if kind.kind in "iub":
        raise ValueError(f"{WHO}: parameter {name} has dtype {kind}, and was real at the start")


def _require_rows(
    apply: Callable[[Any, Any], Any], params: Any, x: Any, output: Output
) -> tuple[int, ...]:
    """The shape of one row; the function must run on the inputs and return a row for each."""
    leaves, tree = jax.tree.flatten(params)
    arrays = {place: leaf for place, leaf in enumerate(leaves) if hasattr(leaf, "dtype")}

    def run(arrays: dict[int, Any], x: Any) -> Any:
        every = [arrays.get(place, leaf) for place, leaf in enumerate(leaves)]
        return apply(jax.tree.unflatten(tree, every), x)

    try:
        outputs = jax.eval_shape(run, arrays, x)
    except Nameless:
        raise
    except Exception as reason:
        if str(reason).startswith(f"{WHO}:"):
            raise
        first = (str(reason) or type(reason).__name__).splitlines()[0]
        raise ValueError(
            f"{WHO}: the model does not run as apply(params, probe_inputs) "
            f"({type(reason).__name__}: {first}); give a batch as it gets it in training"
        ) from None
    shape = getattr(outputs, "shape", None)
    if shape is None or len(shape) not in (1, 2) or shape[0] != len(x):
        seen = type(outputs).__name__ if shape is None else f"shape {(*shape[:1], *output.shape)}"
        raise ValueError(
            f"{WHO}: the model must return one row of numbers per probe input, got {seen} for "
            f"{len(x)} inputs; output= picks what to look at"
        )
    return tuple(shape[1:])


def _turned(leaf: Any, source: int, target: int) -> Any:
    """The leaf with an axis moved, if it has enough of them."""
    if len(getattr(leaf, "shape", ())) <= max(source, target):
        return leaf
    return jax.numpy.moveaxis(leaf, source, target)


def _raised(x: Any) -> Any:
    """Inputs below single precision, which NumPy does not support, as float32."""
    low = str(getattr(x, "dtype", "")) in ("bfloat16", "float16")
    return np.asarray(x).astype(np.float32) if low else x
