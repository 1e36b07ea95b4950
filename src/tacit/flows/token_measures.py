"""What is measured along the training of a token net, in float64 and outside compiled steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.flows.class_measures import cross_entropies
from tacit.models.token_net import TokenNet, present, with_parts
from tacit.problems.arithmetic import Mask, TokenPairs
from tacit.regularizers.norms import L1, L2
from tacit.regularizers.spectral import Nuclear
from tacit.regularizers.tensors import PerTensor

LABELS = {
    "t": ("1", "training time, the learning rate times the number of steps"),
    "step": ("steps", "number of steps taken"),
    "loss": ("1", "mean cross-entropy over the training pairs"),
    "log_loss": ("log(1)", "natural logarithm of the training loss"),
    "test_loss": ("1", "mean cross-entropy over all validation pairs"),
    "penalty": ("1", "penalty h of the parameters"),
    "objective": ("1", "training loss plus beta times the penalty"),
    "train_accuracy": ("1", "accuracy over the training pairs"),
    "test_accuracy": ("1", "accuracy over all validation pairs"),
    "twin_accuracy": ("1", "accuracy over validation pairs whose mirror is in training"),
    "novel_accuracy": ("1", "accuracy over validation pairs whose mirror is not in training"),
    "norm_l1": ("1", "l1 norm of all parameters"),
    "norm_l2": ("1", "Euclidean norm of all parameters"),
    "norm_nuclear": ("1", "sum of the nuclear norms of the parameter tensors"),
}


class TokenGauge:
    """Rows of measurements of one run."""

    def __init__(self, net: TokenNet, problem: TokenPairs, penalty: str, beta: float):
        self.net, self.problem, self.penalty, self.beta = net, problem, penalty, beta
        self.masks = {"train": problem.train, "test": problem.test, "twin": problem.twins,
                      "novel": problem.novel}  # fmt: skip
        self.rows: list[dict[str, float]] = []

    def read(self, t: float, steps: int, tensors: Any) -> dict[str, float]:
        """The new row of measurements."""
        parts = {name: np.asarray(x, np.float64) for name, x in present(tensors).items()}
        logits = np.asarray(self.net.logits(with_parts(tensors, parts), self.problem.pairs))
        losses = cross_entropies(logits, self.problem.labels)
        right = logits.argmax(axis=1) == self.problem.labels
        row = {"t": t, "step": steps, "loss": _mean(losses, self.problem.train),
               "test_loss": _mean(losses, self.problem.test)}  # fmt: skip
        row |= {f"{name}_accuracy": _mean(right, mask) for name, mask in self.masks.items()}
        sizes = norms(parts)
        row |= {f"norm_{name}": size for name, size in sizes.items()}
        row["penalty"] = penalty_value(self.penalty, parts, sizes)
        row["objective"] = row["loss"] + self.beta * row["penalty"]
        self.rows.append(row)
        return row

    def recall(self, dataset: Any) -> None:
        """Puts the rows of an earlier dataset before those to come."""
        columns = {name: dataset[name].values.tolist() for name in LABELS if name != "log_loss"}
        self.rows += [dict(zip(columns, row, strict=True))
                      for row in zip(*columns.values(), strict=True)]  # fmt: skip

    def dataset(self) -> Any:
        """All rows as a labelled dataset."""
        import xarray

        columns = {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}
        with np.errstate(divide="ignore"):
            columns["log_loss"] = np.log(columns["loss"])
        variables = {
            name: ("time", columns[name], {"units": unit, "long_name": text})
            for name, (unit, text) in LABELS.items()
        }
        coordinates = {name: variables.pop(name) for name in ("t", "step")}
        return xarray.Dataset(variables, coordinates)


def norms(tensors: dict[str, Any]) -> dict[str, float]:
    """The l1, l2 and nuclear norms of NumPy tensors: l1 and l2 over all, nuclear as a sum."""
    kinds = {"l1": L1(), "l2": L2(squared=False), "nuclear": Nuclear()}
    return {name: float(norm.value(tensors)) for name, norm in kinds.items()}


def penalty_value(name: str, tensors: dict[str, Any], sizes: dict[str, float]) -> float:
    """h of NumPy tensors, from the norms already known where that is possible."""
    if name == "l2":
        return float(PerTensor(L2(squared=False)).value(tensors))
    known = {"l1": sizes["l1"], "l2^2": sizes["l2"] ** 2, "l2 over all": sizes["l2"],
             "nuclear": sizes["nuclear"]}  # fmt: skip
    return known[name]


def _mean(values: Array | Mask, mask: Mask) -> float:
    """The mean of the marked values; not a number where nothing is marked."""
    return float(values[mask].mean()) if mask.any() else math.nan
