"""Descent with the norm of the parameters held at a given size."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.arguments import Array, integer, one_of, positive
from tacit.flows.flow import Progress
from tacit.flows.held_step import HeldUpdate
from tacit.flows.penalized_march import march
from tacit.flows.penalized_path import PenalizedPath, labelled, levels
from tacit.flows.penalized_task import job
from tacit.flows.schedule import asked_steps, points_per_decade, schedule
from tacit.models.model import Model
from tacit.precision import double_precision
from tacit.records import Record
from tacit.threads import on_one_blas_thread
from tacit.training.descent.projections import SPHERES, length

WHO = "HeldNorm"


@dataclasses.dataclass(frozen=True, repr=False)
class HeldNorm(Record):
    """Projected descent on the sphere |theta| = size, in the norm "l2" or "l1".

    Every step goes to the nearest point of the sphere after theta - step G, with G the gradient
    of g = (1/2) sum_n r_n^2 (a mean on a Classification), as in `Subgradient`. `step` is the
    first length tried; a step that would not lower g enough is halved and one that does grows by
    1.3, so g never rises, and t counts steps because their lengths differ. The run begins at the
    model's start, stretched to `size`. Records are log-spaced, or at the steps in `record`;
    `until` is that of `Subgradient`.
    """

    size: float
    norm: str = "l2"
    step: float = 1.0
    steps: int = 2000
    points_per_decade: int = 20
    record: Sequence[int] | None = None
    until: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        one_of(WHO, "norm", self.norm, SPHERES)
        steps = integer(WHO, "steps", self.steps, least=1)
        points_per_decade(WHO, self.points_per_decade)
        fields = {
            "size": positive(WHO, "size", self.size),
            "step": positive(WHO, "step", self.step),
            "steps": steps,
            "record": asked_steps(WHO, self.record, steps),
            "until": levels(WHO, self.until),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def describe(self) -> dict[str, Any]:
        return {"flow": WHO, **dataclasses.asdict(self)}

    @on_one_blas_thread
    def run(self, model: Model, problem: Any, progress: Progress | None = None) -> PenalizedPath:
        """Train `model` on a Regression, a matrix problem or a Classification."""
        made = job(WHO, model, problem, None, 0.0)
        until = levels(WHO, self.until, problem)
        update = HeldUpdate(made.slope, self.norm)
        start = stretched(WHO, made.start, self.norm, self.size)
        with double_precision():
            state = _begin(update)(made.data, start, np.float64(self.step))
        steps = schedule(self.record, self.steps, self.points_per_decade)
        numbers = {"size": self.size}
        rows, outcome = march(WHO, made, update, numbers, state, steps, until, progress)
        path = labelled(made, 1.0, self.describe(), outcome, rows)
        path.dataset.t.attrs |= {"units": "steps", "long_name": "number of steps tried"}
        return path


def stretched(who: str, start: Array, norm: str, size: float) -> Array:
    """`start` times what gives it the norm `size`."""
    own = float(length(norm, start))
    if own == 0:
        raise ValueError(
            f"{who}: the start must not be zero, it has no direction to stretch to norm {size:g}; "
            "give the model a start such as LinearPredictor(1.0)"
        )
    return np.asarray(start * (size / own))


@functools.lru_cache(maxsize=32)
def _begin(update: HeldUpdate) -> Any:
    import jax

    return jax.jit(update.begin)
