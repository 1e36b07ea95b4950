"""Section 6: how many entries and how small a start completion needs, and the regime between."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from penchant import interpolate
from penchant.lab import (
    DRAWS,
    Array,
    Dataset,
    Evidence,
    Experiment,
    at_least,
    at_most,
    door_as,
    drawn,
    exponents,
    log_log,
    margin_of_mean,
    mean_within,
    one_of,
    share_at_least,
    sized,
    upper_share,
)
from penchant.problems import (
    Completion,
    MatrixProblem,
    Sensing,
    gaussian_sensing,
    low_rank_completion,
)
from penchant.regularizers import Frobenius, Nuclear
from penchant_papers.instances import slack_of
from penchant_papers.woodworth2020.figures.completion import determined
from penchant_papers.woodworth2020.theorem_4 import (
    apart,
    end,
    far_from_q,
    least_nuclear,
    limit_start,
)

RECOVERED = 0.01  # relative error of the whole matrix, of the least nuclear norm
NEAR = 0.1  # the same of the kernel regime
TWICE = 0.5  # what resembles one matrix is at least twice as near to it as to the other
LARGE = 1e3  # mu^2 of the kernel regime
CONSTANT = 2.5  # entries over d^1.2 log d; twice of it would be all entries at d = 8
FREE = 16  # d from which so many entries are less than all but a quarter
POWER = 0.2  # of alpha^2 k; from 1e-2 to 1e-6 an error like 1/log(1/(alpha^2 k)) has 0.12
SLACK = 0.25  # least power of alpha^2 k that the errors of determined sensing have in the limit
FAMILIES = ("completion", "Gaussian")


def nested(d: int, rank: int, seed: int) -> Callable[[int], Completion]:
    """Completion problems of one matrix, by their number of entries: more only adds to fewer."""
    rng = np.random.default_rng((seed, d, rank))
    truth = rng.standard_normal((d, rank)) @ rng.standard_normal((rank, d))
    order = np.stack(np.unravel_index(rng.permutation(d * d), (d, d)), axis=1)
    values = truth[order[:, 0], order[:, 1]]
    return lambda count: Completion((d, d), order[:count], values[:count], truth)


def fewest(problem_of: Callable[[int], Completion], solve: Any, level: float, low: int) -> int:
    """The smallest number of entries from which `solve` is within `level` of the truth."""
    truth = problem_of(low).truth
    assert truth is not None
    high = truth.size  # with all entries there is nothing to guess
    while high - low > 1:
        middle = (low + high) // 2
        if apart(solve(problem_of(middle)), truth) <= level:
            high = middle
        else:
            low = middle
    return high


def nuclear(d: int, rank: int, seed: int) -> dict[str, int]:
    """From how many entries on the least nuclear norm is the truth."""
    return {"entries": fewest(nested(d, rank, seed), least_norm, RECOVERED, d)}


def least_norm(problem: MatrixProblem) -> Array:
    """A matrix of least nuclear norm; which of several does not matter where none is the truth."""
    return interpolate(problem, Nuclear(), throw=False).matrix


def frobenius(d: int, seed: int) -> dict[str, int]:
    """From how many entries on training in the kernel regime ends within NEAR of the truth."""
    model = limit_start(d, LARGE)
    return {"entries": fewest(nested(d, 1, seed), lambda p: end(model, p), NEAR, d * d // 2)}


@functools.lru_cache(maxsize=32)  # runs from several mu share their problem and its two limits
def uncommuting(family: str, seed: int) -> tuple[Any, Array, Array]:
    """Measurements that do not commute, and the matrices of least nuclear and Frobenius norm."""
    make: Any = low_rank_completion if family == "completion" else gaussian_sensing
    problem = make(20, 6, rank=1, seed=seed)
    return problem, least_nuclear(problem), interpolate(problem, Frobenius()).matrix


def between(family: str, mu2: float, seed: int) -> dict[str, float]:
    """Distances of the end from 2 mu^2 I where measurements do not commute."""
    problem, nuclear, frobenius = uncommuting(family, seed)
    M = end(limit_start(6, mu2), problem)
    return {
        "q": far_from_q(M, problem, mu2),
        "q_half": far_from_q(M, problem, mu2 / 2),
        "q_double": far_from_q(M, problem, 2 * mu2),
        "nuclear": apart(M, nuclear),
        "frobenius": apart(M, frobenius),
    }


def clear(problem: Sensing) -> bool:
    """Whether the truth has the least nuclear norm, by a certificate of some slack.

    The error is then at most of order (alpha^2 k)^slack.
    """
    assert problem.truth is not None
    least = interpolate(problem, Nuclear(), throw=False)
    return apart(least.matrix, problem.truth) <= RECOVERED and slack_of(problem, least) >= SLACK


@functools.lru_cache(maxsize=32)  # runs from several scales share their problem
def decided(family: str, seed: int) -> Any:
    """A matrix that its entries or Gaussian measurements determine."""
    make: Any = low_rank_completion if family == "completion" else gaussian_sensing
    premise: Any = determined if family == "completion" else clear
    draw = functools.partial(make, 24, 6, rank=1)
    return drawn(lambda number: draw(seed=number), premise, DRAWS * seed)[0]


@door_as("W-MC")
def small(family: str, scale: float, seed: int) -> dict[str, float]:
    """The relative error of what was not measured, after training from alpha^2 k = scale.

    For entries it is that of the hidden ones, for Gaussian measurements that of the whole matrix.
    """
    problem = decided(one_of("family", family, FAMILIES), seed)
    M = end(limit_start(6, scale / 2), problem)
    if family == "Gaussian":
        return {"error": apart(M, problem.truth)}
    size = float(np.sqrt(np.mean(problem.truth[problem.hidden] ** 2)))
    return {"error": problem.test_error(M) / size}


sizes = sized(
    "W-MC",
    function=nuclear,
    arguments={"rank": 1},
    grid={"d": [8, 16]},
    seeds=24,
    tiny={"seeds": 16},
    printed={"seeds": 30, "grid": {"d": [8, 12, 16, 24, 32]}},
)
ranks = sized(
    "W-MC-rank",
    function=nuclear,
    arguments={"d": 8},
    grid={"rank": [1, 2]},
    seeds=16,
    printed={"seeds": 30},
)
kernel = sized(
    "W-MC-kernel",
    function=frobenius,
    grid={"d": [8, 16]},  # of 4 x 4 some luck leaves out half
    seeds=8,
    tiny={"seeds": 4},
    printed={"grid": {"d": [8, 12, 16]}},
)
middle = sized(
    "W-MC-middle",
    function=between,
    grid={"family": list(FAMILIES), "mu2": [0.03, 0.1, 0.5, 2.0]},
    seeds=8,
    tiny={"seeds": 3},
    printed={"seeds": 30},
)
starts = sized(
    "W-MC-small",
    function=small,
    grid={"family": list(FAMILIES), "scale": [1e-2, 1e-6]},
    seeds=16,
    printed={"seeds": 30, "grid": {"family": list(FAMILIES), "scale": [1e-2, 1e-4, 1e-6]}},
)


def powers(dataset: Dataset, axis: str, divided: Any = 1.0) -> Array:
    """The exponent of the entries needed, over `divided`, along an axis, for every seed."""
    rows = dataset.entries.transpose("seed", axis).values / divided
    return exponents(dataset[axis].values, rows)


def lower_median(values: Array) -> float:
    """The order statistic that exceeds the median of its law once in 2000 draws."""
    from scipy.stats import binom

    rank = int(binom.ppf(0.0005, len(values), 0.5))
    return float(np.sort(values)[rank - 1]) if rank else -np.inf


def check(
    sizes: Dataset, ranks: Dataset, kernel: Dataset, middle: Dataset, starts: Dataset
) -> Evidence:
    """Both sample sizes, the regime between the extremes, and how small a start must be."""
    by_size = powers(sizes, "d", np.log(sizes.d.values))
    by_rank, flat = powers(ranks, "rank"), powers(kernel, "d")
    few = at_most(by_size.mean() - margin_of_mean(by_size), 1.2)
    many = mean_within(flat, 2.0, bias=0.1)
    others = middle[["nuclear", "frobenius"]].to_dataarray()
    scales = middle[["q_half", "q_double"]].to_dataarray()
    sharp = (middle.q < scales.min("variable")).values
    nearest = (middle.q < others.min("variable")).values
    resembles = share_at_least(int(nearest.sum()), nearest.size, 0.5)
    closer = np.log(middle.q / others.min("variable")).values.ravel()
    near = at_most(np.exp(closer.mean() + margin_of_mean(closer)), TWICE)
    polynomial = {
        family: exponents(
            starts.scale.values, starts.error.sel(family=family).transpose("seed", "scale").values
        )
        for family in FAMILIES
    }
    shrinks = at_least(min(map(lower_median, polynomial.values())), POWER)
    enough = CONSTANT * sizes.d**1.2 * np.log(sizes.d)
    free = sizes.d >= FREE
    recovered = (sizes.entries <= enough).sum("seed").where(free, drop=True)
    suffices = share_at_least(int(recovered.min()), sizes.sizes["seed"], 0.5)
    counted = int((sizes.entries <= 2 * sizes.d - 1).sum())  # at every d
    law = 1 / np.log(1 / starts.scale.values)
    last = starts.error.sel(scale=1e-6).median("seed")
    return Evidence(
        ran=f"{sizes.entries.size + ranks.entries.size} searches for the fewest entries of "
        f"matrices of 8 x 8 to {int(sizes.d.max())} x {int(sizes.d.max())}, training of 6 x 6 from "
        r"$2 \mu^2 I$",
        checks={
            r"least nuclear norm: exponent in $d$ of entries over $\log d$, at least": few,
            rf"$d \geq {FREE}$: share of matrices that it recovers from "
            rf"${CONSTANT:g} \, d^{{1.2}} \log d$ entries, the least (0.999 lower limit)": suffices,
            "least nuclear norm: exponent in the rank (0.999 upper limit)": at_most(
                by_rank.mean() + margin_of_mean(by_rank), 1.0
            ),
            r"kernel regime, $\mu^2 = 1000$, trained: exponent in $d$ of entries, mean": many,
            rf"$\mu^2$ from {float(middle.mu2.min()):g} to {float(middle.mu2.max()):g}: share of "
            r"ends nearer to the least Schatten $Q_\mu$ than to the least of both norms "
            "(0.999 lower limit)": resembles,
            "distance to the least Schatten $Q_\\mu$ over that to the nearer norm, geometric mean "
            "(0.999 upper limit)": near,
            r"completion and sensing: median exponent of the error in $\alpha^2 k$, $10^{-2}$ to "
            "$10^{-6}$, the least (0.999 lower limit)": shrinks,
        },
        controls={
            "the kernel regime needs as few": few.control(
                (flat - (exponents(kernel.d.values, np.log(kernel.d.values)[None]))).mean()
            ),
            "as many entries as the matrix has parameters, $2 d - 1$ (0.999 upper limit)": (
                suffices.control(upper_share(counted, sizes.entries.size))
            ),
            "the kernel regime needs $d^{1.2}$ entries": many.control(predicted=1.2),
            r"exponentially small starts: error $\sim 1/\log(1/(\alpha^2 k))$": shrinks.control(
                float(exponents(starts.scale.values, law[None])[0])
            ),
            "the ends are those of the least Frobenius norm": resembles.control(
                share_at_least(int((middle.frobenius < middle.q).sum()), nearest.size, 0.5).measured
            ),
        },
        findings=[
            "measurements that do not commute end near the least Schatten $Q_\\mu$, not at it: "
            f"median distance {float(middle.q.median()):.2g}, largest {float(middle.q.max()):.2g}, "
            f"{float(others.min('variable').median()):.2g} (median) to the nearer norm, nearer to "
            f"$Q_\\mu$ than to that of half and twice $\\mu^2$ in {sharp.mean():.0%}",
            "neither completion nor sensing needs an exponentially small start: at $\\alpha^2 k = "
            "10^{-6}$ the median error is "
            + ", ".join(f"{float(last.sel(family=name)):.2g} ({name})" for name in FAMILIES),
            "the growth with $d$ at these sizes does not tell $d^{1.2} \\log d$ from $d \\log^2 d$",
            f"exponents: {by_size.mean():.2f} in $d$ (over $\\log d$), {by_rank.mean():.2f} in "
            r"the rank; of the error in $\alpha^2 k$ "
            + ", ".join(f"{each.mean():.2f} ({name})" for name, each in polynomial.items()),
        ],
        plots=[
            log_log(
                "how many entries completion needs",
                "size $d$ of the matrix",
                "observed entries",
                [
                    (
                        "least nuclear norm (mean)",
                        sizes.d.values,
                        sizes.entries.mean("seed").values,
                        "points",
                    ),
                    ("kernel regime (mean)", kernel.d.values, kernel.entries.mean("seed").values),
                    ("$d^2$", sizes.d.values, sizes.d.values**2, "dashed"),
                ],
            )
        ],
    )


experiment = Experiment(
    "W-MC",
    statement=r"The least nuclear norm recovers a matrix of rank $r$ from $\tilde{\Omega}(d^{1.2} "
    r"r)$ entries, the kernel regime not before $\Omega(d^2)$; between them, at $\alpha^2 k$ of "
    r"order one, the bias resembles $Q_\mu$; and in completion and sensing that determine the "
    "matrix the error falls like a power of the scale of the start, so that the rich limit is "
    "within reach.",
    place="sections 4 and 6, low-rank matrix completion; appendix A",
    study=(sizes, ranks, kernel, middle, starts),
    check=check,
    ours="the sizes, and what counts as recovered: 1 % of the norm, 10 % in the kernel regime",
    title="Low norm needs few entries, the kernel regime all of them",
    seconds=20,
)
