"""When a run under weight decay will leave the kernel regime: as its start tells it.

Theory (source L, with the constants kept). While the direction lasts, the parameters are
e^(-z) theta0 + delta with z = rate t: the start decays, and delta, the displacement that fits the
data in the tangent features, grows like e^((L-1) z) because those features decay with the start.

Where the regularizer Q of the model is known, the predictor of a slow run is the minimiser of Q
at the scale alpha e^(-z) / g^(1/L), with g the margin (1 for a squared loss): measures/turning.py
follows it, and the transition is the time in which it turns. Loss and decay balance,
J^T q = rate theta, so e^-g = (rate/L) g^(2/L - 1) |theta|^2 with theta the smallest parameters
that give margins 1.

For other models start and displacement meet, and the kernel regime ends, at

    z* = (log|theta0| - log(g |delta0|)) / L,

where delta0 is the shortest displacement with margins 1 (or that fits y, and then g = 1) at the
start, and there J^T q = L rate delta, so e^-g = L rate g |delta|^2 with |delta|^2 at z*.

Either way theta0 = alpha thetabar gives z = log alpha + a constant - (1/L) log g: the (1/rate) log
alpha of L, and how far a finite start is from it.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from tacit.arguments import Array, positive, real
from tacit.measures.assumptions import require_theorem
from tacit.measures.kernels.machines import kernel_interpolant, kernel_svm
from tacit.measures.turning import Measure, Minimisers, Problem, minimisers, window
from tacit.models.diagonal import DiagonalNet
from tacit.models.model import Model
from tacit.problems.classification import Classification
from tacit.problems.matrix_problem import MatrixProblem
from tacit.records import Record

WHO = "forecast"
SPREAD = 4.0  # where only norms are known it begins with |delta| a quarter of the decayed start
# and runs turn later than where the norms meet, since the margin falls and the features begin to
# grow on the way: by 0.5 to 1.3 for nets of degree 2 to 4, in units of 1/weight_decay
LATER = 1.5


@dataclasses.dataclass(frozen=True, repr=False)
class Forecast(Record):
    """When the run is expected to leave the kernel regime: at `transition`, from `low` to `high`.

    Attributes
    ----------
    transition
        The time at which half of the change is done.
    low
        The time at which the change begins.
    high
        The time at which it ends.
    weight_decay
        The given one, or that which the norm of a run shows.
    naive
        (1/weight_decay) log alpha, NaN where the model has no alpha above 1: the theory's alpha
        multiplies a fixed start, and the norm of all parameters is another thing.
    log_norm
        The logarithm of the norm that the decayed start has at `transition`.
    smoothed_margin
        log(1/loss) there, NaN for regression.
    basis
        What the forecast is made of.
    sentence
        The forecast in words.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.majority(9, 20)
    >>> found = tacit.forecast(tacit.DiagonalNet(alpha=10.0), problem, weight_decay=1e-3)
    >>> round(found.naive, 3), found.weight_decay
    (2302.585, 0.001)
    """

    transition: float
    low: float
    high: float
    weight_decay: float
    naive: float
    log_norm: float
    smoothed_margin: float
    basis: str
    sentence: str

    def steps(self, learning_rate: float) -> int:
        """`transition` as a number of descent steps with this learning rate."""
        rate = positive("Forecast.steps", "learning_rate", learning_rate)
        return math.ceil(self.transition / rate)


def transition_time(
    *, alpha: float | None = None, log_alpha: float | None = None, weight_decay: float
) -> float:
    """(1/weight_decay) log alpha, where L puts the jump; alpha multiplies a start of fixed size.

    Parameters
    ----------
    alpha
        The scale of the start.
    log_alpha
        Its natural logarithm, in its place.
    weight_decay
        The weight decay.

    Returns
    -------
    float
        The time of the jump.

    Examples
    --------
    >>> import tacit
    >>> round(tacit.transition_time(alpha=10.0, weight_decay=0.1), 4)
    23.0259
    """
    who = "transition_time"
    if (alpha is None) == (log_alpha is None):
        raise ValueError(f"{who}: give exactly one of alpha and log_alpha")
    size = math.log(positive(who, "alpha", alpha)) if log_alpha is None else log_alpha
    if real(who, "log_alpha", size) <= 0:
        raise ValueError(
            f"{who}: log alpha = {size:.4g} is not positive, so (1/weight_decay) log alpha is no "
            "time; the theory's alpha multiplies a start of size one and tends to infinity. "
            "forecast() needs no alpha"
        )
    time = size / _rate(who, weight_decay)
    if math.isinf(time):
        raise ValueError(f"{who}: log alpha / weight_decay is beyond float64")
    return time


def forecast(
    model: Model, problem: Problem, weight_decay: float, *, measure: Measure | None = None
) -> Forecast:
    """The transition as the start alone tells it, without training.

    From `low` to `high` the predictor turns, half of it until `transition`. The model must be
    homogeneous with zero output at the start; both are measured first. Where its regularizer is
    not known (neither a diagonal net nor U U^T - V V^T from the identity), the transition is
    where the displacement that fits the data is as long as the decayed start. Then `low` is
    where it is a quarter as long, and `high` is 1.5/weight_decay after it.

    Parameters
    ----------
    model
        The model.
    problem
        The problem.
    weight_decay
        The weight decay.
    measure
        A function of the predictor, such as problem.population.accuracy or problem.test_error:
        a test curve can turn later than the predictor, for instance while a wide margin
        forgives the turning. Then a tenth, half and nine tenths of its change are done at low,
        transition and high.

    Returns
    -------
    Forecast
        The times.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.majority(9, 20)
    >>> found = tacit.forecast(tacit.DiagonalNet(alpha=10.0), problem, weight_decay=1e-3)
    >>> found.low < found.transition < found.high
    True
    """
    rate = _rate(WHO, weight_decay)
    if not isinstance(problem, Problem):
        raise ValueError(
            f"{WHO}: the problem must be a Regression, a Classification or a matrix problem, got "
            f"{type(problem).__name__}"
        )
    X = _design(problem)
    if not (X.any() and problem.y.any()):
        raise ValueError(f"{WHO}: X and y must not be zero: there is nothing to fit")
    degree = round(require_theorem(WHO, model, X, smooth=False).degree)
    log_start, naive = _log_start(model, X.shape[1]), _naive(model, rate)
    path = minimisers(model, problem, measure)
    if path is not None:
        times, g = _turning(path, degree, rate, model, problem, measure is not None)
        return _forecast(times, rate, log_start, g, naive, "the minimisers of Q")
    if measure is not None:
        raise ValueError(
            f"{WHO}: measure= takes a diagonal net or U U^T - V V^T from the identity, whose "
            "predictors are known before training and turn; leave measure out"
        )
    z, g = meeting(degree, rate, log_start, model, problem)
    times = z - math.log(SPREAD) / degree, z, z + LATER
    return _forecast(times, rate, log_start, g, naive, "the tangent kernel of the start")


def _design(problem: Problem) -> Array:
    return problem.design if isinstance(problem, MatrixProblem) else problem.X


Times = tuple[float, float, float]  # low, transition and high


def _turning(
    path: Minimisers, degree: int, rate: float, model: Model, problem: Problem, measured: bool
) -> tuple[Times, float]:
    """The times, in units of 1/rate, and the margin level at the transition."""
    log_alpha: float = getattr(model, "log_alpha")  # noqa: B009  (the two models have one)
    levels = np.ones_like(path.log_sizes)
    if isinstance(problem, Classification):
        levels = _levels(degree, rate, path.log_sizes)
    z = log_alpha - path.log_alphas - np.log(levels) / degree
    if measured and not np.ptp(path.values) > 0:
        raise ValueError(
            f"{WHO}: the measure stays at {path.values[0]:g} for every predictor; take another"
        )
    times = path.passage(z) if measured else window(z, path.turned)
    if isinstance(problem, Classification):
        g = float(np.interp(times[1], z, levels))
        _refuse_strong_decay(rate, g > 1)
        return times, g
    # 2 L <r, f> = rate |theta|^2, so this is the least part of y that is not fitted
    misfit = rate * math.exp(float(np.interp(times[1], z, path.log_sizes)))
    misfit /= 2 * degree * float(problem.y @ problem.y)
    _refuse_strong_decay(rate, misfit < 0.5)
    return times, math.nan


def _levels(degree: int, rate: float, log_sizes: Array) -> Array:
    """g with e^-g = (rate/L) g^(2/L - 1) |theta|^2, for every |theta|^2, by iteration."""
    c = math.log(rate / degree) + log_sizes
    g = np.maximum(-c, 1.0)
    for _ in range(100):
        g = np.maximum((1 - 2 / degree) * np.log(g) - c, 1.0)
    return g


def _refuse_strong_decay(rate: float, fitted: bool) -> None:
    if not fitted:
        raise ValueError(
            f"{WHO}: weight_decay {rate:.3g} is so strong that the data are hardly fitted where "
            "the kernel regime would end; there is no transition to forecast, take a smaller "
            "weight_decay"
        )


def meeting(
    degree: int, rate: float, log_start: float, model: Model, problem: Problem
) -> tuple[float, float]:
    """rate t where the displacement is as long as the decayed start, and the margin level there."""
    X = _design(problem)
    if isinstance(problem, Classification):
        log_delta = kernel_svm(model, X, problem.y).log_norm
        g = _margin_level(degree, math.log(rate), log_start, log_delta)
        return (log_start - log_delta - math.log(g)) / degree, g
    log_delta = kernel_interpolant(model, X, problem.y).log_norm
    log_met = log_start - (log_start - log_delta) / degree
    # 2 <r, f> = L rate |delta|^2 with |delta| the decayed start
    misfit = math.log(degree * rate / 2) + 2 * (log_met - math.log(np.linalg.norm(problem.y)))
    _refuse_strong_decay(rate, misfit < math.log(0.5))
    return (log_start - log_delta) / degree, math.nan


def _forecast(
    z: Times, rate: float, log_start: float, g: float, naive: float, basis: str
) -> Forecast:
    low, middle, high = (max(value, 0.0) for value in z)
    sentence = (
        f"the kernel regime is expected to end at weight_decay * t = {middle:.4g} "
        f"({low:.4g} to {high:.4g})"
    )
    if middle <= 0:
        sentence = (
            "the start is too small for a kernel phase: training is rich from the beginning, and "
            "no delayed transition is expected"
        )
    times = middle / rate, low / rate, high / rate
    return Forecast(*times, rate, naive, log_start - middle, g, f"the start, by {basis}", sentence)


def _margin_level(degree: int, log_rate: float, log_start: float, log_delta: float) -> float:
    """g at z*: g = ((L-2)/L) log g - c, by iteration from above."""
    c = math.log(degree) + log_rate + 2 * (log_delta + (degree - 1) * log_start) / degree
    share, g = (degree - 2) / degree, max(-c, 1.0)
    for _ in range(100):
        g = share * math.log(max(g, 1.0)) - c
    _refuse_strong_decay(math.exp(log_rate), g > 1)
    return g


def _naive(model: Model, rate: float) -> float:
    log_alpha = getattr(model, "log_alpha", None)
    return log_alpha / rate if log_alpha is not None and log_alpha > 0 else math.nan


def _log_start(model: Model, dimension: int) -> float:
    """log|theta0|, also where float64 cannot hold theta0."""
    if isinstance(model, DiagonalNet) and model.log_alpha is not None:
        size = float(np.linalg.norm(model.shape_for(dimension))) * math.sqrt(model.copies)
        return model.log_alpha + math.log(size)
    return math.log(float(np.linalg.norm(model.start(dimension))))


def _rate(who: str, rate: object) -> float:
    number = real(who, "weight_decay", rate, rule="a finite number > 0")
    if number < 0:
        raise ValueError(f"{who}: weight_decay must be > 0, got {number:g}")
    if number == 0:
        raise ValueError(
            f"{who}: without decay (weight_decay 0) the norm never shrinks and there is no such "
            "time; the transition is then at log t of the order of alpha^L, see DualFlow"
        )
    return number
