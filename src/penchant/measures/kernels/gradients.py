"""Gradients of any JAX function with a pytree of parameters, compiled for blocks of samples."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from penchant.arguments import Array, one_of
from penchant.door import Invalid
from penchant.lazy import jax, jnp
from penchant.measures.kernels.blocks import LARGEST, Gradients
from penchant.measures.kernels.compiled import CompiledFunction, compiled
from penchant.measures.kernels.factors import Factors
from penchant.measures.kernels.layers import readable
from penchant.precision import double_precision

PRECISIONS = ("double", "single")
ALONE = 1e-3  # the largest relative difference between outputs of a row alone and among others


def nudge(shape: tuple[int, ...]) -> Array:
    """Different factors near 1; a symmetric start multiplied by them is not symmetric."""
    return 1 + 0.01 * np.sin(1 + np.arange(math.prod(shape))).reshape(shape)


class FunctionGradients(Gradients):
    """Gradients of f(params, x) in all floating-point arrays among the leaves of `params`.

    `outputs` is None for a function with one output, the index of one of several, or "mean" or
    "full" for all; with `factored=False` every gradient is whole.
    """

    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        params: Any,
        x: Any,
        *,
        outputs: str | int | None = None,
        precision: str | None = None,
        factored: bool = True,
    ):
        self.function, self.selected = function, outputs
        self.model = function
        leaves, tree = jax.tree.flatten(params)
        self.tree: Any = tree
        self.learned = [i for i, leaf in enumerate(leaves) if is_learned(leaf)]
        if not self.learned:
            raise Invalid("params hold no floating-point array to differentiate in")
        paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(params)[0]]
        places = [i for i, leaf in enumerate(leaves) if _is_array(leaf)]
        self.names = {places.index(i): readable(paths[i]) for i in self.learned}
        self.double = _is_double([leaves[i] for i in self.learned], precision)
        self.factored = factored
        self.leaves, self.shapes = leaves, [np.shape(leaves[i]) for i in places]
        self.move(params)
        with self._in_precision():
            self.compiled = self._compiled(x)
            self._check_rows(x)
            self._differentiate(x)

    def move(self, params: Any) -> None:
        """Set the parameters at which gradients are computed from now on."""
        leaves, tree = jax.tree.flatten(params)
        if tree != self.tree:
            raise Invalid(f"params have another structure than before: {tree}")
        old = zip(self.leaves, leaves, strict=True)
        if any(a is not b and a != b for a, b in old if not _is_array(b)):
            raise Invalid("leaves of params that are not arrays have changed")
        self.leaves = leaves
        self.places = [i for i, leaf in enumerate(leaves) if _is_array(leaf)]
        self.arrays = [self._cast(i, leaves[i]) for i in self.places]
        shapes = [array.shape for array in self.arrays]
        if self.shapes != shapes:
            raise Invalid(f"params have other shapes than before: {shapes}")
        self.fixed = sum(array.nbytes for array in self.arrays)

    def work(self, size: int) -> int:
        with self._in_precision():
            memory = self.compiled.block(self.arrays, size).memory_analysis()
        # some backends return None; XLA's rearranging copies are at most as large as the result
        return size * self.held if memory is None else int(memory.temp_size_in_bytes)

    def block(self, x: Any, size: int) -> Factors:
        short = size - len(x)
        padded = np.concatenate([x, np.repeat(x[-1:], short, axis=0)]) if short else x
        with self._in_precision():
            factors = self.compiled.block(self.arrays, size)(self.arrays, self._inputs(padded))
            return jax.tree.map(lambda array: np.asarray(array)[: len(x)], factors)

    def values(self, x: Any) -> Array:
        parts = []
        with self._in_precision():
            for at in range(0, len(x), LARGEST):
                part = self._inputs(x[at : at + LARGEST])
                outputs = np.asarray(self.compiled.run(self.arrays, part), dtype=np.float64)
                parts.append(outputs.reshape(len(part), -1))
        whole = np.concatenate(parts)
        return whole[:, [self.selected]] if isinstance(self.selected, int) else whole

    def _compiled(self, x: Any) -> CompiledFunction:
        """The compilation shared by all calls with these shapes and these constant leaves."""
        fixed = [None if i in self.places else leaf for i, leaf in enumerate(self.leaves)]
        kinds = tuple((array.shape, str(array.dtype)) for array in self.arrays)
        sample = (x.shape[1:], str(x.dtype))
        choice = (self.selected, self.factored, self.double)
        key = (self.tree, tuple(fixed), tuple(self.learned), kinds, sample, choice)
        row = jax.ShapeDtypeStruct((1, *x.shape[1:]), self._dtype_of(x))
        given = self.function, self.tree, fixed, self.places, self.arrays, row
        return compiled(self.function, key, CompiledFunction(*given))

    def _dtype_of(self, x: Any) -> Any:
        """The dtype of the inputs in JAX, which may not have double precision."""
        return jax.dtypes.canonicalize_dtype(self._inputs(x[:1]).dtype)

    def _differentiate(self, x: Any) -> None:
        """Trace the gradients of one sample, and set their outputs, bytes and uses of a layer."""
        known = self.compiled
        if known.gradients is None:
            sample = jax.ShapeDtypeStruct(x.shape[1:], self._dtype_of(x))
            known.differentiate(self.arrays, self.learned, sample, self.selected, self.factored)
        self.outputs, self.held, self.times = known.count, known.held, known.times

    def _check_rows(self, x: Any) -> None:
        """Raise an error unless each row has outputs that do not depend on the other rows."""
        if len(x) not in self.compiled.rows:
            many = jax.ShapeDtypeStruct(x.shape, self._dtype_of(x))
            outputs = jax.eval_shape(self.compiled.outputs, self.arrays, many)
            check_outputs(outputs, len(x), self.selected)
            self.compiled.rows.add(len(x))
        if len(x) < 2:
            return
        # at an unbiased start the outputs are zero, and rounding cannot be compared with zero
        moved = [self._nudged(*pair) for pair in zip(self.places, self.arrays, strict=True)]
        outputs = self.compiled.pair(moved, self._inputs(x[[0, -1]]))
        together, alone = (np.asarray(part, dtype=np.float64).reshape(-1) for part in outputs)
        apart = np.abs(together - alone).max()
        if np.isfinite(together).all() and not apart <= ALONE * np.abs(together).max():
            raise Invalid(
                f"the outputs of a row of x must not depend on the other rows (batch "
                f"normalization or dropout in training mode?), but they differ by {apart:.3g}"
            )

    def _nudged(self, place: int, array: Any) -> Any:
        return array * nudge(array.shape).astype(array.dtype) if place in self.learned else array

    def _cast(self, place: int, leaf: Any) -> Any:
        if place not in self.learned:
            return leaf if hasattr(leaf, "nbytes") else np.asarray(leaf)
        array = np.asarray(leaf, dtype=self._dtype)
        if not np.isfinite(array).all():
            raise Invalid(f"params must be finite in {self._dtype}")
        return array

    def _inputs(self, x: Any) -> Any:
        """Real inputs in the precision of the gradients; integers, such as tokens, unchanged."""
        return x.astype(self._dtype, copy=False) if x.dtype.kind == "f" else x

    @property
    def _dtype(self) -> str:
        return "float64" if self.double else "float32"

    @contextlib.contextmanager
    def _in_precision(self) -> Iterator[None]:
        """JAX in the chosen precision; a function that it cannot trace raises a ValueError."""
        with double_precision() if self.double else contextlib.nullcontext():
            try:
                yield
            except jax.errors.JAXTypeError as reason:
                first = str(reason).splitlines()[0]
                raise Invalid(f"f(params, x) must be written with jax.numpy: {first}") from None


def check_outputs(outputs: Any, rows: int, selected: str | int | None) -> None:
    """Raise an error unless `outputs` has one number per row, or several that are selected."""
    shape = getattr(outputs, "shape", None)
    if shape is None or not _floats(outputs.dtype):
        raise Invalid(f"f(params, x) must return real numbers per row of x, got {outputs}")
    if (
        len(shape) not in (1, 2)
        or shape[0] != rows
        or (selected is None and shape[1:] not in ((), (1,)))
    ):
        raise Invalid(
            f"f(params, x) must return one number per row of x, got shape {shape} for "
            f"{rows} rows; several outputs on a second axis need outputs='mean', 'full' or an index"
        )
    count = shape[1] if len(shape) == 2 else 1
    if isinstance(selected, int) and not 0 <= selected < count:
        raise Invalid(f"outputs must be below {count}, their number, got {selected}")


def _is_array(leaf: Any) -> bool:
    """True for numbers; a Python bool is an option, on which a function may branch."""
    return hasattr(leaf, "dtype") or (isinstance(leaf, float | int) and not isinstance(leaf, bool))


def _floats(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.floating))


def is_learned(leaf: Any) -> bool:
    if not _is_array(leaf):
        return False
    kind = leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
    if getattr(kind, "kind", "") == "c":
        raise Invalid(f"params must be real, got an array of {kind}")
    return _floats(kind)


def _is_double(learned: list[Any], precision: str | None) -> bool:
    """True if `precision` says so, or if a parameter is float64 (as a Python float is)."""
    if precision is not None:
        return one_of("precision", precision, PRECISIONS) == "double"
    return any(np.dtype(getattr(leaf, "dtype", float)) == np.float64 for leaf in learned)
