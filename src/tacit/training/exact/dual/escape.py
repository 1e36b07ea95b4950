"""The first part of a flow from a faint start at depth D > 2: out of the saddles at which it rests.

The loss rests while one weight is balanced to rounding and the next grows by thirty decades.
Neither the loss nor the training time can be the clock there, and gaps held beside the
coordinates would make an integrator's equations singular to rounding. So the margins are read off
the coordinates, which they can be while they are small, and the clock runs with the fastest
coordinate: dx_i/dtau = share_i <z_i, q> with share_i the gain of x_i over the sum of all gains.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.records import Kind, Outcome
from tacit.training.exact.dual.margin import MarginDual
from tacit.training.exact.follow import try_step
from tacit.training.exact.margins.integrator import MarginSnapshot, Plan
from tacit.training.exact.margins.tails import rise, tail

SEPARATED = 10.0  # log(1/loss) beyond log N: no saddle is left, and gaps can be held
AFRESH = 1e8  # steps shorter than 1/AFRESH of the clock start it again from zero


def opening(system: MarginDual, plan: Plan) -> Escape | None:
    """The escape that has to come before an Integrator, where there is one."""
    return Escape(system, plan) if system.own and system.past > -math.inf else None


class Escape:
    """The accepted steps, up to where the data are separated; the clock is autonomous.

    The state is (x, rho, theta), where theta is the training time times the rate of the law.
    """

    def __init__(self, system: MarginDual, plan: Plan) -> None:
        self.system, self.plan = system, plan
        self.Z, self.law = system.Z, system.law
        self.reach = float(np.abs(self.Z).max())
        separated = system.g0 + math.log(system.samples) + SEPARATED
        self.passes_on = plan.end > separated
        self.end = system.sigma(min(plan.end, separated))
        theta = math.exp(system.past + system.begin_g)
        self.state = np.append(system.start[: system.own + system.samples], theta)
        self.low = self._rise(self.state)
        self.now, self.steps, self.failed = 0.0, 0, False
        self.solver: Any = None
        self._cache: tuple[float, MarginSnapshot] | None = None

    def __iter__(self) -> Iterator[tuple[float, float]]:
        """(sigma before, sigma after) every step."""
        fresh = 1
        while fresh and self.now < self.end and self.steps < self.plan.max_steps:
            self.solver, fresh = self._make(), 0
            while try_step(self.solver):
                self.steps, fresh = self.steps + 1, fresh + 1
                self.state, before = self.solver.y.copy(), self.now
                self.now = min(max(self._sigma(self.state), before), self.end)
                yield before, self.now
                short = (self.solver.t - self.solver.t_old) * AFRESH < self.solver.t
                if self.now >= self.end or self.steps >= self.plan.max_steps or short:
                    break
        self.failed = not fresh

    def _make(self) -> Any:
        from scipy.integrate import LSODA

        rtol = self.plan.rtol
        atol = np.full(len(self.state), rtol)
        settings: Any = {"rtol": rtol, "atol": atol, "jac": self._jacobian}
        return LSODA(self._velocity, 0.0, self.state, math.inf, first_step=1e-3, **settings)

    def _read(self, x: Array) -> tuple[float, Array]:
        """The smoothed margin and the margins at x."""
        margins = self.Z @ self.law.predictor(x)
        return self.system.g0 + rise(self.system.loss, margins), margins

    def _rise(self, state: Array) -> float:
        margins = self.Z @ self.law.predictor(state[: self.system.own])
        return rise(self.system.loss, margins)

    def _sigma(self, state: Array) -> float:
        return math.log1p(max(self._rise(state) - self.low, 0.0) / self.system.unit)

    def _velocity(self, _: float, state: Array) -> Array:
        own = self.system.own
        g, margins = self._read(state[:own])
        pull = tail(self.system.loss, g, margins - g)
        response = self.law.response(state[:own])
        total = float(response.gain.sum())
        rates = np.empty_like(state)
        rates[:own] = response.gain * (pull.weights @ self.Z) / (total * self.reach)
        slow = math.exp(-response.log_unit) / (total * self.reach)
        rates[own:-1] = slow * pull.weights
        rates[-1] = slow * pull.ratio * math.exp(min(g, 700.0))  # a trial step may be wild
        return rates

    def _jacobian(self, _: float, state: Array) -> Array:
        """The derivatives of the rates of x; rho and theta move nothing."""
        own = self.system.own
        g, margins = self._read(state[:own])
        pull = tail(self.system.loss, g, margins - g)
        response = self.law.response(state[:own])
        share, bent = response.gain / response.gain.sum(), response.twist / response.gain
        q, v = pull.weights, pull.weights @ self.Z
        dq = np.outer(q, q * pull.bend) - np.diag(q * pull.bend)
        dv = self.Z.T @ dq @ self.Z * (response.slope / response.gain)
        J = np.zeros((len(state), len(state)))
        J[:own, :own] = share[:, None] * dv + np.diag(share * v * bent)
        J[:own, :own] -= np.outer(share * v, share * bent)
        return J / self.reach

    def at(self, sigma: float) -> MarginSnapshot:
        """The flow at a moment of the last step."""
        if self._cache is None or self._cache[0] != sigma:
            self._cache = (sigma, self._snapshot(self._inside(sigma)))
        return self._cache[1]

    def _inside(self, sigma: float) -> Array:
        if sigma >= self._sigma(self.state):
            return self.state
        curve = self.solver.dense_output()
        low, high = float(self.solver.t_old), float(self.solver.t)
        for _ in range(60):
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (low, middle) if self._sigma(curve(middle)) > sigma else (middle, high)
        return np.asarray(curve(high))

    def _snapshot(self, state: Array) -> MarginSnapshot:
        own = self.system.own
        g, margins = self._read(state[:own])
        return MarginSnapshot(
            smoothed_margin=g,
            log_t=math.log(state[-1]) - self.system.log_rate,
            predictor=self.law.predictor(state[:own]),
            margins=margins,
            log_slopes=self.law.log_slope(state[:own]),
            dual=state[own:-1].copy(),
            log_growth=self.law.log_growth(state[:own]),
        )

    def successor(self) -> MarginDual:
        """The same flow from here on, its gaps held in the state."""
        system, own = copy.copy(self.system), self.system.own
        state = self._inside(self.end)
        g, margins = self._read(state[:own])
        system.begin_g, system.unit = g, g - system.g0
        system.past = math.log(state[-1]) - g
        system.start = np.concatenate([state[:-1], margins - g, [0.0]])
        return system

    def outcome(self, last: MarginSnapshot) -> Outcome:
        """How the flow ended, if it ended here."""
        g = last.smoothed_margin
        if self.failed:
            sentence = f"the integrator gave up at smoothed margin {g:.6g}, near a saddle"
            return Outcome(Kind.STALLED, sentence)
        if self.now < self.end:
            sentence = f"stopped at smoothed margin {g:.6g} by max_steps; raise max_steps"
            return Outcome(Kind.BUDGET_SPENT, sentence)
        return Outcome(Kind.SOLVED, f"reached smoothed margin {g:.6g}, log loss {-g:.6g}")
