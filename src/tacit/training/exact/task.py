"""A model with the problem it is to learn, as the stiff flow and descent see them."""

from __future__ import annotations

from typing import Any, NamedTuple

from tacit.arguments import Array
from tacit.models.matrix import MatrixModel
from tacit.models.model import Model, Separable
from tacit.problems.classification import Classification
from tacit.problems.matrix_problem import MatrixProblem
from tacit.problems.regression import Regression
from tacit.training.exact.loss import Loss, MarginLoss, SquaredLoss
from tacit.training.exact.samples import Samples, samples_of

Problem = Regression | Classification


class Moment(NamedTuple):
    """What a flow knows at one time; None where it does not."""

    t: float  # in the clock of the flow
    state: Array  # the variables that move: parameters, duals, factors
    predictions: Any = None
    displacement: Any = None  # of e^(rate t) parameters from the start, while small
    kernel: Any = None  # the tangent kernel
    predictor: Any = None
    dual: Any = None
    log_growth: Any = None  # log of |w+| and |w-| over their start, in two rows
    log_t: Any = None  # where the clock is another one
    smoothed_margin: Any = None
    margins: Any = None
    log_slopes: Any = None  # log |dbeta_i/dw|^2 up to a constant
    parameters: Any = None  # where `state` is something else


class Task(NamedTuple):
    """A checked pair of model and problem, with the start and the loss."""

    model: Model
    problem: Any
    start: Array
    samples: Samples
    loss: Loss

    @property
    def rows(self) -> Array:
        """One row per sample, for the model's own `predict`."""
        matrices = isinstance(self.problem, MatrixProblem)
        return self.problem.design if matrices else self.problem.X


def task(who: str, model: object, problem: object) -> Task:
    """`model` and `problem` if the one can learn the other; otherwise an error that says why."""
    if not isinstance(problem, Regression | Classification | MatrixProblem):
        raise ValueError(
            f"{who}: the problem must be a Regression or a Classification, or a matrix problem "
            f"such as Completion, got {type(problem).__name__}; wrap the data as Regression(X, y)"
        )
    if not isinstance(model, Model):
        raise ValueError(
            f"{who}: the model must be a Model such as DiagonalNet, or FunctionModel around a "
            f"function of yours, got {type(model).__name__}"
        )
    if isinstance(problem, MatrixProblem) and not isinstance(model, MatrixModel):
        raise ValueError(
            f"{who}: a matrix problem needs a model of a matrix such as Factorization, got "
            f"{type(model).__name__}; use problem.regression() for models of vectors"
        )
    start = model.start(problem.dimension)
    loss: Loss = SquaredLoss(problem.y, problem.loss)
    if isinstance(problem, Classification):
        loss = MarginLoss(problem.y, problem.loss)
    return Task(model, problem, start, samples_of(model, problem, start), loss)


def separable(who: str, model: object, problem: object) -> tuple[Separable, Problem]:
    """`model` and `problem` if they are what a flow of linear predictors can train."""
    if not isinstance(problem, Problem):
        raise ValueError(
            f"{who}: the problem must be a Regression or a Classification, got "
            f"{type(problem).__name__}; wrap the data as Regression(X, y)"
        )
    if not isinstance(model, Separable):
        raise ValueError(
            f"{who}: the model must be a separable reparametrization of a linear predictor, such "
            f"as DiagonalNet or ProductNet, got {type(model).__name__}"
        )
    return model, problem
