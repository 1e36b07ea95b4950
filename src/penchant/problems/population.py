"""Two tasks of Lyu et al. 2023, and how often a linear classifier is right on new data."""

from __future__ import annotations

import abc
import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import (
    Array,
    entries,
    integer,
    integers,
    not_negative,
    real_array,
    unit_vector,
)
from penchant.description import with_recipe
from penchant.door import Invalid, door, door_as
from penchant.problems.classification import Classification
from penchant.records import Record, assign

SHEVTSOVA = 0.56  # Berry-Esseen's constant for summands of different laws, proved in 2010
MOST_EXACT = 20  # coordinates whose 2^k signs are written out


@door
def margin_accuracy(margins: ArrayLike) -> Array:
    """The share of positive margins along the last axis; a tie, a margin of 0, counts one half.

    Parameters
    ----------
    margins
        y_n f(x_n) of the samples, along the last axis.

    Returns
    -------
    array
        The accuracy, one for every row of margins.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> float(penchant.measures.margin_accuracy(np.array([2.0, -1.0, 0.0, 3.0])))
    0.625
    """
    values = real_array("margins", margins, ndim=None)
    if np.isnan(values).any():
        where = tuple(int(i) for i in np.argwhere(np.isnan(values))[0])
        raise Invalid(f"margins must not be NaN, got one at index {where}")
    return positive_share(values)


def positive_share(margins: Array) -> Array:
    """The same for margins of a run, which are NaN where it diverged."""
    return (np.sign(margins).mean(axis=-1) + 1) / 2


class Population(Record, abc.ABC):
    """A distribution of labelled points; its accuracies are computed without sampling."""

    @abc.abstractmethod
    def accuracy(self, beta: ArrayLike) -> float:
        """The probability that sgn<beta, x> is the label of x; a tie counts one half."""

    def __str__(self) -> str:
        """One line, since it is shown as a field of a problem."""
        return ", ".join([type(self).__name__, *(f"{name} {text}" for name, text in self.rows())])


@dataclasses.dataclass(frozen=True, repr=False)
class MajorityCube(Population):
    """x uniform on {-1, 1}^dimension, labelled by the majority of its first `relevant` signs.

    The signs of `exact` coordinates are enumerated: the relevant ones, and of the others those with
    the largest weights. The sum of the others is taken as Gaussian, which errs by at most `error`;
    nothing is left to it where at most `exact` weights matter.
    """

    dimension: int
    relevant: int = 3
    exact: int = 15

    @door
    def __post_init__(self) -> None:
        sizes = dataclasses.asdict(self)
        dimension, relevant, exact = integers(**sizes)
        if relevant % 2 == 0:
            raise Invalid(f"relevant must be odd, got {relevant}; an even vote can tie")
        if relevant > dimension:
            raise Invalid(f"relevant must be at most dimension={dimension}, got {relevant}")
        if not relevant <= exact <= MOST_EXACT:
            raise Invalid(
                f"exact must be between relevant={relevant} and {MOST_EXACT}, got {exact}"
            )

    def accuracy(self, beta: ArrayLike) -> float:
        sums, spread, _ = self._sums(beta)
        if spread == 0:
            return float(positive_share(sums))
        from scipy.special import ndtr

        return float(np.mean(ndtr(sums / spread)))

    def error(self, beta: ArrayLike) -> float:
        """A bound on how far `accuracy` can be from the truth; 0 where it is exact.

        For every enumerated sum the smaller of two: Berry and Esseen's bound on the distance
        from a Gaussian, and Hoeffding's on the chance that the others overrule the sum.
        """
        sums, spread, thirds = self._sums(beta)
        if spread == 0:
            return 0.0
        uniform = SHEVTSOVA * thirds / spread**3
        return float(np.mean(np.minimum(uniform, np.exp(-((sums / spread) ** 2) / 2))))

    @door_as("MajorityCube")
    def _sums(self, beta: ArrayLike) -> tuple[Array, float, float]:
        """y <beta, x> over the enumerated signs; the l2 norm and the l3 norm cubed of the rest."""
        weights = _weights(beta, self.dimension)
        votes = _signs(self.relevant)
        votes = votes[votes.sum(axis=1) > 0]  # x and -x are right or wrong together
        others = np.abs(weights[self.relevant :])
        others = others[others > 0]
        large_count = min(self.exact - self.relevant, len(others))
        if 0 < large_count < len(others):
            others = np.partition(others, len(others) - large_count)
        rest, large = others[: len(others) - large_count], others[len(others) - large_count :]
        ours = votes @ weights[: self.relevant]
        sums = np.add.outer(ours, _signs(large_count) @ large).ravel()
        rounding = 4 * np.finfo(float).eps * (large.sum() + np.abs(weights[: self.relevant]).sum())
        sums[np.abs(sums) <= rounding] = 0.0  # a tie up to rounding
        return sums, float(np.sqrt(rest @ rest)), float((rest**3).sum())


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class WideMargin(Population):
    """Gaussian z labelled by the side of a plane it is on, and pushed away from it by gamma/2.

    y = sgn<z, w> for the unit vector w along `direction`, and x = z + (gamma/2) y w.
    """

    direction: Array
    gamma: float

    @door
    def __post_init__(self) -> None:
        direction = unit_vector("direction", self.direction)
        direction.setflags(write=False)
        assign(self, direction=direction, gamma=not_negative("gamma", self.gamma))

    @door_as("WideMargin")
    def accuracy(self, beta: ArrayLike) -> float:
        from scipy.special import ndtr, owens_t

        weights = _weights(beta, len(self.direction))
        along = float(weights @ self.direction)
        across = float(np.linalg.norm(weights - along * self.direction))
        length = math.hypot(along, across)
        if length == 0:
            return 0.5
        # y <beta, x> / |beta| = c |g| + s h + c gamma/2 with c, s the cosine and the sine and
        # g, h independent N(0, 1): a quadrant of two correlated Gaussians, Owen's T
        shift = along / length * self.gamma / 2
        slope = along / across if across > 0 else math.copysign(math.inf, along)
        return float(min(max(ndtr(shift) + 2 * owens_t(shift, slope), 0.0), 1.0))


