"""The inverse of `predict_run`: a recipe of training that ends at a wanted effective scale.

How it works. Steps, noise and decay can only make the scale of a start smaller, and `predict_run`
says by how much. A recipe has one knob left: the weight decay of the first half of the steps, the
label noise of steps whose rate falls to zero in the second half, or the learning rate. The fall of
the mean log scale grows with the knob, so that a root is bracketed and found by predictions alone,
milliseconds each. The learning rate is a share of the one from which on predictions fail, and is
halved until the prediction of the recipe itself is valid. Noise and gradients shrink coordinates
unequally; where the start is free, its shape undoes that. What does not fit the data by the last
step does not count as reached: there the effective scale would belong to other outputs.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import integer, one_of
from penchant.door import Invalid, door
from penchant.forecasts.runs import PredictedRun, mean_system, predict_run
from penchant.models.diagonal import DiagonalNet
from penchant.problems.regression import Regression
from penchant.records import NumericalError, Record
from penchant.regularizers.norms import L2
from penchant.regularizers.q import Q
from penchant.solvers.interpolate import interpolate
from penchant.training.descent.methods import GradientDescent
from penchant.training.descent.scheduled import Scheduled
from penchant.training.stop import Steps

SHARE, BELOW = 0.5, 0.9  # of the learning rate from which on predictions fail
FAINT = 1e-2  # of that rate, for its estimate
HALVINGS = 10  # of the learning rate
FITTED = 0.01  # the residual of a run that has fitted its data, over the size of the labels
CLOSE, EVEN = 1e-3, 0.02  # accuracy of the mean log scale, and of each coordinate's
ROUNDS = 4  # in which the shape of the start is made to fit
TRIALS = 40  # the most predictions of one search


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Design(Record):
    """A recipe of training and the end that is expected of it.

    `train(**design.arguments)` runs it.

    Attributes
    ----------
    model
        The net and its start.
    problem
        The data.
    method
        GradientDescent, in Scheduled where decay or learning rate change on the way.
    batch
        Samples per step; None takes all of them.
    stop
        The number of steps.
    distance
        The distance of the expected end from the minimiser of the target, over its size.
    sentence
        The recipe in words.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(8, 20, sparsity=2)
    >>> plan = penchant.forecasts.design(problem, penchant.Q(2, alpha=0.01), steps=20_000)
    >>> path = penchant.train(**plan.arguments)
    >>> wanted = penchant.interpolate(problem, penchant.Q(2, alpha=0.01))
    >>> bool(abs(path.predictor - wanted.beta).max() < 0.01)
    True
    """

    model: DiagonalNet
    problem: Regression
    method: GradientDescent | Scheduled
    batch: int | None
    stop: Steps
    distance: float
    sentence: str

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `train`."""
        names = ("model", "problem", "method", "batch", "stop")
        return {name: getattr(self, name) for name in names}

    @property
    def prediction(self) -> PredictedRun:
        """Effective scale, its interval, and predictor at the end of the recipe."""
        return predict_run(**self.arguments)


class Reach(NamedTuple):
    """A method and its prediction, and how far its mean log scale lies above the target's."""

    method: GradientDescent | Scheduled
    prediction: PredictedRun
    above: float
    fitted: bool


class Wish(NamedTuple):
    """What all recipes of one search share."""

    model: DiagonalNet
    problem: Regression
    target: Q
    steps: int
    batch: int | None

    def reach(self, method: Any) -> Reach | None:
        """Where the method ends; None where that cannot be predicted."""
        stop = Steps(self.steps)
        try:
            run = predict_run(self.model, self.problem, method, batch=self.batch, stop=stop)
        except (ValueError, NumericalError):
            return None
        target, y = self.target, self.problem.y
        above = np.log(run.scale / target.weights).mean() - target.log_alpha
        residual = np.linalg.norm(self.problem.X @ run.predictor - y) / np.linalg.norm(y)
        return Reach(method, run, float(above), bool(residual <= FITTED))

    def unreachable(self, above: float, why: str) -> Invalid:
        """The error that names the nearest scale."""
        wanted, nearest = (math.exp(self.target.log_alpha + shift) for shift in (0.0, above))
        return Invalid(
            f"{why}: alpha = {wanted:.3g} cannot be reached in {self.steps} steps, the nearest is "
            f"{nearest:.3g}"
        )


Build = Callable[[float], GradientDescent | Scheduled]


def decaying(decay: float, rate: float, steps: int) -> GradientDescent | Scheduled:
    """Decay in the first half of the steps."""
    plain, half = GradientDescent(rate, weight_decay=decay), steps // 2
    if not decay:
        return plain
    return Scheduled(plain, [0, half, half], [1.0, 1.0, 1.0], decays=[1.0, 1.0, 0.0])


