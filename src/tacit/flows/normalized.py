"""Normalized gradient descent on classification data, in the stable form of M appendix H.5."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.arguments import Array, integer, positive
from tacit.flows.flow import Flow, Problem, Progress
from tacit.flows.path import Path, label
from tacit.flows.schedule import asked_steps, points_per_decade, schedule
from tacit.models.model import Model, Separable
from tacit.precision import double_precision
from tacit.problems.classification import Classification
from tacit.records import Kind, Outcome, Record
from tacit.solvers.separation import require_separable
from tacit.threads import on_one_blas_thread
from tacit.training.exact.margins.tails import log_mean_loss
from tacit.training.exact.task import separable
from tacit.training.stop import Stop as Rule
from tacit.training.stop import rules

WHO = "NormalizedDescent"
TAIL = 30.0  # beyond this margin log(1 + exp(-m)) is exp(-m) to the last digits


class Row(NamedTuple):
    """One recorded step: where descent is, and the logarithm of the training time so far."""

    step: int
    log_t: float
    smoothed_margin: float
    parameters: Array


@dataclasses.dataclass(frozen=True, repr=False)
class NormalizedDescent(Record, Flow):
    """u <- u - step * grad L(u) / L(u), `steps` times or until a rule is met.

    Such a step is `step` / L of training time, so that its paths share the axes of the flows.
    Only log L is ever represented. `until` is a rule or several (LogLoss, Scale, Near): losses
    are looked at after every step, directions at the recorded ones. Records are log-spaced, or
    at the steps given in `record`.
    """

    step: float
    steps: int
    until: Rule | Sequence[Rule] | None = None
    points_per_decade: int = 20
    record: Sequence[int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", positive(WHO, "step", self.step))
        object.__setattr__(self, "steps", integer(WHO, "steps", self.steps, least=1))
        points_per_decade(WHO, self.points_per_decade)
        rules(WHO, self.until)
        record = asked_steps(WHO, self.record, self.steps)
        object.__setattr__(self, "record", record)

    def describe(self) -> dict[str, Any]:
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        plain["until"] = [rule.describe() for rule in rules(WHO, self.until)]
        return {"flow": WHO, **plain}

    @on_one_blas_thread
    def run(self, model: Model, problem: Problem, progress: Progress | None = None) -> Path:
        model, problem = separable(WHO, model, problem)
        if not isinstance(problem, Classification):
            raise ValueError(f"{WHO}: made for a Classification, got a Regression; use "
                             "GradientDescent")  # fmt: skip
        require_separable(WHO, problem.signed_rows)
        start = model.start(problem.dimension)
        margins = problem.signed_rows @ model.predictor(start)
        rows = [Row(0, -math.inf, -float(log_mean_loss(problem.loss, margins)), start)]
        target = self._target(model, rows[0].smoothed_margin)
        with double_precision():
            descend = _compiled(model, problem, self.step, target)
            for k in schedule(self.record, self.steps, self.points_per_decade)[1:]:
                row = descend(rows[-1], k)
                if not (math.isfinite(row.smoothed_margin) and np.isfinite(row.parameters).all()):
                    return self._label(model, problem, rows, self._diverged(rows[-1], row))
                rows.append(row)
                if progress is not None:
                    progress(k / self.steps, f"step {row.step} of {self.steps}")
                if (met := self._met(model, row, target)) is not None:
                    return self._label(model, problem, rows, met)
        return self._label(model, problem, rows, self._ended(model, rows[-1], target))

    def _target(self, model: Separable, begin: float) -> float:
        """The smoothed margin at which the rules stop."""
        ends = [-rule.log_level(WHO, model, 0.0) for rule in rules(WHO, self.until)]
        target = min(ends, default=math.inf)
        if target <= begin:
            raise ValueError(
                f"{WHO}: the target log loss {-target:.6g} must be below that of the start, "
                f"{-begin:.6g}; there is nothing to train"
            )
        return target

    def _met(self, model: Separable, row: Row, target: float) -> Outcome | None:
        where = f"at smoothed margin {row.smoothed_margin:.6g} after {row.step} steps"
        if row.smoothed_margin >= target:
            return Outcome(Kind.SOLVED, f"stopped {where}")
        beta = model.predictor(row.parameters)
        for rule in rules(WHO, self.until):
            if rule.gap(beta) <= 0:
                return Outcome(Kind.SOLVED, f"came to {rule} {where}")
        return None

    def _diverged(self, good: Row, bad: Row) -> Outcome:
        sentence = (
            f"not finite between steps {good.step} and {bad.step}; take a step smaller than "
            f"{self.step:g}"
        )
        return Outcome(Kind.DIVERGED, sentence)

    def _ended(self, model: Separable, last: Row, target: float) -> Outcome:
        reached = f"{self.steps} steps ended at smoothed margin {last.smoothed_margin:.6g}"
        if self.until is None:
            return Outcome(Kind.SOLVED, reached)
        gaps = [rule.gap(model.predictor(last.parameters)) for rule in rules(WHO, self.until)]
        missing = [f"short of {target:.6g}"] if target < math.inf else []
        missing += [f"{gap:.4g} degrees outside its rule" for gap in gaps if math.isfinite(gap)]
        return Outcome(Kind.BUDGET_SPENT, f"{reached}, {' and '.join(missing)}; raise steps")

    def _label(
        self, model: Separable, problem: Classification, rows: list[Row], end: Outcome
    ) -> Path:
        parameters = np.array([row.parameters for row in rows])
        log_t = np.array([row.log_t for row in rows])
        slopes = np.array([model.slopes(row) for row in parameters])
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            recorded = {"t": np.exp(log_t), "log_t": log_t,
                        "log_slopes": np.log((slopes**2).sum(axis=1))}  # fmt: skip
        recorded |= {"step": np.array([row.step for row in rows]), "parameters": parameters}
        recorded["predictor"] = np.array([model.predictor(row) for row in parameters])
        return label(problem, model.describe(), self.describe(), end, recorded, parameters[-1])


def _compiled(
    model: Separable, problem: Classification, step: float, target: float
) -> Callable[[Row, int], Row]:
    """A function (row, to step) -> row, which stops early at the target and at overflow."""
    import jax
    import jax.numpy as jnp

    X: Any = jnp.asarray(problem.signed_rows)

    def smoothed_margin(weights: Any) -> Any:
        margins: Any = model.predict(weights, X)
        logs = -margins
        if problem.loss == "logistic":  # log log(1 + exp(-m)), which is -m in the tail
            near = jnp.log(jnp.logaddexp(0.0, -jnp.minimum(margins, TAIL)))
            logs = jnp.where(margins < TAIL, near, -margins)
        # its gradient, -grad L / L, is the softmax of the gaps to the smallest margin: M eq. (87)
        return -jax.nn.logsumexp(logs) + jnp.log(len(X))

    look = jax.value_and_grad(smoothed_margin)

    def go_on(carry: Any) -> Any:
        k, until, _, smoothed, _, _ = carry
        return (k < until) & (smoothed < target)  # NaN stops as well

    def one_step(carry: Any) -> Any:
        k, until, log_t, smoothed, ascent, weights = carry
        weights = weights + step * ascent
        log_t = jnp.logaddexp(log_t, math.log(step) + smoothed)
        return k + 1, until, log_t, *look(weights), weights

    @jax.jit
    def descend(k: Any, until: Any, log_t: Any, weights: Any) -> Any:
        return jax.lax.while_loop(go_on, one_step, (k, until, log_t, *look(weights), weights))

    def run(row: Row, until: int) -> Row:
        begin = (jnp.int64(row.step), jnp.int64(until), jnp.float64(row.log_t))
        k, _, log_t, smoothed, _, weights = descend(*begin, jnp.asarray(row.parameters))
        return Row(int(k), float(log_t), float(smoothed), np.asarray(weights))

    return run
