"""Backward differentiation of variable order and step, with a tangent in place of a Jacobian.

Gradient flows are stiff along the tangents of few samples only, so that every linear system is
solved in sample space. All eigenvalues of a gradient flow are real, where these formulas are
stable at every order up to five. They are in the numerical differentiation form of Shampine and
Reichelt, The MATLAB ODE suite, SIAM J. Sci. Comput. 18 (1997).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tacit.arguments import Array
from tacit.training.exact.solver import SHORT, GaveUp
from tacit.training.exact.stiff.system import Curved, Form, GaussNewton

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
    """An integrator at time `t`; the differences of its last points are the rows of `table`."""

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
        """The state at a time inside the last step."""
        return rising((t - self.t) / self.h, self.order + 1) @ self.table[: self.order + 1]

    def change(self, system: Form, variables: Callable[[float, Array], Array]) -> None:
        """Go on with `system`, whose state at t is variables(t, state), with the same history."""
        count = self.order + 1
        points = SIGNS[:count, :count] @ self.table[:count]
        times = self.t - self.h * np.arange(count)
        moved = [variables(t, point) for t, point in zip(times, points, strict=True)]
        self.table[:count] = SIGNS[:count, :count] @ np.array(moved)
        self.system, self._tangent, self._solver, self.equal = system, None, None, 0

    def step(self) -> None:
        """Take one step; raises GaveUp if none is small enough."""
        while True:
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
                break
            self._resize(max(0.2, 0.9 * error ** (-1 / (self.order + 1))))
        self._accept(correction)
        if self.equal > self.order:
            self._choose(weights)

    def _newton(self, ahead: Array, weights: Array) -> Array | None:
        """What the step adds to its prediction; None if the iteration fails with a new tangent."""
        if self._tangent is not None and (found := self._iterate(ahead, weights)) is not None:
            return found
        found = self._afresh(ahead, weights)
        if found is None and not self.curved:
            self.curved = True
            found = self._afresh(ahead, weights)
        return found

    def _afresh(self, ahead: Array, weights: Array) -> Array | None:
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
        """Differences of the same polynomial at another step."""
        count = self.order + 1
        points = np.array([rising(-m * factor, count) for m in range(count)])
        self.table[:count] = (SIGNS[:count, :count] @ points) @ self.table[:count]
        self.h *= factor
        self.equal, self._solver = 0, None
        self.curved = self.curved and factor > 1  # shorter steps may do without
