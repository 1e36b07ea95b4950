"""Makers of matrix problems: low rank, coherent entries, commuting measurements, tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penchant.arguments import (
    Array,
    finite_array,
    flag,
    integer,
    integers,
    matrix_shape,
    not_negative,
    positive,
    real,
)
from penchant.description import with_recipe
from penchant.door import Invalid, door
from penchant.problems.matrix_problem import Completion, Sensing

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
    sizes, rng, about = _drawn(samples, dimension, rank, seed)
    if sizes["samples"] > dimension**2:
        raise Invalid(
            f"samples must be at most dimension^2 = {dimension**2}, the number of entries, "
            f"got {samples}"
        )
    truth = _low_rank(rng, sizes)
    positions = np.sort(rng.choice(truth.size, sizes["samples"], replace=False))
    entries = np.stack(np.unravel_index(positions, truth.shape), axis=1)
    values, noted = _with_noise(rng, truth.ravel()[positions], noise)
    description = f"{samples} entries of {about}{noted}"
    return Completion(truth.shape, entries, values, truth, False, description, loss=loss)


@with_recipe
@door
def gaussian_sensing(
    samples: int,
    dimension: int,
    *,
    rank: int,
    loss: str = "squares",
    noise: float = 0.0,
    seed: int = 0,
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
    noise
        The standard deviation of the noise that is added to y.
    seed
        The seed of all random numbers.

    Returns
    -------
    Sensing
        With its truth.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.gaussian_sensing(samples=5, dimension=3, rank=1)
    >>> problem.measurements.shape
    (5, 3, 3)
    """
    sizes, rng, about = _drawn(samples, dimension, rank, seed)
    truth = _low_rank(rng, sizes)
    measurements = rng.standard_normal((sizes["samples"], *truth.shape)) / sizes["dimension"]
    y, noted = _with_noise(rng, measurements.reshape(len(measurements), -1) @ truth.ravel(), noise)
    description = f"{samples} Gaussian measurements of {about}{noted}"
    return Sensing(measurements, y, truth, description, loss=loss)


@with_recipe
@door
def commuting_sensing(
    samples: int,
    dimension: int,
    *,
    rank: int = 1,
    rotated: bool = True,
    noise: float = 0.0,
    seed: int = 0,
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
    noise
        The standard deviation of the noise that is added to y.
    seed
        The seed of all random numbers.

    Returns
    -------
    Sensing
        With its truth.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> problem = penchant.problems.commuting_sensing(samples=2, dimension=3, rank=1)
    >>> first, second = problem.measurements
    >>> bool(np.allclose(first @ second, second @ first))
    True
    """
    rotated = flag("rotated", rotated)
    sizes, rng, about = _drawn(samples, dimension, rank, seed)
    d = sizes["dimension"]
    spectra = rng.standard_normal((sizes["samples"], d)) / np.sqrt(d)
    spectrum = np.zeros(d)
    spectrum[: sizes["rank"]] = rng.choice([-1.0, 1.0], sizes["rank"]) / np.sqrt(sizes["rank"])
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0] if rotated else np.eye(d)
    measurements = (basis * spectra[:, None, :]) @ basis.T
    truth = (basis * spectrum) @ basis.T
    y, noted = _with_noise(rng, spectra @ spectrum, noise)
    kind = "commuting" if rotated else "diagonal"
    return Sensing(measurements, y, truth, f"{samples} {kind} measurements of {about}{noted}")


@with_recipe
@door
def aligned_sensing(
    samples: int,
    shape: tuple[int, int],
    *,
    rank: int = 1,
    loss: str = "squares",
    noise: float = 0.0,
    seed: int = 0,
) -> Sensing:
    """Measurements A diag(x_n) B^T with one pair of singular bases, of a truth of `rank` in them.

    These are the measurements whose lifted matrices [[0, X_n], [X_n^T, 0]] commute: X_n X_m^T and
    X_n^T X_m are symmetric. With m the smaller side, A and B are random with m orthonormal columns,
    x_n ~ N(0, I / m), and the spectrum of the truth has `rank` entries of either sign and squares
    of sum one.

    Parameters
    ----------
    samples
        The number of measurements.
    shape
        The numbers of rows and columns.
    rank
        The rank of the truth.
    loss
        "squares" or "half squares", as in Sensing.
    noise
        The standard deviation of the noise that is added to y.
    seed
        The seed of all random numbers.

    Returns
    -------
    Sensing
        With its truth.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> first, second = penchant.problems.aligned_sensing(2, shape=(3, 5)).measurements
    >>> bool(np.allclose(first @ second.T, second @ first.T)), first.shape
    (True, (3, 5))
    """
    samples, rank = integers(samples=samples, rank=rank)
    shape, rng = matrix_shape(shape), np.random.default_rng(integer("seed", seed, least=0))
    side = min(shape)
    if rank > side:
        raise Invalid(f"rank must be at most {side}, the smaller side of the shape, got {rank}")
    A, B = (np.linalg.qr(rng.standard_normal((size, size)))[0][:, :side] for size in shape)
    spectra = rng.standard_normal((samples, side)) / np.sqrt(side)
    spectrum = np.zeros(side)
    spectrum[:rank] = rng.choice([-1.0, 1.0], rank) / np.sqrt(rank)
    y, noted = _with_noise(rng, spectra @ spectrum, noise)
    about = f"a {shape[0]} x {shape[1]} matrix of rank {rank}, seed {seed}{noted}"
    return Sensing(
        (A * spectra[:, None, :]) @ B.T,
        y,
        (A * spectrum) @ B.T,
        f"{samples} aligned measurements of {about}",
        loss=loss,
    )


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


def _drawn(
    samples: int, dimension: int, rank: int, seed: int
) -> tuple[dict[str, int], np.random.Generator, str]:
    """The checked arguments, the generator they seed, and the truth in words."""
    dimension, rank, samples = integers(dimension=dimension, rank=rank, samples=samples)
    seed = integer("seed", seed, least=0)
    if rank > dimension:
        raise Invalid(f"rank must be at most dimension={dimension}, got {rank}")
    sizes = {"samples": samples, "dimension": dimension, "rank": rank}
    about = f"a {dimension} x {dimension} matrix of rank {rank}, seed {seed}"
    return sizes, np.random.default_rng(seed), about


def _with_noise(rng: np.random.Generator, values: Array, noise: object) -> tuple[Array, str]:
    """`values` with Gaussian noise of this standard deviation, and the noise in words."""
    size = not_negative("noise", noise)
    if size == 0:
        return values, ""
    return values + size * rng.standard_normal(len(values)), f", noise {size:g}"


def _low_rank(rng: np.random.Generator, sizes: dict[str, int]) -> Array:
    """u v^T with Gaussian factors."""
    u, v = rng.standard_normal((2, sizes["dimension"], sizes["rank"]))
    return u @ v.T
