"""Plain gradient descent with a fixed step, compiled between the recorded steps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tacit.arguments import Array, integer, positive, real
from tacit.flows.decay import decay_rate
from tacit.flows.flow import Flow, Problem, Progress, decayed, within_float64
from tacit.flows.path import labelled
from tacit.flows.schedule import asked_steps, points_per_decade, schedule
from tacit.models.model import Model
from tacit.precision import double_precision
from tacit.records import Kind, Outcome, Record
from tacit.threads import on_one_blas_thread
from tacit.training.exact.loss import SquaredLoss, finite
from tacit.training.exact.task import Moment, Task, task
from tacit.training.inputs import inputs_of, outputs

WHO = "GradientDescent"


@dataclasses.dataclass(frozen=True, repr=False)
class GradientDescent(Record, Flow):
    """w <- w - step * grad L(w), `steps` times or until the loss is below its target.

    `loss` is relative to the loss of the zero predictor, sum y^2, and on a Classification to that
    of the start; 0 takes all the steps. Records are log-spaced, or at the steps given in `record`.
    The time of step k is t = k * step, so that paths of descent and of flow share an axis.
    """

    step: float
    steps: int
    loss: float = 0.0
    points_per_decade: int = 20
    record: Sequence[int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", positive(WHO, "step", self.step))
        object.__setattr__(self, "steps", integer(WHO, "steps", self.steps, least=1))
        points_per_decade(WHO, self.points_per_decade)
        if real(WHO, "loss", self.loss, rule="a finite number >= 0") < 0:
            raise ValueError(f"{WHO}: loss must be >= 0, got {self.loss}")
        record = asked_steps(WHO, self.record, self.steps)
        object.__setattr__(self, "record", record)

    def describe(self) -> dict[str, Any]:
        return {"flow": WHO, **dataclasses.asdict(self)}

    @on_one_blas_thread
    @within_float64
    def run(
        self, model: Model, problem: Problem, progress: Progress | None = None, test: Any = None
    ) -> Any:
        """A Path of a separable model, a TangentPath of any other, with the loss of `test`."""
        return self._run(model, problem, 0.0, progress, test)

    def run_decayed(
        self,
        model: Model,
        problem: Problem,
        rate: float,
        progress: Progress | None = None,
        test: Any = None,
    ) -> Any:
        """w <- (1 - step * rate) w - step * grad L(w)."""
        return self._run(model, problem, decay_rate(WHO, rate), progress, test)

    def _run(
        self, model: Model, problem: Problem, rate: float, progress: Progress | None, test: Any
    ) -> Any:
        job = task(WHO, model, problem, test)
        scale = _scale(job)
        rows, outcome = [(0, job.start)], None
        with double_precision():
            descend = _compiled(job, self.step, rate, self.loss * scale)
            for k in schedule(self.record, self.steps, self.points_per_decade)[1:]:
                taken, loss, weights = descend(rows[-1][0], k, rows[-1][1])
                if not (math.isfinite(loss) and np.isfinite(weights).all()):
                    outcome = self._diverged(rows[-1][0], taken)
                    break
                if taken > rows[-1][0]:
                    rows.append((taken, weights))
                if progress is not None:
                    progress(k / self.steps, f"step {taken} of {self.steps}")
                if loss <= self.loss * scale:
                    sentence = f"loss {loss:.3g} after {taken} steps"
                    outcome = Outcome(Kind.SOLVED, sentence)
                    break
        return self._label(job, rate, rows, outcome or self._ended(loss))

    def _diverged(self, good: int, bad: int) -> Outcome:
        sentence = (
            f"not finite between steps {good} and {bad}; take a step smaller than {self.step:g}"
        )
        return Outcome(Kind.DIVERGED, sentence)

    def _ended(self, loss: float) -> Outcome:
        if self.loss == 0:
            return Outcome(Kind.SOLVED, f"took all {self.steps} steps, loss {loss:.3g}")
        sentence = f"{self.steps} steps ended at loss {loss:.3g}, above the target; raise steps"
        return Outcome(Kind.BUDGET_SPENT, sentence)

    def _label(
        self, job: Task, rate: float, rows: list[tuple[int, Array]], outcome: Outcome
    ) -> Any:
        described = decayed(self, rate) if rate else self.describe()
        moments = [Moment(k * self.step, w, job.samples.predict(w)) for k, w in rows]
        steps = {"step": np.array([k for k, _ in rows])}
        return labelled(job, rate, described, outcome, moments, steps)


def _scale(job: Task) -> float:
    """The loss that the target is relative to."""
    with np.errstate(over="ignore", under="ignore"):
        predictions = job.samples.predict(job.start)
        held = finite(job.loss, predictions)
    if not held:
        raise ValueError(
            f"{WHO}: the gradients of this start are beyond float64 (its largest prediction is "
            f"{np.abs(predictions).max():.3g}); take a smaller start"
        )
    return math.exp(job.loss.log_unit(predictions))


def _compiled(
    job: Task, step: float, rate: float, target: float
) -> Callable[[int, int, Array], tuple[int, float, Array]]:
    """A function (from step, to step, parameters) -> (step reached, loss, parameters).

    It stops early at the target, and at the first loss that is not finite.
    """
    import jax
    import jax.numpy as jnp

    inputs: Any = jnp.asarray(inputs_of(job.model, job.problem))
    y: Any = jnp.asarray(job.problem.y)
    kept = 1 - step * rate

    def loss(weights: Any) -> Any:
        found = outputs(job.model, weights, inputs)
        if isinstance(job.loss, SquaredLoss):
            return jnp.sum((found - y) ** 2)
        if job.loss.name == "exp":
            return jnp.mean(jnp.exp(-y * found))
        return jnp.mean(jnp.logaddexp(0.0, -y * found))

    value_and_gradient = jax.value_and_grad(loss)

    def go_on(carry: Any) -> Any:
        k, until, value, _, _ = carry
        return (k < until) & (value > target) & jnp.isfinite(value)

    def one_step(carry: Any) -> Any:
        k, until, _, gradient, weights = carry
        weights = kept * weights - step * gradient
        return k + 1, until, *value_and_gradient(weights), weights

    @jax.jit
    def descend(k: Any, until: Any, weights: Any) -> Any:
        carry = (k, until, *value_and_gradient(weights), weights)
        return jax.lax.while_loop(go_on, one_step, carry)

    def run(k: int, until: int, weights: Array) -> tuple[int, float, Array]:
        reached, _, value, _, last = descend(jnp.int64(k), jnp.int64(until), jnp.asarray(weights))
        return int(reached), float(value), np.asarray(last)

    return run
