"""The dual flow of depth D > 2, where the dual stays inside the box |s_i| < 1 (W Lemma 8).

Active coordinates sit at distances of the wall far below the rounding of nu itself. So the state
is not nu but z = log((1+s)/(1-s)) of as many coordinates as there are samples, the basis: those
closest to the wall. The slacks 1-s and 1+s of all other coordinates follow by linear increments
from the last anchor, and the basis is chosen afresh when one of them comes close to the wall.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.training.exact.dual.form import DualForm, leading_columns
from tacit.training.exact.follow import GaveUp, Snapshot, Step, advance, stiff, tolerance

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


class Anchor:
    """The place at one time, and a basis of coordinates whose z moves on from there."""

    def __init__(self, form: DualForm, t: float, place: Place) -> None:
        self.form, self.t, self.place = form, t, place
        # the basis holds the coordinates whose beta answers most to s: near the wall, or large
        large = 2 * form.power * np.exp(np.minimum(form.log_amplitude, 50.0)) / form.size
        weight = np.minimum(np.maximum(1 / place.near, large), STEEPEST)
        columns = form.scaled
        self.basis = leading_columns(columns * weight)
        self.corner = columns[:, self.basis]
        self.combine = np.linalg.solve(self.corner, columns)  # s = combine^T s_basis
        self.combine[:, self.basis] = np.eye(len(form.y))
        self.z = 2 * self.angle(place)[self.basis]
        self.sharpness = 1 / np.maximum(large[self.basis], 1.0)  # of z, for equal errors in beta
        self.limit = np.minimum(place.near, CLOSE) / 10
        self.limit[self.basis] = 0.0
        # no trial step may come closer to the wall than this
        floor = np.exp((form.log_amplitude - form.log_cap()) / form.power)
        self.floor = np.maximum(self.limit / 10, np.minimum(floor, 0.1))

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

    def snapshot(self, t: float, z: Array) -> Snapshot:
        place = self.held(z)
        nu = np.linalg.solve(self.corner.T, place.s[self.basis])
        growth = np.log([place.below, place.above]) / (2 - self.form.depth)  # W eq. 56
        return Snapshot(t, self.predictor(place), nu, growth)


class BoxDual:
    """The flow of nu in its box, as steps from anchor to anchor."""

    def __init__(self, form: DualForm) -> None:
        self.form, self.log_unit = form, -form.log_rate
        closest = float(np.min((form.log_amplitude - form.log_cap()) / form.power))
        if closest < -690:
            raise ValueError(
                f"DualFlow: at this scale a depth-{form.depth} net comes within "
                f"10^{closest / np.log(10):.0f} of the wall of its dual box, beyond float64; "
                "take a larger alpha, or interpolate() for the end of the flow"
            )

    def begin(self) -> Snapshot:
        return Snapshot(0.0, np.zeros(self.form.rows.shape[1]), np.zeros(len(self.form.y)))

    def unit(self) -> float:
        """The shortest time scale at the start: of the tangent kernel or of the escape."""
        slope = 2 * self.form.power * np.exp(self.form.log_amplitude)
        kernel = np.linalg.norm(self.form.rows * np.sqrt(slope * self.form.kappa), ord=2) ** 2
        escape = np.abs(self.form.y @ self.form.scaled).max() / self.form.escape
        return float(1 / max(kernel, escape))

    def steps(self, rtol: float, t_max: float) -> Iterator[Step]:
        ones = np.ones(self.form.rows.shape[1])
        anchor, h, stuck = Anchor(self.form, 0.0, Place(0 * ones, ones, ones)), self.unit(), 0
        h *= 1e-4
        while anchor.t < t_max:
            length = t_max - anchor.t
            atol = rtol * anchor.sharpness
            solver = stiff(anchor.velocity, anchor.jacobian, anchor.z, length, h, atol, 1e-2)
            t, z = yield from _until_crowded(anchor, solver, rtol)
            stuck = stuck + 1 if t == 0 else 0
            if stuck > 25:
                raise GaveUp("coordinates crowd the wall of the dual box; use ParameterFlow")
            h = h / 10 if stuck else max(solver.step_size or 0.0, 1e-8 * t)
            anchor = Anchor(self.form, anchor.t + t, anchor.at(z))

    def dual(self, state: Array) -> Array:
        """nu in sample space."""
        return state @ self.form.basis.T


def _until_crowded(
    anchor: Anchor, solver: Any, rtol: float
) -> Generator[Step, None, tuple[float, Array]]:
    """Steps until a new anchor is due; returns its time (from this anchor) and z."""
    while solver.status == "running":
        t_old, z_old = solver.t, solver.y.copy()
        residual = anchor.residual(anchor.held(z_old))
        solver.atol = tolerance(rtol, residual, anchor.form.y) * anchor.sharpness
        moved = advance(solver)
        near = anchor.at(solver.y).near
        if not moved or (near <= anchor.floor).any():
            return t_old, z_old  # beyond what this anchor can follow: back to the last good step
        yield Step(anchor.t + solver.t, lambda t: _at(anchor, solver, t))
        if (near < anchor.limit).any() or solver.step_size < 1e-11 * solver.t:
            break  # near the wall, or time stands still in float64: count it afresh from here
    return solver.t, solver.y.copy()


def _at(anchor: Anchor, solver: Any, t: float) -> Snapshot:
    local = min(max(t - anchor.t, solver.t_old or 0.0), solver.t)
    z = solver.y.copy() if t == anchor.t + solver.t else solver.dense_output()(local)
    return anchor.snapshot(t, z)
