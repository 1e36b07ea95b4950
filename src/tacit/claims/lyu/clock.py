"""L-clock (ours): decay turns W's and M's paths into time, beta(t) is a Q minimiser."""

from __future__ import annotations

import math

import numpy as np

from tacit.arguments import Array
from tacit.claims.lyu.runs import data_sets, exact, in_parameters, joint
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.measures.directions import angle
from tacit.papers.instances import distance, slope
from tacit.problems.classification import Classification
from tacit.problems.regression import Regression, sparse_regression
from tacit.regularizers.q import Q
from tacit.solvers.interpolate import interpolate
from tacit.solvers.ratchet.ratchet import ratchet_path
from tacit.studies.sizes import Size

START = 2.0  # log alpha
Z = np.array([0.5, 1.5, 2.5, 3.5])  # rate t, through the transition
RATES = np.array([1e-3, 1e-4, 1e-5])
LOG_ALPHAS = np.array([20.0, 80.0, 320.0, 640.0])


def paths(problem: Regression, depth: int) -> list[Array]:
    """Predictors at Z, trained in the parameters, for each of RATES."""
    return [in_parameters(problem, START, rate, Z, depth, rtol=1e-10).predictor for rate in RATES]


def from_q(problem: Regression, depth: int, rows: list[Array], log_scale: Array) -> Array:
    """Largest distance from predictors at Z to argmin Q of these scales, for each of RATES."""
    targets = [interpolate(problem.X, problem.y, Q(depth, log_alpha=a)).beta for a in log_scale]
    return np.array(
        [max(distance(b, t) for b, t in zip(row, targets, strict=True)) for row in rows]
    )


def directed(problem: Classification) -> tuple[Array, Array]:
    """Largest angle to M's limit path at mu = alpha^2 e^(-2 rate t) / g, one per alpha.

    That path is argmin Q_mu with margins >= 1 where no dual weight would have to fall, and the
    ratchet of M-open elsewhere: under decay too the weights only grow. The second row has
    mu = alpha^2 e^(-2 rate t), as if the loss had no part in it.
    """
    found = []
    for log_alpha, rate in joint(LOG_ALPHAS):
        z = log_alpha + np.array([-2.0, 0.0, 2.0])
        run = exact(problem, log_alpha, rate, z)
        decayed = np.exp(2 * (log_alpha - z))
        limits = (
            ratchet_path(problem.X, problem.y, depth=2, mus=mus).beta
            for mus in (decayed / run.smoothed_margin, decayed)
        )
        found.append([float(np.max(angle(run.predictor, limit))) for limit in limits])
    right, wrong = np.array(found).T
    return right, wrong


@claim(
    "L-clock",
    statement="(ours) a diagonal net under a small weight decay passes, as its time goes, through"
    " the minimisers of Q with the scale alpha e^(-rate t): in regression beta(t) = argmin Q"
    " subject to X beta = y, in classification the direction is that of M's Q_mu path at"
    " mu = (alpha e^(-rate t))^2 / log(1/loss)",
    place="ours; it joins L Theorems 1 and 2 to W Theorems 1 and 3 and to M Theorem 6",
    seconds=15,
)
def clock(size: Size) -> Evidence:
    count = 1 if size == "quick" else 5
    problems = [sparse_regression(4, 9, sparsity=2, noise=0.0, seed=s) for s in range(count)]
    runs = {(s, D): paths(p, D) for s, p in enumerate(problems) for D in (2, 3)}
    fits = {(s, D): from_q(problems[s], D, rows, START - Z) for (s, D), rows in runs.items()}
    order = max((slope(RATES, values) - 1 for values in fits.values()), key=abs)
    least = max(float(values[-1]) for values in fits.values())
    sets = data_sets(2 if size == "quick" else 8)
    turns, other = zip(*(directed(p) for p in sets), strict=True)
    closing = max(float(row[-1] / row[0]) for row in turns)
    larger = from_q(problems[0], 2, runs[0, 2], START - Z + math.log(1.1))
    still = from_q(problems[0], 2, runs[0, 2], np.full(len(Z), START))
    near = Check("largest relative distance to argmin Q at rate 1e-5", least, tolerance=1e-3)
    first = Check(
        "largest deviation of that distance's exponent in the rate from 1", order, tolerance=0.1
    )
    direction = Check(
        "largest angle to the Q_mu path at rate e^-640 over that at e^-20",
        closing,
        1 / 8,
        kind="at most",
    )
    return Evidence(
        ran=f"{count} regressions (4 samples, 9 features, depths 2 and 3) trained in the parameters"
        f" from alpha = e^2 at three rates; {len(sets)} data sets of 4 points in R^8 by the exact"
        " flow with rate = 1/alpha, at rate t = log alpha - 2, log alpha and log alpha + 2",
        checks=[near, first, direction],
        controls={
            "a scale 10% larger": near.control(float(larger[-1])),
            "the scale of the start for ever": near.control(float(still[-1])),
            "a scale 10% larger: the same exponent": first.control(slope(RATES, larger) - 1),
            "mu = (alpha e^(-rate t))² without log(1/loss)": direction.control(
                min(float(row[-1] / row[0]) for row in other)
            ),
        },
        findings=[
            "so weight decay walks down W's kernel-to-rich path by itself, and a finite-size"
            " transition is where that path turns for the data at hand, not at alpha e^(-rate t)"
            " = 1; in classification the approach is only 1/log(1/rate), angles in degrees at rate"
            " e^-20, e^-80, e^-320, e^-640: "
            + "; ".join(", ".join(f"{v:.2g}" for v in row) for row in turns[:2]),
        ],
        plots=[
            Plot(
                "distance to the Q path of the decayed start",
                "rate",
                "relative distance",
                [Series(f"depth {D}", RATES, values) for (s, D), values in fits.items() if s == 0],
                x_scale="log",
                y_scale="log",
            )
        ],
    )
