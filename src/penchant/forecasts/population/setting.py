"""What a user asks for: checked, in good units, equal coordinates counted once."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, integer, not_negative, plain_array
from penchant.door import Invalid
from penchant.forecasts.population.equations import ScalarProblem
from penchant.regularizers.norms import L2
from penchant.regularizers.q import Q, SignedPair
from penchant.regularizers.regularizer import Regularizer

QUADRATIC = 30.0  # log mu over the weights from which on Q is a sum of squares to rounding
ASYMMETRY = 1e-9  # of the largest variance
LEAST_VARIANCE = 1e-12  # of the largest: below it eigenvalues are rounding


class GaussianSetting(NamedTuple):
    """A regularizer, and the truth and the deviations of independent features."""

    regularizer: Regularizer
    truth: Array
    deviations: Array

    def counted(self, *columns: Array) -> tuple[Array, Array]:
        """Different columns of values per coordinate, and how often each occurs."""
        values = np.stack(columns)
        if self.regularizer.dimension is not None:
            return values, np.ones(values.shape[1])
        values, number = np.unique(values, axis=1, return_counts=True)
        return values, number.astype(float)


def setting(
    regularizer: Regularizer, dimension: int, truth: ArrayLike, covariance: ArrayLike | None
) -> GaussianSetting:
    """The checked setting, rotated into independent features where the covariance is full."""
    if not isinstance(regularizer, Regularizer):
        raise Invalid(
            f"regularizer must be one of vectors, such as L1() or Q(2, alpha=0.1), got"
            f" {regularizer!r}"
        )
    if not (regularizer.smooth or regularizer.has_prox):
        raise Invalid(f"{regularizer} is not convex: its minimiser has no such prediction")
    dimension = integer("dimension", dimension, least=2)
    planted = finite_array("truth", truth, ndim=1)
    if len(planted) > dimension:
        raise Invalid(f"truth has {len(planted)} weights, more than the {dimension} dimensions")
    if regularizer.dimension not in (None, dimension):
        raise Invalid(f"{regularizer} has {regularizer.dimension} entries, not {dimension}")
    weights = np.zeros(dimension)
    weights[: len(planted)] = planted
    if covariance is None:
        return GaussianSetting(regularizer, weights, np.ones(dimension))
    if plain_array("covariance", covariance).ndim == 2:
        return _rotated(regularizer, weights, finite_array("covariance", covariance, ndim=2))
    variances = finite_array("covariance", covariance, ndim=1)
    if len(variances) != dimension or (variances <= 0).any():
        raise Invalid(
            f"covariance must be {dimension} numbers above zero, the variances of independent"
            " features, or a matrix"
        )
    return GaussianSetting(regularizer, weights, np.sqrt(variances))


def _rotated(regularizer: Regularizer, weights: Array, matrix: Array) -> GaussianSetting:
    dimension = len(weights)
    if matrix.shape != (dimension, dimension):
        raise Invalid(
            f"covariance must have the shape {(dimension, dimension)}, got {matrix.shape}"
        )
    if np.abs(matrix - matrix.T).max() > ASYMMETRY * np.abs(matrix).max():
        raise Invalid("covariance must be a symmetric matrix")
    diagonal = np.diag(matrix)
    if not (matrix - np.diag(diagonal)).any() and (diagonal > 0).all():
        return GaussianSetting(regularizer, weights, np.sqrt(diagonal))
    if not isinstance(regularizer, L2):
        raise Invalid(
            f"{regularizer} is no sum over the eigenvectors of a covariance that is not diagonal,"
            " so that two equations do not describe it: give the variances of independent features,"
            " use L2(), or measure draws"
        )
    root = np.sqrt(np.broadcast_to(regularizer.spread_weights, dimension))
    values, vectors = np.linalg.eigh(matrix / np.outer(root, root))
    if values[0] <= LEAST_VARIANCE * values[-1]:
        raise Invalid(
            f"covariance must be positive definite, its least eigenvalue is {values[0]:.3g} and its"
            f" largest {values[-1]:.3g}"
        )
    return GaussianSetting(L2(), vectors.T @ (root * weights), np.sqrt(values))


def scalar_problem(
    regularizer: Regularizer,
    samples: int,
    dimension: int,
    truth: ArrayLike,
    noise: float,
    covariance: ArrayLike | None,
) -> tuple[ScalarProblem, float]:
    """The scalar problem in units in which the truth or the noise is of order one, and the unit."""
    regularizer, weights, sizes = asked = setting(regularizer, dimension, truth, covariance)
    samples, level = integer("samples", samples, least=1), not_negative("noise", noise)
    if samples >= len(weights):
        raise Invalid(
            f"samples must be below the dimension, got {samples} and {len(weights)}: with as many"
            " samples the rows leave nothing to select"
        )
    unit = max(np.abs(weights * sizes).max(), level / math.sqrt(samples))
    if not 1e-150 < unit < 1e150:
        raise Invalid(
            f"truth and noise must not both be zero, and their squares must be numbers; the largest"
            f" is {unit:.3g}"
        )
    if regularizer.degree is None:
        unit = 1.0
    largest = float(np.abs(weights).max()) / unit
    law = in_range(regularizer.in_units(math.log(unit)), largest)
    (entries, kinds), counts = asked.counted(weights / unit, sizes)
    return ScalarProblem(samples, level / unit, law, entries, kinds, counts), float(unit)


def in_range(law: Regularizer, largest: float) -> Regularizer:
    """The same regularizer, at the scale from which on only rounding changes its prox."""
    if isinstance(law, SignedPair) and isinstance(law, Q):
        over = float(law.log_mu.min()) - QUADRATIC - math.log1p(largest)
        if over > 0:
            return law.at_scale((law.level - over) / law.layers)
    return law
