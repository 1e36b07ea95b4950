"""Gradient flow of matrix factorizations at a cost that does not depend on their width."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from tacit.arguments import Array, one_of
from tacit.models.factorization import TwoFactors
from tacit.models.matrix import MatrixModel
from tacit.problems.matrix_problem import MatrixProblem
from tacit.training.exact.flow import Course, Flow, Followed
from tacit.training.exact.follow import follow, log_level, planned
from tacit.training.exact.labelling import of_matrices, turn
from tacit.training.exact.loss import log_sum_of_squares
from tacit.training.exact.matrices.integrate import FactorSteps, PlainSteps
from tacit.training.exact.matrices.system import FactorSystem, LiftedSystem, PlainSystem
from tacit.training.exact.task import Moment
from tacit.training.labels import assembled

WHO = "MatrixFlow"
FORMS = ("factors", "lifted")
System = FactorSystem | LiftedSystem | PlainSystem
SMALL = 1500  # samples up to which a dense eigendecomposition per step pays


@dataclasses.dataclass(frozen=True, repr=False)
class MatrixFlow(Flow):
    """w' = -grad L(w) - weight_decay * w of a matrix model on sum_n (<X_n, M> - y_n)^2.

    Models of two factors are reduced to as many columns as their start has directions, which is
    exact, and integrated by a stiff method of high order; form="lifted" integrates W W^T instead
    by a general solver, as a second route. DeepFactorization, and problems of very many samples,
    are integrated explicitly in all their parameters.

    `rtol` is the accuracy of one step relative to the largest parameter. From a tiny start,
    directions that grow later than the first are known to that accuracy only. Without a goal the
    flow stops where the data are interpolated; under weight decay, at rest.

    Parameters
    ----------
    rtol
        The accuracy of one step of the integrator.
    max_steps
        The most steps of the integrator.
    weight_decay
        The rate c of theta' = -grad L - c theta.
    form
        "factors", or "lifted" for the second route.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.low_rank_completion(samples=14, dimension=5, rank=1, seed=1)
    >>> path = tacit.train(tacit.Factorization(9, alpha=0.3), problem, tacit.MatrixFlow())
    >>> path.predictor.shape
    (5, 5)
    """

    tolerances: ClassVar[tuple[float, float]] = (1e-11, 1e-2)  # extrapolation amplifies rounding
    rtol: float = 1e-8
    max_steps: int = 4000
    form: str = dataclasses.field(default="factors", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(WHO, "form", self.form, FORMS)

    def follow(self, model: Any, problem: Any, course: Course) -> Followed:
        from scipy.integrate import DOP853, LSODA

        model, problem = _checked(model, problem)
        system = self._system(model, problem, course.weight_decay)
        # a norm of y that is zero would make every loss too large
        log_unit = math.log(float(problem.y @ problem.y) or 1.0)
        level = log_level(WHO, course, model, log_unit, "to a matrix flow")
        if course.weight_decay and not course.goals:
            level = -math.inf
        t_max = math.inf if course.t_max is None else course.t_max
        steps: FactorSteps | PlainSteps
        if isinstance(system, FactorSystem):
            steps = FactorSteps(system, self.rtol, level)
        else:  # the lifted matrix is small, and stiff from a small start
            method = LSODA if isinstance(system, LiftedSystem) else DOP853
            steps = PlainSteps(system, self.rtol, t_max, method)
        plan = planned(WHO, self, course, steps.first, steps.first, level)
        moments, outcome = follow(steps, plan, Moment(0.0, system.start))
        last = system.parameters(moments[-1].state)
        return Followed(assembled(problem, _recorded(system, moments), last), outcome, last)

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
    """The arrays of the records, first axis time."""
    problem = system.problem
    t = np.array([moment.t for moment in moments])
    matrices = np.array([system.matrix(moment.state) for moment in moments])
    predictions = np.array([problem.apply(matrix) for matrix in matrices])
    log_loss = log_sum_of_squares(predictions - problem.y)
    with np.errstate(under="ignore", divide="ignore"):
        recorded = {"t": t, "log_t": np.log(t), "log_loss": log_loss, "loss": np.exp(log_loss)}
    recorded |= {"predictions": predictions} | of_matrices(problem, matrices)
    recorded["parameter_norm"] = np.array([system.norm(moment.state) for moment in moments])
    if not isinstance(system, LiftedSystem):
        recorded["turn"] = np.array([turn(system.start, moment.state) for moment in moments])
    return recorded


def _checked(model: object, problem: object) -> tuple[MatrixModel, MatrixProblem]:
    """`model` and `problem` if they are what this flow can train."""
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
