"""L-sharp: where the jump sits against (1/rate) log alpha, and how sharp it is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from tacit.arguments import Array
from tacit.claims.lyu.runs import data_sets, exact, joint, margin_points
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.measures.directions import angle
from tacit.measures.forecast import forecast
from tacit.models.diagonal import DiagonalNet
from tacit.papers.instances import slope
from tacit.problems.classification import Classification
from tacit.regularizers.norms import Lp
from tacit.solvers.stationary import stationary_points
from tacit.studies.sizes import Size

LOG_ALPHAS = {2: np.array([40.0, 160.0, 640.0]), 3: np.array([40.0, 80.0, 160.0])}
# of rate t around the forecast; at depth 3 the exact flow cannot resolve later times
WINDOW = {
    2: np.concatenate([np.linspace(-4, 9, 131), np.linspace(10, 200, 96)]),
    3: np.linspace(-4, 9, 131),
}


@dataclasses.dataclass(frozen=True)
class Jump:
    """When (in rate * t) the direction has gone 10, 50 and 90% of the way to the rich limit."""

    log_alpha: float
    begins: float
    half: float
    ends: float
    forecast: float
    level: float  # the forecast's smoothed margin
    log_norm: float  # of the parameters at half
    off: float  # degrees from the end of the window to the rich limit

    @property
    def width(self) -> float:
        return self.ends - self.begins


def jump(problem: Classification, log_alpha: float, rate: float, depth: int = 2) -> Jump:
    """The jump of one run by the exact flow."""
    expected = forecast(DiagonalNet(depth, log_alpha=log_alpha), problem, rate)
    z = expected.transition * rate + WINDOW[depth]
    run = exact(problem, log_alpha, rate, z, depth, rtol=1e-6)
    kernel, rich = margin_points(problem)[0], rich_limit(problem, depth, run.predictor[-1])
    away, left = angle(run.predictor, kernel), angle(run.predictor, rich)
    share = away / (away + left)
    begins, half, ends = (_crossing(z, share, part) for part in (0.1, 0.5, 0.9))
    log_norms = np.log(run.norm) - z + log_alpha + math.log(2 * problem.dimension) / 2
    at_half = float(np.interp(half, z, log_norms))
    times = begins, half, ends, expected.transition * rate
    return Jump(log_alpha, *times, expected.smoothed_margin, at_half, float(left[-1]))


def rich_limit(problem: Classification, depth: int, end: Array) -> Array:
    """The l1 max margin at depth 2; beyond, the certified l_{2/L} point nearest to `end`."""
    if depth == 2:
        return margin_points(problem)[1]
    found = stationary_points(problem.X, problem.y, Lp(2 / depth), starts=20)
    points = [point.beta for point in found]
    return min(points, key=lambda point: float(angle(end, point)))


def _crossing(z: Array, share: Array, part: float) -> float:
    """Where `share` first reaches `part`, between two records by a straight line."""
    after = int(np.argmax(share >= part))
    if not after > 0:
        raise RuntimeError(f"the jump passes {part:g} outside the window around its forecast")
    return float(np.interp(part, share[after - 1 : after + 1], z[after - 1 : after + 1]))


@claim(
    "L-sharp",
    statement="the jump from the kernel to the rich classifier sits at (1/rate) log alpha and"
    " takes only o((1/rate) log(1/rate)); it begins once the norm has decayed to the order of"
    " (log 1/rate)^(1/L): measured on diagonal nets with L = 2 and L = 3",
    place="Main results (the time t_q) and Key insights, rich regime",
    seconds=10,
)
def sharp(size: Size) -> Evidence:
    problems = data_sets(2 if size == "quick" else 8)
    rows = [
        (L, [jump(p, a, rate, L) for a, rate in joint(LOG_ALPHAS[L])])
        for p in problems
        for L in LOG_ALPHAS
    ]
    jumps = [row for _, row in rows]
    # the same start under the largest of the rates: alpha and 1/rate told apart
    first, last, rate = jumps[0][0], jumps[0][-1], math.exp(-jumps[0][0].log_alpha)
    parted = jump(problems[0], last.log_alpha, rate)
    place = max(abs(j.half / j.log_alpha - 1) for j in (*(row[-1] for row in jumps), parted))
    narrowing = [_exponent(row, lambda j: j.width / j.log_alpha) for row in jumps]
    drift = max(np.ptp(_of(row, lambda j: j.half - j.forecast)) for row in jumps)
    without = min(np.ptp(_of(row, lambda j: j.half - j.log_alpha)) for row in jumps)
    power = max(
        (_exponent(row, lambda j: math.exp(j.log_norm)) - 1 / L for L, row in rows), key=abs
    )
    sits = Check(
        "largest |rate t_half / log alpha - 1| at the largest alpha", place, tolerance=0.02
    )
    sharpens = Check(
        "largest exponent of width/(1/rate log alpha) in log alpha",
        max(narrowing),
        -0.5,
        kind="at most",
    )
    gap = Check(
        "largest drift of rate t_half - (log alpha + const - (1/L) log g) over the alphas",
        drift,
        tolerance=0.35,
    )
    norm = Check(
        "largest deviation of the exponent of |theta| at the jump in log(1/rate) from 1/L",
        power,
        tolerance=0.1,
    )
    off = max(row[-1].off for row in jumps)
    return Evidence(
        ran=f"{len(problems)} data sets of 4 points in R^8, logistic loss, rate = 1/alpha, exact"
        " flow; log alpha 40 to 640 at depth 2, 40 to 160 at depth 3; the jump is half done where"
        " the direction is half way from the l2 max margin to the rich limit: l1 at depth 2, a"
        " certified stationary point of l_{2/3} at depth 3; one run with alpha and rate apart",
        checks=[sits, sharpens, gap, norm],
        premises={"the runs end at the rich limit (degrees)": (off < 1, off)},
        controls={
            "no term (1/L) log g": gap.control(without),
            "a transition that begins when training does": sharpens.control(
                max(_exponent(row, lambda j: j.ends / j.log_alpha) for row in jumps)
            ),
            "alpha alone grows and the rate stays: exponent of |theta| less 1/2": norm.control(
                _exponent([first, parted], lambda j: math.exp(j.log_norm)) - 0.5
            ),
            "the jump at (1/rate) log(1/rate)": sits.control(
                abs(parted.half / first.log_alpha - 1)
            ),
        },
        findings=[
            "at finite size the jump is at (1/rate)(log alpha + (1/L) log(|theta0|/(g |delta0|)))"
            " with unit-scale |theta0|, |delta0| and g about log(1/rate): a constant and"
            " -(1/L) log log(1/rate) away from log alpha, so the relative gap closes only like"
            " log log alpha / log alpha",
            "the width over (1/rate) log alpha falls like log alpha to the power "
            + ", ".join(
                f"{e:.2f} (L = {L})" for (L, _), e in list(zip(rows, narrowing, strict=True))[:4]
            ),
            "rate t_half - log alpha: "
            + "; ".join(
                f"data set {k}: " + ", ".join(f"{j.half - j.log_alpha:+.2f}" for j in row)
                for k, row in enumerate(jumps[::2][:2])
            )
            + " for log alpha = 40, 160, 640 at depth"
            " 2",
            "alpha multiplies the start; the total norm is alpha sqrt(2d), and log of it over rate"
            " is off by log(2d)/2 for ever",
        ],
        plots=[
            Plot(
                "the jump narrows relative to its time",
                "log alpha",
                "rate t / log alpha",
                [
                    Series(name, LOG_ALPHAS[2], np.array(values) / LOG_ALPHAS[2])
                    for name, values in (
                        ("begins", [j.begins for j in jumps[0]]),
                        ("half", [j.half for j in jumps[0]]),
                        ("ends", [j.ends for j in jumps[0]]),
                    )
                ],
                x_scale="log",
            )
        ],
    )


def _of(row: list[Jump], read: Callable[[Jump], float]) -> Array:
    return np.array([read(jump) for jump in row])


def _exponent(row: list[Jump], read: Callable[[Jump], float]) -> float:
    """The exponent of what is read, in log alpha."""
    return slope(_of(row, lambda j: j.log_alpha), _of(row, read))
