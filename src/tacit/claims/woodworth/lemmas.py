"""W-L5, W-L6, W-L7: how far Q is from the l1 and l2 norms, bound by bound."""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.bias.q import Q
from tacit.claims.evidence import Check, Evidence
from tacit.claims.plot import Plot, Series
from tacit.claims.registry import claim
from tacit.claims.verdict import Size

COUNTS = {"quick": 400, "full": 20_000}


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


def sandwich(ratio: Array | float, eps: Array | float) -> Array:
    """|ratio - 1| / eps: at most one when (1-eps) <= ratio <= (1+eps)."""
    return np.abs(ratio - 1) / eps


def l1_ratio(beta: Array, log_alpha: float) -> float:
    return Q(2, log_alpha=log_alpha)(beta) / (-2 * log_alpha) / float(np.abs(beta).sum())


def lemma_5_bound(beta: Array, eps: float) -> float:
    """log alpha_1(eps, |beta|_1, d)."""
    norm = float(np.abs(beta).sum())
    return min(
        0.0,
        0.5 * np.log(norm),
        -np.log(2 * norm) / (2 * eps),
        -len(beta) / (2 * eps * norm),
    )


@claim(
    "W-L5",
    statement="for alpha <= alpha_1(eps, |b|_1, d), Q/log(1/alpha^2) is |b|_1 up to a factor 1±eps",
    place="appendix E, Lemma 5",
)
def lemma_5(size: Size) -> Evidence:
    cases = vectors(COUNTS[size], seed=5)
    eps = np.array([e for _, e in cases])
    bounds = np.array([lemma_5_bound(beta, e) for beta, e in cases])
    at_bound = sandwich(
        np.array([l1_ratio(b, m) for (b, _), m in zip(cases, bounds, strict=True)]), eps
    )
    below = sandwich(
        np.array([l1_ratio(b, 3 * m - 1) for (b, _), m in zip(cases, bounds, strict=True)]), eps
    )
    too_large = sandwich(
        np.array([l1_ratio(b, m / 20) for (b, _), m in zip(cases, bounds, strict=True)]), eps
    )
    worst = Check("worst |ratio - 1| / eps at the bound", at_bound.max(), 1.0, kind="at most")
    return Evidence(
        ran=f"{len(cases)} random vectors of 1 to 50 entries, alpha at the bound and far below it",
        checks=[
            worst,
            Check("worst |ratio - 1| / eps far below", below.max(), 1.0, kind="at most"),
        ],
        controls={"log alpha at a twentieth of the bound": worst.control(too_large.max())},
        findings=[
            f"slack at the bound: |ratio - 1|/eps is {np.median(at_bound):.3f} at the median and"
            f" {at_bound.max():.3f} at worst"
        ],
        plots=[shares("|Q/log(1/alpha²)/|b|₁ − 1| / eps", eps, at_bound, too_large)],
    )


def shares(label: str, eps: Array, at_bound: Array, control: Array) -> Plot:
    """How much of the allowed eps is used, at the bound and where it does not hold."""
    series = [
        Series("at the bound", eps, at_bound, "points"),
        Series("outside it (control)", eps, control, "points"),
    ]
    return Plot("how much of the allowed eps is used", "eps", label, series, "log", "log")


def unit_value(c: float | Array, log_alpha: Array) -> Array:
    """c alpha^2 q(1/(c alpha^2)), the value of Q per unit of l1 norm at entries of size 1/c."""
    log_mu = 2 * log_alpha + np.log(c)
    flat = np.ravel(log_mu)
    return np.array([Q(2, log_alpha=m / 2)([1.0]) for m in flat]).reshape(np.shape(log_mu))


def proportionality(log_d: Array, log_alpha: Array) -> Array:
    """sqrt(d) Q(e1)/Q(1/sqrt d): one if Q were proportional to the l1 norm."""
    return unit_value(1.0, log_alpha) / unit_value(np.exp(log_d / 2), log_alpha)


