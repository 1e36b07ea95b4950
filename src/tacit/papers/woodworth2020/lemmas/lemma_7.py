"""Lemma 7: how large alpha must be so that Q is the squared l2 norm up to a factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.evidence.evidence import Check, Evidence
from tacit.papers.experiment import Experiment
from tacit.papers.woodworth2020.lemmas.norms_of_q import shares, vectors
from tacit.regularizers.q import Q
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    import xarray

WRONG = (
    "exponent -1/8 of eps",
    "sqrt(|b|_2) whatever eps",
    "|b|_2^(1/4) for its square root",
)


def alphas(norm: float, eps: float) -> list[float]:
    """The printed bound, four times it, and those of WRONG."""
    bound = np.sqrt(norm) * (1 + eps**-0.25)
    wrong = (
        np.sqrt(norm) * (1 + eps**-0.125),
        np.sqrt(norm),
        norm**0.25 * (1 + eps**-0.25),
    )
    return [bound, 4 * bound, *wrong]


def cell(count: int) -> dict[str, Any]:
    """|4 alpha^2 Q/|b|^2 - 1| / eps of every vector at every alpha."""
    single = [(np.array([norm]), 10.0**-k) for norm in (1e-3, 1.0, 1e3) for k in range(9)]
    cases = vectors(count, seed=7) + single
    ratios = []
    for beta, eps in cases:
        norm = float(np.linalg.norm(beta))
        ratios.append([4 * a**2 * Q(2, alpha=a)(beta) / norm**2 for a in alphas(norm, eps)])
    eps = np.array([e for _, e in cases])
    return {"eps": eps, "share": np.abs(np.array(ratios) - 1) / eps[:, None]}


study = sized(
    "W-L7",
    function=cell,
    arguments={"count": 400},
    dims={"eps": ["vector"], "share": ["vector", "bound"]},
    tiny={"arguments": {"count": 100}},
    full={"arguments": {"count": 20_000}},
)


def check(dataset: xarray.Dataset) -> Evidence:
    """The share of eps that is used at the bound, above it, and at the wrong bounds."""
    at_bound, above, *wrong = dataset.share.values.T
    worst = Check("worst |ratio - 1| / eps at the bound", at_bound.max(), 1.0, kind="at most")
    return Evidence(
        ran=f"{len(at_bound)} vectors of 1 to 50 entries, alpha at the bound and four times it",
        checks=[worst, Check("the same at four times it", above.max(), 1.0, kind="at most")],
        controls={
            name: worst.control(share.max()) for name, share in zip(WRONG, wrong, strict=True)
        },
        findings=[
            f"slack: |ratio - 1|/eps is {np.median(at_bound):.2g} at the median and"
            f" {at_bound.max():.2g} at worst, near the 1/48 of the next term of q; eqs. (40) and"
            " (41) write a third derivative where the fourth is meant and used"
        ],
        plots=[shares("|4 alpha² Q/|b|₂² − 1| / eps", dataset.eps.values, at_bound, wrong[0])],
    )


experiment = Experiment(
    "W-L7",
    statement="For alpha >= sqrt(|b|_2) (1 + eps^-1/4), 4 alpha^2 Q is |b|_2^2 up to a factor"
    " 1±eps.",
    place="appendix E, Lemma 7",
    study=study,
    check=check,
    title="Above the bound of Lemma 7, Q is the squared l2 norm up to a factor",
)
