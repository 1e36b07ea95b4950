"""A token net on pairs of tokens, for step-by-step methods."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.door import Invalid
from penchant.lazy import jax
from penchant.measures.distances import kernel_distance, turn
from penchant.models.tokens.net import TokenNet
from penchant.precision import double_precision
from penchant.problems.arithmetic import Integers, Mask, TokenPairs
from penchant.training.cross_entropy import Pairs, TokenLoss, all_pairs, distinct_pairs
from penchant.training.descent.compiled import Weighted
from penchant.training.task import Measures, Moment, Task, traced

PROBES = 32  # pairs whose tangent kernel is followed
NORMS = {
    "norm_l1": r"$\ell_1$ norm of all parameters",
    "norm_l2": "Euclidean norm of all parameters",
    "norm_nuclear": "sum of the nuclear norms of the parameter tensors",
}


class TokenTask(Task):
    """A TokenNet on TokenPairs, in the precision of the start; measured in float64."""

    words = NORMS

    def __init__(self, model: Any, problem: TokenPairs) -> None:
        if not isinstance(model, TokenNet) or isinstance(model, type):
            raise Invalid(
                f"the model must be a net on token pairs, got {type(model).__name__}; use "
                "TokenMLP() or any TokenNet: symmetric, start() and logits()"
            )
        self.model, self.problem, self.samples = model, problem, problem.samples
        self.start = _floats(model.start(problem))
        self.objective = TokenLoss(model)
        self.dtype = np.result_type(*jax.tree.leaves(self.start))
        self.data = all_pairs(problem, self.dtype)
        _logits_fit(self)

    def full_data(self) -> Pairs:
        return distinct_pairs(self.model, self.problem, self.dtype)

    def measures(self, moment: Moment) -> Measures:
        parameters = doubled(moment.state)
        accuracies = [f"{name}_accuracy" for name in self._masks]
        measures: Measures = {
            ("loss", "log_loss", "test_loss", *accuracies): lambda: self._judged(parameters),
            (*NORMS, "parameter_norm"): lambda: self._norms(parameters),
            ("turn",): lambda: {"turn": float(turn(flat(self.start), flat(parameters)))},
        }
        if self._kernel is not None:
            measures[("kernel_distance",)] = lambda: self._distance(parameters)
        return measures

    def penalized(self, penalty: Any, moment: Moment) -> dict[str, float]:
        weights, terms = zip(*penalty.weighted, strict=True)
        with double_precision():
            return {"penalty": float(_penalty_value(terms)(weights, doubled(moment.state)))}

    def stalled(self, numbers: Mapping[str, float]) -> str | None:
        if self._kernel is None or not self._kernel.any():
            return None
        dead = math.isnan(numbers["kernel_distance"])
        return "no hidden unit is active any more" if dead else None

    @functools.cached_property
    def _masks(self) -> dict[str, Mask]:
        problem = self.problem
        parts = problem.train, problem.test, problem.twins, problem.novel
        return dict(zip(("train", "test", "twin", "novel"), parts, strict=True))

    @functools.cached_property
    def _probes(self) -> Integers:
        chosen = np.random.default_rng(0).permutation(len(self.problem.pairs))[:PROBES]
        return self.problem.pairs[np.sort(chosen)]

    @functools.cached_property
    def _kernel(self) -> Any:
        if not hasattr(self.model, "kernel"):
            return None
        return self.model.kernel(doubled(self.start), self._probes)

    def _judged(self, parameters: Any) -> dict[str, float]:
        problem = self.problem
        logits = np.asarray(self.model.logits(parameters, problem.pairs))
        losses = cross_entropies(logits, problem.labels)
        right = logits.argmax(axis=1) == problem.labels
        loss = _mean(losses, problem.train)
        numbers = {"loss": loss, "log_loss": math.log(loss) if loss > 0 else -math.inf}
        numbers["test_loss"] = _mean(losses, problem.test)
        return numbers | {f"{name}_accuracy": _mean(right, m) for name, m in self._masks.items()}

    def _norms(self, parameters: Any) -> dict[str, float]:
        lengths = norms(parameters)
        return lengths | {"parameter_norm": lengths["norm_l2"]}

    def _distance(self, parameters: Any) -> dict[str, float]:
        kernel = self.model.kernel(parameters, self._probes)
        alive = kernel.any()  # a kernel of zeros has no direction
        return {"kernel_distance": kernel_distance(self._kernel, kernel) if alive else math.nan}


def cross_entropies(logits: Array, labels: Integers) -> Array:
    """-log of the probability of its label, for every row of logits."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    own = np.take_along_axis(shifted, labels[:, None], axis=1)[:, 0]
    return np.log(np.exp(shifted).sum(axis=1)) - own


def flat(parameters: Any) -> Array:
    parts = [np.ravel(part) for part in jax.tree.leaves(parameters)]
    return np.concatenate(parts).astype(np.float64)


def doubled(parameters: Any) -> Any:
    return jax.tree.map(lambda part: np.asarray(part, np.float64), parameters)


def norms(parameters: Any) -> dict[str, float]:
    """The l1 and l2 norms of all parameters, and the sum of the nuclear norms of the tensors."""
    together, nuclear = flat(parameters), sum(map(_nuclear, jax.tree.leaves(parameters)))
    values = np.abs(together).sum(), np.linalg.norm(together), nuclear
    return dict(zip(NORMS, map(float, values), strict=True))


def _nuclear(part: Array) -> float:
    if part.ndim < 2:
        return float(np.linalg.norm(part))
    return float(np.linalg.svd(part.reshape(len(part), -1), compute_uv=False).sum())


@functools.lru_cache(maxsize=32)
def _penalty_value(terms: tuple[Any, ...]) -> Callable[..., Any]:
    """The compiled sum of these terms; runs that differ in their weights alone share it."""

    def value(weights: Any, parameters: Any) -> Any:
        return Weighted(weights, terms).value(parameters)

    return jax.jit(value)


def _mean(values: Array | Mask, mask: Mask) -> float:
    return float(values[mask].mean()) if mask.any() else math.nan


def _floats(start: Any) -> Any:
    start = jax.tree.map(np.asarray, start)
    for part in jax.tree.leaves(start):
        if part.dtype.kind != "f":
            raise Invalid(
                f"the parameters must be floating-point numbers, got {part.dtype}; give "
                "start() a dtype of float32 or float64"
            )
    if not jax.tree.leaves(start):
        raise Invalid("the net has no parameters; start() must give some arrays")
    return start


def _logits_fit(task: TokenTask) -> None:
    complaint = "logits must work on JAX arrays as on NumPy arrays"
    shape = traced(complaint, task.model.logits, task.start, task.data.pairs)
    due = task.samples, task.problem.classes
    if shape != due:
        raise Invalid(f"logits must have a row per pair and a column per class, {due}, got {shape}")