def noisy(noise: float, rate: float, steps: int) -> Scheduled:
    """Label noise, with a rate that falls to zero in the second half of the steps."""
    plain = GradientDescent(rate, label_noise=noise)
    return Scheduled(plain, [0, steps // 2, steps], [1.0, 1.0, 0.0])


KNOBS = {"decay": decaying, "label noise": noisy}
METHODS = (*KNOBS, "learning rate")


@door
def design(
    problem: Regression,
    target: Q,
    *,
    steps: int,
    method: str = "decay",
    batch: int | None = None,
    model: DiagonalNet | None = None,
) -> Design:
    """A recipe of gradient steps that ends at the minimiser of the target, before training.

    Parameters
    ----------
    problem
        The regression.
    target
        The wanted regularizer, such as Q(2, alpha=1e-3); its scale is that of the end.
    steps
        How many steps training may take.
    method
        What makes the scale of the start smaller: "decay" is a weight decay that is switched off
        after half of the steps; "label noise" is fresh noise on the labels of every step, under a
        learning rate that falls to zero in the second half; "learning rate" is the length of the
        steps alone.
    batch
        Samples per step; None takes all of them.
    model
        The net and its start; None starts at the border of the kernel regime, where alpha^depth is
        the mean size of the weights that fit with the least l2 norm, with the shape of the target.

    Returns
    -------
    Design
        The arguments of `train`, and where the run is expected to end.

    References
    ----------
    .. [1] Even et al. (2023), (S)GD over Diagonal Linear Networks: Implicit Regularisation, Large
       Stepsizes and Edge of Stability.
    .. [2] Jacobs et al. (2025), Mirror, Mirror of the Flow: How Does Regularization Shape Implicit
       Bias?

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(8, 20, sparsity=2)
    >>> plan = penchant.forecasts.design(problem, penchant.Q(2, alpha=0.01), steps=20_000)
    >>> plan.method.decays, plan.stop
    ((1.0, 1.0, 0.0), Steps(count=20000))
    >>> bool(plan.distance < 0.01)
    True
    """
    wish = _plan(problem, target, steps, batch, model)
    knob = one_of("method", method, METHODS)
    wish, reach = _evened(wish, knob) if model is None else (wish, _searched(wish, knob))
    run, wanted = reach.prediction, interpolate(problem, target).beta
    distance = float(np.linalg.norm(run.predictor - wanted) / np.linalg.norm(wanted))
    sentence = f"{_words(reach.method, knob)}: {run.sentence}; the end is expected {distance:.1%}"
    sentence += " from the minimiser of the target"
    stop = Steps(wish.steps)
    return Design(wish.model, problem, reach.method, batch, stop, distance, sentence)


def _plan(problem: Any, target: Any, steps: Any, batch: Any, model: Any) -> Wish:
    """The checked arguments."""
    if not isinstance(problem, Regression):
        raise Invalid(f"the problem must be a Regression, got {type(problem).__name__}")
    if not isinstance(target, Q):
        raise Invalid(f"the target must be a Q, whose scale is wanted, got {target!r}")
    if target.tilt is not None:
        raise Invalid("the target must have no tilt: a recipe changes the scale of a start alone")
    steps = integer("steps", steps, least=2)
    if not np.abs(problem.y).max() > 0:
        raise Invalid("the labels are all 0, and so is the end at every scale")
    if model is None:
        model = DiagonalNet(target.depth, alpha=_middle(problem, target), shape=target.shape)
    if not (isinstance(model, DiagonalNet) and model.depth == target.depth and model.signed):
        raise Invalid(f"the model must be a signed DiagonalNet({target.depth}), got {model!r}")
    mean_system(model, problem, GradientDescent(1e-12), Steps(1), batch)  # refuses what has no law
    return Wish(model, problem, target, steps, batch)


def _middle(problem: Regression, target: Q) -> float:
    """The scale at which the kernel regime ends."""
    beta = interpolate(problem, L2()).beta
    return float(np.sqrt(np.square(beta).mean()) ** (1 / target.depth))


def _words(method: GradientDescent | Scheduled, knob: str) -> str:
    plain: Any = method.method if isinstance(method, Scheduled) else method
    words = f"learning rate {plain.learning_rate:.3g}"
    if knob == "decay" and isinstance(method, Scheduled):
        words += f" and decay {plain.weight_decay:.3g} up to step {method.steps[-1]}"
    if knob == "label noise" and isinstance(method, Scheduled):
        words += (
            f", falling from step {method.steps[1]} on, and label noise {plain.label_noise:.3g}"
        )
    return words


def _limit(wish: Wish) -> float:
    """The learning rate from which on predictions of plain steps fail."""
    rate = 1.0
    for _ in range(TRIALS):
        reach = wish.reach(GradientDescent(rate))
        if reach is None:
            rate /= 16
        elif reach.prediction.fails_from >= rate / FAINT:
            return min(reach.prediction.fails_from, 4 * rate / FAINT)
        else:
            rate = reach.prediction.fails_from * FAINT / 2
    raise Invalid(f"no learning rate above {rate:.2g} can be predicted; scale the data to size 1")


def _searched(wish: Wish, knob: str) -> Reach:
    return _by_rate(wish) if knob not in KNOBS else _by_knob(wish, knob)


def _evened(wish: Wish, knob: str) -> tuple[Wish, Reach]:
    """The same with a start of a shape from which all coordinates end at the target."""
    reach = _searched(wish, knob)
    for _ in range(ROUNDS):
        apart = np.log(reach.prediction.scale / wish.target.weights)
        apart -= apart.mean()
        if np.abs(apart).max() <= EVEN:
            break
        shape = wish.model.shape_for(wish.problem.dimension) * np.exp(-apart)
        model = DiagonalNet(wish.model.depth, log_alpha=wish.model.log_alpha, shape=shape)
        try:
            wish, reach = wish._replace(model=model), _searched(wish._replace(model=model), knob)
        except Invalid:  # so unequal a start is too slow; the one before fits
            break
    return wish, reach


def _by_knob(wish: Wish, knob: str) -> Reach:
    """The recipe at the largest rate at which its own prediction is valid."""
    rate = SHARE * _limit(wish)
    size = float(np.abs(wish.problem.y).max())
    for _ in range(HALVINGS):
        guess = 1 / (rate * wish.steps) if knob == "decay" else 0.01 * size
        build = functools.partial(KNOBS[knob], rate=rate, steps=wish.steps)
        reach = _turned(wish, knob, build, guess)
        if reach is not None and reach.prediction.fails_at is None:
            return reach
        rate /= 2
    raise Invalid(
        f"no {knob} that leads to log_alpha = {wish.target.log_alpha:.3g} can be predicted; take "
        "more steps or a start nearer to the target"
    )


def _turned(wish: Wish, knob: str, build: Build, guess: float) -> Reach | None:
    """The recipe whose knob brings the scale to the target; None if it cannot be predicted."""
    still = wish.reach(build(0.0))
    if still is None:
        return None
    if not still.fitted:
        raise Invalid(f"{_words(still.method, knob)}: {wish.steps} steps do not fit the data")
    if still.above <= CLOSE:
        if still.above < -CLOSE:
            raise wish.unreachable(still.above, f"even without {knob} the scale ends lower")
        return still
    low, high, above, reach = 0.0, guess, still.above, wish.reach(build(guess))
    for _ in range(TRIALS):
        if reach is None or reach.above <= 0:
            break
        low, high, above = high, 2 * high, reach.above
        reach = wish.reach(build(high))
    if reach is None:
        return None
    reach = _between(wish, build, (low, above), (high, reach.above))
    if reach is not None and not reach.fitted:
        raise wish.unreachable(_nearest(wish, build, high, 0.0), "the data would not be fitted")
    return reach


def _by_rate(wish: Wish) -> Reach:
    """The learning rate whose steps alone bring the scale to the target."""
    top = BELOW * _limit(wish)
    last = wish.reach(GradientDescent(top))
    for _ in range(HALVINGS):
        if last is not None and last.prediction.fails_at is None:
            break
        top *= BELOW
        last = wish.reach(GradientDescent(top))
    if last is None or not last.fitted:
        raise Invalid(f"{wish.steps} steps do not fit the data; give more steps")
    if last.above > CLOSE:
        raise wish.unreachable(last.above, "larger steps cannot be predicted")
    tiny = 1e-9 * top
    still = wish.reach(GradientDescent(tiny))
    if still is None or still.above < -CLOSE:
        above = last.above if still is None else still.above
        raise wish.unreachable(above, "steps only make a scale smaller")
    reach = _between(wish, GradientDescent, (tiny, still.above), (top, last.above)) or last
    if not reach.fitted:
        raise wish.unreachable(_nearest(wish, GradientDescent, tiny, top), "too small steps")
    return reach


def _between(
    wish: Wish, build: Build, start: tuple[float, float], end: tuple[float, float]
) -> Reach | None:
    """The recipe between two knobs whose scales lie on both sides (Illinois' regula falsi)."""
    (low, above), (high, below), reach = start, end, None
    for _ in range(TRIALS):
        knob = low + (high - low) * above / (above - below)
        reach = wish.reach(build(knob))
        if reach is None or abs(reach.above) <= CLOSE:
            return reach
        if reach.above > 0:
            low, above, below = knob, reach.above, below / 2
        else:
            high, below, above = knob, reach.above, above / 2
    return reach


def _nearest(wish: Wish, build: Build, unfitted: float, fitted: float) -> float:
    """How far above the target the last knob ends that still fits the data."""
    above = math.nan
    for _ in range(HALVINGS):
        middle = (unfitted + fitted) / 2
        reach = wish.reach(build(middle))
        if reach is not None and reach.fitted:
            fitted, above = middle, reach.above
        else:
            unfitted = middle
    return above
