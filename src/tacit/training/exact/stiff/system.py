"""The two forms of theta' = -grad L(theta) - rate theta: the parameters, or where they lead.

phi = e^(rate t) theta is not decayed: phi' = -e^(rate t) grad L(e^(-rate t) phi). From a large
start it barely moves, and its displacement from there is what tells predictors apart.
"""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.training.exact.loss import Loss
from tacit.training.exact.samples import Samples
from tacit.training.exact.stiff.newton import Curved, GaussNewton

EPS, TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)
LAZY = 0.1  # displacements below this part of the start are integrated as such
SMALL = {True: 1e-6, False: 1e-3}  # parameters below this part of the largest count as that large


class Decayed:
    """The flow of theta itself; every parameter is held to relative accuracy.

    `least` is how far they will go from a start at zero.

    Parameters of separable models keep their signs and may grow again from next to nothing;
    those of others cross zero, where relative accuracy would be out of reach.
    """

    def __init__(
        self, samples: Samples, loss: Loss, rate: float, rtol: float, separable: bool
    ) -> None:
        self.samples, self.loss, self.rate, self.rtol = samples, loss, rate, rtol
        self.small, self.least = SMALL[separable], 0.0

    def parameters(self, t: float, state: Array) -> Array:
        return state

    def predictions(self, t: float, state: Array) -> Array:
        return self.samples.predict(state)

    def velocity(self, t: float, state: Array) -> Array:
        slopes = self.loss.slopes(self.samples.predict(state))
        return -self.samples.pullback(state, slopes) - self.rate * state

    def tangent(self, t: float, state: Array) -> GaussNewton:
        bends = self.loss.bends(self.samples.predict(state))
        return GaussNewton(self.samples.derivative(state), bends, self.rate)

    def curved(self, t: float, state: Array) -> Curved:
        slopes = self.loss.slopes(self.samples.predict(state))
        return Curved(self.tangent(t, state), self.samples, state, slopes)

    def weights(self, state: Array) -> Array:
        size = np.abs(state)
        floor = max(self.small * float(size.max()), 1e-3 * self.least)
        return self.rtol * size + max(self.rtol * floor, TINY)


class Displaced:
    """The flow of phi - start, held to accuracy relative to how far it will go."""

    def __init__(
        self, samples: Samples, loss: Loss, rate: float, rtol: float, start: Array, move: float
    ) -> None:
        self.samples, self.loss, self.rate, self.rtol = samples, loss, rate, rtol
        self.start, self.size = start, 0.1 * move
        # predictions of a large start are differences of large numbers
        self.least = 0.0 if samples.exact else 8 * EPS * float(np.abs(start).max())

    def parameters(self, t: float, state: Array) -> Array:
        return np.exp(-self.rate * t) * (self.start + state)

    def predictions(self, t: float, state: Array) -> Array:
        return self.samples.displaced(state, -self.rate * t)

    def velocity(self, t: float, state: Array) -> Array:
        slopes = self.loss.slopes(self.predictions(t, state))
        pull = self.samples.pullback(self.parameters(t, state), slopes)
        return -np.exp(self.rate * t) * pull

    def tangent(self, t: float, state: Array) -> GaussNewton:
        bends = self.loss.bends(self.predictions(t, state))
        return GaussNewton(self.samples.derivative(self.parameters(t, state)), bends, 0.0)

    def curved(self, t: float, state: Array) -> Curved:
        slopes = self.loss.slopes(self.predictions(t, state))
        return Curved(self.tangent(t, state), self.samples, self.parameters(t, state), slopes)

    def weights(self, state: Array) -> Array:
        return np.maximum(self.rtol * (self.size + np.abs(state)), self.least)

    def lazy(self, t: float, state: Array) -> bool:
        """True while the parameters have hardly moved but for the decay."""
        small = np.abs(state).max() < LAZY * np.abs(self.start).max()
        return bool(small) and self.rate * t < 300
