"""The minimiser of a spectral regularizer followed in its scale, down from the kernel regime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tacit.solvers.continuation import Failed
from tacit.solvers.matrices.hessian import Hessian
from tacit.solvers.matrices.law import Law
from tacit.solvers.matrices.measurements import Measurements
from tacit.solvers.matrices.newton import newton
from tacit.solvers.matrices.state import State

KERNEL = 0.1  # singular values of S where the walk begins: b is nearly linear there
LINEAR = 20.0  # above the start in log mu: from there on b is linear to the last digit
PASSING = 0.1  # relative size of the last Newton step at a scale that is only passed
EXACT = 1e-15  # misfit at the target below which nothing is left to do
BUDGET = 600  # Newton steps a walk may take


class Stop(NamedTuple):
    """A point of the walk with a Hessian from there or nearby, and the Newton steps that led here.

    Steps towards scales that were not reached, and tried again nearer, do not count.
    """

    state: State
    hessian: Hessian
    spent: int


def descend(
    at: Measurements, law: Law, target: float, close: float, longest: float = np.inf
) -> Iterator[Stop]:
    """Stops from the kernel regime down to m = log mu = target, the last one exact to `close`.

    No step in m is longer than `longest`.
    """
    nu = at.least(at.y)
    size = float(np.linalg.norm(at.adjoint(nu), 2))
    m = law.kernel_level(size, KERNEL)
    nu = nu * (KERNEL / size * np.exp(min(m - target, 0.0)))
    m, step = max(m, target), -min(longest, 1.0)
    stop = arrive(State(at, law, m, nu), close if m == target else PASSING, 0)
    yield stop
    while m > target:
        ahead = max(m + step, target)
        try:
            guess = predicted(stop, ahead)
            found = arrive(guess, close if ahead == target else PASSING, stop.spent)
        except Failed as reason:
            step /= 3
            if step > -1e-3:
                raise Failed(f"{reason} at log mu = {m:.4g}") from None
            continue
        step = max(step * (2.5 if found.spent - stop.spent <= 3 else 1.0), -longest)
        stop, m = found, ahead
        yield stop
        if stop.spent > BUDGET:
            raise Failed(f"{BUDGET} Newton steps were spent at log mu = {m:.4g}")


def kernel_level(at: Measurements, law: Law) -> float:
    """log mu where the walk begins."""
    return law.kernel_level(float(np.linalg.norm(at.adjoint(at.least(at.y)), 2)), KERNEL)


def predicted(stop: Stop, m: float) -> State:
    """A guess at the scale m along the tangent d nu/d m = -H^-1 y."""
    state = stop.state
    dnu = -state.law.stretch(m - state.m) * stop.hessian.solve(state.at.y)
    guess = State(state.at, state.law, m, state.nu + dnu)
    if not guess.inside():
        raise Failed("the prediction left the domain")
    return guess


def arrive(guess: State, close: float, spent: int) -> Stop:
    if close == PASSING:
        found = newton(guess, close, guess.law.negligible, 8)
    else:
        found = newton(guess, close, EXACT, 40)
    state, hessian, steps = found
    return Stop(state, hessian, spent + steps)