@claim(
    "W-L6",
    statement="for alpha >= d^(-1/4 - 1/8eps), d >= max(e, 12^4eps), Q is not l1 up to 1+eps",
    place="appendix E, Lemma 6, eqs. (31), (36), (37)",
)
def lemma_6(size: Size) -> Evidence:
    rng = np.random.default_rng(6)
    count = COUNTS[size]
    eps = 10 ** rng.uniform(-2, 0.7, count)
    log_d = np.maximum(1.0, 4 * eps * np.log(12)) * 10 ** rng.uniform(0, 0.7, count)
    edge = -log_d * (0.25 + 1 / (8 * eps))
    at_edge = proportionality(log_d, edge) / (1 + eps)
    above = proportionality(log_d, edge + rng.exponential(3, count)) / (1 + eps)
    steps = np.array([proportionality(log_d, edge + k) for k in range(6)])
    below = proportionality(log_d, 20 * edge) / (1 + eps)
    x = 10 ** rng.uniform(-3, 1, count)  # c alpha^2 in eq. (31)
    exact = np.array([Q(2, mu=v)([1.0]) for v in x])
    head = 2 * x - np.sqrt(4 * x**2 + 1) + np.log(1 / x)
    printed = np.abs(head + np.log(0.5 + np.sqrt(x**2 + 0.5)) - exact)
    mended = np.abs(head + np.log(0.5 + np.sqrt(x**2 + 0.25)) - exact)
    bound = Check("smallest ratio / (1+eps)", at_edge.min(), 1.0, kind="at least")
    others = [
        bound,
        Check("the same above the edge", above.min(), 1.0, kind="at least"),
        Check("smallest growth of the ratio with alpha", np.diff(steps, axis=0).min(), 0.0,
              tolerance=1e-12, kind="at least"),
    ]  # fmt: skip
    identity = Check("eq. (31), worst deviation", printed.max(), tolerance=1e-10)
    worst = int(np.argmax(printed))
    return Evidence(
        ran=f"{count} random (eps, d), alpha at the edge and above; eq. (31) at {count} points",
        checks=others,
        proof=[identity],
        corrected=[Check("eq. (31) with 1/4", mended.max(), tolerance=1e-10)],
        correction="in eq. (31) the last square root holds c²α⁴ + 1/4, not c²α⁴ + 1/2;"
        " the lemma itself stands",
        counterexample={
            "c alpha^2": x[worst],
            "left side of (31) times c alpha^2": exact[worst],
            "right side as printed": exact[worst] + printed[worst],
        },
        controls={"log alpha at twenty times the edge": bound.control(below.min())},
        findings=[f"slack at the edge: ratio/(1+eps) is {np.median(at_edge):.3f} at the median"],
    )


@claim(
    "W-L7",
    statement="for alpha >= sqrt(|b|_2) (1 + eps^-1/4), 4 alpha^2 Q is |b|_2^2 up to 1±eps",
    place="appendix E, Lemma 7",
)
def lemma_7(size: Size) -> Evidence:
    cases = vectors(COUNTS[size], seed=7)
    eps = np.array([e for _, e in cases])

    def used(factor: float) -> Array:
        """|4 alpha^2 Q/|b|^2 - 1| / eps with alpha at `factor` times the bound."""
        shares = []
        for beta, e in cases:
            norm = float(np.linalg.norm(beta))
            alpha = factor * np.sqrt(norm) * (1 + e**-0.25)
            shares.append(sandwich(4 * alpha**2 * Q(2, alpha=alpha)(beta) / norm**2, e))
        return np.array(shares)

    at_bound, above, below = used(1.0), used(4.0), used(0.1)
    worst = Check("worst |ratio - 1| / eps at the bound", at_bound.max(), 1.0, kind="at most")
    return Evidence(
        ran=f"{len(cases)} random vectors of 1 to 50 entries, alpha at the bound and four times it",
        checks=[worst, Check("the same at four times it", above.max(), 1.0, kind="at most")],
        controls={"alpha at a tenth of the bound": worst.control(below.max())},
        findings=[
            f"slack: |ratio - 1|/eps is {np.median(at_bound):.2g} at the median and"
            f" {at_bound.max():.2g} at worst; eqs. (40) and (41) write a third derivative where"
            " the fourth is meant and used"
        ],
        plots=[shares("|4 alpha² Q/|b|₂² − 1| / eps", eps, at_bound, below)],
    )
