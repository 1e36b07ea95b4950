"""Newton's method for the dual of a spectral regularizer: A(U b(s) V^T) = y with S = A^T nu."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.solvers.continuation import Failed
from tacit.solvers.matrices.hessian import Hessian
from tacit.solvers.matrices.state import State


def newton(state: State, close: float, misfit: float, budget: int) -> tuple[State, Hessian, int]:
    """(state, Hessian there or just before, steps) once a step is relatively below `close`.

    A misfit below `misfit`, or steps that no longer shrink because they have reached rounding,
    end the iteration too.
    """
    last = np.inf
    for step in range(1, budget + 1):
        hessian = Hessian(state)
        if np.abs(state.misfit).max() <= misfit:
            return state, hessian, step
        dnu = hessian.solve(state.misfit)
        size = state.relative(dnu)
        if not np.isfinite(size):
            raise Failed("a Newton step overflowed")
        if last < 0.1 and size > 0.5 * last and np.abs(state.misfit).max() < state.rounding():
            return state, hessian, step
        done = size < close and state.exact_slopes()
        state, last = search(state, dnu), size
        if done:
            return state, hessian, step
    if close < 1e-3 and last < 0.1:  # the certificate will tell how close this is
        return state, hessian, budget
    raise Failed(f"{budget} Newton steps did not converge")


def search(state: State, dnu: Array) -> State:
    """A point along the Newton direction where the convex dual has ceased to fall steeply."""
    start = float(dnu @ state.misfit)
    factor = 1.0
    for _ in range(40):
        trial = state.moved(factor * dnu)
        if trial.inside():
            with np.errstate(over="ignore", invalid="ignore"):
                end = float(dnu @ trial.misfit)
            if np.isfinite(end) and end >= -0.9 * abs(start):
                return trial
        factor *= 0.4
    raise Failed("the line search found no descent")


def corrected(state: State, hessian: Hessian) -> Array:
    """M with A(M) = y to rounding: b(S) and its linear change for a step of S below rounding."""
    at, matrix = state.at, state.matrix
    for _ in range(3):
        dnu = hessian.solve(at.y - at.apply(matrix))
        matrix = matrix + state.derivative(at.adjoint(dnu))
    # what no step of S can mend, because its slope is below rounding
    return matrix + at.adjoint(at.least(at.y - at.apply(matrix)))
