"""Gradient flow integrated in the parameters, with no use of any closed form of its dynamics."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from penchant.arguments import Array
from penchant.door import door_as
from penchant.models.model import Model, Separable
from penchant.problems.classification import Classification
from penchant.problems.regression import Regression
from penchant.solvers.margins.separation import require_separable
from penchant.training.exact.flow import Flow, Followed, RunSettings
from penchant.training.exact.follow import FitIntegrator, follow, planned_fit
from penchant.training.exact.loss import log_mean_loss, tail
from penchant.training.exact.margins import (
    MarginSystem,
    follow_margin,
    margin_records,
    planned_margin,
)
from penchant.training.exact.solver import rounding, state_at, step
from penchant.training.exact.stiff import follow_stiff
from penchant.training.exact.task import separable
from penchant.training.labels import build_dataset, columns, linear_columns
from penchant.training.task import Moment

WHO = "ParameterFlow"
GAP = 1e-10  # gaps of order one need not be known better
REST = 16.0  # log of the factor of time over which a margin that does not rise is at rest


class MarginParameters(MarginSystem):
    """u' = -grad L in sigma, with the smoothed margin g = -log L = g0 + unit (e^sigma - 1).

    With r the derivatives of the loss at the samples, q = r / |r|_1 and v = J^T q, J being those of
    the margins, du/dg = (L / |r|_1) v / |v|^2. The state is (parameters, gaps, T): gaps = margins
    - g have digits that margins of 1e7 lack, and T gives the time t = T e^g - T0 e^g0.
    """

    def __init__(self, model: Separable, problem: Classification) -> None:
        self.model, self.loss, self.rows = model, problem.loss, problem.signed_rows
        self.initial = model.start(problem.dimension)
        self.count = len(self.initial)
        self.beta = model.predictor(self.initial)
        margins = self.rows @ self.beta
        self.begin_g = -float(log_mean_loss(self.loss, margins))
        gaps = margins - self.begin_g
        pull = tail(self.loss, self.begin_g, gaps)
        with np.errstate(over="ignore", under="ignore"):
            steepest = model.pullback(self.initial, self.rows, pull.weights)
            square = float(steepest @ steepest)
        self.stuck = not steepest.any()
        if not (math.isfinite(square) and (square > 1e-290 or self.stuck)):
            raise ValueError(
                f"{WHO}: the gradients of this start are beyond float64 (their squares sum to "
                f"{square:.3g}); use DualFlow, which works with logarithms"
            )
        square = square or 1.0
        # how far a unit of smoothed margin would take a parameter along the tangent
        move = pull.ratio * float(np.abs(steepest).max()) / square or 1.0
        largest = float(np.abs(self.initial).max()) or move
        self.unit = min(1.0, largest / move)
        # a large start barely moves: there the displacement from it is held, for the parameters
        # themselves would lose its digits. A small start is left far behind
        self.lazy = largest > 10 * move
        self.base = self.initial if self.lazy else np.zeros_like(self.initial)
        self.first_scaled_time = self.unit * pull.ratio**2 / square
        self.risen = self.begin_g, self.begin_g + math.log(self.first_scaled_time)
        self.units = np.ones(self.count + len(gaps) + 1)
        self.units[: self.count], self.units[-1] = min(move, largest), self.first_scaled_time
        self.start = (
            np.concatenate([self.initial - self.base, gaps, [self.first_scaled_time]]) / self.units
        )

    def atol(self, rtol: float) -> Array:
        """Displacements count against the largest of them, weights each against itself."""
        atol = np.full(len(self.start), max(rtol, GAP))
        atol[: self.count] = rtol * (0.1 if self.lazy else 1e-6)
        atol[-1] = 0.0
        return atol

    def log_elapsed(self, sigma: float, time: float) -> float:
        return math.log(time) if time > 0 else -math.inf

    def _split(self, state: Array) -> tuple[Array, Array, float]:
        state = state * self.units
        return state[: self.count], state[self.count : -1], float(state[-1])

    def velocity(self, sigma: float, state: Array) -> Array:
        moved, gaps, scaled_time = self._split(state)
        self._must_rise(self.g(sigma), scaled_time)
        pull = tail(self.loss, self.g(sigma), gaps)
        slopes = self.model.slopes(self.base + moved)
        v = (slopes * (pull.weights @ self.rows)).ravel()
        square = v @ v
        ahead = pull.ratio * v / square
        rise = self.rows @ (slopes * self.model.table(ahead)).sum(axis=0)
        # the drift is zero but for rounding, which it keeps from adding up
        rates: list[Any] = [ahead, rise - 1 + pull.drift, [pull.ratio**2 / square - scaled_time]]
        return self.stretch(sigma) * np.concatenate(rates) / self.units

    def _must_rise(self, g: float, scaled_time: float) -> None:
        """Fail the step where time passes but the smoothed margin does not rise.

        A flow leaves a saddle within a few times the time it took to arrive. Rounding errors would
        also leave points where the flow ends, such as a weight that falls to zero.
        """
        now = g + math.log(max(scaled_time, self.first_scaled_time * 1e-300))
        if abs(g - self.risen[0]) > 1e-9 * (1 + abs(g)):
            self.risen = g, now
        self.still = now > self.risen[1] + REST
        if self.still:
            raise ValueError(f"{WHO}: the smoothed margin does not rise")

    def jacobian(self, sigma: float, state: Array) -> Array:
        moved, gaps, _ = self._split(state)
        parameters, n = self.base + moved, self.count
        q, ratio, bend, _ = tail(self.loss, self.g(sigma), gaps)
        J = self.model.jacobian(parameters, self.rows)
        v = J.T @ q
        square, faded = v @ v, q * bend
        d_ratio = ratio * faded - q
        of_parameters = self.model.curvature(parameters, self.rows, q)
        of_gaps = J.T @ (np.outer(q, faded) - np.diag(faded))
        d_v = np.concatenate([of_parameters, of_gaps], axis=1)
        d_log_square = 2 * (v / square) @ d_v
        d_ahead = ratio * (d_v / square - np.outer(v / square, d_log_square))
        d_ahead[:, n:] += np.outer(v / square, d_ratio)
        d_gaps = J @ d_ahead
        bent = (self.model.bends(parameters) * self.model.table(ratio * v / square)).sum(axis=1)
        d_gaps[:, :n] += np.concatenate([self.rows * row for row in bent], axis=1)
        d_gaps[:, n:] -= q / ratio
        d_scaled_time = -(ratio**2) / square * d_log_square
        d_scaled_time[n:] += 2 * ratio / square * d_ratio
        whole = np.zeros((len(state), len(state)))
        whole[:-1, :-1] = np.concatenate([d_ahead, d_gaps])
        whole[-1, :-1], whole[-1, -1] = d_scaled_time, -1
        return self.stretch(sigma) * whole * self.units / self.units[:, None]

    def moment(self, sigma: float, state: Array) -> Moment:
        moved, gaps, scaled_time = self._split(state)
        g, parameters = self.g(sigma), self.base + moved
        beta = self.model.predictor(parameters)
        if self.lazy:
            beta = self.beta + self.model.change(self.initial, moved)
        squares = (self.model.slopes(parameters) ** 2).sum(axis=0)
        elapsed = max(scaled_time - self.first_scaled_time * math.exp(self.begin_g - g), 0.0)
        with np.errstate(divide="ignore"):
            return Moment(
                sigma,
                state,
                smoothed_margin=g,
                log_t=float(np.log(elapsed)) + g,
                predictor=beta,
                margins=g + gaps,
                log_slopes=np.log(squares if squares.any() else squares + 1),
                parameters=parameters,
            )


@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class ParameterFlow(Flow):
    """w' = -grad L(w) - weight_decay * w by adaptive stiff integrators with exact Jacobians.

    `rtol` is the accuracy of one step, relative to each parameter. On values training stops by
    default where the data are fitted, Interpolated(1e-20); Loss, LogLoss and Time are the other
    rules. On labels separable models are integrated in the smoothed margin, log(1/loss): records
    are log-spaced in it or At(margins=...), and Scale and Near can stop training too.

    Models that are not separable, and all models under weight decay, are followed in time by an
    integrator whose linear systems have one row per sample, however many parameters there are;
    their records are log-spaced in time or At(times=...). Training with decay needs Time, because
    it never ends by itself. Large models take seconds with rtol=1e-7; errors at the end are some
    tens to hundreds of times rtol.

    Parameters
    ----------
    rtol
        The accuracy of one step of the integrator.
    max_steps
        The most steps of the integrator.
    weight_decay
        The rate c of theta' = -grad L - c theta.
    certify
        True follows the run twice, at `rtol` and at ten times that, and gives the path an `error`:
        how far the two are apart, over the largest entry. It costs less than the run itself.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(5, 8, sparsity=1)
    >>> net, stop = penchant.DiagonalNet(2, alpha=0.1), penchant.Time(1.0)
    >>> path = penchant.train(net, problem, penchant.ParameterFlow(certify=True), stop=stop)
    >>> path.t, path.error < 1e-8
    (1.0, True)
    """

    by_margin: ClassVar[bool] = True
    rtol: float = 1e-11
    max_steps: int = 300_000

    @door_as(WHO)
    def follow(self, model: Any, problem: Any, settings: RunSettings) -> Followed:
        linear_model = isinstance(model, Separable) or not isinstance(model, Model)
        if settings.weight_decay or not linear_model:
            return follow_stiff(self, model, problem, settings)
        model, problem = separable(model, problem)
        if isinstance(problem, Classification):
            return self._classify(model, problem, settings)
        return self._regress(model, problem, settings)

    @door_as(WHO)
    def _classify(
        self, model: Separable, problem: Classification, settings: RunSettings
    ) -> Followed:
        require_separable(problem.signed_rows)
        system = MarginParameters(model, problem)
        plan = planned_margin(self, settings, model, system.begin_g)
        moments, outcome = follow_margin(system, plan)
        final = moments[-1].parameters
        record = linear_columns(problem, margin_records(moments))
        return Followed(build_dataset(problem, record, final), outcome, final)

    @door_as(WHO)
    def _regress(self, model: Separable, problem: Regression, settings: RunSettings) -> Followed:
        flow = ParameterIntegrator(model, problem)
        plan = planned_fit(self, settings, model, problem, flow.unit)
        if not flow.stuck:
            flow.start_solver(self.rtol, plan.t_max)
        moments, outcome = follow(flow, plan, flow.moment(0.0, flow.start - flow.origin))
        t = np.array([moment.t for moment in moments])
        with np.errstate(divide="ignore"):
            record = {"t": t, "log_t": np.log(t)} | columns(moments, "predictor")
        record["parameters"] = np.array([flow.start + moment.state for moment in moments])
        final = record["parameters"][-1]
        dataset = build_dataset(problem, linear_columns(problem, record), final)
        return Followed(dataset, outcome, final)


class ParameterIntegrator(FitIntegrator):
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
        push = np.abs(model.pullback(self.start, self.X, residual))
        # what the terms of the gradient leave by rounding where they cancel
        terms = np.abs(self.X) @ np.abs(self.beta) + np.abs(self.y)
        spare = rounding(self.X.size) * (terms @ np.abs(self.X))
        still = not (push > (np.abs(slopes) * spare).ravel()).any()
        self.fits = not residual.any()
        self.stuck = still and not self.fits
        self.unit = self._unit(slopes, bend)
        move, largest = self._linear_move(slopes, residual), float(np.abs(self.start).max())
        self.lazy = move < 0.1 * largest
        self.origin = self.start if self.lazy else np.zeros_like(self.start)
        # displacements matter against the largest of them, weights each against itself: they
        # shrink and may grow again
        # a start at zero has no size
        self.size = 0.1 * move if self.lazy else 1e-6 * min(move, largest or move)

    def _unit(self, slopes: Array, bend: float) -> float:
        """The shortest time scale at the start: of the tangent kernel or of the escape."""
        kernel = np.linalg.norm(self.X * np.sqrt((slopes**2).sum(axis=0)), ord=2) ** 2
        return 0.5 / (max(float(kernel), bend) or 1.0)

    def _linear_move(self, slopes: Array, residual: Array) -> float:
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

        known = self.fits or rtol * self.size >= np.finfo(float).tiny
        if not (1e-4 * self.unit > 0 and known):
            # run_flow explains it
            raise OverflowError("the time unit of the flow or its accuracy underflows")
        settings: Any = {"rtol": rtol, "atol": rtol * self.size, "jac": self.jacobian}
        settings["first_step"] = min(1e-4 * self.unit, t_max)
        self.solver = LSODA(self.velocity, 0.0, self.start - self.origin, t_max, **settings)

    def advance(self, limit: float) -> None:
        step(self.solver)
        self.t, self.steps = self.solver.t, self.steps + 1

    def at(self, t: float) -> Moment:
        return self.moment(t, state_at(self.solver, t))
