"""The two classification tasks of source L: the late classifier is the better one, or the worse."""

from __future__ import annotations

import numpy as np

from tacit.arguments import integer
from tacit.problems.classification import Classification
from tacit.problems.population import MajorityCube, WideMargin


def majority(
    samples: int, dimension: int, *, relevant: int = 3, loss: str = "logistic", seed: int = 0
) -> Classification:
    """L, grokking: x uniform on {-1, 1}^dimension, y the majority of its first `relevant` signs.

    The label has a sparse classifier, which the l1 margin finds and the l2 margin does not.

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

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> problem = tacit.majority(9, 5)
    >>> bool((np.sign(problem.X[:, :3].sum(axis=1)) == problem.y).all())
    True
    """
    who = "majority"
    samples, dimension, rng = _drawn(who, samples, dimension, seed)
    population = MajorityCube(dimension, relevant)
    relevant = integer(who, "relevant", relevant, least=1)
    X = rng.integers(0, 2, (samples, dimension), dtype=np.int8).astype(np.float64)
    X *= 2
    X -= 1
    y = np.sign(X[:, :relevant].sum(axis=1))
    truth = np.zeros(dimension)
    truth[:relevant] = 1 / np.sqrt(relevant)
    recipe = {
        "generator": who,
        "samples": samples,
        "dimension": dimension,
        "seed": seed,
        "relevant": relevant,
        "loss": loss,
    }
    description = (
        f"{samples} corners of the cube {{-1, 1}}^{dimension} with the majority of "
        f"{relevant} signs, seed {seed}"
    )
    return Classification(X, y, loss, truth, description, recipe, population)


def wide_margin(
    samples: int, dimension: int, *, gamma: float, loss: str = "logistic", seed: int = 0
) -> Classification:
    """L, misgrokking: Gaussian points on two sides of a plane, a gap `gamma` apart.

    The label has a dense classifier of large l2 margin, which the l1 margin does not find.

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

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.wide_margin(5, 6, gamma=0.2)
    >>> problem.X.shape, problem.loss
    ((5, 6), 'logistic')
    """
    who = "wide_margin"
    samples, dimension, rng = _drawn(who, samples, dimension, seed)
    population = WideMargin(rng.standard_normal(dimension), gamma)
    truth = population.direction
    X = rng.standard_normal((samples, dimension))
    y = np.where(X @ truth >= 0, 1.0, -1.0)
    push = population.gamma / 2 * truth
    for row, label in zip(X, y, strict=True):  # an outer product would be as large as X
        row += label * push
    recipe = {
        "generator": who,
        "samples": samples,
        "dimension": dimension,
        "gamma": population.gamma,
        "seed": seed,
        "loss": loss,
    }
    description = (
        f"{samples} Gaussian points in dimension {dimension} on two sides of a plane, "
        f"gap {population.gamma:g}, seed {seed}"
    )
    return Classification(X, y, loss, truth, description, recipe, population)


def _drawn(
    who: str, samples: int, dimension: int, seed: int
) -> tuple[int, int, np.random.Generator]:
    samples = integer(who, "samples", samples, least=1)
    dimension = integer(who, "dimension", dimension, least=1)
    return samples, dimension, np.random.default_rng(integer(who, "seed", seed, least=0))
