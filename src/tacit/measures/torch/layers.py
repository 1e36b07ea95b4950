"""Gradients of torch layers as factors: the inputs h of each and the slopes delta of its outputs.

The gradient of one sample in the weight of a Linear layer is sum_t delta_t h_t^T, and so it is of
a Conv2d if h_t are the patches of its input: a whole batch is served by one pass forward and one
back per output. A layer qualifies if it is called once with one row of input per sample, its
parameters are its own, and the factors of one sample give its whole gradient (which fails where
the weight is used somewhere else as well).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from tacit.measures.torch.module import TorchFunction

ALIKE = 1e-3  # a gradient and what its factors give differ by less than this share of it


class Layer(NamedTuple):
    """A Linear or Conv2d and the names of its trained parameters, None where there is none."""

    module: Any
    weight: str | None
    bias: str | None

    @property
    def names(self) -> set[str]:
        return {name for name in (self.weight, self.bias) if name is not None}


class Tap:
    """Notes what goes through the layers while the hooks are in place."""

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
        import torch

        zero = torch.zeros_like(found, requires_grad=True)
        self.inputs.setdefault(id(module), []).append(given[0].detach())
        self.zeros.setdefault(id(module), []).append(zero)
        return found + zero

    def called_once(self, layer: Layer, rows: int) -> bool:
        calls = self.inputs.get(id(layer.module), [])
        return len(calls) == 1 and calls[0].ndim > 1 and len(calls[0]) == rows

    def input(self, layer: Layer) -> Any:
        """h as (samples, times, inputs)."""
        import torch

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
    """The layers of the module that qualify, seen on the inputs `x`."""
    import torch

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
    """(h, delta) of every layer, (n, T, K) and (n, T, C, O), for the outputs asked for."""
    import torch

    if not layers:
        return []
    tap = Tap(layers)
    with tap.placed():
        outputs = function(params, x).reshape(len(x), -1)
    zeros = [tap.zero(layer) for layer in layers]
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
    import torch

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
    import torch

    return type(module) is torch.nn.Conv2d


def _plain(module: Any) -> bool:
    """Whether the patches of a Conv2d are those that `unfold` knows."""
    padded = isinstance(module.padding, str) or module.padding_mode != "zeros"
    return module.groups == 1 and not padded


def _alike(a: Any, b: Any) -> bool:
    apart = (a.double() - b.double()).norm()
    return bool(apart <= ALIKE * b.double().norm())
