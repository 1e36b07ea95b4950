"""Regression data: given, drawn from a sparse truth, and points on a line."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import (
    Array,
    entries,
    integer,
    integers,
    not_negative,
    one_of,
    regression_data,
)
from penchant.columns import checked_names, names_in
from penchant.description import with_recipe
from penchant.door import CALLER, Invalid, class_name, door, door_as
from penchant.records import Record, assign


def frozen(array: Array) -> Array:
    """A copy of `array` that cannot be written to."""
    copy = array.copy()
    copy.setflags(write=False)
    return copy


SQUARED = ("squares", "half squares")


def log_factor(loss: str) -> float:
    """log of what a loss multiplies the sum of squares by."""
    return -math.log(2) if loss == "half squares" else 0.0


class Samples(Record):
    """Rows `X` with labels `y`, the truth behind them where known, and samples of a `test`."""

    X: Array
    y: Array
    truth: Array | None
    test: Any
    features: tuple[str, ...] | None

    @door_as(class_name)
    def name_columns(self) -> None:
        """Sets `features`, the names given or those of the table X."""
        names = self.features if self.features is not None else names_in(self.X) or None
        assign(self, features=checked_names(names, np.shape(self.X)[1]))
        theirs = getattr(self.test, "features", None)
        if self.features and theirs and self.features != theirs:
            raise Invalid(f"test must have the columns {self.features!r:.80}, got {theirs!r:.80}")

    @door_as(class_name)
    def freeze(self, X: Array, y: Array) -> None:
        """Sets checked arrays; raises for test data of another kind or dimension."""
        test = self.test
        if test is not None and type(test) is not type(self):
            raise Invalid(f"test must be a {CALLER} too, got {type(test).__name__}")
        if test is not None and test.dimension != X.shape[1]:
            rule = f"test must have the {X.shape[1]} features of the problem"
            raise Invalid(f"{rule}, got {test.dimension}")
        assign(self, X=frozen(X), y=frozen(y))
        if self.truth is not None:
            assign(self, truth=frozen(self.per_feature("truth", self.truth)))

    @property
    def samples(self) -> int:
        return self.X.shape[0]

    @property
    def dimension(self) -> int:
        return self.X.shape[1]

    @property
    def design(self) -> Array:
        """The samples as rows, the name that matrix problems have for them too."""
        return self.X

    @door_as(class_name)
    def per_feature(self, name: str, value: ArrayLike) -> Array:
        """`value` as a vector of one number per feature."""
        return entries(name, value, self.dimension, "one entry per feature")


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Regression(Samples):
    """Samples `X` (samples x features) with labels `y`, and the truth behind them where known.

    Parameters
    ----------
    X
        The samples, one row each.
    y
        One label per sample.
    truth
        The predictor that made the labels, where it is known.
    noise
        The standard deviation of the noise in the labels.
    description
        One line that says what the data are.
    loss
        The sum of the squared residuals ("squares") or half of it ("half squares").
    test
        Samples whose loss training records too.
    features
        The names of the columns, one per column of X; those of X if it is a table.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.Regression([[1.0, 2.0], [0.0, 1.0]], [3.0, 1.0], truth=[1.0, 1.0])
    >>> problem.samples, problem.dimension, problem.population_error([1.0, 0.0])
    (2, 2, 1.0)
    """

    X: Array
    y: Array
    truth: Array | None = None
    noise: float | None = None
    description: str = "regression data given as arrays"
    loss: str = dataclasses.field(default="squares", kw_only=True)
    test: Regression | None = dataclasses.field(default=None, kw_only=True)
    features: tuple[str, ...] | None = dataclasses.field(default=None, kw_only=True)

    @door
    def __post_init__(self) -> None:
        X, y = regression_data(self.X, self.y)
        one_of("loss", self.loss, SQUARED)
        self.name_columns()
        self.freeze(X, y)
        if self.noise is not None:
            assign(self, noise=not_negative("noise", self.noise))

    @property
    def log_factor(self) -> float:
        """log of what the sum of squares is multiplied by."""
        return log_factor(self.loss)

    def population_error(self, beta: ArrayLike) -> float:
        """|beta - truth|^2: the error on new Gaussian samples beyond the noise, exactly."""
        if self.truth is None:
            raise ValueError(
                "Regression.population_error: the truth of these data is not known; "
                "give truth= to Regression or use sparse_regression()"
            )
        return float(np.sum((self.per_feature("beta", beta) - self.truth) ** 2))


@with_recipe
@door
def sparse_regression(
    samples: int, dimension: int, *, sparsity: int, noise: float = 0.1, seed: int = 0
) -> Regression:
    """x ~ N(0, I) and y ~ N(<truth, x>, noise^2), with a truth of `sparsity` equal entries.

    As in Woodworth et al. 2020, section 4, the non-zero entries are 1/sqrt(sparsity) and the noise
    variance is 0.01. They are the first coordinates, without loss of generality because x has no
    preferred axes.

    Parameters
    ----------
    samples
        The number of samples.
    dimension
        The number of features.
    sparsity
        The number of non-zero entries of the truth.
    noise
        The standard deviation of the noise.
    seed
        The seed of all random numbers.

    Returns
    -------
    Regression
        With its truth.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(4, 9, sparsity=2, seed=1)
    >>> problem.X.shape, problem.truth[:3].round(4)
    ((4, 9), array([0.7071, 0.7071, 0.    ]))
    """
    samples, dimension, sparsity, seed = _sparse_sizes(samples, dimension, sparsity, seed)
    noise = not_negative("noise", noise)
    rng = np.random.default_rng(seed)
    truth = np.zeros(dimension)
    truth[:sparsity] = 1 / np.sqrt(sparsity)
    X = rng.standard_normal((samples, dimension))
    y = X @ truth + noise * rng.standard_normal(samples)
    description = (
        f"{samples} Gaussian samples in dimension {dimension}, truth with {sparsity} entries "
        f"1/sqrt({sparsity}), noise {noise:g}, seed {seed}"
    )
    return Regression(X, y, truth, noise, description)


@with_recipe
@door
def sparse_recovery(
    samples: int,
    dimension: int,
    *,
    sparsity: int,
    loss: str = "half squares",
    snr: float = 1e8,
    seed: int = 0,
) -> Regression:
    """y = X a + noise with X ~ N(0, 1/samples) and `sparsity` entries of a ~ N(0, 1/dimension).

    Notsawo et al. 2025 have samples=30, dimension=100, sparsity=5. The support is a random set.

    Parameters
    ----------
    samples
        The number of samples.
    dimension
        The number of features.
    sparsity
        The number of non-zero entries of the truth.
    loss
        "half squares", half the sum of the squared residuals as in that work, or "squares".
    snr
        The power of the signal over that of the noise: the noise has the standard deviation |X
        a| / sqrt(samples * snr), and inf leaves the labels clean.
    seed
        The seed of all random numbers.

    Returns
    -------
    Regression
        With its truth.

    References
    ----------
    .. [1] Notsawo et al. (2025), Grokking Beyond the Euclidean Norm of Model Parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> problem = penchant.problems.sparse_recovery(4, 9, sparsity=2, snr=np.inf)
    >>> int(np.count_nonzero(problem.truth)), problem.loss
    (2, 'half squares')
    """
    samples, dimension, sparsity, seed = _sparse_sizes(samples, dimension, sparsity, seed)
    number = isinstance(snr, int | float | np.number) and not isinstance(snr, bool)
    if not (number and snr > 0):
        raise Invalid(f"snr must be a number > 0 (inf for no noise), got {snr!r}")
    snr = float(snr)
    rng = np.random.default_rng(seed)
    truth = np.zeros(dimension)
    support = rng.choice(dimension, sparsity, replace=False)
    truth[support] = rng.standard_normal(sparsity) / math.sqrt(dimension)
    X = rng.standard_normal((samples, dimension)) / math.sqrt(samples)
    signal = X @ truth
    noise = float(np.linalg.norm(signal)) / math.sqrt(samples * snr)
    y = signal + noise * rng.standard_normal(samples)
    description = (
        f"{samples} Gaussian measurements of a vector with {sparsity} of {dimension} entries, "
        f"signal-to-noise ratio {snr:g}, seed {seed}"
    )
    return Regression(X, y, truth, noise, description, loss=loss)


def _sparse_sizes(samples: int, dimension: int, sparsity: int, seed: int) -> list[int]:
    """The same numbers, checked."""
    sizes = integers(samples=samples, dimension=dimension, sparsity=sparsity)
    if sizes[2] > sizes[1]:
        raise Invalid(
            f"sparsity must be at most dimension={dimension}, the number of entries, got "
            f"{sparsity}; lower it or raise dimension"
        )
    return [*sizes, integer("seed", seed, least=0)]


@with_recipe
@door
def zigzag() -> Regression:
    """Five points at which a linear spline bends up and down in turn.

    Their linear spline is a net of least norm, whether biases count in the norm or not.

    Returns
    -------
    Regression
        Five samples of one feature.

    Examples
    --------
    >>> import penchant
    >>> penchant.problems.zigzag().y
    array([ 0.3, -0.6,  0.7, -0.4,  0.5])
    """
    x, y = [-1.0, -0.5, 0.1, 0.5, 1.0], [0.3, -0.6, 0.7, -0.4, 0.5]
    return _points(x, y, "five points whose linear spline bends up and down in turn")


@with_recipe
@door
def plateau() -> Regression:
    """The points (-1, 0), (-0.4, 1), (0.4, 1), (1, 0): two neighbouring bends of the same sign.

    The linear spline and the tent with one bend at 0 have the same total bend, 10/3. Counting
    biases, a bend at t weighs sqrt(1 + t^2), and the tent has the smaller norm.

    Returns
    -------
    Regression
        Four samples of one feature.

    Examples
    --------
    >>> import penchant
    >>> penchant.problems.plateau().y
    array([0., 1., 1., 0.])
    """
    x, y = [-1.0, -0.4, 0.4, 1.0], [0.0, 1.0, 1.0, 0.0]
    return _points(x, y, "four points whose linear spline bends down twice in a row")


@with_recipe
@door
def steep_end() -> Regression:
    """The points (-1, 0), (0.7, 1), (1, 0): one bend, far from 0 and near an end.

    Their linear spline is a net of least norm, biases counted, and small starts do not learn it.

    Returns
    -------
    Regression
        Three samples of one feature.

    Examples
    --------
    >>> import penchant
    >>> penchant.problems.steep_end().X.ravel()
    array([-1. ,  0.7,  1. ])
    """
    return _points([-1.0, 0.7, 1.0], [0.0, 1.0, 0.0], "three points, the last two steep")


def _points(x: list[float], y: list[float], description: str) -> Regression:
    return Regression(np.array(x)[:, None], np.array(y), description=description)
