"""Sparse recovery by subgradient descent, as the figures of source N run and time it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.figures.registry import Parameters

if TYPE_CHECKING:
    import xarray

    from tacit.bias.slow_flow import SlowFlow
    from tacit.problems.regression import Regression


def recovery_problem(parameters: Parameters) -> Regression:
    """The sparse recovery that the parameters name."""
    from tacit.problems.recovery import sparse_recovery

    names = ("samples", "dimension", "sparsity", "seed", "snr")
    return sparse_recovery(**{name: parameters[name] for name in names})


def truth_of(problem: Regression) -> Array:
    """The truth, which every sparse recovery has."""
    assert problem.truth is not None
    return problem.truth


def l1_run(
    problem: Regression, step: float, beta: float, start: float, record: Iterable[float]
) -> xarray.Dataset:
    """The dataset of N's descent with the l1 penalty, at step 0 and the steps in `record`."""
    from tacit.flows.penalties import AbsoluteSum
    from tacit.flows.subgradient import Subgradient
    from tacit.models.linear import LinearPredictor
    from tacit.records import NumericalError

    steps = sorted({round(k) for k in record})
    method = Subgradient(step, steps[-1], AbsoluteSum(), beta, record=steps)
    path = method.run(LinearPredictor(start), problem)
    if not path.outcome.ok:
        raise NumericalError(f"descent with step {step:g} and beta {beta:g}", path.outcome)
    found: xarray.Dataset = path.dataset.drop_attrs(deep=False).rename(time="record")
    return found


def slow_phase(problem: Regression, start: float) -> SlowFlow:
    """The exact slow path, from the least squares point nearest to `start`, in step beta steps."""
    from tacit.bias.delay import least_squares_limit
    from tacit.bias.slow_flow import slow_flow

    begin = np.full(problem.dimension, start)
    # the point does not depend on the step, which only has to be stable
    safe = 1 / float(np.linalg.norm(problem.X, 2)) ** 2
    return slow_flow(problem.X, least_squares_limit(problem.X, problem.y, safe, begin).point)


def log_steps(last: float, per_decade: int) -> Array:
    """About `per_decade` whole steps a decade from 1 to `last`."""
    count = round(per_decade * math.log10(last)) + 1
    return np.unique(np.round(np.logspace(0, math.log10(last), count)))


def crossing(steps: Array, values: Array, level: float) -> float:
    """The step at which `values` first come down to the level, linear in log(values); else nan."""
    below = np.flatnonzero(values <= level)
    if not len(below):
        return math.nan
    k = int(below[0])
    if k == 0:
        return float(steps[0])
    before, after = np.log(values[k - 1 : k + 1])
    share = (before - math.log(level)) / (before - after)
    return float(steps[k - 1] + share * (steps[k] - steps[k - 1]))


def about(text: str, units: str = "1") -> dict[str, str]:
    """What a variable says of itself."""
    return {"units": units, "long_name": text}


def count(steps: Any) -> str:
    """A number of steps as the figures print it."""
    return f"{float(steps):,.0f}".replace(",", " ")
