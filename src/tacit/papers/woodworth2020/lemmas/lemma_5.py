"""Lemma 5: how small alpha must be so that Q is the l1 norm up to a factor; Lemma 7 is alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Evidence, at_most
from tacit.evidence.plot import Plot, Series
from tacit.papers.experiment import Experiment
from tacit.regularizers.q import Q
from tacit.studies.sizes import Sizes, sized

if TYPE_CHECKING:
    import xarray

WRONG = (  # plausible wrong lemmas
    "exp(-1/(2 eps |b|_1)), without d",
    "without exp(-d/(2 eps |b|_1)), the upper half of the proof alone",
    "4 eps for 2 eps, log(1/alpha) for log(1/alpha²)",
)


def log_alpha_1(norm: float, d: int, eps: float) -> list[float]:
    """The logarithms of the numbers whose minimum is alpha_1(eps, |b|_1, d) of Lemma 5."""
    return [0.0, 0.5 * np.log(norm), -np.log(2 * norm) / (2 * eps), -d / (2 * eps * norm)]


def log_alphas(beta: Array, eps: float) -> list[float]:
    """log alpha at the bound, far below it, and at the bound of each of WRONG."""
    norm, d = float(np.abs(beta).sum()), len(beta)
    *first, last = log_alpha_1(norm, d, eps)
    bound = min(*first, last)
    wrong = min(*first, last / d), min(first), min(log_alpha_1(norm, d, 2 * eps))
    return [bound, 3 * bound - 1, *wrong]


def ratios(beta: Array, eps: float) -> list[float]:
    """Q/log(1/alpha^2) over the l1 norm at every alpha."""
    return [Q(2, log_alpha=m)(beta) / (-2 * m) / np.abs(beta).sum() for m in log_alphas(beta, eps)]


# --- the same for both lemmas


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


def shares(
    cases: Sequence[tuple[Array, float]], ratios: Callable[[Array, float], list[float]]
) -> dict[str, Array]:
    """|ratio - 1| / eps of every vector at every alpha."""
    eps = np.array([e for _, e in cases])
    found = np.array([ratios(beta, e) for beta, e in cases])
    return {"eps": eps, "share": np.abs(found - 1) / eps[:, None]}


def study_of(id: str, cell: Callable[..., Any]) -> Sizes:
    """A study of one cell, by the number of random vectors."""
    return sized(
        id,
        function=cell,
        arguments={"count": 400},
        dims={"eps": ["vector"], "share": ["vector", "bound"]},
        tiny={"arguments": {"count": 100}},
        full={"arguments": {"count": 20_000}},
    )


def evidence_of(
    dataset: xarray.Dataset, beyond: tuple[str, str], wrong: Sequence[str], finding: str, label: str
) -> Evidence:
    """The share of eps that is used at the bound, beyond it, and at the wrong bounds.

    `beyond` says in which alphas, and names the check; {median} and {worst} stand in the finding.
    """
    at_bound, further, *others = dataset.share.values.T
    worst = at_most(at_bound.max(), 1.0)
    series = [
        Series("at the bound", dataset.eps.values, at_bound, "points"),
        Series("outside it (control)", dataset.eps.values, others[0], "points"),
    ]
    title = "how much of the allowed eps is used"
    return Evidence(
        ran=f"{len(at_bound)} vectors of 1 to 50 entries, alpha at the bound and {beyond[0]} it",
        checks={
            "worst |ratio - 1| / eps at the bound": worst,
            beyond[1]: at_most(further.max(), 1.0),
        },
        controls={n: worst.control(share.max()) for n, share in zip(wrong, others, strict=True)},
        findings=[finding.format(median=np.median(at_bound), worst=at_bound.max())],
        plots=[Plot(title, "eps", label, series, "log", "log")],
    )


def cell(count: int) -> dict[str, Any]:
    """How far the ratios are from one, over eps."""
    # one entry of size one attains the lower bound as eps falls, a large one nearly the upper
    single = [(np.array([norm]), eps) for norm in (1.0, 1e8, 1e30) for eps in (0.1, 0.3)]
    return shares(vectors(count, seed=5) + single, ratios)


def check(dataset: xarray.Dataset) -> Evidence:
    """The share of eps that is used at the bound, below it, and at the wrong bounds."""
    return evidence_of(
        dataset,
        ("far below", "worst |ratio - 1| / eps far below"),
        WRONG,
        "slack at the bound: |ratio - 1|/eps is {median:.3f} at the median and {worst:.4f} at"
        " worst; b = (1) attains it as eps falls",
        "|Q/log(1/alpha²)/|b|₁ − 1| / eps",
    )


experiment = Experiment(
    "W-L5",
    statement="For alpha <= alpha_1(eps, |b|_1, d), Q/log(1/alpha^2) is |b|_1 up to a factor"
    " 1±eps.",
    place="appendix E, Lemma 5",
    study=study_of("W-L5", cell),
    check=check,
    title="Below the bound of Lemma 5, Q is the ℓ₁ norm up to a factor",
)
