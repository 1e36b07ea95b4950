"""When a run under weight decay will leave the kernel regime, as its start or its record tells it.

The start decays as e^(-z) theta0, z = rate t, while the displacement that fits the data grows like
e^((L-1) z). Either way z = log alpha + a constant - (1/L) log g with g the margin: the (1/rate) log
alpha of Lyu et al. 2023, and how far a finite start is from it.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, entries, finite_array, positive, real
from penchant.door import Invalid, door, door_as
from penchant.forecasts.runs import mean_path
from penchant.forecasts.turning import (
    Measure,
    Minimisers,
    Problem,
    Times,
    minimisers,
    regime_end,
    turning_times,
    turning_window,
)
from penchant.measures.directions import angle
from penchant.measures.homogeneity import require_theorem
from penchant.models.diagonal import DiagonalNet
from penchant.models.model import Model
from penchant.records import Record
from penchant.training.descent.method import StepMethod
from penchant.training.descent.methods import GradientDescent
from penchant.training.path import Path
from penchant.training.stop import Time

WHO = "forecast"
SPREAD = 4.0  # where only norms are known it begins with |delta| a quarter of the decayed start
# and runs turn later than where the norms meet, since the margin falls and the features begin to
# grow on the way: by 0.5 to 1.3 for nets of degree 2 to 4, in units of 1/weight_decay
LATER = 1.5
FITTED = 0.1  # of the labels: what may be missed where they are fitted
RECORDED = ("t", "parameter_norm", "turn")  # of a run
SETTLED = 10.0  # times as long, and the kernel regime has begun


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
    >>> import penchant
    >>> problem = penchant.problems.majority(9, 20)
    >>> forecast = penchant.forecast(penchant.DiagonalNet(alpha=10.0), problem, weight_decay=1e-3)
    >>> round(forecast.naive, 3), forecast.weight_decay
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

    @door_as("Forecast.steps")
    def steps(self, learning_rate: float) -> int:
        """`transition` as a number of descent steps with this learning rate."""
        rate = positive("learning_rate", learning_rate)
        return math.ceil(self.transition / rate)


@overload
def forecast(run: Path | Mapping[str, Any], /) -> Forecast: ...


@overload
def forecast(
    model: Model,
    problem: Problem,
    weight_decay: float | None = None,
    *,
    measure: Measure | None = None,
    method: GradientDescent | None = None,
    batch: int | None = None,
) -> Forecast: ...


@door
def forecast(
    model: Any,
    problem: Any = None,
    weight_decay: float | None = None,
    *,
    measure: Measure | None = None,
    method: GradientDescent | None = None,
    batch: int | None = None,
) -> Forecast:
    """The transition as the start alone tells it, or a run so far: forecast(path).

    From `low` to `high` the predictor turns, half of it until `transition`. The model must be
    homogeneous with zero output at the start; both are measured first. Where its regularizer is
    not known (neither a diagonal net nor U U^T - V V^T from the identity), the transition is
    where the displacement that fits the data is as long as the decayed start. Then `low` is
    where it is a quarter as long, and `high` is 1.5/weight_decay after it.

    With a `method` in the place of `weight_decay` the run goes by its steps, on batches and with
    label noise: both make the scale of the start smaller too, so that it turns earlier. For this
    the model must be DiagonalNet of depth 2 and the problem a regression, as for `predict_run`.

    Of a run, `weight_decay` is the rate of the norm's decay. The turn from the start is the angle
    between e^(-z) theta0 and e^(-z) theta0 + delta, so its tangent is |delta| over the decayed
    start and passes 1 at the transition; the logarithms of both are fitted by lines over the
    second half of the record.

    Parameters
    ----------
    model
        The model; or a run, without other arguments: a path, or a mapping of `t`, `parameter_norm`
        and `turn` (degrees) to one number per time, as its dataset is.
    problem
        The problem.
    weight_decay
        The weight decay of a flow.
    measure
        A function of the predictor, such as problem.population.accuracy or problem.test_error:
        a test curve can turn later than the predictor, for instance while a wide margin
        forgives the turning. Then a tenth, half and nine tenths of its change are done at low,
        transition and high.
    method
        GradientDescent without momentum, with weight decay, in the place of a flow.
    batch
        Samples per step of the method; None takes all of them.

    Returns
    -------
    Forecast
        The times.

    References
    ----------
    .. [1] Lyu et al. (2023), Dichotomy of Early and Late Phase Implicit Biases Can Provably Induce
       Grokking.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.majority(9, 20)
    >>> forecast = penchant.forecast(penchant.DiagonalNet(alpha=10.0), problem, weight_decay=1e-3)
    >>> forecast.low < forecast.transition < forecast.high
    True
    >>> import numpy as np
    >>> t = np.linspace(1.0, 20.0, 40)
    >>> turn = np.degrees(np.arctan(1e-3 * np.exp(0.1 * t)))
    >>> run = {"t": t, "parameter_norm": np.exp(-0.1 * t), "turn": turn}
    >>> forecast = penchant.forecast(run)
    >>> round(forecast.weight_decay, 3), round(forecast.transition)
    (0.1, 69)
    """
    if isinstance(model, Path | Mapping):
        if any(given is not None for given in (problem, weight_decay, measure, method, batch)):
            raise Invalid("a run is all that its forecast needs; give it alone")
        return _of_run(model)
    if method is not None:
        if weight_decay is not None:
            raise Invalid(f"give weight_decay to the method, got {weight_decay!r} too")
        return _of_steps(model, problem, method, batch, measure)
    if batch is not None:
        raise Invalid(f"a flow has no batch, got {batch!r}; give a method with it")
    rate = _rate(weight_decay)
    if not isinstance(problem, Problem):
        raise Invalid(
            f"the problem must be a Regression, a Classification or a matrix problem, got "
            f"{type(problem).__name__}"
        )
    X = problem.design
    if not (X.any() and problem.y.any()):
        raise Invalid("X and y must not be zero: there is nothing to fit")
    degree = round(require_theorem(model, X, smooth=False).degree)
    log_start, log_alpha = _log_start(model, X.shape[1]), getattr(model, "log_alpha", None)
    naive = log_alpha / rate if log_alpha is not None and log_alpha > 0 else math.nan
    path = minimisers(model, problem, measure)
    if path is not None:
        times, g = turning_times(path, degree, rate, model, problem, measure is not None)
        return _forecast(times, rate, log_start, g, naive, "the minimisers of Q")
    if measure is not None:
        raise Invalid(
            "measure= takes a diagonal net or U U^T - V V^T from the identity, whose "
            "predictors are known before training and turn; leave measure out"
        )
    z, g = regime_end(degree, rate, log_start, model, problem)
    times = z - math.log(SPREAD) / degree, z, z + LATER
    return _forecast(times, rate, log_start, g, naive, "the tangent kernel of the start")


def _of_steps(
    model: Any, problem: Any, method: Any, batch: int | None, measure: Measure | None
) -> Forecast:
    """The transition on the path of the means of steps, which is not later than the flow's."""
    decay = method.scheme.weight_decay if isinstance(method, StepMethod) else None
    flow = forecast(model, problem, decay, measure=measure)
    stop = Time(flow.high + LATER / flow.weight_decay)
    t, beta = mean_path(model, problem, method, stop, batch)
    if flow.transition <= 0:  # training is rich from the beginning
        return flow
    missed = np.linalg.norm(beta @ problem.X.T - problem.y, axis=1)
    fitted = t[int(np.argmax(missed < FITTED * np.linalg.norm(problem.y)))]
    later = t > SETTLED * fitted
    t, beta = t[later], beta[later]
    turned = np.array([float(angle(*pair)) for pair in itertools.pairwise(beta)])
    if measure is None:
        times = turning_window(t, turned)
    else:
        values = np.array([float(measure(each)) for each in beta])
        times = Minimisers(t, t, turned, values).passage(t)
    rate, log_norm = flow.weight_decay, flow.log_norm
    log_start = log_norm + rate * flow.transition
    z = (rate * times[0], rate * times[1], rate * times[2])
    return _forecast(z, rate, log_start, math.nan, flow.naive, "the mean of its steps")


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


