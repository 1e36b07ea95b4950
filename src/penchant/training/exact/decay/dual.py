"""How a diagonal net's predictor depends on its dual while weight decay shrinks the start.

How it works. With u = e^(-rate t) phi the decay leaves the equation of phi, so the closed forms of
the flow without decay hold with a start that shrinks (docs/theory section 19):
log a_i(t) = D (log(alpha |w0_i|) - rate t), s_i = kappa_i <z_i, x> / sigma and beta_i = a_i h(s_i),
h(s) = 2 sinh(s) at depth 2 and (1-s)^-p - (1+s)^-p, p = D/(D-2), beyond it. One number per sample
is integrated, whatever the dimension: 100,000 features run to the transition in seconds.

`x` is the dual times sigma = 1 + max a: a huge start has tiny s and a decayed one a tiny a, and
in these units x is of the size of the predictor in the first case and of s in the second. The
variable tau = log(1 + R t) + rate t resolves the first moments, in which the loss is fitted, and
then the decay, which takes longer by many orders of magnitude.

Pitfalls. Late in the run a relative error of s is a much larger one of beta, since a_i is tiny and
h huge (`sensitivity`): the tolerance is divided by that. With very many features the cost is that
of the products with the data. They are computed in single precision where the tolerance allows, in
pieces that are summed in double precision, after a common size is divided out, since single
precision ends at 1e-38.
"""

from __future__ import annotations

import abc
import math
from typing import NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.models.diagonal import DiagonalNet
from penchant.problems.classification import Classification
from penchant.problems.regression import Regression

LARGE = 10**6  # entries of a table for which single precision matters
SINGLE = 1e-6  # relative tolerance for which it is far more accurate than needed
PIECE = 1024  # features summed in single precision
SMALL = 1e-5  # below this |s| the laws are linear to s^2, which the series keeps


class Scales(NamedTuple):
    """The scales of one time: log sigma, -d log sigma / dt over D rate, and log(a_i / sigma)."""

    log_sigma: float
    share: float
    log_ratio: Array | float
    log_a: Array | float
    unit: float  # 1 / sigma, zero where sigma is beyond float64
    log_drive: float  # log of ds_i / dt over <z_i, q>


class DecayLaw:
    """The scales and closed forms of one net under decay at `rate`."""

    def __init__(self, net: DiagonalNet, dimension: int, rate: float) -> None:
        assert net.log_alpha is not None
        self.depth, self.rate = net.depth, rate
        shape = np.abs(net.shape_for(dimension))
        # equal starts stay one number: an array of 100,000 equal logarithms is slower
        equal = net.shape is None
        log_shape: Array | float = 0.0 if equal else np.log(shape)
        self.top = float(np.max(log_shape))
        self.log_start = net.log_alpha + log_shape  # log |w(0)|
        self.kappa: Array | float = 1.0 if equal else np.exp((net.depth - 2) * log_shape)
        self.log_alpha = net.log_alpha
        self.p = 1.0 if net.depth == 2 else net.depth / (net.depth - 2)

    def log_amplitude(self, t: float) -> float:
        return self.depth * (self.log_alpha + self.top - self.rate * t)

    def sensitivity(self, t: float) -> float:
        """About how much larger a relative error of beta is than one of s, up to the time t."""
        fallen = max(0.0, -self.log_amplitude(t))
        return 1 + fallen if self.depth == 2 else math.exp(min(fallen * (1 - 2 / self.depth), 25.0))

    def at(self, t: float) -> Scales:
        largest = self.log_amplitude(t)
        log_sigma = float(np.logaddexp(0.0, largest))
        log_a = self.depth * (self.log_start - self.rate * t)
        drive = math.log(4.0)
        if self.depth > 2:
            drive = math.log(self.depth * (self.depth - 2))
            drive += (self.depth - 2) * (self.log_alpha - self.rate * t)
        return Scales(
            log_sigma,
            share=math.exp(min(largest - log_sigma, 0.0)),
            log_ratio=log_a - log_sigma,
            log_a=log_a,
            unit=math.exp(-log_sigma),
            log_drive=drive,
        )

    def s(self, now: Scales, pull: Array) -> Array:
        return pull * (now.unit * self.kappa)

    def predictor(self, now: Scales, pull: Array) -> Array:
        """beta to relative accuracy everywhere: near s = 0 from pull, otherwise from logarithms."""
        s = self.s(now, pull)
        size = np.abs(s)
        if self.depth == 2:
            linear = 2 * np.exp(now.log_ratio) * self.kappa * pull * (1 + s * s / 6)
            angle, log_base = np.maximum(size, SMALL), now.log_a
        else:
            bend = (self.p + 1) * (self.p + 2) / 6
            linear = 2 * self.p * np.exp(now.log_ratio) * self.kappa * pull * (1 + bend * s * s)
            # (1-s)^-p - (1+s)^-p = (1-s^2)^(-p/2) 2 sinh(p atanh s)
            angle = self.p * np.arctanh(np.maximum(size, SMALL))
            log_base = now.log_a - self.p / 2 * np.log1p(-s * s)
        large = np.exp(log_base + angle) * -np.expm1(-2 * angle)
        return np.where(size < SMALL, linear, np.copysign(large, s))

    def slope(self, now: Scales, pull: Array) -> Array:
        size = np.abs(self.s(now, pull))
        if self.depth == 2:
            return np.exp(now.log_ratio + size) * (1 + np.exp(-2 * size)) * self.kappa
        base = self.p * np.exp(now.log_ratio) * self.kappa
        return base * ((1 - size) ** -(self.p + 1) + (1 + size) ** -(self.p + 1))

    def log_slopes(self, now: Scales, pull: Array) -> Array:
        """Logarithms of |d beta_i / dw|^2 up to a common factor, for the tangent kernel."""
        size = np.abs(self.s(now, pull))
        if self.depth == 2:
            return now.log_a + size + np.log1p(np.exp(-2 * size))
        low, high = np.log1p(-size), np.log1p(size)
        log_kernel = 2 * (self.depth - 1) * self.log_start
        power = 2 * (self.depth - 1) / (self.depth - 2)
        return log_kernel + np.logaddexp(-power * low, -power * high)

    def log_growth(self, now: Scales, pull: Array) -> Array:
        s = self.s(now, pull)
        if self.depth == 2:
            return np.array([s / 2, -s / 2])
        return -np.array([np.log1p(-s), np.log1p(s)]) / (self.depth - 2)


