"""The first part of a flow from a tiny start at depth D > 2: out of the saddles where it rests.

The loss rests while one weight is balanced to rounding and the next grows by thirty decades.
Neither the loss nor the training time can be the variable of integration there, and gaps stored
along with the coordinates would make the equations singular up to rounding. So the margins are
computed from the coordinates, which is accurate while they are small, and the variable tau follows
the fastest coordinate: dx_i/dtau = share_i <z_i, q> with share_i the gain of x_i over the sum of
all gains.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.records import Outcome
from penchant.training.exact.dual.margin import MarginDual
from penchant.training.exact.follow import FlowPlan
from penchant.training.exact.loss import rise, tail
from penchant.training.exact.margins import PASSED, MarginPlan, MarginSteps
from penchant.training.exact.solver import GaveUp, inside, try_step
from penchant.training.task import Moment

SEPARATED = 10.0  # log(1/loss) beyond log N: no saddle is left, and gaps can be held
RESTART = 1e8  # a step shorter than 1/RESTART of tau restarts tau at zero


def opening(system: MarginDual, plan: MarginPlan) -> Escape | None:
    return Escape(system, plan) if system.own and system.past > -math.inf else None


class Escape(MarginSteps):
    """The accepted steps up to separated data; the state is (x, rho, rate times the time)."""

    def __init__(self, system: MarginDual, plan: MarginPlan) -> None:
        separated = system.g0 + math.log(system.samples) + SEPARATED
        super().__init__(system, system.sigma(min(plan.end, separated)))
        self.passes_on, self.rtol = plan.end > separated, plan.rtol
        self.Z, self.law = system.Z, system.law
        self.reach = float(np.abs(self.Z).max())
        theta = math.exp(system.past + system.begin_g)
        self.state = np.append(system.start[: system.own + system.samples], theta)
        self.low = self._rise(self.state)
        self.was = 0.0  # sigma at the beginning of the last step

    def advance(self, limit: float) -> None:
        short = self.solver is None or (
            (self.solver.t - self.solver.t_old) * RESTART < self.solver.t
        )
        if short:
            self.solver = self._make()
        if not try_step(self.solver):
            self.solver = self._make()
            if short or not try_step(self.solver):
                raise GaveUp("a saddle is too near")
        self.steps += 1
        self.was, self.state = self._sigma(self.state), self.solver.y.copy()
        self.t = min(max(self._sigma(self.state), self.t), self.end)

    def _make(self) -> Any:
        from scipy.integrate import LSODA

        atol = np.full(len(self.state), self.rtol)
        settings: Any = {"rtol": self.rtol, "atol": atol, "jac": self._jacobian}
        return LSODA(self._velocity, 0.0, self.state, math.inf, first_step=1e-3, **settings)

    def _read(self, x: Array) -> tuple[float, Array]:
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

    def _inside(self, sigma: float) -> Array:
        now = self._sigma(self.state)
        if sigma >= now:
            return self.state
        return inside(self.solver, self._sigma, sigma, (self.was, now), -1.0)  # to the bit

    def inside(self, sigma: float) -> Moment:
        state, own = self._inside(sigma), self.system.own
        g, margins = self._read(state[:own])
        return Moment(
            sigma,
            state,
            smoothed_margin=g,
            log_t=math.log(state[-1]) - self.system.log_rate,
            predictor=self.law.predictor(state[:own]),
            margins=margins,
            log_slopes=self.law.log_slope(state[:own]),
            dual=state[own:-1].copy(),
            log_growth=self.law.log_growth(state[:own]),
        )

    def successor(self) -> MarginDual:
        system, own = copy.copy(self.system), self.system.own
        state = self._inside(self.end)
        g, margins = self._read(state[:own])
        system.begin_g, system.unit = g, g - system.g0
        system.past = math.log(state[-1]) - g
        system.start = np.concatenate([state[:-1], margins - g, [0.0]])
        return system

    def reached(self, now: Moment, plan: FlowPlan) -> Outcome:
        return PASSED if self.passes_on else super().reached(now, plan)
