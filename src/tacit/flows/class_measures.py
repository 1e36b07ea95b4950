"""What is measured along the training of a classifying net, as pure functions and as a table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.models.tangent import kernel_distance
from tacit.models.two_token_net import TwoTokenNet, Weights
from tacit.problems.arithmetic import TokenPairs

LABELS = {
    "t": ("1", "training time, the sum of the steps"),
    "log_t": ("log(1)", "natural logarithm of the training time"),
    "step": ("steps", "number of descent steps taken"),
    "loss": ("1", "mean cross-entropy over the training pairs"),
    "log_loss": ("log(1)", "natural logarithm of the training loss"),
    "test_loss": ("1", "mean cross-entropy over all test pairs"),
    "train_accuracy": ("1", "accuracy over the training pairs"),
    "test_accuracy": ("1", "accuracy over all test pairs"),
    "novel_accuracy": ("1", "accuracy over test pairs whose mirror is not in training"),
    "parameter_norm": ("1", "Euclidean norm of all parameters"),
    "turn": ("degrees", "angle between the parameters and their start"),
    "kernel_distance": ("1", "1 - cosine between the tangent kernel and that of the start"),
}


def norm(weights: Weights) -> float:
    """The Euclidean norm of all parameters."""
    return float(np.linalg.norm(_flat(weights)))


def turn(start: Weights, weights: Weights) -> float:
    """The angle between two sets of parameters in degrees."""
    first, second = (flat / np.linalg.norm(flat) for flat in map(_flat, (start, weights)))
    # unlike an arc cosine this is exact for small angles
    half = np.arctan2(np.linalg.norm(first - second), np.linalg.norm(first + second))
    return float(np.degrees(2 * half))


def cross_entropies(logits: Array, labels: NDArray[np.int64]) -> Array:
    """-log of the probability of its label, for every row of logits."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    own = np.take_along_axis(shifted, labels[:, None], axis=1)[:, 0]
    with np.errstate(under="ignore"):
        return np.log(np.exp(shifted).sum(axis=1)) - own


def labelled(recorded: dict[str, Array]) -> Any:
    """The dataset of the recorded columns, with logarithms, units and names."""
    import xarray

    with np.errstate(divide="ignore"):
        logs = {f"log_{name}": np.log(recorded[name]) for name in ("t", "loss")}
    columns = recorded | logs
    variables = {
        name: ("time", columns[name], {"units": unit, "long_name": text})
        for name, (unit, text) in LABELS.items()
    }
    coordinates = {name: variables.pop(name) for name in ("t", "step")}
    return xarray.Dataset(variables, coordinates)


class Gauge:
    """What is measured at every record, in float64 and outside the compiled steps."""

    def __init__(self, net: TwoTokenNet, problem: TokenPairs, start: Weights, probes: int):
        self.net, self.problem, self.start = net, problem, start
        self.inputs = net.inputs(problem)
        count = min(probes, len(self.inputs))
        chosen = np.random.default_rng(0).permutation(len(self.inputs))[:count]
        self.probes = self.inputs[np.sort(chosen)]
        self.kernel = net.kernel(start, self.probes)
        self.masks = {"train": problem.train, "test": problem.test, "novel": problem.novel}
        self.rows: list[dict[str, float]] = []
        self.read(0.0, 0, start)

    def read(self, t: float, steps: int, weights: Weights) -> bool:
        """Add one row of measurements; whether any unit is active on the probed pairs."""
        weights = Weights(*(np.asarray(part, dtype=np.float64) for part in weights))
        logits = self.net.logits(weights, self.inputs)
        losses = cross_entropies(logits, self.problem.labels)
        right = logits.argmax(axis=1) == self.problem.labels
        row = {f"{name}_accuracy": _mean(right, mask) for name, mask in self.masks.items()}
        row |= {
            "t": t,
            "step": steps,
            "loss": _mean(losses, self.problem.train),
            "test_loss": _mean(losses, self.problem.test),
            "parameter_norm": norm(weights),
            "turn": turn(self.start, weights),
        }
        kernel = self.net.kernel(weights, self.probes)
        alive = bool(kernel.any())
        row["kernel_distance"] = kernel_distance(self.kernel, kernel) if alive else math.nan
        self.rows.append(row)
        return alive

    def columns(self) -> dict[str, Array]:
        return {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}


def _flat(weights: Weights) -> Array:
    return np.concatenate([np.ravel(part) for part in weights]).astype(np.float64)


def _mean(values: NDArray[Any], mask: NDArray[np.bool_]) -> float:
    """The mean of the marked values; not a number where nothing is marked."""
    return float(values[mask].mean()) if mask.any() else math.nan
