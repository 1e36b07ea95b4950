"""Which entries of a low-rank matrix to look at: those of the largest coherence, or any."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arguments import Array, finite_array, integer, real
from tacit.problems.matrix_problem import Completion

ROUNDING = 1e-10  # singular values below this part of the largest do not count for the rank


def coherence(matrix: ArrayLike) -> tuple[Array, Array]:
    """How much of the row and column space each row and each column carries.

    With the compact SVD U S V^T of rank r the rows have (rows/r) |U_i|^2 and the columns
    (columns/r) |V_j|^2: 1 on average, rows/r or columns/r at most.
    """
    matrix = finite_array("coherence", "matrix", matrix, ndim=2)
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    if s[0] == 0:
        raise ValueError("coherence: matrix must not be all zero, got zeros; it has no row space")
    rank = int((s > ROUNDING * s[0]).sum())
    rows, columns = matrix.shape
    return (
        np.asarray(rows / rank * np.sum(u[:, :rank] ** 2, axis=1)),
        np.asarray(columns / rank * np.sum(v[:rank] ** 2, axis=0)),
    )


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

    The first are those of the largest row plus column coherence, ties in C order (N, data
    selection: tau=0 is uniform, tau=1 takes no chances).

    Parameters
    ----------
    samples
        The number of seen entries.
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

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> problem = tacit.coherent_completion(truth=np.diag([2.0, 0.0]), samples=1, tau=1.0)
    >>> problem.entries.tolist(), problem.values.tolist()
    ([[0, 0]], [2.0])
    """
    who = "coherent_completion"
    truth = finite_array(who, "truth", truth, ndim=2)
    samples = integer(who, "samples", samples, least=1)
    if samples > truth.size:
        rule = f"samples must be at most {truth.size}, the number of entries"
        raise ValueError(f"{who}: {rule}, got {samples}")
    tau = real(who, "tau", tau)
    if not 0 <= tau <= 1:
        raise ValueError(f"{who}: tau must be between 0 and 1, got {tau:g}; it is a share")
    if not isinstance(least, bool | np.bool_):
        raise ValueError(f"{who}: least must be True or False, got {least!r}")
    rng = np.random.default_rng(integer(who, "seed", seed, least=0))
    chosen = np.sort(_chosen(truth, samples, round(tau * samples), rng, least))
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
