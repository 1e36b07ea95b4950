"""Makers of problems of full measurements of a matrix: Gaussian, commuting, aligned."""

from __future__ import annotations

import numpy as np

from penchant.arguments import Array, flag, integer, integers, matrix_shape, not_negative
from penchant.description import with_recipe
from penchant.door import Invalid, door
from penchant.problems.matrix_problem import Sensing


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
    sizes, rng, about = checked_draw(samples, dimension, rank, seed)
    truth = low_rank(rng, sizes)
    measurements = rng.standard_normal((sizes["samples"], *truth.shape)) / sizes["dimension"]
    y, noted = with_noise(rng, measurements.reshape(len(measurements), -1) @ truth.ravel(), noise)
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
    sizes, rng, about = checked_draw(samples, dimension, rank, seed)
    d = sizes["dimension"]
    spectra, spectrum = _spectra(rng, sizes["samples"], d, sizes["rank"])
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0] if rotated else np.eye(d)
    measurements = (basis * spectra[:, None, :]) @ basis.T
    truth = (basis * spectrum) @ basis.T
    y, noted = with_noise(rng, spectra @ spectrum, noise)
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
    spectra, spectrum = _spectra(rng, samples, side, rank)
    y, noted = with_noise(rng, spectra @ spectrum, noise)
    about = f"a {shape[0]} x {shape[1]} matrix of rank {rank}, seed {seed}{noted}"
    return Sensing(
        (A * spectra[:, None, :]) @ B.T,
        y,
        (A * spectrum) @ B.T,
        f"{samples} aligned measurements of {about}",
        loss=loss,
    )


def checked_draw(
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


def with_noise(rng: np.random.Generator, values: Array, noise: object) -> tuple[Array, str]:
    """`values` with Gaussian noise of this standard deviation, and the noise in words."""
    size = not_negative("noise", noise)
    if size == 0:
        return values, ""
    return values + size * rng.standard_normal(len(values)), f", noise {size:g}"


def low_rank(rng: np.random.Generator, sizes: dict[str, int]) -> Array:
    """u v^T with Gaussian factors."""
    u, v = rng.standard_normal((2, sizes["dimension"], sizes["rank"]))
    return u @ v.T


def _spectra(rng: np.random.Generator, samples: int, size: int, rank: int) -> tuple[Array, Array]:
    """The spectra of the measurements, N(0, I / size), and that of the truth."""
    spectra = rng.standard_normal((samples, size)) / np.sqrt(size)
    spectrum = np.zeros(size)
    spectrum[:rank] = rng.choice([-1.0, 1.0], rank) / np.sqrt(rank)
    return spectra, spectrum
