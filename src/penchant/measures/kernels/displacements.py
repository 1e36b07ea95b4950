"""The shortest displacement that solves a problem to first order, computed in three ways.

`kernel_machine` chooses one of them and says how they differ: on the data as they are given, for a
linear predictor, or in a few orthonormal coordinates of the features, which the features themselves
or their kernel give.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.measures.kernels.features import Frame, TangentFeatures, framed
from penchant.models.model import Separable
from penchant.records import Kind, NumericalError, Outcome
from penchant.regularizers.norms import L2
from penchant.solvers import exact
from penchant.solvers.certificate import Certificate, judge
from penchant.solvers.interpolate import interpolate
from penchant.solvers.margins.separation import TOO_CLOSE
from penchant.solvers.max_margin import max_margin
from penchant.solvers.solution import Solution

CALLER = "kernel_machine"
FITS = 1e-9  # data count as fitted up to this misfit relative to the largest target,
ROUNDING = 1e-13  # and up to this misfit relative to |F(x_n)| |h|
FLAT = 1e-13  # smaller cosines with the separating direction are rounding errors
EPS = float(np.finfo(float).eps)
FITTED = Outcome(Kind.SOLVED, "fits the data with the shortest displacement")


class Displacement(NamedTuple):
    """h = sum_n dual_n F(x_n), `move`, and what is known about it."""

    dual: Array
    move: Array
    outcome: Outcome
    certificate: Certificate
    kkt: float = 0.0


def _weights(at: TangentFeatures) -> tuple[Any, Array] | None:
    """Coordinates that move, and the weights of |h|^2 = sum_i weight_i beta_i^2, relative."""
    used = at.root > 0
    with np.errstate(over="ignore"):
        weights = (at.root.max() / at.root[used]) ** 2
    return (used, weights) if np.isfinite(weights).all() else None


def _of_predictor(at: TangentFeatures, used: Any, solution: Solution) -> Displacement:
    """The displacement of a linear predictor beta: sum_i beta_i^2 / root_i^2 is its square.

    The solver works on the data as they are given, which no feature is.
    """
    beta = np.zeros(len(at.root))
    beta[used] = solution.beta
    with np.errstate(all="ignore"):
        move = at.expand(np.divide(beta, at.root, out=np.zeros_like(beta), where=used))
        # X^T nu = 2 beta root_max^2 / root^2 for the solver's dual nu
        unit = solution.log_dual_unit - 2 * math.log(float(at.root.max())) - math.log(2)
        nu = np.vstack([solution.dual, *solution.dual_rest]).sum(axis=0)
        dual = np.sign(nu) * np.exp(np.log(np.abs(nu)) + unit)  # the unit alone may overflow
    return Displacement(dual, move, solution.outcome, solution.certificate)


def linear_interpolant(at: TangentFeatures, X: Array, goal: Array) -> Displacement | None:
    """The certified fit of `goal` by a model with a linear predictor; None if no predictor fits."""
    if not isinstance(at.model, Separable) or (known := _weights(at)) is None:
        return None
    used, weights = known
    try:
        solution = interpolate(X[:, used], goal, L2(weights), throw=False)
    except ValueError:
        return None
    answer = _of_predictor(at, used, solution)
    if not solution.outcome.ok:
        return answer
    return answer._replace(outcome=judge(FITTED, solution.certificate))


def linear_svm(at: TangentFeatures, X: Array, y: Array) -> Displacement:
    """The certified answer with margins of one, for a model with a linear predictor."""
    known = _weights(at)
    if known is None:
        text = "the slopes of the predictor spread over too many decades; take another start"
        raise ValueError(f"{CALLER}: {text}")
    used, weights = known
    try:
        solution = max_margin(X[:, used], y, L2(weights), throw=False)
    except ValueError:
        raise _inseparable() from None
    except NumericalError as reason:
        raise NumericalError(CALLER, reason.outcome) from None
    answer = _of_predictor(at, used, solution)
    return answer._replace(dual=answer.dual * y)


def least_squares(at: TangentFeatures, X: Array, y: Array, goal: Array, route: str) -> Displacement:
    """The shortest least-squares fit of `goal`, and an estimate of its error.

    The error is what a further step would move, and the rounding of the misfit in that step. A
    linear predictor is fitted by its features, which are no larger than the data.
    """
    power = int(np.frexp(np.abs(goal).max())[1])
    route = "features" if isinstance(at.model, Separable) else route
    inner, frame = np.ldexp(goal, -power), framed(at, X, route, np.ones(len(X)))

    def dual_of(misfit: Array) -> Array:
        return frame.left @ (frame.left.T @ misfit / frame.sizes**2)

    dual = dual_of(inner)
    if frame.right is not None:
        move = at.expand((frame.left.T @ inner / frame.sizes) @ frame.right)
    else:
        for _ in range(2):  # the kernel squares the condition number: refine
            dual = dual + dual_of(inner - at.push(X, at.pull(X, dual)))
        move = at.pull(X, dual)
    misfit, length = at.push(X, move) - inner, float(np.linalg.norm(move))
    lengths = np.linalg.norm(frame.left * frame.sizes, axis=1)
    # a huge output at the start removes digits of the targets
    size = max(float(np.ldexp(np.abs(y).max(), -power)), float(np.abs(inner).max())) or 1.0
    worst, kkt = float(np.abs(misfit).max()) / size, 0.0
    outcome, slope = FITTED, float(np.linalg.norm(at.pull(X, misfit)))
    if worst > FITS and (np.abs(misfit) > ROUNDING * lengths * length).any():
        # least squares: the misfit is orthogonal to all features
        largest = float(frame.sizes.max(initial=0.0) * np.linalg.norm(inner)) or 1.0
        kkt = slope / largest
        text = f"no displacement fits the data; least squares, relative misfit {worst:.2g}"
        outcome = Outcome(Kind.SOLVED, text + _advice(frame))
    error = 0.0
    if frame.sizes.size:
        further = float(np.linalg.norm(frame.left.T @ misfit / frame.sizes)) + _unseen(
            frame, float(np.linalg.norm(misfit)), slope
        )
        # a displacement that only rounds zero has no relative error: the targets have one
        natural = float(np.linalg.norm(inner) / frame.sizes.max())
        scale = (length if length > ROUNDING * natural else natural) or 1.0
        error = further / scale + EPS * float(frame.sizes.max() / frame.sizes.min())
    if _loses(frame, at, X):
        error = math.inf
    certificate = Certificate(error, "estimate")
    outcome = judge(outcome, certificate)
    with np.errstate(over="ignore"):
        return Displacement(np.ldexp(dual, power), np.ldexp(move, power), outcome, certificate, kkt)


def _unseen(frame: Frame, misfit: float, slope: float) -> float:
    """How far a misfit may move the displacement that the left vectors, as they are, do not see.

    Rounding turns them by the condition of the features, of a kernel by its square. The slope
    F^T misfit bounds the move without them.
    """
    least = float(frame.sizes.min())
    condition = float(frame.sizes.max()) / least
    turn = EPS * (condition if frame.right is not None else condition**2)
    return min(turn * misfit, slope / least) / least


def _loses(frame: Frame, at: TangentFeatures, X: Array) -> bool:
    """Whether rounding may have dropped a direction of the data, so that the error is not known.

    Features that are held have rounding of their own, and a direction below it is none; a kernel
    squares them, so that only points that are given twice explain what it lacks.
    """
    if not isinstance(at.model, Separable):
        if frame.right is not None:
            return False
        return len(frame.sizes) < min(len(np.unique(X, axis=0)), len(at.start))
    columns = X[:, at.root > 0]
    few = columns.size * min(columns.shape) <= exact.ELIMINATION
    return not few or len(exact.independent_rows(columns)) != len(frame.sizes)


def _advice(frame: Frame) -> str:
    """Advice if the kernel has lost directions of the features to rounding."""
    if frame.right is not None or len(frame.sizes) == len(frame.left):
        return ""
    return " (the kernel does not resolve some differences of the features; route='features' does)"


def separating(at: TangentFeatures, X: Array, y: Array, route: str, sizes: Array) -> Displacement:
    """The shortest displacement with margins of one; `sizes` are the lengths of the features."""
    frame = framed(at, X, route, sizes)
    rows = (frame.left * frame.sizes) * sizes[:, None]
    try:
        solution = max_margin(rows, y, L2(), throw=False)
    except ValueError:
        raise _inseparable() from None
    except NumericalError as reason:
        raise NumericalError(CALLER, reason.outcome) from None
    if solution.outcome.sentence.startswith(TOO_CLOSE):  # up to rounding of the features
        raise _inseparable()
    if solution.outcome.ok:
        cosines = y * (rows @ solution.beta) / (sizes * np.linalg.norm(solution.beta))
        if cosines.min() < FLAT:
            raise _inseparable()
    # L2() is |beta|^2: its gradient 2 beta is the sum of y_n dual_n x_n
    dual = solution.dual * y / 2
    if frame.right is not None:
        move = at.expand(solution.beta @ frame.right)
    else:
        move = at.pull(X, dual)
    # the margins are those of the features as they are now, not of their coordinates
    short = float(np.maximum(1 - y * at.push(X, move), 0.0).max())
    certificate = Certificate(solution.error + short, "estimate")
    outcome = judge(solution.outcome, certificate)
    if not outcome.ok:
        outcome = Outcome(outcome.kind, outcome.sentence + _advice(frame))
    return Displacement(dual, move, outcome, certificate)


def _inseparable() -> ValueError:
    return ValueError(
        f"{CALLER}: the tangent features of this start do not separate the labels; drop or relabel "
        "a point, take a wider model, or fit the labels as targets of a Regression"
    )
