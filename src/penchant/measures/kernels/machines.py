"""The solutions that a frozen tangent kernel selects: kernel SVM and kernel interpolant.

How it works. Linearised at its start the model is f(start, x) + <F(x), h> with the tangent features
F(x) = grad f(start, x), and training moves h to the shortest displacement that fits the values, or
that has margins of one (docs/theory sections 20 and 21 need both and their lengths). Either is
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

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array
from penchant.door import Invalid, door, door_as
from penchant.limits import limited
from penchant.measures.kernels.displacements import (
    CALLER,
    Displacement,
    least_squares,
    linear_interpolant,
    linear_svm,
    separating,
)
from penchant.measures.kernels.features import (
    TangentFeatures,
    chosen_route,
    lengths_of,
    tangent,
)
from penchant.models.model import Model, Separable
from penchant.problems.classification import Classification
from penchant.records import Kind, NumericalError, Outcome, Record
from penchant.solvers import exact
from penchant.solvers.certificate import Certificate
from penchant.solvers.data import Problem
from penchant.solvers.margins.rows import dual_misfit
from penchant.threads import one_blas_thread

VIOLATED = 1e-8  # a condition that is violated by more than this, relative, is not met


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
    max_seconds: float | None = None,
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
    max_seconds
        The solver ends after this time as a failure; None sets no limit. Features of the model take
        their own time.

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
    with one_blas_thread(), limited(max_seconds):
        at = tangent(model, X, start)
        chosen = chosen_route(at, X, route)
        solve = _svm if isinstance(problem, Classification) else _interpolant
        with at.hold(X):
            machine = solve(at, X, y, chosen)
    if throw and not machine.outcome.ok:
        raise NumericalError(CALLER, machine.outcome)
    return machine


def _interpolant(at: TangentFeatures, X: Array, y: Array, route: str) -> KernelMachine:
    goal = y - at.output(X)
    answer = linear_interpolant(at, X, goal) or least_squares(at, X, y, goal, route)
    misfit = _misfit(at, X, goal, answer.move)
    # a huge output at the start removes digits of the targets
    residual = float(np.abs(misfit).max() / (max(np.abs(y).max(), np.abs(goal).max()) or 1.0))
    kkt = max(answer.kkt, _apart(at, X, answer.dual, answer.move))
    return _machine("interpolant", answer, at, residual, kkt)


def _svm(at: TangentFeatures, X: Array, y: Array, route: str) -> KernelMachine:
    sizes = lengths_of(at, X, route)
    if isinstance(at.model, Separable):
        answer = linear_svm(at, X, y)
    else:
        answer = separating(at, X, y, route, sizes)
    margins = y * _pushed(at, X, answer.move)
    residual = float(np.maximum(1 - margins, 0.0).max())
    kkt = _apart(at, X, answer.dual, answer.move)
    if np.isfinite(margins).all():
        kkt = max(kkt, dual_misfit(answer.dual * y, margins))
    return _machine("svm", answer, at, residual, kkt, float(margins.min()))


def _misfit(at: TangentFeatures, X: Array, goal: Array, move: Array) -> Array:
    """What the goals lack, for a linear predictor without rounding where that would show."""
    if isinstance(at.model, Separable):
        with np.errstate(all="ignore"):  # features in a unit of their own may have an end
            missing = exact.missing(X, at.tilt(move), goal)
        if np.isfinite(missing).all():
            return missing
    return goal - _pushed(at, X, move)


def _pushed(at: TangentFeatures, X: Array, move: Array) -> Array:
    """F h, infinite where an answer is beyond float64."""
    if not np.isfinite(move).all():
        return np.full(len(X), np.inf)
    return at.push(X, move)


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


def _machine(
    kind: str,
    answer: Displacement,
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
