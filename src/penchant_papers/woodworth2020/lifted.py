"""Lifted problems: random measurements, starts near a multiple of the identity, and residuals."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from penchant import Factorization
from penchant.bounds import KernelRegime, kernel_regime
from penchant.lab import Array
from penchant.problems import Sensing
from penchant.solvers import FactorTwin, factor_twin

Pull = Literal["weakest", "strongest", "random"]
PULLS: tuple[Pull, ...] = ("weakest", "strongest", "random")


def orthogonal(rng: np.random.Generator, size: int) -> Array:
    """A random orthogonal matrix."""
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


def root_of(matrix: Array) -> Array:
    """The positive square root of a symmetric positive matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(values)) @ vectors.T


@dataclasses.dataclass(frozen=True)
class Lifted:
    """Measurements X_n (samples x d x d), a start W = [U; V], and the residual to remove."""

    X: Array
    start: Array
    residual: Array  # y(0) - y*
    mu: float
    gamma: float

    @property
    def model(self) -> Factorization:
        """The factors at the start."""
        rows = self.X.shape[1]
        return Factorization(factors=(self.start[:rows], self.start[rows:]))

    @property
    def problem(self) -> Sensing:
        """The measurements, with the values that leave the residual at the start."""
        rows = self.X.shape[1]
        begin = np.einsum("nij,ij->n", self.X, self.start[:rows] @ self.start[rows:].T)
        return Sensing(self.X, begin - self.residual)

    @cached_property
    def lifted(self) -> Array:
        """[[0, X_n], [X_n^T, 0]] / 2, so that <W W^T, lifted_n> = <U V^T, X_n>."""
        n, d, _ = self.X.shape
        blocks = np.zeros((n, 2 * d, 2 * d))
        blocks[:, :d, d:] = self.X / 2
        return blocks + blocks.transpose(0, 2, 1)

    @cached_property
    def gram(self) -> Array:
        """The Gram matrix of the rows vec(X_n)."""
        rows = self.X.reshape(len(self.X), -1)
        return rows @ rows.T

    @cached_property
    def edges(self) -> tuple[float, float]:
        """lambda and Lambda: the extreme eigenvalues of the Gram matrix."""
        values = np.linalg.eigvalsh(self.gram)
        return float(values[0]), float(values[-1])

    @property
    def misfit(self) -> float:
        return float(np.linalg.norm(self.residual))

    @property
    def regime(self) -> KernelRegime:
        """The bounds of Theorem 9."""
        low, high = self.edges
        return kernel_regime(self.misfit, mu=self.mu, gamma=self.gamma, low=low, high=high)

    def kernel(self, weights: Array) -> Array:
        """Sigma(W) with y' = -Sigma (y - y*): the loss sum r^2 gives 8 where W eq. (72) has 4."""
        moved = self.lifted @ weights
        return 8 * np.einsum("nij,mij->nm", moved, moved)


def measurements(
    rng: np.random.Generator, samples: int, d: int, spread: float, size: float
) -> Array:
    """Random X_n whose Gram matrix has eigenvalues from size^2 to size^2 * spread."""
    rows = np.linalg.qr(rng.standard_normal((d * d, samples)))[0].T
    turn = orthogonal(rng, samples)
    lengths = size * np.sqrt(np.linspace(1, spread, samples))
    return np.asarray(((turn * lengths) @ turn.T @ rows).reshape(samples, d, d))


