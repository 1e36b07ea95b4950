"""Any model to first order in its parameters, which trains with a fixed tangent kernel."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

from penchant.lazy import jax
from penchant.measures.kernels.gradients import is_learned
from penchant.measures.kernels.outputs import Output
from penchant.records import Record

WHO = "linearize"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class LinearizedFunction(Record):
    """f(w0, x) + J(w0, x) (w - w0), a JAX function of w and x.

    Parameters
    ----------
    function
        A JAX function f(parameters, x), with a pytree of parameters.
    parameters
        w0, where the function is expanded.
    output
        Which part of its return value is used; see `linearize`.
    """

    function: Callable[[Any, Any], Any]
    parameters: Any = dataclasses.field(repr=False)
    output: str | Callable[[Any], Any] | None = None

    def __call__(self, parameters: Any, x: Any) -> Any:
        tree: Any
        leaves, tree = jax.tree.flatten(self.parameters)
        new, other = jax.tree.flatten(parameters)
        if tree != other:
            raise ValueError(
                f"{WHO}: parameters must have the structure of those of the expansion, {tree}, got "
                f"{other}"
            )
        places = [place for place, leaf in enumerate(leaves) if is_learned(WHO, leaf)]
        origin = [jax.numpy.asarray(leaves[place]) for place in places]
        moved = [new[place] - old for place, old in zip(places, origin, strict=True)]

        def run(learned: list[Any]) -> Any:
            every = list(leaves)
            for place, leaf in zip(places, learned, strict=True):
                every[place] = leaf
            found = self.function(jax.tree.unflatten(tree, every), x)
            return Output(WHO, self.output).pick(found)

        value, change = jax.jvp(run, (origin,), (moved,))
        return jax.tree.map(lambda a, b: a + b, value, change)


def linearize(
    model: Any,
    parameters: Any = None,
    *,
    output: str | Callable[[Any], Any] | None = None,
) -> Any:
    """The model to first order in its parameters: f(w0, x) + J(w0, x) (w - w0).

    Training it is training with the fixed tangent kernel of w0. Its flow on the squared loss has a
    closed form at every time t: kernel_regression(model, parameters, x, y).at(t).

    Parameters
    ----------
    model
        A JAX function f(parameters, x), or any torch.nn.Module.
    parameters
        w0, a pytree of arrays; a module is expanded at its own parameters as they are now.
    output
        Which part of the return value of a model to use: a name, or a function of the return
        value; by default the logits, if there are any.

    Returns
    -------
    LinearizedFunction or torch.nn.Module
        A function of (parameters, x) for JAX; for a module a module with parameters of the same
        names, which any loop can train. It predicts as `model` does in eval mode.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> linear = penchant.measures.linearize(lambda w, x: x @ w**2, np.array([1.0, 2.0]))
    >>> linear(np.array([2.0, 2.0]), np.eye(2)).round(4).tolist()
    [3.0, 4.0]
    """
    torch = sys.modules.get("torch")  # a module of torch cannot exist before torch is imported
    if torch is not None and isinstance(model, torch.nn.Module):
        from penchant.measures.torch.linearized import LinearizedModule

        if parameters is not None:
            raise ValueError(
                f"{WHO}: a torch module is expanded at its own parameters; leave parameters out"
            )
        return LinearizedModule(model, output)
    if not callable(model) or parameters is None:
        raise ValueError(
            f"{WHO}: call linearize(module) for a torch.nn.Module (which needs torch: pip install "
            "'penchant[torch]') or linearize(f, parameters) for a JAX function f(parameters, x), "
            f"got {type(model).__name__}"
        )
    return LinearizedFunction(model, parameters, output)
