"""What the layers of a torch module do on the probe inputs, by forward hooks.

A layer is a module with a weight of two axes or more. Its inputs are the features that it reads, so
that activations count that are functions, not modules. The features of the whole net are what
enters the layer that is called last.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.lazy import torch
from penchant.watch.backends.backend import Backend
from penchant.watch.measures import Labels
from penchant.watch.panel.instrument import LookMoment, Row, require_torch

MOST = 1024  # rows of features whose rank is computed
SINGLE = float(np.finfo(np.float32).eps)  # smaller relative singular values count as zero


def features_rank(features: Array) -> float:
    """exp of the entropy of the eigenvalues of the covariance of (rows, units), as shares.

    It is NaN if all rows are equal.
    """
    centred = features - features.mean(axis=0)
    squares = np.linalg.svd(centred, compute_uv=False) ** 2
    total = float(squares.sum())
    if not total > (SINGLE * float(np.linalg.norm(features))) ** 2:
        return math.nan
    shares = squares[squares > 0] / total
    return float(np.exp(-np.sum(shares * np.log(shares))))


def dead_share(features: Array) -> float:
    """The share of units (columns) that are zero in all rows."""
    return float(np.mean(~features.any(axis=0)))


def unit_size(outputs: Array) -> float:
    """The root mean square of all entries, which does not grow with the width."""
    return float(np.sqrt(np.mean(np.square(outputs, dtype=np.float64))))


def neural_collapse(features: Array, classes: NDArray[np.int64]) -> float:
    """tr(S_W S_B^+) / C, with the covariances within and between C classes (Papyan et al. 2020).

    It is 0 if all features of a class are equal, and NaN if no class has two samples, or the
    means of all classes are equal.
    """
    names, places, counts = np.unique(classes, return_inverse=True, return_counts=True)
    if len(names) < 2 or counts.max() < 2:
        return math.nan
    means = np.array([features[places == k].mean(axis=0) for k in range(len(names))])
    within = (features - means[places]) / math.sqrt(len(features))
    between = (means - means.mean(axis=0)) / math.sqrt(len(names))
    _, sizes, axes = np.linalg.svd(between, full_matrices=False)
    kept = sizes > SINGLE * sizes[0]
    kept[len(names) - 1 :] = False  # the means without their mean have one dimension less
    if not sizes[0] > SINGLE * float(np.abs(features).max()):
        return math.nan
    along = within @ axes[kept].T / sizes[kept]
    return float(np.sum(along**2)) / len(names)


def low_rank(features: Array, outputs: Array) -> float:
    """1 - the cosine of the centred kernel of the features and the projection on the outputs.

    With the features in no other direction than the centred outputs have, and equally large in
    each, it is 0: the richest dynamics (D_LR of Nam et al. 2024). It is NaN if either is constant.
    """
    phi, f = features - features.mean(axis=0), outputs - outputs.mean(axis=0)
    left, sizes, _ = np.linalg.svd(f, full_matrices=False)
    rank = int(np.count_nonzero(sizes > max(f.shape) * SINGLE * np.abs(outputs).max()))
    whole = float(np.linalg.norm(phi @ phi.T if len(phi) < phi.shape[1] else phi.T @ phi))
    if not rank or not whole > 0:
        return math.nan
    inside = float(np.sum((left[:, :rank].T @ phi) ** 2))
    return 1 - inside / (whole * math.sqrt(rank))


class LayerPass(NamedTuple):
    """What entered and left a layer in one pass; `raw` if the inputs are those of the net."""

    module: Any
    inputs: Any
    outputs: Any
    raw: bool


def layers_of(module: Any) -> dict[Any, str]:
    """The names of the layers of a torch module."""
    return {
        part: name or "model"
        for name, part in module.named_modules()
        if any(value.ndim >= 2 for value in part.parameters(recurse=False))
    }


def layer_passes(function: Any, layers: dict[Any, str], x: Any) -> dict[str, LayerPass]:
    """One pass of a torch module on inputs, layer by layer in the order of their last calls."""
    passes: dict[str, LayerPass] = {}
    given: set[int] = set()

    def note(part: Any, args: Any) -> None:
        given.update(_place(a) for a in args if isinstance(a, torch.Tensor))

    def hook(part: Any, args: Any, answer: Any) -> None:
        passes.pop(layers[part], None)
        answer = answer[0] if isinstance(answer, tuple) else answer
        h = args[0] if args and isinstance(args[0], torch.Tensor) else None
        h = h if h is not None and h.is_floating_point() else None
        passes[layers[part]] = LayerPass(part, h, answer, h is not None and _place(h) in given)

    handles = [part.register_forward_hook(hook) for part in layers]
    handles.append(function.module.register_forward_pre_hook(note))
    try:
        with function.quiet(), torch.no_grad():
            function(function.parameters(), x)
    finally:
        for handle in handles:
            handle.remove()
    return passes


def _place(tensor: Any) -> int:
    """Where the numbers of a tensor are stored, also those of a view."""
    return int(tensor.untyped_storage().data_ptr())


class Activations:
    """The instrument, which runs the module once with a hook on every layer."""

    axis = "module"
    notes: tuple[str, ...] = ()

    def __init__(self, backend: Backend, labels: Labels | None):
        self.function = require_torch(backend, "activations", "is read by forward hooks")
        self.x, self.classes = backend.x, None if labels is None else labels.classes  # type: ignore[attr-defined]
        if labels is not None and labels.signs is not None:
            self.classes = (labels.signs > 0).astype(np.int64)
        self.layers = layers_of(self.function.module)
        self.members = tuple(self.layers.values())

    def keep(self, moment: LookMoment) -> Any:
        return None

    def row(self, moment: LookMoment) -> Row:
        passes = layer_passes(self.function, self.layers, self.x)
        seen = {name: _numbers(step) for name, step in passes.items()}
        row: Row = {
            key: np.array([seen.get(name, {}).get(key, math.nan) for name in self.members])
            for key in ("unit_size", "unit_rank", "dead_units")
        }
        last = list(passes.values())[-1].inputs if passes else None
        if last is not None and last.ndim == 2 and len(last) == len(self.x):
            features = _array(last)
            if self.classes is not None:
                row["neural_collapse"] = neural_collapse(features, self.classes)
            if moment.outputs is not None:
                row["low_rank"] = low_rank(features, moment.outputs)
        return row


def _numbers(step: LayerPass) -> dict[str, float]:
    numbers = {"unit_size": unit_size(_array(step.outputs))}
    if step.inputs is not None and step.inputs.ndim >= 2:
        convolution = isinstance(step.module, torch.nn.modules.conv._ConvNd)
        units = _rows(step.inputs, 1 if convolution else -1)
        numbers["unit_rank"] = features_rank(units[:: math.ceil(len(units) / MOST)])
        if not step.raw:
            numbers["dead_units"] = dead_share(units)
    return numbers


def _rows(h: Any, axis: int) -> Array:
    """(samples and places, units)."""
    return _array(h.movedim(axis, -1).reshape(-1, h.shape[axis]))


def _array(tensor: Any) -> Array:
    return np.asarray(tensor.detach().double().cpu().numpy())
