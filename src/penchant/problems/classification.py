"""Binary classification data, given, drawn, or constructed (Moroshko et al. 2020)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from penchant.arguments import Array, classification_data, integer, integers, one_of
from penchant.description import with_recipe
from penchant.door import door
from penchant.problems.regression import Samples

if TYPE_CHECKING:
    from penchant.problems.population import Population

LOSSES = ("exp", "logistic")


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Classification(Samples):
    """Samples `X` (samples x features) with labels `y` of -1 and +1, and the loss to minimise.

    Parameters
    ----------
    X
        The samples, one row each.
    y
        The labels, -1 or +1.
    loss
        The mean of exp(-y f) ("exp") or of log(1 + exp(-y f)) ("logistic").
    truth
        The direction that made the labels, where it is known.
    description
        One line that says what the data are.
    population
        The distribution of new samples, where it is known.
    test
        Samples whose loss and accuracy training records too.
    features
        The names of the columns, one per column of X; those of X if it is a table.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.Classification([[1.0, 2.0], [-1.0, 0.5]], [1, -1], loss="logistic")
    >>> problem.samples, problem.dimension, problem.loss
    (2, 2, 'logistic')
    """

    X: Array
    y: Array
    loss: str = "exp"
    truth: Array | None = None
    description: str = "classification data given as arrays"
    population: Population | None = None
    test: Classification | None = dataclasses.field(default=None, kw_only=True)
    features: tuple[str, ...] | None = dataclasses.field(default=None, kw_only=True)

    @door
    def __post_init__(self) -> None:
        X, y = classification_data(self.X, self.y)
        one_of("loss", self.loss, LOSSES)
        self.name_columns()
        self.freeze(X, y)

    @property
    def signed_rows(self) -> Array:
        """y_n x_n: a predictor's margins are its products with these rows."""
        return self.X * self.y[:, None]


#: y_n x_n of the three points that stand for a panel of Moroshko et al. 2020, who print no data:
#: these are constructed to show what they describe
THREE_POINTS = {
    "3b": ([1.5, 2, -0.5], [1.5, 0.5, 1.5], [2, 1.5, 2]),
    "3c": ([0, 3, 1], [1, 1, 0.5], [1, 2.5, -1]),
    "3d": ([1.3, 1.6, 2], [1.6, 0.6, 1.9], [1.9, 0.8, 1.4]),
    "4a": ([0.7, 1.6, 1.2], [1.6, 1.4, 1.2], [1.8, 1.6, -0.1]),
    "4b": ([1.3, 0.9, 0.3], [0.5, 0.8, 1.1], [1.5, 0.5, 0.3]),
}


@with_recipe
@door
def three_points(name: str, *, loss: str = "exp") -> Classification:
    """The three points in R^3 constructed for a panel of the figures of Moroshko et al. 2020.

    Parameters
    ----------
    name
        The panel of Figures 3 and 4: 3b, 3c, 3d, 4a or 4b.
    loss
        "exp" or "logistic", as in Classification.

    Returns
    -------
    Classification
        Three samples with three features.

    References
    ----------
    .. [1] Moroshko et al. (2020), Implicit Bias in Deep Linear Classification: Initialization Scale
       vs Training Accuracy.

    Examples
    --------
    >>> import penchant
    >>> penchant.problems.three_points("3b").X.shape
    (3, 3)
    """
    rows = THREE_POINTS[one_of("name", name, THREE_POINTS)]
    description = f"three constructed points in R^3 for panel {name}"
    return Classification(np.array(rows), np.ones(3), loss, None, description)


@with_recipe
@door
def separable_points(
    samples: int, dimension: int, *, margin: float = 0.0, loss: str = "exp", seed: int = 0
) -> Classification:
    """Gaussian samples labelled by a random unit direction, none closer to it than `margin`.

    Points that fall inside the margin are moved out along the direction.

    Parameters
    ----------
    samples
        The number of samples.
    dimension
        The number of features.
    margin
        The least distance from the plane.
    loss
        "exp" or "logistic", as in Classification.
    seed
        The seed of all random numbers.

    Returns
    -------
    Classification
        With its truth.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.separable_points(5, 3, margin=0.5)
    >>> bool((problem.y * (problem.X @ problem.truth) > 0.4999).all())
    True
    """
    samples, dimension = integers(samples=samples, dimension=dimension)
    rng = np.random.default_rng(integer("seed", seed, least=0))
    truth = rng.standard_normal(dimension)
    truth /= np.linalg.norm(truth)
    X = rng.standard_normal((samples, dimension))
    height = X @ truth
    y = np.where(height >= 0, 1.0, -1.0)
    X += np.outer(y * np.maximum(margin - np.abs(height), 0.0), truth)
    description = f"{samples} Gaussian samples in dimension {dimension} on two sides of a plane"
    return Classification(X, y, loss, truth, f"{description}, seed {seed}")


@with_recipe
@door
def uniform_points(samples: int = 10, dimension: int = 10, *, seed: int = 0) -> Classification:
    """Points with all coordinates U(0, 1), all of one class.

    Moroshko et al. 2020, figure 8(a).

    Parameters
    ----------
    samples
        The number of samples.
    dimension
        The number of features.
    seed
        The seed of all random numbers.

    Returns
    -------
    Classification
        With the exponential loss.

    Examples
    --------
    >>> import penchant
    >>> penchant.problems.uniform_points(3, 2).X.round(2)
    array([[0.64, 0.27],
           [0.04, 0.02],
           [0.81, 0.91]])
    """
    X = np.random.default_rng(seed).uniform(0, 1, (samples, dimension))
    return _one_class(X, f"{samples} points U(0, 1)^{dimension}", seed)


@with_recipe
@door
def spiked_points(samples: int = 4, dimension: int = 10, *, seed: int = 0) -> Classification:
    """Points with first coordinate 1 and the others U(0, 0.5), all of one class.

    Moroshko et al. 2020, figure 8(b).

    Parameters
    ----------
    samples
        The number of samples.
    dimension
        The number of features.
    seed
        The seed of all random numbers.

    Returns
    -------
    Classification
        With the exponential loss.

    Examples
    --------
    >>> import penchant
    >>> penchant.problems.spiked_points(2, 3).X.round(2)
    array([[1.  , 0.13, 0.02],
           [1.  , 0.41, 0.46]])
    """
    X = np.random.default_rng(seed).uniform(0, 0.5, (samples, dimension))
    X[:, 0] = 1
    return _one_class(X, f"{samples} points (1, U(0, 0.5), ...)", seed)


def _one_class(X: Array, description: str, seed: int) -> Classification:
    return Classification(X, np.ones(len(X)), "exp", None, f"{description}, seed {seed}")
