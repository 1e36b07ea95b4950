"""The minimisers of Q along a whole path of scales, each started from its neighbour."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, start_shape, tilt_or_none
from penchant.columns import named_as_given
from penchant.door import door
from penchant.limits import limited
from penchant.problems.regression import Regression
from penchant.progress import checked, reporting
from penchant.records import Outcome
from penchant.regularizers.q import Q
from penchant.results import LabelledResult, dataset_of
from penchant.solvers import continuation
from penchant.solvers.accuracy import TOGETHER, Given, compute_together
from penchant.solvers.constraints import reduce
from penchant.solvers.data import units_of, unpacked
from penchant.solvers.interpolate import arrived, concluded_from, posed
from penchant.solvers.solution import Solution, must_fit, restored, stacked
from penchant.solvers.sparse_rows import SparseRows, regression_rows
from penchant.threads import one_blas_thread


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class InterpolationPath(LabelledResult):
    """The minimisers of Q over a list of scales, one row per scale in the given order.

    Attributes
    ----------
    depth
        The power D of Q.
    log_alphas
        The natural logarithms of the scales.
    beta
        The minimisers, one row per scale.
    dual
        The multipliers, one row per scale, each rounded to float64.
    residual
        max|X beta - y| / max|y| of each row.
    kkt
        The optimality error of each row, of the dual before it was rounded (see Solution).
    error
        The relative error of each row that is certified (see Solution).
    iterations
        The iterations that each row took.
    outcomes
        How each row ended.
    features
        The names of the columns, if X had them.

    Examples
    --------
    >>> import penchant
    >>> path = penchant.solvers.interpolate_path([[1.0, 2.0]], [2.0], log_alphas=[0.0, -1.0])
    >>> path.beta.shape, [outcome.ok for outcome in path.outcomes]
    ((2, 2), [True, True])
    """

    depth: int
    log_alphas: Array
    beta: Array
    dual: Array
    residual: Array
    kkt: Array
    error: Array
    iterations: Array
    outcomes: tuple[Outcome, ...]
    features: tuple[str, ...] = ()

    @property
    def dataset(self) -> Any:
        """The numbers along `scale`, an xarray.Dataset; `dataset.to_dataframe()` is a table."""
        rows = {
            "beta": (("scale", "feature"), self.beta, "coefficients of the predictor"),
            "dual": (("scale", "sample"), self.dual, "multipliers of the samples"),
            "norm_l1": ("scale", np.abs(self.beta).sum(axis=1), r"$\ell_1$ norm of the predictor"),
            "norm_l2": ("scale", np.linalg.norm(self.beta, axis=1), r"its $\ell_2$ norm"),
            "residual": ("scale", self.residual, "relative residual of the labels"),
            "kkt": ("scale", self.kkt, "optimality error"),
            "error": ("scale", self.error, "certified relative error"),
        }
        scales = self.log_alphas / np.log(10)  # alpha itself may be far below what float64 holds
        at = {"log10_alpha": ("scale", scales, r"initial scale, $\log_{10} \alpha$")}
        return dataset_of(self, rows, at, depth=self.depth)

    def rows(self) -> list[tuple[str, str]]:
        scales, failed = self.log_alphas, sum(not outcome.ok for outcome in self.outcomes)
        return [
            ("depth", str(self.depth)),
            ("scales", f"{len(scales)}, log alpha from {max(scales):.4g} to {min(scales):.4g}"),
            ("worst residual", f"{np.fmax.reduce(self.residual):.2g}"),
            ("worst kkt", f"{np.fmax.reduce(self.kkt):.2g}"),
            ("worst error", f"{np.fmax.reduce(self.error):.2g}"),
            ("factorizations", str(int(self.iterations.sum()))),
            ("failed", str(failed)),
        ]


@door
@named_as_given
def interpolate_path(
    X: ArrayLike | Regression,
    y: ArrayLike | None = None,
    depth: int = 2,
    *,
    log_alphas: ArrayLike,
    shape: ArrayLike | None = None,
    tilt: ArrayLike | None = None,
    measure: Callable[[Solution], Any] | None = None,
    max_seconds: float | None = None,
    progress: Any = None,
) -> Any:
    """The minimiser of Q at every scale in `log_alphas`, each started from its neighbour.

    A scale that fails is recorded in `outcomes` with NaN in its row.

    Parameters
    ----------
    X
        The samples, one row each, or a problem instead of X and y.
    y
        One label per sample.
    depth
        The power D of Q.
    log_alphas
        The natural logarithms of the scales, in any order.
    shape
        The vector w0 of Q; None stands for ones.
    tilt
        The tilt of Q, the same at every scale: for depth 2 that of starts whose quotient w+/w- is
        the same at every scale.
    measure
        A function of a Solution. Then only its value at each solution is kept, and a list of
        these values is returned, so that a long path needs little memory.
    max_seconds
        After this time the scales that are left fail; None sets no limit.
    progress
        True shows a bar, False none; None shows one in an interactive session if this takes more
        than two seconds. Or a function of the fraction done and a short text.

    Returns
    -------
    InterpolationPath or list
        The minimisers, or the value of `measure` for each.

    Examples
    --------
    >>> import penchant
    >>> path = penchant.solvers.interpolate_path([[1.0, 2.0]], [2.0], log_alphas=[3.0, -9.0])
    >>> path.beta.round(3)
    array([[0.4, 0.8],
           [0. , 1. ]])
    """
    given, labels, depth = unpacked(Regression, X, y, depth, default=2)
    rows, targets = regression_rows(given, labels)
    # sparse rows are wide: so many vectors of their length would not fit
    together = 1 if isinstance(rows, SparseRows) else TOGETHER
    scales = finite_array("log_alphas", log_alphas, ndim=1)
    shape, tilt = start_shape(shape), tilt_or_none(tilt)
    pair = Q(depth, log_alpha=float(scales.max()), shape=shape, tilt=tilt)
    must_fit(pair, rows.shape[1])
    order = np.argsort(-scales)
    results: list[Any] = [None] * len(scales)
    telling = reporting(checked(progress), "interpolate_path")
    with one_blas_thread(), limited(max_seconds), telling as report:
        units = units_of(rows, targets, scales=True)
        if units is not None:
            rows, targets = units.of_rows(rows), units.of_targets(targets)
        shift = 0.0 if units is None else units.log_size
        powers = 0 if units is None else units.rows + units.predictor
        at, given = reduce(rows, targets), Given(rows, targets, powers)
        levels = pair.depth * scales[order] - shift - np.log(at.scale)
        ends = zip(order, continuation.follow(pair, at, levels), strict=True)
        for batch in iter(lambda: list(itertools.islice(ends, together)), []):
            if report is not None:
                ended = sum(result is not None for result in results)
                report(ended / len(scales), f"{ended} of {len(scales)} scales")
            pairs = [pair.at_scale(float(scales[k])) for k, _ in batch]
            inner = [q if units is None else q.in_units(shift) for q in pairs]
            points = [arrived(q, at, end) for q, (_, end) in zip(inner, batch, strict=True)]
            answers = [posed(given, q, p, at) for q, p in zip(inner, points, strict=True)]
            compute_together([answer for answer in answers if answer is not None])
            for k, (where, _) in enumerate(batch):
                # a path holds no values, so they are computed only if a measure may use them
                valued = measure is not None
                solution = concluded_from(given, inner[k], points[k], answers[k], valued)
                if units is not None:
                    solution = restored(solution, units, pairs[k])
                results[where] = solution if measure is None else measure(solution)
    if measure is not None:
        return results
    numbers = stacked(results, "beta", "dual", "residual", "kkt", "error", "iterations")
    return InterpolationPath(
        pair.depth, scales, outcomes=tuple(s.outcome for s in results), **numbers
    )
