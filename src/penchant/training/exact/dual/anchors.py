"""The dual flow on values near an anchor: in the kernel regime, at depth 2, and deeper.

How it works. All three follow nu' = -rate (X beta - y) of `integrator`, in the variables that
resolve beta at their end of the scales:

- `LazyAnchor`, for large starts: s is so small that beta is nearly linear in it, and may be below
  what float64 holds. The state is of the size of beta instead, with the unit of s kept apart.
- `OpenAnchor`, depth 2: beta_i = e^(c_i + s_i) - e^(c_i - s_i). At a small alpha both terms of an
  exponent are large and cancel, so the sums are stored and moved, and the state counts from the
  anchor.
- `BoxAnchor`, deeper nets: s stays inside (-1, 1), and beta grows like (1 - |s|)^-p. Slacks get far
  smaller than the rounding of s, so the state is z = log((1+s)/(1-s)) of as many coordinates as
  there are samples, those closest to the wall or largest, and the slacks of the others move by
  increments.

Errors are bounded where they matter: an error in s is a relative error of beta, so its tolerance is
absolute however large s has become, and at large starts it is divided by how much larger the
amplitudes are than the predictor.

Pitfalls. Coordinates outside the basis of `BoxAnchor` may come close to the wall too; then an
anchor with another basis is set before their increments lose digits. The preference for close
coordinates is capped, or the basis would be nearly singular. A trial step beyond the wall must fail
and not be NaN, so slacks have a floor that no accepted step reaches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.training.exact.dual.integrator import DualForm, FlowAnchor, corner
from penchant.training.exact.solver import GaveUp, tolerance
from penchant.training.task import Moment

LAZY = 1e-3  # the largest |s| that the linearised flow may reach for this file to be used
INSIDE = 0.1  # the largest |s| it then follows


class LazyAnchor(FlowAnchor):
    """The flow near its linearisation, in numbers of the size of beta.

    nu = exp(log_size) * mu with mu of order one, however far nu is below what float64 holds. The
    state is front_i <x_i, mu> of a basis of coordinates, those that respond most to nu, where
    front_i = exp(log_size) a_i: to first order it is beta_i / (2 p).
    """

    newton = 1e-3

    def __init__(self, form: DualForm, log_size: float) -> None:
        super().__init__(form, 0.0, np.zeros(len(form.y)))
        self.size = float(np.exp(log_size))  # may underflow to 0: s then is 0 to float64
        self.front = np.exp(form.log_amplitude + log_size)
        self.basis, self.corner, self.combine = corner(form.scaled, self.front)

    def ratio(self, state: Array) -> Array:
        return (state / self.front[self.basis]) @ self.combine

    def predictor(self, ratio: Array) -> Array:
        s = np.clip(self.size * ratio, -INSIDE, INSIDE)
        safe = np.where(np.abs(s) > 1e-300, s, 1e-300)
        if self.form.depth == 2:
            per_s = 2 * np.sinh(safe) / safe
        else:  # h(s) = 2 cosh(u)^p sinh(p u) with u = atanh(s)
            p, u = self.form.power, np.arctanh(safe)
            per_s = 2 * np.cosh(u) ** p * np.sinh(p * u) / safe
        return self.front * ratio * per_s

    def slope(self, ratio: Array) -> Array:
        s = np.clip(self.size * ratio, -INSIDE, INSIDE)
        if self.form.depth == 2:
            return self.front * 2 * np.cosh(s)
        p = self.form.power
        return self.front * p * ((1 - s) ** (-p - 1) + (1 + s) ** (-p - 1))

    def velocity(self, _: float, state: Array) -> Array:
        residual = self.form.rows @ self.predictor(self.ratio(state)) - self.form.y
        return -self.front[self.basis] * (residual @ self.corner)

    def jacobian(self, _: float, state: Array) -> Array:
        front = self.front[self.basis]
        pull = (self.form.rows * self.slope(self.ratio(state))) @ self.combine.T
        return -front[:, None] * (self.corner.T @ pull) / front

    def unit(self) -> float:
        return self.form.unit(self.front, self.size)

    def atol(self, rtol: float, state: Array) -> float:
        return rtol * self.form.size

    def follows(self, state: Array) -> bool:
        if self.size * np.abs(self.ratio(state)).max() > INSIDE:
            raise GaveUp("the dual left the kernel regime; use ParameterFlow")
        return True

    def moment(self, t: float, state: Array) -> Moment:
        ratio = self.ratio(state)
        s = self.size * ratio
        growth = np.array([s, -s]) / 2
        if self.form.depth > 2:
            growth = np.log1p(np.array([-s, s])) / (2 - self.form.depth)
        mu = np.linalg.solve(self.corner.T, state / self.front[self.basis])
        dual = self.size * mu @ self.form.basis.T  # 0 where float64 cannot hold it
        return Moment(t, state, predictor=self.predictor(ratio), dual=dual, log_growth=growth)


FAR = 30.0  # increments of s beyond which a new anchor is set


class OpenAnchor(FlowAnchor):
    """Depth 2: beta_i = exp(c_i + s_i) - exp(c_i - s_i), c_i = log a_i; the state adds to nu.

    At small alpha the terms of c + s are large and cancel, so the sums themselves are stored.
    """

    newton = 1e-3

    def __init__(
        self, form: DualForm, t: float, nu: Array, s: Array, up: Array, down: Array
    ) -> None:
        super().__init__(form, t, np.zeros(len(form.y)))
        self.nu, self.s, self.up, self.down = nu, s, up, down
        self.cap = form.log_cap()
        self.excess = np.exp(np.clip(form.log_amplitude.max() - np.log(form.size), 0.0, 9.0))
        self.longest = np.linalg.norm(form.rows, axis=0).max()

    @classmethod
    def first(cls, form: DualForm) -> OpenAnchor:
        c = form.log_amplitude
        return cls(form, 0.0, np.zeros(len(form.y)), 0 * c, c, c)

    def moved(self, state: Array) -> tuple[Array, Array, Array]:
        step = state @ self.form.rows
        return self.s + step, self.up + step, self.down - step

    def predictor(self, s: Array, up: Array, down: Array) -> Array:
        near = np.exp(self.form.log_amplitude) * 2 * np.sinh(np.clip(s, -1, 1))
        # a trial step that grows beyond the cap must fail, not overflow
        far = np.exp(np.minimum(up, self.cap)) - np.exp(np.minimum(down, self.cap))
        return np.where(np.abs(s) < 1, near, far)

    def velocity(self, _: float, state: Array) -> Array:
        return self.form.y - self.form.rows @ self.predictor(*self.moved(state))

    def jacobian(self, _: float, state: Array) -> Array:
        up, down = self.moved(state)[1:]
        slope = np.exp(np.minimum(up, self.cap)) + np.exp(np.minimum(down, self.cap))
        return -(self.form.rows * slope) @ self.form.rows.T

    def atol(self, rtol: float, state: Array) -> float:
        # an error in s is a relative error of beta: bound it absolutely, however large s is
        atol = rtol / self.excess / self.longest
        return float(atol * tolerance(rtol, self.velocity(0.0, state), self.form.y) / rtol)

    def follows(self, state: Array) -> bool:
        _, up, down = self.moved(state)
        if np.maximum(up, down).max() > self.cap - 2:
            raise GaveUp(
                "the predictor grew more than this form of the flow allows; use ParameterFlow"
            )
        return True

    def far(self, solver: Any) -> bool:
        return bool(np.abs(self.moved(solver.y)[0] - self.s).max() > FAR)

    def next(self, t: float, state: Array) -> OpenAnchor:
        return OpenAnchor(self.form, self.t + t, self.nu + state, *self.moved(state))

    def first_step(self, t: float, solver: Any) -> float:
        plateau = t < 3 * solver.step_size  # nothing changes yet: take longer steps
        return float(solver.step_size * (10 if plateau else 1))

    def moment(self, t: float, state: Array) -> Moment:
        (s, up, down), nu = self.moved(state), self.nu + state
        growth = np.array([s, -s]) / 2  # Woodworth et al. 2020, eq. 16
        predictor, dual = self.predictor(s, up, down), nu @ self.form.basis.T
        return Moment(t, nu, predictor=predictor, dual=dual, log_growth=growth)


CLOSE = 1e-2  # slack around which a coordinate outside the basis should enter it
STEEPEST = 1e8  # cap on the preference for some coordinates, to keep the basis sound
MIDDLE = 0.5  # below this |s| itself is kept to relative accuracy, above it the slacks are


class BoxPoint(NamedTuple):
    """s, 1 - s and 1 + s of every coordinate."""

    s: Array
    below: Array
    above: Array

    @property
    def near(self) -> Array:
        return np.minimum(self.below, self.above)


class BoxAnchor(FlowAnchor):
    """Depth D > 2, where the dual stays inside the box |s_i| < 1.

    That is lemma 8 of Woodworth et al. 2020.

    Coordinates come closer to the wall than nu is rounded. So the state is z = log((1+s)/(1-s)) of
    a basis, the closest ones; the slacks of the others follow by increments from this point.
    """

    newton = 1e-2

    def __init__(self, form: DualForm, t: float, point: BoxPoint) -> None:
        self.point = point
        # the basis holds the coordinates whose beta responds most to s: near the wall, or large
        large = 2 * form.power * np.exp(np.minimum(form.log_amplitude, 50.0)) / form.size
        weight = np.minimum(np.maximum(1 / point.near, large), STEEPEST)
        self.basis, self.corner, self.combine = corner(form.scaled, weight)
        super().__init__(form, t, 2 * self.angle(point)[self.basis])
        self.sharpness = 1 / np.maximum(large[self.basis], 1.0)  # of z, for equal errors in beta
        self.limit = np.minimum(point.near, CLOSE) / 10
        self.limit[self.basis] = 0.0
        # no trial step may come closer to the wall than this
        floor = np.exp((form.log_amplitude - form.log_cap()) / form.power)
        self.floor = np.maximum(self.limit / 10, np.minimum(floor, 0.1))

    @classmethod
    def first(cls, form: DualForm) -> BoxAnchor:
        closest = float(np.min((form.log_amplitude - form.log_cap()) / form.power))
        if closest < -690:
            raise ValueError(
                f"DualFlow: at this scale a depth-{form.depth} net comes within"
                f" 10^{closest / np.log(10):.0f} of the boundary of its dual box, beyond float64;"
                " take a larger alpha, or interpolate() for the end of the flow"
            )
        ones = np.ones(form.rows.shape[1])
        return cls(form, 0.0, BoxPoint(0 * ones, ones, ones))

    def angle(self, point: BoxPoint) -> Array:
        inner = np.arctanh(np.clip(point.s, -MIDDLE, MIDDLE))
        outer = np.log(point.above / point.below) / 2
        return np.where(np.abs(point.s) < MIDDLE, inner, outer)

    def at(self, z: Array) -> BoxPoint:
        s, below, above = np.tanh(z / 2), 2 / (1 + np.exp(z)), 2 / (1 + np.exp(-z))
        start = BoxPoint(*(values[self.basis] for values in self.point))
        outer = np.where(z > 0, start.below - below, above - start.above)
        moved = np.where(np.abs(s) < MIDDLE, s - start.s, outer) @ self.combine
        point = BoxPoint(self.point.s + moved, self.point.below - moved, self.point.above + moved)
        for values, exact in zip(point, (s, below, above), strict=True):
            values[self.basis] = exact
        return point

    def clipped(self, z: Array) -> BoxPoint:
        """`at`, kept off the wall: a trial step beyond it must fail, not be NaN."""
        s, below, above = self.at(z)
        return BoxPoint(s, np.maximum(below, self.floor), np.maximum(above, self.floor))

    def predictor(self, point: BoxPoint) -> Array:
        """a h(s) = 2 a (1 - s^2)^(-p/2) sinh(p atanh s), which does not cancel at small s."""
        p, angle = self.form.power, self.angle(point)
        size = p * np.abs(angle)
        log_size = self.form.log_amplitude + size - p / 2 * np.log(point.below * point.above)
        return np.sign(angle) * np.exp(log_size) * -np.expm1(-2 * size)

    def slope(self, point: BoxPoint) -> Array:
        p, log_a = self.form.power, self.form.log_amplitude
        low, high = np.log(point.below), np.log(point.above)
        return p * (np.exp(log_a - (p + 1) * low) + np.exp(log_a - (p + 1) * high))

    def residual(self, point: BoxPoint) -> Array:
        return self.form.rows @ self.predictor(point) - self.form.y

    def velocity(self, _: float, z: Array) -> Array:
        point = self.clipped(z)
        gain = 2 / (point.below * point.above)[self.basis]  # dz/ds = 2 / (1 - s^2)
        return -gain * (self.residual(point) @ self.corner)

    def jacobian(self, _: float, z: Array) -> Array:
        point = self.clipped(z)
        product = (point.below * point.above)[self.basis]
        force = self.residual(point) @ self.corner
        pull = self.corner.T @ (self.form.rows * self.slope(point)) @ self.combine.T
        jacobian = -pull * product / product[:, None]
        jacobian[np.diag_indices(len(z))] -= 2 * point.s[self.basis] / product * force
        return jacobian

    def atol(self, rtol: float, state: Array) -> Array:
        return tolerance(rtol, self.residual(self.clipped(state)), self.form.y) * self.sharpness

    def follows(self, state: Array) -> bool:
        return not (self.at(state).near <= self.floor).any()

    def far(self, solver: Any) -> bool:
        # near the wall, or where time stands still in float64: count time from here
        near = (self.at(solver.y).near < self.limit).any()
        return bool(near or solver.step_size < 1e-11 * solver.t)

    def next(self, t: float, state: Array) -> BoxAnchor:
        return BoxAnchor(self.form, self.t + t, self.at(state))

    def first_step(self, t: float, solver: Any) -> float:
        return max(solver.step_size or 0.0, 1e-8 * t)

    def moment(self, t: float, state: Array) -> Moment:
        point = self.clipped(state)
        nu = np.linalg.solve(self.corner.T, point.s[self.basis])
        growth = np.log([point.below, point.above]) / (2 - self.form.depth)  # their eq. 56
        predictor, dual = self.predictor(point), nu @ self.form.basis.T
        return Moment(t, nu, predictor=predictor, dual=dual, log_growth=growth)
