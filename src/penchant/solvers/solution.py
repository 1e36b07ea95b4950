"""What a solver returns: the selected predictor with its certificate."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, entries, regression_data
from penchant.door import Invalid, door
from penchant.limits import OutOfTime
from penchant.records import Kind, Outcome, brief
from penchant.regularizers.lp import Lp
from penchant.regularizers.norms import L1, L2, Linf
from penchant.regularizers.regularizer import Regularizer
from penchant.regularizers.spectral import MatrixNorm, SpectralFunction
from penchant.results import LabelledResult, dataset_of
from penchant.solvers import exact
from penchant.solvers.accuracy import Graph
from penchant.solvers.certificate import UNKNOWN, Certificate, judge
from penchant.solvers.data import FARTHEST, NEAREST, Units, representable

SOLVED = Outcome(Kind.SOLVED, "the optimality conditions hold to rounding")
AXES = {"feature": "beta", "sample": "dual"}  # of the dataset of a solution
SMALL = 1e-10  # a violation above this is worth another look

Measure = TypeVar("Measure", Regularizer, SpectralFunction)

FAINTEST = 5e-315  # below this float64 holds a predictor to fewer than nine digits


class Found(NamedTuple):
    """What a solver found: the dual is `dual` times e^log_unit."""

    beta: Array
    dual: Array
    iterations: int
    outcome: Outcome
    log_unit: float = 0.0
    rest: tuple[Array, ...] = ()  # vectors to be added to the dual
    mend: Callable[[Array], Array] | None = None  # the change of beta for what rows lack


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Solution(LabelledResult):
    """A constrained minimiser and the numbers that prove it.

    Both `residual` and `kkt` are computed from `beta` and `dual` as returned.

    Attributes
    ----------
    beta
        The minimiser.
    dual
        The multipliers: gradient(beta) = X^T dual.
    value
        The value of the regularizer at `beta`.
    residual
        max|X beta - y| / max|y|.
    kkt
        The largest distance of a pair (beta_i, (X^T dual)_i) from the graph of the gradient,
        along the nearer of the two axes, each axis in units of its largest entry.
    iterations
        The iterations that the solver took.
    outcome
        How the computation ended, in a sentence.
    log_value
        The natural logarithm of `value`, also where that overflows.
    log_dual_unit
        If float64 cannot represent the dual, the dual is `dual` times e^log_dual_unit.
    certificate
        The relative error that is certified, with its kind (a bound or an estimate) and whether it
        is that of the predictor or of the value; `error` is its number.
    dual_rest
        Where columns spread over so many decades that rounding the dual to float64 would spoil
        X^T dual, the dual is the exact sum of `dual` and these vectors (times that unit), and
        `kkt` is that of the sum.
    features
        The names of the columns, if X had them.

    Examples
    --------
    >>> import penchant
    >>> solution = penchant.interpolate([[1.0, 2.0]], [2.0], penchant.L1())
    >>> solution.outcome.ok, round(solution.value, 6), solution.residual < 1e-12
    (True, 1.0, True)
    """

    beta: Array
    dual: Array
    value: float
    residual: float
    kkt: float
    iterations: int
    outcome: Outcome
    log_value: float = math.nan
    log_dual_unit: float = 0.0
    certificate: Certificate = UNKNOWN
    dual_rest: tuple[Array, ...] = ()
    features: tuple[str, ...] = ()

    @property
    def dataset(self) -> Any:
        """Predictor and dual with labels, an xarray.Dataset."""
        rows = {
            "beta": ("feature", self.beta, "coefficients of the predictor"),
            "dual": ("sample", self.dual, "multipliers of the samples"),
        }
        at = {name: (name, np.arange(len(rows[k][1])), name) for name, k in AXES.items()}
        told = {name: getattr(self, name) for name in ("value", "residual", "kkt", "error")}
        return dataset_of(self, rows, at, **told, sentence=str(self.outcome))

    @property
    def error(self) -> float:
        """The relative error of the predictor or, where `certificate.part` says so, of the value.

        It is a bound if `certificate.kind` is "bound": for L2, and for values, which duality
        bounds. For other predictors it is a first-order estimate, from the curvature at the
        solution: right up to a factor near one if it is small.
        """
        return self.certificate.error

    def rows(self) -> list[tuple[str, str]]:
        """Every field; those for numbers beyond float64 only if they are needed."""
        ordinary = {"log_value": 0 < self.value < math.inf, "log_dual_unit": not self.log_dual_unit}
        ordinary |= {name: not getattr(self, name, ()) for name in ("dual_rest", "features")}
        fields = [f.name for f in dataclasses.fields(self) if not ordinary.get(f.name, False)]
        return [(name, brief(getattr(self, name))) for name in fields]


def must_fit(regularizer: Regularizer | MatrixNorm, dimension: int) -> None:
    """Checks that the regularizer is one and has room for `dimension` coordinates."""
    if isinstance(regularizer, MatrixNorm) and regularizer.shape is None:
        raise Invalid(
            f"{regularizer!r} needs the shape of the matrix that a row of X holds;"
            f" use {type(regularizer).__name__}(shape=(rows, columns))"
        )
    if not isinstance(regularizer, Regularizer | MatrixNorm):
        raise Invalid(f"expected a regularizer such as Q(...), got {regularizer!r}")
    if regularizer.dimension not in (None, dimension):
        raise Invalid(
            f"{regularizer} has {regularizer.dimension} coordinates, but X has {dimension} columns"
        )


def stacked(solutions: Sequence[Any], *names: str) -> dict[str, Any]:
    """These fields of all solutions, one row each."""
    return {name: np.stack([getattr(s, name) for s in solutions]) for name in names}


def judged(
    outcome: Outcome, beta: Array, dual: Array, proof: tuple[float, float], certificate: Certificate
) -> Outcome:
    """The outcome that the certificate allows: nothing else is ever called solved."""
    if not outcome.ok:
        return outcome
    residual, kkt = proof
    tiny = np.abs(dual).max(initial=0.0) < 1e-290  # float64 may have lost digits of the dual
    faint = 0 < np.abs(beta).max(initial=0.0) < FAINTEST
    if np.isinf(beta).any() or np.isinf(dual).any() or (not certificate.ok and tiny) or faint:
        text = "the predictor or its dual is beyond float64; rescale X or y"
        return Outcome(Kind.OUT_OF_RANGE, text)
    if not (np.isfinite(beta).all() and np.isfinite(dual).all() and np.isfinite(proof).all()):
        return Outcome(Kind.STALLED, "a number in the solution or its certificate is not finite")
    if not certificate.ok:
        text = f"relative residual {residual:.2g}, KKT residual {kkt:.2g}"
        sentence = "" if outcome is SOLVED else f"{outcome.sentence}; "
        outcome = Outcome(outcome.kind, sentence + text)
    return judge(outcome, certificate)


def unreachable(regularizer: Regularizer, dimension: int, samples: int) -> tuple[Any, ...]:
    """The fields of a solution too large or too small for a regularizer with a unit of its own."""
    sizes = f"above 2^{FARTHEST} or below 2^-{NEAREST}"
    text = f"the predictor is {sizes}, and {regularizer} has a unit of its own"
    nothing = np.full(dimension, np.nan), np.full(samples, np.nan)
    return *nothing, *[math.nan] * 3, 0, Outcome(Kind.OUT_OF_RANGE, f"{text}; rescale X or y")


def unfinished(X: Array, reason: OutOfTime) -> Solution:
    """A solution without numbers, because the time was spent."""
    nothing = np.full(X.shape[1], np.nan), np.full(len(X), np.nan)
    numbers = math.nan, math.nan, math.nan
    return Solution(*nothing, *numbers, 0, Outcome(Kind.BUDGET_SPENT, str(reason)))


def concluded(
    regularizer: Regularizer | SpectralFunction,
    candidate: Found,
    beta: Array,
    proof: tuple[float, float],
    certificate: Certificate,
    valued: bool = True,
) -> tuple[Any, ...]:
    """The fields of a solution with the proof (residual, kkt) and the certificate."""
    parts, log_unit = np.vstack([candidate.dual, *candidate.rest]), candidate.log_unit
    if log_unit:
        parts, log_unit = representable(parts, 0, log_unit)
    outcome = judged(candidate.outcome, beta, parts[0], proof, certificate)
    value = regularizer(beta) if valued else np.nan
    log_value = log_value_of(regularizer, beta, value) if valued else np.nan
    rest = candidate.iterations, outcome, log_value, log_unit
    return beta, parts[0], value, *proof, *rest, certificate, tuple(parts[1:])


def kkt_residual(
    regularizer: Regularizer | MatrixNorm, beta: Array, s: Array, graph: Graph | None = None
) -> float:
    """Distance of (beta, s) from the graph s = gradient(beta), relative, worst coordinate.

    `graph` is that of a smooth regularizer at beta and s, where it is known. For p <= 1 the graph
    is vertical at zero. For l_inf and the
    norms of matrices it is the dual norm of s beyond one, or the part of the norm that <s, beta>
    lacks.
    """
    if isinstance(regularizer, L1):
        return l1_residual(beta, s)
    if isinstance(regularizer, Linf | MatrixNorm):
        long, value = float(regularizer.dual_norm(s)) - 1, regularizer(beta)
        return max(long, abs(1 - float(s @ beta) / value))
    if isinstance(regularizer, Lp) and regularizer.p < 1:
        slopes = regularizer.dual_of(beta)
        return float(np.abs(np.where(beta == 0, 0.0, s - slopes)).max() / np.abs(slopes).max())
    return (Graph.of(regularizer, beta, s) if graph is None else graph).distance


def l1_residual(beta: Array, s: Array) -> float:
    """The same for the l1 norm, whose graph has all of [-1, 1] at zero."""
    along_dual = np.where(beta == 0, np.abs(s) - 1, np.abs(s - np.sign(beta)))
    along_primal = np.where(np.abs(s) <= 1, np.abs(beta), np.inf) / max(np.abs(beta).max(), 1e-300)
    return float(np.minimum(along_dual, along_primal).max(initial=0.0))


@door
def primal_residual(X: ArrayLike, y: ArrayLike, beta: ArrayLike) -> float:
    """The largest misfit max|X beta - y|, relative to max|y|.

    It is computed without cancellation, so that it is right far below the rounding of X beta.

    Parameters
    ----------
    X
        The samples, one row each.
    y
        One label per sample.
    beta
        The predictor.

    Returns
    -------
    float
        The relative misfit.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> X, y = np.array([[1.0, 2.0]]), np.array([5.0])
    >>> round(penchant.solvers.primal_residual(X, y, np.array([1.0, 1.9])), 6)
    0.04
    """
    X, y = regression_data(X, y)
    beta = entries("beta", beta, X.shape[1], "one entry per column of X")
    scale = float(np.abs(y).max())
    return float(np.abs(exact.missing(X, beta, y)).max() / (scale if scale > 0 else 1.0))


def normalized(regularizer: Measure, beta: Array, log_unit: float) -> tuple[Measure, Array]:
    """(regularizer, beta) in the unit of beta in which a dual in e^log_unit is the dual itself."""
    if not log_unit or regularizer.degree is None:
        return regularizer, beta
    if regularizer.degree == 1:  # Q in its kernel regime, where the dual is beta / mu
        return regularizer.in_units(-log_unit), beta
    log_size = log_unit / (regularizer.degree - 1)
    return regularizer.in_units(log_size), beta * math.exp(-log_size)


def log_value_of(regularizer: Regularizer | SpectralFunction, beta: Array, value: float) -> float:
    """log regularizer(beta), by way of a beta of unit size where the value is beyond float64."""
    if 0 < value < math.inf:
        return math.log(value)
    size = float(np.abs(beta).max())
    if size == 0 or regularizer.degree is None:
        return -math.inf if value == 0 else math.nan
    inner = regularizer.in_units(math.log(size))(beta / size)
    return math.log(inner) + regularizer.degree * math.log(size) if inner > 0 else -math.inf


def as_sum(regularizer: Regularizer) -> Regularizer:
    """The sum of squares in place of its root, which has the same minimisers."""
    rooted = isinstance(regularizer, L2) and not regularizer.squared
    return L2(regularizer.weights) if rooted else regularizer  # type: ignore[attr-defined]


def of_root(solution: Solution) -> Solution:
    """The solution for the root of a regularizer, from the one for the regularizer itself."""
    if not math.isfinite(solution.log_value):  # zero, or no solution
        return solution
    log_value = solution.log_value / 2
    # the gradient of the root is that of the sum over twice the root
    log_unit = solution.log_dual_unit - math.log(2) - log_value
    (dual, *rest), log_unit = representable(
        np.vstack([solution.dual, *solution.dual_rest]), 0, log_unit
    )
    return dataclasses.replace(
        solution,
        dual=dual,
        dual_rest=tuple(rest),
        log_dual_unit=log_unit,
        value=exponential(log_value),
        log_value=log_value,
    )


def restored(
    solution: Any, units: Units, regularizer: Regularizer | SpectralFunction, name: str = "beta"
) -> Any:
    """The solution in the units of the data, or the outcome that float64 does not hold it."""
    inner = getattr(solution, name)
    beta = units.original(inner)
    degree = 1.0 if regularizer.degree is None else regularizer.degree
    shift = (degree - 1) * units.log_size
    parts = np.vstack([solution.dual, *getattr(solution, "dual_rest", ())])
    (dual, *rest), log_unit = representable(parts, -units.rows, solution.log_dual_unit + shift)
    log_value = solution.log_value + degree * units.log_size
    value = exponential(log_value) if solution.value else solution.value
    outcome = solution.outcome
    if outcome.ok and lost(inner, beta, units):
        size = (math.log(float(np.abs(inner).max())) + units.log_size) / math.log(10)
        text = f"the predictor has entries of size 1e{size:+.0f}, which float64 does not hold"
        outcome = Outcome(Kind.OUT_OF_RANGE, f"{text}; rescale X or y")
    changed = {"value": value, "log_value": log_value, "outcome": outcome, name: beta}
    if rest:
        changed["dual_rest"] = tuple(rest)
    return dataclasses.replace(solution, dual=dual, log_dual_unit=log_unit, **changed)


def exponential(x: float) -> float:
    """e^x, infinite beyond float64."""
    return math.exp(x) if x < 709.0 else math.inf if x > 709.78 else float(np.exp(x))


def lost(inner: Array, beta: Array, units: Units) -> bool:
    """Whether float64 does not hold the predictor in the units of the data."""
    if not np.isfinite(beta).all():
        return True
    with np.errstate(under="ignore"):
        again = np.ldexp(beta, -units.predictor)
    return bool(np.abs(again - inner).max() > 1e-9 * np.abs(inner).max())
