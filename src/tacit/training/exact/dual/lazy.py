"""The dual flow in the kernel regime, at any depth: the dual stays small, maybe beyond float64."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.training.exact.dual.form import DualForm, leading_columns
from tacit.training.exact.dual.integrator import Anchor
from tacit.training.exact.solver import GaveUp
from tacit.training.exact.task import Moment

LAZY = 1e-3  # the largest |s| that the linearised flow may reach for this file to be used
INSIDE = 0.1  # the largest |s| it then follows


class LazyAnchor(Anchor):
    """The flow near its linearisation, in numbers of the size of beta.

    nu = exp(log_size) * mu with mu of order one, however far nu is below what float64 holds. The
    state is front_i <x_i, mu> of a basis of coordinates, those that answer most to nu, where
    front_i = exp(log_size) a_i: to first order it is beta_i / (2 p).
    """

    newton = 1e-3

    def __init__(self, form: DualForm, log_size: float) -> None:
        super().__init__(form, 0.0, np.zeros(len(form.y)))
        self.size = float(np.exp(log_size))  # may underflow to 0: s then is 0 to float64
        self.front = np.exp(form.log_amplitude + log_size)
        self.basis = leading_columns(form.scaled * self.front)
        self.corner = form.scaled[:, self.basis]
        self.combine = np.linalg.solve(self.corner, form.scaled)
        self.combine[:, self.basis] = np.eye(len(form.y))

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
