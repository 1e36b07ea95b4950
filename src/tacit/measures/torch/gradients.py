"""Gradients of the samples of a torch module, in blocks for the tangent kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.measures.kernels.blocks import LARGEST, Gradients
from tacit.measures.kernels.factors import Factors, Use
from tacit.measures.torch.layers import factored_layers, factors
from tacit.measures.torch.module import TorchFunction


class TorchGradients(Gradients):
    """Gradients of the outputs in the trained parameters of `function`: the live ones, unless
    `move` has given others.

    Linear and Conv2d layers come as factors, or as products of them (see torch_layers). All other
    parameters keep whole gradients, taken by torch.func for all samples of a block at once, or
    one by one where it cannot.
    """

    def __init__(
        self,
        function: TorchFunction,
        x: Any,
        outputs: int,
        asked: int | None,
        factored: bool = True,
    ):
        self.function, self.every = function, outputs
        self.model = function
        self.params = function.parameters()
        self.layers = []
        if factored:
            with function.quiet():
                self.layers = factored_layers(function, x)
        served = set().union(*(layer.names for layer in self.layers))
        self.rest = [name for name in function.names if name not in served]
        self.together = True
        self.sample = x[:1]
        self.ask(asked)

    def ask(self, index: int | None) -> None:
        """From now on the gradients are those of output number `index`, or of all of them."""
        self.asked = index
        self.outputs = self.every if index is None else 1
        self._measure()

    def move(self, params: Any) -> None:
        given = self.function.given
        self.params = self.function.parameters() if params is None else given(params)

    def work(self, size: int) -> int:
        return size * (self.held + self.spread)

    def values(self, x: Any) -> Array:
        import torch

        parts = []
        with self.function.quiet(), torch.no_grad():
            for at in range(0, len(x), LARGEST):
                part = x[at : at + LARGEST]
                parts.append(as_array(self.function(self.params, part)).reshape(len(part), -1))
        found = np.concatenate(parts)
        return found if self.asked is None else found[:, [self.asked]]

    def block(self, x: Any, size: int) -> Factors:
        with self.function.quiet():
            return self._factors(x)

    def _factors(self, x: Any) -> Factors:
        rows = [as_numbers(row) for row in self._whole(x)] if self.rest else []
        layers = []
        found = factors(self.function, self.layers, self.params, x, self.asked)
        for layer, (h, slopes) in zip(self.layers, found, strict=True):
            if layer.bias is not None:
                rows.append(as_numbers(slopes.sum(dim=1)))
            if layer.weight is None:
                continue
            if Use(h.shape[1], h.shape[2], slopes.shape[-1]).pays(self.outputs):
                layers.append((as_numbers(h), as_numbers(slopes)))
            else:
                rows.append(as_numbers(_products(h, slopes)))
        return Factors(rows, layers)

    def _whole(self, x: Any) -> list[Any]:
        """The gradients in the parameters outside the layers, each (n, C, size)."""
        import torch

        inner = {name: self.params[name] for name in self.rest}
        found = None
        if self.together:
            try:
                jacobian = torch.func.vmap(torch.func.jacrev(self._one), in_dims=(None, 0))
                found = jacobian(inner, x)
            except (RuntimeError, NotImplementedError, ValueError):
                self.together = False  # control flow on data, or an operation it does not know
        if found is None:
            found = self._one_by_one(inner, x)
        shape = (len(x), self.outputs, -1)
        return [found[name].reshape(shape).detach() for name in self.rest]

    def _one(self, inner: dict[str, Any], x: Any) -> Any:
        found = self.function({**self.params, **inner}, x[None]).reshape(-1)
        return found if self.asked is None else found[self.asked : self.asked + 1]

    def _one_by_one(self, inner: dict[str, Any], x: Any) -> dict[str, Any]:
        import torch

        grown = {name: value.clone().requires_grad_() for name, value in inner.items()}
        leaves, rows = list(grown.values()), []
        for sample in x:
            outputs = self._one(grown, sample)
            for c in range(len(outputs)):
                rows.append(
                    torch.autograd.grad(
                        outputs[c], leaves, retain_graph=True, materialize_grads=True
                    )
                )
        return {name: torch.stack([r[i] for r in rows]) for i, name in enumerate(grown)}

    def _measure(self) -> None:
        one = self.block(self.sample, 1)
        arrays = [*one.rows, *(array for layer in one.layers for array in layer)]
        self.held = sum(array.nbytes for array in arrays)
        self.times = max((h.shape[1] for h, _ in one.layers), default=1)
        with self.function.quiet():
            found = factors(self.function, self.layers, self.params, self.sample, self.asked)
        self.spread = sum(part.numel() * part.element_size() for pair in found for part in pair)
        sizes = (math.prod(value.shape) * value.element_size() for value in self.params.values())
        self.fixed = sum(sizes)


def as_numbers(tensor: Any) -> Any:
    """A NumPy array in the tensor's precision, at least float32."""
    import torch

    wide = tensor if tensor.dtype == torch.float64 else tensor.float()
    return wide.detach().cpu().numpy()


def as_array(tensor: Any) -> Array:
    """A float64 copy of a tensor."""
    return np.array(tensor.detach().double().cpu().numpy(), dtype=np.float64)


def _products(h: Any, slopes: Any) -> Any:
    import torch

    return torch.einsum("ntk,ntco->ncok", h, slopes).reshape(len(h), slopes.shape[2], -1)
