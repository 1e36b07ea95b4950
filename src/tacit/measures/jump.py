"""When the test accuracy of a run jumps, from the run so far."""

from __future__ import annotations

import dataclasses
import math

from tacit.records import Record

STATES = ("too early", "expected", "in progress", "happened", "none")


@dataclasses.dataclass(frozen=True, repr=False)
class JumpForecast(Record):
    """The step at which the test accuracy has risen half way, with an interval; or why not.

    Attributes
    ----------
    state
        "too early" (training is not solved yet, or the record is too short), "expected",
        "in progress" (the test accuracy has begun to rise and is not half way), "happened" or
        "none" (no jump is to be expected).
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
        found = (self.step, self.low, self.high) if self.ahead else (math.nan,) * 3
        return dict(zip(("forecast_step", "forecast_low", "forecast_high"), found, strict=True))


def no_forecast(state: str, sentence: str, event: str = "test accuracy") -> JumpForecast:
    """A forecast without a step."""
    return JumpForecast(state, math.nan, math.nan, math.nan, event, sentence)
