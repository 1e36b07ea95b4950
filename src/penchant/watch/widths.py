"""How a parametrization scales with the width: muP, the kernel limit or neither.

How it works. Nets of several widths take a few steps on one batch. Every number is fitted by a
power of the width, over all seeds. Two of these exponents tell the limits apart (Yang and Hu 2021):
that of the change of the hidden features, over their size at the start (a factor of the width may
follow the layer), and that of the change of the outputs. The last layer called has no features.

    muP        features 0      outputs 0      every layer learns features at any width
    NTK        features -1/2   outputs 0      the features stand still, the kernel limit
    standard   one of them grows: with rates that do not depend on the width no limit exists

Half way between two predictions is the border between them; a limit is called if the whole interval
lies on its side. The interval is that of the fit, from the seeds: more of them make it shorter. It
does not know that the exponent itself drifts at small widths.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from penchant.arguments import Array, integer
from penchant.door import Invalid, door
from penchant.lazy import torch
from penchant.records import Record
from penchant.watch.backends.backend import LookOptions
from penchant.watch.backends.torch_backend import TorchBackend
from penchant.watch.measures import read_labels
from penchant.watch.panel.activations import layer_passes, layers_of
from penchant.watch.panel.losses import losses_of

BORDER = 0.25  # half of the distance between the exponents of two limits
LEVEL = 0.95  # of the intervals
PROBES = 8  # inputs of the tangent kernel
FEWEST = 3  # widths
Point = dict[str, float]


class Exponent(NamedTuple):
    """A power of the width with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"

    def within(self, low: float, high: float) -> bool:
        """Whether the whole interval lies between two numbers."""
        return low < self.low and self.high < high

    def meets(self, low: float, high: float) -> bool:
        """Whether some of the interval lies between two numbers."""
        return self.low < high and low < self.high


def fit_exponent(widths: Sequence[float], values: Array) -> Exponent:
    """The slope of log value over log width, (widths, seeds), with the interval of least squares.

    NaN for fewer than three widths with positive numbers.
    """
    x = np.repeat(np.log(np.asarray(widths, dtype=np.float64)), values.shape[1])
    known = np.isfinite(values.ravel()) & (values.ravel() > 0)
    if len(np.unique(x[known])) < FEWEST:
        return Exponent(math.nan, math.nan, math.nan)
    x, y = x[known] - x[known].mean(), np.log(values.ravel()[known])
    slope = float(x @ y / (x @ x))
    left = y - y.mean() - slope * x
    freedom = len(x) - 2
    error = math.sqrt(float(left @ left) / freedom / float(x @ x))
    reach = float(student.ppf((1 + LEVEL) / 2, freedom)) * error
    return Exponent(slope, slope - reach, slope + reach)


@dataclasses.dataclass(frozen=True, repr=False)
class WidthScaling(Record):
    """The limit that a parametrization has, and the exponents in the width that say so.

    `limit` is "muP", "NTK", "standard" or "unknown", `excluded` the limits that the intervals rule
    out. `features` and `outputs` are the exponents of the changes of hidden features (over their
    size) and of outputs, `exponents` those of all other numbers by name: the size of each weight,
    update, activation and its change, of the outputs and of the tangent kernel, whole and by layer.
    `dataset` has the numbers themselves.
    """

    limit: str
    features: Exponent
    outputs: Exponent
    excluded: tuple[str, ...]
    sentence: str
    exponents: dict[str, Exponent] = dataclasses.field(repr=False)
    dataset: Any = dataclasses.field(repr=False)


@door
def widths(
    build: Callable[[int], Any],
    sizes: Sequence[int],
    inputs: Any,
    optimizer: Callable[[Any, int], Any],
    *,
    labels: Any = None,
    loss: Callable[..., Any] | None = None,
    output: Any = None,
    steps: int = 4,
    seeds: int = 3,
) -> WidthScaling:
    """The exponents in the width of a torch module, and the limit that they belong to.

    Parameters
    ----------
    build
        A function of the width that returns a module with its start.
    sizes
        Three widths or more.
    inputs
        One batch of inputs.
    optimizer
        A function of the module and the width that returns its optimizer, or a list of them.
    labels
        The labels of the inputs.
    loss
        A function of outputs and labels, or of the outputs alone without labels; by default as in
        `penchant.watch`.
    output
        Which part of the return value of the model is used, as in `penchant.watch`.
    steps
        The number of steps on the batch; at least 2 if the last layer starts at zero.
    seeds
        The number of starts at each width.

    Returns
    -------
    WidthScaling
        The limit, its sentence and all exponents.

    References
    ----------
    Yang and Hu 2021, Feature learning in infinite-width neural networks; Yang et al. 2022, Tensor
    programs V: tuning large neural networks via zero-shot hyperparameter transfer.
    """
    for name, function in (("build", build), ("optimizer", optimizer)):
        if not callable(function):
            raise Invalid(f"{name} must be a function, got {type(function).__name__}")
    scales = sorted({integer("sizes", size, least=1) for size in sizes})
    if len(scales) < FEWEST:
        raise Invalid(f"sizes must hold {FEWEST} widths or more, got {scales}")
    steps, seeds = integer("steps", steps, least=1), integer("seeds", seeds, least=2)
    how = _WidthRun(build, inputs, optimizer, labels, loss, output, steps)
    points = [[how.measured(size, seed) for seed in range(seeds)] for size in scales]
    return _scaling(scales, points)


