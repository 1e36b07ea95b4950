"""Appendices F.2, F.3, G.2, G.3: the multipliers that training accumulates, as alpha grows."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from penchant import Classification, DiagonalNet
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    at_least,
    at_most,
    drawn,
    log_log,
    sized,
    within,
)
from penchant.problems import separable_points
from penchant_papers.instances import slope
from penchant_papers.moroshko2020.lemmas.runs import Case, h_inverse
from penchant_papers.moroshko2020.stopping import (
    max_margin_of,
    rows_at,
    stationarity,
    trained,
)

MU = 0.1
SCALES = [1e2, 1e4]  # alpha^D, stopped at log(1/eps) = alpha^D/MU
FAR = [1e4, 1e8, 1e12]  # log(1/eps)/alpha^D of the rich limit, from alpha^D = 1


def steady(problem: Classification) -> bool:
    """Whether l1 and l2 have the same support vectors, not all samples, and l1 stays deep."""
    best = [max_margin_of(problem, norm) for norm in ("l1", "l2")]
    margins = [problem.signed_rows @ beta for beta in best]
    same = [tuple(m < m.min() + 1e-6) for m in margins]
    clear = all(((m < m.min() + 1e-6) | (m > 1.2 * m.min())).all() for m in margins)
    deep = stationarity(problem, 3, best[0]) < 1e-6
    return same[0] == same[1] and not all(same[0]) and clear and deep


@functools.lru_cache(maxsize=64)
def set_of(seed: int) -> tuple[Classification, int]:
    return drawn(lambda k: separable_points(4, 5, margin=0.3, seed=k), steady, 1000 * seed)


def argument(case: Case, beta: Array) -> Array:
    """4 X int r at depth 2, alpha^(D-2) D (D-2) X int r beyond: what Lemmas 10 and 12 say of w."""
    w = beta / case.mu
    return np.arcsinh(w / 2) if case.depth == 2 else h_inverse(w, case.depth)


def weights(case: Case, beta: Array) -> Array:
    """The same without X: one number per sample, for fewer samples than features."""
    return np.asarray(np.linalg.lstsq(case.rows.T, argument(case, beta).T)[0].T, float)


def at_mu(problem: Classification, depth: int, scale: float) -> dict[str, float]:
    """One run to log(1/eps) = alpha^D/MU: its multipliers, and both sides of eqs. (57), (81)."""
    case = Case("", problem, depth, scale ** (1 / depth))
    end = scale / MU
    net = DiagonalNet(depth, alpha=case.alpha)
    data = trained(problem, net, [end], per_decade=12).dataset.isel(time=slice(1, None))
    data = data.isel(time=slice(0, rows_at(data, [end])[0] + 1))
    g, margins = data.smoothed_margin.values, data.margins.values
    last = weights(case, data.predictor.values[-1])
    off = margins[-1] > 1.1 * margins[-1].min()
    # int exp(-x_k w) dt <= (2 D^2 alpha^(2D-2) gamma_2^2)^-1 int exp(g - x_k w) dg
    integrand = np.exp(g[:, None] - margins)[:, off]
    clock, values = np.append(0.0, g), np.vstack([np.ones(off.sum()), integrand])
    right = np.trapezoid(values, clock, axis=0)
    right /= 2 * depth**2 * case.alpha ** (2 * depth - 2) * case.gamma_2**2
    unit = 4.0 if depth == 2 else case.alpha ** (depth - 2) * depth * (depth - 2)
    left = len(problem.y) * last[off] / unit
    # eqs. (58)-(60) with rho_1 = 1.05: what is left of the integrand when it has decayed
    return {
        "off": float(np.abs(last[off]).max() / np.abs(last).max()),
        "on": float(last[~off].min() / np.abs(last).max()),
        "ratio": float((left / right).max()),
        "least_ratio": float((left / right).min()),
        "swapped": float(len(problem.y) * last[~off].max() / unit / right.max()),
    }


def far(problem: Classification, depth: int) -> Array:
    """The largest distance of z_i from the sign of w_i, for entries of the l1 max margin."""
    case, l1 = Case("", problem, depth, 1.0), max_margin_of(problem, "l1")
    on = np.abs(l1) > 1e-6 * np.abs(l1).max()
    net = DiagonalNet(depth, alpha=1.0)
    data = trained(problem, net, FAR).dataset
    z = argument(case, data.predictor.values[rows_at(data, FAR)])
    if depth == 2:
        z = z / np.log(np.array(FAR))[:, None]
    return np.array([np.abs(z[:, on] - np.sign(l1[on])).max(axis=1), np.abs(z).max(axis=1)])


def cell(seed: int, depth: int, *, scales: list[float]) -> dict[str, Any]:
    """The multipliers of one set at every scale, and z of the rich limit."""
    problem, draws = set_of(seed)
    runs = [at_mu(problem, depth, scale) for scale in scales]
    gap, most = far(problem, depth)
    return {
        **{name: [run[name] for run in runs] for name in runs[0]},
        "gap": gap,
        "most": most,
        "draws": draws,
    }


study = sized(
    "M-KKT",
    function=cell,
    arguments={"scales": SCALES},
    grid={"depth": [2, 3]},
    seeds=12,
    dims={
        **{name: ["scale"] for name in ("off", "on", "ratio", "least_ratio", "swapped")},
        "gap": ["far"],
        "most": ["far"],
    },
    tiny={"seeds": 6},
    printed={"seeds": 100},
)


def check(dataset: Dataset) -> Evidence:
    """Multipliers off the margin vanish like 1/alpha^D; z tends to the signs at its two rates."""
    scales, away = np.array(SCALES), np.array(FAR)
    off = dataset.off.median("seed")
    rate = within(
        max((slope(scales, off.sel(depth=D).values) for D in (2, 3)), key=lambda p: abs(p + 1)),
        -1.0,
        0.15,
    )
    kept = dataset.on.median("seed")
    positive = at_least(dataset.on.min(), tolerance=1e-6)
    bound = at_most(dataset.ratio.max(), 1.0, 1e-3)
    typical = dataset.gap.median("seed")
    two, three = (typical.sel(depth=D).values for D in (2, 3))
    log_rate = within(two[-1] / two[0], np.log(away[0]) / np.log(away[-1]), 0.1)
    power = within(slope(away, three), -1 / 3, 0.05)
    inside = at_most(dataset.most.sel(depth=3).max(), 1.0)
    return Evidence(
        ran=f"{dataset.sizes['seed']} sets of four points in five dimensions whose support vectors "
        r"do not change, depths 2 and 3, trained in the parameters: $\alpha^D = 100$ and $10^4$ "
        r"stopped at $10 \alpha^D$, and $\alpha = 1$ to $\log(1/\epsilon) = 10^{12}$; the "
        r"multipliers are read off the predictor",
        checks={
            r"exponent in $\alpha^D$ of $\nu_k$ off the margin over the largest, median": rate,
            r"least $\nu_n$ on the margin over the largest": positive,
            r"(57), (81): largest $\int e^{-x_k w} dt$ over its bound": bound,
            r"$D = 2$: distance of $z_i$ from $\pm 1$ on the support, at $g = 10^{12}$ over "
            r"$10^4$, "
            "median (predicted: the ratio of the logarithms)": log_rate,
            r"$D = 3$: exponent in $g$ of the same distance": power,
            r"$D = 3$: largest $|z_i|$, (24)": inside,
        },
        premises={
            "sets whose support vectors do not change are drawn (draws)": (
                True,
                int(dataset.draws.max()),
            )
        },
        controls={
            r"$\nu_n$ on the margin (exponent)": rate.control(
                slope(scales, kept.sel(depth=2).values)
            ),
            r"(57) for a sample on the margin, with the bound of those off it (median)": (
                bound.control(dataset.swapped.median())
            ),
            r"a power law at $D = 2$: exponent of the distance of $z_i$ in $g$": power.control(
                slope(away, two)
            ),
        },
        findings=[
            r"$z_i$ tends to $\pm 1$ like $1/\log g$ at $D = 2$ and like $g^{-1/3}$ at $D = 3$: at "
            rf"$g = 10^{{12}}$ the distance is still {two[-1]:.2g} and {three[-1]:.2g}, while (57) "
            f"keeps a factor of {1 / float(dataset.least_ratio.median()):.2g} in hand (median)"
        ],
        plots=[
            log_log(
                r"multipliers off the margin at $\log(1/\epsilon) = 10 \alpha^D$",
                r"$\alpha^D$",
                r"$\nu_k$ over the largest, median",
                [(f"$D = {D}$", scales, off.sel(depth=D)) for D in (2, 3)],
            ),
            log_log(
                r"distance of $z_i$ from $\pm 1$ on the support of $\ell_1$",
                r"$\log(1/\epsilon)/\alpha^D$",
                "largest distance, median",
                [(f"$D = {D}$", away, typical.sel(depth=D)) for D in (2, 3)],
            ),
        ],
    )


experiment = Experiment(
    "M-KKT",
    statement=r"Where support vectors are stable, $\nu_n \sim \int_0^{T_\alpha} r_n$ has $\nu_n "
    r"\geq 0$ and tends to 0 off the margin, by $\int e^{-x_k w} dt \leq (2 D^2 \alpha^{2D-2} "
    r"\gamma_2^2)^{-1} \int \exp(\tilde{\gamma} - x_k w) d\tilde{\gamma}$; and in the rich limit "
    r"$z_i \to \pm 1$ where $\hat{w}_i \neq 0$.",
    place="appendices F.2 and G.2, eqs. (51)-(60), (76)-(84); F.3 and G.3, eqs. (62)-(69), (85), "
    "(86)",
    study=study,
    check=check,
    title=r"The multipliers that training accumulates satisfy the KKT conditions in the limit",
    ours=r"the data sets, $\mu = 0.1$ and the accuracies",
)
