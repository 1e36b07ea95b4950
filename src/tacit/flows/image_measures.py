"""What is measured along the training of a net on images, outside the compiled steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.flows.image_steps import Model, State
from tacit.flows.image_task import ImageTask, Part, block_size, block_starts, looker
from tacit.models.image_layers import Params, in_order
from tacit.training.tokens.meter import cross_entropies

LABELS = {
    "train_loss": "mean cross-entropy over all training images",
    "train_accuracy": "accuracy over all training images",
    "test_loss": "mean cross-entropy over all test images",
    "test_accuracy": "accuracy over all test images",
    "norm": "Euclidean norm of all weights",
    "moved": "distance of all weights from their start, relative to the norm of the start",
    "layer_norm": "Euclidean norm of the weights of a layer",
    "twin_train_loss": "mean cross-entropy of the linearized twin over all training images",
    "twin_train_accuracy": "accuracy of the linearized twin over all training images",
    "twin_test_loss": "mean cross-entropy of the linearized twin over all test images",
    "twin_test_accuracy": "accuracy of the linearized twin over all test images",
}
Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Goal:
    """The training accuracy and the training loss that end a run; None where there is none."""

    accuracy: float | None
    loss: float | None

    @property
    def asked(self) -> bool:
        return self.accuracy is not None or self.loss is not None

    def met(self, accuracy: float, loss: float) -> bool:
        enough = self.accuracy is None or accuracy >= self.accuracy
        return self.asked and enough and (self.loss is None or loss <= self.loss)

    def __str__(self) -> str:
        parts = {"until": self.accuracy, "until_loss": self.loss}
        return " and ".join(f"{k} = {v:g}" for k, v in parts.items() if v is not None)


class ImageGauge:
    """Rows of measurements of one run."""

    def __init__(self, task: ImageTask, racers: dict[str, Model]):
        self.task, self.racers = task, racers
        self.first = {name: np.asarray(part) for name, part in task.whole(task.origin).items()}
        self.rows: list[Row] = []

    def read(self, epoch: int, state: State) -> Row:
        """The new row of measurements."""
        row: Row = {"epoch": epoch}
        for name, model in self.racers.items():
            narrow = state[name][0], self.task.origin
            wide = self.task.wide(narrow[0]), self.task.wide(narrow[1])
            looks = {"train": (narrow, self.task.train), "test": (wide, self.task.test)}
            for which, (weights, part) in looks.items():
                pieces = list(self._looks(model, weights, part))
                losses, right = (np.concatenate(found) for found in zip(*pieces, strict=True))
                about = which if name == "net" else f"{name}_{which}"
                row[f"{about}_loss"] = float(losses.mean())
                row[f"{about}_accuracy"] = float(right.mean())
        row |= sizes(self.first, self.task.whole(state["net"][0]))
        self.rows.append(row)
        return row

    def meets(self, goal: Goal, state: State) -> bool:
        """Whether the net meets the goal on all training images.

        It ends at the first block of images by which that has become impossible: with more
        mistakes, or more loss, than all of them may have together.
        """
        count = len(self.task.train.labels)
        lost, wrong = 0.0, 0
        weights = state["net"][0], self.task.origin
        for losses, right in self._looks(self.racers["net"], weights, self.task.train):
            lost, wrong = lost + float(losses.sum()), wrong + int((~right).sum())
            if not goal.met(1 - wrong / count, lost / count):
                return False
        return goal.asked

    def _looks(
        self, model: Model, weights: tuple[Params, Params], part: Part
    ) -> Iterator[tuple[Array, NDArray[np.bool_]]]:
        """Losses in float64 and right answers of the images, block by block."""
        size, done = block_size(len(part.labels)), 0
        labels, offsets = np.asarray(part.labels, np.int64), np.asarray(part.offsets)
        for begin in block_starts(len(labels)):
            found = looker()(model, size, weights, part.inputs, begin)
            new = slice(done, begin + size)
            outputs = (np.asarray(found) - offsets[begin : begin + size])[done - begin :]
            losses = cross_entropies(outputs.astype(np.float64), labels[new])
            yield losses, outputs.argmax(axis=1) == labels[new]
            done = begin + size

    def recall(self, dataset: Any, kept: set[int]) -> None:
        """Puts the rows of an earlier run first, its last one only if it is among `kept`."""
        columns = {name: variable.values.tolist() for name, variable in dataset.variables.items()
                   if name != "layer"}  # fmt: skip
        rows = [dict(zip(columns, row, strict=True))
                for row in zip(*columns.values(), strict=True)]  # fmt: skip
        self.rows += [row for row in rows if row is not rows[-1] or row["epoch"] in kept]

    def dataset(self) -> Any:
        """All rows as a labelled dataset."""
        return labelled({name: np.array([row[name] for row in self.rows]) for name in self.rows[0]})


def sizes(first: dict[str, NDArray[Any]], params: dict[str, NDArray[Any]]) -> Row:
    """Norms of the weights, all of them and layer by layer, and how far they have moved."""
    norms = [np.linalg.norm(part.ravel().astype(np.float64)) for part in in_order(params).values()]
    moved = [np.linalg.norm((params[name] - first[name]).ravel().astype(np.float64))
             for name in first]  # fmt: skip
    begun = [np.linalg.norm(part.ravel().astype(np.float64)) for part in first.values()]
    away = float(np.linalg.norm(moved) / np.linalg.norm(begun))
    return {"norm": float(np.linalg.norm(norms)), "moved": away,
            "layer_norm": [float(norm) for norm in norms]}  # fmt: skip


def labelled(columns: dict[str, NDArray[Any]]) -> Any:
    """The dataset of the recorded columns over epochs, with units and names."""
    import xarray

    about = {"units": "epochs", "long_name": "number of passes over the training images"}
    layers = np.arange(1, columns["layer_norm"].shape[1] + 1)
    variables = {
        name: (("epoch", "layer")[: columns[name].ndim], columns[name],
               {"units": "1", "long_name": text})
        for name, text in LABELS.items() if name in columns
    }  # fmt: skip
    return xarray.Dataset(
        variables,
        {"epoch": ("epoch", columns["epoch"], about),
         "layer": ("layer", layers, {"units": "1", "long_name": "layer of weights"})},
    )  # fmt: skip
