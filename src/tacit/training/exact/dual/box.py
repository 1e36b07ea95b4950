"""The dual flow of depth D > 2, where the dual stays inside the box |s_i| < 1 (W Lemma 8).

Active coordinates sit at distances of the wall far below the rounding of nu itself. So the state
is not nu but z = log((1+s)/(1-s)) of as many coordinates as there are samples, the basis: those
closest to the wall. The slacks 1-s and 1+s of all other coordinates follow by linear increments
from the last anchor, and the basis is chosen afresh when one of them comes close to the wall.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.training.exact.dual.form import DualForm, leading_columns
from tacit.training.exact.dual.integrator import Anchor
from tacit.training.exact.solver import tolerance
from tacit.training.exact.task import Moment

CLOSE = 1e-2  # slack around which a coordinate outside the basis should enter it
STEEPEST = 1e8  # cap on the preference for some coordinates, to keep the basis sound
MIDDLE = 0.5  # below this |s| itself is kept to relative accuracy, above it the slacks are


class Place(NamedTuple):
    """s, 1 - s and 1 + s of every coordinate."""

    s: Array
    below: Array
    above: Array

    @property
    def near(self) -> Array:
        """The distance to the nearer wall."""
        return np.minimum(self.below, self.above)


class BoxAnchor(Anchor):
    """The place at one time, and a basis of coordinates whose z moves on from there."""

    newton = 1e-2

    def __init__(self, form: DualForm, t: float, place: Place) -> None:
        self.place = place
        # the basis holds the coordinates whose beta answers most to s: near the wall, or large
        large = 2 * form.power * np.exp(np.minimum(form.log_amplitude, 50.0)) / form.size
        weight = np.minimum(np.maximum(1 / place.near, large), STEEPEST)
        columns = form.scaled
        self.basis = leading_columns(columns * weight)
        self.corner = columns[:, self.basis]
        self.combine = np.linalg.solve(self.corner, columns)  # s = combine^T s_basis
        self.combine[:, self.basis] = np.eye(len(form.y))
        super().__init__(form, t, 2 * self.angle(place)[self.basis])
        self.sharpness = 1 / np.maximum(large[self.basis], 1.0)  # of z, for equal errors in beta
        self.limit = np.minimum(place.near, CLOSE) / 10
        self.limit[self.basis] = 0.0
        # no trial step may come closer to the wall than this
        floor = np.exp((form.log_amplitude - form.log_cap()) / form.power)
        self.floor = np.maximum(self.limit / 10, np.minimum(floor, 0.1))

    @classmethod
    def first(cls, form: DualForm) -> BoxAnchor:
        closest = float(np.min((form.log_amplitude - form.log_cap()) / form.power))
        if closest < -690:
            raise ValueError(
                f"DualFlow: at this scale a depth-{form.depth} net comes within "
                f"10^{closest / np.log(10):.0f} of the wall of its dual box, beyond float64; "
                "take a larger alpha, or interpolate() for the end of the flow"
            )
        ones = np.ones(form.rows.shape[1])
        return cls(form, 0.0, Place(0 * ones, ones, ones))

    def angle(self, place: Place) -> Array:
        """atanh(s)."""
        inner = np.arctanh(np.clip(place.s, -MIDDLE, MIDDLE))
        outer = np.log(place.above / place.below) / 2
        return np.where(np.abs(place.s) < MIDDLE, inner, outer)

    def at(self, z: Array) -> Place:
        """The place of every coordinate, from z of the basis."""
        s, below, above = np.tanh(z / 2), 2 / (1 + np.exp(z)), 2 / (1 + np.exp(-z))
        start = Place(*(values[self.basis] for values in self.place))
        outer = np.where(z > 0, start.below - below, above - start.above)
        moved = np.where(np.abs(s) < MIDDLE, s - start.s, outer) @ self.combine
        place = Place(self.place.s + moved, self.place.below - moved, self.place.above + moved)
        for values, exact in zip(place, (s, below, above), strict=True):
            values[self.basis] = exact
        return place

    def held(self, z: Array) -> Place:
        """`at`, kept off the wall: a trial step beyond it must fail, not be NaN."""
        s, below, above = self.at(z)
        return Place(s, np.maximum(below, self.floor), np.maximum(above, self.floor))

    def predictor(self, place: Place) -> Array:
        """a h(s) = 2 a (1 - s^2)^(-p/2) sinh(p atanh s), which does not cancel at small s."""
        p, angle = self.form.power, self.angle(place)
        size = p * np.abs(angle)
        log_size = self.form.log_amplitude + size - p / 2 * np.log(place.below * place.above)
        return np.sign(angle) * np.exp(log_size) * -np.expm1(-2 * size)

    def slope(self, place: Place) -> Array:
        """d beta / d s."""
        p, log_a = self.form.power, self.form.log_amplitude
        low, high = np.log(place.below), np.log(place.above)
        return p * (np.exp(log_a - (p + 1) * low) + np.exp(log_a - (p + 1) * high))

    def residual(self, place: Place) -> Array:
        return self.form.rows @ self.predictor(place) - self.form.y

    def velocity(self, _: float, z: Array) -> Array:
        place = self.held(z)
        gain = 2 / (place.below * place.above)[self.basis]  # dz/ds = 2 / (1 - s^2)
        return -gain * (self.residual(place) @ self.corner)

    def jacobian(self, _: float, z: Array) -> Array:
        place = self.held(z)
        product = (place.below * place.above)[self.basis]
        force = self.residual(place) @ self.corner
        pull = self.corner.T @ (self.form.rows * self.slope(place)) @ self.combine.T
        jacobian = -pull * product / product[:, None]
        jacobian[np.diag_indices(len(z))] -= 2 * place.s[self.basis] / product * force
        return jacobian

    def unit(self) -> float:
        return self.form.unit(np.exp(self.form.log_amplitude))

    def atol(self, rtol: float, state: Array) -> Array:
        return tolerance(rtol, self.residual(self.held(state)), self.form.y) * self.sharpness

    def follows(self, state: Array) -> bool:
        return not (self.at(state).near <= self.floor).any()

    def far(self, solver: Any) -> bool:
        # near the wall, or time stands still in float64: count it afresh from here
        near = (self.at(solver.y).near < self.limit).any()
        return bool(near or solver.step_size < 1e-11 * solver.t)

    def next(self, t: float, state: Array) -> BoxAnchor:
        return BoxAnchor(self.form, self.t + t, self.at(state))

    def first_step(self, t: float, solver: Any) -> float:
        return max(solver.step_size or 0.0, 1e-8 * t)

    def moment(self, t: float, state: Array) -> Moment:
        place = self.held(state)
        nu = np.linalg.solve(self.corner.T, place.s[self.basis])
        growth = np.log([place.below, place.above]) / (2 - self.form.depth)  # W eq. 56
        predictor, dual = self.predictor(place), nu @ self.form.basis.T
        return Moment(t, nu, predictor=predictor, dual=dual, log_growth=growth)
