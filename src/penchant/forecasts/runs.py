"""Prediction of the predictor that gradient steps on F(w+) - F(w-) select, before training."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs

from penchant.arguments import Array
from penchant.door import Invalid, door
from penchant.forecasts.mean_steps import Gains, MeanSteps, Seen
from penchant.models.diagonal import DiagonalNet
from penchant.models.reparametrized import Reparametrized
from penchant.problems.classification import Classification
from penchant.problems.regression import Regression
from penchant.records import Kind, Outcome, Record, Unsolved
from penchant.regularizers.derive.derived import Derived
from penchant.regularizers.q import Q
from penchant.threads import on_one_blas_thread
from penchant.training import stop as stopping
from penchant.training.descent.compiled import batches
from penchant.training.descent.effective_scale import EffectiveScale
from penchant.training.descent.methods import GradientDescent
from penchant.training.descent.plan import last_step
from penchant.training.descent.scheduled import Piece, Scheduled

WHO = "predict_run"
TOLERANCE = 0.1  # error of one step of the integration in s, five times that in c and the tilt
PIECES = 100  # the least number of pieces of a path
CLOSE = 1e-3  # changes of c and the tilt below which the residual is not computed anew
STAGE = 1 - math.sqrt(0.5)  # of ROS2 (Verwer et al. 1999), of order 2 with any Jacobian
MOST = 10_000  # the most steps of the integration
HOPELESS = 4.0  # times the size of steps at which predictions fail
LARGEST, LEAST = 1e50, -600.0  # of the data, and of log w+ w-
DEVIATIONS = 1.645  # of the interval of a coordinate: nine of ten


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class PredictedRun(Record):
    """Where a run of gradient steps is expected to end, and how accurate that is.

    Attributes
    ----------
    regularizer
        Q with the effective scale as its shape, and with the tilt of the steps; for other maps what
        `derive` makes of the effective start.
    predictor
        The predictor at the end.
    scale
        The effective scale of each coordinate: the shape of Q; for other maps the geometric mean of
        the effective starts of w+ and w-.
    low
        The lower end of the interval that holds the scale of a coordinate in nine of ten runs.
    high
        Its upper end.
    steps
        The number of steps.
    fails_at
        The first step at which expansions in the learning rate fail; None if there is none.
    fails_from
        The learning rate from which on they fail at some step, as far as the size of these steps
        tells; a prediction at that rate tells it better.
    sentence
        The prediction in words.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(8, 20, sparsity=2)
    >>> net = penchant.DiagonalNet(2, alpha=0.1)
    >>> method, stop = penchant.GradientDescent(0.02), penchant.Steps(100)
    >>> run = penchant.forecasts.predict_run(net, problem, method, batch=1, stop=stop)
    >>> run.fails_at, run.fails_from < 0.02
    (0, True)
    """

    regularizer: Q | Derived
    predictor: Array
    scale: Array
    low: Array
    high: Array
    steps: int
    fails_at: int | None
    fails_from: float
    sentence: str


class MeanState(NamedTuple):
    """The dual variable, log(w+ w-), the tilt, and the variance of log(w+ w-) over seeds.

    `fallen` is how far gradients have brought log(w+ w-) down.
    """

    nu: Array
    c: Array
    tilt: Array
    variance: Array
    fallen: Array


class Now(NamedTuple):
    """The state at a time; `fresh` if its kernel is new."""

    t: float
    state: MeanState
    seen: Seen
    gains: Gains
    fresh: bool


class Worst(NamedTuple):
    """The size of the steps as a share of the size at which expansions fail, and the reason."""

    share: float = 0.0
    fails_at: int | None = None
    reason: str = ""


@on_one_blas_thread
@door
def predict_run(
    model: DiagonalNet | Reparametrized,
    problem: Regression | Classification,
    method: Any,
    *,
    stop: Any,
    batch: int | None = None,
) -> PredictedRun:
    """The effective scale and the end of a run of gradient steps, predicted before training.

    The arguments are those of `train`. The prediction is the mean over the draws of batches and
    label noise, to first order in the learning rate beyond the flow; `fails_at` and `fails_from`
    give the step and the learning rate at which the first order is no longer accurate.

    Parameters
    ----------
    model
        A signed DiagonalNet of any depth, or a signed Reparametrized model of one parameter.
    problem
        A Regression or a Classification.
    method
        GradientDescent with any momentum, label noise and, for DiagonalNet, weight decay; or one
        of these in Scheduled. Plain steps of depth 2 on a regression are summed exactly, all else
        to the third order of a step, and to the second with momentum.
    stop
        Steps, Epochs or Time.
    batch
        Samples per step; None takes all of them.

    Returns
    -------
    PredictedRun
        Regularizer, predictor, and an interval of the scale.

    References
    ----------
    .. [1] Even et al. (2023), (S)GD over Diagonal Linear Networks: Implicit Regularisation, Large
       Stepsizes and Edge of Stability.
    .. [2] Pesme et al. (2021), Implicit Bias of SGD for Diagonal Linear Networks: a Provable
       Benefit of Stochasticity.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(8, 20, sparsity=2)
    >>> net = penchant.DiagonalNet(2, alpha=0.1)
    >>> method, stop = penchant.GradientDescent(0.002, label_noise=0.2), penchant.Steps(20_000)
    >>> predicted = penchant.forecasts.predict_run(net, problem, method, batch=1, stop=stop)
    >>> measured = penchant.methods.EffectiveScale(method)
    >>> path = penchant.train(net, problem, measured, batch=1, stop=stop)
    >>> scale = penchant.forecasts.effective_regularizer(path).shape
    >>> bool(((predicted.low < scale) & (scale < predicted.high)).mean() > 0.8)
    True
    """
    pieces, state = mean_system(model, problem, method, stop, batch)
    worst, taken, highest = Worst(), 0, 0.0
    for mean, steps in pieces:
        highest = max(highest, mean.learning_rate)
        for now in _states(mean, state, steps, taken):
            if now.fresh:
                worst = _worse(worst, mean, now, taken + round(now.t / mean.rate))
                if worst.share > HOPELESS:
                    raise Invalid(
                        f"{worst.reason} at step {worst.fails_at}, far from what can be "
                        f"predicted; take a learning rate below {highest / worst.share:.2g}"
                    )
        state, taken = now.state, taken + steps
    return _predicted(mean, now, worst, taken, highest)


def mean_path(
    model: DiagonalNet, problem: Regression, method: Any, stop: Any, batch: int | None
) -> tuple[Array, Array]:
    """Times, and the mean predictors of a run at these times, one row each."""
    pieces, state = mean_system(model, problem, method, stop, batch)
    if type(pieces[0][0]) is not MeanSteps:
        raise Invalid(
            "the mean path is known for steps of GradientDescent without momentum on"
            f" w+^2 - w-^2, DiagonalNet(depth=2), and a regression, got {method!r} on {model!r}"
        )
    begin, taken = 0.0, 0
    points: list[tuple[float, Array]] = []
    for mean, steps in pieces:
        parts = max(1, PIECES // len(pieces))
        for now in _states(mean, state, steps, taken, parts):
            if now.t > 0 or not points:  # a piece begins where the last one ended
                points.append((begin + now.t, now.seen.beta))
        begin, taken, state = begin + now.t, taken + steps, now.state
    times, predictors = zip(*points, strict=True)
    return np.array(times), np.array(predictors)


def mean_system(
    model: Any, problem: Any, method: Any, stop: Any, batch: int | None
) -> tuple[list[tuple[MeanSteps, int]], MeanState]:
    """The mean steps of the checked arguments, their number, and their start."""
    method = method.method if isinstance(method, EffectiveScale) else method
    whole, method = method, method.method if isinstance(method, Scheduled) else method
    _refuse(method, model, problem)
    largest = max(float(part) for v in (problem.X, problem.y) for part in (v.max(), -v.min()))
    if largest > LARGEST:
        raise Invalid(f"entries of X and y must be below {LARGEST:g}, got {largest:.3g}")
    size = batches(problem.samples, batch)
    rules = stopping.rules(stop)
    if goals := [rule for rule in rules if not rule.budget]:
        raise Invalid(f"stop must be Steps, Epochs or Time, got {goals[0]!r}")
    steps = last_step(whole.scheme.clock, rules, size.epoch)
    pieces = [Piece(steps, method.learning_rate, 1.0)]
    if isinstance(whole, Scheduled):
        pieces = whole.clock.pieces(steps)
    batch = problem.samples if size.size is None else size.size
    means = [_mean_steps(model, problem, method, piece, batch) for piece in pieces]
    c, tilt = _start(means[0], model, problem.dimension)
    zero = np.zeros_like(c)
    start = MeanState(np.zeros(problem.samples), c, tilt, zero, zero)
    return [(mean, piece.steps) for mean, piece in zip(means, pieces, strict=True)], start


def _mean_steps(model: Any, problem: Any, method: Any, piece: Piece, batch: int) -> MeanSteps:
    """The exact sums at depth 2 where there are any, and expansions for all else."""
    given = {"rate": piece.rate, "decay": method.weight_decay * piece.decay, "batch": batch}
    given["label_noise"] = method.label_noise
    squares = isinstance(problem, Regression)
    if squares and not method.momentum and isinstance(model, DiagonalNet) and model.depth == 2:
        return MeanSteps(problem.X, problem.y, 2.0 if problem.loss == "squares" else 1.0, **given)
    from penchant.forecasts.mean_lines import MeanLines

    momentum = method.momentum
    return MeanLines(problem.X, problem.y, problem.loss, model, momentum=momentum, **given)


def _refuse(method: Any, model: Any, problem: Any) -> None:
    """Raises an error unless there is a theory of the mean of these steps."""
    if not isinstance(method, GradientDescent) or method.nesterov:
        raise Invalid(
            f"only steps of GradientDescent without nesterov can be predicted, got {method!r}"
        )
    if not method.scheme.clock.steady:
        raise Invalid(f"the learning rate must be fixed, got {method!r}")
    pair = isinstance(model, DiagonalNet | Reparametrized) and model.signed
    if not (pair and model.copies == 2):
        raise Invalid(
            "needs F(w+) - F(w-) of a map of one parameter, a signed DiagonalNet or Reparametrized,"
            f" got {model!r}"
        )
    if not isinstance(problem, Regression | Classification):
        raise Invalid(
            f"the problem must be a Regression or a Classification, got {type(problem).__name__}"
        )
    if method.label_noise and isinstance(problem, Classification):
        raise Invalid("label_noise is added to the labels of a regression; leave it out")
    if method.weight_decay and isinstance(model, Reparametrized):
        raise Invalid(
            "decay moves the effective start of a map along no law that is known here; take a"
            " DiagonalNet or leave weight_decay out"
        )


def _start(mean: MeanSteps, model: Any, dimension: int) -> tuple[Array, Array]:
    """c and tilt before the first step: of the weights at depth 2, else counted from the start."""
    depth = getattr(model, "depth", None)
    if depth is not None and model.log_alpha is not None:
        shape = np.log(np.abs(model.shape_for(dimension)))
        c, tilt = 2 * (model.log_alpha + shape), np.zeros(dimension)
        if c.min() < LEAST / max(1, depth - 2):
            raise Invalid(
                f"steps need a start within float64, got log w+ w- = {c.min():.4g}; use DualFlow"
            )
    elif depth is not None:
        weights = np.split(model.start(dimension), 2)
        if depth > 2 and min(part.min() for part in weights) <= 0:
            raise Invalid(f"at depth {depth} the weights of the start must be > 0")
        plus, minus = np.log(np.abs(weights))
        c, tilt = plus + minus, plus - minus
    if type(mean) is MeanSteps:
        return c, tilt
    return np.zeros(dimension), np.zeros(dimension)


def _predicted(mean: MeanSteps, now: Now, worst: Worst, steps: int, rate: float) -> PredictedRun:
    state, end = now.state, mean.end(now.state.c, now.state.tilt)
    inexact = mean.inexact(worst.share) * state.fallen
    doubt = DEVIATIONS * np.sqrt(state.variance + inexact**2) * end.slope
    logs = (end.log_scale + shift for shift in (-doubt, 0.0, doubt))
    low, scale, high = (np.exp(np.clip(log, -700, 700)) for log in logs)
    words = [math.exp(float(np.log(values).mean())) for values in (scale, low, high)]
    sentence = "the mean scale ends at {:.4g}, between {:.4g} and {:.4g}".format(*words)
    if worst.fails_at is not None:
        sentence += f"; from step {worst.fails_at} on this may be wrong, since {worst.reason}"
    fails_from = rate / worst.share if worst.share else math.inf
    beta = now.seen.beta
    return PredictedRun(
        end.regularizer, beta, scale, low, high, steps, worst.fails_at, fails_from, sentence
    )


def _states(
    mean: MeanSteps, state: MeanState, steps: int, taken: int, pieces: int = 1
) -> Iterator[Now]:
    """States from the start to the last step, by linearly implicit steps of the flow of means.

    Before them the run has taken `taken` steps.
    """
    end, t = steps * mean.rate, 0.0
    mean.begin(taken * mean.rate, 0.0)
    mean.refresh(mean.seen(*state[:3]).weight)
    seen = mean.seen(*state[:3])
    gains = mean.gains(seen.used, turns=seen.turns)
    yield Now(t, state, seen, gains, fresh=True)
    dt = 0.75 / max(mean.speed * float(np.abs(seen.used @ mean.X).max()), 1e-300)
    for _ in range(MOST):
        dt = min(dt, end / pieces, end - t, mean.longest)
        mean.begin(taken * mean.rate + t, dt)
        error, moved = _step(mean, state, seen, gains, dt)
        change = 0.9 * math.sqrt(TOLERANCE / max(error, 1e-30))
        if not error < TOLERANCE:
            dt *= max(0.1, change) if error == error else 0.1
            continue
        falls = float(np.abs(moved[1].used).max()) < 0.8 * float(np.abs(seen.used).max())
        state, seen, gains = moved
        t += dt
        yield Now(t, state, seen, gains, mean.refresh(seen.weight, falls=falls))
        if t >= end * (1 - 1e-12):
            return
        dt *= min(50.0, max(change, 0.3))
    sentence = f"{MOST} steps of the integration ended at t = {t:.4g} of {end:.4g}"
    raise Unsolved(Outcome(Kind.BUDGET_SPENT, f"{sentence}; predict fewer steps"))


def _step(
    mean: MeanSteps, state: MeanState, seen: Seen, gains: Gains, dt: float
) -> tuple[float, tuple[MeanState, Seen, Gains]]:
    """One step of ROS2 for nu, of the mean rates for the rest, and the error of both."""
    nu, c, tilt, variance, fallen = state
    factors, pivots, _ = dgetrf(mean.implicit(STAGE * dt, seen.bend))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # how the drift changes by the motion of c and the tilt
        turn = seen.bend * (mean.X @ (seen.lean * gains.c + seen.weight * gains.tilt))
        push = mean.used(turn, mean.own, seen.bend)
        push *= -mean.speed * STAGE * dt
        first, _ = dgetrs(factors, pivots, push - mean.speed * seen.used)
        ahead = c + dt * gains.c, tilt + dt * gains.tilt
        middle = mean.seen(nu + dt * first, *ahead)
        second, _ = dgetrs(factors, pivots, -mean.speed * middle.used - 2 * first - push)
        nu = nu + dt / 2 * (3 * first + second)
        new = mean.seen(nu, *ahead)
        # the mean residual of the step, which has brought nu from one end to the other
        residual = (state.nu - nu) / (mean.speed * dt)
        turns = None
        if seen.turns is not None and new.turns is not None:
            turns = (seen.turns + new.turns) / 2
        mean_gains = mean.gains(residual, *_powers(seen.used, new.used), turns)
        grown = math.exp(min(mean_gains.growth * dt, 300.0))
        moved = MeanState(
            nu,
            c + dt * mean_gains.c,
            tilt + dt * mean_gains.tilt,
            grown * grown * variance + dt * mean_gains.variance,
            grown * fallen + dt * mean_gains.fall,
        )
        missed = [new_end - old for new_end, old in zip(moved[1:3], ahead, strict=True)]
        if max(float(np.abs(each).max()) for each in missed) > CLOSE:
            new = mean.seen(*moved[:3])
        errors = [dt / 2 * ((first + second) @ mean.X), *(5 * each for each in missed)]
        error = float(np.max([np.abs(each).max() for each in errors]))
    return error, (moved, new, mean_gains)


def _powers(old: Array, new: Array) -> tuple[float, float]:
    """The means of r^2 and r^3 over those powers of the mean of r, where r falls exponentially."""
    fall = 0.5 * float(np.log((old @ old + 1e-300) / (new @ new + 1e-300)))
    if not 1e-2 < abs(fall) < math.inf:
        return 1.0, 1.0
    first, second, third = (
        -math.expm1(-k * min(max(fall, -99.0), 99.0)) / (k * fall) for k in (1, 2, 3)
    )
    return second / first**2, third / first**3


def _worse(worst: Worst, mean: MeanSteps, now: Now, step: int) -> Worst:
    """The worse of `worst` and the present state."""
    sizes = now.gains.largest
    strain, coordinate = mean.strain(now.seen.bend), int(sizes.argmax())
    largest = float(sizes[coordinate])
    share = max(worst.share, strain, largest)
    if worst.fails_at is not None or max(strain, largest) < 1:
        return worst._replace(share=share)
    reason = f"steps are {strain / 2:.2g} of those that diverge"
    if largest >= 1:
        reason = f"{mean.size} comes to {largest:.2g} in coordinate {coordinate}"
    return Worst(share, step, reason)
