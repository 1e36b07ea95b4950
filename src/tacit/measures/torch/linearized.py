"""A torch module to first order in its parameters, as a module that can be trained."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
from torch.utils import _pytree

from tacit.measures.kernels.outputs import Output
from tacit.measures.torch.module import TorchFunction
from tacit.measures.torch.quiet import plain_attention


class LinearizedModule(torch.nn.Module):
    """f(w0, x) + J(w0, x) (w - w0) of a copy of `module` in eval mode; w begins at w0.

    `weights` are w, under the names of the module with "-" for "."; `origin` is the copy, fixed.
    """

    def __init__(self, module: torch.nn.Module, output: Any = None):
        super().__init__()
        self.output = Output("linearize", output)
        function = TorchFunction("linearize", module)
        self.names = function.names
        self.origin = copy.deepcopy(function.module).eval().requires_grad_(False)
        start = function.parameters()
        self.weights = torch.nn.ParameterDict(
            {name.replace(".", "-"): start[name].clone() for name in self.names}
        )

    def train(self, mode: bool = True) -> LinearizedModule:
        """Do nothing: a linear model has neither dropout nor batch statistics."""
        return self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs of the linearized module."""
        origin = {name: self.origin.get_parameter(name) for name in self.names}
        moved = {n: self.weights[n.replace(".", "-")] - value for n, value in origin.items()}
        given = _pytree.tree_map_only(torch.Tensor, torch.clone, (args, kwargs))

        def run(params: dict[str, Any]) -> Any:
            return self.output.pick(torch.func.functional_call(self.origin, params, *given))

        with plain_attention(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # from torch, at the first forward derivative
            value, change = torch.func.jvp(run, (origin,), (moved,))
        return _pytree.tree_map(torch.add, value, change)
