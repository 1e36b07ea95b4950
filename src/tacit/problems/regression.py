"""Linear regression data, given or drawn from the sparse Gaussian model of W section 4."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array, integer, one_of, real, regression_data
from tacit.records import Record


def frozen(array: Array) -> Array:
    """A copy of `array` that cannot be written to."""
    copy = array.copy()
    copy.setflags(write=False)
    return copy


SQUARED = ("squares", "half squares")


def log_factor(loss: str) -> float:
    """log of what a loss multiplies the sum of squares by."""
    return -math.log(2) if loss == "half squares" else 0.0


def check_test(problem: Any, dimension: int) -> None:
    """A ValueError if the test samples are of another kind or dimension than the problem."""
    who, test = type(problem).__name__, problem.test
    if test is None:
        return
    if type(test) is not type(problem):
        raise ValueError(f"{who}: test must be a {who} too, got {type(test).__name__}")
    if test.dimension != dimension:
        raise ValueError(
            f"{who}: test must have the {dimension} features of the problem, got {test.dimension}"
        )


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Regression(Record):
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
        The standard deviation of what was added to the labels.
    description
        One line that says what the data are.
    recipe
        What a maker needs to draw the same data again.
    loss
        The sum of the squared residuals ("squares") or half of it ("half squares").
    test
        Samples whose loss training records too.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.Regression([[1.0, 2.0], [0.0, 1.0]], [3.0, 1.0], truth=[1.0, 1.0])
    >>> problem.samples, problem.dimension, problem.population_error([1.0, 0.0])
    (2, 2, 1.0)
    """

    X: Array
    y: Array
    truth: Array | None = None
    noise: float | None = None
    description: str = "regression data given as arrays"
    recipe: dict[str, Any] | None = None
    loss: str = dataclasses.field(default="squares", kw_only=True)
    test: Regression | None = dataclasses.field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        X, y = regression_data("Regression", self.X, self.y)
        one_of("Regression", "loss", self.loss, SQUARED)
        check_test(self, X.shape[1])
        object.__setattr__(self, "X", frozen(X))
        object.__setattr__(self, "y", frozen(y))
        if self.truth is not None:
            object.__setattr__(self, "truth", frozen(self._per_feature("truth", self.truth)))
        if self.noise is not None:
            noise = real("Regression", "noise", self.noise, rule="a finite number >= 0")
            if noise < 0:
                raise ValueError(f"Regression: noise must be >= 0, got {noise}")
            object.__setattr__(self, "noise", noise)

    @property
    def log_factor(self) -> float:
        """log of what the sum of squares is multiplied by."""
        return log_factor(self.loss)

    @property
    def samples(self) -> int:
        return self.X.shape[0]

    @property
    def dimension(self) -> int:
        return self.X.shape[1]

    def population_error(self, beta: ArrayLike) -> float:
        """|beta - truth|^2: the error on new Gaussian samples beyond the noise, exactly."""
        if self.truth is None:
            raise ValueError(
                "Regression.population_error: the truth of these data is not known; "
                "give truth= to Regression or use sparse_regression()"
            )
        return float(np.sum((self._per_feature("beta", beta) - self.truth) ** 2))

    def _per_feature(self, name: str, value: ArrayLike) -> Array:
        vector = finite_array("Regression", name, value, ndim=1)
        if len(vector) != self.dimension:
            raise ValueError(
                f"Regression: {name} must have one entry per feature ({self.dimension}), "
                f"got {len(vector)}"
            )
        return vector


def sparse_regression(
    samples: int, dimension: int, *, sparsity: int, noise: float = 0.1, seed: int = 0
) -> Regression:
    """x ~ N(0, I) and y ~ N(<truth, x>, noise^2), with a truth of `sparsity` equal entries.

    W section 4: the non-zero entries are 1/sqrt(sparsity) and the noise variance is 0.01. They
    sit on the first coordinates, which costs nothing because x has no preferred axes.

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

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.sparse_regression(4, 9, sparsity=2, seed=1)
    >>> problem.X.shape, problem.truth[:3].round(4)
    ((4, 9), array([0.7071, 0.7071, 0.    ]))
    """
    who = "sparse_regression"
    samples = integer(who, "samples", samples, least=1)
    dimension = integer(who, "dimension", dimension, least=1)
    sparsity = integer(who, "sparsity", sparsity, least=1)
    seed = integer(who, "seed", seed, least=0)
    if sparsity > dimension:
        raise ValueError(f"{who}: sparsity must be at most dimension={dimension}, got {sparsity}")
    noise = real(who, "noise", noise, rule="a finite number >= 0")
    if noise < 0:
        raise ValueError(f"{who}: noise must be >= 0, got {noise}")

    rng = np.random.default_rng(seed)
    truth = np.zeros(dimension)
    truth[:sparsity] = 1 / np.sqrt(sparsity)
    X = rng.standard_normal((samples, dimension))
    y = X @ truth + noise * rng.standard_normal(samples)
    recipe = {
        "generator": who,
        "samples": samples,
        "dimension": dimension,
        "sparsity": sparsity,
        "noise": noise,
        "seed": seed,
    }
    description = (
        f"{samples} Gaussian samples in dimension {dimension}, truth with {sparsity} entries "
        f"1/sqrt({sparsity}), noise {noise:g}, seed {seed}"
    )
    return Regression(X, y, truth, noise, description, recipe)
