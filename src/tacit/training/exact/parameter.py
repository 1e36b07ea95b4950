"""Gradient flow integrated in the parameters, with no use of any closed form of its dynamics."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.models.model import Model, Separable
from tacit.problems.classification import Classification
from tacit.problems.regression import Regression
from tacit.solvers.separation import require_separable
from tacit.training.exact.fit import FitIntegrator, planned_fit
from tacit.training.exact.flow import Course, Flow, Followed
from tacit.training.exact.follow import follow
from tacit.training.exact.labelling import columns, linear
from tacit.training.exact.margins.follow import follow_margin, margin_records, planned_margin
from tacit.training.exact.margins.parameters import MarginParameters
from tacit.training.exact.solver import state_at, step
from tacit.training.exact.stiff.integrator import follow_stiff
from tacit.training.exact.task import Moment, separable

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
        plan = planned_margin(WHO, self, course, model, system.begin_g)
        moments, outcome = follow_margin(system, plan)
        final = moments[-1].parameters
        return Followed(linear(problem, margin_records(moments), final), outcome, final)

    def _regress(self, model: Separable, problem: Regression, course: Course) -> Followed:
        flow = _Descent(model, problem)
        plan = planned_fit(WHO, self, course, model, problem, flow.unit)
        if not flow.stuck:
            flow.start_solver(self.rtol, plan.t_max)
        moments, outcome = follow(flow, plan, flow.moment(0.0, flow.start - flow.origin))
        t = np.array([moment.t for moment in moments])
        with np.errstate(divide="ignore"):
            found = {"t": t, "log_t": np.log(t)} | columns(moments, "predictor")
        found["parameters"] = np.array([flow.start + moment.state for moment in moments])
        final = found["parameters"][-1]
        return Followed(linear(problem, found, final), outcome, final)


class _Descent(FitIntegrator):
    """The flow of one model on one problem, in parameters measured from `origin`.

    A large start barely moves, so there the displacement from the start is integrated: the
    parameters themselves would lose its digits. A small start is left far behind, and there the
    parameters themselves are integrated, so that small ones are known to relative accuracy.
    """

    def __init__(self, model: Separable, problem: Regression) -> None:
        super().__init__(problem)
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

    def moment(self, t: float, state: Array) -> Moment:
        return Moment(t, state + (self.origin - self.start), predictor=self.predictor(state))

    def velocity(self, _: float, state: Array) -> Array:
        # L = sum r^2, so its gradient is 2 sum_n r_n grad f(x_n)
        return -2 * self.model.pullback(self.origin + state, self.X, self.residual(state))

    def jacobian(self, _: float, state: Array) -> Array:
        parameters = self.origin + state
        J = self.model.jacobian(parameters, self.X)
        return -2 * (J.T @ J + self.model.curvature(parameters, self.X, self.residual(state)))

    def start_solver(self, rtol: float, t_max: float) -> None:
        from scipy.integrate import LSODA

        if not 1e-4 * self.unit > 0:
            raise OverflowError("the time unit of the flow underflows")  # told by run_flow
        settings: Any = {"rtol": rtol, "atol": rtol * self.size, "jac": self.jacobian}
        settings["first_step"] = min(1e-4 * self.unit, t_max)
        self.solver = LSODA(self.velocity, 0.0, self.start - self.origin, t_max, **settings)

    def advance(self, limit: float) -> None:
        step(self.solver)
        self.t, self.steps = self.solver.t, self.steps + 1

    def at(self, t: float) -> Moment:
        return self.moment(t, state_at(self.solver, t))
