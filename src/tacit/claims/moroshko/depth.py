"""M-depth: how small mu must be for a delta-approximation of the l1 max margin.

At depth 2 and for small mu, Q_mu(w) is about sum |w_i| log(|w_i|/mu). With w* the l1 max margin,
|w*|_1 = 1, the minimiser w has <grad Q(w), w* - w> >= 0. For |w|_1 = 1 + delta and
p = |w|/|w|_1 this is delta log(1/mu) <= H(p) + log(max p) + O(delta), H the entropy. The right
side is largest where all p but one are equal, p_1 = e^x p_i: it is then x (d-1)/(e^x + d-1), whose
maximum over x is W((d-1)/e), W the Lambert function. One point with d - 1 near ties attains it.
"""

from __future__ import annotations

import numpy as np

from tacit.arguments import Array
from tacit.claims.moroshko.courses import off_support, predictors
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.papers.instances import slope
from tacit.problems.classification import Classification, three_points
from tacit.regularizers.norms import L1
from tacit.regularizers.q import Q
from tacit.solvers.max_margin import max_margin
from tacit.studies.sizes import Size

MUS = np.geomspace(1e-6, 1e-12, 4)
DEEP = ((3, 2), (3, 30), (6, 30))  # depths and dimensions
DIMENSIONS = (2, 10, 30, 100)
TINY = -3000.0  # log mu where the constants are read: the law is reached like 1/log(1/mu)
SMALL = -300.0  # log mu of the random sets: nearer ties have too few digits for several samples
DRAWN = {"quick": 24, "full": 200}


def near_ties(eps: float, dimension: int) -> Classification:
    """One point (1, 1 - eps, ...): the l1 max margin is e_1, any other e_i costs only eps more."""
    row = np.full((1, dimension), 1.0 - eps)
    row[0, 0] = 1.0
    return Classification(row, np.ones(1))


def excess(depth: int, log_mu: float, eps: float, dimension: int) -> float:
    """|w|_1 - 1 of the Q_mu max margin on near ties; the l1 max margin has norm 1."""
    data = near_ties(eps, dimension)
    beta = max_margin(data.X, data.y, Q(depth, log_alpha=log_mu / depth)).beta
    # <x, w> = 1 makes |w|_1 - 1 = eps (w_2 + ... + w_d) without cancellation
    return float(eps * beta[1:].sum())


def worst_tie(depth: int, log_mu: float, dimension: int) -> tuple[float, float]:
    """(delta, eps): the largest excess over near ties and where it is found."""
    from scipy.optimize import minimize_scalar

    centre = -np.log(-log_mu) if depth == 2 else log_mu * (depth - 2) / depth
    found = minimize_scalar(
        lambda log_eps: -excess(depth, log_mu, float(np.exp(log_eps)), dimension),
        bounds=(centre - 4, min(centre + 4, -0.1)),
        method="bounded",
        options={"xatol": 1e-3},  # the maximum is flat
    )
    return -float(found.fun), float(np.exp(found.x))


def constant(dimension: int) -> float:
    """W((d-1)/e) = max x (d-1)/(e^x + d-1): c in delta = c / log(1/mu) at depth 2."""
    from scipy.special import lambertw

    return float(lambertw((dimension - 1) / np.e).real)


def drawn_share(seed: int) -> tuple[int, float]:
    """The number of features of random near ties, and delta log(1/mu) there at SMALL."""
    rng = np.random.default_rng(seed)
    dimension, samples = int(rng.integers(2, 31)), int(rng.integers(1, 4))
    # the ties are as near as those of the worst case, some columns nearer than others
    nearness = (1 + constant(dimension)) / -SMALL * rng.uniform(0.5, 2.0, dimension)
    X = 1 - nearness * rng.uniform(0.0, 1.0, (samples, dimension)) ** rng.uniform(0.0, 2.0)
    least, found = (
        np.abs(max_margin(X, np.ones(samples), norm).beta).sum()
        for norm in (L1(), Q(2, log_alpha=SMALL / 2))
    )
    return dimension, float((found / least - 1) * -SMALL)


def on_panel(depth: int) -> Array:
    """Relative l1 excess of the Q_mu max margin on M-F3b at MUS."""
    b = three_points("M-F3b")
    least = np.abs(max_margin(b.X, b.y, L1()).beta).sum()
    norms = [
        np.abs(max_margin(b.X, b.y, Q(depth, log_alpha=np.log(mu) / depth)).beta).sum()
        for mu in MUS
    ]
    return np.array(norms) / least - 1


def trained_excess(eps: float, dimension: int, mu: float, alpha: float = 100.0) -> float:
    """delta on near ties of a net of depth 2 trained in its parameters to alpha^2/mu."""
    w = predictors(near_ties(eps, dimension), 2, alpha, [alpha**2 / mu])[0]
    others = w[1:].sum()
    return float(eps * others / (w[0] + (1 - eps) * others))


