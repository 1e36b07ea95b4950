"""When the test accuracy of a run jumps under weight decay: a law fitted on runs that grok.

How it works (docs/theory section 26). Time is measured in z, the sum of (learning rate x weight
decay) over the steps: what the data do not hold shrinks as e^(-z), whatever the schedule. Theory
puts the end of memorization at z = log of the start - (1/L) log of the margin (section 21), so log
z of the jump is taken to be linear in the logarithm of the margin when the training accuracy
reaches 0.99, and in what the run shows since: z itself, the test loss, and how fast it falls. Runs
with another loss than cross-entropy, or without recorded losses, have a second law of test
accuracy, norm and turn.

The constants were fitted on 56 runs that grok, asked about a dozen times each: quadratic nets, ReLU
nets and transformers of one block, SGD, momentum and AdamW, addition mod 19 to 97, digits from a
large start; 50 of them with cross-entropy, on which the first law was fitted. Where one run is left
out of the fit, the step of its jump is missed by 23% in the mean at 1.2 times the memorization time
(by the second law by 29%), and where one of the four families of nets and data is left out, by 23%
and 31%. The regressors were chosen by the same errors, which makes them somewhat too small;
`penchant verify watch-forecast` measures on other seeds. tests/support/jump_points.py makes the
runs and the fit.

On 49 runs that grok with settings drawn at random (one half of the bench, docs/howto) the law was
too early by 1.8 times for nets with embeddings of tokens, whatever the rest of the net and the
optimizer; `EMBEDDED` takes that back. `SPREADS` hold the quantiles of both sets of
residuals. The other half of the bench judges them.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

from penchant.records import Record

LOSS_LAW = (-0.278, -0.661, 0.432, 0.464, 0.212)
PLAIN_LAW = (0.532, -1.204, 0.515, -0.155)
# log z of the jump against the law, with a probability of a tenth below and above (corrected for
# the number of runs): where the run has come to a share of the expected z of at most 0.45, of 0.8
# and more, of the second law, and of nets with embeddings
SPREADS = {
    "early": (-0.85, 0.52),
    "late": (-0.27, 0.40),
    "plain": (-0.85, 0.60),
    "embedded": (-0.85, 0.80),
}
EMBEDDED = 0.57  # added to log z of nets that embed tokens
RISING = (-0.20, 0.25)  # the same for a rise that has begun
EARLY, LATE = 0.45, 0.8
OVERDUE = (1.08, 1.6)  # times z now: expected and at most, once the expected z is near or past
LONGEST = 2.5  # times the expected z without a jump, and no more is said
# (share of the expected z, share of its highest value below which the test loss is by then)
FALLS = ((0.45, 0.98), (1.0, 0.85))
STILL = 0.1  # a test loss whose logarithm falls more slowly in that of the step does not fall


@dataclasses.dataclass(frozen=True, repr=False)
class JumpForecast(Record):
    """The step at which the test accuracy has risen half way, with an interval; or why not.

    Attributes
    ----------
    state
        "too early" (training is not solved yet, or the record is too short), "expected",
        "in progress" (the test accuracy has begun to rise and is not half way), "happened" or
        "none" (no jump is to be expected, or none at a known time).
    step
        The step of the jump: half way from the plateau at memorization to the ceiling. It is NaN
        where nothing is expected and nothing happened.
    low
        The jump comes later than this step with a probability of 90%.
    high
        The jump comes earlier than this step with a probability of 90%.
    event
        "test accuracy"; or "weights" where no test accuracy is recorded, and the step is the one
        at which the weights leave the kernel regime.
    sentence
        The forecast in words.
    """

    state: str
    step: float
    low: float
    high: float
    event: str
    sentence: str

    @property
    def known(self) -> bool:
        """Whether there is a step, ahead or past."""
        return math.isfinite(self.step)

    @property
    def ahead(self) -> bool:
        """Whether the step is a forecast, not something seen."""
        return self.known and self.state in ("expected", "in progress")

    @property
    def row(self) -> dict[str, float]:
        """The forecast as a look records it; NaN where nothing is ahead."""
        numbers = (self.step, self.low, self.high) if self.ahead else (math.nan,) * 3
        return dict(zip(("forecast_step", "forecast_low", "forecast_high"), numbers, strict=True))


def no_forecast(state: str, sentence: str, event: str = "test accuracy") -> JumpForecast:
    """A forecast without a step."""
    return JumpForecast(state, math.nan, math.nan, math.nan, event, sentence)


class Losses(NamedTuple):
    """Cross-entropies of a run after memorization, all above zero."""

    memorized: float  # of training, when its accuracy reached 0.99
    test: float  # now
    highest: float  # of the test since then
    slope: float  # d log test loss / d log step, now

    def late(self, share: float) -> bool:
        """Whether the test loss is higher than in runs that grok at a share of the expected z."""
        least = min((fallen for since, fallen in FALLS if share > since), default=math.inf)
        return self.test > least * self.highest and self.slope > -STILL


class Progress(NamedTuple):
    """What a law needs to know of a run after memorization."""

    z: float  # learning rate x weight decay, summed over the steps so far
    accuracy: float  # of the test, now
    norm: float  # over that of the start
    turn: float  # from the start, in degrees
    losses: Losses | None
    half: float = math.inf  # z at which a rise that has begun is half done, if it goes on like this
    embedded: bool = False  # the net is known to embed tokens or to attend to them


class Expected(NamedTuple):
    """z of the jump and its interval of 80%."""

    z: float
    low: float
    high: float


def expected_jump(seen: Progress) -> Expected:
    """z of the jump that has not come yet; a ValueError says why none is to be expected."""
    logarithm = _loss_law(seen.z, seen.losses) if seen.losses else _plain_law(seen)
    law = math.exp(logarithm + EMBEDDED * seen.embedded)
    expected, begun = min(law, seen.half), seen.half < math.inf
    share = seen.z / expected
    if not begun and share > LONGEST:
        raise ValueError(
            f"the jump is overdue: it was expected at {expected:.3g} of learning rate x weight "
            f"decay, summed over the steps, and there was {seen.z:.3g} of it"
        )
    if not begun and seen.losses and seen.losses.late(share):
        raise ValueError("the test loss does not fall, as it does by this time in runs that grok")
    low, high = RISING if begun else _spread(share, seen)
    middle = max(expected, OVERDUE[0] * seen.z)
    least = OVERDUE[1] * seen.z if share > LATE and not begun else 0.0
    return Expected(
        middle, max(expected * math.exp(low), seen.z), max(middle * math.exp(high), least)
    )


def _loss_law(z: float, losses: Losses) -> float:
    """log z of the jump by the margin, the test loss and its slope."""
    margin = math.log1p(1 / losses.memorized)
    signs = (
        1.0,
        min(math.log(margin), 0.7),
        min(math.log(losses.test), math.log(8)),
        min(z, 3.0),
        min(max(losses.slope, -2.0), 0.0),
    )
    return math.fsum(a * b for a, b in zip(LOSS_LAW, signs, strict=True))


def _plain_law(seen: Progress) -> float:
    """log z of the jump by the test accuracy, and what learning has done to norm and direction."""
    turn = math.radians(min(max(seen.turn, 0.1), 89.0))
    signs = (
        1.0,
        seen.accuracy,
        min(math.log(seen.norm) + seen.z, 2.0),  # learning against decay
        math.log(math.tan(turn)) - math.log(seen.z),
    )
    return math.fsum(a * b for a, b in zip(PLAIN_LAW, signs, strict=True))


def _spread(share: float, seen: Progress) -> tuple[float, float]:
    if seen.embedded:
        return SPREADS["embedded"]
    if seen.losses is None:
        return SPREADS["plain"]
    late = min(max((share - EARLY) / (LATE - EARLY), 0.0), 1.0)
    pairs = zip(SPREADS["early"], SPREADS["late"], strict=True)
    low, high = ((1 - late) * first + late * last for first, last in pairs)
    return low, high
