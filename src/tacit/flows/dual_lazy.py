"""The dual flow in the kernel regime, at any depth: the dual stays small, maybe beyond float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.flows.dual_form import DualForm
from tacit.flows.march import GaveUp, Snapshot, Step, advance, stiff

LAZY = 1e-3  # the largest |s| that the linearised flow may reach for this file to be used
INSIDE = 0.1  # the largest |s| it then follows


class LazyDual:
    """nu = exp(log_size) * state, with time in the unit exp(log_unit), where state' = -(X b - y).

    `log_size` makes the state of order one where nu itself may be far below what float64 holds.
    """

    def __init__(self, form: DualForm) -> None:
        self.form, self.columns = form, form.scaled
        self.log_size = form.log_reach()
        self.log_unit = self.log_size - form.log_rate
        self.size = float(np.exp(self.log_size))  # may underflow to 0: s then is 0 to float64
        self.front = np.exp(form.log_amplitude + self.log_size)

    def begin(self) -> Snapshot:
        return Snapshot(0.0, np.zeros(self.columns.shape[1]), np.zeros(len(self.form.y)))

    def unit(self) -> float:
        """The shortest time scale at the start: of the tangent kernel or of the escape."""
        slope = self.slope(np.zeros(self.columns.shape[1]))
        kernel = np.linalg.norm(self.form.rows * np.sqrt(slope * self.form.kappa), ord=2) ** 2
        escape = self.size * np.abs(self.form.y @ self.columns).max() / self.form.escape
        return float(1 / max(kernel, escape))

    def predictor(self, ratio: Array) -> Array:
        """beta, from ratio = s / exp(log_size)."""
        s = np.clip(self.size * ratio, -INSIDE, INSIDE)
        safe = np.where(np.abs(s) > 1e-300, s, 1e-300)
        if self.form.depth == 2:
            per_s = 2 * np.sinh(safe) / safe
        else:  # h(s) = 2 cosh(u)^p sinh(p u) with u = atanh(s)
            p, u = self.form.power, np.arctanh(safe)
            per_s = 2 * np.cosh(u) ** p * np.sinh(p * u) / safe
        return self.front * ratio * per_s

    def slope(self, ratio: Array) -> Array:
        """d beta / d ratio."""
        s = np.clip(self.size * ratio, -INSIDE, INSIDE)
        if self.form.depth == 2:
            return self.front * 2 * np.cosh(s)
        p = self.form.power
        return self.front * p * ((1 - s) ** (-p - 1) + (1 + s) ** (-p - 1))

    def velocity(self, _: float, state: Array) -> Array:
        return self.form.y - self.form.rows @ self.predictor(state @ self.columns)

    def jacobian(self, _: float, state: Array) -> Array:
        return -(self.form.rows * self.slope(state @ self.columns)) @ self.columns.T

    def steps(self, rtol: float, t_max: float) -> Iterator[Step]:
        start, h = np.zeros(len(self.form.y)), 1e-4 * self.unit()
        sharpness = self.form.size / (2 * self.form.power * self.front.max())
        atol = rtol * min(sharpness, 1.0) / np.linalg.norm(self.columns, axis=0).max()
        solver = stiff(self.velocity, self.jacobian, start, t_max, h, atol)
        while solver.status == "running":
            if not advance(solver):
                raise GaveUp("its steps became too small; raise rtol")
            if self.size * np.abs(solver.y @ self.columns).max() > INSIDE:
                raise GaveUp("the dual left the kernel regime; use ParameterFlow")
            yield Step(solver.t, lambda t: self._at(solver, t))

    def _at(self, solver: Any, t: float) -> Snapshot:
        state = solver.y.copy() if t == solver.t else solver.dense_output()(t)
        ratio = state @ self.columns
        s = self.size * ratio
        growth = np.array([s, -s]) / 2
        if self.form.depth > 2:
            growth = np.log1p(np.array([-s, s])) / (2 - self.form.depth)
        return Snapshot(t, self.predictor(ratio), state, growth)

    def dual(self, state: Array) -> Array:
        """nu in sample space; 0 where float64 cannot hold it."""
        return self.size * state @ self.form.basis.T
