"""Second routes: the lifted flow of W W^T, and any matrix model in its own parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.models.matrix import MatrixModel
from tacit.problems.matrices import MatrixProblem
from tacit.records import Kind, Outcome
from tacit.training.exact.follow import advance
from tacit.training.exact.matrices.integrate import SADDLE, Plan, Report, State, Times, settled
from tacit.training.exact.matrices.system import FactorSystem


class LiftedSystem:
    """P' = -2 (S P + P S) - 2 rate P for P = W W^T, closed in itself; S = lift(sum_n r_n X_n).

    W section 6 prints the right side with the opposite sign and without the 2 of the sum of
    squares, so that the loss would grow.
    """

    def __init__(self, system: FactorSystem) -> None:
        self.system, self.problem, self.rate = system, system.problem, system.rate
        self.side = len(system.start)
        self.start = (system.start @ system.start.T).ravel()

    def matrix(self, state: Array) -> Array:
        return self.system.model.part(state.reshape(self.side, -1))

    def velocity(self, state: Array) -> Array:
        P = state.reshape(self.side, -1)
        residual = self.problem.apply(self.matrix(state)) - self.problem.y
        half = self.system.model.lift(self.problem.adjoint(residual)) @ P
        return (-2 * (half + half.T) - 2 * self.rate * P).ravel()

    def parameters(self, state: Array) -> None:
        """None: W is known up to a rotation only."""

    def norm(self, state: Array) -> float:
        return float(np.sqrt(np.trace(state.reshape(self.side, -1))))


class PlainSystem:
    """w' = -grad L - rate w in the parameters of any matrix model."""

    def __init__(self, model: MatrixModel, problem: MatrixProblem, rate: float = 0.0) -> None:
        self.model, self.problem, self.rate = model, problem, rate
        self.start = model.start(problem.dimension)

    def matrix(self, state: Array) -> Array:
        return self.model.matrix(state)

    def velocity(self, state: Array) -> Array:
        residual = self.problem.apply(self.matrix(state)) - self.problem.y
        slope = self.model.slope(state, self.problem.adjoint(residual))
        return -2 * slope - self.rate * state

    def parameters(self, state: Array) -> Array:
        return state

    def norm(self, state: Array) -> float:
        return float(np.linalg.norm(state))


def integrate_plain(system: LiftedSystem | PlainSystem, plan: Plan) -> tuple[list[State], Outcome]:
    """The recorded states and the outcome, by a general adaptive integrator of SciPy."""
    report, problem = Report(plan), system.problem
    now = checkpoint = State(0.0, system.start)

    def loss_of(W: Array) -> float:
        return report.loss(problem.apply(system.matrix(W)) - problem.y)

    loss = loss_of(now.W)
    if plan.met(loss):
        return [now], Outcome(Kind.SOLVED, "the start already fits the data")
    if not system.velocity(now.W).any():
        return [now], Outcome(Kind.STALLED, SADDLE)
    first = 1e-3 * float(np.abs(now.W).max() / np.abs(system.velocity(now.W)).max())
    solver, records, times = _solver(system, plan, first), [now], plan.times(first)
    for _ in range(plan.max_steps):
        if not advance(solver):
            return records, report.gave_up(now.t, loss, "its steps became too small; raise rtol")
        records += _interpolated(solver, times)
        now = State(solver.t, solver.y.copy())
        loss = loss_of(now.W)
        report.progress(now.t, loss)
        if plan.met(loss):
            return [*records, now], report.fitted(now.t, loss)
        if solver.status == "finished":
            return [*records, now], report.out_of_time(now.t, loss)
        if now.t >= 10 * checkpoint.t:
            if settled(checkpoint.W, now.W):
                return [*records, now], report.at_rest(problem, system.rate, now.t, loss)
            checkpoint = now
    by = f"{plan.max_steps} integrator steps, maybe because the flow is stiff; raise max_steps"
    return [*records, now], report.spent(now.t, loss, by)


def _solver(system: LiftedSystem | PlainSystem, plan: Plan, first: float) -> Any:
    """DOP853 for parameters; LSODA for the lifted matrix, small and stiff from a small start."""
    from scipy.integrate import DOP853, LSODA

    method: Callable[..., Any] = LSODA if isinstance(system, LiftedSystem) else DOP853
    rtol = max(plan.rtol, 1e-12)
    return method(
        lambda _, w: system.velocity(w),
        0.0,
        system.start,
        plan.t_max,
        rtol=rtol,
        atol=1e-3 * rtol * float(np.abs(system.start).max()),
        first_step=min(first, plan.t_max),
    )


def _interpolated(solver: Any, times: Times) -> list[State]:
    """The states at the record times inside the last step."""
    found: list[State] = []
    dense = None
    while times.due < solver.t:
        dense = solver.dense_output() if dense is None else dense
        found.append(State(times.due, dense(times.due)))
        times.advance()
    return found
