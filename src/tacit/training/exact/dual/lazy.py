"""The dual flow in the kernel regime, at any depth: the dual stays small, maybe beyond float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.training.exact.dual.form import DualForm, leading_columns
from tacit.training.exact.follow import GaveUp, Snapshot, Step, advance, stiff

LAZY = 1e-3  # the largest |s| that the linearised flow may reach for this file to be used
INSIDE = 0.1  # the largest |s| it then follows


class LazyDual:
    """The flow near its linearisation, in numbers of the size of beta.

    nu = exp(log_size) * mu with mu of order one, however far nu is below what float64 holds. The
    state is front_i <x_i, mu> of a basis of coordinates, those that answer most to nu, where
    front_i = exp(log_size) a_i: to first order it is beta_i / (2 p).
    """

    def __init__(self, form: DualForm) -> None:
        self.form = form
        self.log_size = form.log_reach()
        self.log_unit = self.log_size - form.log_rate
        self.size = float(np.exp(self.log_size))  # may underflow to 0: s then is 0 to float64
        self.front = np.exp(form.log_amplitude + self.log_size)
        self.basis = leading_columns(form.scaled * self.front)
        self.corner = form.scaled[:, self.basis]
        self.combine = np.linalg.solve(self.corner, form.scaled)
        self.combine[:, self.basis] = np.eye(len(form.y))

    def begin(self) -> Snapshot:
        return Snapshot(0.0, np.zeros(self.form.rows.shape[1]), np.zeros(len(self.form.y)))

    def unit(self) -> float:
        """The shortest time scale at the start: of the tangent kernel or of the escape."""
        slope = 2 * self.form.power * self.front
        kernel = np.linalg.norm(self.form.rows * np.sqrt(slope * self.form.kappa), ord=2) ** 2
        escape = self.size * np.abs(self.form.y @ self.form.scaled).max() / self.form.escape
        return float(1 / max(kernel, escape))

    def ratio(self, state: Array) -> Array:
        """s / exp(log_size) of every coordinate."""
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
        """d beta / d ratio."""
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

    def steps(self, rtol: float, t_max: float) -> Iterator[Step]:
        start, h, atol = np.zeros(len(self.form.y)), 1e-4 * self.unit(), rtol * self.form.size
        solver = stiff(self.velocity, self.jacobian, start, t_max, h, atol, 1e-3)
        while solver.status == "running":
            if not advance(solver):
                raise GaveUp("its steps became too small; raise rtol")
            if self.size * np.abs(self.ratio(solver.y)).max() > INSIDE:
                raise GaveUp("the dual left the kernel regime; use ParameterFlow")
            yield Step(solver.t, lambda t: self._at(solver, t))

    def _at(self, solver: Any, t: float) -> Snapshot:
        state = solver.y.copy() if t == solver.t else solver.dense_output()(t)
        ratio = self.ratio(state)
        s = self.size * ratio
        growth = np.array([s, -s]) / 2
        if self.form.depth > 2:
            growth = np.log1p(np.array([-s, s])) / (2 - self.form.depth)
        return Snapshot(t, self.predictor(ratio), state, growth)

    def dual(self, state: Array) -> Array:
        """nu in sample space; 0 where float64 cannot hold it."""
        mu = np.linalg.solve(self.corner.T, state / self.front[self.basis])
        return self.size * mu @ self.form.basis.T
