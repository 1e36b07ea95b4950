"""N-F-data: matrix completion from entries chosen by their coherence."""

from __future__ import annotations

import functools
import math

import numpy as np

from tacit.arguments import Array
from tacit.claims.notsawo.nuclear_runs import (
    LEVEL,
    SOLVED,
    nuclear_run,
    recovered,
    slow_time,
    step_of,
)
from tacit.claims.notsawo.runs import crossing
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.problems.coherence import coherent_completion
from tacit.problems.matrices import Completion
from tacit.solvers.delay import memorization_steps
from tacit.studies.sizes import Size

SIZES = (60, 70)  # N, of 100 entries
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # N's tau
FOUND = 1e-6  # relative error of the interpolator of least nuclear norm
BETA = 1e-3  # of the run that tests the slow phase


def low_rank(seed: int) -> Array:
    """A 10 x 10 matrix of rank 2 with Gaussian factors."""
    u, v = np.random.default_rng(seed).standard_normal((2, 10, 2))
    return np.asarray(u @ v.T)


def chosen(seed: int, samples: int, share: float, least: bool = False) -> Completion:
    return coherent_completion(
        samples=samples,
        truth=low_rank(seed),
        tau=share,
        seed=seed,
        least=least,
        loss="half squares",
    )


@functools.lru_cache(maxsize=4096)
def miss(seed: int, samples: int, share: float, least: bool = False) -> float:
    """The relative error of the interpolator of least nuclear norm."""
    return recovered(chosen(seed, samples, share, least))


def portion(seeds: int, share: float, least: bool = False) -> float:
    """The part of all problems that is recovered."""
    return float(np.mean([miss(s, n, share, least) < FOUND for n in SIZES for s in range(seeds)]))


def duration(seed: int, share: float, least: bool = False) -> float:
    """The time of the slow phase with the most entries; inf if the truth is not found."""
    samples = SIZES[-1]
    if miss(seed, samples, share, least) >= FOUND:
        return math.inf
    return slow_time(chosen(seed, samples, share, least))


def late(seeds: int, share: float, least: bool = False) -> float:
    """The median duration; what is never recovered counts as later than everything else."""
    times = sorted(duration(seed, share, least) for seed in range(seeds))
    return times[len(times) // 2]


def trained(problem: Completion) -> float:
    """(t2 - t1) step beta of subgradient descent with the nuclear norm."""
    step, tau = step_of(problem), slow_time(problem)
    record = np.unique((np.linspace(0.5, 1.5, 101) * tau / (step * BETA)).astype(int))
    run = nuclear_run(problem, step, BETA, record.tolist())
    t2 = crossing(run.step.values.astype(float), run.relative_error.values, LEVEL)
    return (t2 - memorization_steps(problem.design, problem.y, step, SOLVED)) * step * BETA


def harmed(seeds: int) -> list[str]:
    """The problems that half of the entries by chance recover and none by chance does not."""
    found = []
    for n in SIZES:
        for seed in range(seeds):
            if miss(seed, n, 0.5) < FOUND <= miss(seed, n, 1.0):
                seen = chosen(seed, n, 1.0).observed
                fewest = min(seen.sum(axis=0).min(), seen.sum(axis=1).min())
                found.append(f"seed {seed} with N = {n}, {fewest} entries in one row or column")
    return found


@claim(
    "N-F-data",
    statement="(ours: N only names its figure) if the tau N entries of the largest row plus column"
    " coherence are seen first and the rest at random, the nuclear norm completes a 10 x 10 matrix"
    " of rank 2 from fewer entries and sooner than from random entries alone",
    place="Data Selection",
    seconds=20,
)
def data_selection(size: Size) -> Evidence:
    seeds = 7 if size == "quick" else 30
    portions = {share: portion(seeds, share) for share in SHARES}
    times = {share: late(seeds, share) for share in SHARES[1:]}
    problem = chosen(0, SIZES[-1], 0.5)
    gain = Check(
        "part recovered with tau = 0.5 minus that with tau = 0, N = 60 and 70",
        portions[0.5] - portions[0.0],
        0.3,
        0.0,
        "at least",
    )
    sooner = Check(
        "median t2 - t1 with tau = 0.75 over that with tau = 0.25, N = 70",
        times[0.75] / times[0.25],
        0.7,
        0.0,
        "at most",
    )
    exact = Check(
        "(t2 - t1) step beta of descent over the time of the slow phase",
        trained(problem) / slow_time(problem),
        1.0,
        0.05,
    )
    least = {share: portion(seeds, share, least=True) for share in (0.5, 1.0)}
    other = np.mean(
        [
            recovered(coherent_completion(samples=n, truth=low_rank(s), tau=0.0, seed=s + 1000))
            < FOUND
            for n in SIZES
            for s in range(seeds)
        ]
    )
    worse = harmed(seeds)
    return Evidence(
        ran=f"{seeds} matrices 10 x 10 of rank 2 (100 entries, N's n = 100), N = 60 and 70, tau = 0"
        " to 1, by the exact interpolator of least nuclear norm; the delay by its slow phase to a"
        f" relative error of {LEVEL:g} with N = 70, and once by descent with beta {BETA:g}",
        checks=[gain, sooner, exact],
        controls={
            "the least coherent entries first": gain.control(least[0.5] - portions[0.0]),
            "another random choice": gain.control(float(other) - portions[0.0]),
            "the least coherent entries first, sooner": sooner.control(
                late(seeds, 0.5, least=True) / times[0.25]
            ),
            "the slow phase of random entries": exact.control(
                trained(problem) / slow_time(chosen(*_random(seeds)))
            ),
        },
        findings=[
            "part recovered at tau = "
            + ", ".join(f"{s:g}: {p:.2f}" for s, p in portions.items())
            + f"; the least coherent half first: {least[0.5]:.2f}, all of them: {least[1.0]:.2f}",
            "median (t2 - t1) step beta with N = 70 at tau = "
            + ", ".join(f"{share:g}: {time:.3g}" for share, time in times.items()),
            "no chance at all is not safe: tau = 0.5 recovers and tau = 1 does not on "
            + (f"{len(worse)} of {2 * seeds} problems, the first {worse[0]}" if worse else "none"),
            "the choice needs the singular spaces of the truth, which a learner does not have",
        ],
        plots=[
            Plot(
                "choosing entries by coherence",
                "tau",
                "part recovered",
                [
                    Series("largest first", np.array(SHARES), np.array(list(portions.values()))),
                    Series(
                        "least first",
                        np.array([0.0, *least]),
                        np.array([portions[0.0], *least.values()]),
                        "dashed",
                    ),
                ],
            )
        ],
    )


def _random(seeds: int) -> tuple[int, int, float]:
    """The first problem of random entries that is recovered."""
    n = SIZES[-1]
    return next((seed, n, 0.0) for seed in range(seeds) if miss(seed, n, 0.0) < FOUND)
