"""Endpoints of real training, for claims: gradient flow in the parameters until it interpolates."""

from __future__ import annotations

import dataclasses

import numpy as np

from penchant import DiagonalNet, ParameterFlow, Regression, train
from penchant.lab import Array
from penchant.models import Model
from penchant.solvers import primal_residual


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """Where training ended, and how well it fits there."""

    beta: Array
    residual: float


def trained(X: Array, y: Array, model: Model) -> Endpoint:
    """Gradient flow in the parameters of `model` on the squared loss, run to interpolation."""
    beta = np.asarray(train(model, Regression(X, y), ParameterFlow()).predictor)
    return Endpoint(beta, primal_residual(X, y, beta))


def endpoint(
    X: Array, y: Array, *, alpha: float, depth: int = 2, shape: Array | None = None
) -> Endpoint:
    """The same for a diagonal net from alpha * shape."""
    return trained(X, y, DiagonalNet(depth, alpha=alpha, shape=shape))


@dataclasses.dataclass(frozen=True)
class Trace:
    """Parameters along gradient flow, and the time integral of the residual."""

    t: Array
    parameters: Array
    impulse: Array  # int_0^t (X beta - y), one row per time


def trace(X: Array, y: Array, model: Model, *, t_end: float, points: int = 40) -> Trace:
    """Gradient flow on sum (X beta - y)^2 in the parameters, and the integral of its residual."""
    from scipy.integrate import solve_ivp

    start = model.start(X.shape[1])
    n = len(start)

    def velocity(_: float, state: Array) -> Array:
        w = state[:n]
        residual = model.predict(w, X) - y
        return np.concatenate([-2 * model.pullback(w, X, residual), residual])

    times = np.concatenate([[0.0], np.geomspace(1e-3 * t_end, t_end, points)])
    state = np.concatenate([start, np.zeros(len(y))])
    with np.errstate(over="ignore", invalid="ignore"):  # in trial steps that are then rejected
        solution = solve_ivp(
            velocity,
            (0, t_end),
            state,
            method="LSODA",
            t_eval=times,
            rtol=1e-11,
            atol=1e-13 * float(np.abs(start).max()),
        )
    if not solution.success:
        raise RuntimeError(f"trace: {solution.message}")
    return Trace(solution.t, solution.y[:n].T, solution.y[n:].T)