def _log_start(model: Model, dimension: int) -> float:
    """log|theta0|, also where float64 cannot hold theta0."""
    if isinstance(model, DiagonalNet) and model.log_alpha is not None:
        size = float(np.linalg.norm(model.shape_for(dimension))) * math.sqrt(model.copies)
        return model.log_alpha + math.log(size)
    return math.log(float(np.linalg.norm(model.start(dimension))))


def _rate(rate: object) -> float:
    number = real("weight_decay", rate, rule="a finite number > 0")
    if number < 0:
        raise Invalid(f"weight_decay must be > 0, got {number:g}")
    if number == 0:
        raise Invalid(
            "without decay (weight_decay 0) the norm never shrinks and there is no such "
            "time; the transition is then at log t of the order of alpha^L, see DualFlow"
        )
    return number


def _of_run(run: Path | Mapping[str, Any]) -> Forecast:
    columns = run.dataset if isinstance(run, Path) else run
    missing = [name for name in RECORDED if name not in columns]
    if missing:
        raise ValueError(
            f"{WHO}: a run must hold {', '.join(RECORDED)}, but this one has no {missing[0]}"
        )
    t, norm, turn = (np.asarray(columns[name]) for name in RECORDED)
    return extrapolate(t, norm, turn)


@door_as(WHO)
def extrapolate(t: ArrayLike, norm: ArrayLike, turn: ArrayLike) -> Forecast:
    """The transition predicted by a run so far: its norm and `turn` (degrees) from the start."""
    times = finite_array("t", t, ndim=1)
    norms, turns = (
        entries(name, values, len(times), "one value per time")
        for name, values in (("norm", norm), ("turn", turn))
    )
    if not (np.diff(times) > 0).all() or not 1e-150 < times[-1] < 1e150:
        raise Invalid("t must increase, and end between 1e-150 and 1e150")
    late = (times >= times[-1] / 2) & (times > 0)
    if np.count_nonzero(late) < 4:
        raise Invalid(
            f"the second half of the record must hold at least 4 times, got "
            f"{np.count_nonzero(late)}; record more of the run"
        )
    if (norms <= 0).any() or (turns[late] <= 0).any():
        raise Invalid("norms and late turns must be > 0; has the run begun to train?")
    slope, error = _slope(times[late], np.log(norms[late]))
    if not -slope > 2 * error:
        raise Invalid(
            f"the norm does not decay clearly (rate {-slope:.3g} +- {error:.2g}), so there "
            "is no transition to forecast; is there weight decay?"
        )
    ratios = np.log(np.tan(np.radians(np.minimum(turns[late], 89.9))))
    growth, doubt = _slope(times[late], ratios)
    if not growth > 2 * doubt:
        raise Invalid(
            f"the turn does not grow clearly (by e^({growth:.3g} +- {doubt:.2g} t)), so "
            "there is nothing to extrapolate; record more of the run"
        )
    ahead = -float(ratios[-1]) / growth
    width = 2 * doubt / growth * abs(ahead) + math.log(SPREAD) / growth
    log_norm, now = float(np.log(norms[-1])) + slope * ahead, float(times[-1])
    time, low, high = (max(now + z, 0.0) for z in (ahead, ahead - width, ahead + width))
    when = f"expected at t = {time:.4g}" if ahead > 0 else f"has happened, at about t = {time:.4g}"
    sentence = f"the norm decays at {-slope:.4g} +- {error:.2g}; the transition {when}"
    basis = "the run so far"
    return Forecast(time, low, high, -slope, math.nan, log_norm, math.nan, basis, sentence)


def _slope(x: Array, y: Array) -> tuple[float, float]:
    """The least-squares slope and its standard error."""
    x, y = x - x.mean(), y - y.mean()
    square = float(x @ x)
    slope = float(x @ y) / square
    left = y - slope * x
    return slope, math.sqrt(float(left @ left) / max(len(x) - 2, 1) / square)
