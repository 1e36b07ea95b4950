"""Gradient flow integrated in the parameters, with no use of any closed form of its dynamics."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.models.model import Model, Separable
from tacit.problems.classification import Classification
from tacit.problems.regression import Regression
from tacit.records import Kind, Outcome
from tacit.solvers.separation import require_separable
from tacit.training.exact.flow import Course, Flow, Followed
from tacit.training.exact.follow import GaveUp, Snapshot, Step, advance, follow, planned_fit
from tacit.training.exact.labelling import linear
from tacit.training.exact.margins.follow import follow_margin, margin_records, planned
from tacit.training.exact.margins.parameters import MarginParameters
from tacit.training.exact.stiff.run import SADDLE, follow_stiff
from tacit.training.exact.task import separable

WHO = "ParameterFlow"


@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class ParameterFlow(Flow):
    """w' = -grad L(w) - weight_decay * w by adaptive stiff integrators with exact Jacobians.

    `rtol` is the accuracy of one step, relative to each parameter. On values training stops by
    default where the data are fitted, Interpolated(1e-20); Loss, LogLoss and Time are the other
    rules. On labels the clock of separable models is the smoothed margin, log(1/loss): records
    are log-spaced in it or At(margins=...), and Scale and Near can stop training too.

    Models that are not separable, and all models under weight decay, are followed in time by an
    integrator whose linear systems have one row per sample, however many parameters there are;
    their records are log-spaced in time or At(times=...). Decay needs Time, for it never ends.
    Large models are done in seconds with rtol=1e-7; errors at the end are some tens to hundreds
    of times rtol.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.sparse_regression(20, 50, sparsity=3)
    >>> path = tacit.train(tacit.DiagonalNet(2, alpha=0.1), problem, tacit.ParameterFlow())
    >>> path.outcome.ok
    True

    Parameters
    ----------
    rtol
        The accuracy of one step of the integrator.
    max_steps
        The most steps of the integrator.
    weight_decay
        The rate c of theta' = -grad L - c theta.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.sparse_regression(5, 8, sparsity=1)
    >>> net, stop = tacit.DiagonalNet(2, alpha=0.1), tacit.Time(1.0)
    >>> path = tacit.train(net, problem, tacit.ParameterFlow(), stop=stop)
    >>> path.t
    1.0
    """

    rtol: float = 1e-11
    max_steps: int = 300_000

    def follow(self, model: Any, problem: Any, course: Course) -> Followed:
        linear_model = isinstance(model, Separable) or not isinstance(model, Model)
        if course.weight_decay or not linear_model:
            return follow_stiff(self, model, problem, course)
        model, problem = separable(WHO, model, problem)
        if isinstance(problem, Classification):
            return self._classify(model, problem, course)
        return self._regress(model, problem, course)

    def _classify(self, model: Separable, problem: Classification, course: Course) -> Followed:
        require_separable(WHO, problem.signed_rows)
        system = MarginParameters(model, problem)
        plan = planned(WHO, self, course, model, system.begin_g)
        if system.stuck:
            records, outcome = [system.first()], Outcome(Kind.STALLED, SADDLE)
        else:
            records, outcome = follow_margin(system, plan, course.progress)
        if outcome.kind is Kind.STALLED and system.still:
            outcome = _at_rest(records[-1].smoothed_margin)
        final = records[-1].parameters
        return Followed(linear(problem, margin_records(records), final), outcome, final)

    def _regress(self, model: Separable, problem: Regression, course: Course) -> Followed:
        descent = _Descent(model, problem)
        plan = planned_fit(WHO, self, course, model, problem, first=0.01 * descent.unit)
        begin = descent.snapshot(0.0, descent.start - descent.origin)
        if descent.stuck:
            records, outcome = [begin], Outcome(Kind.STALLED, SADDLE)
        else:
            steps = descent.steps(self.rtol, plan.t_max)
            records, outcome = follow(begin, steps, problem, plan, course.progress)
        t = np.array([record.t for record in records])
        with np.errstate(divide="ignore"):
            recorded = {"t": t, "log_t": np.log(t)}
        recorded["predictor"] = np.array([record.predictor for record in records])
        parameters = np.array([descent.start + record.state for record in records])
        recorded["parameters"] = parameters
        return Followed(linear(problem, recorded, parameters[-1]), outcome, parameters[-1])


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
            raise OverflowError("the time unit of the flow underflows")  # told by run_flow
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
