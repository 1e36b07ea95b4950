"""Runs of the MLP of N on modular addition that several claims share."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.measures.grokking import Grokking, grokking
from tacit.models.token_mlp import TokenMLP
from tacit.problems.operations import modular_arithmetic
from tacit.records import NumericalError
from tacit.regularizers.norms import L1, L2
from tacit.regularizers.spectral import Nuclear
from tacit.regularizers.tensors import PerTensor
from tacit.training.descent.methods import Adam
from tacit.training.record import LogSpaced
from tacit.training.stop import Accuracy, Steps
from tacit.training.train import train

LEVEL = 0.99  # the validation accuracy that counts as t2
NAMES = {"l1": "l1", "l2^2": "squared l2", "l2": "l2", "nuclear": "nuclear norm"}
PENALTIES = {
    "l1": L1(),
    "l2^2": L2(),  # N writes beta |theta|_2^2 without a half
    "l2": PerTensor(L2(squared=False)),
    "l2 over all": L2(squared=False),
    "nuclear": Nuclear(),
}
OWN = {"l1": "l1", "l2^2": "l2", "l2": "l2", "nuclear": "nuclear"}  # the norm of a penalty


@dataclasses.dataclass(frozen=True)
class Task:
    """Addition mod `modulus` from a fraction of the pairs, for a net of one width."""

    modulus: int
    fraction: float
    width: int
    seed: int = 0

    def __str__(self) -> str:
        return (
            f"addition mod {self.modulus}, {self.fraction:.0%} of the pairs,"
            f" embedding and hidden size {self.width}"
        )


@dataclasses.dataclass(frozen=True)
class Training:
    """Adam with one penalty; `until` is the validation accuracy that ends it."""

    penalty: str
    beta: float
    step: float
    steps: int
    decoupled: bool = False
    until: float | None = None
    points_per_decade: int = 40


PRINTED = Task(97, 0.4, 64)  # N


@functools.lru_cache(maxsize=64)
def token_run(task: Task, training: Training) -> Any:
    """The dataset of one run, without the record before the first step."""
    problem = modular_arithmetic(
        task.modulus, operation="+", fraction=task.fraction, seed=task.seed
    )
    net = TokenMLP(task.width, task.width, seed=task.seed)
    budget, until = Steps(training.steps), training.until
    path = train(
        net,
        problem,
        Adam(training.step, decoupled=training.decoupled),
        penalty=weighted(training.penalty, training.beta),
        stop=budget if until is None else [budget, Accuracy(test=until)],
        record=LogSpaced(training.points_per_decade),
    )
    if training.until is None and not path.outcome.ok:
        raise NumericalError("token_run", path.outcome)
    return path.dataset.isel(time=slice(1, None))


def weighted(name: str, beta: float) -> Any:
    """beta times the penalty of this name; None where beta is 0."""
    return beta * PENALTIES[name] if beta else None


def memorized(run: Any) -> float:
    """t1: the first recorded step at which every training pair is right; inf if none."""
    return first(run.step.values, run.train_accuracy.values, 1.0)


def generalized(run: Any, level: float = LEVEL) -> float:
    """t2: the first recorded step at which the validation accuracy is at the level; inf if none."""
    return first(run.step.values, run.test_accuracy.values, level)


def later(run: Any, than: Any, time: Callable[[Any], float] = generalized) -> float:
    """t2 (or another time) over that of another run; nan if one of them does not reach it."""
    late, early = time(run), time(than)
    return late / early if math.isfinite(late) and math.isfinite(early) else math.nan


def first(steps: Array, curve: Array, level: float) -> float:
    there = np.flatnonzero(curve >= level)
    return float(steps[there[0]]) if len(there) else math.inf


def judged(run: Any) -> Grokking:
    """What `tacit.grokking` says of the accuracies."""
    steps = run.step.values.astype(float)
    return grokking(steps, run.train_accuracy.values, run.test_accuracy.values, LEVEL)


def since(run: Any, name: str) -> Array:
    """The norm `name` from t2 on; empty if t2 is not reached."""
    return np.asarray(run[f"norm_{name}"].values[run.step.values >= generalized(run)])


def change(run: Any, name: str) -> float:
    """The last value of the norm over that at t2."""
    norm = since(run, name)
    return float(norm[-1] / norm[0]) if len(norm) else math.nan


def spread(run: Any, place: int) -> float:
    """(l1 norm / l2 norm)^2, the number of entries if all that are not zero were of one size."""
    l1, l2 = since(run, "l1"), since(run, "l2")
    return float((l1[place] / l2[place]) ** 2) if len(l1) else math.nan
