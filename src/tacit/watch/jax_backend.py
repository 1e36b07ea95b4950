"""A JAX function apply(params, x) under watch: every floating-point leaf of params is trained."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.measures.kernels.blocks import blocked_kernel
from tacit.measures.kernels.gradients import FunctionGradients
from tacit.measures.kernels.tangent import MEMORY, asked_for, samples
from tacit.precision import double_precision
from tacit.watch.backend import WHO


class JaxBackend:
    """`apply` at the parameters of each call; all is compiled once, at the first use.

    It computes in float64 if some parameter is float64 and in float32 otherwise; lower
    precisions are raised to float32. Leaves that are no floating-point arrays are constants.
    """

    out_axis = -1

    def __init__(self, apply: Callable[[Any, Any], Any], params: Any, x: Any, outputs: str | int):
        import jax

        asked = asked_for(WHO, outputs)
        self.x = samples(WHO, "probe_inputs", _raised(x), apply)
        _require_rows(apply, params, self.x)
        self.gradients = FunctionGradients(WHO, apply, params, self.x, outputs=asked)
        self.tree: Any = jax.tree.structure(params)
        self.names = self._names(params)
        self.notes: tuple[str, ...] = ()
        self.apply = apply
        self.start = [array.copy() for array in self._trained(params)]
        self.frozen = list(self.gradients.leaves)
        self._values, self._slope = jax.jit(self._run), jax.jit(self._tangent)

    def check(self, params: Any) -> None:
        import jax

        if params is None:
            raise ValueError(
                f"{WHO}: the parameters are missing at this call; pass them after the step, "
                "watch(step, params, ...)"
            )
        tree: Any = jax.tree.structure(params)
        if tree != self.tree:
            raise ValueError(
                f"{WHO}: the parameters have another structure than at the start ({tree} instead "
                f"of {self.tree}); start a new watch for a changed model"
            )
        leaves = jax.tree.leaves(params)
        for name, place, before in zip(self.names, self.gradients.learned, self.start, strict=True):
            _require_alike(name, leaves[place], before)

    def arrays(self, params: Any) -> dict[str, Any]:
        return dict(zip(self.names, self._trained(params), strict=True))

    def outputs(self, params: Any) -> Array:
        with self._precision():
            found = np.asarray(self._values(self._trained(params)), dtype=np.float64)
        return found.reshape(len(self.x), -1)

    def kernel(self, params: Any) -> Array:
        self.gradients.move(params)
        return blocked_kernel(WHO, self.gradients, self.x, None, False, MEMORY)

    def linearized(self, params: Any) -> Array:
        change = [now - old for now, old in zip(self._trained(params), self.start, strict=True)]
        with self._precision():
            f0, slope = self._slope(self.start, change)
            found = np.asarray(f0, dtype=np.float64) + np.asarray(slope, dtype=np.float64)
        return found.reshape(len(self.x), -1)

    def _trained(self, params: Any) -> list[Any]:
        import jax

        leaves = jax.tree.leaves(params)
        return [np.asarray(leaves[i], dtype=self._dtype) for i in self.gradients.learned]

    def _run(self, trained: list[Any]) -> Any:
        import jax

        leaves = list(self.frozen)
        for place, array in zip(self.gradients.learned, trained, strict=True):
            leaves[place] = array
        x = self.x if self.x.dtype.kind != "f" else self.x.astype(self._dtype)
        return self.apply(jax.tree.unflatten(self.tree, leaves), x)

    def _tangent(self, start: list[Any], change: list[Any]) -> Any:
        import jax

        return jax.jvp(self._run, (start,), (change,))

    def _names(self, params: Any) -> tuple[str, ...]:
        import jax

        paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(params)[0]]
        return tuple(_readable(jax.tree_util.keystr(paths[i])) for i in self.gradients.learned)

    @property
    def _dtype(self) -> Any:
        return np.float64 if self.gradients.double else np.float32

    def _precision(self) -> contextlib.AbstractContextManager[Any]:
        return double_precision() if self.gradients.double else contextlib.nullcontext()


def _require_alike(name: str, now: Any, before: Any) -> None:
    """Complains unless a parameter has numbers, and as many as at the start."""
    import jax

    if isinstance(now, jax.core.Tracer):
        raise ValueError(
            f"{WHO}: parameter {name} has no numbers at this call, which was traced (inside "
            "jax.jit, grad or scan); call the watch in the Python loop around it"
        )
    if np.shape(now) != before.shape:
        raise ValueError(
            f"{WHO}: parameter {name} has shape {np.shape(now)} instead of {before.shape} as at "
            "the start; start a new watch for a changed model"
        )
    kind = np.dtype(getattr(now, "dtype", float))
    if kind.kind in "iub":
        raise ValueError(f"{WHO}: parameter {name} has dtype {kind}, and was a real at the start")


def _require_rows(apply: Callable[[Any, Any], Any], params: Any, x: Any) -> None:
    """Complains unless the function runs on the inputs and returns numbers in one row of each."""
    import jax

    leaves, tree = jax.tree.flatten(params)
    arrays = {place: leaf for place, leaf in enumerate(leaves) if hasattr(leaf, "dtype")}

    def run(arrays: dict[int, Any], x: Any) -> Any:
        every = [arrays.get(place, leaf) for place, leaf in enumerate(leaves)]
        return apply(jax.tree.unflatten(tree, every), x)

    try:
        found = jax.eval_shape(run, arrays, x)
    except Exception as reason:
        first = (str(reason) or type(reason).__name__).splitlines()[0]
        raise ValueError(
            f"{WHO}: the model does not run as apply(params, probe_inputs) "
            f"({type(reason).__name__}: {first}); give a batch as it gets it in training"
        ) from None
    shape = getattr(found, "shape", None)
    if shape is None or len(shape) not in (1, 2) or shape[0] != len(x):
        seen = type(found).__name__ if shape is None else f"shape {shape}"
        raise ValueError(
            f"{WHO}: the model must return one row of numbers per probe input, got {seen} for "
            f"{len(x)} inputs; wrap it in a function that picks what to look at"
        )


def _raised(x: Any) -> Any:
    """Inputs of less than single precision, which NumPy does not know, as float32."""
    low = str(getattr(x, "dtype", "")) in ("bfloat16", "float16")
    return np.asarray(x).astype(np.float32) if low else x


def _readable(path: str) -> str:
    """['layer']['w'][0] as layer.w.0."""
    bare = path.replace("['", ".").replace("']", "").replace("[", ".").replace("]", "")
    return bare.strip(".") or "params"
