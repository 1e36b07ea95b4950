"""Appendices F.2, F.3, G.2, G.3: the multipliers that training accumulates, as alpha grows."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from scipy.integrate import cumulative_trapezoid

from penchant import Classification, ParameterFlow
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
from penchant_papers.moroshko2020.lemmas.runs import Case, crowded, h_inverse
from penchant_papers.moroshko2020.stopping import (
    max_margin_of,
    rows_at,
    stationarity,
    trained,
)

MU = 0.1
SCALES = [1e2, 1e4]  # alpha^D, stopped at log(1/eps) = alpha^D/MU
RTOL = 1e-9  # multipliers off the margin are 1e-5 of the largest, which the predictor holds
CROWDED = 1e3  # log(1/eps)/alpha^2 of the counterexample
LARGE, FAR = 100.0, [1e3, 1e5, 1e7]  # alpha^D of the rich limit, and log(1/eps) over it


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
    """One run to log(1/eps) = alpha^D/MU: its multipliers, and the sides of eqs. (57)-(60)."""
    case = Case("", problem, depth, scale ** (1 / depth))
    g, margins, betas = recorded(case, [scale / MU])
    last = weights(case, betas[-1])
    off = margins[-1] > 1.1 * margins[-1].min()
    # int exp(-x_k w) dt <= (2 D^2 alpha^(2D-2) gamma_2^2)^-1 int exp(g - x_k w) dg
    right = np.trapezoid(np.exp(g[:, None] - margins)[:, off], g, axis=0)
    right /= 2 * depth**2 * case.alpha ** (2 * depth - 2) * case.gamma_2**2
    unit = 4.0 if depth == 2 else case.alpha ** (depth - 2) * depth * (depth - 2)
    left = len(problem.y) * last[off] / unit
    return {
        "off": float(np.abs(last[off]).max() / np.abs(last).max()),
        "on": float(last[~off].min() / np.abs(last).max()),
        "ratio": float((left / right).max()),
        "least_ratio": float((left / right).min()),
        "swapped": float(len(problem.y) * last[~off].max() / unit / right.max()),
        **parts(g, margins),
    }


def recorded(case: Case, goals: list[float]) -> tuple[Array, Array, Array]:
    """Smoothed margins, margins and predictors of training to the last goal, from zero on."""
    path = trained(case.problem, case.model, goals, ParameterFlow(rtol=RTOL), per_decade=12)
    data = path.dataset.isel(time=slice(0, rows_at(path.dataset, goals)[-1] + 1))
    return data.smoothed_margin.values, data.margins.values, data.predictor.values


def parts(g: Array, margins: Array, clear: float = 1.1) -> dict[str, float]:
    """What eqs. (58)-(60) say of the integral of exp(g - x_k w), each over its bound.

    For a sample k off the margin by the factor `clear` rho_0 is half-way between 1 and its last
    margin over the least one, and `reach` is gtilde_1^* of appendix F.2. `early` is part (I),
    `late` part (II), each the largest over k; `late_on` is part (II) of a sample on the margin
    over the same bound.
    """
    samples, ratio = margins.shape[1], margins[1:] / margins[1:].min(axis=1, keepdims=True)
    sums = cumulative_trapezoid(np.exp(g[:, None] - margins), g, axis=0, initial=0.0)
    on = int(margins[-1].argmin())
    sides: dict[str, list[float]] = {"reach": [], "early": [], "late": [], "late_on": []}
    for k in np.flatnonzero(ratio[-1] > clear):
        rho = (1 + ratio[-1, k]) / 2
        below = np.flatnonzero(ratio[:, k] < rho)
        since = g[below[-1] + 2] if below.size else 0.0
        reach = max(2 * rho * np.log(samples) / (rho - 1), since)
        first, other = (float(np.interp(reach, g, sums[:, n])) for n in (k, on))
        sides["reach"].append(reach)
        sides["early"].append(first / (samples * reach))
        sides["late"].append((sums[-1, k] - first) * (rho - 1) / 2)  # rho_1 - 1
        sides["late_on"].append((sums[-1, on] - other) * (rho - 1) / 2)
    return {name: max(values) for name, values in sides.items()}


def far(problem: Classification, depth: int) -> dict[str, Any]:
    """The rich limit: the largest distance of z_i from the sign of w_i on the support of l1.

    `most` is the largest |z_i|; `far_early` and `far_late` are both parts of eq. (67).
    """
    case, l1 = Case("", problem, depth, LARGE ** (1 / depth)), max_margin_of(problem, "l1")
    on = np.abs(l1) > 1e-6 * np.abs(l1).max()
    goals = [LARGE * ratio for ratio in FAR]
    g, margins, betas = recorded(case, goals)
    z = argument(case, betas[[int(np.abs(g - goal).argmin()) for goal in goals]])
    if depth == 2:
        z = z / np.log(np.array(FAR))[:, None]
    sides = parts(g, margins)
    return {
        "gap": np.abs(z[:, on] - np.sign(l1[on])).max(axis=1),
        "most": np.abs(z).max(axis=1),
        "far_early": sides["early"],
        "far_late": sides["late"],
    }


def cell(seed: int, depth: int, *, scales: list[float]) -> dict[str, Any]:
    """The multipliers of one set at every scale, and z of the rich limit."""
    problem, draws = set_of(seed)
    runs = [at_mu(problem, depth, scale) for scale in scales]
    names = {name: [run[name] for run in runs] for name in runs[0]}
    return {**names, **far(problem, depth), "draws": draws}


def crowded_cell(alpha: float) -> dict[str, float]:
    """Part (I) of eq. (67) on `crowded`, over its bound as printed in (68) and with a factor N."""
    case = Case("", crowded(), 2, alpha)
    g, margins, _ = recorded(case, [CROWDED * alpha**2])
    early = parts(g, margins, clear=1.01)["early"]
    return {"printed": early * len(case.rows), "mended": early}


AT_MU = ("off", "on", "ratio", "least_ratio", "swapped", "reach", "early", "late", "late_on")
study = sized(
    "M-KKT",
    function=cell,
    arguments={"scales": SCALES},
    grid={"depth": [2, 3]},
    seeds=12,
    dims={**{name: ["scale"] for name in AT_MU}, "gap": ["far"], "most": ["far"]},
    tiny={"seeds": 3},
    printed={"seeds": 100},
)
crowd = sized("M-KKT-crowded", function=crowded_cell, grid={"alpha": [10.0, 30.0]})


def check(dataset: Dataset, crowd: Dataset) -> Evidence:
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
    early = at_most(max(float(dataset[key].max()) for key in ("early", "far_early")), 1.0, 1e-3)
    late = at_most(max(float(dataset[key].max()) for key in ("late", "far_late")), 1.0, 1e-3)
    reach = dataset.reach.median("seed")
    fixed = within(
        max((slope(scales, reach.sel(depth=D).values) for D in (2, 3)), key=abs), tolerance=0.15
    )
    lost = at_most(crowd.printed.max(), 1.0)
    typical = dataset.gap.median("seed")
    two, three = (typical.sel(depth=D).values for D in (2, 3))
    log_rate = within(two[-1] / two[0], np.log(away[0]) / np.log(away[-1]), 0.1)
    power = within(slope(away, three), -1 / 3, 0.05)
    inside = at_most(dataset.most.sel(depth=3).max(), 1.0)
    return Evidence(
        ran=f"{dataset.sizes['seed']} sets of four points in five dimensions whose support vectors "
        r"do not change, depths 2 and 3, trained in the parameters: $\alpha^D = 100$ and $10^4$ "
        r"stopped at $10 \alpha^D$, and $\alpha^D = 100$ to $g = \log(1/\epsilon)/\alpha^D = "
        r"10^7$; the multipliers are read off the predictor",
        checks={
            r"exponent in $\alpha^D$ of $\nu_k$ off the margin over the largest, median": rate,
            r"least $\nu_n$ on the margin over the largest": positive,
            r"(57), (81): largest $\int e^{-x_k w} dt$ over its bound": bound,
            r"(59), (67), (83): largest part (I) of the integral, up to $\tilde{\gamma}_1^*$, over "
            r"$N \tilde{\gamma}_1^*$": early,
            r"the same: exponent of $\tilde{\gamma}_1^*$ in $\alpha^D$ (1 would not vanish)": fixed,
            r"(60), (69), (84): largest part (II) over $1/(\rho_1 - 1)$": late,
            r"$D = 2$: distance of $z_i$ from $\pm 1$ on the support, at $g = 10^7$ over $10^3$, "
            "median (predicted: the ratio of the logarithms)": log_rate,
            r"$D = 3$: exponent in $g$ of the same distance": power,
            r"$D = 3$: largest $|z_i|$, (24)": inside,
        },
        proof={r"(68) as printed: part (I) over $\tilde{\gamma}_1^*$, without $N$": lost},
        corrected={
            r"(68) with $N$: part (I) over $N \tilde{\gamma}_1^*$": at_most(crowd.mended.max(), 1.0)
        },
        correction=r"(68) lacks the factor $N$ of (59): eq. (10) bounds the integrand by $N$ and "
        "not by 1; the limit 0 is not affected",
        counterexample={
            "data": "panel 3d and 27 points along the mean of the data",
            r"$\alpha$": float(crowd.alpha[-1]),
            r"part (I) over $\tilde{\gamma}_1^*$": float(crowd.printed[-1]),
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
            r"(60) for a sample on the margin (least)": late.control(dataset.late_on.min()),
            r"a power law at $D = 2$: exponent of the distance of $z_i$ in $g$": power.control(
                slope(away, two)
            ),
        },
        findings=[
            r"$z_i$ tends to $\pm 1$ like $1/\log g$ at $D = 2$ and like $g^{-1/3}$ at $D = 3$: at "
            rf"$g = 10^7$ the distance is still {two[-1]:.2g} and {three[-1]:.2g}, while (57) "
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
    r"\gamma_2^2)^{-1} \int \exp(\tilde{\gamma} - x_k w) d\tilde{\gamma}$, whose parts before and "
    r"after $\tilde{\gamma}_1^*$ are at most $N \tilde{\gamma}_1^*$ and $1/(\rho_1 - 1)$; and in "
    r"the rich limit $z_i \to \pm 1$ where $\hat{w}_i \neq 0$.",
    place="appendices F.2 and G.2, eqs. (51)-(60), (76)-(84); F.3 and G.3, eqs. (62)-(69), (85), "
    "(86)",
    study=(study, crowd),
    check=check,
    title=r"The multipliers that training accumulates satisfy the KKT conditions in the limit",
    ours=r"the data sets, $\mu = 0.1$ and the accuracies",
)
