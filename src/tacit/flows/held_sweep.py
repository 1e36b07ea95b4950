"""Descent at many held norms at once: where training ends as a function of the norm."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array, integer, one_of, positive
from tacit.flows.held_norm import stretched
from tacit.flows.held_step import HeldUpdate
from tacit.flows.penalized_task import Job, job
from tacit.flows.projections import SPHERES
from tacit.models.model import Model
from tacit.precision import double_precision
from tacit.records import Kind, Outcome, Record

WHO = "held_sweep"
LABELS = {
    "size": "held norm of the parameters",
    "loss": "training loss g at the end, over that of the zero predictor",
    "fall": "what the loss lost in the second half of the steps",
    "parameters": "parameters at the end",
}


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class HeldSweep(Record):
    """Where descent at each held size ended; rows of `parameters` belong to `sizes`.

    `loss` is g at the end and `fall` what it lost in the second half of the steps, both over the
    g of the zero predictor (over 1 on a Classification, whose g is a mean). The outcome of a size
    is solved if its fall is at most the tolerance, and budget spent if more steps would matter.
    """

    norm: str
    sizes: Array
    loss: Array
    fall: Array
    parameters: Array
    outcomes: tuple[Outcome, ...] = dataclasses.field(repr=False)

    @property
    def ok(self) -> bool:
        return all(outcome.ok for outcome in self.outcomes)

    @property
    def dataset(self) -> Any:
        """Everything over the held size, with labels."""
        import xarray

        columns = {"loss": self.loss, "fall": self.fall}
        variables: dict[str, Any] = {name: ("size", values) for name, values in columns.items()}
        variables["parameters"] = ("size", "parameter"), self.parameters
        dataset = xarray.Dataset(variables, {"size": self.sizes}, {"norm": self.norm})
        for name, variable in dataset.variables.items():
            variable.attrs = {"units": "1", "long_name": LABELS[str(name)]}
        return dataset


def held_sweep(
    model: Model,
    problem: Any,
    sizes: ArrayLike,
    norm: str = "l2",
    step: float = 1.0,
    steps: int = 2000,
    start: ArrayLike | None = None,
    tolerance: float = 1e-4,
) -> HeldSweep:
    """Where `HeldNorm` with these settings ends, for all `sizes` in one compiled run.

    `start` replaces the model's own; a table has one row per size. It is stretched to each size.
    """
    made = job(WHO, model, problem, None, 0.0)
    one_of(WHO, "norm", norm, SPHERES)
    held = finite_array(WHO, "sizes", sizes, ndim=1)
    if held.min() <= 0:
        raise ValueError(f"{WHO}: sizes must be > 0, got {held.min():g}")
    step, steps = positive(WHO, "step", step), integer(WHO, "steps", steps, least=2)
    begins = _starts(made, start, norm, held)
    with double_precision():
        run = _compiled(HeldUpdate(made.slope, norm))
        ends = run(made.data, held, begins, step, steps // 2, steps)
    parameters, loss, halfway = (np.asarray(part) for part in ends)
    scale = 1.0 if made.mean else float(np.sum(np.asarray(made.problem.y) ** 2)) / 2
    scale = scale or 1.0  # labels that are all zero have no scale
    loss, fall = loss / scale, (halfway - loss) / scale
    outcomes = tuple(_outcome(*pair, tolerance) for pair in zip(loss, fall, strict=True))
    return HeldSweep(norm, held, loss, fall, parameters, outcomes)


def _starts(made: Job, start: ArrayLike | None, norm: str, sizes: Array) -> Array:
    """One row per size, of that norm."""
    given, shape = made.start if start is None else np.asarray(start), (len(sizes), made.start.size)
    if given.shape not in (shape, shape[1:]):
        raise ValueError(
            f"{WHO}: start must have {shape[1]} parameters, or a row of them for each of the "
            f"{shape[0]} sizes, got shape {given.shape}"
        )
    rows = finite_array(WHO, "start", np.broadcast_to(given, shape), ndim=2)
    return np.array([stretched(WHO, row, norm, w) for row, w in zip(rows, sizes, strict=True)])


def _outcome(loss: float, fall: float, tolerance: float) -> Outcome:
    if not np.isfinite(loss):
        return Outcome(Kind.DIVERGED, f"the loss of the start is {loss}; take a smaller size")
    if fall <= tolerance:
        return Outcome(Kind.SOLVED, f"loss {loss:.3g}, at rest")
    sentence = f"loss {loss:.3g} fell by {fall:.2g} in the second half of the steps; raise steps"
    return Outcome(Kind.BUDGET_SPENT, sentence)


@functools.lru_cache(maxsize=32)
def _compiled(update: HeldUpdate) -> Callable[..., Any]:
    """(data, sizes, starts, step, half, all steps) -> (theta, g, g at half) for every size."""
    import jax

    def one(data: Any, size: Any, start: Any, step: Any, half: Any, steps: Any) -> Any:
        def advance(k: Any, state: Any) -> Any:
            return update({"size": size}, data, k, state)

        middle = jax.lax.fori_loop(0, half, advance, update.begin(data, start, step))
        end = jax.lax.fori_loop(half, steps, advance, middle)
        return end[0], end[1], middle[1]

    return jax.jit(jax.vmap(one, in_axes=(None, 0, 0, None, None, None)))
