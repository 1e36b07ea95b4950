"""Any function written in JAX as a model: predictions, gradients and Jacobians in float64."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from penchant.arguments import Array, finite_array, real
from penchant.door import Invalid, door, door_as
from penchant.lazy import jax
from penchant.models.model import Model
from penchant.precision import double_precision
from penchant.records import Record, assign

WHO = "FunctionModel"

Start = Array | Callable[[int], Array]


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class FunctionModel(Record, Model):
    """f(parameters, X) -> one number per row of X, for any `function` that JAX can trace.

    Parameters
    ----------
    function
        The function f.
    start
        The parameters that training starts from: flat ones, a pytree of arrays such as a
        dictionary, which the function then gets, or a function of the number of features that
        returns flat ones.
    homogeneity
        The assumed degree of homogeneity; `penchant.measures.assumptions` measures it.
    name
        The name of the model in descriptions; by default that of the function.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> model = penchant.FunctionModel(lambda w, X: X @ w**3, np.ones(2), homogeneity=3)
    >>> model.predict(np.array([1.0, 2.0]), np.array([[1.0, 1.0]])).round(4)
    array([9.])
    """

    stored_as: ClassVar = {"start": "begin", "homogeneity": "degree"}

    function: Callable[[Any, Any], Any]
    begin: Start
    degree: float | None
    name: str
    tree: Any  # the start where it is a pytree

    @door
    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        start: Any,
        homogeneity: float | None = None,
        name: str | None = None,
    ) -> None:
        if not callable(function):
            raise Invalid(
                f"function must be a JAX function f(parameters, X), got {type(function).__name__}"
            )
        if homogeneity is not None:
            homogeneity = real("homogeneity", homogeneity)
            homogeneity = int(homogeneity) if homogeneity.is_integer() else homogeneity
        tree, begin = None, start
        if _is_tree(start):
            tree, begin = start, _raveled(start)
        elif not callable(start):
            begin = finite_array("start", start, ndim=1)
        called = name or str(getattr(function, "__name__", type(function).__name__))
        assign(self, function=function, begin=begin, degree=homogeneity, name=called, tree=tree)

    @property
    def homogeneity(self) -> int | None:
        return self.degree  # type: ignore[return-value]  # of a user's function it may be 1.5

    @door_as(WHO)
    def start(self, dimension: int) -> Array:
        if callable(self.begin):
            return finite_array(f"start({dimension})", self.begin(dimension), ndim=1)
        return self.begin.copy()

    def unflattened(self, parameters: Any) -> Any:
        """Flat parameters as the pytree that the function takes."""
        if self.tree is None:
            return parameters
        leaves, structure = jax.tree.flatten(self.tree)
        ends = np.cumsum([np.size(leaf) for leaf in leaves]).tolist()
        parts = [
            parameters[end - np.size(leaf) : end].reshape(np.shape(leaf))
            for leaf, end in zip(leaves, ends, strict=True)
        ]
        return jax.tree.unflatten(structure, parts)

    def flattened(self, parameters: Any) -> Array:
        """The inverse of `unflattened`."""
        return parameters if self.tree is None else _raveled(parameters)

    def predict(self, parameters: Array, X: Array) -> Array:
        if not (isinstance(parameters, np.ndarray) and isinstance(X, np.ndarray)):
            return self.function(self.unflattened(parameters), X)  # inside another trace
        return self._call("outputs", parameters, X)

    def pullback(self, parameters: Array, X: Array, residual: Array) -> Array:
        return self._call("pullback", parameters, X, residual)

    def jacobian(self, parameters: Array, X: Array) -> Array:
        return self._call("jacobian", parameters, X)

    def __getstate__(self) -> dict[str, Any]:
        """The fields and the recipe: compiled functions cannot be sent to another process."""
        names = [field.name for field in dataclasses.fields(self)]
        return {name: getattr(self, name) for name in (*names, "recipe")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _call(self, which: str, *arrays: Array) -> Array:
        with double_precision():
            try:
                return np.array(self._compiled[which](*arrays), dtype=np.float64)
            except jax.errors.TracerArrayConversionError:
                raise ValueError(
                    f"{WHO}: {self.name} must be written with jax.numpy, but it turns its "
                    "arguments into numpy arrays"
                ) from None

    @property
    def code(self) -> Any:
        """What compiled code of the model depends on: models with equal code differ in starts only.

        It is the function, or the model itself if the function has no hash or takes a pytree.
        """
        try:
            hash(self.function)
        except TypeError:
            return self
        return self.function if self.tree is None else self

    @functools.cached_property
    def _compiled(self) -> dict[str, Callable[..., Any]]:
        if self.code is self:
            return _compile(lambda w, X: self.function(self.unflattened(w), X), self.name)
        return _compile_once(self.function, self.name)


def _compile(function: Callable[[Any, Any], Any], name: str) -> dict[str, Callable[..., Any]]:
    def outputs(parameters: Any, X: Any) -> Any:
        """f, checked while it is traced: once per shape of its arguments."""
        predictions = function(parameters, X)
        if getattr(predictions, "shape", None) != (len(X),):
            seen = getattr(predictions, "shape", type(predictions).__name__)
            raise ValueError(
                f"{WHO}: {name}(parameters, X) must return one number per row of X, got "
                f"shape {seen} for {len(X)} rows"
            )
        return predictions

    def pullback(parameters: Any, X: Any, residual: Any) -> Any:
        return jax.vjp(lambda w: outputs(w, X), parameters)[1](residual)[0]

    return {
        "outputs": jax.jit(outputs),
        "jacobian": jax.jit(jax.jacrev(outputs)),
        "pullback": jax.jit(pullback),
    }


_compile_once = functools.lru_cache(maxsize=64)(_compile)  # for models that differ in starts only


def _is_tree(start: Any) -> bool:
    """True for a dictionary, and for a list or tuple that holds arrays."""
    if isinstance(start, tuple | list):
        return any(hasattr(entry, "shape") or _is_tree(entry) for entry in start)
    return isinstance(start, Mapping)


@door_as(WHO)
def _raveled(tree: Any) -> Array:
    """The leaves of a pytree one after another, as floating-point numbers."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    for leaf in leaves:
        if leaf.dtype.kind != "f":
            raise Invalid(
                f"the leaves of start must be arrays of floating-point numbers, got "
                f"{leaf.dtype}; keep values that are not trained inside the function"
            )
    flat = np.concatenate([leaf.ravel() for leaf in leaves]) if leaves else np.zeros(0)
    return finite_array("start", flat.astype(np.float64), ndim=1)
