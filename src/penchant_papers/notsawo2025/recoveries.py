"""Recovery of a sparse vector with an l1 penalty, or of a low-rank matrix with a nuclear one.

The loss is N's, half the sum of squared residuals; the method is subgradient descent.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import json
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penchant import L1, GradientDescent, NumericalError, Regression, Steps, interpolate, train
from penchant.lab import DRAWS, Array, Dataset, door_as, drawn, one_of
from penchant.measures import Grokking, crossing, grokking
from penchant.methods import Proximal
from penchant.models import LinearMatrix, LinearPredictor
from penchant.problems import (
    Completion,
    Sensing,
    gaussian_sensing,
    low_rank_completion,
    sparse_recovery,
)
from penchant.record import At
from penchant.regularizers import Nuclear, Term
from penchant.solvers import (
    SlowFlow,
    error_floor,
    least_squares_limit,
    memorization_steps,
    slow_flow,
)

if TYPE_CHECKING:
    from penchant.models import Model

START, SOLVED = 1e-6, 1e-4  # N: start per entry; loss at t1 and, of a vector, |a - a*|^2 at t2
FOUND = 1e-6  # an interpolator with a smaller relative error is the truth
FAR = 0.3  # least relative error of a memorized point: there must be something left to recover
EULER = 2e-3  # step of the slow phase of a matrix, in units of the truth or the distance to it
SHARP = 0.95  # most of 1 that a certificate may be: near 1 the error is linear in beta only late
LINEAR = 1e-3  # beta up to which no entry of the penalized minimiser changes its sign
KINDS = ("sparse", "completion", "sensing")
# N's sizes; `few` is the number of non-zero entries of a vector, or the rank of a matrix
SPARSE: dict[str, Any] = {"kind": "sparse", "samples": 30, "dimension": 100, "few": 5}
LOW_RANK: dict[str, Any] = {"samples": 70, "dimension": 10, "few": 2}


class Recovery(abc.ABC):
    """A problem and the norm that recovers its truth.

    A subclass defines what differs between vectors and matrices. Points are flat arrays, those
    that represent a matrix as well.
    """

    problem: Any

    @property
    @abc.abstractmethod
    def X(self) -> Array:
        """One row per sample."""

    @property
    @abc.abstractmethod
    def penalty(self) -> Term: ...

    @abc.abstractmethod
    def model(self, start: float | Array) -> Model:
        """The linear predictor that starts at `start`."""

    @abc.abstractmethod
    def slow(self, start: float = 0.0, error: float = 0.0) -> SlowFlow:
        """The slow phase after memorization, over tau = step beta t, to its end or to `error`."""

    @property
    @abc.abstractmethod
    def least(self) -> Array:
        """The interpolator of least norm, by a solver."""

    @abc.abstractmethod
    def norms(self, points: Array) -> Array:
        """The norm of every row."""

    @abc.abstractmethod
    def dual_norm(self, point: Array) -> float:
        """The dual norm; that of a_hat - a* is N's numerator of t2 - t1."""

    @property
    @abc.abstractmethod
    def suitable(self) -> bool:
        """True if the truth has the least norm of all interpolators, by a SHARP certificate."""

    @property
    @abc.abstractmethod
    def unit(self) -> float:
        """The unit of errors at t2: N prints one for vectors, 1, and none for matrices: |A*|."""

    @property
    def y(self) -> Array:
        return np.asarray(self.problem.y)

    def off(self, point: Array) -> float:
        """|a - a*|_2 over |a*|_2 of one point."""
        return float(np.linalg.norm(point - self.truth) / np.linalg.norm(self.truth))

    @property
    def truth(self) -> Array:
        """The truth; every generated problem has one."""
        assert self.problem.truth is not None
        return np.asarray(self.problem.truth).ravel()

    @functools.cached_property
    def bound(self) -> float:
        """The step size from which on descent without a penalty does not converge."""
        return 2 / float(np.linalg.norm(self.X, 2)) ** 2

    @functools.cached_property
    def path(self) -> SlowFlow:
        """The slow phase from the least squares point nearest to zero to its end."""
        return self.slow()

    def memorized(self, start: float = 0.0) -> Array:
        """The least squares point nearest to the point whose entries all equal `start`."""
        begin = np.full(self.X.shape[1], start)
        return least_squares_limit(self.X, self.y, self.bound / 2, begin).point

    def t1(self, step: float, level: float = SOLVED) -> int:
        """The step at which descent without a penalty reaches the loss `level`, in closed form."""
        return memorization_steps(self.X, self.y, step, level)

    def run(
        self, step: float, beta: float, record: Iterable[float], start: float = START
    ) -> Dataset:
        """The dataset of descent with the penalty, at step 0 and the steps in `record`."""
        steps = sorted({round(k) for k in record})
        path = train(
            self.model(start),
            self.problem,
            GradientDescent(step, subgradient=True),
            penalty=beta * self.penalty,
            stop=Steps(steps[-1]),
            record=At(steps),
            throw=True,
        )
        return path.dataset

    def points(self, run: Dataset) -> Array:
        """The iterates of a run, one flat row each."""
        return np.asarray(run.predictor.values.reshape(len(run.step), -1))

    def error(self, points: Array) -> Array:
        """|a - a*|_2 of every row."""
        return np.asarray(np.linalg.norm(points - self.truth, axis=1))

    def loss(self, points: Array) -> Array:
        """(1/2)|X a - y|^2 of every row."""
        return np.asarray(0.5 * np.sum((points @ self.X.T - self.y) ** 2, axis=1))

    def grokking(self, steps: Array, points: Array, level: float) -> Grokking:
        """How `measures.grokking` classifies a run, by the error floor of the data and |a|_2."""
        floor = error_floor(self.X, self.truth)
        norm, error = np.linalg.norm(points, axis=1), self.error(points) ** 2
        return grokking(steps, self.loss(points), error, level, floor=floor, norm=norm, error=True)

    def penalized(self, beta: float, steps: int = 4000) -> Array:
        """The minimiser of (1/2)|X a - y|^2 + beta h(a), by accelerated proximal descent.

        It starts at the interpolator of least norm, which is near even for tiny beta; zero is not.
        """
        method = Proximal(0.495 * self.bound, accelerated=True)
        penalty, stop = beta * self.penalty, Steps(steps)
        model = self.model(self.least)
        path = train(model, self.problem, method, penalty=penalty, stop=stop, record=At([]))
        return np.asarray(path.predictor).ravel()


