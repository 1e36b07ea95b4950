"""What is measured along the training of a token net, in float64 and outside compiled steps."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.models.tangent import kernel_distance
from tacit.precision import double_precision
from tacit.problems.arithmetic import Integers, Mask
from tacit.training.task import Meter, Moment

if TYPE_CHECKING:
    from tacit.training.tokens.task import TokenTask

PROBES = 32  # pairs whose tangent kernel is followed
LABELS = {
    "t": ("1", "training time, the sum of the learning rates"),
    "log_t": ("log(1)", "natural logarithm of the training time"),
    "step": ("steps", "number of steps taken"),
    "loss": ("1", "mean cross-entropy over the training pairs"),
    "log_loss": ("log(1)", "natural logarithm of the training loss"),
    "test_loss": ("1", "mean cross-entropy over all test pairs"),
    "penalty": ("1", "penalty of the parameters, with its weight"),
    "objective": ("1", "training loss plus penalty"),
    "train_accuracy": ("1", "accuracy over the training pairs"),
    "test_accuracy": ("1", "accuracy over all test pairs"),
    "twin_accuracy": ("1", "accuracy over test pairs whose mirror is in training"),
    "novel_accuracy": ("1", "accuracy over test pairs whose mirror is not in training"),
    "norm_l1": ("1", "l1 norm of all parameters"),
    "norm_l2": ("1", "Euclidean norm of all parameters"),
    "norm_nuclear": ("1", "sum of the nuclear norms of the parameter tensors"),
    "parameter_norm": ("1", "Euclidean norm of all parameters"),
    "turn": ("degrees", "angle between the parameters and their start"),
    "kernel_distance": ("1", "1 - cosine between the tangent kernel and that of the start"),
}


class TokenMeter(Meter):
    """The measurements of one run."""

    def __init__(self, task: TokenTask, penalty: Any) -> None:
        self.task, self.penalty = task, penalty
        self.net: Any = task.model
        problem = task.problem
        self.masks = {
            "train": problem.train,
            "test": problem.test,
            "twin": problem.twins,
            "novel": problem.novel,
        }
        self.start = flat(task.start)
        self.probes, self.kernel = None, None
        if hasattr(self.net, "kernel"):
            chosen = np.random.default_rng(0).permutation(len(problem.pairs))[:PROBES]
            self.probes = problem.pairs[np.sort(chosen)]
            self.kernel = self.net.kernel(doubled(task.start), self.probes)
        self.rows: list[dict[str, float]] = []
        self.first = self.look(Moment(0, 0.0, -math.inf, task.start))

    def look(self, moment: Moment) -> Mapping[str, float]:
        problem, parameters = self.task.problem, doubled(moment.parameters)
        logits = np.asarray(self.net.logits(parameters, problem.pairs))
        losses = cross_entropies(logits, problem.labels)
        right = logits.argmax(axis=1) == problem.labels
        loss = _mean(losses, problem.train)
        found = {
            "loss": loss,
            "log_loss": math.log(loss) if loss > 0 else -math.inf,
            "test_loss": _mean(losses, problem.test),
        }
        found |= {f"{name}_accuracy": _mean(right, mask) for name, mask in self.masks.items()}
        found |= {f"norm_{name}": size for name, size in norms(parameters).items()}
        found |= {
            "parameter_norm": found["norm_l2"],
            "turn": turn(self.start, flat(parameters)),
        }
        if self.kernel is not None:
            kernel = self.net.kernel(parameters, self.probes)
            alive = kernel.any()
            found["kernel_distance"] = kernel_distance(self.kernel, kernel) if alive else math.nan
        if self.penalty is not None:
            with double_precision():
                found["penalty"] = float(_value(self.penalty)(parameters))
            found["objective"] = loss + found["penalty"]
        return found

    def keep(self, moment: Moment, numbers: Mapping[str, float]) -> None:
        times = {"t": moment.t, "log_t": moment.log_t, "step": moment.step}
        self.rows.append({**times, **numbers})

    def stalled(self, moment: Moment) -> str | None:
        if self.kernel is None or not self.kernel.any():
            return None
        if self.net.kernel(doubled(moment.parameters), self.probes).any():
            return None
        return "no hidden unit is active any more"

    def dataset(self) -> Any:
        import xarray

        variables = {
            name: ("time", np.array([row[name] for row in self.rows]), _about(name))
            for name in LABELS
            if name in self.rows[0]
        }
        coordinates = {name: variables.pop(name) for name in ("t", "step")}
        return xarray.Dataset(variables, coordinates)


def cross_entropies(logits: Array, labels: Integers) -> Array:
    """-log of the probability of its label, for every row of logits."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    own = np.take_along_axis(shifted, labels[:, None], axis=1)[:, 0]
    with np.errstate(under="ignore"):
        return np.log(np.exp(shifted).sum(axis=1)) - own


def flat(parameters: Any) -> Array:
    """All parameters as one vector in float64."""
    import jax

    parts = [np.ravel(part) for part in jax.tree.leaves(parameters)]
    return np.concatenate(parts).astype(np.float64)


def doubled(parameters: Any) -> Any:
    """The parameters as NumPy arrays in float64."""
    import jax

    return jax.tree.map(lambda part: np.asarray(part, np.float64), parameters)


def norms(parameters: Any) -> dict[str, float]:
    """The l1, l2 and nuclear norms of NumPy tensors: l1 and l2 over all, nuclear as a sum."""
    import jax

    together = flat(parameters)
    nuclear = sum(_nuclear(part) for part in jax.tree.leaves(parameters))
    return {
        "l1": float(np.abs(together).sum()),
        "l2": float(np.linalg.norm(together)),
        "nuclear": float(nuclear),
    }


def turn(start: Array, end: Array) -> float:
    """The angle between two vectors in degrees; not a number if one is zero."""
    sizes = np.linalg.norm(start), np.linalg.norm(end)
    if not min(sizes) > 0:
        return math.nan
    first, second = start / sizes[0], end / sizes[1]
    # unlike an arc cosine this is exact for small angles
    half = np.arctan2(np.linalg.norm(first - second), np.linalg.norm(first + second))
    return float(np.degrees(2 * half))


@functools.lru_cache(maxsize=32)
def _value(penalty: Any) -> Callable[[Any], Any]:
    """The compiled value of a penalty."""
    import jax

    return jax.jit(penalty.value)


def _about(name: str) -> dict[str, str]:
    units, text = LABELS[name]
    return {"units": units, "long_name": text}


def _nuclear(part: Array) -> float:
    """The sum of the singular values; a vector is a matrix with one column."""
    if part.ndim < 2:
        return float(np.linalg.norm(part))
    return float(np.linalg.svd(part.reshape(len(part), -1), compute_uv=False).sum())


def _mean(values: Array | Mask, mask: Mask) -> float:
    """The mean of the marked values; not a number where nothing is marked."""
    return float(values[mask].mean()) if mask.any() else math.nan
