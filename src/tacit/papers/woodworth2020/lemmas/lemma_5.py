"""Lemma 5: how small alpha must be so that Q is the l1 norm up to a factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Check, Evidence
from tacit.papers.experiment import Experiment
from tacit.papers.woodworth2020.lemmas.norms_of_q import log_alpha_1, shares, vectors
from tacit.regularizers.q import Q
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    import xarray

WRONG = (  # lemmas that one could believe from the proof
    "exp(-1/(2 eps |b|_1)), without d",
    "without exp(-d/(2 eps |b|_1)), the upper half of the proof alone",
    "4 eps for 2 eps, log(1/alpha) for log(1/alpha²)",
)


def log_alphas(beta: Array, eps: float) -> list[float]:
    """log alpha at the bound, far below it, and where each of WRONG has it."""
    norm, d = float(np.abs(beta).sum()), len(beta)
    *first, last = log_alpha_1(norm, d, eps)
    bound = min(*first, last)
    wrong = min(*first, last / d), min(first), min(log_alpha_1(norm, d, 2 * eps))
    return [bound, 3 * bound - 1, *wrong]


def cell(count: int) -> dict[str, Any]:
    """|Q/log(1/alpha^2)/|b|_1 - 1| / eps of every vector at every alpha."""
    # one entry of size one attains the lower bound as eps falls, a large one nearly the upper
    single = [(np.array([norm]), eps) for norm in (1.0, 1e8, 1e30) for eps in (0.1, 0.3)]
    cases = vectors(count, seed=5) + single
    ratios = [
        [Q(2, log_alpha=m)(b) / (-2 * m) / np.abs(b).sum() for m in log_alphas(b, e)]
        for b, e in cases
    ]
    eps = np.array([e for _, e in cases])
    return {"eps": eps, "share": np.abs(np.array(ratios) - 1) / eps[:, None]}


study = sized(
    "W-L5",
    function=cell,
    arguments={"count": 400},
    dims={"eps": ["vector"], "share": ["vector", "bound"]},
    tiny={"arguments": {"count": 100}},
    full={"arguments": {"count": 20_000}},
)


def check(dataset: xarray.Dataset) -> Evidence:
    """The share of eps that is used at the bound, below it, and at the wrong bounds."""
    at_bound, below, *wrong = dataset.share.values.T
    worst = Check("worst |ratio - 1| / eps at the bound", at_bound.max(), 1.0, kind="at most")
    return Evidence(
        ran=f"{len(at_bound)} vectors of 1 to 50 entries, alpha at the bound and far below it",
        checks=[
            worst,
            Check("worst |ratio - 1| / eps far below", below.max(), 1.0, kind="at most"),
        ],
        controls={
            name: worst.control(share.max()) for name, share in zip(WRONG, wrong, strict=True)
        },
        findings=[
            f"slack at the bound: |ratio - 1|/eps is {np.median(at_bound):.3f} at the median and"
            f" {at_bound.max():.4f} at worst; b = (1) attains it as eps falls"
        ],
        plots=[shares("|Q/log(1/alpha²)/|b|₁ − 1| / eps", dataset.eps.values, at_bound, wrong[0])],
    )


experiment = Experiment(
    "W-L5",
    statement="For alpha <= alpha_1(eps, |b|_1, d), Q/log(1/alpha^2) is |b|_1 up to a factor"
    " 1±eps.",
    place="appendix E, Lemma 5",
    study=study,
    check=check,
    title="Below the bound of Lemma 5, Q is the l1 norm up to a factor",
)