@dataclasses.dataclass(frozen=True)
class SparseRecovery(Recovery):
    """A vector, with the l1 norm."""

    problem: Regression

    @property
    def X(self) -> Array:
        return self.problem.X

    @property
    def penalty(self) -> Term:
        return L1()

    def model(self, start: float | Array) -> Model:
        return LinearPredictor(start)

    def slow(self, start: float = 0.0, error: float = 0.0) -> SlowFlow:
        path = slow_flow(self.X, self.memorized(start), throw=False)
        # where float64 loses digits at a corner, times within EULER are enough, as for a matrix
        if path.outcome is not None and not (path.outcome.ok or path.error <= EULER):
            raise NumericalError("slow_flow", path.outcome)
        return path

    @functools.cached_property
    def least(self) -> Array:
        return interpolate(self.X, self.y, L1()).beta

    @property
    def suitable(self) -> bool:
        entries = self.truth[self.support]
        moves = np.abs(entries) > LINEAR * np.abs(self.leaning)
        return self.certificate < SHARP and bool(moves.all())

    @property
    def support(self) -> NDArray[np.intp]:
        """Where the truth is not zero."""
        return np.flatnonzero(self.truth)

    @functools.cached_property
    def leaning(self) -> Array:
        """v with X_S^T X_S v = sign(a*) on the support S of the truth."""
        X, signs = self.X[:, self.support], np.sign(self.truth[self.support])
        return np.asarray(np.linalg.lstsq(X.T @ X, signs, rcond=None)[0])

    @property
    def certificate(self) -> float:
        """|X^T X_S v|_inf outside the support.

        Below 1 the truth is the only interpolator of least l1 norm (Fuchs 2004), and the minimiser
        of g + beta h is a* - beta v on the support until one of its entries changes its sign.
        """
        dual = np.abs(self.X.T @ (self.X[:, self.support] @ self.leaning))
        return float(np.delete(dual, self.support).max(initial=0.0))

    @property
    def unit(self) -> float:
        return 1.0

    def norms(self, points: Array) -> Array:
        return np.asarray(np.abs(points).sum(axis=1))

    def dual_norm(self, point: Array) -> float:
        return float(np.abs(point).max())


