"""Lemma 7: how large alpha must be so that Q is the squared l2 norm up to a factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Evidence
from tacit.papers.experiment import Experiment
from tacit.papers.woodworth2020.lemmas.lemma_5 import (
    evidence_of,
    shares,
    study_of,
    vectors,
)
from tacit.regularizers.q import Q

if TYPE_CHECKING:
    import xarray

WRONG = ("exponent -1/8 of eps", "sqrt(|b|_2) whatever eps", "|b|_2^(1/4) for its square root")


def alphas(norm: float, eps: float) -> list[float]:
    """The printed bound, four times it, and those of WRONG."""
    bound = np.sqrt(norm) * (1 + eps**-0.25)
    wrong = np.sqrt(norm) * (1 + eps**-0.125), np.sqrt(norm), norm**0.25 * (1 + eps**-0.25)
    return [bound, 4 * bound, *wrong]


def ratios(beta: Array, eps: float) -> list[float]:
    """4 alpha^2 Q over the squared l2 norm at every alpha."""
    norm = float(np.linalg.norm(beta))
    return [4 * a**2 * Q(2, alpha=a)(beta) / norm**2 for a in alphas(norm, eps)]


def cell(count: int) -> dict[str, Any]:
    """How far the ratios are from one, over eps."""
    single = [(np.array([norm]), 10.0**-k) for norm in (1e-3, 1.0, 1e3) for k in range(9)]
    return shares(vectors(count, seed=7) + single, ratios)


def check(dataset: xarray.Dataset) -> Evidence:
    """The share of eps that is used at the bound, above it, and at the wrong bounds."""
    return evidence_of(
        dataset,
        ("four times", "the same at four times it"),
        WRONG,
        "slack: |ratio - 1|/eps is {median:.2g} at the median and {worst:.2g} at worst, near the"
        " 1/48 of the next term of q; eqs. (40) and (41) write a third derivative where the fourth"
        " is meant and used",
        "|4 alpha² Q/|b|₂² − 1| / eps",
    )


experiment = Experiment(
    "W-L7",
    statement="For alpha >= sqrt(|b|_2) (1 + eps^-1/4), 4 alpha^2 Q is |b|_2^2 up to a factor"
    " 1±eps.",
    place="appendix E, Lemma 7",
    study=study_of("W-L7", cell),
    check=check,
    title="Above the bound of Lemma 7, Q is the squared ℓ₂ norm up to a factor",
)
