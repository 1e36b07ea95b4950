"""The solutions that a frozen tangent kernel selects: kernel SVM and kernel interpolant."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, classification_data, finite_array, regression_data
from tacit.measures.kernels.features import (
    Frame,
    Tangent,
    chosen_route,
    framed,
    lengths_of,
    tangent,
)
from tacit.models.model import Model, Separable
from tacit.records import Kind, NumericalError, Outcome, Record
from tacit.regularizers.norms import L2
from tacit.solvers.margins.rows import dual_misfit
from tacit.solvers.max_margin import max_margin
from tacit.solvers.separation import TOO_CLOSE
from tacit.threads import one_blas_thread

FITS = 1e-9  # data count as fitted up to this misfit relative to the largest target,
ROUNDING = 1e-13  # and up to this misfit relative to |F(x_n)| |h|
FLAT = 1e-13  # smaller cosines with the separating direction are rounding errors


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
    tangent
        The tangent features.

    Examples
    --------
    >>> import tacit
    >>> machine = tacit.kernel_svm(tacit.DiagonalNet(alpha=1.0), [[1.0, 2.0]], [1])
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
    tangent: Tangent = dataclasses.field(repr=False)

    @property
    def log_norm(self) -> float:
        """log of the norm for the features grad f, independent of the unit."""
        return (math.log(self.norm) if self.norm > 0 else -math.inf) - self.log_unit

    def predict(self, X: ArrayLike) -> Array:
        """<F(x), h> for every row of `X`, plus the output at the start for an interpolant."""
        X = finite_array("KernelMachine", "X", X, ndim=2)
        moved = self.tangent.push(X, self.displacement)
        return moved if self.kind == "svm" else moved + self.tangent.output("KernelMachine", X)


def kernel_interpolant(
    model: Model,
    X: ArrayLike,
    y: ArrayLike,
    start: ArrayLike | None = None,
    *,
    route: str = "auto",
    throw: bool = True,
) -> KernelMachine:
    """The shortest displacement h with f(start, x_n) + <grad f(start, x_n), h> = y_n.

    The flow of the model linearised at its start ends there. Data that no displacement fits are
    fitted in the least-squares sense, and the outcome says so.

    Parameters
    ----------
    model
        The model.
    X
        The samples, one row each.
    y
        One label per sample.
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

    Examples
    --------
    >>> import tacit
    >>> machine = tacit.kernel_interpolant(tacit.DiagonalNet(alpha=1.0), [[1.0, 2.0]], [2.0])
    >>> machine.predictor.round(4), machine.outcome.ok
    (array([0.4, 0.8]), True)
    """
    who = "kernel_interpolant"
    X, y = regression_data(who, X, y)
    with one_blas_thread():
        at = tangent(who, model, X, None if start is None else np.asarray(start))
        goal = y - at.output(who, X)
        frame = framed(at, X, chosen_route(who, at, X, route), np.ones(len(X)))
        dual, move = _least_squares(at, X, goal, frame)
        misfit = at.push(X, move) - goal
        # a huge output at the start removes digits of the targets
        residual = float(np.abs(misfit).max() / (max(np.abs(y).max(), np.abs(goal).max()) or 1.0))
        lengths = np.linalg.norm(frame.left * frame.sizes, axis=1)
        rounding = ROUNDING * lengths * np.linalg.norm(move)
        kkt = _apart(at, X, dual, move, lengths)
        if residual <= FITS or (np.abs(misfit) <= rounding).all():
            outcome = Outcome(Kind.SOLVED, "fits the data with the shortest displacement")
        else:  # least squares: the misfit is orthogonal to all features
            size = float(frame.sizes.max(initial=0.0) * np.linalg.norm(goal)) or 1.0
            kkt = max(kkt, float(np.linalg.norm(at.pull(X, misfit))) / size)
            text = f"no displacement fits the data; least squares, relative misfit {residual:.2g}"
            outcome = Outcome(Kind.SOLVED, text + _advice(frame))
        if kkt > 1e-8:
            text = f"the optimality conditions hold only to {kkt:.2g}{_advice(frame)}"
            outcome = Outcome(Kind.STALLED, text)
        if throw and not outcome.ok:
            raise NumericalError(who, outcome)
        return _machine("interpolant", at, dual, move, residual, kkt, outcome)


def kernel_svm(
    model: Model,
    X: ArrayLike,
    y: ArrayLike,
    start: ArrayLike | None = None,
    *,
    route: str = "auto",
    throw: bool = True,
) -> KernelMachine:
    """The shortest displacement h with y_n <grad f(start, x_n), h> >= 1: L's kernel SVM.

    The output at the start is omitted: it is zero under the assumptions of L, and without decay
    the growth along a separating direction makes it negligible.

    Parameters
    ----------
    model
        The model.
    X
        The samples, one row each.
    y
        The labels, -1 or +1.
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
        The features do not separate the labels.

    Examples
    --------
    >>> import tacit
    >>> machine = tacit.kernel_svm(tacit.DiagonalNet(alpha=1.0), [[1.0, 2.0]], [1])
    >>> machine.predictor.round(4), round(machine.margin * machine.norm, 6)
    (array([0.2, 0.4]), 1.0)
    """
    who = "kernel_svm"
    X, y = classification_data(who, X, y)
    with one_blas_thread():
        at = tangent(who, model, X, None if start is None else np.asarray(start))
        chosen = chosen_route(who, at, X, route)
        sizes = lengths_of(who, at, X, chosen)
        frame = framed(at, X, chosen, sizes)
        dual, move, outcome = _separating(who, at, X, y, frame, sizes)
        margins = y * at.push(X, move)
        residual = float(np.maximum(1 - margins, 0.0).max())
        kkt = max(_apart(at, X, dual, move, sizes), dual_misfit(dual * y, margins))
        if outcome.ok and max(residual, kkt) > 1e-8:
            text = f"violation {residual:.2g} and KKT residual {kkt:.2g} are not small"
            outcome = Outcome(Kind.STALLED, text + _advice(frame))
        if throw and not outcome.ok:
            raise NumericalError(who, outcome)
        return _machine("svm", at, dual, move, residual, kkt, outcome, float(margins.min()))


def _least_squares(at: Tangent, X: Array, goal: Array, frame: Frame) -> tuple[Array, Array]:
    """(dual, displacement) of the shortest least-squares fit of `goal`."""

    def dual_of(misfit: Array) -> Array:
        return frame.left @ (frame.left.T @ misfit / frame.sizes**2)

    dual = dual_of(goal)
    if frame.right is not None:
        return dual, at.expand((frame.left.T @ goal / frame.sizes) @ frame.right)
    for _ in range(2):  # the kernel squares the condition number: refine
        dual = dual + dual_of(goal - at.push(X, at.pull(X, dual)))
    return dual, at.pull(X, dual)


def _apart(at: Tangent, X: Array, dual: Array, move: Array, lengths: Array) -> float:
    """|h - sum_n dual_n F(x_n)| relative to the terms of the sum: duals of close points cancel."""
    terms = float(np.abs(dual) @ lengths)
    return float(np.linalg.norm(move - at.pull(X, dual))) / (terms or 1.0)


def _advice(frame: Frame) -> str:
    """Advice if the kernel has lost directions of the features to rounding."""
    if frame.right is not None or len(frame.sizes) == len(frame.left):
        return ""
    return " (the kernel does not resolve some differences of the features; route='features' does)"


def _separating(
    who: str, at: Tangent, X: Array, y: Array, frame: Frame, sizes: Array
) -> tuple[Array, Array, Outcome]:
    """(dual, displacement, outcome) of the l2 max margin in the coordinates of `frame`."""
    rows = (frame.left * frame.sizes) * sizes[:, None]
    try:
        found = max_margin(rows, y, L2(), throw=False)
    except ValueError:
        raise _inseparable(who) from None
    except NumericalError as reason:
        raise NumericalError(who, reason.outcome) from None
    if found.outcome.sentence.startswith(TOO_CLOSE):  # up to rounding of the features
        raise _inseparable(who)
    if found.outcome.ok:
        cosines = y * (rows @ found.beta) / (sizes * np.linalg.norm(found.beta))
        if cosines.min() < FLAT:
            raise _inseparable(who)
    dual = found.dual * y / 2  # L2() is |beta|^2: its gradient 2 beta is the sum of y_n dual_n x_n
    if frame.right is not None:
        return dual, at.expand(found.beta @ frame.right), found.outcome
    return dual, at.pull(X, dual), found.outcome


def _inseparable(who: str) -> ValueError:
    return ValueError(
        f"{who}: the tangent features of this start do not separate the labels; drop or relabel a "
        "point, take a wider model, or fit the labels as targets with kernel_interpolant()"
    )


def _machine(
    kind: str,
    at: Tangent,
    dual: Array,
    move: Array,
    residual: float,
    kkt: float,
    outcome: Outcome,
    least: float | None = None,
) -> KernelMachine:
    norm, beta = float(np.linalg.norm(move)), None
    if isinstance(at.model, Separable):
        beta = at.tilt(move)
        if kind == "interpolant":
            beta = beta + at.constant("kernel_interpolant")
    margin = None if least is None else least / norm
    found = margin, beta, residual, kkt, at.log_unit, outcome
    return KernelMachine(kind, dual, move, norm, *found, at)
