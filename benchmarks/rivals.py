"""The competitors of the path: gradient descent compiled by JAX, and CVXPY with Clarabel."""

from __future__ import annotations

import os
import time
import warnings
from typing import Any

import numpy as np

# XLA gets the same single core as BLAS; the flag must be set before JAX starts
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"


class Descent:
    """Gradient descent on |X beta - y|^2 with beta = w+^2 - w-^2, in float64, one compiled loop."""

    LOOK = 20_000  # steps between two looks at the clock; the loss is looked at in every step

    def __init__(self, X: np.ndarray, y: np.ndarray):
        import jax
        import jax.numpy as jnp

        self.jax, self.dimension = jax, X.shape[1]
        with jax.enable_x64(True):
            data, target = jnp.asarray(X), jnp.asarray(y)

            def step(state: tuple) -> tuple:
                plus, minus, _, size, goal, left = state
                residual = data @ (plus**2 - minus**2) - target
                slope = 4 * size * (residual @ data)
                loss = residual @ residual
                return plus - slope * plus, minus + slope * minus, loss, size, goal, left - 1

            def unfinished(state: tuple) -> Any:
                _, _, loss, _, goal, left = state
                return (loss > goal) & (left > 0)

            self.run_on = jax.jit(lambda state: jax.lax.while_loop(unfinished, step, state))
            jax.block_until_ready(self.run_on(self.start(1.0, 0.0, 1.0)))  # compile off the clock

    def start(self, alpha: float, size: float, goal: float) -> tuple:
        jnp = self.jax.numpy
        w = alpha * jnp.ones(self.dimension)
        return w, w, jnp.asarray(jnp.inf), jnp.asarray(size), jnp.asarray(goal), self.LOOK

    def run(self, alpha: float, size: float, goal: float, budget: float) -> dict[str, Any]:
        """Descends until loss <= goal, or until `budget` seconds are spent."""
        with self.jax.enable_x64(True):
            state, steps, begin = self.start(alpha, size, goal), 0, time.perf_counter()
            while True:
                state = self.jax.block_until_ready(self.run_on(state))
                steps += self.LOOK - int(state[5])
                spent, loss = time.perf_counter() - begin, float(state[2])
                if not loss > goal or spent > budget:
                    break
                state = (*state[:5], self.LOOK)
            beta = np.asarray(state[0]) ** 2 - np.asarray(state[1]) ** 2
        reached = bool(loss <= goal)
        return {"seconds": spent, "steps": steps, "loss": loss, "beta": beta, "reached": reached}


def stability_limit(X: np.ndarray, beta: np.ndarray, alpha: float) -> float:
    """The largest step at which gradient descent is stable at its end, where it is stiffest.

    There w+^2 w-^2 = alpha^4, so w+^2 + w-^2 = sqrt(beta^2 + 4 alpha^4), and the largest
    curvature of the loss is that of 8 X diag(w+^2 + w-^2) X^T.
    """
    weights = np.sqrt(beta**2 + 4 * alpha**4)
    return float(2 / (8 * np.linalg.eigvalsh((X * weights) @ X.T)[-1]))


class Conic:
    """The depth-2 problem as an exponential cone program in its dual form.

    Minimise sum a (e^s + e^-s) - y . nu with s = X^T nu; beta = 2 a sinh(s). Of the forms tried
    (this one; this one without the variable s; the entropy of p and m with beta = p - m) it is
    the fastest in Clarabel. log a is a parameter, so that CVXPY compiles only once.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray):
        import cvxpy as cp

        self.X = X
        self.nu, self.s, self.log_a = cp.Variable(len(y)), cp.Variable(X.shape[1]), cp.Parameter()
        growth = cp.sum(cp.exp(self.s + self.log_a) + cp.exp(self.log_a - self.s))
        self.problem = cp.Problem(cp.Minimize(growth - y @ self.nu), [self.s == X.T @ self.nu])

    def solve(self, alpha: float) -> dict[str, Any]:
        """beta with the status and Clarabel's own time, which leaves out CVXPY's."""
        self.log_a.value = 2 * np.log(alpha)
        found = by_clarabel(self.problem)
        if "seconds" not in found or self.nu.value is None:
            return found
        return found | {"beta": 2 * alpha**2 * np.sinh(self.X.T @ self.nu.value)}


def by_clarabel(problem: Any) -> dict[str, Any]:
    """The status of a CVXPY problem after Clarabel, and the solver's own time if it ended."""
    import cvxpy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CVXPY warns of inaccuracy; the table shows it
        try:
            problem.solve(solver=cvxpy.CLARABEL)
        except cvxpy.SolverError:
            return {"status": "failed"}
    return {"status": problem.status, "seconds": problem.solver_stats.solve_time}
