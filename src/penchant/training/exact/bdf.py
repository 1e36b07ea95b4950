"""Two forms of theta' = -grad L(theta) - rate theta, and backward differentiation of either.

How it works. phi = e^(rate t) theta is not decayed: phi' = -e^(rate t) grad L(e^(-rate t) phi)
(docs/theory section 19). From a large start it barely moves, and predictors differ by its
displacement only, so `Displaced` integrates phi - start; its digits are those of the displacement,
not of the start. Once that is no longer small, `Backward.change` carries the history of the method
over to `Decayed`, the flow of theta itself, without a restart at order one.

The flow is stiff: the loss is fitted within 1/|start|^2 and the decay takes 1/rate. Backward
differentiation of order up to 5 is stable here, because gradient flows have real eigenvalues. Its
linear systems have as many unknowns as parameters, but the stiff part of the Jacobian is
-J^T diag(bends) J with one row of J per sample, so Woodbury's identity solves them through the
kernel J J^T. The curvature of the model times the residuals is left out of the Jacobian, which
changes the convergence of Newton's iteration and not its answer.

Pitfalls. Where data cannot be fitted the residuals stay and that curvature matters: if the
iteration fails, `Curved` adds it, by conjugate gradients preconditioned with the other solver. A
kernel of dependent samples is indefinite by rounding, which is added to its diagonal. Parameters of
separable models keep their signs and need relative accuracy down to tiny values, since they may
grow again; those of other models cross zero, where that is impossible.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable

import numpy as np
import scipy  # its submodules load when first used, which keeps `import penchant` fast

from penchant.arguments import Array
from penchant.limits import Turns
from penchant.training.exact.loss import Loss
from penchant.training.exact.solver import SHORT, GaveUp
from penchant.training.exact.task import Derivative, SampleFlow

EPS, TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)
LAZY = 0.1  # displacements below this part of the start are integrated as such
SMALL = {True: 1e-6, False: 1e-3}  # parameters below this part of the largest count as that large

Solver = Callable[[Array], Array]
ENOUGH = 1e-3  # relative residual of conjugate gradients; Newton's iteration repeats them
LONGEST = 60  # the most of their iterations


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
            return lambda b: np.full_like(b, np.nan)  # a shorter step follows
        factor = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        substitute = scipy.linalg.lapack.dpotrs  # the checks of cho_solve take longer than it

        def solve(b: Array) -> Array:
            pushed = root * derivative.push(b)
            inner = substitute(factor[0], pushed, lower=True)[0]
            return np.asarray((b - step * derivative.pull(root * inner)) / s)

        return solve

    def apply(self, direction: Array) -> Array:
        outputs = self.root**2 * self.derivative.push(direction)
        return -self.derivative.pull(outputs) - self.rate * direction


class Curved:
    """A with the curvature of the model, which matters for data that cannot be fitted."""

    def __init__(self, tangent: GaussNewton, samples: SampleFlow, at: Array, slopes: Array) -> None:
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

    def __init__(self, samples: SampleFlow, loss: Loss, rate: float, rtol: float) -> None:
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
        bends = self.loss.bends(self.predictions(t, state))
        return GaussNewton(self.samples.derivative(self.parameters(t, state)), bends, self.damping)

    def curved(self, t: float, state: Array) -> Curved:
        """The complete tangent, which costs more, for when the other one is not enough."""
        slopes = self.loss.slopes(self.predictions(t, state))
        return Curved(self.tangent(t, state), self.samples, self.parameters(t, state), slopes)


class Decayed(Form):
    """The flow of theta itself; every parameter is held to relative accuracy.

    Parameters of separable models keep their signs and may grow again from tiny values; those of
    others cross zero, where relative accuracy is impossible. `least` is how far they will move from
    a start at zero.
    """

    def __init__(
        self, samples: SampleFlow, loss: Loss, rate: float, rtol: float, separable: bool
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
    """The flow of phi - start, held to accuracy relative to how far it will move."""

    damping = 0.0

    def __init__(
        self, samples: SampleFlow, loss: Loss, rate: float, rtol: float, start: Array, move: float
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
        small = np.abs(state).max() < LAZY * np.abs(self.start).max()
        return bool(small) and self.rate * t < 300


HIGHEST = 5
KAPPA = np.array([0.0, -0.1850, -1 / 9, -0.0823, -0.0415, 0.0])
HARMONIC = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, HIGHEST + 1))])
LEADING = (1 - KAPPA) * HARMONIC  # what multiplies y(t+h) in the formula of each order
ERROR = KAPPA * HARMONIC + 1 / np.arange(1, HIGHEST + 2)  # times the next difference
ITERATIONS = 6
LEFT = 0.01  # of the tolerance may be left by Newton's iteration
SLOW = 0.1  # a contraction above which the next step gets a new tangent
SIGNS = np.array([[(-1.0) ** m * math.comb(j, m) for m in range(8)] for j in range(8)])


def rising(s: float, count: int) -> Array:
    """s (s+1) ... (s+k-1) / k! for k below `count`: a backward difference's weight at t + s h."""
    factors = np.array([1.0, *((s + k) / (k + 1) for k in range(count - 1))])
    return np.asarray(np.cumprod(factors), dtype=np.float64)


