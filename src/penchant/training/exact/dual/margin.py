"""How a diagonal net's predictor depends on the integral of the loss weights, for any scale.

How it works. With rho this integral, s_i = kappa_i <z_i, rho> and beta_i = a_i h(s_i) (Moroshko et
al. 2020, lemmas 10 and 12, in the notation of `DualForm`; docs/theory section 14). The flow is
integrated in the smoothed margin g = log(1/loss) and not in time, so nothing in it over- or
underflows (section 15): with q the loss weights over their sum and v = Z^T q, ds = v dg / sum_i
beta_i' v_i^2. The variable is sigma = log(1 + (g - g0)/unit), since stiffness grows like g.

Everything that may be beyond float64 is a logarithm; `lift` >= 0 is a common factor e^lift taken
out of a_i and put into the state, so that huge starts, which hardly move, still have digits. The
time is T = t e^-g, whose own equation has no exponential.

Pitfalls. rho alone loses the margins: only differences of order one between margins of 1e7 drive
the flow. So the state also has the gap of every margin from g, with its own equation, and a term
that vanishes up to rounding keeps the gaps consistent with g. From depth 3 on s_i comes closer to 1
than float64 resolves, so the state holds artanh(s_i). A tiny start would spend its first phase on
margins of 1e-300; until they reach 1e-16 all samples contribute equally, and that point has a
closed form. Explicit methods took 1e6 steps, so the Jacobian is exact and the integrator implicit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.models.diagonal import DiagonalNet
from penchant.problems.classification import Classification
from penchant.training.exact.loss import Tail, log_mean_loss, tail
from penchant.training.exact.margins import HIGHEST, MarginSystem
from penchant.training.task import Moment

SMALL = 1e-7  # below this |s| the laws are linear to rounding
LOG_2 = math.log(2)


class Response(NamedTuple):
    """dx_i = gain_i and dbeta_i = slope_i for a drive <z_i, q>, all divided by e^log_unit."""

    slope: Array
    bend: Array  # d slope_i / dx_i
    gain: Array
    twist: Array  # d gain_i / dx_i
    log_unit: float


class SinhLaw:
    """Depth 2: beta = 2 a sinh(s), state x = s e^lift."""

    def __init__(self, log_amplitude: Array) -> None:
        self.log_a = log_amplitude
        self.lift = max(0.0, float(log_amplitude.max()))
        self.unit = math.exp(-self.lift)  # 0 where the start is that large: s is 0 too
        self.level = log_amplitude - self.lift
        self.a = np.exp(self.level)
        self.one, self.zero = np.ones_like(self.a), np.zeros_like(self.a)

    def response(self, x: Array) -> Response:
        s = x * self.unit
        up, down = np.exp(self.level + s), np.exp(self.level - s)
        return Response(up + down, (up - down) * self.unit, self.one, self.zero, 0.0)

    def predictor(self, x: Array) -> Array:
        s = np.abs(x * self.unit)
        linear = 2 * self.a * x
        log_size = self.log_a + s + np.log1p(-np.exp(-2 * np.maximum(s, SMALL)))
        return np.where(s < SMALL, linear, np.copysign(np.exp(log_size), x))

    def log_slope(self, x: Array) -> Array:
        s = np.abs(x * self.unit)
        return self.log_a + s + np.log1p(np.exp(-2 * s))

    def log_growth(self, x: Array) -> Array:
        s = x * self.unit
        return np.array([s / 2, -s / 2])

    def at(self, log_size: float, pull: Array) -> tuple[Array, float]:
        """State and kappa0 where the first |beta_i| reaches e^log_size under s = kappa0 pull."""
        with np.errstate(divide="ignore"):
            kappa0 = float(np.min((log_size - self.log_a) / np.abs(pull)))
        return kappa0 * pull, kappa0


class LiftedPowerLaw:
    """Depth D > 2: beta = a ((1-s)^-p - (1+s)^-p), state x = atanh(s) e^lift.

    atanh keeps the slack 1 - |s|, which gets far smaller than rounding of s.
    """

    def __init__(self, log_amplitude: Array, depth: int, kappa: Array) -> None:
        self.log_a, self.depth, self.kappa = log_amplitude, depth, kappa
        self.p = depth / (depth - 2)
        self.lift = max(0.0, float(log_amplitude.max()))
        self.unit = math.exp(-self.lift)
        self.a = np.exp(log_amplitude - self.lift)

    def slacks(self, x: Array) -> tuple[Array, Array]:
        y = x * self.unit
        return LOG_2 - np.logaddexp(0.0, 2 * y), LOG_2 - np.logaddexp(0.0, -2 * y)

    def response(self, x: Array) -> Response:
        low, high = self.slacks(x)
        base = np.log(self.kappa * self.p) + self.log_a - self.lift
        up, down = base - (self.p + 1) * low, base - (self.p + 1) * high
        log_unit = float(np.maximum(up, down).max())
        up, down = np.exp(up - log_unit), np.exp(down - log_unit)
        gain = self.kappa * np.exp(-low - high - log_unit)  # dx/ds = 1/(1 - s^2)
        # d/dx = unit (1 - s^2) d/ds, and (1 - s^2)/(1 -+ s) = 1 +- s
        bend = (self.p + 1) * self.unit * (up * np.exp(high) - down * np.exp(low))
        twist = 2 * np.tanh(x * self.unit) * gain * self.unit
        return Response(up + down, bend, gain, twist, log_unit)

    def predictor(self, x: Array) -> Array:
        low, high = self.slacks(x)
        y = np.abs(x * self.unit)
        linear = 2 * self.p * self.a * x
        # (1-s)^-p - (1+s)^-p = (1-s^2)^(-p/2) 2 sinh(p atanh s)
        angle = self.p * np.maximum(y, SMALL)
        log_size = self.log_a - self.p / 2 * (low + high) + angle + np.log1p(-np.exp(-2 * angle))
        return np.where(y < SMALL, linear, np.copysign(np.exp(log_size), x))

    def log_slope(self, x: Array) -> Array:
        low, high = self.slacks(x)
        base = np.log(self.kappa) + self.log_a
        return base + np.logaddexp(-(self.p + 1) * low, -(self.p + 1) * high)

    def log_growth(self, x: Array) -> Array:
        low, high = self.slacks(x)
        return -np.array([low, high]) / (self.depth - 2)

    def at(self, log_size: float, pull: Array) -> tuple[Array, float]:
        drive = self.kappa * np.abs(pull)
        log_slack = (self.log_a - log_size) / self.p
        with np.errstate(divide="ignore"):
            kappa0 = (1 - np.exp(log_slack)) / drive
        first = int(np.lexsort((-self.log_a, kappa0))[0])
        share = drive / drive[first]
        # 1 - share (1 - slack) = (1 - share) + share slack, in logarithms
        with np.errstate(divide="ignore"):
            low = np.logaddexp(np.log1p(-np.minimum(share, 1.0)), np.log(share) + log_slack[first])
        y = (np.log1p(share * (1 - math.exp(log_slack[first]))) - low) / 2
        return np.copysign(y, pull), float(kappa0[first])


Law = SinhLaw | LiftedPowerLaw


FAINT = 1e-16  # margins below this leave the loss weights equal to rounding


class MarginDual(MarginSystem):
    """The velocity of one net on one problem in sigma, with g = g0 + unit (e^sigma - 1).

    The state holds the coordinates x (or the duals rho, where they are fewer), the gaps of the
    margins from g, and the time. Margins of 1e7 have no digits left for gaps, and only gaps drive
    the flow.
    """

    def __init__(self, net: DiagonalNet, problem: Classification) -> None:
        assert net.log_alpha is not None
        self.Z, self.loss = problem.signed_rows, problem.loss
        log_shape = np.log(np.abs(net.shape_for(problem.dimension)))
        log_a = net.depth * (net.log_alpha + log_shape)
        self.kappa = np.exp((net.depth - 2) * log_shape)
        self.law: Law = SinhLaw(log_a)
        self.log_rate = math.log(4)  # s = rate * integral of r, lemmas 10 and 12 above
        if net.depth > 2:
            self.law = LiftedPowerLaw(log_a, net.depth, self.kappa)
            self.log_rate = math.log(net.depth * (net.depth - 2))
            self.log_rate += (net.depth - 2) * net.log_alpha
        samples, dimension = self.Z.shape
        # depth 2 needs no coordinates of its own: x = Z^T rho has all its digits
        self.own = dimension if net.depth > 2 else 0
        self.samples = samples
        self.g0 = -float(log_mean_loss(self.loss, np.zeros(samples)))
        self._begin(float(log_a.max()))

    def _begin(self, log_a: float) -> None:
        """The state at sigma = 0: the start itself, or where its margins are no longer tiny."""
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
        self.log_weighted_square = math.log(float(response.slope @ mean**2)) + response.log_unit

    def log_elapsed(self, sigma: float, time: float) -> float:
        """log of T in units of its first gain; at the start what one unit of g takes."""
        first = (
            math.log(self.unit) if self.past == -math.inf else self.past + self.log_weighted_square
        )
        first += self.begin_g - self.g(sigma)
        if time <= 0:
            return first
        since = math.log(time)
        return max(since, first) + math.log1p(math.exp(-abs(since - first)))

    def atol(self, rtol: float) -> Array:
        """Absolute tolerances of x and rho, of the gaps, and of the time."""
        response = self.law.response(self._x(self.start))
        mean = self.Z.mean(axis=0)
        weighted_square = float(response.slope @ mean**2)
        # x is tiny where the start is huge: its scale is what one unit of margin moves it
        own = np.full(
            self.own, rtol * min(1.0, float(np.abs(response.gain * mean).max()) / weighted_square)
        )
        rho = np.full(self.samples, rtol * min(1.0, math.exp(-response.log_unit) / weighted_square))
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
        """K^2 / weighted_square, what one unit of g adds to T."""
        log_gain = math.log(speed * pull.ratio) - response.log_unit + self.log_weighted_square
        return math.exp(min(log_gain, HIGHEST))  # a wild trial step may exceed it

    def jacobian(self, sigma: float, state: Array) -> Array:
        pull = tail(self.loss, self.g(sigma), self._split(state)[2])
        response = self.law.response(self._x(state))
        v = pull.weights @ self.Z
        weighted_square = float((response.slope * v) @ v)
        gain = self._time_gain(pull, pull.ratio / weighted_square, response)
        J = np.zeros((len(state), len(state)))
        end = len(state) - 1
        J[:, end - self.samples : end] = self._by_gaps(pull, response, v, weighted_square, gain)
        by_x = self._by_x(pull, response, v, weighted_square, gain)
        if self.own:
            J[:, : self.own] = by_x
        else:
            J[:, : self.samples] = by_x @ self.Z.T
        J[-1, -1] = -1.0
        return self.stretch(sigma) * J

    def _by_gaps(
        self, pull: Tail, response: Response, v: Array, weighted_square: float, time_gain: float
    ) -> Array:
        q, speed = pull.weights, pull.ratio / weighted_square
        moved = self.Z @ (response.slope * v)
        dq = np.outer(q, q * pull.bend) - np.diag(q * pull.bend)
        dv = self.Z.T @ dq
        d_log_ratio = q * (pull.bend - 1 / pull.ratio)
        d_log_speed = d_log_ratio - 2 * (moved @ dq) / weighted_square
        small = math.exp(-response.log_unit)
        own = np.outer(response.gain * v, d_log_speed) + response.gain[:, None] * dv
        rho = small * (np.outer(q, d_log_speed) + dq)
        gaps = np.outer(moved, d_log_speed) + (self.Z * response.slope) @ dv
        time = time_gain * (d_log_speed + d_log_ratio)
        return np.concatenate(
            [speed * own[: self.own], speed * rho, speed * gaps - q / pull.ratio, time[None]]
        )

    def _by_x(
        self, pull: Tail, response: Response, v: Array, weighted_square: float, time_gain: float
    ) -> Array:
        q, speed = pull.weights, pull.ratio / weighted_square
        d_log_speed = -response.bend * v * v / weighted_square
        own = np.outer(response.gain * v, d_log_speed) + np.diag(response.twist * v)
        rho = math.exp(-response.log_unit) * np.outer(q, d_log_speed)
        gaps = np.outer(self.Z @ (response.slope * v), d_log_speed)
        gaps += self.Z * (response.bend * v)
        time = time_gain * d_log_speed
        return np.concatenate([speed * own[: self.own], speed * rho, speed * gaps, time[None]])

    def first(self) -> Moment:
        """The start itself, where everything is zero, before sigma = 0."""
        start, margins = self.moment(0.0, np.zeros_like(self.start)), np.zeros(self.samples)
        return start._replace(t=-1.0, smoothed_margin=self.g0, margins=margins, log_t=-math.inf)

    def moment(self, sigma: float, state: Array) -> Moment:
        _, rho, gaps, time = self._split(state)
        x, g = self._x(state), self.g(sigma)
        log_time = math.log(time) - self.log_weighted_square if time > 0 else -math.inf
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
