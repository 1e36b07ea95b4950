"""Studies whose cells are runs listed one by one; and such runs of N's MLP on modular addition."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.lazy import Dataset
from tacit.measures.grokking import Grokking, grokking
from tacit.regularizers.norms import L1, L2
from tacit.regularizers.penalty import PerTensor
from tacit.regularizers.spectral import Nuclear
from tacit.studies.compute import TRAJECTORY

Runs = Sequence[Mapping[str, Any]]


def arguments(runs: Runs, **given: Any) -> dict[str, Any]:
    """The part of a study's size that its runs make up."""
    table = {"given": given, "runs": list(runs)}
    return {"arguments": table, "grid": {"run": list(range(len(runs)))}}


def dims_of(curves: Sequence[str]) -> dict[str, list[str]]:
    """The dimension of the curves of a run."""
    return {f"{TRAJECTORY}{name}": ["time"] for name in curves}


def runs_of(dataset: Dataset) -> list[Dataset]:
    """Every run by itself, with plain names of its curves and without what fills them up."""
    plain = {
        name: str(name).removeprefix(TRAJECTORY)
        for name in dataset.data_vars
        if str(name).startswith(TRAJECTORY)
    }
    found = []
    for number in range(dataset.sizes["run"]):
        run = dataset.isel(run=number).rename(plain)
        found.append(run.isel(time=np.flatnonzero(np.isfinite(run.step.values))))
    return found


LEVEL = 0.99  # the validation accuracy that counts as t2
NAMES = {"l1": "l1", "l2^2": "squared l2", "l2": "l2", "nuclear": "nuclear norm"}
PENALTIES = {
    "l1": L1(),
    "l2^2": L2(),  # N writes beta |theta|_2^2 without a half
    "l2": PerTensor(L2(squared=False)),
    "nuclear": Nuclear(),
}
OWN = {"l1": "l1", "l2^2": "l2", "l2": "l2", "nuclear": "nuclear"}  # the norm of a penalty
CURVES = (
    "step",
    "train_accuracy",
    "test_accuracy",
    "novel_accuracy",
    "loss",
    "test_loss",
    "norm_l1",
    "norm_l2",
    "norm_nuclear",
)
DIMS = dims_of(CURVES)
LABELS = {
    "run": "number of the run",
    "split": "seed of split and start",
    "beta": "strength of the penalty",
    "learning_rate": "learning rate of Adam",
    "twins": "share of validation pairs (a, b) whose mirror (b, a) is in training",
    f"{TRAJECTORY}train_accuracy": "training accuracy",
    f"{TRAJECTORY}test_accuracy": "validation accuracy",
    f"{TRAJECTORY}novel_accuracy": "validation accuracy without mirrored pairs",
}
# of every run that says nothing else; `scale` multiplies the embeddings of the start
USUAL: dict[str, Any] = {"seed": 0, "penalty": "l2^2", "variant": "source", "scale": 1.0}
USUAL |= {"per_decade": 60, "decoupled": False}


def cell(run: int, *, runs: Runs, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was run, its curves from the first step on, and the share of the twins."""
    from tacit.models.tokens.mlp import TokenMLP
    from tacit.problems.operations import modular_arithmetic
    from tacit.records import NumericalError
    from tacit.training.descent.methods import Adam
    from tacit.training.record import LogSpaced
    from tacit.training.stop import Steps
    from tacit.training.train import train

    one = {**USUAL, **given, **runs[run]}
    seed, width = one.pop("seed"), one["width"]
    problem = modular_arithmetic(one["modulus"], operation="+", fraction=one["fraction"], seed=seed)
    path = train(
        TokenMLP(width, width, variant=one["variant"], scale=one["scale"], seed=seed),
        problem,
        Adam(one["learning_rate"], decoupled=one["decoupled"]),
        penalty=one["beta"] * PENALTIES[one["penalty"]],
        stop=Steps(one["steps"]),
        record=LogSpaced(one["per_decade"]),
    )
    if not path.outcome.ok:
        raise NumericalError("addition", path.outcome)
    curves = {f"{TRAJECTORY}{name}": path.dataset[name].values[1:] for name in CURVES}
    return {**one, "split": seed, "twins": problem.twins.sum() / problem.test.sum(), **curves}


def memorized(run: Dataset) -> float:
    """t1: the first recorded step at which every training pair is right; NaN if none."""
    return first(run.step.values, run.train_accuracy.values, 1.0)


def generalized(run: Dataset, level: float = LEVEL) -> float:
    """t2: the first recorded step at which the validation accuracy is at the level; NaN if none."""
    return first(run.step.values, run.test_accuracy.values, level)


def first(steps: Array, curve: Array, level: float) -> float:
    there = np.flatnonzero(curve >= level)
    return float(steps[there[0]]) if len(there) else math.nan


def later(run: Dataset, than: Dataset, time: Callable[[Any], float] = generalized) -> float:
    """t2 (or another time) over that of another run; NaN if one of them does not reach it."""
    return time(run) / time(than)


def judged(run: Dataset) -> Grokking:
    """What `tacit.grokking` says of the accuracies."""
    return grokking(run.step.values, run.train_accuracy.values, run.test_accuracy.values, LEVEL)


def since(run: Dataset, name: str) -> Array:
    """The norm `name` from t2 on; empty if t2 is not reached."""
    return np.asarray(run[f"norm_{name}"].values[run.step.values >= generalized(run)])


def change(run: Dataset, name: str) -> float:
    """The last value of the norm over that at t2."""
    norm = since(run, name)
    return float(norm[-1] / norm[0]) if len(norm) else math.nan
