"""An optimizer of optax as a step-by-step method.

How it works: optax writes an optimizer as two functions, `init` and `update`. The memory of the
method is what `init` makes, and a step adds what `update` returns to the parameters. Optimizers
that search along a line or need the loss are given `value`, `grad` and `value_fn` of the objective
on the samples of the step, penalty included. A FunctionModel is shown to optax as the tree of
arrays its user wrote, so that masks and labels by name work; other parameters are as all methods
see them.

An optax object does not know how it was called. What can be known of it are the functions it is
made of and the variables they enclose; `described` writes these down, which is what a saved path
tells about the optimizer, and what `resume` compares. It cannot tell two functions of a user's own
apart that have one name and enclose equal values.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from penchant.lazy import jax, jnp
from penchant.models.function import FunctionModel
from penchant.training.descent.clock import Clock
from penchant.training.descent.method import Oracle, Scheme, StepMethod

LONGEST = 120  # characters of a description that `repr` shows
EMPTY = types.CellType()  # of a variable that was never set
SHOWN = 8  # numbers of an array that are written out


def is_optimizer(method: object) -> bool:
    """Whether `method` is a pair of functions `init` and `update`, as optax makes them."""
    pair = getattr(method, "init", None), getattr(method, "update", None)
    return isinstance(method, tuple) and all(map(callable, pair))


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Optax(StepMethod):
    """Steps of an optax optimizer, which brings its own learning rate, schedule and decay.

    The training time counts its steps, since its learning rate is not known.

    Parameters
    ----------
    transformation
        An optax.GradientTransformation such as optax.adamw(1e-3).
    """

    transformation: Any

    @property
    def scheme(self) -> Scheme:
        clock = Clock(1.0)
        return Scheme(self._step, self._memory, clock, learning_rate=None, start=self._start)

    def __repr__(self) -> str:
        text = described(self.transformation)
        return f"Optax({text if len(text) <= LONGEST else text[:LONGEST] + '...'})"

    def describe(self) -> dict[str, Any]:
        return {"method": "Optax", "transformation": described(self.transformation)}

    def _start(self, task: Any) -> Any:
        """The start of the task, if one step from there can be traced."""

        def trial(data: Any, parameters: Any) -> Any:
            oracle = Oracle(task.objective, data, None, None)
            memory = self._memory(oracle, parameters)
            return self._step(oracle, parameters, memory, jnp.int32(0))

        try:
            jax.eval_shape(trial, task.data, task.start)
        except (TypeError, ValueError) as reason:
            why = str(reason).strip().splitlines()[0].rstrip(".")
            raise ValueError(
                f"Optax: {described(self.transformation):.80} cannot take a step on these "
                f"parameters with the arguments value, grad and value_fn, got: {why}"
            ) from reason
        return task.start

    def _memory(self, oracle: Oracle, parameters: Any) -> Any:
        return _plain(self.transformation.init(_tree(oracle, parameters)))

    def _step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        import optax

        tree = _tree(oracle, parameters)
        grad = _tree(oracle, oracle.gradient(parameters))
        like = jax.eval_shape(self.transformation.init, tree)
        more = {
            "value": oracle.total(parameters),
            "grad": grad,
            "value_fn": lambda point: oracle.total(_flat(oracle, point)),
        }
        optimizer = optax.with_extra_args_support(self.transformation)
        moves, state = optimizer.update(grad, _state(memory, like), tree, **more)
        moved = _flat(oracle, optax.apply_updates(tree, moves))
        # schedules in float64 must not turn a state of float32 into another one
        state = jax.tree.map(lambda new, old: new.astype(old.dtype), _plain(state), memory)
        return moved, state


def _model(oracle: Oracle) -> FunctionModel | None:
    model = getattr(oracle.objective, "model", None)
    return model if isinstance(model, FunctionModel) and model.tree is not None else None


def _tree(oracle: Oracle, parameters: Any) -> Any:
    """The parameters as the user of a FunctionModel wrote them."""
    model = _model(oracle)
    return parameters if model is None else model.unflattened(parameters)


def _flat(oracle: Oracle, tree: Any) -> Any:
    """The inverse of `_tree`."""
    if _model(oracle) is None:
        return tree
    return jnp.concatenate([jnp.ravel(part) for part in jax.tree.leaves(tree)])


def _is_key(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _plain(state: Any) -> Any:
    """The state as arrays of numbers, which a path can keep: random keys as their data."""
    arrays = jax.tree.map(jnp.asarray, state)
    return jax.tree.map(lambda leaf: jax.random.key_data(leaf) if _is_key(leaf) else leaf, arrays)


def _state(memory: Any, like: Any) -> Any:
    """The inverse of `_plain`, for a state with the types of `like`."""

    def restored(leaf: Any, wanted: Any) -> Any:
        return jax.random.wrap_key_data(leaf) if _is_key(wanted) else leaf

    return jax.tree.map(restored, memory, like)


def described(thing: Any, seen: frozenset[int] = frozenset()) -> str:
    """An optimizer, a schedule or a value in words: its functions and what they enclose."""
    if id(thing) in seen:
        return getattr(thing, "__name__", type(thing).__name__)
    inside = functools.partial(described, seen=seen | {id(thing)})
    if is_optimizer(thing):
        return inside(thing.update)
    if isinstance(thing, functools.partial):
        return inside(thing.func) + inside((*thing.args, thing.keywords))
    if hasattr(thing, "__code__"):
        return _function(thing, inside)
    if isinstance(thing, Mapping):
        return "{" + ", ".join(f"{key}: {inside(part)}" for key, part in thing.items()) + "}"
    if isinstance(thing, tuple | list):
        return "(" + ", ".join(map(inside, thing)) + ")"
    if isinstance(thing, str | int | float | None):
        return repr(thing)
    if hasattr(thing, "dtype") and hasattr(thing, "shape"):
        return _array(np.asarray(thing))
    return str(getattr(thing, "__name__", type(thing).__name__))


def _function(function: Any, inside: Any) -> str:
    """The name of the function that made this one, and the variables that it encloses."""
    name = function.__qualname__.split(".<locals>")[0]
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    enclosed = {label: cell.cell_contents for label, cell in cells if cell != EMPTY}
    if name == "with_extra_args_support":  # a coat that optax puts around every part
        return str(inside(enclosed["tx"]))
    if name == "chain":
        return f"chain({', '.join(map(inside, enclosed['update_fns']))})"
    settings = ", ".join(f"{label}={inside(part)}" for label, part in enclosed.items())
    return f"{name}({settings})"


def _array(array: Any) -> str:
    if array.size <= SHOWN:
        return str(array.tolist())
    return f"{array.dtype}{list(array.shape)} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"
