"""Gradient flow of diagonal nets on classification data, with the smoothed margin as its clock.

The state holds the coordinates x of the law (or the duals rho, where they are fewer), the gaps
between the margins and the smoothed margin g, and the training time. The gaps cannot be read off
x: margins of 1e7 and more are known to more digits than float64 has, and only gaps pull.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arguments import Array
from tacit.models.diagonal import DiagonalNet
from tacit.problems.classification import Classification
from tacit.training.exact.margins.integrator import HIGHEST, MarginSystem
from tacit.training.exact.margins.laws import Law, PowerLaw, Response, SinhLaw
from tacit.training.exact.margins.tails import Tail, log_mean_loss, tail
from tacit.training.exact.task import Moment

FAINT = 1e-16  # margins below this leave the loss weights equal to rounding


class MarginDual(MarginSystem):
    """The velocity of one net on one problem in the clock sigma, g = g0 + unit (e^sigma - 1)."""

    def __init__(self, net: DiagonalNet, problem: Classification) -> None:
        assert net.log_alpha is not None
        self.Z, self.loss = problem.signed_rows, problem.loss
        log_shape = np.log(np.abs(net.shape_for(problem.dimension)))
        log_a = net.depth * (net.log_alpha + log_shape)
        self.kappa = np.exp((net.depth - 2) * log_shape)
        self.law: Law = SinhLaw(log_a)
        self.log_rate = math.log(4)  # s = rate * integral of r, M lemmas 10 and 12
        if net.depth > 2:
            self.law = PowerLaw(log_a, net.depth, self.kappa)
            self.log_rate = math.log(net.depth * (net.depth - 2))
            self.log_rate += (net.depth - 2) * net.log_alpha
        samples, dimension = self.Z.shape
        # depth 2 needs no coordinates of its own: x = Z^T rho has all its digits
        self.own = dimension if net.depth > 2 else 0
        self.samples = samples
        self.g0 = -float(log_mean_loss(self.loss, np.zeros(samples)))
        self._begin(float(log_a.max()))

    def _begin(self, log_a: float) -> None:
        """The state at sigma = 0: the start itself, or where its margins cease to be faint."""
        self.first_rate = 1.0 if self.loss == "exp" else 0.5
        mean = self.Z.mean(axis=0)
        scale = float(np.abs(self.Z @ mean).max())
        rho, x, kappa0, rise = np.zeros(self.samples), np.zeros(self.own), 0.0, 0.0
        margins = np.zeros(self.samples)
        log_size = math.log(FAINT) - math.log(np.abs(self.Z).sum(axis=1).max())
        if log_a < log_size - 1:
            state, kappa0 = self.law.at(log_size, mean)
            rho = np.full(self.samples, kappa0 / self.samples)
            x = state if self.own else x
            margins = self.Z @ self.law.predictor(state)
            # equal weights: the loss falls by the mean margin times the first pull
            rise = float(margins.mean()) * self.first_rate * math.exp(self.g0)
            self.unit = rise
        else:
            self.unit = min(1.0, max(math.exp(min(log_a, 0.0)) * scale, FAINT))
        self.begin_g = self.g0 + rise
        gaps = margins - rise - self.g0
        # T = rate t e^-g: what has passed before sigma = 0 only fades, like e^-g; what is added
        # since then is integrated in units of its first rate
        self.past = math.log(kappa0 / self.first_rate) - self.begin_g if kappa0 else -math.inf
        self.start = np.concatenate([x, rho, gaps, [0.0]])
        response = self.law.response(self._x(self.start))
        self.log_brake = math.log(float(response.slope @ mean**2)) + response.log_unit

    def log_elapsed(self, sigma: float, time: float) -> float:
        """log of T in units of its first gain; at the start what one unit of g takes."""
        first = math.log(self.unit) if self.past == -math.inf else self.past + self.log_brake
        first += self.begin_g - self.g(sigma)
        if time <= 0:
            return first
        since = math.log(time)
        return max(since, first) + math.log1p(math.exp(-abs(since - first)))

    def atol(self, rtol: float) -> Array:
        """Absolute tolerances of x and rho, of the gaps, and of the time."""
        response = self.law.response(self._x(self.start))
        mean = self.Z.mean(axis=0)
        brake = float(response.slope @ mean**2)
        # x is tiny where the start is huge: its scale is what one unit of margin moves it
        own = np.full(self.own, rtol * min(1.0, float(np.abs(response.gain * mean).max()) / brake))
        rho = np.full(self.samples, rtol * min(1.0, math.exp(-response.log_unit) / brake))
        gaps = np.full(self.samples, max(rtol, 1e-9))  # only differences of gaps pull
        return np.concatenate([own, rho, gaps, [1e-30]])

    def _split(self, state: Array) -> tuple[Array, Array, Array, float]:
        a, b = self.own, self.own + self.samples
        return state[:a], state[a:b], state[b:-1], float(state[-1])

    def _x(self, state: Array) -> Array:
        own, rho, _, _ = self._split(state)
        return own if self.own else rho @ self.Z

    def velocity(self, sigma: float, state: Array) -> Array:
        a, b = self.own, self.own + self.samples
        pull = tail(self.loss, self.g(sigma), state[b:-1])
        response = self.law.response(state[:a] if a else state[:b] @ self.Z)
        v = pull.weights @ self.Z
        cv = response.slope * v
        speed = pull.ratio / float(cv @ v)
        rates = np.empty_like(state)
        if a:
            rates[:a] = speed * response.gain * v
        rates[a:b] = speed * math.exp(-response.log_unit) * pull.weights
        # the drift is zero but for rounding, which it keeps from adding up
        rates[b:-1] = speed * (self.Z @ cv) + (pull.drift - 1)
        rates[-1] = self._time_gain(pull, speed, response) - float(state[-1])
        rates *= self.stretch(sigma)
        return rates

    def _time_gain(self, pull: Tail, speed: float, response: Response) -> float:
        """K^2 / brake, what one unit of g adds to T."""
        log_gain = math.log(speed * pull.ratio) - response.log_unit + self.log_brake
        return math.exp(min(log_gain, HIGHEST))  # a wild trial step may ask for more

    def jacobian(self, sigma: float, state: Array) -> Array:
        pull = tail(self.loss, self.g(sigma), self._split(state)[2])
        response = self.law.response(self._x(state))
        v = pull.weights @ self.Z
        brake = float((response.slope * v) @ v)
        gain = self._time_gain(pull, pull.ratio / brake, response)
        J = np.zeros((len(state), len(state)))
        end = len(state) - 1
        J[:, end - self.samples : end] = self._by_gaps(pull, response, v, brake, gain)
        by_x = self._by_x(pull, response, v, brake, gain)
        if self.own:
            J[:, : self.own] = by_x
        else:
            J[:, : self.samples] = by_x @ self.Z.T
        J[-1, -1] = -1.0
        return self.stretch(sigma) * J

    def _by_gaps(
        self, pull: Tail, response: Response, v: Array, brake: float, time_gain: float
    ) -> Array:
        """Derivatives of the rates of everything in the gaps."""
        q, speed = pull.weights, pull.ratio / brake
        moved = self.Z @ (response.slope * v)
        dq = np.outer(q, q * pull.bend) - np.diag(q * pull.bend)
        dv = self.Z.T @ dq
        d_log_ratio = q * (pull.bend - 1 / pull.ratio)
        d_log_speed = d_log_ratio - 2 * (moved @ dq) / brake
        small = math.exp(-response.log_unit)
        own = np.outer(response.gain * v, d_log_speed) + response.gain[:, None] * dv
        rho = small * (np.outer(q, d_log_speed) + dq)
        gaps = np.outer(moved, d_log_speed) + (self.Z * response.slope) @ dv
        time = time_gain * (d_log_speed + d_log_ratio)
        return np.concatenate(
            [speed * own[: self.own], speed * rho, speed * gaps - q / pull.ratio, time[None]]
        )

    def _by_x(
        self, pull: Tail, response: Response, v: Array, brake: float, time_gain: float
    ) -> Array:
        """Derivatives of the rates of everything in the coordinates x."""
        q, speed = pull.weights, pull.ratio / brake
        d_log_speed = -response.bend * v * v / brake
        own = np.outer(response.gain * v, d_log_speed) + np.diag(response.twist * v)
        rho = math.exp(-response.log_unit) * np.outer(q, d_log_speed)
        gaps = np.outer(self.Z @ (response.slope * v), d_log_speed)
        gaps += self.Z * (response.bend * v)
        time = time_gain * d_log_speed
        return np.concatenate([speed * own[: self.own], speed * rho, speed * gaps, time[None]])

    def first(self) -> Moment:
        """The start itself, where everything is zero, before the clock begins."""
        start, margins = self.moment(0.0, np.zeros_like(self.start)), np.zeros(self.samples)
        return start._replace(t=-1.0, smoothed_margin=self.g0, margins=margins, log_t=-math.inf)

    def moment(self, sigma: float, state: Array) -> Moment:
        _, rho, gaps, time = self._split(state)
        x, g = self._x(state), self.g(sigma)
        log_time = math.log(time) - self.log_brake if time > 0 else -math.inf
        log_time = float(np.logaddexp(log_time, self.past - (g - self.begin_g)))
        with np.errstate(over="ignore", under="ignore"):
            return Moment(
                sigma,
                state,
                smoothed_margin=g,
                log_t=log_time + g - self.law.lift - self.log_rate,
                predictor=self.law.predictor(x),
                margins=g + gaps,
                log_slopes=self.law.log_slope(x),
                dual=rho * self.law.unit,
                log_growth=self.law.log_growth(x),
            )
