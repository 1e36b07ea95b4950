"""Lemmas 5 and 7: for which alpha Q is the l1 norm, or the squared l2 norm, up to a factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from penchant import Q
from penchant.lab import Array, Dataset, Evidence, Experiment, Sizes, at_most, log_log, sized


def vectors(count: int, seed: int) -> list[tuple[Array, float]]:
    """Random vectors of 1 to 50 entries, sparse to dense, sizes over five decades, with an eps."""
    rng = np.random.default_rng(seed)
    cases = []
    for _ in range(count):
        d = int(rng.integers(1, 51))
        beta = rng.normal(size=d) * np.exp(rng.normal(size=d) * rng.choice([0.1, 3.0]))
        beta *= 10 ** rng.uniform(-2, 3) / np.abs(beta).sum()
        cases.append((beta, 10 ** rng.uniform(-2, 0.5)))
    return cases


def shares(
    cases: Sequence[tuple[Array, float]], ratios: Callable[[Array, float], list[float]]
) -> dict[str, Array]:
    """|ratio - 1| / eps of every vector at every alpha."""
    eps = np.array([e for _, e in cases])
    values = np.array([ratios(beta, e) for beta, e in cases])
    return {"eps": eps, "share": np.abs(values - 1) / eps[:, None]}


def study_of(id: str, cell: Callable[..., Any], seed: int) -> Sizes:
    """A study of one cell, by the number of random vectors."""
    return sized(
        id,
        function=cell,
        arguments={"count": 400, "seed": seed},
        dims={"eps": ["vector"], "share": ["vector", "bound"]},
        tiny={"arguments": {"count": 100}},
        printed={"arguments": {"count": 20_000}},
    )


def evidence_of(
    dataset: Dataset, beyond: tuple[str, str], wrong: Sequence[str], finding: str, label: str
) -> Evidence:
    """The share of eps that is used at the bound, beyond it, and at the wrong bounds.

    `beyond` says in which alphas, and names the check; {median} and {worst} stand in the finding.
    """
    at_bound, further, *others = dataset.share.values.T
    worst = at_most(at_bound.max(), 1.0)
    series = [
        ("at the bound", dataset.eps.values, at_bound, "points"),
        ("outside it (control)", dataset.eps.values, others[0], "points"),
    ]
    title = r"how much of the allowed $\epsilon$ is used"
    return Evidence(
        ran=rf"{len(at_bound)} vectors of 1 to 50 entries, $\alpha$ at the bound and {beyond[0]} "
        "it",
        checks={
            r"worst |ratio - 1| / $\epsilon$ at the bound": worst,
            beyond[1]: at_most(further.max(), 1.0),
        },
        controls={n: worst.control(share.max()) for n, share in zip(wrong, others, strict=True)},
        findings=[finding.format(median=np.median(at_bound), worst=at_bound.max())],
        plots=[log_log(title, r"$\epsilon$", label, series)],
    )


# --- Lemma 5

WRONG_5 = (  # plausible wrong lemmas
    r"$\exp(-1/(2 \epsilon |b|_1))$, without $d$",
    r"without $\exp(-d/(2 \epsilon |b|_1))$, the upper half of the proof alone",
    r"$4 \epsilon$ for $2 \epsilon$, $\log(1/\alpha)$ for $\log(1/\alpha^2)$",
)


def log_alpha_1(norm: float, d: int, eps: float) -> list[float]:
    """The logarithms of the numbers whose minimum is alpha_1(eps, |b|_1, d) of Lemma 5."""
    return [0.0, 0.5 * np.log(norm), -np.log(2 * norm) / (2 * eps), -d / (2 * eps * norm)]


def log_alphas(beta: Array, eps: float) -> list[float]:
    """log alpha at the bound, far below it, and at the bound of each of WRONG_5."""
    norm, d = float(np.abs(beta).sum()), len(beta)
    *first, last = log_alpha_1(norm, d, eps)
    bound = min(*first, last)
    wrong = min(*first, last / d), min(first), min(log_alpha_1(norm, d, 2 * eps))
    return [bound, 3 * bound - 1, *wrong]


def ratios_5(beta: Array, eps: float) -> list[float]:
    """Q/log(1/alpha^2) over the l1 norm at every alpha."""
    return [Q(2, log_alpha=m)(beta) / (-2 * m) / np.abs(beta).sum() for m in log_alphas(beta, eps)]


def cell_5(count: int, seed: int) -> dict[str, Any]:
    """How far the ratios are from one, over eps."""
    # one entry of size one attains the lower bound as eps falls, a large one nearly the upper
    single = [(np.array([norm]), eps) for norm in (1.0, 1e8, 1e30) for eps in (0.1, 0.3)]
    return shares(vectors(count, seed) + single, ratios_5)


def check_5(dataset: Dataset) -> Evidence:
    """The share of eps that is used at the bound, below it, and at the wrong bounds."""
    return evidence_of(
        dataset,
        ("far below", r"worst |ratio - 1| / $\epsilon$ far below"),
        WRONG_5,
        r"slack at the bound: |ratio - 1|/$\epsilon$ is {median:.3f} at the median and "
        r"{worst:.4f} at worst; $b = (1)$ attains it as $\epsilon$ falls",
        r"$|Q/\log(1/\alpha^2)/|b|_1 - 1| / \epsilon$",
    )


lemma_5 = Experiment(
    "W-L5",
    statement=r"For $\alpha \leq \alpha_1(\epsilon, |b|_1, d)$, $Q/\log(1/\alpha^2)$ is $|b|_1$ "
    r"up to a factor $1\pm\epsilon$.",
    place="appendix E, Lemma 5",
    study=study_of("W-L5", cell_5, seed=5),
    check=check_5,
    title="Below the bound of Lemma 5, $Q$ is the ℓ₁ norm up to a factor",
)


# --- Lemma 7

WRONG_7 = (
    r"exponent -1/8 of $\epsilon$",
    r"$\sqrt{|b|_2}$ whatever $\epsilon$",
    "$|b|_2^{1/4}$ for its square root",
)


def alphas(norm: float, eps: float) -> list[float]:
    """The printed bound, four times it, and those of WRONG_7."""
    bound = np.sqrt(norm) * (1 + eps**-0.25)
    wrong = np.sqrt(norm) * (1 + eps**-0.125), np.sqrt(norm), norm**0.25 * (1 + eps**-0.25)
    return [bound, 4 * bound, *wrong]


def ratios_7(beta: Array, eps: float) -> list[float]:
    """4 alpha^2 Q over the squared l2 norm at every alpha."""
    norm = float(np.linalg.norm(beta))
    return [4 * a**2 * Q(2, alpha=a)(beta) / norm**2 for a in alphas(norm, eps)]


def cell_7(count: int, seed: int) -> dict[str, Any]:
    """How far the ratios are from one, over eps."""
    single = [(np.array([norm]), 10.0**-k) for norm in (1e-3, 1.0, 1e3) for k in range(9)]
    return shares(vectors(count, seed) + single, ratios_7)


def check_7(dataset: Dataset) -> Evidence:
    """The share of eps that is used at the bound, above it, and at the wrong bounds."""
    return evidence_of(
        dataset,
        ("four times", "the same at four times it"),
        WRONG_7,
        r"slack: |ratio - 1|/$\epsilon$ is {median:.2g} at the median and {worst:.2g} at worst, "
        "near the 1/48 of the next term of $q$; eqs. (40) and (41) write a third derivative "
        "where the fourth is meant and used",
        r"$|4 \alpha^2 Q/|b|_2^2 - 1| / \epsilon$",
    )


lemma_7 = Experiment(
    "W-L7",
    statement=r"For $\alpha \geq \sqrt{|b|_2} (1 + \epsilon^{-1/4})$, $4 \alpha^2 Q$ is $|b|_2^2$ "
    r"up to a factor $1\pm\epsilon$.",
    place="appendix E, Lemma 7",
    study=study_of("W-L7", cell_7, seed=7),
    check=check_7,
    title="Above the bound of Lemma 7, $Q$ is the squared ℓ₂ norm up to a factor",
)