class Backward:
    """Backward differentiation of variable order and step, with a tangent in place of a Jacobian.

    In the form of Shampine and Reichelt, The MATLAB ODE suite (1997); the differences of its last
    points are the rows of `table`. Gradient flows have real eigenvalues, where order 5 is stable.
    """

    def __init__(
        self, system: Form, t: float, state: Array, first_step: float, highest: int = HIGHEST
    ) -> None:
        self.system, self.t, self.h, self.highest = system, t, first_step, highest
        self.order, self.equal, self.taken, self.curved = 1, 0, 0, False
        self.table = np.zeros((HIGHEST + 3, len(state)))
        self.table[0], self.table[1] = state, first_step * system.velocity(t, state)
        self._tangent: GaussNewton | Curved | None = None
        self._solver: tuple[float, Callable[[Array], Array]] | None = None

    @property
    def state(self) -> Array:
        return self.table[0].copy()

    def at(self, t: float) -> Array:
        return rising((t - self.t) / self.h, self.order + 1) @ self.table[: self.order + 1]

    def change(self, system: Form, variables: Callable[[float, Array], Array]) -> None:
        """Continue with `system` and the same history; its state at t is variables(t, state)."""
        count = self.order + 1
        points = SIGNS[:count, :count] @ self.table[:count]
        times = self.t - self.h * np.arange(count)
        moved = [variables(t, point) for t, point in zip(times, points, strict=True)]
        self.table[:count] = SIGNS[:count, :count] @ np.array(moved)
        self.system, self._tangent, self._solver, self.equal = system, None, None, 0

    def step(self) -> None:
        """Take one step; raises GaveUp if none is small enough."""
        for _ in Turns(1000, "a step of backward differentiation"):
            if not self.t + 1e-3 * self.h > self.t:
                raise GaveUp(SHORT)
            ahead = self.table[: self.order + 1].sum(axis=0)
            weights = self.system.weights(ahead)
            correction = self._newton(ahead, weights)
            if correction is None:
                self._resize(0.5)
                continue
            error = ERROR[self.order] * float(np.abs(correction / weights).max())
            if error <= 1:
                self._accept(correction)
                break
            self._resize(max(0.2, 0.9 * error ** (-1 / (self.order + 1))))
        if self.equal > self.order:
            self._choose(weights)

    def _newton(self, ahead: Array, weights: Array) -> Array | None:
        if self._tangent is not None and (total := self._iterate(ahead, weights)) is not None:
            return total
        total = self._with_new_tangent(ahead, weights)
        if total is None and not self.curved:
            self.curved = True
            total = self._with_new_tangent(ahead, weights)
        return total

    def _with_new_tangent(self, ahead: Array, weights: Array) -> Array | None:
        new = self.system.curved if self.curved else self.system.tangent
        self._tangent, self._solver = new(self.t + self.h, ahead), None
        return self._iterate(ahead, weights)

    def _iterate(self, ahead: Array, weights: Array) -> Array | None:
        k, t = self.order, self.t + self.h
        c = self.h / LEADING[k]
        history = HARMONIC[1 : k + 1] @ self.table[1 : k + 1] / LEADING[k]
        total, before, contraction = np.zeros_like(ahead), math.inf, 0.0
        solve = self._factored(c)
        for _ in range(ITERATIONS):
            change = solve(c * self.system.velocity(t, ahead + total) - history - total)
            size = float(np.abs(change / weights).max())
            if not math.isfinite(size):
                break
            if before < math.inf:
                contraction = size / before if before else 0.0
                if contraction >= 0.9:
                    break
            total += change
            if size == 0 or (contraction and size * contraction / (1 - contraction) < LEFT):
                if contraction > SLOW:
                    self._tangent = None
                return total
            before = size
        self._tangent = None
        return None

    def _factored(self, c: float) -> Callable[[Array], Array]:
        assert self._tangent is not None
        if self._solver is None or self._solver[0] != c:
            self._solver = c, self._tangent.solver(c)
        return self._solver[1]

    def _accept(self, correction: Array) -> None:
        k, table = self.order, self.table
        table[k + 2] = correction - table[k + 1]
        table[k + 1] = correction
        for i in range(k, -1, -1):
            table[i] += table[i + 1]
        self.t += self.h
        self.equal += 1
        self.taken += 1

    def _choose(self, weights: Array) -> None:
        """The order that allows the longest step, and that step."""
        factors = {}
        for order in range(max(1, self.order - 1), min(self.highest, self.order + 1) + 1):
            error = ERROR[order] * float(np.abs(self.table[order + 1] / weights).max())
            factors[order] = 0.9 * max(error, 1e-12) ** (-1 / (order + 1))
        self.order = max(factors, key=lambda order: factors[order])
        self._resize(min(factors[self.order], 10.0))

    def _resize(self, factor: float) -> None:
        count = self.order + 1
        points = np.array([rising(-m * factor, count) for m in range(count)])
        self.table[:count] = (SIGNS[:count, :count] @ points) @ self.table[:count]
        self.h *= factor
        self.equal, self._solver = 0, None
        self.curved = self.curved and factor > 1  # shorter steps may not need it
