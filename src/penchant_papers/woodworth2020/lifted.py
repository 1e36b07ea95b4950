"""Wide factorizations: measurements, starts of any width, gradient flow and its tangent twin."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from penchant.lab import Array

Pull = Literal["weakest", "strongest", "random"]
PULLS: tuple[Pull, ...] = ("weakest", "strongest", "random")


def orthogonal(rng: np.random.Generator, size: int) -> Array:
    """A random orthogonal matrix."""
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


def wishart_root(rng: np.random.Generator, rows: int, width: int) -> Array:
    """A (rows x rows) L such that L L^T has the law of W W^T for a Gaussian (rows x width) W.

    Bartlett's decomposition. Gradient flow of a factorization depends on W W^T only, up to a
    rotation of the columns, so that L trains like W itself at any width.
    """
    root = np.tril(rng.standard_normal((rows, rows)), -1)
    root[np.diag_indices(rows)] = np.sqrt(rng.chisquare(width - np.arange(rows)))
    return root


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

    def kernel(self, weights: Array) -> Array:
        """Sigma(W) with y' = -Sigma (y - y*): the loss sum r^2 gives 8 where W eq. (72) has 4."""
        moved = self.lifted @ weights
        return 8 * np.einsum("nij,mij->nm", moved, moved)


def reach(mu: float, gamma: float, low: float, high: float) -> float:
    """The largest |y(0) - y*| that Theorem 9 allows."""
    inside = (1 + gamma / mu) / (1 + low / (4 * high))
    return float(mu * low / np.sqrt(high) * (1 - np.sqrt(inside)))


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
    length = residual_share * reach(mu, gamma, low, high)
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


@dataclasses.dataclass(frozen=True)
class Trajectory:
    """A trained W and its tangent twin, at the steps of the integrator."""

    t: Array
    moved: Array  # W(t) - W(0)
    residual: Array  # y(t) - y*
    length: Array  # int_0^t |W'|_F
    impulse: Array  # int_0^t |y - y*|
    twin_moved: Array  # W_TK(t) - W(0)
    twin_residual: Array

    @property
    def farthest(self) -> float:
        """sup_t |W(t) - W(0)|_F."""
        return float(np.linalg.norm(self.moved, axis=(1, 2)).max())

    @property
    def apart(self) -> float:
        """sup_t |W(t) - W_TK(t)|_F."""
        return float(np.linalg.norm(self.moved - self.twin_moved, axis=(1, 2)).max())

    @property
    def left(self) -> float:
        """|y - y*| at the end over that at the start."""
        return float(np.linalg.norm(self.residual[-1]) / np.linalg.norm(self.residual[0]))


def followed(case: Lifted, *, fall: float = 1e-9) -> Trajectory:
    """Gradient flow of sum (y - y*)^2 in U and V, until the misfit fell by `fall`, and its twin.

    The displacement is integrated: a start in the kernel regime is large and barely moves.
    """
    from scipy.integrate import solve_ivp

    W0, d = case.start, case.X.shape[1]
    size = W0.size

    def residual(moved: Array) -> Array:
        change = (W0 + moved)[:d] @ moved[d:].T + moved[:d] @ W0[d:].T
        return np.asarray(case.residual + np.einsum("nij,ij->n", case.X, change))

    def velocity(_: float, state: Array) -> Array:
        moved = state[:size].reshape(W0.shape)
        r, W = residual(moved), W0 + moved
        G = np.tensordot(r, case.X, 1)
        speed = -2 * np.concatenate([G @ W[d:], G.T @ W[:d]])
        return np.concatenate([speed.ravel(), [np.linalg.norm(speed), np.linalg.norm(r)]])

    def fitted(_: float, state: Array) -> float:
        r = residual(state[:size].reshape(W0.shape))
        return float(np.linalg.norm(r) - fall * case.misfit)

    fitted.terminal = True  # type: ignore[attr-defined]
    far = case.misfit / np.sqrt(case.edges[1] * case.mu)  # the order of the displacement
    fastest = np.linalg.norm(case.kernel(W0), 2) + case.misfit * np.sqrt(case.edges[1])
    solution = solve_ivp(
        velocity,
        (0, 1e3 / (case.mu * case.edges[0])),
        np.zeros(size + 2),
        method="DOP853",
        events=fitted,
        first_step=0.01 / fastest,
        rtol=1e-11,
        atol=1e-13 * far,
    )
    moved = solution.y[:size].T.reshape(-1, *W0.shape)
    r = np.array([residual(D) for D in moved])
    return Trajectory(
        solution.t, moved, r, solution.y[size], solution.y[size + 1], *tangent(case, solution.t)
    )


def tangent(case: Lifted, t: Array) -> tuple[Array, Array]:
    """Displacement and residual of the tangent twin at the times t, from its linear equation."""
    rates, vectors = np.linalg.eigh(case.kernel(case.start))
    begin = vectors.T @ case.residual
    decay = np.outer(t, rates)
    impulse = (begin * -np.expm1(-decay) / rates) @ vectors.T
    moved = -4 * np.einsum("tn,nij->tij", impulse, case.lifted) @ case.start
    return moved, (begin * np.exp(-decay)) @ vectors.T


# --- the bound of Theorem 9 and Lemma 12 for sup |W(T) - W(0)|_F


def start_bound(case: Lifted) -> float:
    """The bound as printed."""
    low, high = case.edges
    return float(np.sqrt(high + low / 4) * case.misfit / (low * np.sqrt(case.mu)))


WRONG_BOUNDS = (r"$1/\Lambda$ in place of $1/\lambda$", r"$1/\mu$ in place of $1/\sqrt{\mu}$")


def wrong_start_bounds(case: Lifted) -> list[float]:
    """Plausible wrong bounds, in the order of WRONG_BOUNDS."""
    low, high = case.edges
    return [start_bound(case) * low / high, start_bound(case) / np.sqrt(case.mu)]


def beyond_gamma(instance: int, seed: int) -> dict[str, float]:
    """The share of `start_bound` used where gamma is 0.99 mu, not below lambda mu/4 Lambda.

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
    case = dataclasses.replace(
        case, start=start, gamma=0.99 * case.mu, residual=1e-4 * case.mu * weakest
    )
    return {"share": followed(case).farthest / start_bound(case)}
