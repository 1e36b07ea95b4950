"""The solutions that a frozen tangent kernel selects: kernel SVM and kernel interpolant.

How it works. Linearised at its start the model is f(start, x) + <F(x), h> with the tangent features
F(x) = grad f(start, x), and training moves h to the shortest displacement that fits the values, or
that has margins of one (docs/theory.md sections 20 and 21 need both and their lengths). Either is
h = sum_n dual_n F(x_n), a problem in as many unknowns as samples.

There are three ways to it. Models with a separable linear predictor are problems in beta with a
weighted l2 norm, solved on the data as they are given, with the certificate of `interpolate` or
`max_margin`: a bound. Otherwise the features are written in a few orthonormal coordinates, by the
singular values of the features or, where these do not fit into memory, by the eigenvectors of the
kernel, and solved there; the error is an estimate then, for features as float64 has them.

Pitfalls. A kernel squares the condition number of its features: what it cannot resolve may be a
direction of the data, so solutions are refined with the features themselves, and where a direction
may have been lost the error is infinite and not small. Margins and misfits are computed from the
features of the returned h, not in the coordinates in which it was found. A huge output at the start
takes digits from the targets, which is not the solver's error. Starts with log alpha of hundreds
are computed at alpha = 1, with the factor alpha^(D-1) of homogeneity in `log_unit`.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array
from penchant.door import Invalid, door, door_as
from penchant.measures.kernels.features import (
    Frame,
    TangentFeatures,
    chosen_route,
    framed,
    lengths_of,
    tangent,
)
from penchant.models.model import Model, Separable
from penchant.problems.classification import Classification
from penchant.records import Kind, NumericalError, Outcome, Record
from penchant.regularizers.norms import L2
from penchant.solvers.certificate import Certificate, judge
from penchant.solvers.data import Problem
from penchant.solvers.exact import ELIMINATION, independent_rows
from penchant.solvers.interpolate import interpolate
from penchant.solvers.margins.rows import dual_misfit
from penchant.solvers.margins.separation import TOO_CLOSE
from penchant.solvers.max_margin import max_margin
from penchant.solvers.solution import Solution
from penchant.threads import one_blas_thread

WHO = "kernel_machine"
FITS = 1e-9  # data count as fitted up to this misfit relative to the largest target,
ROUNDING = 1e-13  # and up to this misfit relative to |F(x_n)| |h|
FLAT = 1e-13  # smaller cosines with the separating direction are rounding errors
VIOLATED = 1e-8  # a condition that is violated by more than this, relative, is not met
EPS = float(np.finfo(float).eps)
FITTED = Outcome(Kind.SOLVED, "fits the data with the shortest displacement")


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class KernelMachine(Record):
    """A displacement of the parameters, h = sum_n dual_n F(x_n), with its certificate.

    F(x) = exp(-log_unit) grad f(start, x) are the tangent features.

    Attributes
    ----------
    kind
        "interpolant" or "svm".
    dual
        One number per sample.
    displacement
        h itself.
    norm
        |h|, the RKHS norm.
    margin
        The least y_n f(x_n) over `norm`, None for an interpolant.
    predictor
        beta if the model has a linear predictor, else None.
    residual
        The worst margin below 1, or the worst misfit relative to the largest target.
    kkt
        The worst of the other optimality conditions, each relative.
    log_unit
        0 unless the squares of the features are beyond float64.
    outcome
        How the computation ended, in a sentence.
    certificate
        The relative error of the displacement, max|h - h*| / max|h*| or less: a bound for models
        with a linear predictor, where it is that of the predictor; else an estimate, for the
        features as float64 has them. `error` is its number.
    tangent
        The tangent features.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.Classification([[1.0, 2.0]], [1])
    >>> machine = penchant.measures.kernel_machine(penchant.DiagonalNet(alpha=1.0), problem)
    >>> machine.kind, machine.residual < 1e-9, machine.kkt < 1e-9
    ('svm', True, True)
    """

    kind: str
    dual: Array
    displacement: Array
    norm: float
    margin: float | None
    predictor: Array | None
    residual: float
    kkt: float
    log_unit: float
    outcome: Outcome
    certificate: Certificate
    tangent: TangentFeatures = dataclasses.field(repr=False)

    @property
    def error(self) -> float:
        """The certified relative error; `certificate` says how sure it is."""
        return self.certificate.error

    @property
    def log_norm(self) -> float:
        """log of the norm for the features grad f, independent of the unit."""
        return (math.log(self.norm) if self.norm > 0 else -math.inf) - self.log_unit

    @door_as("KernelMachine")
    def predict(self, X: ArrayLike) -> Array:
        """<F(x), h> for every row of `X`, plus the output at the start for an interpolant."""
        X = finite_array("X", X, ndim=2)
        moved = self.tangent.push(X, self.displacement)
        return moved if self.kind == "svm" else moved + self.tangent.output(X)


@door
def kernel_machine(
    model: Model,
    problem: Problem,
    start: ArrayLike | None = None,
    *,
    route: str = "auto",
    throw: bool = True,
) -> KernelMachine:
    """The shortest displacement of the parameters that solves a problem to first order.

    For targets it is the kernel interpolant, f(start, x_n) + <grad f(start, x_n), h> = y_n, where
    the flow of the model linearised at its start ends. Targets that no displacement fits are
    fitted in the least-squares sense, and the outcome says so.

    For labels -1 and +1 it is the kernel SVM, y_n <grad f(start, x_n), h> >= 1. The output at the
    start is omitted: without decay the growth along a separating direction makes it negligible.

    Parameters
    ----------
    model
        The model.
    problem
        A Regression or a matrix problem for an interpolant, a Classification for an SVM.
    start
        The parameters to linearise at; by default the start of the model.
    route
        "features" solves with the tangent features, "kernel" with their kernel, and "auto"
        chooses by size.
    throw
        False returns a numerical failure as the outcome instead of raising it.

    Returns
    -------
    KernelMachine
        The displacement with its certificate.

    Raises
    ------
    ValueError
        The features do not separate the labels, or an argument is wrong.
    NumericalError
        The solver failed; see `throw`.

    References
    ----------
    .. [1] Lyu et al. (2023), Dichotomy of Early and Late Phase Implicit Biases Can Provably Induce
       Grokking.

    Examples
    --------
    >>> import penchant
    >>> net = penchant.DiagonalNet(alpha=1.0)
    >>> fit = penchant.measures.kernel_machine(net, penchant.Regression([[1.0, 2.0]], [2.0]))
    >>> fit.predictor.round(4), fit.outcome.ok
    (array([0.4, 0.8]), True)
    >>> svm = penchant.measures.kernel_machine(net, penchant.Classification([[1.0, 2.0]], [1]))
    >>> svm.predictor.round(4), round(svm.margin * svm.norm, 6)
    (array([0.2, 0.4]), 1.0)
    """
    if not isinstance(problem, Problem):
        raise Invalid(
            f"the problem must be a Regression, a Classification or a matrix problem, got "
            f"{type(problem).__name__}"
        )
    X, y = problem.design, problem.y
    with one_blas_thread():
        at = tangent(model, X, start)
        chosen = chosen_route(at, X, route)
        solve = _svm if isinstance(problem, Classification) else _interpolant
        with at.hold(X):
            machine = solve(at, X, y, chosen)
    if throw and not machine.outcome.ok:
        raise NumericalError(WHO, machine.outcome)
    return machine


def _interpolant(at: TangentFeatures, X: Array, y: Array, route: str) -> KernelMachine:
    goal = y - at.output(X)
    answer = _linear_interpolant(at, X, goal) or _least_squares(at, X, y, goal, route)
    misfit = _pushed(at, X, answer.move) - goal
    # a huge output at the start removes digits of the targets
    residual = float(np.abs(misfit).max() / (max(np.abs(y).max(), np.abs(goal).max()) or 1.0))
    kkt = max(answer.kkt, _apart(at, X, answer.dual, answer.move))
    return _machine("interpolant", answer, at, residual, kkt)


def _svm(at: TangentFeatures, X: Array, y: Array, route: str) -> KernelMachine:
    sizes = lengths_of(at, X, route)
    if isinstance(at.model, Separable):
        answer = _linear_svm(at, X, y)
    else:
        answer = _separating(at, X, y, framed(at, X, route, sizes), sizes)
    margins = y * _pushed(at, X, answer.move)
    residual = float(np.maximum(1 - margins, 0.0).max())
    kkt = _apart(at, X, answer.dual, answer.move)
    if np.isfinite(margins).all():
        kkt = max(kkt, dual_misfit(answer.dual * y, margins))
    return _machine("svm", answer, at, residual, kkt, float(margins.min()))


class _MachineAnswer(NamedTuple):
    """What was found: h = sum_n dual_n F(x_n), and what is known about it."""

    dual: Array
    move: Array
    outcome: Outcome
    certificate: Certificate
    kkt: float = 0.0


def _pushed(at: TangentFeatures, X: Array, move: Array) -> Array:
    """F h, infinite where an answer is beyond float64."""
    if not np.isfinite(move).all():
        return np.full(len(X), np.inf)
    return at.push(X, move)


def _weights(at: TangentFeatures) -> tuple[Any, Array] | None:
    """Coordinates that move, and the weights of |h|^2 = sum_i weight_i beta_i^2, relative."""
    used = at.root > 0
    with np.errstate(over="ignore"):
        weights = (at.root.max() / at.root[used]) ** 2
    return (used, weights) if np.isfinite(weights).all() else None


def _of_predictor(at: TangentFeatures, used: Any, solution: Solution) -> _MachineAnswer:
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
    return _MachineAnswer(dual, move, solution.outcome, solution.certificate)


def _linear_interpolant(at: TangentFeatures, X: Array, goal: Array) -> _MachineAnswer | None:
    """The certified answer for a model with a linear predictor; None if no predictor fits."""
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


def _linear_svm(at: TangentFeatures, X: Array, y: Array) -> _MachineAnswer:
    """The same for margins."""
    known = _weights(at)
    if known is None:
        text = "the slopes of the predictor spread over too many decades; take another start"
        raise ValueError(f"{WHO}: {text}")
    used, weights = known
    try:
        solution = max_margin(X[:, used], y, L2(weights), throw=False)
    except ValueError:
        raise _inseparable() from None
    except NumericalError as reason:
        raise NumericalError(WHO, reason.outcome) from None
    answer = _of_predictor(at, used, solution)
    return answer._replace(dual=answer.dual * y)


def _least_squares(
    at: TangentFeatures, X: Array, y: Array, goal: Array, route: str
) -> _MachineAnswer:
    """The shortest least-squares fit of `goal`, and an estimate of its error.

    The error is what a further step would move, and the rounding of the misfit in that step.
    """
    power = int(np.frexp(np.abs(goal).max())[1])
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
    outcome = FITTED
    if worst > FITS and (np.abs(misfit) > ROUNDING * lengths * length).any():
        # least squares: the misfit is orthogonal to all features
        largest = float(frame.sizes.max(initial=0.0) * np.linalg.norm(inner)) or 1.0
        kkt = float(np.linalg.norm(at.pull(X, misfit))) / largest
        text = f"no displacement fits the data; least squares, relative misfit {worst:.2g}"
        outcome = Outcome(Kind.SOLVED, text + _advice(frame))
    error = 0.0
    if frame.sizes.size:
        further = float(np.linalg.norm(frame.left.T @ misfit / frame.sizes))
        # a displacement that only rounds zero has no relative error: the targets have one
        scale = max(length, float(np.linalg.norm(inner) / frame.sizes.max())) or 1.0
        error = further / scale + EPS * float(frame.sizes.max() / frame.sizes.min())
    if _loses(frame, at, X):
        error = math.inf
    certificate = Certificate(error, "estimate")
    outcome = judge(outcome, certificate)
    with np.errstate(over="ignore"):
        return _MachineAnswer(
            np.ldexp(dual, power), np.ldexp(move, power), outcome, certificate, kkt
        )


def _loses(frame: Frame, at: TangentFeatures, X: Array) -> bool:
    """Whether rounding may have dropped a direction of the data, so that the error is not known.

    Features that are held have rounding of their own, and a direction below it is none; a kernel
    squares them, so that only points that are given twice explain what it lacks.
    """
    if not isinstance(at.model, Separable):
        most = min(len(np.unique(X, axis=0)), len(at.start))
        return frame.right is None and len(frame.sizes) < most
    columns = X[:, at.root > 0]
    few = columns.size * min(columns.shape) <= ELIMINATION
    return not few or len(independent_rows(columns)) != len(frame.sizes)


def _apart(at: TangentFeatures, X: Array, dual: Array, move: Array) -> float:
    """|h - sum_n dual_n F(x_n)| relative to the terms of the sum: duals of close points cancel."""
    with np.errstate(all="ignore"):
        apart, pulled = 0.0, at.pull(X, dual)
        if (pulled != move).any():
            size = float(np.abs(move).max())
            lengths = np.linalg.norm(at.rows(X), axis=1) if X.size else np.zeros(0)
            terms = float((np.abs(dual) / size) @ lengths)
            apart = float(np.linalg.norm((move - pulled) / size)) / (terms or 1.0)
    return apart


def _advice(frame: Frame) -> str:
    """Advice if the kernel has lost directions of the features to rounding."""
    if frame.right is not None or len(frame.sizes) == len(frame.left):
        return ""
    return " (the kernel does not resolve some differences of the features; route='features' does)"


def _separating(
    at: TangentFeatures, X: Array, y: Array, frame: Frame, sizes: Array
) -> _MachineAnswer:
    """The l2 max margin in the coordinates of `frame`."""
    rows = (frame.left * frame.sizes) * sizes[:, None]
    try:
        solution = max_margin(rows, y, L2(), throw=False)
    except ValueError:
        raise _inseparable() from None
    except NumericalError as reason:
        raise NumericalError(WHO, reason.outcome) from None
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
    return _MachineAnswer(dual, move, outcome, certificate)


def _inseparable() -> ValueError:
    return ValueError(
        f"{WHO}: the tangent features of this start do not separate the labels; drop or relabel a "
        "point, take a wider model, or fit the labels as targets of a Regression"
    )


def _machine(
    kind: str,
    answer: _MachineAnswer,
    at: TangentFeatures,
    residual: float,
    kkt: float,
    least: float | None = None,
) -> KernelMachine:
    move, outcome, beta = answer.move, answer.outcome, None
    with np.errstate(all="ignore"):
        size = float(np.abs(move).max())
        norm = size * float(np.linalg.norm(move / size)) if size > 0 else size
        if isinstance(at.model, Separable):
            beta = at.tilt(move)
            if kind == "interpolant":
                beta = beta + at.constant()
    numbers = (move, answer.dual) if beta is None else (move, answer.dual, beta)
    if outcome.ok and not all(np.isfinite(part).all() for part in numbers):
        outcome = Outcome(Kind.OUT_OF_RANGE, "the displacement is beyond float64; rescale X or y")
    elif answer.certificate.kind == "bound":  # proven from the data themselves
        pass
    elif outcome.ok and max(kkt, 0.0 if least is None else residual) > VIOLATED:
        text = f"violation {residual:.2g} and KKT residual {kkt:.2g} are not small"
        outcome = Outcome(Kind.STALLED, text)
    return KernelMachine(
        kind=kind,
        dual=answer.dual,
        displacement=move,
        norm=norm,
        margin=None if least is None else least / norm if norm else math.nan,
        predictor=beta,
        residual=residual,
        kkt=kkt,
        log_unit=at.log_unit,
        outcome=outcome,
        certificate=answer.certificate,
        tangent=at,
    )
