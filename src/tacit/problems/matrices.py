"""Generators of matrix problems: low-rank, commuting measurements, multiplication tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arguments import Array, integer, positive, real
from tacit.problems.matrix_problem import Completion, MatrixProblem, Sensing

__all__ = [
    "Completion",
    "MatrixProblem",
    "Sensing",
    "commuting_sensing",
    "gaussian_sensing",
    "low_rank_completion",
    "multiplication_table",
]


def low_rank_completion(
    samples: int, dimension: int, *, rank: int, loss: str = "squares", seed: int = 0
) -> Completion:
    """`samples` random entries of u v^T with Gaussian factors u, v (dimension x rank).

    W Appendix A, Figure 5, has samples=60, dimension=10, rank=1.

    Parameters
    ----------
    samples
        The number of seen entries.
    dimension
        The number of rows and of columns.
    rank
        The rank of the truth.
    loss
        "squares" or "half squares", as in Completion.
    seed
        The seed of all random numbers.

    Returns
    -------
    Completion
        With its truth.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> problem = tacit.low_rank_completion(samples=9, dimension=4, rank=1)
    >>> problem.samples, int(problem.hidden.sum()), int(np.linalg.matrix_rank(problem.truth))
    (9, 7, 1)
    """
    who = "low_rank_completion"
    recipe, rng = _recipe(who, samples, dimension, rank, seed)
    recipe["loss"] = loss
    if recipe["samples"] > dimension**2:
        raise ValueError(
            f"{who}: samples must be at most dimension^2 = {dimension**2}, the number of entries, "
            f"got {samples}"
        )
    truth = _low_rank(rng, recipe)
    places = np.sort(rng.choice(truth.size, recipe["samples"], replace=False))
    entries = np.stack(np.unravel_index(places, truth.shape), axis=1)
    description = (
        f"{samples} entries of a {dimension} x {dimension} matrix of rank {rank}, seed {seed}"
    )
    values = truth.ravel()[places]
    return Completion(truth.shape, entries, values, truth, False, description, recipe, loss=loss)


def gaussian_sensing(
    samples: int, dimension: int, *, rank: int, loss: str = "squares", seed: int = 0
) -> Sensing:
    """`samples` Gaussian measurements of unit expected Frobenius norm of a low-rank matrix.

    Parameters
    ----------
    samples
        The number of measurements.
    dimension
        The number of rows and of columns.
    rank
        The rank of the truth.
    loss
        "squares" or "half squares", as in Sensing.
    seed
        The seed of all random numbers.

    Returns
    -------
    Sensing
        With its truth.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.gaussian_sensing(samples=5, dimension=3, rank=1)
    >>> problem.measurements.shape
    (5, 3, 3)
    """
    who = "gaussian_sensing"
    recipe, rng = _recipe(who, samples, dimension, rank, seed)
    recipe["loss"] = loss
    truth = _low_rank(rng, recipe)
    measurements = rng.standard_normal((recipe["samples"], *truth.shape)) / recipe["dimension"]
    y = measurements.reshape(len(measurements), -1) @ truth.ravel()
    description = (
        f"{samples} Gaussian measurements of a {dimension} x {dimension} matrix of rank {rank}, "
        f"seed {seed}"
    )
    return Sensing(measurements, y, truth, description, recipe, loss=loss)


def commuting_sensing(
    samples: int, dimension: int, *, rank: int = 1, rotated: bool = True, seed: int = 0
) -> Sensing:
    """Measurements B diag(x_n) B^T that all commute, of a truth of `rank` in the same basis.

    x_n ~ N(0, I / dimension); the spectrum of the truth has `rank` entries of either sign and
    squares of sum one.

    Parameters
    ----------
    samples
        The number of measurements.
    dimension
        The number of rows and of columns.
    rank
        The rank of the truth.
    rotated
        B is a random orthogonal basis; with False it is the identity.
    seed
        The seed of all random numbers.

    Returns
    -------
    Sensing
        With its truth.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> problem = tacit.commuting_sensing(samples=2, dimension=3, rank=1)
    >>> one, two = problem.measurements
    >>> bool(np.allclose(one @ two, two @ one))
    True
    """
    who = "commuting_sensing"
    if not isinstance(rotated, bool | np.bool_):
        raise ValueError(f"{who}: rotated must be True or False, got {rotated!r}")
    recipe, rng = _recipe(who, samples, dimension, rank, seed)
    recipe["rotated"] = bool(rotated)
    d = recipe["dimension"]
    spectra = rng.standard_normal((recipe["samples"], d)) / np.sqrt(d)
    spectrum = np.zeros(d)
    spectrum[: recipe["rank"]] = rng.choice([-1.0, 1.0], recipe["rank"]) / np.sqrt(recipe["rank"])
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0] if rotated else np.eye(d)
    measurements = (basis * spectra[:, None, :]) @ basis.T
    truth = (basis * spectrum) @ basis.T
    kind = "commuting" if rotated else "diagonal"
    description = (
        f"{samples} {kind} measurements of a {dimension} x {dimension} matrix of rank {rank}, "
        f"seed {seed}"
    )
    return Sensing(measurements, spectra @ spectrum, truth, description, recipe)


def multiplication_table(
    dimension: int, *, fraction: float, mirrored: bool = True, seed: int = 0
) -> Completion:
    """A share of the entries of the table i * j / dimension^2 for i, j = 1 .. dimension.

    The table has rank one and its largest entry is 1. The seen share is drawn among the
    unordered pairs {i, j}, because for a symmetric model (i, j) determines (j, i). The test
    error is over the pairs of which neither entry was seen.

    Parameters
    ----------
    dimension
        The number of rows and of columns.
    fraction
        The share that is seen.
    mirrored
        Both entries of a seen pair are data; with False only the one with i <= j.
    seed
        The seed of all random numbers.

    Returns
    -------
    Completion
        With its truth.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.multiplication_table(dimension=4, fraction=0.5)
    >>> (16 * problem.truth).astype(int).tolist()
    [[1, 2, 3, 4], [2, 4, 6, 8], [3, 6, 9, 12], [4, 8, 12, 16]]
    """
    who = "multiplication_table"
    dimension = integer(who, "dimension", dimension, least=2)
    seed = integer(who, "seed", seed, least=0)
    fraction = positive(who, "fraction", fraction)
    if fraction > 1:
        raise ValueError(f"{who}: fraction must be at most 1, got {fraction}")
    if not isinstance(mirrored, bool | np.bool_):
        raise ValueError(f"{who}: mirrored must be True or False, got {mirrored!r}")
    steps = np.arange(1.0, dimension + 1)
    truth = np.outer(steps, steps) / dimension**2
    pairs = np.stack(np.triu_indices(dimension), axis=1)
    count = max(1, round(real(who, "fraction", fraction) * len(pairs)))
    seen = pairs[np.sort(np.random.default_rng(seed).choice(len(pairs), count, replace=False))]
    if mirrored:
        seen = np.concatenate([seen, seen[seen[:, 0] < seen[:, 1]][:, ::-1]])
    recipe = {
        "generator": who,
        "dimension": dimension,
        "fraction": fraction,
        "seed": seed,
        "mirrored": bool(mirrored),
    }
    description = (
        f"{count} of {len(pairs)} products in the {dimension} x {dimension} multiplication table "
        f"over {dimension}^2, seed {seed}"
    )
    values = truth[seen[:, 0], seen[:, 1]]
    return Completion(truth.shape, seen, values, truth, True, description, recipe)


def _recipe(
    who: str, samples: int, dimension: int, rank: int, seed: int
) -> tuple[dict[str, Any], np.random.Generator]:
    """The checked arguments and the generator they seed."""
    dimension = integer(who, "dimension", dimension, least=1)
    rank = integer(who, "rank", rank, least=1)
    samples = integer(who, "samples", samples, least=1)
    seed = integer(who, "seed", seed, least=0)
    if rank > dimension:
        raise ValueError(f"{who}: rank must be at most dimension={dimension}, got {rank}")
    recipe = {
        "generator": who,
        "samples": samples,
        "dimension": dimension,
        "rank": rank,
        "seed": seed,
    }
    return recipe, np.random.default_rng(seed)


def _low_rank(rng: np.random.Generator, recipe: dict[str, Any]) -> Array:
    """u v^T with Gaussian factors."""
    u, v = rng.standard_normal((2, recipe["dimension"], recipe["rank"]))
    return u @ v.T
