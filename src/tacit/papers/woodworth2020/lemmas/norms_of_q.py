"""What the lemmas of appendix E share: random vectors, and how much of a factor 1±eps is used."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.evidence.plot import Plot, Series


def vectors(count: int, seed: int) -> list[tuple[Array, float]]:
    """Random vectors of 1 to 50 entries, sparse to dense, sizes over five decades, with an eps."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        d = int(rng.integers(1, 51))
        beta = rng.normal(size=d) * np.exp(rng.normal(size=d) * rng.choice([0.1, 3.0]))
        beta *= 10 ** rng.uniform(-2, 3) / np.abs(beta).sum()
        found.append((beta, 10 ** rng.uniform(-2, 0.5)))
    return found


def shares(label: str, eps: Array, at_bound: Array, control: Array) -> Plot:
    """How much of the allowed eps is used, at the bound and where it does not hold."""
    series = [
        Series("at the bound", eps, at_bound, "points"),
        Series("outside it (control)", eps, control, "points"),
    ]
    return Plot("how much of the allowed eps is used", "eps", label, series, "log", "log")


def log_alpha_1(norm: float, d: int, eps: float) -> list[float]:
    """The logarithms of what alpha_1(eps, |b|_1, d) of Lemma 5 is the least of."""
    return [0.0, 0.5 * np.log(norm), -np.log(2 * norm) / (2 * eps), -d / (2 * eps * norm)]
