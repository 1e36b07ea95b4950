"""Models of JAX, Linen, NNX and Equinox as functions of their trained arrays.

    penchant.watch(apply, x, parameters=w)               and  watch(step, w, ...)
    penchant.watch(linen_module, x, parameters=variables)  and  watch(step, variables, ...)
    penchant.watch(nnx_module, x)                        and  watch(step, ...)
    penchant.watch(equinox_module, x)                    and  watch(step, module, ...)

Modules are looked at in prediction mode: without dropout, with running statistics. Several inputs
are passed as a tuple (by position) or a mapping (by name).
"""

from __future__ import annotations

import abc
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penchant.lazy import jax
from penchant.measures.kernels.inputs import several, spread
from penchant.measures.kernels.layers import readable
from penchant.watch.backends.backend import WHO
from penchant.watch.state import State

# arguments of Flax modules that switch between training and prediction, with the value to predict
PREDICTING = {
    "train": False,
    "training": False,
    "deterministic": True,
    "use_running_average": True,
}


class JaxModel(abc.ABC):
    """f(trained, x), which contains the state that no optimizer changes."""

    averages: tuple[str, ...] = ()  # names of running averages in the state

    @abc.abstractmethod
    def __call__(self, trained: Any, x: Any) -> Any:
        """The return value of the model."""

    @abc.abstractmethod
    def trained(self, given: Any) -> Any:
        """The tree of trained arrays among the arguments of a call."""

    def state(self) -> State:
        """The floating-point arrays of the state, by name."""
        return {}

    def hold(self, state: State) -> None:  # noqa: B027
        """Replace the arrays of the state."""

    def passed(self, state: State, given: Any, batch: Any) -> State:
        """The state after one pass over `batch` in training mode, from `state`."""
        raise ValueError(
            f"{WHO}: only modules of PyTorch and Flax keep running statistics that warm_batch= "
            "replaces; close over those of your function, and leave warm_batch= out"
        )


class ApplyFunction(JaxModel):
    """A function apply(params, x), whose floating-point leaves of params are all trained."""

    def __init__(self, apply: Callable[[Any, Any], Any]):
        self.apply = apply

    def __call__(self, trained: Any, x: Any) -> Any:
        return self.apply(trained, x)

    def trained(self, given: Any) -> Any:
        if given is None:
            raise ValueError(
                f"{WHO}: the parameters are missing at this call; pass them after the step, "
                "watch(step, params, ...)"
            )
        return given


class LinenModel(ApplyFunction):
    """A Linen module with its variables, of which the collection params is trained."""

    def __init__(self, module: Any, given: Any):
        self.module = module
        whole = isinstance(given, Mapping) and "params" in given
        self.rest = {k: v for k, v in given.items() if k != "params"} if whole else {}
        taken = inspect.signature(type(module).__call__).parameters
        self.modes = {name: value for name, value in PREDICTING.items() if name in taken}
        self.averages = tuple(self.state())

    def __call__(self, trained: Any, x: Any) -> Any:
        args, kwargs = _arguments(x)
        return self.module.apply({"params": trained, **self.rest}, *args, **self.modes | kwargs)

    def trained(self, given: Any) -> Any:
        """The params among variables, or params alone."""
        tree = super().trained(given)
        return tree["params"] if isinstance(tree, Mapping) and "params" in tree else tree

    def state(self) -> State:
        return named_floats(self.rest)

    def hold(self, state: State) -> None:
        self.rest = with_floats(self.rest, state)

    def passed(self, state: State, given: Any, batch: Any) -> State:
        args, kwargs = _arguments(batch)
        modes = {name: not value for name, value in self.modes.items()}
        variables = {"params": self.trained(given), **with_floats(self.rest, state)}
        keys = {"dropout": jax.random.key(0)}
        _, after = self.module.apply(
            variables, *args, **modes | kwargs, mutable=list(self.rest), rngs=keys
        )
        return named_floats({**self.rest, **after})


