"""General solvers to compare with: gradient flow in the parameters, and the least l1 norm."""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import linprog

from penchant import Classification


def loss_gradient(model, problem):
    """grad L as a function of the parameters, written out from the definitions."""
    X = problem.design if hasattr(problem, "design") else problem.X

    def of(w):
        f = model.predict(w, X)
        if not isinstance(problem, Classification):
            return model.pullback(w, X, 2 * (f - problem.y))
        margins = problem.y * f
        pull = np.exp(-margins) if problem.loss == "exp" else 1 / (1 + np.exp(margins))
        return model.pullback(w, X, -problem.y * pull / len(pull))

    return of


def gradient_flow(model, problem, times, rate=0.0):
    """The parameters at `times` of w' = -grad L - rate w, by LSODA."""
    slope, start = loss_gradient(model, problem), model.start(problem.dimension)
    tight = {"rtol": 1e-12, "atol": 1e-14}
    found = solve_ivp(
        lambda _, w: -slope(w) - rate * w, (0, times[-1]), start, "LSODA", times, **tight
    )
    assert found.success
    return found.y.T


def least_l1(X, y):
    """The minimiser of |beta|_1 under X beta = y, by a linear program."""
    found = linprog(np.ones(2 * X.shape[1]), A_eq=np.hstack([X, -X]), b_eq=y)
    assert found.status == 0
    return np.subtract(*np.split(found.x, 2))
