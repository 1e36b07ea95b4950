"""A token net on pairs of tokens, as step-by-step methods see it."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.models.token_net import TokenNet
from tacit.precision import double_precision
from tacit.problems.arithmetic import TokenPairs
from tacit.training.task import Task
from tacit.training.tokens.loss import Distinct, TokenLoss, all_pairs, distinct_pairs
from tacit.training.tokens.meter import TokenMeter


class TokenTask(Task):
    """A checked pair of a TokenNet and TokenPairs; the start's dtype is the precision."""

    outside = False
    linear = False

    def __init__(self, who: str, model: Any, problem: TokenPairs) -> None:
        if not isinstance(model, TokenNet) or isinstance(model, type):
            raise ValueError(
                f"{who}: the model must be a net on token pairs, got {type(model).__name__}; use "
                "TokenMLP() or any TokenNet: symmetric, describe(), start() and logits()"
            )
        self.model, self.problem, self.samples = model, problem, problem.samples
        self.start = _floats(who, model.start(problem))
        self.objective = TokenLoss(model)
        self.dtype = _dtype(self.start)
        self.data = all_pairs(problem, self.dtype)
        _logits_fit(who, self)

    def full_data(self) -> Distinct:
        return distinct_pairs(self.model, self.problem, self.dtype)

    def log_unit(self) -> float:
        return self.meter(None).first["log_loss"]

    def smoothness(self) -> float | None:
        return None

    def predictor(self, parameters: Any) -> Array:
        raise ValueError(f"{type(self.model).__name__} has no linear predictor")

    def meter(self, penalty: Any) -> TokenMeter:
        return TokenMeter(self, penalty)

    def describe(self) -> dict[str, Any]:
        problem = self.problem
        described = {"description": problem.description, "recipe": problem.recipe}
        described["fingerprint"] = fingerprint(problem)
        return {"problem": described, "model": self.model.describe()}


def fingerprint(problem: TokenPairs) -> str:
    """A short text that another split, other labels or other pairs would change."""
    parts = [problem.pairs, problem.labels, problem.train]
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]


def _floats(who: str, start: Any) -> Any:
    """The start as NumPy arrays, all of them floating-point numbers."""
    import jax

    start = jax.tree.map(np.asarray, start)
    for part in jax.tree.leaves(start):
        if part.dtype.kind != "f":
            raise ValueError(
                f"{who}: the parameters must be floating-point numbers, got {part.dtype}; give "
                "start() a dtype of float32 or float64"
            )
    if not jax.tree.leaves(start):
        raise ValueError(f"{who}: the net has no parameters; start() must give some arrays")
    return start


def _dtype(start: Any) -> Any:
    import jax

    return np.result_type(*jax.tree.leaves(start))


def _logits_fit(who: str, task: TokenTask) -> None:
    """Traces the net once, so that a wrong shape is told before the run."""
    import jax

    pairs, due = task.data.pairs, (task.samples, task.problem.classes)
    try:
        with double_precision():
            found = jax.eval_shape(task.model.logits, task.start, pairs)
    except TypeError as reason:  # among them: NumPy functions on what JAX traces
        why = str(reason).splitlines()[0].rstrip(".")
        raise ValueError(
            f"{who}: logits must work on JAX arrays as on those of NumPy, got: {why}"
        ) from reason
    if getattr(found, "shape", None) != due:
        raise ValueError(
            f"{who}: logits must have a row per pair and a column per class, {due}, got "
            f"{getattr(found, 'shape', type(found).__name__)}"
        )
