"""A model on a problem as steps and flows see it, a moment of training, and the meter of a run."""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.door import Invalid
from penchant.lazy import jax
from penchant.precision import double_precision
from penchant.training.labels import build_dataset

#: called from time to time with the fraction done and a short message
Progress = Callable[[float, str], None]
#: names of numbers that are measured together, and the function that measures them
Measures = dict[tuple[str, ...], Callable[[], Mapping[str, Any]]]


class Moment(NamedTuple):
    """One moment of steps or of a flow, in NumPy arrays; None for what is not computed there."""

    t: float  # the training time; in a flow, the time of its integrator
    state: Any  # what moves: parameters, an array or a pytree of arrays; in some flows duals
    predictions: Any = None
    displacement: Any = None  # of e^(rate t) parameters from the start, while small
    kernel: Any = None  # the tangent kernel
    predictor: Any = None
    dual: Any = None
    log_growth: Any = None  # log of |w+| and |w-| over their start, in two rows
    log_t: Any = None  # where t may be beyond float64, or is not the training time
    smoothed_margin: Any = None
    margins: Any = None
    log_slopes: Any = None  # log |dbeta_i/dw|^2 up to a constant
    oscillation: Any = None  # the standard deviation of every parameter about its average
    sharpness: Any = None  # the largest eigenvalue of the Hessian over 2/learning_rate
    parameters: Any = None  # where `state` is something else
    step: Any = None  # the number of steps taken, where there are steps


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
    """A checked pair of model and problem, which steps and flows share.

    Flows train samples alone (SampleTask), of which they use more than a step does: predictions
    and their derivatives in NumPy.
    """

    model: Any
    problem: Any
    start: Any  # the parameters, an array or a pytree of arrays
    objective: Any  # hashable: the loss as a function of data and parameters
    data: Any  # a pytree of arrays, one row per sample each
    samples: int
    outside = False  # whether compiled steps go one by one, which convolutions need
    linear = False  # whether there is a linear predictor
    keeps = False  # whether all recorded moments are kept, and `columns` measures them at the end
    penalty_names: tuple[str, ...] = ("penalty",)  # what `penalized` measures
    words: Mapping[str, str] = {}  # labels of numbers that have another meaning here

    @abc.abstractmethod
    def measures(self, moment: Moment) -> Measures:
        """The numbers of a moment, among them `loss` and `log_loss`, and how to measure them."""

    @abc.abstractmethod
    def penalized(self, penalty: Any, moment: Moment) -> dict[str, float]:
        """The penalty and the measurements that belong to it."""

    @property
    def begin(self) -> Moment:
        """The start, before any step."""
        return Moment(0.0, self.start, log_t=-math.inf, step=0)

    @functools.cached_property
    def first(self) -> Numbers:
        """The numbers of the start."""
        return Numbers(self.measures(self.begin))

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

    def columns(
        self, moments: Sequence[Moment], recorded: dict[str, Array], rate: float
    ) -> dict[str, Array]:
        """What was `recorded`, first axis time, and what follows from moments that were kept."""
        return recorded

    def dataset(
        self, moments: Sequence[Moment], recorded: dict[str, Array], rate: float = 0.0
    ) -> Any:
        """A run as a labelled dataset, without attributes; `rate` is the decay of a flow."""
        final = moments[-1].state if moments else None
        columns = self.columns(moments, recorded, rate)
        return build_dataset(self.problem, columns, final, self.words)

    def refuse_overflow(self) -> None:
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

    def shaped(self, penalty: Any) -> Any:
        """The penalty as it acts on these parameters, or a ValueError where it cannot."""
        return penalty


def traced(complaint: str, function: Callable[..., Any], *given: Any) -> Any:
    """The shapes of what `function` returns; a ValueError where JAX cannot trace it."""
    try:
        with double_precision():
            return jax.tree.map(lambda leaf: leaf.shape, jax.eval_shape(function, *given))
    except TypeError as reason:  # among them: NumPy functions on what JAX traces
        why = str(reason).splitlines()[0].rstrip(".")
        raise Invalid(f"{complaint}, got: {why}") from reason


class Meter:
    """The measurements of one run; `first` has the numbers of the start."""

    def __init__(self, task: Task, penalty: Any) -> None:
        self.task, self.penalty = task, penalty
        self.records: list[dict[str, Any]] = []
        self.moments: list[Moment] = []  # of the records, where the task keeps them
        self.last: int | None = None  # the step of the last record
        self.first = task.first
        if penalty is not None:
            self.first = self._numbers(task.begin)

    def look(self, moment: Moment) -> Numbers:
        """The numbers of a moment; those of the start are measured once."""
        if moment.step == 0 and _same(moment.state, self.task.start):
            return self.first
        return self._numbers(moment)

    def bounds(self, moment: Moment) -> Iterator[Numbers]:
        """Successively tighter bounds on the numbers that are cheaper to compute; or none."""
        for known in self.task.bounds(moment.state):
            yield self._numbers(moment, known)

    def keep(self, moment: Moment, numbers: Numbers) -> None:
        """Adds a moment to the records, unless it is the last of them."""
        if moment.step != self.last:
            self.records.append(self.task.record(moment, numbers))
            self.moments += [moment] if self.task.keeps else []
        self.last = moment.step

    def dataset(self) -> Any:
        """The records as a labelled dataset, without attributes."""
        names, rows = self.records[0], self.records
        recorded = {name: np.array([row[name] for row in rows]) for name in names}
        return self.task.dataset(self.moments, recorded)

    def _numbers(self, moment: Moment, known: Mapping[str, float] | None = None) -> Numbers:
        measures = self.task.measures(moment)
        numbers = Numbers(measures, known)

        def penalized() -> dict[str, float]:
            terms = self.task.penalized(self.penalty, moment)
            return terms | {"objective": numbers["loss"] + terms["penalty"]}

        if self.penalty is not None:
            measures[(*self.task.penalty_names, "objective")] = penalized
        return numbers


def _same(first: Any, second: Any) -> bool:
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)
