"""Studies that list their runs one by one, the curves of a run, and N's MLP on modular addition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from penchant import L1, L2
from penchant.lab import TRAJECTORY, Array, Dataset, Sizes, sized
from penchant.measures import grokking
from penchant.regularizers import Nuclear, PerTensor

Runs = Sequence[Mapping[str, Any]]


def arguments(runs: Runs, **given: Any) -> dict[str, Any]:
    """The arguments and the grid of a study whose cells are these runs; `given` holds for all.

    A run without a seed of its own has the seed 0, which a shift moves like the others.
    """
    table = {"given": {"seed": 0, **given}, "runs": list(runs)}
    return {"arguments": table, "grid": {"run": list(range(len(runs)))}}


def dims_of(curves: Sequence[str]) -> dict[str, list[str]]:
    """The dimension of the curves of a run."""
    return {f"{TRAJECTORY}{name}": ["time"] for name in curves}


def curves_of(run: Dataset, names: Sequence[str], first: int = 0) -> dict[str, Array]:
    """The curves of a run as a cell returns them, from the record `first` on."""
    return {f"{TRAJECTORY}{name}": run[name].values[first:].astype(float) for name in names}


def plain(run: Dataset, after: float = -1.0) -> Dataset:
    """The run with plain names of its curves and only the records after the step `after`.

    This removes the NaN that fill up short runs; a logarithmic axis needs the records after step 0.
    """
    curves = [str(name) for name in run.data_vars if str(name).startswith(TRAJECTORY)]
    run = run.rename({name: name.removeprefix(TRAJECTORY) for name in curves})
    return run.isel(time=np.flatnonzero(run.step.values > after))


def runs_of(dataset: Dataset, after: float = -1.0) -> list[Dataset]:
    """Every run of the dataset by itself, as `plain` returns it."""
    return [plain(dataset.isel(run=number), after) for number in range(dataset.sizes["run"])]


LEVEL = 0.99  # the validation accuracy that counts as t2
MOST = 0.9  # the same where chance would decide when the last pairs are learned
NAMES = {
    "l1": r"$\ell_1$",
    "l2^2": r"squared $\ell_2$",
    "l2": r"$\ell_2$",
    "nuclear": "nuclear norm",
}
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
    "twins": "share of validation pairs $(a, b)$ whose mirror $(b, a)$ is in training",
    f"{TRAJECTORY}train_accuracy": "training accuracy",
    f"{TRAJECTORY}test_accuracy": "validation accuracy",
    f"{TRAJECTORY}novel_accuracy": "validation accuracy without mirrored pairs",
}
# the defaults of a run; `scale` multiplies the embeddings of the start, and with `until` it stops
# before its last step when the training pairs and this share of the validation pairs are right
USUAL: dict[str, Any] = {"penalty": "l2^2", "variant": "source", "scale": 1.0}
USUAL |= {"per_decade": 60, "decoupled": False, "until": None}


def cell(run: int, *, runs: Runs, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the run, its curves from the first step on, and the share of the twins."""
    from penchant import Adam, Steps, train
    from penchant.models import TokenMLP
    from penchant.problems import modular_arithmetic
    from penchant.record import LogSpaced
    from penchant.stop import Accuracy

    settings = {**USUAL, **given, **runs[run]}
    seed, until, width = settings.pop("seed"), settings.pop("until"), settings["width"]
    goals = [Accuracy(train=1.0, test=until)] if until else []
    problem = modular_arithmetic(
        settings["modulus"], operation="+", fraction=settings["fraction"], seed=seed
    )
    path = train(
        TokenMLP(width, width, variant=settings["variant"], scale=settings["scale"], seed=seed),
        problem,
        Adam(settings["learning_rate"], decoupled=settings["decoupled"]),
        penalty=settings["beta"] * PENALTIES[settings["penalty"]],
        stop=[Steps(settings["steps"]), *goals],
        record=LogSpaced(settings["per_decade"]),
        throw=not goals,  # the curves say whether a goal was reached
    )
    twins = problem.twins.sum() / problem.test.sum()
    return {**settings, "split": seed, "twins": twins, **curves_of(path.dataset, CURVES, first=1)}


def token_study(name: str, title: str, quick: Any, printed: Any) -> Sizes:
    """The study of such runs; each size is what `arguments` returns."""
    return sized(
        name,
        title=title,
        function=cell,
        dims=DIMS,
        labels=LABELS,
        draw={"x": "run", "colour": "beta"},
        **quick,
        printed=printed,
    )


def task(run: Dataset) -> str:
    """The task and the net of a run, in words."""
    return (
        f"addition mod {int(run.modulus)}, {float(run.fraction):.0%} of the pairs, embedding and"
        f" hidden size {int(run.width)}, N's MLP"
    )


def memorized(run: Dataset) -> float:
    """t1: the first recorded step with all training pairs right; NaN if there is none."""
    return first(run.step.values, run.train_accuracy.values, 1.0)


def generalized(run: Dataset, level: float = LEVEL) -> float:
    """t2: the first recorded step with a validation accuracy of at least the level, or NaN."""
    return first(run.step.values, run.test_accuracy.values, level)


def first(steps: Array, curve: Array, level: float) -> float:
    there = np.flatnonzero(curve >= level)
    return float(steps[there[0]]) if len(there) else math.nan


def later(run: Dataset, than: Dataset, time: Callable[[Any], float] = generalized) -> float:
    """t2 (or another time) over that of another run; NaN if one of them does not reach it."""
    return time(run) / time(than)


def delayed(rows: Iterable[Sequence[Any]], time: Callable[[Any], float] = generalized) -> Any:
    """t2 (or another time) of every run over that of the run before it in its row."""
    pairs = [pair for row in rows for pair in itertools.pairwise(row)]
    return np.array([later(run, before, time) for before, run in pairs])


def without_grok(runs: Iterable[Dataset], level: float = LEVEL) -> int:
    """The number of runs that `penchant.measures.grokking` does not classify as a grok."""
    return sum(
        grokking(run.step.values, run.train_accuracy.values, run.test_accuracy.values, level).kind
        != "grok"
        for run in runs
    )


def without_penalty(run: Dataset) -> str:
    """The finding on the run without a penalty."""
    return (
        f"without a penalty the validation accuracy is {float(run.test_accuracy[-1]):.3f}"
        f" after {int(run.step[-1])} steps"
    )


def since(run: Dataset, name: str, level: float = LEVEL) -> Array:
    """The norm `name` from t2 on; empty if t2 is not reached."""
    return np.asarray(run[f"norm_{name}"].values[run.step.values >= generalized(run, level)])


def change(run: Dataset, name: str, level: float = LEVEL) -> float:
    """The last value of the norm over that at t2."""
    norm = since(run, name, level)
    return float(norm[-1] / norm[0]) if len(norm) else math.nan
