"""Multiplication tables completed by U U^T - V V^T under weight decay, and what theory selects."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.problems.matrices import multiplication_table
from tacit.problems.matrix_problem import Completion
from tacit.regularizers.spectral import Frobenius, Nuclear
from tacit.solvers.interpolate import interpolate


@dataclasses.dataclass(frozen=True)
class Limits:
    """The symmetric matrices that the two phases are expected to select."""

    kernel: Array
    nuclear: Array
    value: float
    certificate: float  # the worst optimality condition of the second


def table(dimension: int, fraction: float, seed: int) -> tuple[Completion, Limits]:
    """A table with a share of its pairs seen, and both minimisers over symmetric matrices.

    Those see (j, i) with (i, j). At U = V = alpha I every entry has a tangent feature of its own,
    so the kernel interpolant is the one of least Frobenius norm: zero wherever nothing was seen.
    """
    seen, both = (
        multiplication_table(dimension, fraction=fraction, seed=seed, mirrored=mirrored)
        for mirrored in (False, True)
    )
    kernel, nuclear = (interpolate(both, norm) for norm in (Frobenius(), Nuclear()))
    certificate = max(nuclear.residual, nuclear.kkt)
    return seen, Limits(kernel.matrix, nuclear.matrix, nuclear.value, certificate)


def nuclear_norm(matrix: Any) -> float:
    """The sum of the singular values."""
    return float(np.linalg.norm(matrix, "nuc"))
