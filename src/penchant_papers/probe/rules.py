"""The rule of the watch for naming a regime, plausible wrong ones, and how often they err."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.watch import DISTANCE_LIMITS, MISSED_LIMITS, REGIMES, RegimeNumbers, judge_regime

if TYPE_CHECKING:
    import xarray

Rule = Callable[[Any], str]  # of the numbers of one run, by their names
BANDS = (0.0, 0.1, 0.25, 0.4, 0.6, math.inf)  # of the distance of the twin, in the tables


def numbers_of(run: Any) -> RegimeNumbers:
    """The numbers by which the watch names a run."""
    return RegimeNumbers(*(float(run[name]) for name in RegimeNumbers._fields))


def of_the_watch(run: Any) -> str:
    """The centred kernel, the linearized net up to a factor, and the gain."""
    return judge_regime(numbers_of(run)).kind


def uncentred(run: Any) -> str:
    """The kernel as it is; the linearized net too, but not under decay."""
    missed = math.nan if run["decay"] else float(run["missed"])
    if run["uncentred"] > 0.25:
        return "rich"
    return "leaving" if run["uncentred"] >= 0.01 or missed >= 0.2 else "kernel"


def without_factor(run: Any) -> str:
    """The same, but the linearized net is taken as it is, start and size included."""
    look = RegimeNumbers(
        *(float(run[name]) for name in ("kernel_distance", "missed", "kernel_gain"))
    )
    return judge_regime(look).kind


def kernel_alone(run: Any) -> str:
    """The centred kernel, and nothing else."""
    return _divided(run["kernel_distance"], *DISTANCE_LIMITS)


def function_alone(run: Any) -> str:
    """The linearized net up to a factor, and nothing else."""
    return _divided(run["linearized_error"], *MISSED_LIMITS)


def _divided(value: float, low: float, high: float) -> str:
    return "kernel" if value < low else "rich" if value > high else "leaving"


RULES: dict[str, Rule] = {
    "the watch": of_the_watch,
    "the kernel alone": kernel_alone,
    "the linearized net alone": function_alone,
    "no factor": without_factor,
    "the kernel not centred": uncentred,
}


@dataclasses.dataclass(frozen=True)
class Called:
    """What a rule called runs: `kinds`, and the distances of their twins."""

    kinds: list[str]
    twins: list[float]

    def furthest(self, kind: str) -> float:
        """The largest distance of a twin among runs called `kind`."""
        return max(self._twins(kind), default=math.nan)

    def nearest(self, kind: str) -> float:
        """The smallest."""
        return min(self._twins(kind), default=math.nan)

    def within(self, limit: float, *kinds: str) -> tuple[int, int]:
        """(runs with a twin up to this distance, all runs) among those called one of `kinds`."""
        twins = [twin for kind in kinds for twin in self._twins(kind)]
        return sum(twin <= limit for twin in twins), len(twins)

    def count(self, kind: str, low: float, high: float) -> tuple[int, int]:
        """(runs called `kind`, all runs) among those with a twin between the two distances."""
        kinds = [k for k, twin in zip(self.kinds, self.twins, strict=True) if low <= twin < high]
        return kinds.count(kind), len(kinds)

    def table(self) -> list[list[int]]:
        """The number of runs, a row for every band of distances and a column for every kind."""
        pairs = list(zip(self.kinds, self.twins, strict=True))
        return [
            [sum(low <= twin < high and k == kind for k, twin in pairs) for kind in REGIMES]
            for low, high in itertools.pairwise(BANDS)
        ]

    def _twins(self, kind: str) -> list[float]:
        return [twin for k, twin in zip(self.kinds, self.twins, strict=True) if k == kind]


def called(runs: list[dict[str, Any]], rule: Rule) -> Called:
    """What a rule calls the runs."""
    return Called([rule(run) for run in runs], [float(run["twin_distance"]) for run in runs])


def runs_of(dataset: xarray.Dataset, seeds: list[int]) -> Iterator[dict[str, Any]]:
    """The numbers of every run with one of the seeds, its setting and its seed among them."""
    numbers = [str(name) for name, v in dataset.data_vars.items() if v.dtype.kind == "f"]
    for seed in seeds:
        at = dataset.sel(seed=seed)
        columns = {name: at[name].values for name in numbers}
        for place, setting in enumerate(np.asarray(at["setting"].values).tolist()):
            row = {name: float(column[place]) for name, column in columns.items()}
            yield {"setting": setting, "seed": seed, **row}
