"""The interface of a model on a problem that drivers use, and the meter that measures it."""

from __future__ import annotations

import abc
import functools
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.lazy import jax
from tacit.precision import double_precision
from tacit.training.labels import labelled, with_dims

#: called from time to time with the fraction done and a short message
Progress = Callable[[float, str], None]
#: names of numbers that are measured together, and the function that measures them
Measures = dict[tuple[str, ...], Callable[[], Mapping[str, Any]]]


class Moment(NamedTuple):
    """One moment of training as the driver sees it, in NumPy arrays."""

    step: int
    t: float
    log_t: float
    parameters: Any


class Numbers(Mapping[str, Any]):
    """The numbers of one moment, each measured when first used, unless it is `known`."""

    def __init__(self, measures: Measures, known: Mapping[str, float] | None = None) -> None:
        self.measures, self.known = measures, dict(known or {})

    def __getitem__(self, name: str) -> Any:
        if name not in self.known:
            if name not in self:
                raise KeyError(name)
            measure = next(m for names, m in self.measures.items() if name in names)
            with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
                self.known |= measure()
        return self.known[name]

    def __contains__(self, name: object) -> bool:
        return any(name in names for names in self.measures)

    def __iter__(self) -> Iterator[str]:
        return (name for names in self.measures for name in names)

    def __len__(self) -> int:
        return sum(map(len, self.measures))


class Task(abc.ABC):
    """A checked pair of model and problem."""

    model: Any
    problem: Any
    start: Any  # the parameters, an array or a pytree of arrays
    objective: Any  # hashable: the loss as a function of data and parameters
    data: Any  # a pytree of arrays, one row per sample each
    samples: int
    outside = False  # whether compiled steps go one by one, which convolutions need
    linear = False  # whether there is a linear predictor
    penalty_names: tuple[str, ...] = ("penalty",)  # what `penalized` measures
    words: Mapping[str, str] = {}  # labels of numbers that have another meaning here

    @abc.abstractmethod
    def measures(self, moment: Moment) -> Measures:
        """The numbers of a moment, among them `loss` and `log_loss`, and how to measure them."""

    @abc.abstractmethod
    def penalized(self, penalty: Any, moment: Moment) -> dict[str, float]:
        """The penalty and the measurements that belong to it."""

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """The problem and the model as plain JSON values."""

    @functools.cached_property
    def first(self) -> Numbers:
        """The numbers of the start."""
        return Numbers(self.measures(Moment(0, 0.0, -math.inf, self.start)))

    def log_unit(self) -> float:
        """log of the loss that relative levels refer to."""
        return float(self.first["log_loss"])

    def bounds(self, parameters: Any) -> Iterator[Mapping[str, float]]:
        """Successively tighter bounds on the numbers that are cheaper to compute; or none."""
        yield from ()

    def stalled(self, numbers: Mapping[str, float]) -> str | None:
        """Why nothing but decay can move the parameters any more, in words; None if they move."""
        return None

    def record(self, moment: Moment, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """What is recorded of a moment."""
        return {"t": moment.t, "step": moment.step, "log_t": moment.log_t, **numbers}

    def dataset(self, records: Sequence[dict[str, Any]]) -> Any:
        """The records as a labelled dataset, without attributes."""
        return labelled(self.variables(records), self.words)

    def variables(self, records: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The columns of the records, with their dimensions."""
        return with_dims({name: np.array([row[name] for row in records]) for name in records[0]})

    def refuse_overflow(self, who: str) -> None:
        """A ValueError if the gradients of the start are beyond floating-point numbers."""
        return

    def trained(self, parameters: Any) -> Any:
        """Those of all parameters of the model that training moves, as the methods see them."""
        return parameters

    def whole(self, parameters: Any) -> Any:
        """All parameters of the model from those that training moves."""
        return parameters

    def full_data(self) -> Any:
        """`data`, or a shorter form of them for a run that sees all samples at every step."""
        return self.data

    def smoothness(self) -> float | None:
        """The largest eigenvalue of the Hessian of a quadratic loss; None for other losses."""
        return None

    def predictor(self, parameters: Any) -> Array:
        """The linear predictor, where the model is `linear`."""
        raise ValueError(f"{type(self.model).__name__} has no linear predictor")

    def shaped(self, who: str, penalty: Any) -> Any:
        """The penalty as it acts on these parameters, or a ValueError where it cannot."""
        return penalty


def traced(complaint: str, function: Callable[..., Any], *given: Any) -> Any:
    """The shapes of what `function` returns; a ValueError where JAX cannot trace it."""
    try:
        with double_precision():
            return jax.tree.map(lambda leaf: leaf.shape, jax.eval_shape(function, *given))
    except TypeError as reason:  # among them: NumPy functions on what JAX traces
        why = str(reason).splitlines()[0].rstrip(".")
        raise ValueError(f"{complaint}, got: {why}") from reason


def described(model: Any, problem: Any, *arrays: Any) -> dict[str, Any]:
    """A net and its problem as plain JSON values, with a digest of `arrays`."""
    digest = hashlib.sha256()
    for part in arrays:
        digest.update(f"{part.dtype} {part.shape}".encode())
        digest.update(np.ascontiguousarray(part).data)
    about = {"description": problem.description, "recipe": problem.recipe}
    about["fingerprint"] = digest.hexdigest()[:16]
    return {"problem": about, "model": model.describe()}


class Meter:
    """The measurements of one run; `first` has the numbers of the start."""

    def __init__(self, task: Task, penalty: Any) -> None:
        self.task, self.penalty = task, penalty
        self.records: list[dict[str, Any]] = []
        self.last: int | None = None  # the step of the last record
        self.first = task.first
        if penalty is not None:
            self.first = self._numbers(Moment(0, 0.0, -math.inf, task.start))

    def look(self, moment: Moment) -> Numbers:
        """The numbers of a moment; those of the start are measured once."""
        if moment.step == 0 and _same(moment.parameters, self.task.start):
            return self.first
        return self._numbers(moment)

    def bounds(self, moment: Moment) -> Iterator[Numbers]:
        """Successively tighter bounds on the numbers that are cheaper to compute; or none."""
        for known in self.task.bounds(moment.parameters):
            yield self._numbers(moment, known)

    def keep(self, moment: Moment, numbers: Numbers) -> None:
        """Adds a moment to the records, unless it is the last of them."""
        if moment.step != self.last:
            self.records.append(self.task.record(moment, numbers))
        self.last = moment.step

    def dataset(self) -> Any:
        """The records as a labelled dataset, without attributes."""
        return self.task.dataset(self.records)

    def _numbers(self, moment: Moment, known: Mapping[str, float] | None = None) -> Numbers:
        measures = self.task.measures(moment)
        numbers = Numbers(measures, known)

        def penalized() -> dict[str, float]:
            found = self.task.penalized(self.penalty, moment)
            return found | {"objective": numbers["loss"] + found["penalty"]}

        if self.penalty is not None:
            measures[(*self.task.penalty_names, "objective")] = penalized
        return numbers


def _same(one: Any, other: Any) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)
