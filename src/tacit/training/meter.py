"""The one meter of all problems: looks at moments of a run and keeps those that are recorded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tacit.lazy import jax
from tacit.training.task import Moment, Numbers, Task


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
        """Numbers that are no worse than the true ones and cost less, ever better; or none."""
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