def lifted_case(
    rng: np.random.Generator,
    *,
    d: int,
    samples: int,
    spread: float,
    gamma_share: float,
    residual_share: float,
    pull: Pull,
    size: float = 1.0,
    mu: float = 1.0,
) -> Lifted:
    """A start with W W^T = mu I + gamma S and a residual, both in shares of what Theorem 9 allows.

    `pull` is the direction of the residual: that in which the kernel is weakest, strongest, or any.
    """
    X = measurements(rng, samples, d, spread, size)
    # the edges of the Gram matrix by construction; a single sample has only the lower one
    low, high = size**2, size**2 * (spread if samples > 1 else 1.0)
    gamma = gamma_share * mu * low / (4 * high)
    S = rng.standard_normal((2 * d, 2 * d))
    S += S.T
    start = root_of(mu * np.eye(2 * d) + gamma * S / np.linalg.norm(S, 2))
    blank = Lifted(X, start, np.zeros(samples), mu, gamma)
    vectors = np.linalg.eigh(blank.kernel(start))[1]
    choice = {
        "weakest": vectors[:, 0],
        "strongest": vectors[:, -1],
        "random": rng.standard_normal(samples),
    }[pull]
    length = (
        residual_share * kernel_regime(0, mu=mu, gamma=gamma, low=low, high=high).largest_misfit
    )
    return dataclasses.replace(blank, residual=length * choice / np.linalg.norm(choice))


# the residual of the second is where its kernel is weakest: bounds with Lambda for lambda fail
# there
FIRST: tuple[dict[str, Any], ...] = (
    {"d": 1, "samples": 1},
    {"d": 2, "samples": 4, "spread": 4.0, "pull": "weakest", "mu": 10.0},
)


def random_case(instance: int, seed: int, residual_shares: Sequence[float]) -> Lifted:
    """A case that meets the premises of Theorem 9: one of FIRST, or a random one after them."""
    rng = np.random.default_rng(seed)
    for k in range(instance + 1):
        d = int(rng.integers(1, 4))
        settings: dict[str, Any] = {
            "d": d,
            "samples": int(rng.integers(1, d * d + 1)),
            "spread": float(rng.choice([1.0, 1.5, 4.0])),
            "gamma_share": 0.0 if k % 4 == 0 else float(rng.uniform(0.1, 0.98)),
            "residual_share": residual_shares[k % len(residual_shares)],
            "pull": PULLS[k % 3],
            "size": 10 ** rng.uniform(-1, 1),
            "mu": 10 ** rng.uniform(-1, 1),
        }
        case = lifted_case(rng, **(settings | (FIRST[k] if k < len(FIRST) else {})))
    return case


def followed(case: Lifted) -> FactorTwin:
    """Gradient flow in U and V beside its tangent twin, until the misfit fell by 1e-9."""
    return factor_twin(case.model, case.problem)


# --- plausible wrong bounds for sup |W(T) - W(0)|_F of Theorem 9 and Lemma 12


WRONG_BOUNDS = (r"$1/\Lambda$ in place of $1/\lambda$", r"$1/\mu$ in place of $1/\sqrt{\mu}$")


def wrong_start_bounds(case: Lifted) -> list[float]:
    """Plausible wrong bounds, in the order of WRONG_BOUNDS."""
    low, high = case.edges
    bound = case.regime.from_start
    return [bound * low / high, bound / np.sqrt(case.mu)]


def beyond_gamma(instance: int, seed: int) -> dict[str, float]:
    """The share of the first bound used where gamma is 0.99 mu, not below lambda mu/4 Lambda.

    W W^T = 0.01 mu I is what such a gamma admits and where the kernel is weakest; a small misfit
    pulls along its weakest direction.
    """
    rng = np.random.default_rng(seed)
    for _ in range(instance + 1):
        d = int(rng.integers(1, 4))
        samples = int(rng.integers(1, d * d + 1))
        spread = float(rng.choice([1.0, 4.0])) if samples > 1 else 1.0
        case = lifted_case(
            rng,
            d=d,
            samples=samples,
            spread=spread,
            gamma_share=0.0,
            residual_share=0.0,
            pull="weakest",
        )
    start = 0.1 * case.start
    weakest = np.linalg.eigh(case.kernel(start))[1][:, 0]
    # the bound does not depend on gamma, which would be 0.99 mu
    case = dataclasses.replace(case, start=start, residual=1e-4 * case.mu * weakest)
    return {"share": followed(case).farthest / case.regime.from_start}
