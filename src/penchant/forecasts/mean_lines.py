"""Gradient steps averaged over their draws, for any separable map, loss and momentum.

How it works (docs/theory sections 29 and 33). Each weight moves on the gradient line w'(u) = F'(w)
of its map. The step delta = -+ gamma g - gamma lambda w/F' of u, taken in w, moves it by

    delta - F''/2 delta^2 + (2 F''^2 - F''' F')/6 delta^3 + ...,

of which -+ gamma g is a combination of the samples. The rest moves the effective start. In the
units of depth 2 the positions are (c + s)/4 and (c - s)/4 with s = X^T nu + tilt, so that all else
is as in `mean_steps`, with F'(w+)^2 + F'(w-)^2 over 4 in the place of w+^2 + w-^2.

Momentum m takes steps of gamma/(1 - m) in time. The mean gradient counts (1 + m)/(1 - m) times in
the second order. The draws of an epoch sum to the same whatever their order, so that noise counts
as for plain steps less what cancels in the memory of the velocity. The residual that a step finds
lacks what velocities still hold. The third order is left out then.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from penchant.arguments import Array
from penchant.forecasts.lines import GradientLine, MapLine, PowerLine
from penchant.forecasts.mean_steps import DEVIATIONS, End, Gains, MeanSteps, Seen, total
from penchant.models.diagonal import DiagonalNet
from penchant.models.reparametrized import Reparametrized
from penchant.training.descent.effective_scale import start_regularizer, tilted_q

SHORT = 0.02  # of the time in which decay shrinks a weight e-fold, for a step of the integration
# Errors of the fall, as shares of it: those of the integration, of the next order, and with
# momentum of the order that is left out. From pilots of 12 kinds on other seeds than are judged.
INTEGRATION, NEXT_ORDER, LEFT_OUT = 0.03, 0.15, 0.12
SIGN = np.array([[1.0], [-1.0]])


class MeanLines(MeanSteps):
    """Steps of this learning rate on these data; `loss` is that of the problem."""

    size = "learning_rate |gradient F''(w)|"

    def __init__(
        self,
        X: Array,
        y: Array,
        loss: str,
        model: DiagonalNet | Reparametrized,
        *,
        rate: float,
        decay: float,
        momentum: float,
        batch: int,
        label_noise: float,
    ) -> None:
        longer = rate / (1 - momentum)
        factor = 2.0 if loss == "squares" else 1.0
        super().__init__(X, y, factor, rate=longer, decay=0.0, batch=batch, label_noise=label_noise)
        self.learning_rate = rate
        self.loss, self.model, self.momentum = loss, model, momentum
        self.decay = decay * (1 - momentum)  # in a unit of time
        self.longest = SHORT / self.decay if self.decay else math.inf
        self.whole_lag = self.lag = (1 + momentum) / (1 - momentum)
        self.drawn, self.held = 1.0, (0.0, 0.0)
        self.memory = -longer / math.log(momentum) if momentum else 0.0  # of the velocity, in time
        if momentum:
            self._remember(momentum, -(-len(y) // batch))
        half = np.split(model.start(X.shape[1]), 2)
        self.lines: list[GradientLine] = (
            [MapLine(model, start) for start in half]
            if isinstance(model, Reparametrized)
            else [PowerLine(model.depth, np.abs(start)) for start in half]
        )

    def _remember(self, m: float, epoch: int) -> None:
        """What velocities hold of the other samples' gradients and of the sample's own."""
        lags = np.arange(1, epoch)
        before = m * (1 - m**epoch) / (epoch * (1 - m)) ** 2  # of earlier epochs
        inside = 0.0  # of this one
        if epoch > 1:
            inside = float(((epoch - lags) * m**lags).sum()) / (epoch * (epoch - 1))
            # gradients of one epoch sum to that of all samples, so that their noises cancel
            self.drawn = 1 - 2 * inside
        self.held = before, inside
        self.begin(math.inf, 0.0)

    def inexact(self, share: float) -> float:
        return INTEGRATION + NEXT_ORDER * share**2 + LEFT_OUT * share * bool(self.momentum)

    def begin(self, t: float, dt: float) -> None:
        """How much velocities hold in the mean of this step: they begin at rest."""
        if not self.memory:
            return
        ages = np.exp(-np.linspace(t, t + dt, 9) / self.memory) if t < math.inf else np.zeros(1)
        before, inside = ((1 - ages).mean() * part for part in self.held)
        apart = 1 - self.together
        self.others = self.together + 2 * apart * inside + 2 * before
        self.alone = apart * (1 - 2 * inside)
        # velocities v lag behind gradients g, so that the integral of v^2 from rest is that of g^2
        # less half of the memory times the first g^2 (exactly for a harmonic well)
        self.lag = 1 + (self.whole_lag - 1) * float((1 - np.square(ages)).mean())

    def seen(self, nu: Array, c: Array, tilt: Array) -> Seen:
        s = nu @ self.X + tilt
        points = [line.at((c + way * s) / 4) for line, way in zip(self.lines, (1, -1), strict=True)]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            up, down = (np.square(point.slope) / 4 for point in points)
            beta = points[0].value - points[1].value
            residual, bend = self._residual(self.X @ beta)
            self.bend = bend
            weight, lean = up + down, up - down
            own = self.unit**2 * total(self.square, weight)
            turns = np.array(
                [[p.w / p.slope, p.bend, 2 * p.bend**2 - p.third * p.slope] for p in points]
            ).transpose(1, 0, 2)
            used = self.used(residual, own, bend)
        return Seen(weight, lean, beta, residual, bend, used, turns)

    def _residual(self, outputs: Array) -> tuple[Array, Array | float]:
        """First and second derivative of the loss in the outputs, over the factor."""
        y, N = self.y, self.samples
        if self.loss == "exp":
            push = np.exp(-y * outputs) / N
            return -y * push, push
        if self.loss == "logistic":
            push = expit(-y * outputs)
            return -y * push / N, push * (1 - push) / N
        return outputs - y, 1.0

    def gains(
        self, used: Array, square: float = 1.0, cube: float = 1.0, turns: Array | None = None
    ) -> Gains:
        """The means of what a step adds to the effective start, per time."""
        assert turns is not None
        g, g2, g3, spread, skew, orders, noise = self.moments(used, square, cube)
        rate, shrink = self.rate, self.rate * self.decay
        (ratio, bend, third), drawn = turns, self.drawn * (spread - noise) + noise
        decay = shrink * ratio
        with np.errstate(over="ignore", invalid="ignore"):
            both = rate**2 * (self.lag * g2 + drawn) + 2 * SIGN * rate * g * decay
            moved = -bend / 2 * both
            faded = -decay - bend / 2 * decay**2
            if not self.momentum:
                cubes = -SIGN * rate**3 * (g3 + 3 * g * spread + skew)
                cubes = cubes - 3 * decay * rate**2 * (g2 + spread)
                cubes = cubes - 3 * SIGN * rate * g * decay**2
                moved, faded = moved + third / 6 * cubes, faded - third / 6 * decay**3
            c, tilt = (
                (2 / rate) * sign @ (moved + faded) for sign in (SIGN[:, 0] ** 2, SIGN[:, 0])
            )
            variance = bend.sum(axis=0) ** 2 * rate**3 * orders
            sizes = np.abs(g) + DEVIATIONS * np.sqrt(np.maximum(spread, 0.0))
            largest = rate * np.abs(bend).max(axis=0) * sizes
        fall = (-2 / rate) * moved.sum(axis=0)
        return Gains(c, tilt, variance, largest, fall, self.decay * (self._degree - 2))

    @property
    def _degree(self) -> int:
        return self.model.depth if isinstance(self.model, DiagonalNet) else 2

    def end(self, c: Array, tilt: Array) -> End:
        plus, minus = (
            line.at((c + way * tilt) / 4) for line, way in zip(self.lines, (1, -1), strict=True)
        )
        if isinstance(self.model, DiagonalNet):
            q = tilted_q(self.model.depth, plus.w, minus.w)
            slope = self.model.depth / 4 * q.weights ** (self.model.depth - 2)
            return End(q, np.log(q.weights), slope)
        derived = start_regularizer(self.model, np.concatenate([plus.w, minus.w]))
        slope = (np.abs(plus.slope / plus.w) + np.abs(minus.slope / minus.w)) / 8
        return End(derived, np.log(np.abs(plus.w * minus.w)) / 2, slope)