class _WidthRun(NamedTuple):
    """What is trained, and how."""

    build: Callable[[int], Any]
    inputs: Any
    optimizer: Callable[[Any, int], Any]
    labels: Any
    loss: Any
    output: Any
    steps: int

    def measured(self, width: int, seed: int) -> Point:
        """All numbers of one net."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = self.build(width)
            backend = TorchBackend(model, self.inputs, LookOptions(self.output))
            stepped = self.optimizer(model, width)
            start = _NetState(backend, self.output)
            self._train(backend, stepped if isinstance(stepped, list) else [stepped])
        return start.numbers() | start.changes(_NetState(backend, self.output))

    def _train(self, backend: TorchBackend, optimizers: list[Any]) -> None:
        samples = len(backend.x)
        targets = None if self.labels is None else read_labels(self.labels, samples, backend.count)
        losses = losses_of(backend, targets, self.labels, self.loss)
        for _ in range(self.steps):
            (flat,) = losses.gradients(None, [np.arange(samples)])
            self._assign(backend, flat)
            for stepped in optimizers:
                stepped.step()

    def _assign(self, backend: TorchBackend, flat: Array) -> None:
        live = dict(backend.function.module.named_parameters())
        pieces = torch.as_tensor(flat).split([live[name].numel() for name in backend.names])
        for name, piece in zip(backend.names, pieces, strict=True):
            live[name].grad = piece.view_as(live[name]).to(live[name]).clone()


class _NetState:
    """Arrays, activations, outputs and kernel of a net at one time."""

    def __init__(self, backend: TorchBackend, output: Any):
        self.arrays = {n: a.astype(np.float64) for n, a in backend.arrays().items()}
        function = backend.function
        passes = layer_passes(function, layers_of(function.module), backend.x)
        self.layers = {n: step.outputs.double().numpy() for n, step in passes.items()}
        self.outputs = backend.outputs()
        few = TorchBackend(function.module, _rows(backend), LookOptions(output))
        kernels = few.kernels()
        names = dict(zip(reversed(few.groups), reversed(few.names), strict=True))
        self.traces = {names[group]: float(np.trace(k)) for group, k in enumerate(kernels)}
        self.kernel = kernels.sum(axis=0)

    def numbers(self) -> Point:
        """Root mean squares at the start."""
        sizes = {f"weight {name}": _size(array) for name, array in self.arrays.items()}
        sizes |= {f"activation {name}": _size(h) for name, h in self.layers.items()}
        sizes |= {f"kernel of {name}": trace for name, trace in self.traces.items()}
        return sizes | {"output": _size(self.outputs), "kernel": float(np.trace(self.kernel))}

    def changes(self, later: _NetState) -> Point:
        """Root mean squares of what the steps changed, and the relative change of the kernel."""
        parts = {f"update {name}": _size(later.arrays[name] - a) for name, a in self.arrays.items()}
        hidden = {name: _size(later.layers[name] - h) for name, h in self.layers.items()}
        parts |= {f"change {name}": size for name, size in hidden.items()}
        sizes = {name: _size(self.layers[name]) for name in list(hidden)[:-1]}
        inner = [hidden[name] / size for name, size in sizes.items() if size > 0]
        parts["features"] = float(np.sqrt(np.mean(np.square(inner)))) if inner else math.nan
        parts["outputs"] = _size(later.outputs - self.outputs)
        moved = np.linalg.norm(later.kernel - self.kernel) / np.linalg.norm(self.kernel)
        return parts | {"kernel change": float(moved)}


def _rows(backend: TorchBackend) -> Any:
    """Some of the inputs, as they are given to a module."""
    named = backend.function.named_inputs
    rows = backend.x[:PROBES]
    return rows if named is None else named.at(rows)


def _size(array: Array) -> float:
    return float(np.sqrt(np.mean(np.square(array))))


def _scaling(scales: list[int], points: list[list[Point]]) -> WidthScaling:
    import xarray

    names = [name for name in points[0][0] if all(name in p for row in points for p in row)]
    values = np.array([[[p[name] for name in names] for p in row] for row in points])
    dataset = xarray.Dataset(
        {"size": (("width", "seed", "number"), values)},
        {"width": scales, "seed": np.arange(values.shape[1]), "number": names},
    )
    fitted = {name: fit_exponent(scales, values[:, :, k]) for k, name in enumerate(names)}
    features, outputs = fitted.pop("features"), fitted.pop("outputs")
    limit, excluded = judge_limit(features, outputs)
    text = f"features change like width to the {features}, outputs to the {outputs}"
    if excluded:
        text += f"; excluded: {', '.join(excluded)}"
    return WidthScaling(limit, features, outputs, excluded, text, fitted, dataset)


LIMITS: dict[str, tuple[float, float]] = {  # between which the exponent of the features lies
    "muP": (-BORDER, BORDER),
    "NTK": (-3 * BORDER, -BORDER),
}


def judge_limit(features: Exponent, outputs: Exponent) -> tuple[str, tuple[str, ...]]:
    """The limit that both exponents name, or "unknown", and the limits that they exclude."""
    grows = features.low > BORDER or outputs.low > BORDER
    steady, may = outputs.within(-BORDER, BORDER), outputs.meets(-BORDER, BORDER)
    fits = {name: steady and features.within(*ends) for name, ends in LIMITS.items()}
    possible = {name: may and features.meets(*ends) for name, ends in LIMITS.items()}
    fits["standard"] = grows
    possible["standard"] = features.high > BORDER or outputs.high > BORDER
    named = [name for name, fit in fits.items() if fit]
    excluded = tuple(name for name, can in possible.items() if not can)
    known = not any(map(math.isnan, (*features, *outputs)))
    return (named[0] if named and known else "unknown"), (excluded if known else ())
