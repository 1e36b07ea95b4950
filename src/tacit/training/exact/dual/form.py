"""The dual form of a diagonal network: its gradient flow, seen from the samples."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from tacit.arguments import Array
from tacit.models.diagonal import DiagonalNet
from tacit.problems.regression import Regression

RANK = 1e-12  # singular values below this fraction of the largest count as zero


@dataclasses.dataclass(frozen=True)
class DualForm:
    """beta_i = a_i h(s_i) with s_i = kappa_i <x_i, nu> and nu' = -rate (X beta - y).

    From w' = -2 D (X^T r) w^(D-1), the gradient of sum r^2. Depth 2: log w is linear in the
    integral of r, so h(s) = 2 sinh(s), kappa = 1 and rate = 8 (W eq. 15 to 17 with the factor 2
    of their loss put back). Depth D > 2: w^(2-D) is linear in it, so with p = D/(D-2)
    h(s) = (1-s)^-p - (1+s)^-p, kappa_i = |w0_i|^(D-2) and rate = 2 D (D-2) alpha^(D-2)
    (W eq. 51 to 59, likewise).

    The samples are reduced to their row space, X = basis @ rows, so that duplicate or dependent
    samples cannot make the dual drift; `nu` and `y` live there.
    """

    depth: int
    log_amplitude: Array  # log a_i = D log(alpha |w0_i|)
    log_rate: float
    kappa: Array
    basis: Array  # samples x rank, orthonormal columns
    rows: Array  # rank x features
    y: Array  # rank

    @property
    def power(self) -> float:
        """p; 1 for depth 2, so that 2 p is the slope of h at zero for every depth."""
        return 1.0 if self.depth == 2 else self.depth / (self.depth - 2)

    @property
    def scaled(self) -> Array:
        """The columns kappa_i x_i that make s from nu."""
        return self.rows * self.kappa

    @property
    def escape(self) -> float:
        """The s at which a weight has moved by its own size, to first order."""
        return 2.0 if self.depth == 2 else (self.depth - 2) / (self.depth - 1)

    @functools.cached_property
    def kernel_predictor(self) -> Array:
        """Where the flow linearised at the start would end."""
        log_weight = self.log_amplitude + np.log(self.kappa)
        root = np.exp((log_weight - log_weight.max()) / 2)
        return root * np.linalg.lstsq(self.rows * root, self.y, rcond=None)[0]

    @property
    def size(self) -> float:
        """The largest coordinate of an interpolating predictor."""
        return float(np.abs(self.kernel_predictor).max())

    def log_cap(self) -> float:
        """log of a size far above any coordinate of beta on the way, to catch wild trial steps.

        The l1 norm of one interpolating predictor is a generous scale for all of them.
        """
        return math.log(1e4 * float(np.abs(self.kernel_predictor).sum()))

    def unit(self, front: Array, size: float = 1.0) -> float:
        """The shortest time scale where beta_i = 2 p front_i s_i / size to first order."""
        slope = 2 * self.power * front
        kernel = np.linalg.norm(self.rows * np.sqrt(slope * self.kappa), ord=2) ** 2
        escape = size * np.abs(self.y @ self.scaled).max() / self.escape
        return float(1 / max(kernel, escape))

    def log_reach(self) -> float:
        """log of the largest |s| that the linearised flow would reach."""
        with np.errstate(divide="ignore"):
            size = np.log(np.abs(self.kernel_predictor))
        return float(np.max(size - math.log(2 * self.power) - self.log_amplitude))


def dual_form(model: DiagonalNet, problem: Regression) -> DualForm:
    """The dual form of a signed net with equal starts on `problem`."""
    assert model.log_alpha is not None
    depth, log_shape = model.depth, np.log(np.abs(model.shape_for(problem.dimension)))
    log_rate = math.log(8)
    if depth > 2:
        log_rate = math.log(2 * depth * (depth - 2)) + (depth - 2) * model.log_alpha
    U, S, Vt = np.linalg.svd(problem.X, full_matrices=False)
    rank = int(np.count_nonzero(S / S[0] > RANK)) if S[0] > 0 else 0
    basis = U[:, :rank]
    return DualForm(
        depth,
        log_amplitude=depth * (model.log_alpha + log_shape),
        log_rate=log_rate,
        kappa=np.exp((depth - 2) * log_shape),
        basis=basis,
        rows=S[:rank, None] * Vt[:rank],
        y=basis.T @ problem.y,
    )


def leading_columns(matrix: Array) -> Array:
    """Indices of as many independent columns as there are rows, the largest first."""
    from scipy.linalg import qr

    return qr(matrix, mode="r", pivoting=True)[1][: len(matrix)]