LAZY = 18.0  # log of an amplitude from which on beta is linear in x to rounding

RANK = 1e-12  # singular values below this fraction of the largest count as zero


class RowProducts:
    """Products with the (samples x features) table `rows`, to a relative accuracy of `rtol`."""

    def __init__(self, rows: Array, rtol: float = 0.0) -> None:
        self.rows = rows
        self.single = rows.astype(np.float32) if rtol >= SINGLE and rows.size > LARGE else None

    def pull(self, x: Array) -> Array:
        if self.single is None:
            return x @ self.rows
        unit = float(np.abs(x).max()) or 1.0  # single precision ends at 1e-38
        pulled = (x / unit).astype(np.float32) @ self.single
        return np.multiply(pulled, unit, dtype=np.float64)

    def outputs(self, beta: Array) -> Array:
        if self.single is None:
            return self.rows @ beta
        unit = float(np.abs(beta).max()) or 1.0
        scaled, outputs = (beta / unit).astype(np.float32), np.zeros(len(self.rows))
        for at in range(0, len(beta), PIECE):
            outputs += self.single[:, at : at + PIECE] @ scaled[at : at + PIECE]
        return unit * outputs

    def gram(self, weights: Array) -> Array:
        """rows diag(weights) rows^T for weights >= 0."""
        if self.single is None:
            return (self.rows * weights) @ self.rows.T
        unit = float(weights.max()) or 1.0
        root = np.sqrt(weights / unit).astype(np.float32)
        gram = np.zeros((len(self.rows), len(self.rows)))
        for at in range(0, len(root), PIECE):
            part = self.single[:, at : at + PIECE] * root[at : at + PIECE]
            gram += part @ part.T  # NumPy detects the symmetry and does half the work
        return unit * gram


class Force(NamedTuple):
    """q with x' = sigma drive q - ..., and its derivative, both divided by e^log_unit."""

    q: Array
    stiffness: Array  # -dq_n/df_n
    log_unit: float


class DecayDual(abc.ABC):
    """The velocity of the scaled dual x (one entry per row of `rows`) in the variable tau.

    tau = log(1 + t R) + rate t, with R the fastest rate of the start: its first moments, its long
    kernel phase and the transition all take a moderate number of steps.
    """

    def __init__(self, law: DecayLaw, rows: Array) -> None:
        self.law, self.rows, self.products = law, rows, RowProducts(rows)
        self.log_rate = self._log_rate()
        self._last: tuple[float, tuple[Scales, float, float]] | None = None

    @abc.abstractmethod
    def force(self, outputs: Array) -> Force:
        """The force of the loss at outputs = rows @ beta."""

    def _log_rate(self) -> float:
        """log R: the fastest of the decay, of the linear dynamics, and of s from a small start."""
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
        fast = float(np.logaddexp(0.0, log_t + self.log_rate))
        return fast + self.law.rate * math.exp(log_t)

    def _slowness(self, log_t: float) -> float:
        x = log_t + self.log_rate
        return math.exp(min(x, 0.0)) / (1 + math.exp(-abs(x))) + self.law.rate * math.exp(log_t)

    def _log_time_slope(self, log_t: float) -> float:
        """log dt/dtau."""
        log_fast = -float(np.logaddexp(-self.log_rate, log_t))
        return -float(np.logaddexp(log_fast, math.log(self.law.rate)))

    def _moment(self, tau: float) -> tuple[Scales, float, float]:
        """The scales of the law at tau, log of what multiplies q, and -d log sigma / d tau.

        The last ones are kept, for an implicit step asks for the same tau again and again.
        """
        if self._last is None or self._last[0] != tau:
            self._last = tau, self._moment_at(tau)
        return self._last[1]

    def _moment_at(self, tau: float) -> tuple[Scales, float, float]:
        log_t = self.log_time(tau)
        now, log_slope = self.law.at(math.exp(log_t)), self._log_time_slope(log_t)
        log_push = log_slope + now.log_sigma + now.log_drive
        return now, log_push, math.exp(log_slope) * self.law.depth * self.law.rate * now.share

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
    """The sum of squares; rows span the row space of X, so that every direction of x matters."""

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
        term is a tiny ridge compared with the first.
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
