"""Any model to first order in its parameters, which trains with a fixed tangent kernel."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

from penchant.door import Invalid, door, door_as
from penchant.lazy import jax
from penchant.measures.kernels.gradients import is_learned
from penchant.measures.kernels.outputs import Output
from penchant.models.image_model import ImageModel
from penchant.models.linearized import WHO, Linearized, LinearizedImageModel
from penchant.models.model import Separable
from penchant.records import Record


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

    @door_as(WHO)
    def __call__(self, parameters: Any, x: Any) -> Any:
        tree: Any
        leaves, tree = jax.tree.flatten(self.parameters)
        new, other = jax.tree.flatten(parameters)
        if tree != other:
            raise Invalid(
                f"parameters must have the structure of those of the expansion, {tree}, got {other}"
            )
        places = [place for place, leaf in enumerate(leaves) if is_learned(leaf)]
        origin = [jax.numpy.asarray(leaves[place]) for place in places]
        moved = [new[place] - old for place, old in zip(places, origin, strict=True)]

        @door_as(WHO)
        def run(learned: list[Any]) -> Any:
            every = list(leaves)
            for place, leaf in zip(places, learned, strict=True):
                every[place] = leaf
            outputs = self.function(jax.tree.unflatten(tree, every), x)
            return Output(self.output).pick(outputs)

        value, change = jax.jvp(run, (origin,), (moved,))
        return jax.tree.map(lambda a, b: a + b, value, change)


@door
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
        A model with a separable linear predictor, such as DiagonalNet, a net on images, a JAX
        function f(parameters, x), or any torch.nn.Module.
    parameters
        w0 of a JAX function, a pytree of arrays. A model is expanded at its own start, a module at
        its own parameters as they are now.
    output
        Which part of the return value of a function or a module to use: a name, or a function of
        the return value; by default the logits, if there are any.

    Returns
    -------
    model, function or torch.nn.Module
        A model for `train`; for JAX a function of (parameters, x); for a module a module with
        parameters of the same names, which any loop can train. It predicts as `model` does in eval
        mode.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> tangent = penchant.models.linearize(penchant.DiagonalNet(alpha=1.0))
    >>> tangent.predictor(tangent.start(dimension=1) + np.array([0.5, 0.0]))
    array([1.])
    >>> linear = penchant.models.linearize(lambda w, x: x @ w**2, np.array([1.0, 2.0]))
    >>> linear(np.array([2.0, 2.0]), np.eye(2)).round(4).tolist()
    [3.0, 4.0]
    """
    if isinstance(model, Separable | ImageModel):
        _own_place("model", "start", parameters)
        if output is not None:
            raise ValueError(f"{WHO}: a model has one output; leave output out")
        return Linearized(model) if isinstance(model, Separable) else LinearizedImageModel(model)
    torch = sys.modules.get("torch")  # a module of torch cannot exist before torch is imported
    if torch is not None and isinstance(model, torch.nn.Module):
        from penchant.measures.torch.linearized import LinearizedModule

        _own_place("torch module", "parameters", parameters)
        return LinearizedModule(model, output)
    if not callable(model) or parameters is None:
        raise ValueError(
            f"{WHO}: call linearize(model) for a separable model, such as DiagonalNet, or a net on "
            "images, linearize(module) for a torch.nn.Module (which needs torch: pip install "
            "'penchant[torch]') or linearize(f, parameters) for a JAX function f(parameters, x), "
            f"got {type(model).__name__}"
        )
    return LinearizedFunction(model, parameters, output)


def _own_place(what: str, place: str, parameters: Any) -> None:
    if parameters is not None:
        raise ValueError(f"{WHO}: a {what} is expanded at its own {place}; leave parameters out")
