"""The dual flow of depth 2 outside the kernel regime, where the dual grows like |log alpha|.

There beta_i = exp(c_i + s_i) - exp(c_i - s_i) with c_i = log a_i. At small alpha both terms of
c_i + s_i are large and cancel, so the sums are kept at an anchor and only increments are added.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.training.exact.dual.form import DualForm
from tacit.training.exact.follow import GaveUp, Snapshot, Step, advance, stiff, tolerance

FAR = 30.0  # increments of s beyond which a new anchor is set


class Anchor:
    """nu, s and the exponents c + s and c - s at one time; the state is the increment of nu."""

    def __init__(self, form: DualForm, t: float, nu: Array, s: Array, up: Array, down: Array):
        self.form, self.t, self.nu = form, t, nu
        self.s, self.up, self.down = s, up, down
        self.cap = form.log_cap()

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

    def next(self, t: float, state: Array) -> Anchor:
        """The anchor at time `t` after this one."""
        return Anchor(self.form, self.t + t, self.nu + state, *self.moved(state))

    def snapshot(self, t: float, state: Array) -> Snapshot:
        s, up, down = self.moved(state)
        growth = np.array([s, -s]) / 2  # W eq. 16
        return Snapshot(t, self.predictor(s, up, down), self.nu + state, growth)


class OpenDual:
    """The flow of nu, as steps from anchor to anchor."""

    def __init__(self, form: DualForm) -> None:
        self.form, self.log_unit = form, -form.log_rate

    def begin(self) -> Snapshot:
        return Snapshot(0.0, np.zeros(self.form.rows.shape[1]), np.zeros(len(self.form.y)))

    def unit(self) -> float:
        """The shortest time scale at the start: of the tangent kernel or of the escape."""
        root = np.exp(self.form.log_amplitude / 2)
        kernel = 2 * np.linalg.norm(self.form.rows * root, ord=2) ** 2
        escape = np.abs(self.form.y @ self.form.rows).max() / self.form.escape
        return float(1 / max(kernel, escape))

    def steps(self, rtol: float, t_max: float) -> Iterator[Step]:
        # an error in s is a relative error of beta: bound it absolutely, however large s is
        excess = np.exp(np.clip(self.form.log_amplitude.max() - np.log(self.form.size), 0.0, 9.0))
        atol = rtol / excess / np.linalg.norm(self.form.rows, axis=0).max()
        rest, c = np.zeros(len(self.form.y)), self.form.log_amplitude
        anchor, h = Anchor(self.form, 0.0, rest, 0 * c, c, c), 1e-4 * self.unit()
        while anchor.t < t_max:
            length = t_max - anchor.t
            solver = stiff(anchor.velocity, anchor.jacobian, rest, length, h, atol, 1e-3)
            t, state = yield from _until_far(anchor, solver, rtol)
            plateau = t < 3 * solver.step_size  # nothing but a long way to go: go faster
            h = solver.step_size * (10 if plateau else 1)
            anchor = anchor.next(t, state)

    def dual(self, state: Array) -> Array:
        """nu in sample space."""
        return state @ self.form.basis.T


def _until_far(
    anchor: Anchor, solver: Any, rtol: float
) -> Generator[Step, None, tuple[float, Array]]:
    """Steps until a new anchor is due; returns its time (from this anchor) and increment."""
    atol = solver.atol
    while solver.status == "running":
        residual = anchor.velocity(0.0, solver.y)
        solver.atol = atol * tolerance(rtol, residual, anchor.form.y) / rtol
        if not advance(solver):
            raise GaveUp("its steps became too small; raise rtol")
        s, up, down = anchor.moved(solver.y)
        if np.maximum(up, down).max() > anchor.cap - 2:
            raise GaveUp("the predictor grew beyond all expectation; use ParameterFlow")
        yield Step(anchor.t + solver.t, lambda t: _at(anchor, solver, t))
        if np.abs(s - anchor.s).max() > FAR:
            break
    return solver.t, solver.y.copy()


def _at(anchor: Anchor, solver: Any, t: float) -> Snapshot:
    local = min(max(t - anchor.t, solver.t_old or 0.0), solver.t)
    state = solver.y.copy() if t == anchor.t + solver.t else solver.dense_output()(local)
    return anchor.snapshot(t, state)
