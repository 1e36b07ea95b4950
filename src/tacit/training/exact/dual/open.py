"""The dual flow of depth 2 outside the kernel regime, where the dual grows like |log alpha|.

There beta_i = exp(c_i + s_i) - exp(c_i - s_i) with c_i = log a_i. At small alpha both terms of
c_i + s_i are large and cancel, so the sums are kept at an anchor and only increments are added.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.training.exact.dual.form import DualForm
from tacit.training.exact.dual.integrator import Anchor
from tacit.training.exact.solver import GaveUp, tolerance
from tacit.training.exact.task import Moment

FAR = 30.0  # increments of s beyond which a new anchor is set


class OpenAnchor(Anchor):
    """nu, s and the exponents c + s and c - s at one time; the state is the increment of nu."""

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
        """s, c + s and c - s after the increment `state` of nu."""
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

    def unit(self) -> float:
        root = np.exp(self.form.log_amplitude / 2)
        kernel = 2 * np.linalg.norm(self.form.rows * root, ord=2) ** 2
        escape = np.abs(self.form.y @ self.form.rows).max() / self.form.escape
        return float(1 / max(kernel, escape))

    def atol(self, rtol: float, state: Array) -> float:
        # an error in s is a relative error of beta: bound it absolutely, however large s is
        atol = rtol / self.excess / self.longest
        return float(atol * tolerance(rtol, self.velocity(0.0, state), self.form.y) / rtol)

    def follows(self, state: Array) -> bool:
        _, up, down = self.moved(state)
        if np.maximum(up, down).max() > self.cap - 2:
            raise GaveUp("the predictor grew beyond all expectation; use ParameterFlow")
        return True

    def far(self, solver: Any) -> bool:
        return bool(np.abs(self.moved(solver.y)[0] - self.s).max() > FAR)

    def next(self, t: float, state: Array) -> OpenAnchor:
        return OpenAnchor(self.form, self.t + t, self.nu + state, *self.moved(state))

    def first_step(self, t: float, solver: Any) -> float:
        plateau = t < 3 * solver.step_size  # nothing but a long way to go: go faster
        return float(solver.step_size * (10 if plateau else 1))

    def moment(self, t: float, state: Array) -> Moment:
        (s, up, down), nu = self.moved(state), self.nu + state
        growth = np.array([s, -s]) / 2  # W eq. 16
        predictor, dual = self.predictor(s, up, down), nu @ self.form.basis.T
        return Moment(t, nu, predictor=predictor, dual=dual, log_growth=growth)
