"""Figure 5: width and scale move matrix completion into the kernel regime, at alpha^2 k near 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.evidence.evidence import Evidence, at_least, at_most, within
from tacit.lazy import Dataset
from tacit.papers.experiment import Experiment
from tacit.papers.instances import slope
from tacit.papers.woodworth2020.figures.completion import MEASURES, cell, draw, gaps, rich, turns
from tacit.studies.sizes import sized

GIVEN = {"dimension": 10, "rank": 1, "samples": 60, "rtol": 1e-4, "loss": 1e-10}
LABELS = {
    "alpha": "initial scale alpha: standard deviation of the entries of U and V",
    "k": "width k: columns of U and V",
    "excess": "nuclear norm above that of the truth, over that of the observed entries alone",
    "move": "RMS change of the hidden entries in training, over their RMS in the truth",
    "scale": "alpha^2 k",
}
study = sized(
    "W-F5",
    title="Larger width moves matrix completion into the kernel regime, at α² k near 1",
    function=cell,
    arguments=GIVEN,
    grid={
        "alpha": {"logspace": [-2.5, 0.0, 12]},
        "k": [10, 100, 1000],
    },
    seeds=5,
    labels=LABELS,
    draw={
        "x": "alpha",
        "y": "k",
        "colour": "excess",
        "contours": {"excess": 0.5, "scale": 1.0},
        "range": [0.0, 1.0],
    },
    printed={
        "arguments": {"rtol": 1e-6, "loss": 1e-16},
        "grid": {
            "alpha": {"logspace": [-3.0, 0.5, 36]},
            "k": {"logspace": [1.0, 3.0, 17], "round": True},
        },
        "seeds": 9,
    },
)
limit = sized(
    "W-F5-infinite",
    title="The same at infinite width, against α sqrt(k)",
    function=cell,
    arguments={**GIVEN, "k": None},
    grid={"alpha": {"logspace": [-1.0, 1.5, 12]}},
    seeds=5,
    labels=LABELS,
    draw={"x": "alpha", "colour": "excess"},
    printed={
        "arguments": {"rtol": 1e-6, "loss": 1e-16},
        "grid": {"alpha": {"logspace": [-1.5, 2.0, 36]}},
        "seeds": 9,
    },
)
small = sized(
    "W-F5-rich",
    title="Where a small start ends: at the matrix of least rank, not at the least nuclear norm",
    function=rich,
    arguments={**GIVEN, "alpha": 1e-4, "k": 10},
    seeds=12,
    labels={
        "to_truth": "distance of the truth",
        "to_greedy": "distance of the end of greedy low-rank learning",
        "to_nuclear": "distance of the interpolating matrix of least nuclear norm",
        "to_frobenius": "distance of the observed entries alone, zero elsewhere",
        "stages": "rank of the end of greedy low-rank learning",
        "norm": "nuclear norm of the end, over that of the truth",
        "least": "least nuclear norm, over that of the truth",
    },
    printed={"seeds": 36},
)


def check(dataset: Dataset, limit: Dataset, small: Dataset) -> Evidence:
    """Where the transition lies, whether it sharpens, and what the rich limit is."""
    found = turns(dataset, limit)
    excess, k = found.sel(measure="excess"), dataset.k.values
    widths = found.width.transpose("measure", "k").values
    scale = dataset.alpha**2 * dataset.k
    exponent = within(slope(k, excess.departure.values), -0.5, 0.05)
    middles = np.log10([*excess.scale.values, float(excess.limit_scale)])
    moving = np.log10(float(found.limit_scale.sel(measure="move")))
    wide = limit.alpha.rename(alpha="limit_alpha") ** 2 >= 10
    low = within(small.to_greedy.max(), tolerance=0.01)
    floor = within(slope(k, found.floor.values), -0.5, 0.1)
    profile = within(gaps(found)[-1], tolerance=0.1)
    blunter = at_least(float(excess.limit_width) / widths[0, 0], 1.2)
    stands = {
        "exponent s of alpha ~ k^s where the excess nuclear norm is 10 % of the kernel's": exponent,
        "largest |log10 alpha^2 k| where it is halfway, any width and infinite": within(
            np.abs(middles).max(), tolerance=0.5
        ),
        "|log10 alpha^2 k| where the change of the hidden entries has half fallen, infinite"
        " width": within(abs(moving), tolerance=0.5),
        "alpha^2 k <= 0.001: largest median excess": within(
            excess.excess.where(scale <= 1e-3).max(), tolerance=0.05
        ),
        "alpha = 1e-4: largest relative distance to the truth": within(
            small.to_truth.max(), tolerance=0.01
        ),
    }
    return Evidence(
        ran=f"{dataset.sizes['alpha']} x {dataset.sizes['k']} starts of a factorization of "
        f"{dataset.sizes['seed']} matrices (d = 10, rank 1, 60 entries), followed to their end by"
        f" exact gradient flow, and the infinite width; {small.sizes['seed']} matrices from"
        " alpha = 1e-4, k = 10",
        checks={
            **stands,
            "alpha^2 k >= 10: largest median change of the unobserved entries": within(
                excess.move.where(scale >= 10).max(), tolerance=0.1
            ),
            **{
                f"decades of alpha from 10 % to 90 % of the {measure}, k = {k[-1]} over"
                f" k = {k[0]}": at_most(row[-1] / row[0], 1.0)
                for measure, row in zip(MEASURES, widths, strict=True)
            },
            "alpha = 1e-4: largest relative distance to the least nuclear norm, any seed": within(
                small.to_nuclear.max(), tolerance=0.01
            ),
        },
        corrected={
            **stands,
            "exponent in k of the least change over all alpha": floor,
            "infinite width, alpha^2 k >= 10: largest median change": within(
                found.limit_move.where(wide).max(), tolerance=0.1
            ),
            f"alpha^2 k <= 1: largest distance of the excess at k = {k[-1]} to infinite"
            " width": profile,
            "decades from 10 % to 90 % of the excess at infinite width over those at"
            f" k = {k[0]}": blunter,
            "alpha = 1e-4: largest relative distance to greedy low-rank learning": low,
        },
        correction="the transition is at alpha^2 k of order one, but it does not sharpen: as k "
        "grows its profile tends to one curve in alpha^2 k, that of infinite width, "
        "which is wider than that of narrow factors, where the start's own product "
        "adds to the nuclear norm. With growing k the unobserved entries can change "
        "less: their least change falls as k^-1/2, and for larger alpha it grows as "
        "alpha^2, so alpha^2 k >> 1 is not enough without alpha^2 sqrt(k) << 1. Small "
        "starts end at the truth, which is the matrix of least rank and not always "
        "the one of least nuclear norm",
        counterexample={
            "seeds whose least nuclear norm is below that of the end": dataset_seeds(small),
            "their relative distances to it": small.to_nuclear.values[away(small)],
            "to the truth": small.to_truth.values[away(small)],
            "change at the largest alpha, k = 10": float(found.move.isel(k=0, alpha=-1)),
        },
        premises={
            "greedy low-rank learning needs one stage": (
                int(small.stages.max()) == 1,
                int(small.stages.max()),
            ),
        },
        controls={
            "the transition lies at alpha k = const": exponent.control(predicted=-1.0),
            "the transition lies at alpha^2 sqrt(k) = const, the scale of U V^T": exponent.control(
                predicted=-0.25
            ),
            "the transition lies at one alpha": exponent.control(predicted=0.0),
            f"k = {k[0]} has the profile of infinite width": profile.control(gaps(found)[0]),
            "the same width of the transition for every k": blunter.control(1.0),
            "unobserved entries change equally little at every width": floor.control(predicted=0.0),
            "the least nuclear norm is the rich limit": low.control(small.to_nuclear.max()),
            "the observed entries alone are the rich limit (least Frobenius norm)": low.control(
                small.to_frobenius.min()
            ),
        },
        findings=findings(found, small),
    )


def away(small: Dataset) -> Any:
    """Which matrices have a least nuclear norm that the flow does not end at."""
    return small.to_nuclear.values > 0.01


def dataset_seeds(small: Dataset) -> list[int]:
    return [int(seed) for seed in small.seed.values[away(small)]]


def findings(found: Dataset, small: Dataset) -> list[str]:
    """What the runs say beyond the checks."""
    pairs = zip(found.k.values, found.width.sel(measure="excess").values, strict=True)
    widths = ", ".join(f"{width:.2f} (k = {k})" for k, width in pairs)
    moves = zip(found.k.values, found.floor.values, strict=True)
    floors = ", ".join(f"{move:.2f} (k = {k})" for k, move in moves)
    below = 1 - small.least.values[away(small)] / small.norm.values[away(small)]
    return [
        f"decades of alpha from 10 % to 90 % of the excess: {widths},"
        f" {float(found.limit_width.sel(measure='excess')):.2f} at infinite width",
        f"least change of the unobserved entries, in units of the truth: {floors}",
        f"from alpha = 1e-4 every one of {small.sizes['seed']} matrices is completed to the truth"
        f" (distances up to {float(small.to_truth.max()):.1g}), and greedy low-rank learning ends"
        f" there too; on seeds {dataset_seeds(small)} the least nuclear norm is lower, by"
        f" {', '.join(f'{share:.1%}' for share in below)}",
    ]


experiment = Experiment(
    "W-F5",
    statement="Matrix completion by gradient flow passes from the rich to the kernel regime at "
    "alpha^2 k of order one, more sharply for larger width k: below it training "
    "minimises the nuclear norm and recovers the truth, above it the unobserved "
    "entries do not change.",
    place="section 6 and appendix A, Figure 5",
    study=(study, limit, small),
    check=check,
    draw=draw,
    title="Matrix completion leaves the rich regime near α² k = 1, at every width k",
    ours="the grid, the seeds (median), the units: the excess nuclear norm over that of the "
    "observed entries alone, the change over the RMS of the hidden truth; gradient flow to "
    "its end instead of steps of 1e-5; infinite width; panels (c) and (d)",
    seconds=6,
)