class NnxModel(JaxModel):
    """A live NNX module, whose nnx.Param are trained and whose other variables are state."""

    def __init__(self, module: Any):
        self.nnx, self.module = importlib.import_module("flax.nnx"), module
        self.graph, _, self.rest = self._split(training=False)
        self.averages = tuple(self.state())

    def __call__(self, trained: Any, x: Any) -> Any:
        args, kwargs = _arguments(x)
        return self.nnx.merge(self.graph, trained, self.rest)(*args, **kwargs)

    def trained(self, given: Any) -> Any:
        if given is not None and given is not self.module:
            raise ValueError(
                f"{WHO}: the parameters are read from the NNX module itself; call watch(step, "
                "train_loss=...) without them"
            )
        return self.nnx.state(self.module, self.nnx.Param)

    def state(self) -> State:
        return named_floats(self.rest)

    def hold(self, state: State) -> None:
        self.rest = with_floats(self.rest, state)

    def passed(self, state: State, given: Any, batch: Any) -> State:
        graph, trained, rest = self._split(training=True)
        model = self.nnx.merge(graph, trained, with_floats(rest, state))
        args, kwargs = _arguments(batch)
        model(*args, **kwargs)
        return named_floats(self.nnx.split(model, self.nnx.Param, ...)[2])

    def _split(self, training: bool) -> Any:
        """(graph, trained, rest) of a copy in another mode; the module itself does not change."""
        copy = self.nnx.clone(self.module)
        copy.train() if training else copy.eval()
        return self.nnx.split(copy, self.nnx.Param, ...)


class EquinoxModel(JaxModel):
    """An Equinox module of one sample, whose floating-point arrays are all trained."""

    def __init__(self, module: Any):
        self.eqx = importlib.import_module("equinox")
        stateful = lambda leaf: isinstance(leaf, self.eqx.nn.StateIndex)  # noqa: E731
        if any(map(stateful, jax.tree.leaves(module, is_leaf=stateful))):
            raise ValueError(
                f"{WHO}: the Equinox module keeps state (eqx.nn.State); give a function of it that "
                "closes over that state: penchant.watch(lambda model, x: ..., x, parameters=model)"
            )
        quiet = self.eqx.nn.inference_mode(module)
        _, self.rest = self.eqx.partition(quiet, self.eqx.is_inexact_array)

    def __call__(self, trained: Any, x: Any) -> Any:
        args, kwargs = _arguments(x)
        return jax.vmap(self.eqx.combine(trained, self.rest))(*args, **kwargs)

    def trained(self, given: Any) -> Any:
        if given is None:
            raise ValueError(
                f"{WHO}: the module is missing at this call; pass it after the step, "
                "watch(step, module, ...)"
            )
        return self.eqx.filter(given, self.eqx.is_inexact_array)


def jax_model(model: Any, parameters: Any) -> tuple[JaxModel, Any]:
    """A model of a JAX library, and its parameters at the start."""
    if _is(model, "equinox", "Module"):
        return EquinoxModel(model), model if parameters is None else parameters
    if _is(model, "flax.nnx", "Module"):
        return NnxModel(model), parameters
    owner = getattr(model, "__self__", None)
    linen = owner if getattr(model, "__name__", "") == "apply" else model
    if _is(linen, "flax.linen", "Module"):
        if parameters is None:
            raise ValueError(
                f"{WHO}: a Linen module needs its variables: penchant.watch(module, x, "
                "parameters=variables), and then watch(step, variables, ...) at every call"
            )
        return LinenModel(linen, parameters), parameters
    if not callable(model):
        raise ValueError(
            f"{WHO}: model must be a torch.nn.Module (which needs torch: pip install "
            f"'penchant[torch]'), a module of Flax or Equinox, or a JAX function apply(parameters, "
            f"x), got {type(model).__name__}"
        )
    if parameters is None:
        raise ValueError(
            f"{WHO}: a JAX function needs its parameters: penchant.watch(apply, x, parameters=w), "
            "and then watch(step, parameters, ...) at every call"
        )
    return ApplyFunction(model), parameters


def named_floats(tree: Any) -> State:
    """The floating-point arrays of a tree by readable names."""
    pairs = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {readable(path): np.asarray(leaf) for path, leaf in pairs if _real(leaf)}


def with_floats(tree: Any, arrays: State) -> Any:
    """The tree with other floating-point arrays."""
    pairs, structure = jax.tree_util.tree_flatten_with_path(tree)
    leaves = [
        jax.numpy.asarray(arrays[readable(path)], leaf.dtype) if _real(leaf) else leaf
        for path, leaf in pairs
    ]
    return jax.tree.unflatten(structure, leaves)


def _arguments(x: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return spread(x) if several(x) else ((x,), {})


def _real(leaf: Any) -> bool:
    return bool(jax.numpy.issubdtype(getattr(leaf, "dtype", np.int64), jax.numpy.floating))


def _is(model: Any, library: str, name: str) -> bool:
    """True if the library is imported and the model is an instance of this class."""
    kind = getattr(sys.modules.get(library), name, None)
    return kind is not None and isinstance(model, kind)
