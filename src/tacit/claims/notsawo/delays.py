"""What N-T33 and N-T35 share: the law of the delay t2 - t1, and of the error that is left."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Check
from tacit.evidence.plot import Plot, Series
from tacit.papers.instances import slope


@dataclasses.dataclass(frozen=True)
class Names:
    """How a claim writes its quantities."""

    gap: str  # the numerator as printed
    slow: str  # what tau is
    error: str  # the distance to the truth
    rest: str  # the distance to the minimiser of g + beta h
    point: str  # that minimiser


@dataclasses.dataclass(frozen=True)
class Scaling:
    """The delay t2 - t1 of one problem for each beta, and what theory says."""

    pace: Array  # step beta
    delay: Array
    tau: float  # of the slow phase, to the same error
    gap: float  # the printed numerator
    frobenius: float = np.nan

    @property
    def exponent(self) -> float:
        return slope(self.pace, self.delay)

    @property
    def from_smooth(self) -> float:
        """The exponent minus that of log(1/pace)/pace, the delay of a penalty without kinks."""
        return self.exponent - slope(self.pace, np.log(1 / self.pace) / self.pace)

    @property
    def scaled(self) -> float:
        """(t2 - t1) step beta at the smallest step beta."""
        return float(self.delay[-1] * self.pace[-1])

    @property
    def miss(self) -> float:
        """How far that is from the slow phase."""
        return abs(self.scaled / self.tau - 1)


class Delays(NamedTuple):
    """Checks as printed (law, gap, in_beta, in_step) and as corrected (slow, to_point)."""

    law: Check
    gap: Check
    slow: Check
    in_beta: Check
    in_step: Check
    to_point: Check


def delay_checks(
    names: Names,
    laws: Sequence[Scaling],
    every: Sequence[Scaling],
    in_beta: tuple[Array, Array],
    in_step: tuple[Array, Mapping[str, Array]],
    tolerances: tuple[float, float],
) -> Delays:
    """All six; `in_beta` and `in_step` are pairs of where and how much is left.

    What is left over the step is given from the "truth" and from the "point". Tolerances are
    those of the exponents of the delay and of what is left.
    """
    power = max((law.exponent + 1 for law in laws), key=abs)
    printed = max(abs(law.scaled / law.gap - 1) for law in every)
    law = Check(
        "largest deviation of the exponent of t2 - t1 in step beta from -1",
        power,
        tolerance=tolerances[0],
    )
    gap = Check(f"largest |(t2 - t1) step beta/{names.gap} - 1|", printed, tolerance=0.05)
    slow = dataclasses.replace(
        gap.control(max(law.miss for law in every)),
        name=f"largest |(t2 - t1) step beta/tau - 1|, {names.slow}",
    )
    steps, left = in_step
    by_beta = Check(
        f"deviation of the exponent of {names.error} in beta from 1",
        slope(*in_beta) - 1,
        tolerance=tolerances[1],
    )
    by_step = Check(
        f"deviation of the exponent of {names.error} in the step from 1",
        slope(steps, left["truth"]) - 1,
        tolerance=tolerances[1],
    )
    to_point = dataclasses.replace(
        by_step.control(slope(steps, left["point"]) - 1),
        name=f"deviation of the exponent of {names.rest} in the step from 1, {names.point}",
    )
    return Delays(law, gap, slow, by_beta, by_step, to_point)


def noise_check(error: str, ratios: Array, left: Array) -> Check:
    """Whether noise leaves an error in proportion to its size: like SNR^(-1/2)."""
    return Check(
        f"deviation of the exponent of {error} in the signal-to-noise ratio from -1/2",
        slope(ratios, left) + 0.5,
        tolerance=0.05,
    )


def per_pace(steps: Array, beta: float, left: Array) -> str:
    """What is left in units of step beta, as a list."""
    return ", ".join(f"{e / (s * beta):.0f}" for s, e in zip(steps, left, strict=True))


def spread(ratios: Array) -> float:
    """The largest relative miss of ratios from their best constant."""
    return float(np.ptp(ratios) / (ratios.max() + ratios.min()))


def delay_plots(
    names: Names, law: Scaling, steps: Array, left: Mapping[str, Array], distance: str
) -> list[Plot]:
    """The delay of one problem over step beta, and what is left over the step."""
    return [
        Plot(
            "time to recover",
            "step beta",
            "t2 - t1",
            [
                Series("measured", law.pace, law.delay, "points"),
                Series("tau/(step beta)", law.pace, law.tau / law.pace),
                Series(f"{names.gap}/(step beta)", law.pace, law.gap / law.pace, "dashed"),
            ],
            "log",
            "log",
        ),
        Plot(
            "what is left",
            "step",
            distance,
            [
                Series("to the truth", steps, left["truth"]),
                Series(f"to {names.point}", steps, left["point"]),
            ],
            "log",
            "log",
        ),
    ]
