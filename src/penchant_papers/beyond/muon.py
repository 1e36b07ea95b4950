"""Muon and similar methods on several classes: every step rule of matrices has its own norm."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from penchant import L2, Classification
from penchant.lab import Check, Dataset, Evidence, Experiment, Figure, sized
from penchant.methods import Muon, SteepestDescent
from penchant.problems import multiclass
from penchant.regularizers import Linf, Nuclear, Spectral
from penchant_papers.beyond import OWN_RUNS
from penchant_papers.beyond.margins import (
    OWN,
    MethodKind,
    at_other_rates,
    checks,
    draw_both,
    end,
    ends,
    falls,
)

CLASSES, FEATURES = 4, 6
SPECTRAL, NUCLEAR = Spectral((CLASSES, FEATURES)), Nuclear((CLASSES, FEATURES))
NORMS = {"spectral": SPECTRAL, "Frobenius": L2(), "nuclear": NUCLEAR, "l_inf": Linf()}
STEEPEST = {
    "spectral descent": MethodKind(
        lambda rate: SteepestDescent(rate, SPECTRAL), "spectral", "nuclear", 2.0
    ),
    "nuclear descent": MethodKind(
        lambda rate: SteepestDescent(rate, NUCLEAR), "nuclear", "spectral", 4.0
    ),
    "normalized gradient descent": MethodKind(
        lambda rate: SteepestDescent(rate, L2()), "Frobenius", "spectral", 4.0
    ),
}
KINDS = {
    "Muon": MethodKind(lambda rate: Muon(rate, SPECTRAL), "spectral", "nuclear", 2.0)
} | STEEPEST


@functools.lru_cache(maxsize=32)
def data(seed: int, samples: int) -> Classification:
    """Samples of random classes."""
    rng = np.random.default_rng(seed)
    X, labels = rng.standard_normal((samples, FEATURES)), rng.integers(0, CLASSES, samples)
    return multiclass(X, labels, classes=CLASSES)


def cell(optimizer: str, steps: int, factor: float, seed: int, *, samples: int) -> dict[str, Any]:
    return end(data(seed, samples), KINDS[optimizer], NORMS, steps, factor)


def way(optimizer: str, seed: int, *, samples: int, steps: int) -> dict[str, Any]:
    return falls(data(seed, samples), KINDS[optimizer], NORMS, steps)


study = sized(
    "beyond-muon",
    title="Muon ends at the largest margin in the spectral norm",
    function=cell,
    arguments={"samples": 6},
    grid={"optimizer": list(KINDS), "steps": [2500, 10_000], "factor": [0.3, OWN]},
    seeds=3,
    dims={"share": ["norm"]},
    labels={"steps": "steps", "share": "margin over the best margin in the norm"},
    tiny={"seeds": 3, "grid": {"factor": [OWN]}},
    printed={
        "seeds": 20,
        "grid": {"steps": [2500, 10_000, 40_000], "factor": [0.3, OWN, 3.0]},
    },
)
ways = sized(
    "beyond-muon-ways",
    title="The smoothed margin in a method's own norm never falls",
    function=way,
    arguments={"samples": 6, "steps": 10_000},
    grid={"optimizer": list(STEEPEST)},
    seeds=2,
    labels={"own": "largest fall in the method's own norm", "other": "in the norm of the start"},
    tiny={"seeds": 1},
    printed={"seeds": 20},
)


def check(dataset: Dataset, ways: Dataset) -> Evidence:
    """The laws of vectors for matrices, and wrong ones for Muon as controls."""
    laws = checks(dataset, ways, KINDS, NORMS)
    own, _, rises = laws.values()

    def least(norm: str, name: str) -> Check:
        return own.control(ends(dataset, {name: KINDS[name]}, NORMS, norm)[0])

    return Evidence(
        ran=f"linear classifiers of {CLASSES} classes and {FEATURES} features on "
        f"{dataset.sizes['seed']} random problems with 6 samples and the exponential loss of "
        "all pairs of a right and a wrong class, from zero with learning rates proportional "
        r"to $1/\sqrt{\mathrm{steps}}$, and with small steps from the best predictor of "
        "another norm",
        checks=laws,
        controls={
            "Muon converges to the Frobenius norm": least("Frobenius", "Muon"),
            "Muon converges to the nuclear norm": least("nuclear", "Muon"),
            r"Muon converges to $\ell_\infty$, as Adam does": least("l_inf", "Muon"),
            "gradient descent converges to the spectral norm": least(
                "spectral", "normalized gradient descent"
            ),
            "the margin in the norm of the start does not fall either": rises.control(
                ways.other.max()
            ),
        },
        findings=at_other_rates(dataset, KINDS, NORMS),
    )


def draw(dataset: Dataset, ways: Dataset) -> Figure:
    return draw_both(dataset, KINDS, NORMS, 6.6)


experiment = Experiment(
    "beyond-muon",
    statement="A linear classifier of several classes that is trained by Muon, or by steepest "
    "descent in the spectral norm, converges to the largest margin in the spectral norm of "
    "its matrix; steepest descent in the nuclear and the Frobenius norm converges to those. "
    r"Without momentum the gap is at most of order $\mathrm{steps}^{-1/2}$, and the smoothed "
    "margin in the method's own norm never falls.",
    place="Fan et al. 2025 (arXiv 2502.04664); Tsilivis et al. 2024 (arXiv 2410.22069) for the"
    " margin that rises",
    study=(study, ways),
    check=check,
    draw=draw,
    ours="the data, the exponential loss of pairs, exact singular vectors, constant learning rates",
    scope=OWN_RUNS,
    seconds=4,
)
