"""Gradients of the samples of a torch module, in blocks for the tangent kernel."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.lazy import torch
from tacit.measures.kernels.blocks import LARGEST, Gradients
from tacit.measures.kernels.factors import Factors, Use
from tacit.measures.torch.module import TorchFunction, as_array

ALIKE = 1e-3  # the largest relative difference of a gradient and the product of its factors


class Layer(NamedTuple):
    """A Linear or Conv2d and the names of its trained parameters, None where there is none."""

    module: Any
    weight: str | None
    bias: str | None

    @property
    def names(self) -> set[str]:
        return {name for name in (self.weight, self.bias) if name is not None}


class Tap:
    """Records the inputs and outputs of the layers while the hooks are in place."""

    def __init__(self, layers: list[Layer]):
        self.layers = layers
        self.inputs: dict[int, list[Any]] = {}
        self.zeros: dict[int, list[Any]] = {}

    @contextlib.contextmanager
    def placed(self) -> Iterator[None]:
        handles = [layer.module.register_forward_hook(self._hook) for layer in self.layers]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _hook(self, module: Any, given: Any, found: Any) -> Any:
        if not given:  # its input was given by name, which a hook does not receive
            return found
        zero = torch.zeros_like(found, requires_grad=True)
        self.inputs.setdefault(id(module), []).append(given[0].detach())
        self.zeros.setdefault(id(module), []).append(zero)
        return found + zero

    def called_once(self, layer: Layer, rows: int) -> bool:
        calls = self.inputs.get(id(layer.module), [])
        return len(calls) == 1 and calls[0].ndim > 1 and len(calls[0]) == rows

    def input(self, layer: Layer) -> Any:
        """h as (samples, times, inputs)."""
        found, module = self.inputs[id(layer.module)][0], layer.module
        if not _convolves(module):
            return found.reshape(len(found), -1, found.shape[-1])
        patches = torch.nn.functional.unfold(
            found, module.kernel_size, module.dilation, module.padding, module.stride
        )
        return patches.transpose(1, 2)

    def zero(self, layer: Layer) -> Any:
        return self.zeros[id(layer.module)][0]


def factored_layers(function: TorchFunction, x: Any) -> list[Layer]:
    """The layers of the module that have factors, as tested on the inputs `x`."""
    candidates, params = _candidates(function), function.parameters()
    tap = Tap(candidates)
    grown = {name: value.clone().requires_grad_() for name, value in params.items()}
    with tap.placed():
        outputs = function(grown, x)
    called = [layer for layer in candidates if tap.called_once(layer, len(x))]
    if not called:
        return []
    names = sorted(set().union(*(layer.names for layer in called)))
    # one sample alone: rows mixed up with times would show
    asked = [*(tap.zero(layer) for layer in called), *(grown[name] for name in names)]
    found = torch.autograd.grad(outputs[-1].sum(), asked, materialize_grads=True)
    whole = dict(zip(names, found[len(called) :], strict=True))
    return [
        layer
        for layer, slope in zip(called, found[: len(called)], strict=True)
        if _complete(layer, tap.input(layer), _slopes(layer, slope), whole)
    ]


def factors(
    function: TorchFunction, layers: list[Layer], params: dict[str, Any], x: Any, asked: int | None
) -> list[tuple[Any, Any]]:
    """(h, delta) of every layer, (n, T, K) and (n, T, C, O), for the requested outputs."""
    if not layers:
        return []
    tap = Tap(layers)
    with tap.placed():
        outputs = function(params, x).reshape(len(x), -1)
    zeros = [tap.zero(layer) for layer in layers]
    if not outputs.requires_grad:  # they depend on no layer
        outputs = outputs + 0 * sum(zero.sum() for zero in zeros)
    columns = range(outputs.shape[1]) if asked is None else [asked]
    slopes = [
        torch.autograd.grad(outputs[:, c].sum(), zeros, retain_graph=True, materialize_grads=True)
        for c in columns
    ]
    found = []
    for place, layer in enumerate(layers):
        h = tap.input(layer)
        parts = [_slopes(layer, slope[place]) for slope in slopes]
        found.append((h, torch.stack(parts, dim=2)))
    return found


def _candidates(function: TorchFunction) -> list[Layer]:
    """Linear and Conv2d modules with trained parameters that no other module has."""
    owners: dict[int, list[str]] = {}
    for name, value in function.module.named_parameters(remove_duplicate=False):
        owners.setdefault(id(value), []).append(name)
    trained = set(function.names)

    def own(value: Any) -> str | None:
        names = owners.get(id(value), [])
        return names[0] if len(names) == 1 and names[0] in trained else None

    found = [
        Layer(module, own(module.weight), own(module.bias))
        for module in function.module.modules()
        if type(module) is torch.nn.Linear or (_convolves(module) and _plain(module))
    ]
    return [layer for layer in found if layer.names]


def _complete(layer: Layer, h: Any, slope: Any, whole: dict[str, Any]) -> bool:
    """Whether the last sample's factors are all of its gradient in the layer's parameters."""
    made = {layer.weight: slope[-1].T @ h[-1], layer.bias: slope[-1].sum(dim=0)}
    return all(_alike(made[name].reshape(whole[name].shape), whole[name]) for name in layer.names)


def _slopes(layer: Layer, slope: Any) -> Any:
    """delta as (samples, times, outputs)."""
    if _convolves(layer.module):
        return slope.flatten(2).transpose(1, 2)
    return slope.reshape(len(slope), -1, slope.shape[-1])


def _convolves(module: Any) -> bool:
    return type(module) is torch.nn.Conv2d


def _plain(module: Any) -> bool:
    """Whether `unfold` gives the patches of a Conv2d."""
    padded = isinstance(module.padding, str) or module.padding_mode != "zeros"
    return module.groups == 1 and not padded


def _alike(a: Any, b: Any) -> bool:
    apart = (a.double() - b.double()).norm()
    return bool(apart <= ALIKE * b.double().norm())


class TorchGradients(Gradients):
    """Gradients of the outputs in the trained parameters of `function`, live unless moved.

    Linear and Conv2d layers come as factors, or as products of them; all others are whole, taken
    by torch.func for all samples of a block at once, or one by one where it cannot.
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
        """Sets the output of the gradients: number `index`, or all of them."""
        self.asked = index
        self.outputs = self.every if index is None else 1
        self._measure()

    def move(self, params: Any) -> None:
        given = self.function.given
        self.params = self.function.parameters() if params is None else given(params)

    def work(self, size: int) -> int:
        return size * (self.held + self.spread)

    def values(self, x: Any) -> Array:
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
        inner = {name: self.params[name] for name in self.rest}
        found = None
        if self.together:
            try:
                jacobian = torch.func.vmap(torch.func.jacrev(self._one), in_dims=(None, 0))
                found = jacobian(inner, x)
            except (RuntimeError, NotImplementedError, ValueError):
                self.together = False  # control flow on data, or an unsupported operation
        if found is None:
            found = self._one_by_one(inner, x)
        shape = (len(x), self.outputs, -1)
        return [found[name].reshape(shape).detach() for name in self.rest]

    def _one(self, inner: dict[str, Any], x: Any) -> Any:
        found = self.function({**self.params, **inner}, x[None]).reshape(-1)
        return found if self.asked is None else found[self.asked : self.asked + 1]

    def _one_by_one(self, inner: dict[str, Any], x: Any) -> dict[str, Any]:
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
    wide = tensor if tensor.dtype == torch.float64 else tensor.float()
    return wide.detach().cpu().numpy()


def _products(h: Any, slopes: Any) -> Any:
    return torch.einsum("ntk,ntco->ncok", h, slopes).reshape(len(h), slopes.shape[2], -1)
