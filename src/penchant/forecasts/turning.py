"""How a predictor turns while its start decays: through the minimisers of Q, scale by scale.

How it works. With theta = e^(-rate t) phi the decay leaves the equation of phi, so at the time t of
a slow run the predictor is the one that the flow without decay selects from e^(-rate t) theta0
(docs/theory section 19): from the least l2 (Frobenius) norm of the kernel regime to the least l1
(nuclear) norm. These minimisers are followed by the solvers' continuations in log alpha, without
training. In regression rate t = log(alpha0/alpha). On labels the margin level g of the run enters,
by the balance of loss and decay in section 21, e^-g = (rate/L) g^(2/L - 1) |theta|^2, and shifts
each time by log(g)/L.

The transition is the time in which the predictor turns at a quarter of its top speed or more; with
a measure (the test accuracy of a known population, say) it is the time in which that number
changes, which may be long after the direction did. For models without a known Q `meeting` gives the
time at which the displacement that fits the data is as long as the decayed start.

Pitfalls. log alpha alone, the leading term, misses the constants of the data, which matter at every
size that is trained (section 21). The minimisers are followed until they turn slowly, and at most
10 in log alpha, because at depth 2 they approach l1 only like 1/log(1/alpha) and never rest. Strong
decay never fits the data: a level g below 1, or a misfit of half the labels, is refused.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, entries, finite_array, integer, positive, real
from penchant.door import Invalid, door, door_as
from penchant.measures.directions import angle
from penchant.measures.kernels.machines import kernel_machine
from penchant.models.diagonal import DiagonalNet
from penchant.models.factorization import DifferenceFactorization
from penchant.models.model import Model
from penchant.problems.classification import Classification
from penchant.problems.matrix_problem import Completion, MatrixProblem, Sensing
from penchant.problems.regression import Regression
from penchant.records import Outcome
from penchant.regularizers.q import Q
from penchant.solvers.constraints import reduce
from penchant.solvers.continuation import Continuation, Failed
from penchant.solvers.margins.active_set import Unbounded
from penchant.solvers.margins.rows import scaled_rows
from penchant.solvers.margins.walk import MarginWalk
from penchant.solvers.matrices.measurements import measurements
from penchant.solvers.matrices.path import corrected, descend
from penchant.solvers.matrices.state import law_of
from penchant.threads import one_blas_thread

Problem = Regression | Classification | MatrixProblem
Measure = Callable[[Array], float]

PART = 0.25  # share of the fastest turning; slower turning does not belong to the transition
STRIDE = 0.5  # distance of two scales, in log alpha
BEFORE = 1.0  # in log alpha, before |s| = 0.3, where Q begins to differ from a square
HORIZON = 10.0  # in log alpha: how far the minimisers are followed at most
LEAST = 1.0  # degrees: a predictor that turns by less in total does not turn
PASSED = (0.1, 0.5, 0.9)  # shares of a change at its beginning, middle and end


@dataclasses.dataclass(frozen=True)
class Minimisers:
    """The minimisers at decreasing `log_alphas`.

    `log_sizes` are logarithms of the squared norm of the smallest parameters that give each
    predictor, `turned` the degrees between neighbours, and `values` those of the measure.
    """

    log_alphas: Array
    log_sizes: Array
    turned: Array
    values: Array

    def passage(self, z: Array) -> tuple[float, float, float]:
        """When a tenth, half and nine tenths of the change of `values` are done."""
        fine, value = _fine(z, self.values)
        done = (value - value[0]) / (value[-1] - value[0])
        last = len(done) - 1 - int(np.argmax(done[::-1] < PASSED[1]))  # below half for good
        begin = last - int(np.argmax(done[last::-1] < PASSED[0]))
        end = last + int(np.argmax(done[last:] >= PASSED[2]))
        return float(fine[begin]), float(fine[last]), float(fine[end])


@door
def turning_window(z: ArrayLike, turned: ArrayLike) -> tuple[float, float, float]:
    """Begin, half and end of the time in which a predictor turns fast.

    Fast is a quarter of its top speed or more. At half the predictor has turned as much since the
    beginning as it will until the end.

    Parameters
    ----------
    z
        Times, increasing.
    turned
        The degrees by which the predictor turns between neighbouring times.

    Returns
    -------
    tuple of three floats
        Begin, half and end, in the unit of z.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> z, turned = np.arange(6.0), np.array([0.0, 1.0, 10.0, 1.0, 0.0])
    >>> [round(t, 2) for t in penchant.forecasts.turning_window(z, turned)]
    [1.73, 2.5, 3.27]
    """
    z = finite_array("z", z, ndim=1)
    if len(z) < 3 or not (np.diff(z) > 0).all():
        raise Invalid(f"z must list three increasing times or more, got {z!s:.80}")
    turned = entries("turned", turned, len(z) - 1, "one entry per pair of neighbouring times")
    fine, speed = _fine((z[1:] + z[:-1]) / 2, turned / np.diff(z))
    level = PART * speed.max()
    fast = np.flatnonzero(speed >= level)
    begin, end = (_crossing(fine, speed, level, k) for k in (fast[0] - 1, fast[-1]))
    at = np.concatenate([[begin], fine[(fine > begin) & (fine < end)], [end]])
    steps = np.interp((at[1:] + at[:-1]) / 2, fine, speed) * np.diff(at)
    done = np.insert(np.cumsum(steps), 0, 0.0)
    return begin, float(np.interp(done[-1] / 2, done, at)), end


def _crossing(x: Array, y: Array, level: float, k: int) -> float:
    """Where y passes `level` between the indices k and k + 1, or the nearest end of x."""
    if k < 0 or k + 1 == len(x):
        return float(x[0] if k < 0 else x[-1])
    return float(x[k] + (level - y[k]) / (y[k + 1] - y[k]) * (x[k + 1] - x[k]))


@door_as("forecast")
def minimisers(model: Any, problem: Problem, measure: Measure | None = None) -> Minimisers | None:
    """The minimisers for a model with a known regularizer until they stop turning; else None.

    The regularizer is known for signed diagonal nets with equal starts, and for U U^T - V V^T from
    the identity: Q of the singular values, exact where the measurements commute and close where
    they do not. The result is also None where the predictor hardly turns, or where the minimisers
    cannot be followed. With a `measure` they are followed to the HORIZON, since a number may change
    long after the direction.
    """
    try:
        with one_blas_thread():
            stages = _stages(model, problem)
            degree = model.depth if isinstance(model, DiagonalNet) else 2
            return None if stages is None else _collected(degree, stages, measure)
    except (Failed, Unbounded):
        return None


def _stages(model: Any, problem: Problem) -> Iterator[tuple[float, Array]] | None:
    """log alpha and the minimiser there, from the kernel regime down."""
    if isinstance(problem, MatrixProblem):
        if not isinstance(model, DifferenceFactorization) or model.seed is not None:
            return None
        return _matrices(problem)
    if not isinstance(model, DiagonalNet) or not model.signed or model.biased is not None:
        return None
    return _vectors(Q(model.depth, log_alpha=0.0, shape=model.shape), problem)


def _vectors(q: Q, problem: Regression | Classification) -> Iterator[tuple[float, Array]]:
    walk: Continuation | MarginWalk
    if isinstance(problem, Classification):
        rows = scaled_rows(problem.signed_rows)
        walk, scale = MarginWalk(q, rows), rows.scale
    else:
        fit = reduce(problem.X, problem.y)
        walk, scale = Continuation(q, fit.X, fit.y), fit.scale
    first = walk.m + q.depth * BEFORE
    for k in itertools.count():
        m = first - q.depth * STRIDE * k
        point = walk.at(m)
        beta = point[0] if isinstance(point, tuple) else point.beta
        yield (m + math.log(scale)) / q.depth, scale * beta


def _matrices(problem: MatrixProblem) -> Iterator[tuple[float, Array]] | None:
    try:
        fit = measurements(_symmetric(problem))
    except ValueError:  # the entries (i, j) and (j, i) contradict each other
        return None
    if isinstance(fit, Outcome):
        return None
    walk = descend(fit, law_of(Q(2, alpha=1.0)), -math.inf, close=1e-10, longest=2 * STRIDE)
    stops = ((stop.state.m, corrected(stop.state, stop.hessian)) for stop in walk)
    return (((m + math.log(fit.scale)) / 2, fit.scale * matrix) for m, matrix in stops)


def _symmetric(problem: MatrixProblem) -> MatrixProblem:
    """The conditions of `problem` on a symmetric matrix."""
    if isinstance(problem, Completion):
        entries = np.concatenate([problem.entries, problem.entries[:, ::-1]])
        return Completion(problem.shape, entries, np.tile(problem.y, 2))
    assert isinstance(problem, Sensing)
    both = problem.measurements + np.swapaxes(problem.measurements, 1, 2)
    return Sensing(both / 2, problem.y)


def _collected(
    degree: int, stages: Iterator[tuple[float, Array]], measure: Measure | None
) -> Minimisers | None:
    log_alphas, log_sizes, values = [], [], []
    turned: list[float] = []
    fastest, last = 0.0, None
    for log_alpha, predictor in stages:
        if last is not None:
            turned.append(float(angle(predictor.ravel(), last.ravel())))
            fastest = max(fastest, turned[-1])
        last = predictor
        log_alphas.append(log_alpha)
        log_sizes.append(_log_size(degree, predictor))
        values.append(math.nan if measure is None else float(measure(predictor)))
        at_rest = measure is None and turned and turned[-1] < PART / 2 * fastest
        if at_rest or log_alphas[0] - log_alpha > HORIZON - STRIDE / 2:  # safe against rounding
            break
    if sum(turned) < LEAST:
        return None
    return Minimisers(*map(np.array, (log_alphas, log_sizes, turned, values)))


def _log_size(degree: int, predictor: Array) -> float:
    """log |theta|^2 of the smallest parameters: |w|^D = |beta|, or |U|^2 = the singular values."""
    if predictor.ndim == 2:
        return math.log(float(np.linalg.norm(predictor, "nuc")))
    return math.log(float((np.abs(predictor) ** (2 / degree)).sum()))


def _fine(x: Array, y: Array) -> tuple[Array, Array]:
    """Many points of the monotone interpolant."""
    from scipy.interpolate import PchipInterpolator

    fine = np.linspace(x[0], x[-1], 100 * len(x))
    return fine, PchipInterpolator(x, y)(fine)


Times = tuple[float, float, float]  # low, transition and high


@door_as("forecast")
def turning_times(
    path: Minimisers, degree: int, rate: float, model: Model, problem: Problem, measured: bool
) -> tuple[Times, float]:
    """The times, in units of 1/rate, and the margin level at the transition."""
    log_alpha: float = getattr(model, "log_alpha")  # noqa: B009
    levels = np.ones_like(path.log_sizes)
    if isinstance(problem, Classification):
        # e^-g = (rate/L) g^(2/L - 1) |theta|^2 with theta the smallest parameters of margins 1
        levels = _levels(degree, math.log(rate / degree) + path.log_sizes)
    z = log_alpha - path.log_alphas - np.log(levels) / degree
    if measured and not np.ptp(path.values) > 0:
        raise Invalid(f"the measure stays at {path.values[0]:g} for every predictor; take another")
    times = path.passage(z) if measured else turning_window(z, path.turned)
    if isinstance(problem, Classification):
        g = float(np.interp(times[1], z, levels))
        _refuse_strong_decay(rate, g > 1)
        return times, g
    # 2 L <r, f> = rate |theta|^2, so this is the least part of y that is not fitted
    misfit = rate * math.exp(float(np.interp(times[1], z, path.log_sizes)))
    misfit /= 2 * degree * float(problem.y @ problem.y)
    _refuse_strong_decay(rate, misfit < 0.5)
    return times, math.nan


def _levels(degree: int, c: Array) -> Array:
    """g with g = (1 - 2/L) log g - c, for every c, by iteration; 1 where it would be smaller."""
    g = np.maximum(-c, 1.0)
    for _ in range(100):
        g = np.maximum((1 - 2 / degree) * np.log(g) - c, 1.0)
    return g


def _refuse_strong_decay(rate: float, fitted: bool) -> None:
    if not fitted:
        raise Invalid(
            f"weight_decay {rate:.3g} is so strong that the data are hardly fitted where "
            "the kernel regime would end; there is no transition to forecast, take a smaller "
            "weight_decay"
        )


@door
def kernel_regime_end(
    degree: int, weight_decay: float, log_start: float, model: Model, problem: Problem
) -> tuple[float, float]:
    """When the displacement is as long as the decayed start, in units of 1/weight_decay.

    Until about then the model moves too little to leave the kernel regime.

    Parameters
    ----------
    degree
        The degree of homogeneity of the model.
    weight_decay
        The rate of weight decay.
    log_start
        The natural logarithm of the norm of the start.
    model
        The model, at its start.
    problem
        The problem.

    Returns
    -------
    tuple of two floats
        weight_decay * t, and the level of the margins there; NaN for a regression.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> import penchant
    >>> problem = penchant.problems.separable_points(4, 9, margin=0.3, seed=5)
    >>> net = penchant.DiagonalNet(2, alpha=100.0)
    >>> log_start = math.log(np.linalg.norm(net.start(9)))
    >>> z, level = penchant.forecasts.kernel_regime_end(2, 1e-5, log_start, net, problem)
    >>> round(z, 3), round(level, 3)
    (4.863, 10.827)
    """
    degree = integer("degree", degree, least=1)
    weight_decay = positive("weight_decay", weight_decay)
    log_start = real("log_start", log_start)
    if not isinstance(model, Model):
        raise Invalid(f"model must be a model, got {type(model).__name__}")
    if not isinstance(problem, Problem):
        rule = "problem must be a Regression, a Classification or a matrix problem"
        raise Invalid(f"{rule}, got {type(problem).__name__}")
    return regime_end(degree, weight_decay, log_start, model, problem)


def regime_end(
    degree: int, weight_decay: float, log_start: float, model: Model, problem: Problem
) -> tuple[float, float]:
    """The same for a caller that has checked its arguments."""
    if isinstance(problem, Classification):
        log_delta = kernel_machine(model, problem).log_norm
        # there e^-g = L weight_decay g |delta|^2
        c = (
            math.log(degree)
            + math.log(weight_decay)
            + 2 * (log_delta + (degree - 1) * log_start) / degree
        )
        g = float(_levels(degree, np.array(c)))
        _refuse_strong_decay(weight_decay, g > 1)
        return (log_start - log_delta - math.log(g)) / degree, g
    log_delta = kernel_machine(model, problem).log_norm
    log_met = log_start - (log_start - log_delta) / degree
    # 2 <r, f> = L weight_decay |delta|^2 with |delta| the decayed start
    misfit = math.log(degree * weight_decay / 2) + 2 * (
        log_met - math.log(np.linalg.norm(problem.y))
    )
    _refuse_strong_decay(weight_decay, misfit < math.log(0.5))
    return (log_start - log_delta) / degree, math.nan
