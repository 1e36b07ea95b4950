"""Sparse recovery: few noisy Gaussian measurements of a vector with few non-zero entries."""

from __future__ import annotations

import math

import numpy as np

from tacit.arguments import integer
from tacit.problems.regression import Regression

WHO = "sparse_recovery"


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

    N's experiment has samples=30, dimension=100, sparsity=5. The support is a random set.

    Parameters
    ----------
    samples
        The number of samples.
    dimension
        The number of features.
    sparsity
        The number of non-zero entries of the truth.
    loss
        N's "half squares", half the sum of the squared residuals, or "squares".
    snr
        The power of the signal over that of the noise: the noise has the standard deviation |X
        a| / sqrt(samples * snr), and inf leaves the labels clean.
    seed
        The seed of all random numbers.

    Returns
    -------
    Regression
        With its truth.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> problem = tacit.sparse_recovery(4, 9, sparsity=2, snr=np.inf)
    >>> int(np.count_nonzero(problem.truth)), problem.loss
    (2, 'half squares')
    """
    samples = integer(WHO, "samples", samples, least=1)
    dimension = integer(WHO, "dimension", dimension, least=1)
    sparsity = integer(WHO, "sparsity", sparsity, least=1)
    seed = integer(WHO, "seed", seed, least=0)
    if sparsity > dimension:
        raise ValueError(
            f"{WHO}: sparsity must be at most dimension={dimension}, the number of entries, "
            f"got {sparsity}; lower it or raise dimension"
        )
    snr = _ratio(snr)

    rng = np.random.default_rng(seed)
    truth = np.zeros(dimension)
    support = rng.choice(dimension, sparsity, replace=False)
    truth[support] = rng.standard_normal(sparsity) / math.sqrt(dimension)
    X = rng.standard_normal((samples, dimension)) / math.sqrt(samples)
    signal = X @ truth
    noise = float(np.linalg.norm(signal)) / math.sqrt(samples * snr)
    y = signal + noise * rng.standard_normal(samples)
    recipe = {
        "generator": WHO,
        "samples": samples,
        "dimension": dimension,
        "sparsity": sparsity,
        "seed": seed,
        "snr": snr,
        "loss": loss,
    }
    description = (
        f"{samples} Gaussian measurements of a vector with {sparsity} of {dimension} entries, "
        f"signal-to-noise ratio {snr:g}, seed {seed}"
    )
    return Regression(X, y, truth, noise, description, recipe, loss=loss)


def _ratio(snr: object) -> float:
    """`snr` as a float above zero; infinity means no noise."""
    number = isinstance(snr, int | float | np.number) and not isinstance(snr, bool)
    if not (number and snr > 0):  # type: ignore[operator]
        raise ValueError(f"{WHO}: snr must be a number > 0 (inf for no noise), got {snr!r}")
    return float(snr)  # type: ignore[arg-type]
