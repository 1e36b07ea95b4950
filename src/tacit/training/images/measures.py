"""What is measured along the training of a net on images, outside the compiled steps."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.models.image_layers import Params, number_of
from tacit.training.task import Meter, Moment

Task = Any  # an ImageTask, whose module imports this one
LABELS = {
    "t": ("1", "training time, the sum of the learning rates"),
    "step": ("steps", "number of steps taken"),
    "log_t": ("log(1)", "natural logarithm of the training time"),
    "loss": ("1", "mean cross-entropy over all training images"),
    "log_loss": ("log(1)", "natural logarithm of the training loss"),
    "train_accuracy": ("1", "accuracy over all training images"),
    "test_loss": ("1", "mean cross-entropy over all test images"),
    "test_accuracy": ("1", "accuracy over all test images"),
    "parameter_norm": ("1", "Euclidean norm of all parameters"),
    "moved": ("1", "distance of all parameters from their start, relative to its norm"),
    "layer_norm": ("1", "Euclidean norm of the parameters of a layer"),
    "penalty": ("1", "the penalty"),
    "objective": ("1", "the loss plus the penalty"),
    "layer": ("1", "layer of weights"),
}
GROUPS = {
    "train": ("loss", "log_loss", "train_accuracy"),
    "test": ("test_loss", "test_accuracy"),
    "sizes": ("parameter_norm", "moved"),
    "penalized": ("penalty", "objective"),
}


class ImageNumbers(Mapping[str, Any]):
    """The numbers of one moment; what nobody looks at is not measured.

    `known` ones take the place of measured ones.
    """

    def __init__(
        self,
        task: Task,
        parameters: Params,
        penalty: Any,
        known: Mapping[str, float] | None = None,
    ) -> None:
        self.task, self.parameters, self.of_penalty = task, parameters, penalty
        self.known = dict(known or {})

    def __getitem__(self, name: str) -> Any:
        if name not in self.known:
            if name not in self:
                raise KeyError(name)
            group = next(group for group, names in GROUPS.items() if name in names)
            self.known |= getattr(self, group)
        return self.known[name]

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __iter__(self) -> Iterator[str]:
        for group, names in GROUPS.items():
            if group != "penalized" or self.of_penalty is not None:
                yield from names

    def __len__(self) -> int:
        return len(list(iter(self)))

    @functools.cached_property
    def whole(self) -> Params:
        return self.task.whole(self.parameters)

    @property
    def train(self) -> dict[str, float]:
        log_loss, right = _means(self.task.judged(self.task.data, self.parameters))
        return {"log_loss": log_loss, "loss": _exp(log_loss), "train_accuracy": right}

    @property
    def test(self) -> dict[str, float]:
        log_loss, right = _means(self.task.judged(self.task.test, self.whole))
        return {"test_loss": _exp(log_loss), "test_accuracy": right}

    @property
    def sizes(self) -> dict[str, float]:
        return sizes(self.task.model.start(self.task.problem), self.whole)

    @property
    def penalized(self) -> dict[str, float]:
        value = float(self.of_penalty.value(self.parameters))
        return {"penalty": value, "objective": self["loss"] + value}


class ImageMeter(Meter):
    """Moments of one run."""

    def __init__(self, task: Task, penalty: Any) -> None:
        self.task, self.penalty = task, penalty
        self.first = task.first if penalty is None else ImageNumbers(task, task.start, penalty)
        self.rows: list[dict[str, Any]] = []

    def look(self, moment: Moment) -> ImageNumbers:
        if moment.step == 0 and _same(moment.parameters, self.first.parameters):
            return self.first  # measured already
        return ImageNumbers(self.task, moment.parameters, self.penalty)

    def bounds(self, moment: Moment) -> Iterator[ImageNumbers]:
        """Numbers no worse than the true ones, from ever more of the training images."""
        task, lost, wrong = self.task, -math.inf, 0
        for logs, right in task.judged(task.data, moment.parameters):
            lost = _log_sum(np.append(logs, lost))
            wrong += int((~right).sum())
            log_loss = lost - math.log(task.samples)
            known = {
                "log_loss": log_loss,
                "loss": _exp(log_loss),
                "train_accuracy": (task.samples - wrong) / task.samples,
            }
            yield ImageNumbers(task, moment.parameters, self.penalty, known)

    def keep(self, moment: Moment, numbers: Mapping[str, Any]) -> None:
        about = {"t": moment.t, "step": moment.step, "log_t": moment.log_t}
        norms = layer_norms(self.task.whole(moment.parameters))
        self.rows.append(about | dict(numbers) | {"layer_norm": list(norms.values())})

    def dataset(self) -> Any:
        import xarray

        columns = {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}
        layers = sorted(map(number_of, self.task.start))
        variables = {
            name: (("time", "layer")[: values.ndim], values, _about(name))
            for name, values in columns.items()
        }
        coordinates = {name: variables.pop(name) for name in ("t", "step")}
        coordinates["layer"] = ("layer",), np.array(layers), _about("layer")
        return xarray.Dataset(variables, coordinates)


def _about(name: str) -> dict[str, str]:
    return dict(zip(("units", "long_name"), LABELS[name], strict=True))


def _means(blocks: Iterator[tuple[NDArray[Any], NDArray[Any]]]) -> tuple[float, float]:
    """The logarithm of the mean loss, and the share of right answers."""
    logs, right = (np.concatenate(found) for found in zip(*blocks, strict=True))
    return _log_sum(logs) - math.log(len(logs)), float(right.mean())


def _log_sum(logs: NDArray[Any]) -> float:
    """The logarithm of a sum of which the logarithms of the terms are given."""
    top = float(np.max(logs))
    if not math.isfinite(top):
        return top
    return top + math.log(np.exp(logs - top).sum())


def _exp(log: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.exp(log))


def _same(one: Params, other: Params) -> bool:
    return all(np.array_equal(part, other[name]) for name, part in one.items())


def sizes(first: Params, params: Params) -> dict[str, float]:
    """The norm of all weights, and how far they have moved."""
    moved = [_norm(params[name] - first[name]) for name in first]
    begun = [_norm(part) for part in first.values()]
    return {
        "parameter_norm": float(np.linalg.norm(list(layer_norms(params).values()))),
        "moved": float(np.linalg.norm(moved) / np.linalg.norm(begun)),
    }


def layer_norms(params: Params) -> dict[str, float]:
    """The norms of the weights of every layer, first layer first."""
    return {name: _norm(params[name]) for name in sorted(params, key=number_of)}


def _norm(part: Any) -> float:
    return float(np.linalg.norm(np.ravel(part).astype(np.float64)))
