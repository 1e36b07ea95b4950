"""Figure 5: width and scale move matrix completion into the kernel regime, at alpha^2 k near 1."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from penchant.lab import (
    Array,
    Check,
    Dataset,
    Evidence,
    Experiment,
    at_least,
    at_most,
    exponents,
    margin_of_mean,
    mean_within,
    share_at_least,
    sized,
    upper_share,
    within,
)
from penchant_papers.woodworth2020.figures.completion import (
    LEAVES,
    NEAR,
    cell,
    gaps,
    rich,
    stepped,
    turns,
)
from penchant_papers.woodworth2020.figures.completion_panels import draw

GIVEN = {"dimension": 10, "rank": 1, "samples": 60, "rtol": 1e-4, "loss": 1e-10}
LABELS = {
    "alpha": r"initial scale $\alpha$: standard deviation of the entries of $U$ and $V$",
    "k": "width $k$: columns of $U$ and $V$",
    "excess": "nuclear norm above that of the truth, over that of the observed entries alone",
    "move": "RMS change of the hidden entries in training, over their RMS in the truth",
    "scale": r"$\alpha^2 k$",
    "tries": "matrices drawn until one was determined by its entries",
}
# A decade of k moves alpha = k^-1/2 by whole places of every grid: where a curve is read off
# between two places, its error is the same at every width and leaves the exponent.
study = sized(
    "W-F5",
    title=r"Larger width moves matrix completion into the kernel regime, at $\alpha^2 k$ near 1",
    function=cell,
    arguments=GIVEN,
    grid={"alpha": {"logspace": [-2.5, -0.25, 10]}, "k": [10, 1000]},
    seeds=24,
    labels=LABELS,
    draw={
        "x": "alpha",
        "y": "k",
        "colour": "excess",
        "contours": {"excess": 0.5, "scale": 1.0},
        "range": [0.0, 1.0],
    },
    tiny={"grid": {"alpha": {"logspace": [-2.5, 0.0, 6]}, "k": [10, 1000]}, "seeds": 12},
    printed={
        "arguments": {"rtol": 1e-6, "loss": 1e-16},
        "grid": {
            "alpha": {"logspace": [-3.0, 0.5, 29]},
            "k": {"logspace": [1.0, 3.0, 9], "round": True},
        },
        "seeds": 24,
    },
)
limit = sized(
    "W-F5-infinite",
    title=r"The same at infinite width, against $\alpha \sqrt{k}$",
    function=cell,
    arguments={**GIVEN, "k": None},
    grid={"alpha": {"logspace": [-1.0, 1.0, 9]}},
    seeds=24,
    labels=LABELS,
    draw={"x": "alpha", "colour": "excess"},
    tiny={"grid": {"alpha": {"logspace": [-1.0, 1.0, 5]}}, "seeds": 12},
    printed={
        "arguments": {"rtol": 1e-6, "loss": 1e-16},
        "grid": {"alpha": {"logspace": [-1.5, 2.0, 29]}},
        "seeds": 24,
    },
)
small = sized(
    "W-F5-rich",
    title="Where a small start ends: at the matrix of least rank, not at the least nuclear norm",
    function=rich,
    arguments={**GIVEN, "alpha": 1e-10, "k": 10},
    grid={"elsewhere": [False, True]},
    seeds=16,
    labels={
        "elsewhere": "whether the matrix was drawn for a least nuclear norm elsewhere",
        "to_truth": "distance of the truth",
        "to_nuclear": "distance of the interpolating matrix of least nuclear norm",
        "to_frobenius": "distance of the observed entries alone, zero elsewhere",
        "below": "how far the least nuclear norm is below that of the truth, relative",
        "tries": "matrices drawn until one met the premise",
    },
    tiny={"seeds": 12},
    printed={"seeds": 48},
)
steps = sized(
    "W-F5-descent",
    title="The map of one matrix by gradient descent",
    function=stepped,
    arguments={**GIVEN, "loss": 1e-8, "step": 1e-3},
    grid={"alpha": [0.03, 0.3], "k": [100]},
    seeds=1,
    labels=LABELS,
    draw={"x": "alpha", "y": "k", "colour": "excess", "range": [0.0, 1.0]},
    printed={
        "arguments": {"step": 1e-5},
        "grid": {"alpha": {"logspace": [-2.5, -0.25, 10]}, "k": [10, 100, 1000]},
    },
)


BIAS = 0.03  # of the exponent at k = 10, where the excess is not yet a function of alpha^2 k
ORDER = 1.0  # decades: a number within a factor of ten is of order one
LIKE = 0.05  # excess nuclear norms that differ less look alike in a map


def check(dataset: Dataset, limit: Dataset, small: Dataset, steps: Dataset) -> Evidence:
    """Where the transition lies, whether it sharpens, and what the rich limit is."""
    finite, infinite = turns(dataset), turns(limit)
    k = dataset.k.values
    laws = checks(dataset, limit, small)
    reach, scale = matrices(finite.departure), dataset.alpha**2 * dataset.k
    narrow = np.log(known(finite.width.isel(measure=0, k=-1) / finite.width.isel(measure=0, k=0)))
    away, n = small.sel(elsewhere=True), small.sizes["seed"]
    printed_step = json.loads(steps.attrs["description"])["arguments"]["step"]
    stands = {name: laws[name] for name in STANDS}
    stands["largest difference of the excess between descent and flow, over one plus it"] = within(
        (steps.excess_apart / (1 + steps.excess)).max(), tolerance=LIKE
    )
    return Evidence(
        ran=f"{dataset.sizes['alpha']} x {len(k)} starts of a factorization of "
        f"{dataset.sizes['seed']} matrices ($d = 10$, rank 1, 60 entries), followed to their "
        f"end by exact gradient flow, and the infinite width; {steps.excess.size} of one "
        rf"matrix by descent with steps of {printed_step:g}; {n} matrices from $\alpha = "
        f"10^{{-10}}$, $k = 10$, and {n} of {int(away.tries.sum())} drawn whose least nuclear "
        "norm is not the truth",
        checks={
            **stands,
            r"$\alpha^2 k \geq 10$: largest mean change of the unobserved entries": within(
                dataset.move.mean("seed").where(scale >= 10).max(), tolerance=0.1
            ),
            rf"log of the decades of $\alpha$ from 10 % to 90 % of the excess, $k = {k[-1]}$ over "
            f"$k = {k[0]}$ (0.999 lower limit)": at_most(lower_mean(narrow)),
            r"$\alpha = 10^{-10}$: share that ends at the least nuclear norm, where this is not "
            "the truth (0.999 upper limit)": at_least(upper_share(near(away.to_nuclear), n), 0.5),
        },
        corrected={**stands, **{name: laws[name] for name in CORRECTED}},
        correction=r"the transition is at $\alpha^2 k$ of order one. It sharpens in the change of "
        "the unobserved entries, which falls deeper the larger $k$ is, but not in the excess "
        r"nuclear norm, which rises over more decades of $\alpha$: as $k$ grows both tend to "
        r"one curve in $\alpha^2 k$, that of infinite width. The least change over all "
        r"$\alpha$ falls as $k^{-1/2}$, and for larger $\alpha$ it grows as $\alpha^2$, so "
        r"$\alpha^2 k \gg 1$ is not enough without $\alpha^2 \sqrt{k} \ll 1$. Small starts "
        "end at the truth, which is the matrix of least rank and not always the one of least "
        "nuclear norm",
        counterexample={
            "seeds of matrices whose least nuclear norm is not the truth": away.seed.values,
            "relative distances of the end to it": away.to_nuclear.values,
            "to the truth": away.to_truth.values,
        },
        premises={
            "at nine matrices of ten the excess passes 10 %, 50 % and 90 % within the grid": (
                reach.mean() >= 0.9,
                float(reach.mean()),
            )
        },
        controls=controls(dataset, limit, small, laws),
        findings=findings(finite, infinite, small),
    )


STANDS = (
    r"exponent $s$ of $\alpha \sim k^s$ where the excess nuclear norm is 10 % of the kernel's, "
    "mean",
    r"largest $|\log_{10} \alpha^2 k|$ where the mean excess, of any width, and the mean change "
    "of the hidden entries, at infinite width, are halfway",
    r"$\alpha^2 k \leq 0.001$: largest mean excess (0.999 upper limit)",
    r"$\alpha = 10^{-10}$: share of matrices that end at the truth (0.999 lower limit)",
    r"steepest fall of the change per decade of $\alpha$, largest $k$ minus smallest, mean (0.999 "
    "lower limit)",
)
CORRECTED = (
    r"exponent in $k$ of the least change over all $\alpha$, mean",
    r"infinite width, $\alpha^2 k \geq 10$: largest mean change",
    r"$\alpha^2 k \leq 1$: largest distance of the mean excess at the largest $k$ to infinite "
    "width",
    r"log of the decades of $\alpha$ from 10 % to 90 % of the excess, infinite width over the "
    "smallest $k$, mean (0.999 lower limit)",
    r"$\alpha = 10^{-10}$: share that ends at the truth where the least nuclear norm is elsewhere "
    "(0.999 lower limit)",
)


def checks(dataset: Dataset, limit: Dataset, small: Dataset) -> dict[str, Check]:
    """The checks of STANDS and CORRECTED."""
    finite, infinite, k = turns(dataset), turns(limit), dataset.k.values
    excess, ends = finite.isel(measure=0), infinite.isel(measure=0)
    scale, wide = dataset.alpha**2 * dataset.k, limit.alpha**2 >= 10
    means = turns(dataset.mean("seed")), turns(limit.mean("seed"))
    halves = [2 * means[0].half.isel(measure=0) + np.log10(excess.k), 2 * means[1].half]
    steep = (finite.steepest.isel(k=-1) - finite.steepest.isel(k=0)).values
    wider = np.log(known(ends.width / excess.width.isel(k=0)))
    low = dataset.excess.where(scale <= 1e-3).stack(place=("alpha", "k")).dropna("place")
    totals = [furthest(column) for column in low.transpose("place", "seed").values]
    n = small.sizes["seed"]
    values = (
        mean_within(by_width(10**excess.departure, k), -0.5, BIAS),
        within(max(np.abs(half).max() for half in halves), tolerance=ORDER),
        at_most(max(totals), LEAVES),  # the same border as in the exponent
        share_at_least(near(small.to_truth.sel(elsewhere=False)), n, 0.5),
        at_least(lower_mean(steep), LIKE),
        mean_within(by_width(finite.floor.isel(measure=1), k), -0.5, 0.1),
        within(limit.move.mean("seed").where(wide).max(), tolerance=0.1),
        within(gaps(dataset, limit)[-1], tolerance=2 * LIKE),
        at_least(lower_mean(wider)),
        share_at_least(near(small.to_truth.sel(elsewhere=True)), n, 0.5),
    )
    return dict(zip((*STANDS, *CORRECTED), values, strict=True))


def controls(
    dataset: Dataset, limit: Dataset, small: Dataset, laws: dict[str, Check]
) -> dict[str, Check]:
    """What wrong theorems predict or reach."""
    exponent, floor, profile = (laws[n] for n in (STANDS[0], CORRECTED[0], CORRECTED[2]))
    truth, elsewhere = laws[STANDS[3]], laws[CORRECTED[4]]
    n, free = small.sizes["seed"], small.to_nuclear.sel(elsewhere=False)
    by_chance = n - near(free)  # more matrices whose least nuclear norm is not the end
    return {
        r"the transition lies at $\alpha k$ = const": exponent.control(predicted=-1.0),
        r"the transition lies at $\alpha^2 \sqrt{k}$ = const, the scale of $U "
        "V^T$": exponent.control(predicted=-0.25),
        r"the transition lies at one $\alpha$": exponent.control(predicted=0.0),
        "the smallest $k$ has the profile of infinite width": profile.control(
            gaps(dataset, limit)[0]
        ),
        "unobserved entries change equally little at every width": floor.control(predicted=0.0),
        "the least nuclear norm is the rich limit (0.999 upper limit)": elsewhere.control(
            upper_share(near(small.to_nuclear.sel(elsewhere=True)), n + by_chance)
        ),
        "the observed entries alone are the rich limit (0.999 upper limit)": truth.control(
            upper_share(near(small.to_frobenius), 2 * n)
        ),
    }


def near(distances: Any) -> int:
    """How many of the distances are those of the same matrix."""
    return int((np.asarray(distances) < NEAR).sum())


def known(values: Any) -> Array:
    """The numbers that are finite: a curve may leave the grid before its turn."""
    flat = np.ravel(values)
    return np.asarray(flat[np.isfinite(flat)])


def furthest(values: Array) -> float:
    """The largest |mean| that the values are compatible with."""
    return margin_of_mean(values) + abs(float(values.mean()))


def lower_mean(values: Array) -> float:
    """The least mean that the values are compatible with."""
    return -margin_of_mean(values) + float(values.mean())


def matrices(departure: Any) -> Array:
    """Of which matrices every row leaves the rich limit within the grid."""
    return np.asarray(np.isfinite(departure.isel(measure=0).transpose("seed", "k").values).all(1))


def by_width(values: Any, k: Array) -> Array:
    """The exponent in k of every matrix."""
    rows = values.transpose("seed", "k").values
    whole = np.isfinite(rows).all(axis=1)
    if whole.sum() < 3:
        raise ValueError("Figure 5: the excess leaves the grid of alpha on all but two matrices")
    return exponents(k, rows[whole])


def findings(finite: Dataset, infinite: Dataset, small: Dataset) -> list[str]:
    """What the runs say beyond the checks."""

    def row(values: Any) -> str:
        pairs = zip(finite.k.values, values.median("seed").values, strict=True)
        return ", ".join(f"{value:.2f} ($k = {k}$)" for k, value in pairs)

    away = small.sel(elsewhere=True)
    last = infinite.median("seed")
    return [
        r"decades of $\alpha$ from 10 % to 90 % of the excess, median: "
        f"{row(finite.width.isel(measure=0))}, {float(last.width.isel(measure=0)):.2f} at "
        "infinite width",
        rf"steepest fall of the change per decade of $\alpha$, median: {row(finite.steepest)}, "
        f"{float(last.steepest):.2f} at infinite width",
        "least change of the unobserved entries, in units of the truth, median:"
        f" {row(finite.floor.isel(measure=1))}",
        rf"from $\alpha = 10^{{-10}}$ {near(small.to_truth.sel(elsewhere=False))} of "
        f"{small.sizes['seed']} matrices are completed to the truth, up to {NEAR:g} (the "
        f"furthest end is {float(small.to_truth.max()):.1g} away); {away.sizes['seed']} of "
        f"{int(away.tries.sum())} matrices have a lower nuclear norm elsewhere, by "
        f"{float(away.below.median()):.1%} at the median",
    ]


experiment = Experiment(
    "W-F5",
    statement="Matrix completion by gradient flow passes from the rich to the kernel regime at "
    r"$\alpha^2 k$ of order one, and the transition appears to sharpen somewhat as the width "
    "$k$ grows: below it training minimises the nuclear norm and recovers the truth, above it "
    "the unobserved entries do not change.",
    place="section 6 and appendix A, Figure 5",
    study=(study, limit, small, steps),
    check=check,
    draw=draw,
    title=r"Matrix completion leaves the rich regime near $\alpha^2 k = 1$, at every width $k$",
    ours="the grid, the matrices (means), the units: the excess nuclear norm over that of the "
    "observed entries alone, the change over the RMS of the hidden truth; gradient flow to "
    "its end, beside one map by descent; infinite width; panels (c) and (d)",
    scope=dict.fromkeys(
        ("tiny", "quick"),
        "widths 10 and 1000 and the infinite one; descent by steps of $10^{-3}$ for $10^{-5}$, at "
        "two starts",
    ),
    seconds=12,
)
