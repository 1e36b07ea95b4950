"""Gradient flow of matrix factorizations at a cost that does not depend on their width.

How it works. With the factors on top of each other, W = [U; V], the flow is W' = -2 G W with a
symmetric G (docs/theory section 16). It multiplies W from the left, so the columns may be
rotated once, at the start: W(0) is replaced by R^T of the QR decomposition of W(0)^T, which has at
most as many columns as rows, whatever the width. This is exact, for descent as well as for flow.

The reduced flow is stiff from a large start. Its stiff part is -2 J^T J with one row of J per
measurement, so a linearly implicit Euler step costs one eigendecomposition of the small J J^T,
which serves steps of every length; extrapolation of 1, 2, ..., k such steps to step zero gives a
method of order k with an error estimate. Near the end the kernel no longer turns: then the rest of
the flow has a closed form, and the displacement is the step of Gauss and Newton (`end_game`), taken
only where its second order is below the accuracy.

Descent needed up to 5e8 steps on problems that this solves in a hundredth of a second.

Pitfalls. Square layers that start balanced
keep the sign of det M, which no step error may change: where a step would cross zero, the direction
that is lost is removed for good, and the outcome says that the flow stands at a saddle of lower
rank. A flow that hovers at such a saddle is told from one that is slow by the eigenvalues of G: no
direction must be able to grow. The lifted form integrates W W^T by another solver, as a second
route, and is refused where its errors make it indefinite.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from penchant.arguments import Array, one_of
from penchant.door import door_as
from penchant.measures.distances import turn
from penchant.models.factorization import TwoFactors
from penchant.models.matrix import MatrixModel
from penchant.problems.matrix_problem import Completion, MatrixProblem
from penchant.records import Checks, Kind, Outcome
from penchant.training.exact.flow import Flow, Followed, RunSettings
from penchant.training.exact.follow import SETTLED, FlowPlan, Integrator, follow, log_level, planned
from penchant.training.exact.loss import log_sum_of_squares
from penchant.training.exact.matrices.system import (
    KEPT,
    FactorSystem,
    LiftedSystem,
    Modes,
    PlainSystem,
    Rest,
    columns,
    end_game,
    extrapolated,
    kept_sign,
)
from penchant.training.exact.solver import SHORT, GaveUp, LostRank, state_at, step
from penchant.training.labels import build_dataset, matrix_columns
from penchant.training.task import Moment

WHO = "MatrixFlow"
FORMS = ("factors", "lifted")
SMALL = 1500  # samples up to which a dense eigendecomposition per step pays
FITTED = 1e-20  # of |y|^2: a loss at which det M may vanish with that of the target
HIDDEN = 1e-14  # of |y|^2: rounding that leaves more than this of the loss hides the targets
WAY_OUT = "unbalance the start, or start with the other sign"
System = FactorSystem | LiftedSystem | PlainSystem


class MatrixSteps(Integrator):
    """What the steps of all systems share: the loss, and when and why they rest."""

    lost = False  # whether the flow has lost a rank that exact balance never gives back

    def __init__(self, system: System, rtol: float) -> None:
        self.system, self.rtol = system, rtol
        self.stuck = not system.velocity(system.start).any()
        self.sign = _kept_sign(system, rtol)

    def crosses(self, state: Array) -> bool:
        """Whether det M has changed a sign that it keeps, while the data are not fitted."""
        if not self.sign or np.linalg.slogdet(self.system.matrix(state))[0] == self.sign:
            return False
        left, y = self.system.residual(state), self.system.problem.y
        return bool(left @ left > FITTED * (y @ y))

    def log_loss(self, now: Moment) -> float:
        return float(log_sum_of_squares(self.system.residual(now.state)))

    def still(self, before: Moment, now: Moment) -> bool:
        moved = np.abs(now.state - before.state).max()
        return bool(moved <= SETTLED * np.abs(now.state).max())

    def at_rest(self, now: Moment, plan: FlowPlan) -> Outcome:
        outcome = super().at_rest(now, plan)
        if not self.system.rate:
            return outcome
        where = outcome.sentence.split(":")[0]
        return Outcome(Kind.SOLVED, f"{where}, held by weight decay")

    def why(self, now: Moment, plan: FlowPlan) -> str:
        problem, floor = self.system.problem, 0.0
        if not isinstance(problem, Completion):  # entries seen once each can always be fitted
            best = problem.design @ np.linalg.lstsq(problem.design, problem.y, rcond=None)[0]
            floor = float(np.sum((best - problem.y) ** 2))
        if floor > 0.5 * math.exp(self.log_loss(now)):
            return f"no matrix fits y, the least-squares loss is {floor:.3g}"
        if self.lost:
            return f"the flow stands at a saddle of lower rank, since {KEPT}; {WAY_OUT}"
        return "this model cannot fit y from here (its width, its signs or its symmetry forbid it)"


class FactorSteps(MatrixSteps):
    """Stiff steps of reduced factors, and their end in closed form where the flow is linear."""

    system: FactorSystem

    def __init__(self, system: FactorSystem, rtol: float, log_level: float) -> None:
        super().__init__(system, rtol)
        self.first = self.span = 0.01 * _unit(system)
        self.W, self.order = system.start, columns(rtol)
        self.kept = np.eye(self.W.shape[1])  # projects on the directions that are not lost
        ends = log_level > -math.inf and not system.rate
        self.target = math.exp(log_level) if ends else None
        self._rest: tuple[float, Rest] | None = None

    def advance(self, limit: float) -> None:
        if self._rest is not None:  # it did not end there
            self.W, self._rest = self.at(self.t).state, None
        modes = self.system.modes(self.W)
        if self.steps and self.target is not None:
            rest = end_game(self.system, self.W, modes, self.target, self.rtol)
            if rest is not None and not self.crosses(rest.at(rest.time)):
                self._rest, self.t = (self.t, rest), self.t + rest.time
        if self._rest is None:
            self._step(limit, modes)
        self.steps += 1

    def _step(self, limit: float, modes: Modes) -> None:
        span = self.span
        for _ in range(60):
            last = self.t + span >= limit * (1 - 1e-12)
            taken = limit - self.t if last else span
            W, error = extrapolated(self.system, self.W, taken, modes, self.order)
            excess = error / (self.rtol * np.abs(W).max())
            growth = 0.9 * max(excess, 1e-30) ** (-1 / self.order) if np.isfinite(excess) else 0.1
            if excess <= 1:
                if self.crosses(W):
                    W = self._lower(W)
                longer = taken * min(max(growth, 0.3), 6.0)
                self.span = max(longer, span) if last else longer
                self.t, self.W = limit if last else self.t + taken, W @ self.kept
                return
            span = taken * min(max(growth, 0.1), 0.7)
        raise GaveUp(SHORT)

    def _lower(self, W: Array) -> Array:
        """W without the direction that it loses, for good: the flow multiplies from the left."""
        right = np.linalg.svd(self.W)[2][: len(W) // 2 - 1]  # one less than the rank of U and V
        self.kept, self.sign, self.lost = right.T @ right, 0.0, True
        return np.asarray(W @ self.kept)

    def at(self, t: float) -> Moment:
        if self._rest is None:
            return Moment(self.t, self.W)
        begin, rest = self._rest
        return Moment(t, rest.at(t - begin))

    def log_floor(self, now: Moment) -> float:
        rounding, y = self.system.rounding(now.state), self.system.problem.y
        rounding = 0.0 if self.system.rate else min(rounding, HIDDEN * float(y @ y))
        return math.log(rounding) if rounding else -math.inf

    def why(self, now: Moment, plan: FlowPlan) -> str:
        y = self.system.problem.y
        if not self.system.rounding(now.state) <= HIDDEN * float(y @ y):
            return "rounding of these factors hides targets as small as y; rescale y or the start"
        return super().why(now, plan)

    def still(self, before: Moment, now: Moment) -> bool:
        return super().still(before, now) or self._hovers(before.state, now.state)

    def _hovers(self, before: Array, now: Array) -> bool:
        """True if nothing moved beyond the accuracy and lift(G) lets no direction grow."""
        if np.abs(now - before).max() > 30 * self.rtol * np.abs(now).max() or self.system.rate:
            return False
        slope = self.system.problem.adjoint(self.system.residual(now))
        bends = np.linalg.eigvalsh(self.system.model.lift(slope))
        if self.lost:  # directions that could grow are not there
            speed = float(np.linalg.norm(self.system.velocity(now)))
            return speed <= 30 * self.rtol * bends[-1] * float(np.linalg.norm(now))
        return bool(bends[0] > -1e-6 * bends[-1])


def _kept_sign(system: System, rtol: float) -> float:
    """The sign of det M that the flow keeps, or 0."""
    if isinstance(system, LiftedSystem):
        system = system.system
    model = system.model
    if not isinstance(model, TwoFactors):
        return 0.0
    W = system.start if isinstance(system, FactorSystem) else model.stack(system.start)
    return kept_sign(model, W, rtol)


def _unit(system: FactorSystem) -> float:
    """The shortest time scale at the start: of the tangent kernel, the escape or the decay."""
    gradient = system.problem.adjoint(system.residual(system.start))
    curvature = float(np.linalg.norm(gradient, ord=2))
    kernel = float(system.modes(system.start).rates[-1])
    # nothing moves where measurements and labels vanish: any step will do
    return 0.5 / (max(kernel, curvature, system.rate / 2) or 1.0)


class PlainSteps(MatrixSteps):
    """Steps of a general adaptive integrator of SciPy."""

    hint = ", perhaps because the flow is stiff"

    def __init__(
        self, system: System, rtol: float, t_max: float, method: Callable[..., Any]
    ) -> None:
        super().__init__(system, rtol)
        start, rtol = system.start, max(rtol, 1e-12)
        fastest = float(np.abs(system.velocity(start)).max()) or 1.0
        self.first = 1e-3 * (float(np.abs(start).max() / fastest) or 1.0)
        settings: Any = {"rtol": rtol, "atol": 1e-3 * rtol * float(np.abs(start).max())}
        settings["first_step"] = min(self.first, t_max)
        self.solver = method(lambda _, w: system.velocity(w), 0.0, start, t_max, **settings)

    def advance(self, limit: float) -> None:
        step(self.solver)
        if self.crosses(self.solver.y):
            raise LostRank(f"{KEPT}; {WAY_OUT}")
        if isinstance(self.system, LiftedSystem) and self.system.indefinite(self.solver.y):
            raise GaveUp("W W^T has a negative eigenvalue; lower rtol, or use form='factors'")
        self.t, self.steps = self.solver.t, self.steps + 1

    def at(self, t: float) -> Moment:
        return Moment(t, state_at(self.solver, t))


@dataclasses.dataclass(frozen=True, repr=False)
class MatrixFlow(Flow):
    """w' = -grad L(w) - weight_decay * w of a matrix model on sum_n (<X_n, M> - y_n)^2.

    Models of two factors are reduced to as many columns as their start has directions, which is
    exact, and integrated by a stiff method of high order; form="lifted" integrates W W^T instead
    by a general solver, as a second route. DeepFactorization, and problems of very many samples,
    are integrated explicitly in all their parameters.

    `rtol` is the accuracy of one step relative to the largest parameter. From a tiny start,
    directions that grow later than the first are known to that accuracy only. Without a goal the
    flow stops where the data are interpolated; under weight decay, at rest. Square layers that
    start balanced keep the sign of det M: if the data ask for the other one, the flow ends at a
    saddle of lower rank, and its outcome says so.

    Parameters
    ----------
    rtol
        The accuracy of one step of the integrator.
    max_steps
        The most steps of the integrator.
    weight_decay
        The rate c of theta' = -grad L - c theta.
    certify
        True repeats the run at another tolerance and gives the path an `error`; see ParameterFlow.
    form
        "factors", or "lifted" for the second route.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.low_rank_completion(samples=14, dimension=5, rank=1, seed=1)
    >>> net = penchant.Factorization(9, alpha=0.3)
    >>> path = penchant.train(net, problem, penchant.methods.MatrixFlow())
    >>> path.predictor.shape
    (5, 5)
    """

    interpolates: ClassVar[bool] = False
    tolerances: ClassVar[tuple[float, float]] = (1e-11, 1e-2)  # extrapolation amplifies rounding
    rtol: float = 1e-8
    max_steps: int = 4000
    form: str = dataclasses.field(default="factors", kw_only=True)
    checks: ClassVar[Checks] = {"form": functools.partial(one_of, known=FORMS)}

    @door_as(WHO)
    def follow(self, model: Any, problem: Any, settings: RunSettings) -> Followed:
        from scipy.integrate import DOP853, LSODA

        model, problem = _checked(model, problem)
        system = self._system(model, problem, settings.weight_decay)
        if problem.y.any() and not problem.y @ problem.y > 0:
            raise OverflowError("the squares of y underflow")  # run_flow explains it
        # a norm of y that is zero would make every loss too large
        log_unit = math.log(float(problem.y @ problem.y) or 1.0)
        level = log_level(settings, model, log_unit, "to a matrix flow")
        if settings.weight_decay and not settings.goals:
            level = -math.inf
        t_max = math.inf if settings.t_max is None else settings.t_max
        steps: FactorSteps | PlainSteps
        if isinstance(system, FactorSystem):
            steps = FactorSteps(system, self.rtol, level)
        else:  # the lifted matrix is small, and stiff from a small start
            method = LSODA if isinstance(system, LiftedSystem) else DOP853
            steps = PlainSteps(system, self.rtol, t_max, method)
        plan = planned(self, settings, steps.first, steps.first, level)
        moments, outcome = follow(steps, plan, Moment(0.0, system.start))
        last = system.parameters(moments[-1].state)
        return Followed(build_dataset(problem, _recorded(system, moments), last), outcome, last)

    def _system(self, model: MatrixModel, problem: MatrixProblem, rate: float) -> System:
        if self.form == "lifted":
            if not isinstance(model, TwoFactors):
                raise ValueError(
                    f"{WHO}: form='lifted' needs a model of two factors, got "
                    f"{type(model).__name__}; use form='factors'"
                )
            return LiftedSystem(FactorSystem(model, problem, rate))
        if isinstance(model, TwoFactors) and problem.samples <= SMALL:
            return FactorSystem(model, problem, rate)
        return PlainSystem(model, problem, rate)


def _recorded(system: System, moments: list[Moment]) -> dict[str, Array]:
    problem = system.problem
    t = np.array([moment.t for moment in moments])
    matrices = np.array([system.matrix(moment.state) for moment in moments])
    predictions = np.array([problem.apply(matrix) for matrix in matrices])
    log_loss = log_sum_of_squares(predictions - problem.y)
    with np.errstate(under="ignore", divide="ignore"):
        recorded = {"t": t, "log_t": np.log(t), "log_loss": log_loss, "loss": np.exp(log_loss)}
    recorded |= {"predictions": predictions} | matrix_columns(problem, matrices)
    recorded["parameter_norm"] = np.array([system.norm(moment.state) for moment in moments])
    if not isinstance(system, LiftedSystem):
        states = np.array([moment.state.ravel() for moment in moments])
        recorded["turn"] = turn(system.start.ravel(), states)
    return recorded


def _checked(model: object, problem: object) -> tuple[MatrixModel, MatrixProblem]:
    if not isinstance(problem, MatrixProblem):
        raise ValueError(
            f"{WHO}: the problem must be a Completion or a Sensing, got {type(problem).__name__}"
        )
    if not isinstance(model, MatrixModel):
        raise ValueError(
            f"{WHO}: the model must be a matrix model, such as Factorization, got "
            f"{type(model).__name__}"
        )
    return model, problem
