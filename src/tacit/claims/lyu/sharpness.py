"""L-sharp: where the jump sits against (1/rate) log alpha, and how sharp it is."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from tacit.arguments import Array
from tacit.claims.evidence import Check, Evidence
from tacit.claims.instances import slope
from tacit.claims.lyu.runs import data_sets, exact, joint, margin_points
from tacit.claims.plot import Plot, Series
from tacit.claims.registry import claim
from tacit.claims.verdict import Size
from tacit.models.diagonal import DiagonalNet
from tacit.probes.directions import angle
from tacit.probes.forecast import forecast
from tacit.problems.classification import Classification

LOG_ALPHAS = np.array([40.0, 80.0, 160.0, 320.0, 640.0])
WINDOW = np.concatenate([np.linspace(-4, 9, 131), np.linspace(10, 200, 96)])  # of rate t


@dataclasses.dataclass(frozen=True)
class Jump:
    """When (in rate * t) the direction has gone 10, 50 and 90% of the way from l2 to l1."""

    log_alpha: float
    begins: float
    half: float
    ends: float
    forecast: float
    level: float  # the forecast's smoothed margin
    log_norm: float  # of the parameters at half

    @property
    def width(self) -> float:
        return self.ends - self.begins


def jump(problem: Classification, log_alpha: float, rate: float) -> Jump:
    """The jump of one run by the exact flow at depth 2."""
    net = DiagonalNet(2, log_alpha=log_alpha)
    expected = forecast(net, problem, rate)
    z = expected.transition * rate + WINDOW
    run = exact(problem, log_alpha, rate, z, rtol=1e-6)
    kernel, rich = margin_points(problem)
    away, left = angle(run.predictor, kernel), angle(run.predictor, rich)
    share = away / (away + left)
    begins, half, ends = (_crossing(z, share, part) for part in (0.1, 0.5, 0.9))
    log_norms = np.log(run.norm) - z + log_alpha + math.log(2 * problem.dimension) / 2
    at_half = float(np.interp(half, z, log_norms))
    times = begins, half, ends, expected.transition * rate
    return Jump(log_alpha, *times, level=expected.smoothed_margin, log_norm=at_half)


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
    " (log 1/rate)^(1/L)",
    place="Main results (the time t_q) and Key insights, rich regime",
    seconds=10,
)
def sharp(size: Size) -> Evidence:
    problems = data_sets(2 if size == "quick" else 8)
    jumps = [[jump(p, a, rate) for a, rate in joint(LOG_ALPHAS)] for p in problems]
    place = max(abs(row[-1].half / row[-1].log_alpha - 1) for row in jumps)
    closing = max((slope(LOG_ALPHAS, _of(row, lambda j: j.width / j.log_alpha)) + 1
                   for row in jumps), key=abs)  # fmt: skip
    drift = max(np.ptp(_of(row, lambda j: j.half - j.forecast)) for row in jumps)
    without = min(np.ptp(_of(row, lambda j: j.half - j.log_alpha)) for row in jumps)
    power = max((slope(LOG_ALPHAS, _of(row, lambda j: math.exp(j.log_norm))) - 0.5
                 for row in jumps), key=abs)  # fmt: skip
    sits = Check("largest |rate t_half / log alpha - 1| at log alpha = 640", place, tolerance=0.02)
    sharpens = Check("largest deviation of the exponent of width/(1/rate log alpha) in log alpha"
                     " from -1", closing, tolerance=0.1)  # fmt: skip
    gap = Check("largest drift of rate t_half - (log alpha + const - (1/L) log g) from log alpha ="
                " 40 to 640", drift, tolerance=0.35)  # fmt: skip
    norm = Check("largest deviation of the exponent of |theta| at the jump in log(1/rate) from 1/L",
                 power, tolerance=0.1)  # fmt: skip
    return Evidence(
        ran=f"{len(problems)} data sets of 4 points in R^8, depth 2, logistic loss, rate = 1/alpha,"
        " log alpha 40 to 640, exact flow; the jump is half done where the direction is half way"
        " between the l2 and the l1 max margin predictor",
        checks=[sits, sharpens, gap, norm],
        controls={
            "no term (1/L) log g": gap.control(without),
            "a width proportional to log alpha": sharpens.control(closing + 1),
            "a norm that does not depend on the rate": norm.control(power - 0.5),
            "(1/rate) log of the squared scale": sits.control(
                min(abs(row[-1].half / (2 * row[-1].log_alpha) - 1) for row in jumps)),
        },
        findings=[
            "at finite size the jump is at (1/rate)(log alpha + (1/L) log(|theta0|/(g |delta0|)))"
            " with unit-scale |theta0|, |delta0| and g about log(1/rate): a constant and"
            " -(1/L) log log(1/rate) away from log alpha, so the relative gap closes only like"
            " log log alpha / log alpha",
            "rate t_half - log alpha: " + "; ".join(
                f"data set {k}: " + ", ".join(f"{j.half - j.log_alpha:+.2f}" for j in row)
                for k, row in enumerate(jumps[:2])) + " for log alpha = 40, 80, 160, 320, 640",
            "alpha multiplies the start; the total norm is alpha sqrt(2d), and log of it over rate"
            " is off by log(2d)/2 for ever",
        ],
        plots=[Plot("the jump narrows relative to its time", "log alpha", "rate t / log alpha",
                    [Series(name, LOG_ALPHAS, _of(jumps[0], lambda j, n=name:
                                                  getattr(j, n) / j.log_alpha))
                     for name in ("begins", "half", "ends")], x_scale="log")],
    )  # fmt: skip


def _of(row: list[Jump], read: object) -> Array:
    return np.array([read(jump) for jump in row])  # type: ignore[operator]
