"""Gradient flow of matrix factorizations at a cost that does not depend on their width."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arguments import Array, one_of
from tacit.flows.decay import decay_rate
from tacit.flows.flow import Flow, Problem, Progress, check, decayed, within_float64
from tacit.flows.matrix_march import Plan, State, march
from tacit.flows.matrix_path import MatrixPath, label_matrices
from tacit.flows.matrix_plain import LiftedSystem, PlainSystem, march_plain
from tacit.flows.matrix_system import FactorSystem
from tacit.flows.schedule import times_to_record
from tacit.models.factorization import TwoFactors
from tacit.models.matrix import MatrixModel
from tacit.models.model import Model
from tacit.problems.matrices import MatrixProblem
from tacit.records import Record
from tacit.threads import on_one_blas_thread
from tacit.training.exact.labelling import turn

WHO = "MatrixFlow"
FORMS = ("factors", "lifted")
System = FactorSystem | LiftedSystem | PlainSystem
SMALL = 1500  # samples up to which a dense eigendecomposition per step pays


@dataclasses.dataclass(frozen=True, repr=False)
class MatrixFlow(Record, Flow):
    """w' = -grad L(w) of a matrix model on sum_n (<X_n, M> - y_n)^2.

    Models of two factors are reduced to as many columns as their start has directions, which is
    exact, and integrated by a stiff method of high order; form="lifted" integrates W W^T instead
    by a general solver, as a second route. DeepFactorization, and problems of very many samples,
    are integrated explicitly in all their parameters.

    `loss` is the target, relative to the loss of the zero matrix; `rtol` the accuracy of one step
    relative to the largest parameter. Records are log-spaced, or at the times given in `record` as
    far as the flow gets; its start and its end are always among them. From a tiny start,
    directions that grow later than the first are known to that accuracy only.
    """

    loss: float = 1e-20
    rtol: float = 1e-8
    form: str = "factors"
    t_max: float | None = None
    points_per_decade: int = 20
    max_steps: int = 4000
    record: Sequence[float] | None = None

    def __post_init__(self) -> None:
        check(WHO, self)
        if self.rtol < 1e-11:  # the weights of the extrapolation amplify rounding a thousandfold
            raise ValueError(f"{WHO}: rtol must be at least 1e-11, got {self.rtol}")
        one_of(WHO, "form", self.form, FORMS)
        object.__setattr__(self, "record", times_to_record(WHO, self.record, self.t_max))

    def describe(self) -> dict[str, Any]:
        return {"flow": WHO, **dataclasses.asdict(self)}

    @on_one_blas_thread
    @within_float64
    def run(
        self, model: Model, problem: Problem | MatrixProblem, progress: Progress | None = None
    ) -> MatrixPath:
        return self._run(model, problem, 0.0, progress)

    def run_decayed(
        self,
        model: Model,
        problem: Problem | MatrixProblem,
        rate: float,
        progress: Progress | None = None,
    ) -> MatrixPath:
        """The flow of loss + (rate / 2) |w|^2; it ends at t_max, or at rest."""
        return self._run(model, problem, decay_rate(WHO, rate), progress)

    def _run(
        self, model: object, problem: object, rate: float, progress: Progress | None
    ) -> MatrixPath:
        model, problem = _checked(model, problem)
        system = self._system(model, problem, rate)
        # a norm of y that is zero would make every loss too large
        unit = float(problem.y @ problem.y) or 1.0
        t_max = math.inf if self.t_max is None else float(self.t_max)
        asked = None if self.record is None else tuple(t for t in self.record if t > 0)
        plan = Plan(
            self.loss * unit, t_max, self.max_steps, self.points_per_decade, self.rtol, asked
        )
        if isinstance(system, FactorSystem):
            states, outcome = march(system, plan, progress)
        else:
            states, outcome = march_plain(system, plan, progress)
        flow = decayed(self, rate) if rate else self.describe()
        described = model.describe(), flow, outcome
        last = system.parameters(states[-1].W)
        return label_matrices(problem, *described, _recorded(system, states), last)

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


def _recorded(system: System, states: list[State]) -> dict[str, Array]:
    """The arrays of the records, first axis time."""
    recorded = {
        "t": np.array([state.t for state in states]),
        "predictor": np.array([system.matrix(state.W) for state in states]),
        "parameter_norm": np.array([system.norm(state.W) for state in states]),
    }
    if system.rate and not isinstance(system, LiftedSystem):
        recorded["turn"] = np.array([turn(system.start, state.W) for state in states])
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
