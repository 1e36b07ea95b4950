"""The test error of a matrix that is selected by Gaussian measurements, before there are any.

The equations are those of `equations`, with the matrix as one coordinate: the minimiser behaves
like the prox of k R at B* + tau Z with a Gaussian matrix Z, and the prox of a function of singular
values changes these alone. With the singular vectors u, v and sizes s of B* + tau Z,

    |B - B*|^2 = sum b^2 - 2 sum b <u, B* v> + |B*|^2,   <Z, B> = sum b <u, Z v>,   b = prox(s),

so that one decomposition serves every k. The expectation is a mean over draws of Z, the same at
every tau; slopes in log tau are central differences.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, integer, not_negative
from penchant.door import Invalid, door
from penchant.forecasts.population.equations import (
    GaussianProblem,
    ScalarState,
    Sums,
    solved,
)
from penchant.forecasts.population.images import prox
from penchant.forecasts.population.setting import in_range
from penchant.regularizers.norms import Linf
from penchant.regularizers.regularizer import Regularizer
from penchant.regularizers.spectral import SpectralFunction

ENTRIES, FEWEST = 40_000, 24  # of all draws of Z together; draws
STEP = 1e-4  # in log tau


@dataclasses.dataclass(eq=False)
class SpectralProblem(GaussianProblem):
    """That of a function of singular values."""

    law: Regularizer
    truth: Array
    least: ClassVar[float] = -12.0  # the error is a difference, known to rounding of the truth

    def __post_init__(self) -> None:
        size, energy = self.truth.size, self.energy
        half = np.random.default_rng(0).normal(
            size=(max(FEWEST, ENTRIES // size) // 2, *self.truth.shape)
        )
        self.draws = np.concatenate([half, -half])
        along = np.tensordot(self.draws, self.truth, axes=2) / math.sqrt(energy or 1.0)
        known = [(self.draws**2).sum(axis=(1, 2)) - size, along, along**2 - 1]
        design = np.vstack([np.ones(len(self.draws)), *known[: 3 if energy else 1]])
        # means are intercepts of a regression on three quantities whose means are known
        self.weights = np.linalg.pinv(design.T)[0]
        self.spectra = functools.lru_cache(maxsize=4)(self._spectra)

    @property
    def energy(self) -> float:
        return float((self.truth**2).sum())

    def sums(self, state: ScalarState) -> Sums:
        values, by_k = self._at(state.log_tau, state.k)
        above, below = (self._at(state.log_tau + step, state.k)[0] for step in (STEP, -STEP))
        slopes = np.stack([(above - below) / (2 * STEP) @ self.weights, by_k @ self.weights])
        error, overlap = values @ self.weights
        return Sums(float(error), float(overlap), slopes.T, np.cov(values))

    def _at(self, log_tau: float, k: float) -> tuple[Array, Array]:
        """Both sums of every draw, and their slopes in log k."""
        sizes, along, across = self.spectra(log_tau)
        b, s, p = prox(self.law, sizes, np.full(sizes.shape, k))
        moves = -p * s * k
        error = (b * (b - 2 * along)).sum(axis=1) + self.energy
        slopes = [2 * (b - along) * moves, across * moves]
        return np.stack([error, (b * across).sum(axis=1)]), np.array(slopes).sum(axis=2)

    def _spectra(self, log_tau: float) -> tuple[Array, Array, Array]:
        """Singular values of B* + tau Z, and the parts of B* and Z along their vectors."""
        tau = math.exp(log_tau)
        left, sizes, right = np.linalg.svd(self.truth + tau * self.draws, full_matrices=False)
        along = np.einsum("nik,ij,nkj->nk", left, self.truth, right, optimize=True)
        across = np.einsum("nik,nij,nkj->nk", left, self.draws, right, optimize=True)
        return sizes, along, across


@door
def population_matrix_error(
    regularizer: SpectralFunction, *, samples: int, truth: ArrayLike, noise: float = 0.0
) -> float:
    """The population error of the interpolating matrix, for Gaussian measurements, without data.

    The measurement matrices have independent entries of variance one.

    Parameters
    ----------
    regularizer
        Nuclear(), Frobenius() or Schatten(Q(...)).
    samples
        The number of measurements, below that of entries.
    truth
        The planted matrix.
    noise
        Standard deviation of the measurements' noise.

    Returns
    -------
    float
        The error, the sum of squares over the entries.

    References
    ----------
    .. [1] Thrampoulidis, Oymak and Hassibi (2015), Regularized Linear Regression: A Precise
       Analysis of the Estimation Error.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> flat = penchant.forecasts.population_matrix_error(
    ...     penchant.regularizers.Frobenius(), samples=50, truth=np.ones((10, 10)) / 10, noise=0.1
    ... )
    >>> round(flat, 6)  # (1 - N/d) |B*|^2 + noise^2 N/(d - N) for d entries
    0.51
    """
    if not isinstance(regularizer, SpectralFunction):
        raise Invalid(
            "regularizer must be one of singular values, such as Nuclear() or Schatten(Q(2,"
            f" alpha=0.1)), got {regularizer!r}"
        )
    law = regularizer.law
    if not (law.smooth or law.has_prox) or isinstance(law, Linf):
        raise Invalid(f"{regularizer!r} is no sum over singular values: it has no such prediction")
    planted = finite_array("truth", truth, ndim=2)
    samples, level = integer("samples", samples, least=1), not_negative("noise", noise)
    if samples >= planted.size:
        raise Invalid(
            f"samples must be below the number of entries, got {samples} and {planted.size}: with"
            " as many measurements nothing is left to select"
        )
    unit = max(float(np.abs(planted).max()), level / math.sqrt(samples))
    if not 1e-150 < unit < 1e150:
        raise Invalid(
            "truth and noise must not both be zero, and their squares must be numbers; the largest"
            f" is {unit:.3g}"
        )
    if law.degree is None:
        unit = 1.0
    size = float(np.linalg.norm(planted / unit))
    law = in_range(law.in_units(math.log(unit)), size)
    problem = SpectralProblem(samples, level / unit, law, planted / unit)
    state = solved(problem)
    return 0.0 if state is None else problem.sums(state).error * unit**2
