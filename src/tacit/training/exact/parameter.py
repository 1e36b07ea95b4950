"""Gradient flow integrated in the parameters, with no use of any closed form of its dynamics."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tacit.arguments import Array, real
from tacit.flows.decay import decay_rate
from tacit.flows.flow import Flow, Problem, Progress, separable, within_float64
from tacit.flows.stopping import Rule, rules, settings
from tacit.models.model import Model, Separable
from tacit.problems.classification import Classification
from tacit.problems.regression import Regression
from tacit.records import Kind, Outcome, Record
from tacit.solvers.separation import require_separable
from tacit.threads import on_one_blas_thread
from tacit.training.exact.follow import GaveUp, Limits, Snapshot, Step, advance, check, march
from tacit.training.exact.margins.follow import course, march_margin, margin_records
from tacit.training.exact.margins.parameters import MarginParameters
from tacit.training.exact.stiff.run import SADDLE, run_tangent
from tacit.training.labels import Path, label

WHO = "ParameterFlow"


@dataclasses.dataclass(frozen=True, repr=False)
class ParameterFlow(Record, Flow):
    """w' = -grad L(w) by an adaptive stiff integrator (LSODA with the exact Jacobian).

    `loss` is the target, relative to the loss of the zero predictor. `rtol` is the accuracy of
    one step, relative to each parameter. Time ends at `t_max` where that is given.

    On a Classification the clock is the smoothed margin, log(1/loss), and `loss` is relative to
    that of the start: records are log-spaced in the clock and at those given in `record`, and
    `until` is a rule or several (LogLoss, Scale, Near) that replace `loss`; the first that is met
    stops.

    Models that are not separable, and all models under weight decay, are followed in time by an
    integrator whose linear systems have one row per sample, however many parameters there are.
    `record` then adds times; decay needs `t_max`, for it never ends. Large models are done in
    seconds with rtol=1e-7; errors at the end are some tens to hundreds of times rtol. The loss and
    accuracy of `test`, samples like those of the problem, are recorded for models that are not
    separable.
    """

    loss: float = 1e-20
    t_max: float | None = None
    points_per_decade: int = 20
    rtol: float = 1e-11
    max_steps: int = 300_000
    until: Rule | Sequence[Rule] | None = None
    record: Sequence[float] | None = None

    def __post_init__(self) -> None:
        check(WHO, self)
        rules(WHO, self.until)
        if self.record is not None:
            record = tuple(real(WHO, "record", g) for g in self.record)
            object.__setattr__(self, "record", record)

    def describe(self) -> dict[str, Any]:
        return {"flow": WHO, **settings(self)}

    @on_one_blas_thread
    @within_float64
    def run(
        self, model: Model, problem: Problem, progress: Progress | None = None, test: Any = None
    ) -> Any:
        if test is not None or (isinstance(model, Model) and not isinstance(model, Separable)):
            return run_tangent(WHO, self, model, problem, 0.0, progress, test)
        model, problem = separable(WHO, model, problem)
        if isinstance(problem, Classification):
            return self._classify(model, problem, progress)
        return self._regress(model, problem, progress)

    def run_decayed(
        self,
        model: Model,
        problem: Problem,
        rate: float,
        progress: Progress | None = None,
        test: Any = None,
    ) -> Any:
        """A Path of a separable model, a TangentPath of any other."""
        if not decay_rate(WHO, rate):
            return self.run(model, problem, progress, test)
        return run_tangent(WHO, self, model, problem, rate, progress, test)

    def _classify(
        self, model: Separable, problem: Classification, progress: Progress | None
    ) -> Path:
        require_separable(WHO, problem.signed_rows)
        system = MarginParameters(model, problem)
        plan = course(WHO, self, rules(WHO, self.until), model, system.begin_g)
        if system.stuck:
            records, outcome = [system.first()], Outcome(Kind.STALLED, SADDLE)
        else:
            records, outcome = march_margin(system, plan, progress)
        if outcome.kind is Kind.STALLED and system.still:
            outcome = _at_rest(records[-1].smoothed_margin)
        described = model.describe(), self.describe(), outcome
        return label(problem, *described, margin_records(records), records[-1].parameters)

    def _regress(self, model: Separable, problem: Regression, progress: Progress | None) -> Path:
        descent = _Descent(model, problem)
        begin = descent.snapshot(0.0, descent.start - descent.origin)
        if descent.stuck:
            records, outcome = [begin], Outcome(Kind.STALLED, SADDLE)
        else:
            t_max = math.inf if self.t_max is None else self.t_max
            records, outcome = march(
                begin,
                descent.steps(self.rtol, t_max),
                problem,
                Limits(self.loss, t_max, self.max_steps),
                first=0.01 * descent.unit,
                per_decade=self.points_per_decade,
                progress=progress,
            )
        t = np.array([record.t for record in records])
        with np.errstate(divide="ignore"):
            recorded = {"t": t, "log_t": np.log(t)}
        recorded["predictor"] = np.array([record.predictor for record in records])
        parameters = np.array([descent.start + record.state for record in records])
        recorded["parameters"] = parameters
        return label(problem, model.describe(), self.describe(), outcome, recorded, parameters[-1])


def _at_rest(smoothed_margin: float) -> Outcome:
    sentence = (
        f"at rest at smoothed margin {smoothed_margin:.6g}: the model cannot lower the loss "
        "further, or only past a saddle too flat for float64; take a larger start"
    )
    return Outcome(Kind.STALLED, sentence)


class _Descent:
    """The velocity of one model on one problem, in parameters measured from `origin`.

    A large start barely moves, so there the displacement from the start is integrated: the
    parameters themselves would lose its digits. A small start is left far behind, and there the
    parameters themselves are integrated, so that small ones are known to relative accuracy.
    """

    def __init__(self, model: Separable, problem: Regression) -> None:
        self.model, self.X, self.y = model, problem.X, problem.y
        self.start = model.start(problem.dimension)
        self.beta = model.predictor(self.start)
        residual = self.X @ self.beta - self.y
        with np.errstate(over="ignore", under="ignore"):
            slopes = model.slopes(self.start)
            speed = float(np.sum(slopes**2))
            bend = float(np.abs(model.bends(self.start) * (residual @ self.X)).max())
        lost = speed < 1e-290 and slopes.any()
        if lost or not np.isfinite(speed) or not np.isfinite(residual).all():
            raise ValueError(
                f"{WHO}: the gradients of this start are beyond float64 (squared slopes sum to "
                f"{speed:.3g}); use DualFlow, which works with logarithms"
            )
        still = not model.pullback(self.start, self.X, residual).any()
        self.stuck = still and bool(residual.any())
        self.unit = self._unit(slopes, bend)
        move, largest = self._linear_move(slopes, residual), float(np.abs(self.start).max())
        self.lazy = move < 0.1 * largest
        self.origin = self.start if self.lazy else np.zeros_like(self.start)
        # displacements matter against the largest of them, weights each against itself: they
        # shrink and may grow again
        self.size = 0.1 * move if self.lazy else 1e-6 * min(move, largest)

    def _unit(self, slopes: Array, bend: float) -> float:
        """The shortest time scale at the start: of the tangent kernel or of the escape."""
        kernel = np.linalg.norm(self.X * np.sqrt((slopes**2).sum(axis=0)), ord=2) ** 2
        return 0.5 / (max(float(kernel), bend) or 1.0)

    def _linear_move(self, slopes: Array, residual: Array) -> float:
        """How far the linearised flow would move a parameter, at most."""
        scale = np.abs(slopes).max() or 1.0
        jacobian = np.concatenate([self.X * slope for slope in slopes / scale], axis=1)
        return float(np.abs(np.linalg.lstsq(jacobian, residual, rcond=None)[0]).max() / scale)

    def predictor(self, state: Array) -> Array:
        if self.lazy:
            return self.beta + self.model.change(self.start, state)
        return self.model.predictor(state)

    def residual(self, state: Array) -> Array:
        return self.X @ self.predictor(state) - self.y

    def snapshot(self, t: float, state: Array) -> Snapshot:
        return Snapshot(t, self.predictor(state), state + (self.origin - self.start))

    def velocity(self, _: float, state: Array) -> Array:
        # L = sum r^2, so its gradient is 2 sum_n r_n grad f(x_n)
        return -2 * self.model.pullback(self.origin + state, self.X, self.residual(state))

    def jacobian(self, _: float, state: Array) -> Array:
        parameters = self.origin + state
        J = self.model.jacobian(parameters, self.X)
        return -2 * (J.T @ J + self.model.curvature(parameters, self.X, self.residual(state)))

    def steps(self, rtol: float, t_max: float) -> Iterator[Step]:
        from scipy.integrate import LSODA

        if not 1e-4 * self.unit > 0:
            raise OverflowError("the time unit of the flow underflows")  # told by within_float64
        solver = LSODA(
            self.velocity,
            0.0,
            self.start - self.origin,
            t_max,
            first_step=min(1e-4 * self.unit, t_max),
            rtol=rtol,
            atol=rtol * self.size,
            jac=self.jacobian,
        )
        while solver.status == "running":
            if not advance(solver):
                raise GaveUp("its steps became too small; raise rtol")
            yield Step(solver.t, lambda t: self._at(solver, t))

    def _at(self, solver: Any, t: float) -> Snapshot:
        state = solver.y if t == solver.t else solver.dense_output()(t)
        return self.snapshot(t, state.copy())
