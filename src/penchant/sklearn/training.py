"""Where the training of a diagonal net on centred data is at a time, and where it ends.

How it works. Gradient flow on the squared error of any data never moves in the part of y that no
predictor reaches, so it is the flow on the projection of y to the range of X: on U^T X and U^T y,
where the columns of U are an orthonormal basis of that range. There every system is consistent. So
the end of training is the minimiser of Q among the least squares points, by `interpolate_path`;
where X has independent columns that is the one least squares point, whatever depth and alpha are.
Before the end the flow is `DualFlow` on the same rows, in one variable for each of them.

The loss is half the mean squared error, as in the objective of scikit-learn's Lasso, so that times
mean the same for folds of different sizes; penchant's own loss is the sum of squares, and rows
divided by sqrt(2 n) turn the one into the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from penchant import record, stop
from penchant.arguments import Array
from penchant.models.diagonal import DiagonalNet
from penchant.problems.regression import Regression
from penchant.records import Kind, NumericalError, Outcome
from penchant.solvers.interpolation_path import InterpolationPath, interpolate_path
from penchant.training.exact.dual.flow import DualFlow
from penchant.training.exact.dual.integrator import RANK
from penchant.training.path import Path
from penchant.training.train import train

SCALES = 20  # of a path, from the kernel regime to the scale of the start
KERNEL = 100.0  # alpha^depth over the largest coefficient from where the end is that of the kernel
RTOL = 1e-10
ROUGH = 1e-8  # rtol where predictors are compared: errors on new samples need no more digits
FITTED = 1e-6  # of the excess loss: where a flow counts as ended
MOVED = 1e-3  # of the l1 norm at the end: where it counts as begun


class ReachableRows(NamedTuple):
    """Data with columns of mean zero, reduced to the range of X and in units of the mean loss."""

    problem: Regression | None  # None where nothing can be learned: y does not depend on X
    dimension: int
    features: tuple[str, ...]

    def ends(self, depth: int, log_alphas: Array) -> Array:
        """The predictors at the end of training from these scales, one row each."""
        ends = self._ends(depth, log_alphas)
        for outcome in ends.outcomes:
            _refuse_failure(outcome)
        return ends.beta

    def _ends(self, depth: int, log_alphas: Array) -> InterpolationPath:
        if self.problem is not None:
            return interpolate_path(self.problem, depth, log_alphas=log_alphas, progress=False)
        count = len(log_alphas)
        nothing, none = np.zeros((count, self.dimension)), np.zeros(count)
        still = (Outcome(Kind.SOLVED, "the start already fits the data"),) * count
        rest = none, none, none, none.astype(int), still, self.features
        return InterpolationPath(depth, log_alphas, nothing, np.zeros((count, 1)), *rest)

    def path(self, depth: int, alpha: float) -> InterpolationPath:
        """The ends of training from the kernel regime down to this scale, which is the last."""
        log_alpha, scales = math.log(alpha), [math.log(alpha)]
        if self.problem is not None:
            X, y = self.problem.X, self.problem.y
            size = float(np.abs(np.linalg.lstsq(X, y, rcond=None)[0]).max())
            top = math.log(KERNEL * size) / depth
            if top > log_alpha:
                scales = np.linspace(top, log_alpha, SCALES).tolist()
        ends = self._ends(depth, np.array(scales))
        _refuse_failure(ends.outcomes[-1])
        return ends

    def flow(
        self, depth: int, alpha: float, rule: Any, times: Sequence[float] = (), rtol: float = RTOL
    ) -> Path:
        """Training from this scale until the rule is met, recorded at these times."""
        records = [record.At(times=list(times))] if len(times) else [record.LogSpaced(20)]
        assert self.problem is not None
        net, method = DiagonalNet(depth, alpha=alpha), DualFlow(rtol=rtol)
        path = train(net, self.problem, method, stop=rule, record=records, progress=False)
        _refuse_failure(path.outcome)
        return path

    def at(self, depth: int, alpha: float, times: Sequence[float]) -> Array:
        """The predictors at these increasing times, one row each."""
        if self.problem is None or not len(times):
            return np.zeros((len(times), self.dimension))
        dataset = self.flow(depth, alpha, stop.Time(times[-1]), times, rtol=ROUGH).dataset
        places = np.abs(dataset["t"].values[:, None] - np.asarray(times)).argmin(axis=0)
        return np.asarray(dataset["predictor"].values[places])

    def times(self, depth: int, alpha: float, count: int) -> Array:
        """So many log-spaced times from where the predictor begins to grow to where it rests."""
        if self.problem is None:
            return np.geomspace(1.0, 2.0, count)
        dataset = self.flow(depth, alpha, stop.Interpolated(FITTED), rtol=ROUGH).dataset
        size, t = dataset["norm_l1"].values, dataset["t"].values
        begin = int(np.argmax(size > MOVED * size[-1]))
        return np.geomspace(t[max(begin, 1)], t[-1], count)


def rows_of(X: Array, y: Array, features: tuple[str, ...] = ()) -> ReachableRows:
    """Centred data as rows that can be fitted exactly."""
    samples, dimension = X.shape
    U, sizes, V = np.linalg.svd(X / math.sqrt(2 * samples), full_matrices=False)
    rank = int(np.count_nonzero(sizes > RANK * sizes[0])) if sizes[0] > 0 else 0
    targets = U[:, :rank].T @ (y / math.sqrt(2 * samples))
    if not np.abs(targets).max(initial=0.0) > RANK * np.abs(y).max(initial=0.0):
        return ReachableRows(None, dimension, features)
    rows = sizes[:rank, None] * V[:rank]
    about = "rows in the range of X"
    problem = Regression(rows, targets, description=about, features=features or None)
    return ReachableRows(problem, dimension, features)


def _refuse_failure(outcome: Outcome) -> None:
    if not outcome.ok:
        raise NumericalError("fit", outcome)