@dataclasses.dataclass(frozen=True)
class LowRankRecovery(Recovery):
    """A matrix, with the nuclear norm; `euler` is the relative step of the slow phase."""

    problem: Completion | Sensing
    euler: float = EULER

    @property
    def X(self) -> Array:
        return np.asarray(self.problem.design)

    @property
    def penalty(self) -> Term:
        return Nuclear(self.problem.shape)

    def model(self, start: float | Array) -> Model:
        begin = start if np.ndim(start) == 0 else np.reshape(start, self.problem.shape)
        return LinearMatrix(self.problem.shape, begin)

    def slow(self, start: float = 0.0, error: float = 0.0) -> SlowFlow:
        begin = self.memorized(start)
        step = self.euler * min(map(self.dual_norm, (begin - self.truth, self.truth)))
        return slow_flow(
            self.problem,
            begin.reshape(self.problem.shape),
            learning_rate=step,
            target=self.problem.truth if error else None,
            error=error,
        )

    @functools.cached_property
    def least(self) -> Array:
        measurements = self.X.reshape(-1, *self.problem.shape)
        return interpolate(measurements, self.y, Nuclear()).matrix.ravel()

    @property
    def suitable(self) -> bool:
        return self.certificate < SHARP

    @functools.cached_property
    def certificate(self) -> float:
        """|W|_op outside the tangent space T of the truth U S V^T, W in the row space of X.

        W is the shortest one that equals U V^T on T; infinite if there is none. Below 1 the truth
        is the only interpolator of least nuclear norm (Candes and Recht 2009, lemma 3.1), and for
        small beta the minimiser of g + beta h has its rank, so that its error is linear in beta.
        """
        u, s, v = np.linalg.svd(self.truth.reshape(self.problem.shape))
        rank = int(np.sum(s > 1e-9 * s[0]))
        left, right = (np.eye(len(m)) - m @ m.T for m in (u[:, :rank], v[:rank].T))

        def outside(matrices: Array) -> Array:
            return np.asarray(left @ matrices @ right)

        rows = self.X.reshape(-1, *self.problem.shape)
        within, signs = rows - outside(rows), u[:, :rank] @ v[:rank]
        weights, *_ = np.linalg.lstsq(within.reshape(len(rows), -1).T, signs.ravel(), rcond=None)
        dual = np.tensordot(weights, rows, 1)
        met = np.linalg.norm(dual - outside(dual) - signs) < 1e-9
        return float(np.linalg.norm(outside(dual), 2)) if met else math.inf

    @functools.cached_property
    def unit(self) -> float:
        return float(np.linalg.norm(self.truth))

    def norms(self, points: Array) -> Array:
        matrices = points.reshape(len(points), *self.problem.shape)
        return np.asarray(np.linalg.svd(matrices, compute_uv=False).sum(axis=1))

    def dual_norm(self, point: Array) -> float:
        return float(np.linalg.norm(point.reshape(self.problem.shape), 2))