def _weights(beta: ArrayLike, dimension: int) -> Array:
    """`beta` with one entry per feature, its largest brought to size one."""
    weights = entries("beta", beta, dimension, "one entry per feature")
    size = float(np.abs(weights).max())
    return weights / size if size > 0 else weights


def _signs(count: int) -> Array:
    """All rows of {-1, 1}^count; one empty row for none."""
    bits = np.arange(2**count)[:, None] >> np.arange(count)
    return np.asarray(2.0 * (bits & 1) - 1, dtype=np.float64)


@with_recipe
@door
def majority(
    samples: int, dimension: int, *, relevant: int = 3, loss: str = "logistic", seed: int = 0
) -> Classification:
    """x uniform on {-1, 1}^dimension, y the majority of its first `relevant` signs.

    The task on which Lyu et al. 2023 show grokking. The label has a sparse classifier, which the l1
    margin finds and the l2 margin does not.

    Parameters
    ----------
    samples
        The number of samples.
    dimension
        The number of features.
    relevant
        The number of signs that vote, odd.
    loss
        "logistic" or "exp", as in Classification.
    seed
        The seed of all random numbers.

    Returns
    -------
    Classification
        With its truth and population.

    References
    ----------
    .. [1] Lyu et al. (2023), Dichotomy of Early and Late Phase Implicit Biases Can Provably Induce
       Grokking.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> problem = penchant.problems.majority(9, 5)
    >>> bool((np.sign(problem.X[:, :3].sum(axis=1)) == problem.y).all())
    True
    """
    samples, dimension, rng = _drawn(samples, dimension, seed)
    population = MajorityCube(dimension, relevant)
    relevant = integer("relevant", relevant, least=1)
    X = rng.integers(0, 2, (samples, dimension), dtype=np.int8).astype(np.float64)
    X *= 2
    X -= 1
    y = np.sign(X[:, :relevant].sum(axis=1))
    truth = np.zeros(dimension)
    truth[:relevant] = 1 / np.sqrt(relevant)
    description = (
        f"{samples} corners of the cube {{-1, 1}}^{dimension} with the majority of "
        f"{relevant} signs, seed {seed}"
    )
    return Classification(X, y, loss, truth, description, population)


@with_recipe
@door
def wide_margin(
    samples: int, dimension: int, *, gamma: float, loss: str = "logistic", seed: int = 0
) -> Classification:
    """Gaussian points on two sides of a plane, a gap `gamma` apart.

    The task on which Lyu et al. 2023 show misgrokking. The label has a dense classifier of large l2
    margin, which the l1 margin does not find.

    Parameters
    ----------
    samples
        The number of samples.
    dimension
        The number of features.
    gamma
        The gap.
    loss
        "logistic" or "exp", as in Classification.
    seed
        The seed of all random numbers.

    Returns
    -------
    Classification
        With its truth and population.

    References
    ----------
    .. [1] Lyu et al. (2023), Dichotomy of Early and Late Phase Implicit Biases Can Provably Induce
       Grokking.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.wide_margin(5, 6, gamma=0.2)
    >>> problem.X.shape, problem.loss
    ((5, 6), 'logistic')
    """
    samples, dimension, rng = _drawn(samples, dimension, seed)
    population = WideMargin(rng.standard_normal(dimension), gamma)
    truth = population.direction
    X = rng.standard_normal((samples, dimension))
    y = np.where(X @ truth >= 0, 1.0, -1.0)
    push = population.gamma / 2 * truth
    for row, label in zip(X, y, strict=True):  # an outer product would be as large as X
        row += label * push
    description = (
        f"{samples} Gaussian points in dimension {dimension} on two sides of a plane, "
        f"gap {population.gamma:g}, seed {seed}"
    )
    return Classification(X, y, loss, truth, description, population)


def _drawn(samples: int, dimension: int, seed: int) -> tuple[int, int, np.random.Generator]:
    samples, dimension = integers(samples=samples, dimension=dimension)
    return samples, dimension, np.random.default_rng(integer("seed", seed, least=0))
