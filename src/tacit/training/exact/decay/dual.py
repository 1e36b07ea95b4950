"""The exact flow of diagonal nets under weight decay: one variable per sample, any scale.

The clock is tau = log(1 + t R) + rate t with R the fastest rate of the start, so that the first
moments of a huge start, its long kernel phase and the transition all take a moderate number of
steps.
"""

from __future__ import annotations

import abc
import math
from typing import NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.models.diagonal import DiagonalNet
from tacit.problems.classification import Classification
from tacit.problems.regression import Regression
from tacit.training.exact.decay.law import DecayLaw, Moment
from tacit.training.exact.decay.row_products import RowProducts

LAZY = 18.0  # log of an amplitude from which on beta is linear in x to rounding

RANK = 1e-12  # singular values below this fraction of the largest count as zero


class Force(NamedTuple):
    """q with x' = sigma drive q - ..., and how it answers to the predictions; e^log_unit is out."""

    q: Array
    stiffness: Array  # -dq_n/df_n
    log_unit: float


class DecayDual(abc.ABC):
    """The velocity of the scaled dual x (one entry per row of `rows`) in the clock tau."""

    def __init__(self, law: DecayLaw, rows: Array) -> None:
        self.law, self.rows, self.products = law, rows, RowProducts(rows)
        self.log_rate = self._log_rate()

    @abc.abstractmethod
    def force(self, outputs: Array) -> Force:
        """What the loss pulls with at outputs = rows @ beta."""

    def _log_rate(self) -> float:
        """log R: the fastest of what happens at the start.

        That is the decay, the largest eigenvalue of the linearised dynamics, about, and, from a
        small start, the speed of s, which needs many units before beta is seen at all.
        """
        now, force = self.law.at(0.0), self.force(np.zeros(len(self.rows)))
        pull = np.zeros(self.rows.shape[1])
        weights = np.broadcast_to(self.law.slope(now, pull), pull.shape)
        size = max(float(self.rows.max()), -float(self.rows.min())) or 1.0
        total = np.full(len(self.rows), 1 / size) @ self.rows
        bound = float(np.abs(self.rows @ (weights * total / size)).max() * force.stiffness.max())
        most = float(np.abs(force.q / size @ self.rows).max())
        speeds = [math.log(self.law.rate)]
        if bound > 0:
            eigenvalue = math.log(bound) + 2 * math.log(size) + force.log_unit
            speeds.append(eigenvalue + now.log_sigma + now.log_drive)
        if most > 0:
            speeds.append(math.log(most) + math.log(size) + force.log_unit + now.log_drive)
        return float(np.logaddexp.reduce(speeds))

    def time(self, tau: float) -> float:
        """Training time; zero where it is below float64."""
        return math.exp(self.log_time(tau))

    def log_time(self, tau: float) -> float:
        """log t by Newton's method, which is convex in log t and cannot overshoot from above."""
        if tau <= 0:
            return -math.inf
        log_t = min(
            tau + math.log(-math.expm1(-tau)) - self.log_rate, math.log(tau / self.law.rate)
        )
        for _ in range(60):
            excess = self.tau(log_t) - tau
            step = excess / self._slowness(log_t)
            log_t -= step
            if abs(step) <= 1e-15 * max(1.0, abs(log_t)):
                break
        return log_t

    def tau(self, log_t: float) -> float:
        """The clock at the time e^log_t."""
        fast = float(np.logaddexp(0.0, log_t + self.log_rate))
        return fast + self.law.rate * math.exp(log_t)

    def _slowness(self, log_t: float) -> float:
        """d tau / d log t."""
        x = log_t + self.log_rate
        return math.exp(min(x, 0.0)) / (1 + math.exp(-abs(x))) + self.law.rate * math.exp(log_t)

    def _log_pace(self, log_t: float) -> float:
        """log(dt / dtau)."""
        log_fast = -float(np.logaddexp(-self.log_rate, log_t))
        return -float(np.logaddexp(log_fast, math.log(self.law.rate)))

    def _moment(self, tau: float) -> tuple[Moment, float, float]:
        """The scales of the law at tau, log of what multiplies q, and -d log sigma / d tau."""
        log_t = self.log_time(tau)
        now, log_pace = self.law.at(math.exp(log_t)), self._log_pace(log_t)
        log_push = log_pace + now.log_sigma + now.log_drive
        return now, log_push, math.exp(log_pace) * self.law.depth * self.law.rate * now.share

    def velocity(self, tau: float, x: Array) -> Array:
        now, log_push, fade = self._moment(tau)
        beta = self.law.predictor(now, self.products.pull(x))
        force = self.force(self.products.outputs(beta))
        return math.exp(min(log_push + force.log_unit, 700.0)) * force.q - fade * x

    def jacobian(self, tau: float, x: Array) -> Array:
        now, log_push, fade = self._moment(tau)
        pull = self.products.pull(x)
        beta, weights = self.law.predictor(now, pull), self.law.slope(now, pull)
        force = self.force(self.products.outputs(beta))
        push = math.exp(min(log_push + force.log_unit, 700.0))
        answer = self.products.gram(weights)
        answer *= -(push * force.stiffness)[:, None]
        answer[np.diag_indices_from(answer)] -= fade
        return answer

    def slack(self, tau: float, x: Array) -> float:
        """The least 1 - |s|; 1 at depth 2, where s has no bound."""
        if self.law.depth == 2:
            return 1.0
        return 1 - float(np.abs(self.law.s(self.law.at(self.time(tau)), self.pull(x))).max())

    def pull(self, x: Array) -> Array:
        return x @ self.rows


