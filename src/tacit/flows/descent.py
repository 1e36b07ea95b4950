"""Plain gradient descent with a fixed step, compiled between the recorded steps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tacit.arguments import Array, integer, positive, real
from tacit.flows.flow import Flow, Problem, Progress, regression_only, separable
from tacit.flows.path import Path, label
from tacit.flows.schedule import asked_steps, schedule
from tacit.models.model import Model, Separable
from tacit.precision import double_precision
from tacit.problems.regression import Regression
from tacit.records import Kind, Outcome, Record

WHO = "GradientDescent"


@dataclasses.dataclass(frozen=True, repr=False)
class GradientDescent(Record, Flow):
    """w <- w - step * grad L(w), `steps` times or until the loss is below its target.

    `loss` is relative to the loss of the zero predictor, sum y^2; 0 takes all the steps. Records
    are log-spaced, or at the steps given in `record`. The time of step k is t = k * step, so
    that paths of descent and of flow share an axis.
    """

    step: float
    steps: int
    loss: float = 0.0
    points_per_decade: int = 20
    record: Sequence[int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", positive(WHO, "step", self.step))
        object.__setattr__(self, "steps", integer(WHO, "steps", self.steps, least=1))
        integer(WHO, "points_per_decade", self.points_per_decade, least=1)
        if real(WHO, "loss", self.loss, rule="a finite number >= 0") < 0:
            raise ValueError(f"{WHO}: loss must be >= 0, got {self.loss}")
        record = asked_steps(WHO, self.record, self.steps)
        object.__setattr__(self, "record", record)

    def describe(self) -> dict[str, Any]:
        return {"flow": WHO, **dataclasses.asdict(self)}

    def run(self, model: Model, problem: Problem, progress: Progress | None = None) -> Path:
        model, problem = separable(WHO, model, problem)
        problem = regression_only(WHO, problem)
        parameters = model.start(problem.dimension)
        scale = float(np.sum(problem.y**2)) or 1.0
        rows, outcome = [(0, parameters)], None
        with double_precision():
            descend = _compiled(model, problem, self.step, self.loss * scale)
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
        return self._label(model, problem, rows, outcome or self._ended(loss))

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
        self, model: Separable, problem: Regression, rows: list[tuple[int, Array]], end: Outcome
    ) -> Path:
        steps = np.array([k for k, _ in rows])
        parameters = np.array([weights for _, weights in rows])
        with np.errstate(divide="ignore"):
            recorded = {"t": steps * self.step, "log_t": np.log(steps * self.step)}
        recorded |= {"step": steps, "parameters": parameters}
        recorded["predictor"] = np.array([model.predictor(weights) for weights in parameters])
        return label(problem, model.describe(), self.describe(), end, recorded, parameters[-1])


def _compiled(
    model: Separable, problem: Regression, step: float, target: float
) -> Callable[[int, int, Array], tuple[int, float, Array]]:
    """A function (from step, to step, parameters) -> (step reached, loss, parameters).

    It stops early at the target, and at the first loss that is not finite.
    """
    import jax
    import jax.numpy as jnp

    X: Any = jnp.asarray(problem.X)
    y: Any = jnp.asarray(problem.y)

    def loss(weights: Any) -> Any:
        return jnp.sum((model.predict(weights, X) - y) ** 2)

    value_and_gradient = jax.value_and_grad(loss)

    def go_on(carry: Any) -> Any:
        k, until, value, _, _ = carry
        return (k < until) & (value > target) & jnp.isfinite(value)

    def one_step(carry: Any) -> Any:
        k, until, _, gradient, weights = carry
        weights = weights - step * gradient
        return k + 1, until, *value_and_gradient(weights), weights

    @jax.jit
    def descend(k: Any, until: Any, weights: Any) -> Any:
        carry = (k, until, *value_and_gradient(weights), weights)
        return jax.lax.while_loop(go_on, one_step, carry)

    def run(k: int, until: int, weights: Array) -> tuple[int, float, Array]:
        reached, _, value, _, last = descend(jnp.int64(k), jnp.int64(until), jnp.asarray(weights))
        return int(reached), float(value), np.asarray(last)

    return run