@functools.lru_cache(maxsize=8)  # neighbouring cells share their problem
@door_as("recovery")
def recovery(
    kind: str,
    *,
    samples: int = 30,
    dimension: int = 100,
    few: int = 5,
    seed: int,
    noise: float = 0.0,
    euler: float = EULER,
) -> Recovery:
    """N's recovery of a vector with `few` non-zero entries, or of a square matrix of rank `few`.

    `noise` is the power of the noise over that of the signal, 1/SNR.
    """
    one_of("kind", kind, KINDS)
    if kind == "sparse":
        snr = 1 / noise if noise else math.inf
        return SparseRecovery(sparse_recovery(samples, dimension, sparsity=few, seed=seed, snr=snr))
    make = low_rank_completion if kind == "completion" else gaussian_sensing
    problem = make(samples=samples, dimension=dimension, rank=few, seed=seed, loss="half squares")
    return LowRankRecovery(noisy(problem, noise, seed), euler)


@functools.lru_cache(maxsize=64)  # a cell for every beta, step and noise asks for the same problem
def recoverable_seed(kind: str, seed: int, samples: int, dimension: int, few: int) -> int:
    """The first seed from 1000 `seed` on whose problem meets the premises of N's theorems.

    Without noise, the truth has the least norm of all interpolators, with a SHARP certificate, and
    the memorized point is FAR from it. Different seeds never share a problem.
    """

    def make(place: int) -> tuple[int, Recovery]:
        sizes = {"samples": samples, "dimension": dimension, "few": few}
        return place, recovery(kind, seed=place, **sizes)

    def suits(pair: tuple[int, Recovery]) -> bool:
        case = pair[1]
        return case.suitable and case.off(case.memorized()) > FAR

    return drawn(make, suits, DRAWS * seed)[0][0]


def recoverable(kind: str, *, seed: int, **given: Any) -> tuple[Recovery, int]:
    """The recovery of this seed that meets the premises, and how many draws it took."""
    sizes = {name: given[name] for name in ("samples", "dimension", "few")}
    chosen = recoverable_seed(kind, seed, **sizes)
    return recovery(kind, seed=chosen, **given), chosen - DRAWS * seed + 1


def noisy(problem: Any, noise: float, seed: int = 0) -> Any:
    """A matrix problem with Gaussian noise; `noise` is its power over that of the signal."""
    if not noise:
        return problem
    size = float(np.linalg.norm(problem.y)) * math.sqrt(noise / problem.samples)
    labels = problem.y + size * np.random.default_rng(seed).standard_normal(problem.samples)
    name = "values" if isinstance(problem, Completion) else "y"
    return dataclasses.replace(problem, **{name: labels})


def reached(steps: Array, values: Array, level: float) -> float:
    """The step at which `values` fall to the level, interpolated in logarithms; NaN if never."""
    return crossing(steps, np.log(np.maximum(values, 1e-300)), math.log(level))


def arguments_of(dataset: Dataset) -> dict[str, Any]:
    """The arguments that all cells of a study share."""
    return dict(json.loads(dataset.attrs["description"])["arguments"])


def over(variable: Any, axis: str) -> Array:
    """One row of values over the axis for every problem."""
    return np.asarray(variable.transpose(..., axis).values.reshape(-1, variable.sizes[axis]))


def over_beta(variable: Any) -> Array:
    """One row of values over beta for every problem."""
    return over(variable, "beta")


def log_steps(last: float, per_decade: int) -> Array:
    """Whole numbers of steps from 1 to `last`, about `per_decade` in every decade."""
    count = round(per_decade * math.log10(last)) + 1
    return np.unique(np.round(np.logspace(0, math.log10(last), count)))


def count(steps: Any) -> str:
    """A number of steps as text for a picture."""
    return "none" if math.isnan(steps) else f"{float(steps):,.0f}".replace(",", " ")