class MarginDecay(DecayDual):
    """The mean exp or logistic loss; rows are y_n x_n, so that outputs are margins."""

    def __init__(self, net: DiagonalNet, problem: Classification, rate: float) -> None:
        self.loss = problem.loss
        super().__init__(DecayLaw(net, problem.dimension, rate), problem.signed_rows)

    def force(self, outputs: Array) -> Force:
        if self.loss == "exp":
            logs = -outputs
            bend: Array | float = 1.0
        else:
            logs = -np.logaddexp(0.0, outputs)
            bend = np.exp(-np.logaddexp(0.0, -outputs))
        top = float(logs.max())
        q = np.exp(logs - top)
        return Force(q, q * bend, top - math.log(len(outputs)))


class SquareDecay(DecayDual):
    """The sum of squares; rows span the row space of X, so that no direction of x is idle."""

    def __init__(self, net: DiagonalNet, problem: Regression, rate: float) -> None:
        U, S, Vt = np.linalg.svd(problem.X, full_matrices=False)
        rank = max(1, int(np.count_nonzero(S > RANK * S[0])))  # noqa: SIM300
        self.basis, self.targets = U[:, :rank], U[:, :rank].T @ problem.y
        super().__init__(DecayLaw(net, problem.dimension, rate), S[:rank, None] * Vt[:rank])

    def force(self, outputs: Array) -> Force:
        return Force(self.targets - outputs, np.ones_like(outputs), math.log(2.0))

    def lazy(self, tau: float) -> Array:
        """x at a time when the start is still so large that the kernel's flow is exact.

        With sigma = a there, x' = 2 drive sigma (targets - G x) - D rate x: linear, and the last
        term is a tiny ridge beside the first.
        """
        now = self.law.at(self.time(tau))
        zero = np.zeros(self.rows.shape[1])
        gram = (self.rows * self.law.slope(now, zero)) @ self.rows.T
        values, vectors = np.linalg.eigh(gram)
        ridge = self.law.depth * self.law.rate / 2
        values = values + ridge * math.exp(-now.log_drive - now.log_sigma)
        log_impulse = self._log_impulse(tau)
        with np.errstate(over="ignore", under="ignore"):
            done = -np.expm1(-values * math.exp(min(log_impulse, 700.0)))
        return vectors @ ((vectors.T @ self.targets) * done / values)

    def _log_impulse(self, tau: float) -> float:
        """log of the integral of 2 drive sigma dt while sigma = a, both exponentials in t."""
        log_t = self.log_time(tau)
        now = self.law.at(0.0)
        fall = 2 * (self.law.depth - 1) * self.law.rate  # of drive * a
        x = fall * self.time(tau)
        log_span = log_t if x < 1e-8 else math.log(-math.expm1(-x) / fall)
        return math.log(2.0) + now.log_drive + now.log_sigma + log_span
