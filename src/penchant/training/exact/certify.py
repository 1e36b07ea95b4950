"""Whether what an exact flow has recorded is a flow: its loss falls, and belongs to its predictors.

Both are computed from the records as they are returned and the data as they were given. A flow
without weight decay follows minus the gradient of its loss, so a loss that rises, by more than the
integrator may be off, is an error. A residual is known to about rtol of the targets; below the
square of that the loss is rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.models.factorization import Factorization
from penchant.problems.matrix_problem import Completion, MatrixProblem
from penchant.problems.regression import Regression
from penchant.records import Kind, Outcome
from penchant.training.exact.loss import log_sum_of_squares
from penchant.training.exact.matrices.system import KEPT, kept_sign

MANY = 1000.0  # errors of a flow are some tens of times its rtol
LEAST = 1e-6  # relative rise or difference of a loss that is always allowed
FULL = 1e-6  # the smallest over the largest singular value of a matrix of full rank
ROUNDING = 1e-10  # of its terms: what rounding may leave of a residual


def judge_flow(
    outcome: Outcome, dataset: Any, model: Any, problem: Any, rtol: float, decay: float
) -> Outcome:
    """The outcome that the records allow; a failure stays the failure it is."""
    if not outcome.ok or "log_loss" not in dataset or dataset["log_loss"].ndim != 1:
        return outcome
    if isinstance(model, Factorization) and (text := _crossing(dataset, model, problem, rtol)):
        return Outcome(Kind.STALLED, f"{text} ({outcome.sentence})")
    log_loss = np.asarray(dataset["log_loss"].values, dtype=float)
    fits = isinstance(problem, Regression | MatrixProblem)
    # the loss of residuals of so many rtol of the largest target
    floor = -math.inf
    if fits and problem.y.any():
        floor = 2 * math.log(MANY * rtol) + float(log_sum_of_squares(np.ravel(problem.y)))
    if not decay and (text := _rise(dataset, log_loss, floor, rtol)):
        return Outcome(Kind.STALLED, f"{text} ({outcome.sentence})")
    if fits and (text := _difference(dataset, log_loss, problem)):
        return Outcome(Kind.STALLED, f"{text} ({outcome.sentence})")
    return outcome


def _crossing(dataset: Any, model: Factorization, problem: Any, rtol: float) -> str:
    """Where a flow has left a saddle of lower rank that it cannot leave, nothing if it has not."""
    sign = kept_sign(model, model.stack(model.start(problem.dimension)), rtol)
    end = np.asarray(dataset["predictor"].values[-1], dtype=float)
    sizes = np.linalg.svd(end, compute_uv=False) if sign else np.zeros(1)
    if not sizes[-1] > FULL * sizes[0] or np.linalg.slogdet(end)[0] == sign:
        return ""
    return (
        f"errors of the steps have led the flow past a saddle of lower rank, since {KEPT}; use "
        "MatrixFlow"
    )


def _rise(dataset: Any, log_loss: Array, floor: float, rtol: float) -> str:
    """Where the loss rises, nothing if it falls throughout."""
    with np.errstate(invalid="ignore"):  # a loss of zero has the logarithm minus infinity
        rises = np.diff(log_loss)
    spare = max(LEAST, MANY * rtol) * np.maximum(1.0, np.abs(log_loss[1:]))
    wrong = (rises > spare) & (log_loss[1:] > floor)
    if not wrong.any():
        return ""
    k = int(np.argmax(np.where(wrong, rises, -np.inf)))
    when = "" if "t" not in dataset.coords else f" at t={float(dataset['t'].values[k + 1]):.4g}"
    return f"the loss rises by a factor of {math.exp(min(rises[k], 700)):.4g}{when}; lower rtol"


def _difference(dataset: Any, log_loss: Array, problem: Any) -> str:
    """How far the last loss is from that of the last predictor, nothing if they agree.

    Both come from one state, whatever the integrator missed, so that only rounding is allowed.
    """
    if "predictor" not in dataset:
        return ""
    predictor = np.asarray(dataset["predictor"].values[-1], dtype=float)
    matrix = isinstance(problem, MatrixProblem)
    if predictor.shape != (problem.shape if matrix else problem.X.shape[1:]):
        return ""
    values = problem.apply(predictor) if matrix else problem.X @ predictor
    length = length_of(values - problem.y)
    sizes = np.abs(values)  # single entries are no sums
    if not isinstance(problem, Completion):
        rows = problem.design if matrix else problem.X
        sizes = np.abs(rows) @ np.abs(predictor.ravel())
    terms = length_of(sizes + np.abs(problem.y))
    recorded = math.exp(min(log_loss[-1] / 2, 700.0))  # half squares are followed as squares
    spare = ROUNDING * terms + LEAST * max(length, recorded)
    if abs(length - recorded) <= spare or not math.isfinite(length):
        return ""
    return f"the recorded residual {recorded:.4g} is not that of the predictor, {length:.4g}"


def length_of(numbers: Array) -> float:
    """The root of the sum of squares, also where the squares are beyond float64."""
    return math.exp(min(float(log_sum_of_squares(np.ravel(numbers))) / 2, 709.0))
