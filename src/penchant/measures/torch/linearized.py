"""A torch module to first order in its parameters, as a module that can be trained."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.utils import _pytree

from penchant.door import door_as
from penchant.measures.kernels.outputs import Output
from penchant.measures.torch.directional import double_derivative, forward_derivative
from penchant.measures.torch.module import TorchFunction
from penchant.measures.torch.quiet import differentiable


class LinearizedModule(torch.nn.Module):
    """f(w0, x) + J(w0, x) (w - w0) of a copy of `module` in eval mode; w begins at w0.

    `weights` are w, under the names of the module with "-" for "."; `origin` is the copy, fixed.
    """

    @door_as("linearize")
    def __init__(self, module: torch.nn.Module, output: Any = None):
        super().__init__()
        self.output = Output(output)
        function = TorchFunction(module)
        self.names = function.names
        self.origin = copy.deepcopy(function.module).eval().requires_grad_(False)
        start = function.parameters()
        self.weights = torch.nn.ParameterDict(
            {name.replace(".", "-"): start[name].clone() for name in self.names}
        )

    def train(self, mode: bool = True) -> LinearizedModule:
        """Do nothing: a linear model has neither dropout nor batch statistics."""
        return self

    @door_as("linearize")
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs of the linearized module."""
        origin = {name: self.origin.get_parameter(name) for name in self.names}
        moved = {n: self.weights[n.replace(".", "-")] - value for n, value in origin.items()}
        given = _pytree.tree_map_only(torch.Tensor, torch.clone, (args, kwargs))

        def run(params: dict[str, Any]) -> Any:
            return self.output.pick(torch.func.functional_call(self.origin, params, *given))

        with differentiable():
            value, change = _first_of((forward_derivative, double_derivative), run, origin, moved)
        return _pytree.tree_map(torch.add, value, change)


def _first_of(routes: Any, run: Any, origin: Any, moved: Any) -> Any:
    """f and J v by the first route that has the derivatives of all operations."""
    reasons = []
    for route in routes:
        try:
            return route(run, origin, moved)
        except (RuntimeError, NotImplementedError) as reason:
            reasons.append(f"{type(reason).__name__}: {str(reason).splitlines()[0]}")
    raise ValueError(
        "linearize: torch has neither forward nor second derivatives of this module "
        f"({reasons[-1]}); kernel_regression(module, x, y).at(time) needs only gradients"
    )
