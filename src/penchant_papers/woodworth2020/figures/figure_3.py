"""Figure 3: depth makes the transition from l2 to l1 shorter."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import Q
from penchant.lab import (
    Array,
    Axes,
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    at_most,
    margin_of_mean,
    sized,
    within,
)
from penchant.plotting import CYCLE, GREY, end_label, sheet_of
from penchant_papers.instances import slope
from penchant_papers.woodworth2020.figures import recovery

DEPTHS = [2, 3, 4, 10]


def unit_curvature(depth: int, z: Array) -> Array:
    """q_D(z) / q_D''(0): every depth starts as z^2/2, so the bend towards |z| can be compared."""
    q = Q(depth=depth, alpha=1.0)
    return q.terms(z) * q.slope(np.zeros(1))  # q'' = 1 / b', as q' is the inverse of b


def ratio(depth: int, alpha: float, dimension: int) -> float:
    """Q(e_1) / Q(1/sqrt(d)): 1 for a squared l2 norm, 1/sqrt(d) for the l1 norm."""
    q = Q(depth=depth, alpha=alpha)
    one, spread = q.terms(np.array([1.0, dimension**-0.5]))
    return float(one / (dimension * spread))


def curves(
    depth: int, z_max: float, log10_alphas: list[float], points: int, dimension: int
) -> dict[str, Any]:
    """q_D near zero, panel (a), and the ratio of Q at two vectors along alpha, panel (b)."""
    first, last = log10_alphas
    z, alphas = np.linspace(-z_max, z_max, points), np.logspace(first, last, points)
    return {
        "z": z,
        "q": unit_curvature(depth, z),
        "alpha": alphas,
        "transition": [ratio(depth, alpha, dimension) for alpha in alphas],
        "l1_limit": dimension**-0.5,
        "weight_norm": dimension ** (1 / depth - 1),  # that of |beta|^(2/D)
    }


PLANTED = {"dimension": 300, "sparsity": 5, "noise": 0.1}
shapes = sized(
    "W-F3ab",
    title="Deeper networks have a regularizer that becomes linear sooner",
    function=curves,
    arguments={"z_max": 10.0, "log10_alphas": [2.0, -6.0], "points": 201, "dimension": 1000},
    grid={"depth": DEPTHS},
    dims={"z": ["near"], "q": ["near"], "alpha": ["scale"], "transition": ["scale"]},
    tiny={"arguments": {"points": 33, "dimension": 100}},
    printed={"arguments": {"points": 401}},
)
scales = recovery.scale_study(
    "W-F3",
    "Depth brings the rich limit closer: for D > 2 a moderate scale suffices",
    arguments={"drawn": 100, **PLANTED, "log10_mu_range": [1.0, -30.0], "per_decade": 3},
    grid={"depth": [2, 3, 10], "sample_size": [38, 44, 51, 60, 70]},
    seeds=20,
    tiny={"grid": {"depth": [2, 10], "sample_size": [44, 51, 60, 70]}},
    printed={
        "arguments": {
            "drawn": 300,
            "dimension": 1000,
            "log10_mu_range": [1.0, -60.0],
            "per_decade": 4,
        },
        "grid": {
            "depth": DEPTHS,
            "sample_size": [30, 44, 48, 52, 56, 60, 70, 80, 100, 130, 170, 220, 300],
        },
        "seeds": 25,
    },
)
least = recovery.l1_study("W-F3-l1", scales)
MODERATE = np.log10(3e-4)  # of an alpha^D that we call a reasonable initialization
MOST = 0.5  # of the sample sizes: more than half, also at the bound of chance


def moderate(scales: Dataset, least: Dataset) -> DataArray:
    """Of the sample sizes near what l1 needs, the share from which a moderate start recovers.

    By depth and problem, among those from which l1 recovers it.
    """
    import xarray

    sizes, need = least.sample_size.values, recovery.needed(least.l1_error)
    near = sizes[(sizes >= need) & (sizes < 1.6 * need)]
    known = least.sel(sample_size=near)
    rows = [
        recovery.reached(
            scales.log_mu.sel(depth=D, sample_size=near) >= MODERATE * np.log(10), known
        )
        for D in scales.depth.values
    ]
    return xarray.DataArray(rows, {"depth": scales.depth.values}, ("depth", "problem"))


def check(shapes: Dataset, scales: Dataset, least: Dataset) -> Evidence:
    """What section 5 says about each panel, and the exponent D - 2 of the approach to l1."""
    at_10, end = shapes.q.isel(near=-1).values, shapes.transition.isel(scale=-1)
    to_l1 = (end / shapes.l1_limit).values
    window = (shapes.alpha.isel(depth=0) <= 0.0101) & (shapes.alpha.isel(depth=0) >= 1e-5)
    gap = np.abs(shapes.transition / shapes.l1_limit - 1).isel(scale=window.values)
    alphas = shapes.alpha.isel(depth=0, scale=window.values).values
    rates = {D: slope(alphas, gap.sel(depth=D).values) for D in (2, 3, 4)}
    log10_mu = (recovery.medians(scales) / np.log(10)).sortby("sample_size")
    gains, near = log10_mu.diff("depth"), moderate(scales, least)
    shallow, deep = (near.isel(depth=place).values for place in (0, -1))
    first = int(np.argmax(log10_mu.notnull().all("depth").values))
    sooner = at_most((at_10[1:] / at_10[:-1]).max(), 1.0)
    kernel = within(np.abs(shapes.transition.isel(scale=0) - 1).max(), tolerance=1e-3)
    rich = within(np.abs(to_l1[1:] - 1).max(), tolerance=0.01)
    powers = {
        f"(b) D = {D}: exponent in alpha of the distance to 1/sqrt(d) (ours: D - 2)": within(
            rates[D], D - 2, 0.05
        )
        for D in (3, 4)
    }
    larger = at_least(gains.min(), 0.0)
    optimal = at_least(deep.mean() - margin_of_mean(deep), MOST)
    first_power = next(iter(powers.values()))
    return Evidence(
        ran=f"q_D and the ratio of Q at depths {shapes.depth.values.tolist()}; the largest alpha^D"
        f" that recovers at depths {scales.depth.values.tolist()}, {scales.sizes['sample_size']}"
        f" sample sizes and {scales.sizes['seed']} seeds, along the path of minimisers of Q^D",
        checks={
            "(a) q_D(10)/q_D''(0) over that of the previous depth, at most": sooner,
            "(b) ratio at the largest alpha, deviation from 1": kernel,
            "(b) D > 2: ratio at alpha = 1e-6 over 1/sqrt(d), deviation from 1": rich,
            **powers,
            "(c) smallest gain in log10 alpha^D from one depth to the next": larger,
            f"(c) D = {int(scales.depth[-1])}: share of the sample sizes near what l1 needs from"
            f" which alpha^D = {10**MODERATE:g} recovers where l1 does, mean (0.999 lower"
            " limit)": optimal,
        },
        controls={
            "(b) D = 2 at the same alpha": rich.control(abs(to_l1[0] - 1)),
            "(b) |beta|^(2/D), which a small weight norm would select, at D = 3": rich.control(
                np.abs(shapes.weight_norm / shapes.l1_limit - 1).sel(depth=3)
            ),
            "(b) D = 2, where the approach takes exponentially small scales": first_power.control(
                rates[2]
            ),
            "(c) shallower nets recover from larger starts": larger.control(-gains.max()),
            "(c) D = 2 from the same scale (0.999 upper limit)": optimal.control(
                shallow.mean() + margin_of_mean(shallow)
            ),
        },
        findings=[
            "the distance to the l1 ratio falls like alpha^(D-2): exponents "
            + ", ".join(f"{rate:.3f} at D = {D}" for D, rate in rates.items())
            + "; at D = 2 it falls like 1/log(1/alpha)",
            f"at N = {int(log10_mu.sample_size[first])} the largest alpha^D is 10 to the "
            + ", ".join(
                f"{float(value):.1f} (D = {int(D)})"
                for D, value in zip(log10_mu.depth, log10_mu.isel(sample_size=first), strict=True)
            ),
        ],
    )


def draw(shapes: Dataset, scales: Dataset, least: Dataset) -> Figure:
    """q_D, the transition of the ratio and the largest scale that recovers the truth."""
    picture, (a, b, c) = sheet_of(shapes, widths=(4.4, 4.4, 4.4), height=4.4)
    log10_mu = (recovery.medians(scales) / np.log(10)).sortby("sample_size")
    for colour, depth in zip(CYCLE, shapes.depth.values, strict=False):
        row, label = shapes.sel(depth=depth), f"$D = {depth}$"
        a.plot(row.z, row.q, color=colour, label=label)
        b.plot(row.alpha, row.transition, color=colour, label=label)
        if depth in log10_mu.depth:
            line = log10_mu.sel(depth=depth)
            c.plot(line.sample_size, line, "o-", color=colour, markersize=4, label=label)
    a.set_title("(a) deeper: linear sooner")
    a.set(xlabel=r"$z = \beta_i/\alpha^D$", ylabel="$q_D(z)/q_D''(0)$")
    a.legend(loc="upper center")
    _ratio_guides(b, shapes)
    recovery.threshold_line(c, recovery.needed(least.l1_error))
    c.legend(loc="lower right")
    c.set_title("(c) deeper: recovery from larger starts")
    recovery.axis_of_powers(c, rf"largest $\alpha^D$ with error $\leq {recovery.LEVEL:g}$")
    return picture


def _ratio_guides(axes: Axes, shapes: Dataset) -> None:
    """Panel (b): the two limits as dashed lines with their names."""
    axes.set_title(r"(b) from $\ell_2$ (above) to $\ell_1$ (below)")
    axes.set(xscale="log", yscale="log", xlabel=r"initial scale $\alpha$")
    axes.set_ylabel(r"$Q(e_1)\,/\,Q(\mathbf{1}/\sqrt{d})$")
    left, right = float(shapes.alpha.min()), float(shapes.alpha.max())
    l1_limit = float(shapes.l1_limit[0])
    for x, limit, text, side in (
        (left, 1.0, r"$1$ for $\ell_2$", "left"),
        (right, l1_limit, r"$1/\sqrt{d}$ for $\ell_1$", "right"),
    ):
        axes.axhline(limit, color=GREY, linestyle="--", linewidth=1)
        end_label(axes, x, limit, text, GREY, va="bottom", ha=side, xytext=(0, 4))
    axes.set_ylim(0.7 * l1_limit, 1.7)


experiment = Experiment(
    "W-F3",
    statement="Depth changes neither the l2 nor the l1 limit, but it shortens the transition "
    "between them: for D > 2 the scale needed for l1 is polynomial and not "
    "exponential, so that moderate starts recover a sparse truth from close to the "
    "fewest possible samples, and deeper nets do so from larger starts.",
    place="section 5, Figure 3 and the text below Theorem 3",
    study=(shapes, scales, least),
    check=check,
    draw=draw,
    title="Depth brings the rich limit closer: for D > 2 a moderate scale suffices",
    scope={"quick": "in (c) d = 300 in place of 1000", "tiny": "in (c) d = 300 in place of 1000"},
    ours="d, r*, D, the seeds (median in c) and all grids; (a) has curvature 1 at zero; the"
    " exponent D - 2; 3e-4 for a reasonable scale",
    seconds=8,
)
