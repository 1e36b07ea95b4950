"""When a run under weight decay will leave the kernel regime: from its start, and on the way.

Theory (source L, with the constants kept). While the direction lasts, the parameters are
e^(-z) theta0 + delta with z = rate t: the start decays, and delta, the displacement that fits the
data in the tangent features, grows like e^((L-1) z) because those features decay with the start.
They meet, and the kernel regime ends, at

    z* = (log|theta0| - log(g |delta0|)) / L,

where delta0 is the shortest displacement with margins 1 (or that fits y, and then g = 1) at the
start. theta0 = alpha thetabar gives z* = log alpha + a constant - (1/L) log g: the (1/rate) log
alpha of L, and how far a finite start is from it. The margin level g follows from the balance of
loss and decay, J^T q = L rate delta, so e^-g = L rate g |delta|^2 with |delta|^2 at z*.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array, positive, real
from tacit.models.model import Model
from tacit.probes.assumptions import require_theorem
from tacit.probes.kernel_machines import kernel_interpolant, kernel_svm
from tacit.problems.classification import Classification
from tacit.problems.matrix_problem import MatrixProblem
from tacit.problems.regression import Regression
from tacit.records import Record

Problem = Regression | Classification | MatrixProblem

WHO = "forecast"
SPREAD = 4.0  # |delta| from 1/4 to 4 times the decayed start is called the transition


@dataclasses.dataclass(frozen=True, repr=False)
class Forecast(Record):
    """When the transition is expected, with the interval in which it happens.

    `naive` is (1/rate) log alpha, NaN where the model has no alpha above 1: the theory's alpha
    multiplies a fixed start, and the norm of all parameters is another thing. `log_norm` is the
    logarithm of the norm that the decayed start has at `t2`, and `smoothed_margin` log(1/loss)
    there (NaN for regression).
    """

    t2: float
    low: float
    high: float
    rate: float
    naive: float
    log_norm: float
    smoothed_margin: float
    basis: str
    sentence: str

    def steps(self, step: float) -> int:
        """`t2` as a number of descent steps of length `step`."""
        return math.ceil(self.t2 / positive("Forecast.steps", "step", step))


def transition_time(alpha: float | None = None, *, log_alpha: float | None = None,
                    rate: float) -> float:  # fmt: skip
    """(1/rate) log alpha, where L puts the jump; alpha multiplies a start of fixed size."""
    who = "transition_time"
    if (alpha is None) == (log_alpha is None):
        raise ValueError(f"{who}: give exactly one of alpha and log_alpha")
    size = math.log(positive(who, "alpha", alpha)) if log_alpha is None else log_alpha
    if real(who, "log_alpha", size) <= 0:
        raise ValueError(
            f"{who}: log alpha = {size:.4g} is not positive, so (1/rate) log alpha is no time; the "
            "theory's alpha multiplies a start of size one and tends to infinity. forecast() "
            "needs no alpha"
        )
    time = size / _rate(who, rate)
    if math.isinf(time):
        raise ValueError(f"{who}: log alpha / rate is beyond float64")
    return time


def forecast(model: Model, problem: Problem, rate: float) -> Forecast:
    """The transition as the start alone tells it: one kernel machine, no training.

    The model must be homogeneous with zero output at the start; both are measured first.
    """
    rate = _rate(WHO, rate)
    if not isinstance(problem, Problem):
        raise ValueError(
            f"{WHO}: the problem must be a Regression, a Classification or a matrix problem, got "
            f"{type(problem).__name__}"
        )
    X = problem.design if isinstance(problem, MatrixProblem) else problem.X
    if not (X.any() and problem.y.any()):
        raise ValueError(f"{WHO}: X and y must not be zero: there is nothing to fit")
    degree = round(require_theorem(WHO, model, X, smooth=False).degree)
    log_start = _log_start(model, X.shape[1])
    if isinstance(problem, Classification):
        log_delta = kernel_svm(model, X, problem.y).log_norm
        g = _margin_level(degree, math.log(rate), log_start, log_delta)
        log_delta += math.log(g)
    else:
        g, log_delta = math.nan, kernel_interpolant(model, X, problem.y).log_norm
        _fits(degree, rate, log_start, log_delta, float(np.linalg.norm(problem.y)))
    z = (log_start - log_delta) / degree
    return _forecast(z, math.log(SPREAD) / degree, rate, log_start, g, _naive(model, rate))


def forecast_run(t: ArrayLike, norm: ArrayLike, turn: ArrayLike) -> Forecast:
    """The same from a run so far: parameter norm and `turn` (degrees from the start) at times t.

    The rate is that of the norm's decay. The turn is the angle between e^(-z) theta0 and
    e^(-z) theta0 + delta, so its tangent is |delta| over the decayed start and passes 1 at the
    transition; the logarithms of both are fitted by lines over the second half of the record.
    """
    who = "forecast_run"
    times = finite_array(who, "t", t, ndim=1)
    norms, turns = (_matching(who, name, v, times) for name, v in (("norm", norm), ("turn", turn)))
    if not (np.diff(times) > 0).all() or not 1e-150 < times[-1] < 1e150:
        raise ValueError(f"{who}: t must increase, and end between 1e-150 and 1e150")
    late = (times >= times[-1] / 2) & (times > 0)
    if np.count_nonzero(late) < 4:
        raise ValueError(
            f"{who}: the second half of the record must hold at least 4 times, got "
            f"{np.count_nonzero(late)}; record more of the run"
        )
    if (norms <= 0).any() or (turns[late] <= 0).any():
        raise ValueError(f"{who}: norms and late turns must be > 0; has the run begun to train?")
    slope, error = _slope(times[late], np.log(norms[late]))
    if not -slope > 2 * error:
        raise ValueError(
            f"{who}: the norm does not decay clearly (rate {-slope:.3g} +- {error:.2g}), so there "
            "is no transition to forecast; is there weight decay?"
        )
    ratios = np.log(np.tan(np.radians(np.minimum(turns[late], 89.9))))
    growth, doubt = _slope(times[late], ratios)
    if not growth > 2 * doubt:
        raise ValueError(
            f"{who}: the turn does not grow clearly (by e^({growth:.3g} +- {doubt:.2g} t)), so "
            "there is nothing to extrapolate; record more of the run"
        )
    ahead = -float(ratios[-1]) / growth
    width = 2 * doubt / growth * abs(ahead) + math.log(SPREAD) / growth
    log_norm = float(np.log(norms[-1])) + slope * ahead
    return _from_run(float(times[-1]), ahead, width, (-slope, error), log_norm)


def _from_run(
    now: float, ahead: float, width: float, rate: tuple[float, float], log_norm: float
) -> Forecast:
    t2, low, high = (max(now + z, 0.0) for z in (ahead, ahead - width, ahead + width))
    when = f"expected at t = {t2:.4g}" if ahead > 0 else f"has happened, at about t = {t2:.4g}"
    sentence = f"the norm decays at {rate[0]:.4g} +- {rate[1]:.2g}; the transition {when}"
    basis = "the run so far"
    return Forecast(t2, low, high, rate[0], math.nan, log_norm, math.nan, basis, sentence)


def _forecast(
    z: float, doubt: float, rate: float, log_start: float, g: float, naive: float
) -> Forecast:
    t2, low, high = (max(value, 0.0) / rate for value in (z, z - doubt, z + doubt))
    sentence = f"the kernel regime is expected to end at rate * t = {max(z, 0.0):.4g}"
    if z <= 0:
        sentence = (
            "the start is too small for a kernel phase: training is rich from the beginning, and "
            "no delayed transition is expected"
        )
    log_norm = log_start - max(z, 0.0)
    return Forecast(t2, low, high, rate, naive, log_norm, g, "the start", sentence)


def _margin_level(degree: int, log_rate: float, log_start: float, log_delta: float) -> float:
    """g at z*: g = ((L-2)/L) log g - c, by iteration from above."""
    c = math.log(degree) + log_rate + 2 * (log_delta + (degree - 1) * log_start) / degree
    share, g = (degree - 2) / degree, max(-c, 1.0)
    for _ in range(100):
        g = share * math.log(max(g, 1.0)) - c
    if not g > 1:
        raise ValueError(
            f"{WHO}: at rate {math.exp(log_rate):.3g} the decay is so strong that the data are "
            f"hardly fitted where the kernel regime would end (log(1/loss) about {g:.3g}); there "
            "is no transition to forecast, take a smaller rate"
        )
    return g


def _fits(degree: int, rate: float, log_start: float, log_delta: float, size: float) -> None:
    """Refuse a decay under which a squared loss is far from fitted where the regime ends.

    There 2 <r, f> = L rate |delta|^2 with |delta| the decayed start, so the relative misfit is
    at least L rate |delta|^2 / (2 |y|^2).
    """
    log_met = log_start - (log_start - log_delta) / degree
    log_misfit = math.log(degree * rate / 2) + 2 * (log_met - math.log(size))
    if log_misfit > math.log(0.5):
        raise ValueError(
            f"{WHO}: at rate {rate:.3g} the decay is so strong that the data are hardly fitted "
            "where the kernel regime would end; there is no transition to forecast, take a "
            "smaller rate"
        )


def _naive(model: Model, rate: float) -> float:
    log_alpha = getattr(model, "log_alpha", None)
    return log_alpha / rate if log_alpha is not None and log_alpha > 0 else math.nan


def _log_start(model: Model, dimension: int) -> float:
    """log|theta0|, also where float64 cannot hold theta0."""
    log_alpha = getattr(model, "log_alpha", None)
    shape_for = getattr(model, "shape_for", None)
    if log_alpha is not None and shape_for is not None:
        copies = getattr(model, "copies", 1)
        return log_alpha + math.log(float(np.linalg.norm(shape_for(dimension))) * math.sqrt(copies))
    return math.log(float(np.linalg.norm(model.start(dimension))))


def _rate(who: str, rate: object) -> float:
    number = real(who, "rate", rate, rule="a finite number > 0")
    if number < 0:
        raise ValueError(f"{who}: rate must be > 0, got {number:g}")
    if number == 0:
        raise ValueError(
            f"{who}: without decay (rate 0) the norm never shrinks and there is no such time; the "
            "transition is then at log t of the order of alpha^L, see DualFlow"
        )
    return number


def _matching(who: str, name: str, values: ArrayLike, t: Array) -> Array:
    array = finite_array(who, name, values, ndim=1)
    if len(array) != len(t):
        raise ValueError(f"{who}: {name} must have one value per time ({len(t)}), got {len(array)}")
    return array


def _slope(x: Array, y: Array) -> tuple[float, float]:
    """The least-squares slope and its standard error."""
    x, y = x - x.mean(), y - y.mean()
    square = float(x @ x)
    slope = float(x @ y) / square
    left = y - slope * x
    return slope, math.sqrt(float(left @ left) / max(len(x) - 2, 1) / square)
