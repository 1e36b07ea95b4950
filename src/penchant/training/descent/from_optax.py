"""An optimizer of optax as a step-by-step method.

How it works: optax writes an optimizer as two functions, `init` and `update`. The memory of the
method is what `init` makes, and a step adds what `update` returns to the parameters. Optimizers
that search along a line or need the loss are given `value`, `grad` and `value_fn` of the objective
on the samples of the step, penalty included. A FunctionModel is shown to optax as the tree of
arrays its user wrote, so that masks and labels by name work; other parameters are as all methods
see them.

An optax object does not know how it was called, so that a saved path tells it in words
(penchant.words), which `resume` compares, and nobody can build it from a file.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from penchant.lazy import jax, jnp
from penchant.models.function import FunctionModel
from penchant.training.descent.clock import Clock
from penchant.training.descent.method import Oracle, Scheme, StepMethod
from penchant.words import in_words

LONGEST = 120  # characters of a description that `repr` shows


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
        text = in_words(self.transformation)
        return f"Optax({text if len(text) <= LONGEST else text[:LONGEST] + '...'})"

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
                f"Optax: {in_words(self.transformation):.80} cannot take a step on these "
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
