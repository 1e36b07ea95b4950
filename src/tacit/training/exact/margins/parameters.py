"""The flow of the parameters on classification data, with the smoothed margin as its clock.

u' = -grad L, told by g = -log L instead of the time, with nothing known of the model but its
derivatives. Let r be the derivatives of the loss at the samples, q = r / |r|_1, and v = J^T q with
J the derivatives of the margins y f(x). Then du/dg = (L / |r|_1) v / |v|^2.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arguments import Array
from tacit.models.model import Separable
from tacit.problems.classification import Classification
from tacit.training.exact.margins.integrator import MarginSystem
from tacit.training.exact.margins.tails import log_mean_loss, tail
from tacit.training.exact.task import Moment

WHO = "ParameterFlow"
GAP = 1e-10  # gaps of order one need not be known better
REST = 16.0  # log of the factor of time over which a margin that does not rise is at rest


class MarginParameters(MarginSystem):
    """The velocity of one model on one problem in the clock sigma, g = g0 + unit (e^sigma - 1).

    The state is (parameters, gaps, T), each in its own unit. The gaps, margin - g, are carried
    along: margins of 1e7 computed from parameters have no digits left for differences of order
    one. T gives the training time t = T e^g - T0 e^g0, where e^g itself overflows; its start
    T0 > 0 lets it be held to relative accuracy all along.
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
        self.clock = self.unit * pull.ratio**2 / square
        self.risen = self.begin_g, self.begin_g + math.log(self.clock)
        self.units = np.ones(self.count + len(gaps) + 1)
        self.units[: self.count], self.units[-1] = min(move, largest), self.clock
        self.start = np.concatenate([self.initial - self.base, gaps, [self.clock]]) / self.units

    def atol(self, rtol: float) -> Array:
        """Displacements count against the largest of them, weights each against itself."""
        atol = np.full(len(self.start), max(rtol, GAP))
        atol[: self.count] = rtol * (0.1 if self.lazy else 1e-6)
        atol[-1] = 0.0
        return atol

    def log_elapsed(self, sigma: float, time: float) -> float:
        return math.log(time) if time > 0 else -math.inf

    def _split(self, state: Array) -> tuple[Array, Array, float]:
        """(parameters from their base, gaps, T)."""
        state = state * self.units
        return state[: self.count], state[self.count : -1], float(state[-1])

    def velocity(self, sigma: float, state: Array) -> Array:
        held, gaps, clock = self._split(state)
        self._must_rise(self.g(sigma), clock)
        pull = tail(self.loss, self.g(sigma), gaps)
        slopes = self.model.slopes(self.base + held)
        v = (slopes * (pull.weights @ self.rows)).ravel()
        square = v @ v
        ahead = pull.ratio * v / square
        rise = self.rows @ (slopes * self.model.table(ahead)).sum(axis=0)
        # the drift is zero but for rounding, which it keeps from adding up
        rates = [ahead, rise - 1 + pull.drift, [pull.ratio**2 / square - clock]]
        return self.stretch(sigma) * np.concatenate(rates) / self.units

    def _must_rise(self, g: float, clock: float) -> None:
        """Refuse to go on, as a failed step, where only time goes on.

        A saddle is left after a few times the time it took to get there. Rounding would leave
        also what the flow does not: the end of a weight that falls to zero, for one.
        """
        now = g + math.log(max(clock, self.clock * 1e-300))
        if abs(g - self.risen[0]) > 1e-9 * (1 + abs(g)):
            self.risen = g, now
        self.still = now > self.risen[1] + REST
        if self.still:
            raise ValueError(f"{WHO}: the smoothed margin does not rise")

    def jacobian(self, sigma: float, state: Array) -> Array:
        """The derivatives of the velocity in the state, exactly."""
        held, gaps, _ = self._split(state)
        parameters, n = self.base + held, self.count
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
        d_clock = -(ratio**2) / square * d_log_square
        d_clock[n:] += 2 * ratio / square * d_ratio
        whole = np.zeros((len(state), len(state)))
        whole[:-1, :-1] = np.concatenate([d_ahead, d_gaps])
        whole[-1, :-1], whole[-1, -1] = d_clock, -1
        return self.stretch(sigma) * whole * self.units / self.units[:, None]

    def moment(self, sigma: float, state: Array) -> Moment:
        held, gaps, clock = self._split(state)
        g, parameters = self.g(sigma), self.base + held
        beta = self.model.predictor(parameters)
        if self.lazy:
            beta = self.beta + self.model.change(self.initial, held)
        squares = (self.model.slopes(parameters) ** 2).sum(axis=0)
        elapsed = max(clock - self.clock * math.exp(self.begin_g - g), 0.0)
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
