"""Role of depth: how small mu must be for a delta-approximation of the l1 max margin.

At depth 2 and for small mu, Q_mu(w) is about sum |w_i| log(|w_i|/mu). With w* the l1 max margin,
|w*|_1 = 1, the minimiser w has <grad Q(w), w* - w> >= 0. For |w|_1 = 1 + delta and
p = |w|/|w|_1 this is delta log(1/mu) <= H(p) + log(max p) + O(delta), H the entropy. The right
side is largest where all p but one are equal, p_1 = e^x p_i: it is then x (d-1)/(e^x + d-1), whose
maximum over x is W((d-1)/e), W the Lambert function. One point with d - 1 near ties attains it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import Classification, Q, max_margin
from penchant.lab import Dataset, Evidence, Experiment, at_most, log_log, sized, within
from penchant.problems import three_points
from penchant_papers.instances import slope
from penchant_papers.moroshko2020.stopping import max_margin_of, off_support, predictors

MUS = np.geomspace(1e-6, 1e-12, 4)
TINY = -3000.0  # log mu where the constants are read: the law is reached like 1/log(1/mu)
SMALL = -300.0  # log mu of the random sets: nearer ties have too few digits for several samples


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


def worst_tie(depth: int, log_mu: float, dimension: int, deeper: int = 0) -> tuple[float, float]:
    """(delta, eps): the largest excess over near ties and where it is found.

    Q is that of depth + deeper; a `deeper` other than 0 gives a wrong theory.
    """
    from scipy.optimize import minimize_scalar

    centre = -np.log(-log_mu) if depth == 2 else log_mu * (depth - 2) / depth
    maximum = minimize_scalar(
        lambda log_eps: -excess(depth + deeper, log_mu, float(np.exp(log_eps)), dimension),
        bounds=(centre - 4, min(centre + 4, -0.1)),
        method="bounded",
        options={"xatol": 1e-3},  # the maximum is flat
    )
    return -float(maximum.fun), float(np.exp(maximum.x))


def constant(dimension: int) -> float:
    """W((d-1)/e) = max x (d-1)/(e^x + d-1): c in delta = c / log(1/mu) at depth 2."""
    from scipy.special import lambertw

    return float(lambertw((dimension - 1) / np.e).real)


def cell(depth: int, dimension: int, log_mu: float, *, deeper: int) -> dict[str, float]:
    """The largest l1 excess over near ties, and the nearness at which it is found."""
    delta, eps = worst_tie(depth, log_mu, dimension, deeper)
    return {"delta": delta, "nearness": eps}


def random_cell(seed: int) -> dict[str, float]:
    """The number of features of random near ties, and delta log(1/mu) there at SMALL."""
    rng = np.random.default_rng(seed)
    dimension, samples = int(rng.integers(2, 31)), int(rng.integers(1, 4))
    # the ties are as near as those of the worst case, some columns nearer than others
    nearness = (1 + constant(dimension)) / -SMALL * rng.uniform(0.5, 2.0, dimension)
    X = 1 - nearness * rng.uniform(0.0, 1.0, (samples, dimension)) ** rng.uniform(0.0, 2.0)
    data = Classification(X, np.ones(samples))
    norm = np.abs(max_margin(X, data.y, Q(2, log_alpha=SMALL / 2)).beta).sum()
    share = (norm / np.abs(max_margin_of(data, "l1")).sum() - 1) * -SMALL
    return {"features": dimension, "share": share}


def panel_cell(depth: int, *, mus: list[float]) -> dict[str, Any]:
    """Relative l1 excess of the Q_mu max margin on panel 3b."""
    b = three_points("3b")
    norms = [
        np.abs(max_margin(b.X, b.y, Q(depth, log_alpha=np.log(mu) / depth)).beta).sum()
        for mu in mus
    ]
    return {"delta": np.array(norms) / np.abs(max_margin_of(b, "l1")).sum() - 1}


def trained_cell(alpha: float, *, dimension: int, mu: float) -> dict[str, float]:
    """delta on the worst near ties of depth 2: of argmin Q_mu, and trained to alpha^2/mu."""
    delta, eps = worst_tie(2, float(np.log(mu)), dimension)
    w = predictors(near_ties(eps, dimension), 2, alpha, [alpha**2 / mu])[0]
    others = w[1:].sum()
    return {"delta": delta, "trained": eps * others / (w[0] + (1 - eps) * others)}


study = sized(
    "M-depth",
    function=cell,
    arguments={"deeper": 0},
    grid={"depth": [2], "dimension": [2, 10, 30], "log_mu": [TINY, float(np.log(1e-12))]},
    printed={"grid": {"dimension": [2, 10, 30, 100]}},
)
deep = sized(
    "M-depth-deep",
    function=cell,
    arguments={"deeper": 0},
    grid={"depth": [3], "dimension": [2, 30], "log_mu": np.log(MUS).tolist()},
    printed={"grid": {"depth": [3, 6]}},
)
wrong = sized(
    "M-depth-wrong",
    function=cell,
    arguments={"deeper": 0},
    grid={"depth": [3], "dimension": [30], "log_mu": [TINY]},
)
random = sized(
    "M-depth-random",
    function=random_cell,
    seeds=6,
    printed={"seeds": 200},
)
panel = sized(
    "M-depth-panel",
    function=panel_cell,
    arguments={"mus": MUS.tolist()},
    grid={"depth": [2, 3]},
    dims={"delta": ["mu"]},
)
trained = sized(
    "M-depth-trained",
    function=trained_cell,
    arguments={"dimension": 30, "mu": float(MUS[0])},
    grid={"alpha": [100.0]},
)


def check(
    dataset: Dataset,
    deep: Dataset,
    wrong: Dataset,
    random: Dataset,
    panel: Dataset,
    trained: Dataset,
) -> Evidence:
    """The constant of depth 2 on the worst data, and the exponents of greater depths."""
    worst = dataset.delta.isel(depth=0)
    dimensions, bits = dataset.dimension.values.tolist(), np.log(1 / MUS)
    shares = {d: float(worst.sel(dimension=d)[0]) * -TINY / constant(d) for d in dimensions}
    two = {d: within(share, 1.0, 0.01) for d, share in shares.items()}
    limits = np.array([constant(int(d)) for d in random.features.values])
    bound = at_most((random.share.values / limits).max(), 1.0, 0.01)
    deltas = {
        (int(D), int(d)): deep.delta.sel(depth=D, dimension=d).values
        for D in deep.depth.values
        for d in deep.dimension.values
    }
    greater = {
        rf"worst near ties, $D = {D}$, $d = {d}$: exponent of $\delta$ in $\mu$": within(
            slope(MUS, far), (D - 2) / D, 0.01
        )
        for (D, d), far in deltas.items()
    }
    first, *_ = greater.values()
    on_panel = {D: panel.delta.sel(depth=D).values for D in (2, 3)}
    z = off_support(three_points("3b"))
    deciding = {
        **{
            rf"$D = 2$, $d = {d}$, $\mu = e^{{{TINY:g}}}$: $\delta \log(1/\mu)$ on the worst near "
            f"ties, over $W((d-1)/e) = {constant(d):.4f}$": one
            for d, one in two.items()
        },
        rf"$D = 2$: largest $\delta \log(1/\mu)$ over $W((d-1)/e)$ on {len(limits)} "
        "random sets": bound,
        **greater,
        r"$d = 30$, $\mu = 10^{-6}$, trained in the parameters: $\delta$ over that of "
        r"$\operatorname{argmin} Q_\mu$": within(
            (trained.trained / trained.delta).item(), 1.0, 1e-3
        ),
    }
    printed = within(slope(1 / on_panel[2], bits), 1.0, 0.1)
    return Evidence(
        ran=r"the worst of all points (1, $1 - \epsilon$, ...) in $d$ = "
        rf"{', '.join(map(str, dimensions))} dimensions at $\mu = e^{{{TINY:g}}}$ for depth "
        rf"2, at $\mu = 10^{{-6}}$ to $10^{{-12}}$ for greater depths; {len(limits)} random "
        rf"sets of 1 to 3 near ties at $\mu = e^{{{SMALL:g}}}$; panel 3b; one worst case "
        r"trained from $\alpha = 100$",
        checks={**deciding, r"panel 3b, $D = 2$: exponent of $\log(1/\mu)$ in $1/\delta$": printed},
        corrected=deciding,
        correction=r"at depth 2 the worst data set with $d$ features has $\delta = W((d-1)/e) / "
        r"\log(1/\mu)$ as $\mu \to 0$, $W$ the Lambert function, which grows like $\log d$: "
        r"it needs $\mu = \exp(-W((d-1)/e)/\delta)$, which is $d$ to the power $-1/\delta$ "
        r"for many features; at depth $D > 2$ the worst $\delta \sim \mu^{(D-2)/D}$; a given "
        r"data set whose $\ell_1$ max margin is unique needs only a power of $1/\delta$, at "
        "depth 2 too",
        counterexample={
            r"panel 3b, $D = 2$: exponent of $\delta$ in $\mu$": slope(MUS, on_panel[2]),
            "$1 - z$": 1 - z,
            r"$d = 30$: $\delta \log(1/\mu)$": shares[30] * constant(30),
        },
        controls={
            "the constant of $d = 2$ at $d = 30$": two[30].control(
                shares[30] * constant(30) / constant(2)
            ),
            "the constant of $d = 2$ in place of that of every random set": bound.control(
                random.share.values.max() / constant(2)
            ),
            r"depth 3 at the same $\mu$, $d = 30$": two[30].control(
                wrong.delta.item() * -TINY / constant(30)
            ),
            "the exponent of one data set, panel 3b, in place of the worst at $D = 3$": (
                first.control(slope(MUS, on_panel[3]))
            ),
        },
        findings=[
            rf"panel 3b, $D = 2$: $\delta$ falls like $\mu^{{{slope(MUS, on_panel[2]):.4f}}}$ ($1 "
            rf"- z = {1 - z:.4f}$), $D = 3$ like $\mu^{{{slope(MUS, on_panel[3]):.4f}}}$: "
            "polynomially in both cases",
            r"the approach to the constant is slow: $\delta \log(1/\mu)$ at $\mu = 10^{-12}$ is "
            + ", ".join(
                f"{float(worst.sel(dimension=d)[1]) * bits[-1]:.3g} ($d = {d}$, limit "
                f"{constant(d):.3g})"
                for d in dimensions
            ),
            r"on the worst data set of 30 features depth shortens the training needed for $\delta "
            rf"= 0.01$ from $\log(1/\epsilon) = \alpha^2 e^{{{constant(30) / 0.01:.0f}}}$ to "
            r"$\alpha^3$ times about "
            f"{(deltas[3, 30][0] / MUS[0] ** (1 / 3) / 0.01) ** 3:.2g} at depth 3",
        ],
        plots=[
            log_log(
                r"largest $\ell_1$ excess over near ties (1, $1 - \epsilon$, ...)",
                r"$\mu$",
                r"$\delta$",
                [(f"$D = {D}$, $d = {d}$", MUS, far) for (D, d), far in deltas.items()],
            )
        ],
    )


experiment = Experiment(
    "M-depth",
    statement=r"A $\delta$-approximation of the $\ell_1$ max margin needs $\mu = \exp(-1/\delta)$ "
    r"at depth 2, and $1/\mu$ polynomial in $1/\delta$ at greater depth.",
    place="section 4, Role of depth",
    study=(study, deep, wrong, random, panel, trained),
    check=check,
    title=r"At depth above 2, a $\delta$-approximation of the ℓ₁ max margin needs $\mu$ to be "
    r"only a power of $\delta$",
    ours="the data sets, and the statement for the worst of them",
    seconds=2,
)
