"""Makers of problems of the entries of a matrix: of low rank, by coherence, of a table."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penchant.arguments import (
    Array,
    finite_array,
    flag,
    integer,
    positive,
    real,
)
from penchant.description import with_recipe
from penchant.door import Invalid, door
from penchant.problems.matrix_problem import Completion
from penchant.problems.sensing import checked_draw, low_rank, with_noise

ROUNDING = 1e-10  # singular values below this part of the largest do not count for the rank


@door
def coherence(matrix: ArrayLike) -> tuple[Array, Array]:
    """How much of the row and column space each row and each column carries.

    With the compact SVD U S V^T of rank r the rows have (rows/r) |U_i|^2 and the columns
    (columns/r) |V_j|^2: 1 on average, rows/r or columns/r at most.
    """
    matrix = finite_array("matrix", matrix, ndim=2)
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    if s[0] == 0:
        raise Invalid("matrix must not be all zero, got zeros; it has no row space")
    rank = int((s > ROUNDING * s[0]).sum())
    rows, columns = matrix.shape
    return (
        np.asarray(rows / rank * np.sum(u[:, :rank] ** 2, axis=1)),
        np.asarray(columns / rank * np.sum(v[:rank] ** 2, axis=0)),
    )


@with_recipe
@door
def coherent_completion(
    samples: int,
    truth: ArrayLike,
    *,
    tau: float,
    least: bool = False,
    loss: str = "squares",
    seed: int = 0,
) -> Completion:
    """`samples` entries of `truth`: round(tau * samples) by coherence, the rest at random.

    The former have the largest row plus column coherence, with ties in C order, as Notsawo
    et al. 2025 select data: tau=0 is uniform, tau=1 is not random at all.

    Parameters
    ----------
    samples
        The number of observed entries.
    truth
        The matrix.
    tau
        The share that is chosen by coherence.
    least
        Chooses the smallest coherence instead.
    loss
        "squares" or "half squares", as in Completion.
    seed
        The seed of all random numbers.

    Returns
    -------
    Completion
        With its truth.

    References
    ----------
    .. [1] Notsawo et al. (2025), Grokking Beyond the Euclidean Norm of Model Parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> truth = np.diag([2.0, 0.0])
    >>> problem = penchant.problems.coherent_completion(truth=truth, samples=1, tau=1.0)
    >>> problem.entries.tolist(), problem.values.tolist()
    ([[0, 0]], [2.0])
    """
    truth = finite_array("truth", truth, ndim=2)
    samples = integer("samples", samples, least=1)
    if samples > truth.size:
        rule = f"samples must be at most {truth.size}, the number of entries"
        raise Invalid(f"{rule}, got {samples}")
    tau = real("tau", tau)
    if not 0 <= tau <= 1:
        raise Invalid(f"tau must be between 0 and 1, got {tau:g}; it is a share")
    rng = np.random.default_rng(integer("seed", seed, least=0))
    chosen = np.sort(_chosen(truth, samples, round(tau * samples), rng, flag("least", least)))
    entries = np.stack(np.unravel_index(chosen, truth.shape), axis=1)
    which = "least" if least else "most"
    description = (
        f"{samples} entries of a {truth.shape[0]} x {truth.shape[1]} matrix, a share {tau:g} of"
        f" them the {which} coherent ones, seed {seed}"
    )
    shape = truth.shape[0], truth.shape[1]
    return Completion(shape, entries, truth.ravel()[chosen], truth, False, description, loss=loss)


def _chosen(
    truth: Array, samples: int, first: int, rng: np.random.Generator, least: bool
) -> NDArray[np.int64]:
    """Flat indices: the `first` by coherence, then others at random up to `samples`."""
    rows, columns = coherence(truth)
    scores = (rows[:, None] + columns[None, :]).ravel()
    order = np.argsort(scores if least else -scores, kind="stable")
    others = np.sort(order[first:])
    rest = rng.choice(others, samples - first, replace=False)
    return np.concatenate([order[:first], rest]).astype(np.int64)


@with_recipe
@door
def low_rank_completion(
    samples: int,
    dimension: int,
    *,
    rank: int,
    loss: str = "squares",
    noise: float = 0.0,
    seed: int = 0,
) -> Completion:
    """`samples` random entries of u v^T with Gaussian factors u, v (dimension x rank).

    Woodworth et al. 2020, figure 5, have samples=60, dimension=10, rank=1.

    Parameters
    ----------
    samples
        The number of observed entries.
    dimension
        The number of rows and of columns.
    rank
        The rank of the truth.
    loss
        "squares" or "half squares", as in Completion.
    noise
        The standard deviation of the noise that is added to the seen values.
    seed
        The seed of all random numbers.

    Returns
    -------
    Completion
        With its truth.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> problem = penchant.problems.low_rank_completion(samples=9, dimension=4, rank=1)
    >>> problem.samples, int(problem.hidden.sum()), int(np.linalg.matrix_rank(problem.truth))
    (9, 7, 1)
    """
    sizes, rng, about = checked_draw(samples, dimension, rank, seed)
    if sizes["samples"] > dimension**2:
        raise Invalid(
            f"samples must be at most dimension^2 = {dimension**2}, the number of entries, "
            f"got {samples}"
        )
    truth = low_rank(rng, sizes)
    positions = np.sort(rng.choice(truth.size, sizes["samples"], replace=False))
    entries = np.stack(np.unravel_index(positions, truth.shape), axis=1)
    values, noted = with_noise(rng, truth.ravel()[positions], noise)
    description = f"{samples} entries of {about}{noted}"
    return Completion(truth.shape, entries, values, truth, False, description, loss=loss)


@with_recipe
@door
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

    References
    ----------
    .. [1] Lyu et al. (2023), Dichotomy of Early and Late Phase Implicit Biases Can Provably Induce
       Grokking.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.multiplication_table(dimension=4, fraction=0.5)
    >>> (16 * problem.truth).astype(int).tolist()
    [[1, 2, 3, 4], [2, 4, 6, 8], [3, 6, 9, 12], [4, 8, 12, 16]]
    """
    dimension = integer("dimension", dimension, least=2)
    seed = integer("seed", seed, least=0)
    fraction = positive("fraction", fraction)
    if fraction > 1:
        raise Invalid(f"fraction must be at most 1, got {fraction}")
    mirrored = flag("mirrored", mirrored)
    steps = np.arange(1.0, dimension + 1)
    truth = np.outer(steps, steps) / dimension**2
    pairs = np.stack(np.triu_indices(dimension), axis=1)
    count = max(1, round(fraction * len(pairs)))
    seen = pairs[np.sort(np.random.default_rng(seed).choice(len(pairs), count, replace=False))]
    if mirrored:
        seen = np.concatenate([seen, seen[seen[:, 0] < seen[:, 1]][:, ::-1]])
    description = (
        f"{count} of {len(pairs)} products in the {dimension} x {dimension} multiplication table "
        f"over {dimension}^2, seed {seed}"
    )
    values = truth[seen[:, 0], seen[:, 1]]
    return Completion(truth.shape, seen, values, truth, True, description)