@claim(
    "M-depth",
    statement="a delta-approximation of the l1 max margin needs mu = exp(-1/delta) at depth 2 and"
    " 1/mu polynomial in 1/delta at greater depth",
    place="section 4, Role of depth",
    seconds=4,
)
def depth(size: Size) -> Evidence:
    shares = {d: worst_tie(2, TINY, d)[0] * -TINY / constant(d) for d in DIMENSIONS}
    two = [
        Check(
            f"D = 2, d = {d}, mu = e^{TINY:g}: delta log(1/mu) on the worst near ties, over"
            f" W((d-1)/e) = {constant(d):.4f}",
            shares[d],
            1.0,
            tolerance=0.01,
        )
        for d in DIMENSIONS
    ]
    random = [drawn_share(seed) for seed in range(DRAWN[size])]
    most = max(value / constant(d) for d, value in random)
    bound = Check(
        f"D = 2: largest delta log(1/mu) over W((d-1)/e) on {len(random)} random sets",
        most,
        1.0,
        0.01,
        "at most",
    )
    deltas = {(D, d): np.array([worst_tie(D, np.log(mu), d)[0] for mu in MUS]) for D, d in DEEP}
    deep = [
        Check(
            f"worst near ties, D = {D}, d = {d}: exponent of delta in mu",
            slope(MUS, far),
            (D - 2) / D,
            tolerance=0.01,
        )
        for (D, d), far in deltas.items()
    ]
    panel = {D: on_panel(D) for D in (2, 3)}
    bits, z = np.log(1 / MUS), off_support(three_points("M-F3b"))
    printed = Check(
        "M-F3b, D = 2: exponent of log(1/mu) in 1/delta",
        slope(1 / panel[2], bits),
        1.0,
        tolerance=0.1,
    )
    delta, eps = worst_tie(2, np.log(MUS[0]), 30)
    agree = Check(
        "d = 30, mu = 1e-6, trained in the parameters: delta over that of argmin Q_mu",
        trained_excess(eps, 30, MUS[0]) / delta,
        1.0,
        tolerance=1e-3,
    )
    deciding = [*two, bound, *deep, agree]
    return Evidence(
        ran=f"the worst of all points (1, 1 - eps, ...) in d = {', '.join(map(str, DIMENSIONS))}"
        f" dimensions at mu = e^{TINY:g} for depth 2, at mu = 1e-6 to 1e-12 for depths 3 and 6;"
        f" {len(random)} random sets of 1 to 3 near ties at mu = e^{SMALL:g}; M-F3b; one worst"
        " case trained from alpha = 100",
        checks=[*deciding, printed],
        corrected=deciding,
        correction="at depth 2 the worst data set with d features has delta = W((d-1)/e) /"
        " log(1/mu) as mu -> 0, W the Lambert function, which grows like log d: it needs"
        " mu = exp(-W((d-1)/e)/delta), d to the power -1/delta for many features; at depth D > 2"
        " the worst delta ~ mu^((D-2)/D); a given data set whose l1 max margin is unique needs"
        " only a power of 1/delta, at depth 2 too",
        counterexample={
            "M-F3b, D = 2: exponent of delta in mu": slope(MUS, panel[2]),
            "1 - z": 1 - z,
            "d = 30: delta log(1/mu)": shares[30] * constant(30),
        },
        controls={
            "the constant of d = 2 at d = 30": two[2].control(
                shares[30] * constant(30) / constant(2)
            ),
            "the constant of d = 2 for every random set": bound.control(
                max(value for _, value in random) / constant(2)
            ),
            "depth 3 at the same mu, d = 30": two[2].control(
                worst_tie(3, TINY, 30)[0] * -TINY / constant(30)
            ),
            "the exponent of one data set, M-F3b, for the worst at D = 3": deep[0].control(
                slope(MUS, panel[3])
            ),
        },
        findings=[
            f"M-F3b, D = 2: delta falls like mu^{slope(MUS, panel[2]):.4f} (1 - z ="
            f" {1 - z:.4f}), D = 3 like mu^{slope(MUS, panel[3]):.4f}: polynomially in both cases",
            "the approach to the constant is slow: delta log(1/mu) at mu = 1e-12 is "
            + ", ".join(
                f"{worst_tie(2, np.log(1e-12), d)[0] * bits[-1]:.3g} (d = {d}, limit"
                f" {constant(d):.3g})"
                for d in DIMENSIONS
            ),
            "on the worst data set of 30 features depth shortens the training needed for"
            f" delta = 0.01 from log(1/eps) = alpha^2 e^{constant(30) / 0.01:.0f} to alpha^3 times"
            f" about {(deltas[3, 30][0] / MUS[0] ** (1 / 3) / 0.01) ** 3:.2g} at depth 3",
        ],
        plots=[
            Plot(
                "largest l1 excess over near ties (1, 1 - eps, ...)",
                "mu",
                "delta",
                [Series(f"D = {D}, d = {d}", MUS, far) for (D, d), far in deltas.items()],
                x_scale="log",
                y_scale="log",
            )
        ],
    )
