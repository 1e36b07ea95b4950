"""The two forms of theta' = -grad L(theta) - rate theta: the parameters, or where they lead.

phi = e^(rate t) theta is not decayed: phi' = -e^(rate t) grad L(e^(-rate t) phi). From a large
start it barely moves, and its displacement from there is what tells predictors apart.
"""

from __future__ import annotations

import abc
from collections.abc import Callable

import numpy as np
import scipy  # its submodules load when first used: `import tacit` stays light

from tacit.arguments import Array
from tacit.training.exact.loss import Loss
from tacit.training.exact.samples import Derivative, Samples

EPS, TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)
LAZY = 0.1  # displacements below this part of the start are integrated as such
SMALL = {True: 1e-6, False: 1e-3}  # parameters below this part of the largest count as that large

Solver = Callable[[Array], Array]
ENOUGH = 1e-3  # what conjugate gradients may leave; Newton's iteration repeats them
LONGEST = 60  # their number


class GaussNewton:
    """A = -J^T diag(bends) J - rate I: the stiff part of the derivative of a gradient flow.

    The curvature of the model times the slopes of the loss is left out; it is not stiff.
    """

    def __init__(self, derivative: Derivative, bends: Array, rate: float) -> None:
        self.derivative, self.rate, self.root = derivative, rate, np.sqrt(bends)
        self.kernel = self.root[:, None] * derivative.kernel() * self.root

    def solver(self, step: float) -> Solver:
        """Woodbury: (s I + h G^T G)^-1 = (I - h G^T (s I + h G G^T)^-1 G) / s."""
        s, root, derivative = 1 + step * self.rate, self.root, self.derivative
        matrix = step * self.kernel
        # rounding makes the kernel of dependent samples indefinite by about this much
        noise = 4 * len(matrix) * EPS * float(np.diag(matrix).max())
        matrix.flat[:: len(matrix) + 1] += s + noise
        if not np.isfinite(matrix).all():
            return lambda b: np.full_like(b, np.nan)  # Newton's iteration then asks for less
        factor = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)

        def solve(b: Array) -> Array:
            pushed = root * derivative.push(b)
            inner = scipy.linalg.cho_solve(factor, pushed, check_finite=False)
            return np.asarray((b - step * derivative.pull(root * inner)) / s)

        return solve

    def apply(self, direction: Array) -> Array:
        """A direction."""
        outputs = self.root**2 * self.derivative.push(direction)
        return -self.derivative.pull(outputs) - self.rate * direction


class Curved:
    """A with the curvature, for data that cannot be fitted: what is left of them bends the flow."""

    def __init__(self, tangent: GaussNewton, samples: Samples, at: Array, slopes: Array) -> None:
        self.tangent, self.samples, self.at, self.slopes = tangent, samples, at, slopes

    def apply(self, direction: Array) -> Array:
        """(A - sum_n slopes_n Hess f_n) direction, the last by a central difference."""
        size = float(np.abs(direction).max())
        if not 0 < size < np.inf:
            return self.tangent.apply(direction)
        small = 1e-5 * (float(np.abs(self.at).max()) or 1.0) / size
        ahead = self.samples.pullback(self.at + small * direction, self.slopes)
        behind = self.samples.pullback(self.at - small * direction, self.slopes)
        return self.tangent.apply(direction) - (ahead - behind) / (2 * small)

    def solver(self, step: float) -> Solver:
        """Conjugate gradients, preconditioned by the tangent alone."""
        precondition = self.tangent.solver(step)

        def solve(b: Array) -> Array:
            x, left = np.zeros_like(b), b.copy()
            z = precondition(left)
            p, fall = z, float(left @ z)
            enough = ENOUGH**2 * fall
            for _ in range(LONGEST):
                q = p - step * self.apply(p)
                bend = float(p @ q)
                if not bend > 0:  # a step too long for a direction that grows
                    break
                x += (fall / bend) * p
                left -= (fall / bend) * q
                z = precondition(left)
                fall, before = float(left @ z), fall
                if not fall > enough:
                    break
                p = z + (fall / before) * p
            return x

        return solve


class Form(abc.ABC):
    """One form of the flow: which parameters and predictions a state stands for."""

    damping: float  # the rate at which the state itself decays

    def __init__(self, samples: Samples, loss: Loss, rate: float, rtol: float) -> None:
        self.samples, self.loss, self.rate, self.rtol = samples, loss, rate, rtol

    @abc.abstractmethod
    def parameters(self, t: float, state: Array) -> Array: ...

    @abc.abstractmethod
    def predictions(self, t: float, state: Array) -> Array: ...

    @abc.abstractmethod
    def velocity(self, t: float, state: Array) -> Array: ...

    @abc.abstractmethod
    def weights(self, state: Array) -> Array:
        """The error of one step that each variable may have."""

    def tangent(self, t: float, state: Array) -> GaussNewton:
        """The stiff part of the derivative of the velocity."""
        bends = self.loss.bends(self.predictions(t, state))
        return GaussNewton(self.samples.derivative(self.parameters(t, state)), bends, self.damping)

    def curved(self, t: float, state: Array) -> Curved:
        """A tangent that leaves nothing out, dearer, for when the other one is not enough."""
        slopes = self.loss.slopes(self.predictions(t, state))
        return Curved(self.tangent(t, state), self.samples, self.parameters(t, state), slopes)


class Decayed(Form):
    """The flow of theta itself; every parameter is held to relative accuracy.

    Parameters of separable models keep their signs and may grow again from next to nothing; those
    of others cross zero, where relative accuracy would be out of reach. `least` is how far they
    will go from a start at zero.
    """

    def __init__(
        self, samples: Samples, loss: Loss, rate: float, rtol: float, separable: bool
    ) -> None:
        super().__init__(samples, loss, rate, rtol)
        self.small, self.least, self.damping = SMALL[separable], 0.0, rate

    def parameters(self, t: float, state: Array) -> Array:
        return state

    def predictions(self, t: float, state: Array) -> Array:
        return self.samples.predict(state)

    def velocity(self, t: float, state: Array) -> Array:
        slopes = self.loss.slopes(self.samples.predict(state))
        return -self.samples.pullback(state, slopes) - self.rate * state

    def weights(self, state: Array) -> Array:
        size = np.abs(state)
        floor = max(self.small * float(size.max()), 1e-3 * self.least)
        return self.rtol * size + max(self.rtol * floor, TINY)


class Displaced(Form):
    """The flow of phi - start, held to accuracy relative to how far it will go."""

    damping = 0.0

    def __init__(
        self, samples: Samples, loss: Loss, rate: float, rtol: float, start: Array, move: float
    ) -> None:
        super().__init__(samples, loss, rate, rtol)
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

    def weights(self, state: Array) -> Array:
        return np.maximum(self.rtol * (self.size + np.abs(state)), self.least)

    def lazy(self, t: float, state: Array) -> bool:
        """True while the parameters have hardly moved but for the decay."""
        small = np.abs(state).max() < LAZY * np.abs(self.start).max()
        return bool(small) and self.rate * t < 300
