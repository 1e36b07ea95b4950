"""What may be said about an answer: nothing is called solved without a certified error.

A solver proposes an answer and an outcome. Its certificate is computed afterwards, from the answer
as it is returned and the data as they were given, and `judge` turns both into the outcome that the
user sees. An error is relative, and it is one of two: that of the predictor, max|beta - beta*| /
max|beta*|, or that of the value, R(beta) / R(beta*) - 1, where R does not resolve the predictor.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

from penchant.records import Kind, Outcome

TOLERANCE = 1e-7  # relative error up to which an answer counts as solved
ROUNDING = 1e-13  # below this an error is that of float64 arithmetic
SMALL = 1e-10  # an error above this is mentioned


@dataclasses.dataclass(frozen=True)
class Certificate:
    """The relative error of an answer: a bound that is proven, or an estimate."""

    error: float
    kind: Literal["bound", "estimate"] = "bound"
    tolerance: float = TOLERANCE
    part: Literal["predictor", "value"] = "predictor"

    @property
    def ok(self) -> bool:
        """Whether the error is within the tolerance; one that is not a number is not."""
        return self.error <= self.tolerance

    def __str__(self) -> str:
        how = "at most" if self.kind == "bound" else "about"
        return f"relative error of the {self.part} {how} {self.error:.2g}"


UNKNOWN = Certificate(math.nan)


def judge(outcome: Outcome, certificate: Certificate) -> Outcome:
    """The outcome that the certificate allows; a failure stays the failure it is."""
    if not outcome.ok:
        return outcome
    if not math.isfinite(certificate.error):
        text = f"the error of the answer is not known ({without_rounding(outcome)})"
        return Outcome(Kind.STALLED, text)
    if not certificate.ok:
        text = f"{certificate}, above the tolerance {certificate.tolerance:g}"
        return Outcome(Kind.APPROXIMATE, f"{text} ({without_rounding(outcome)})")
    if certificate.error > SMALL or (says_rounding(outcome) and certificate.error > ROUNDING):
        return Outcome(outcome.kind, f"{without_rounding(outcome)}; {certificate}")
    return outcome


def says_rounding(outcome: Outcome) -> bool:
    return outcome.sentence.endswith(" to rounding")


def without_rounding(outcome: Outcome) -> str:
    """The sentence, without the words that only an error of rounding allows."""
    return outcome.sentence.removesuffix(" to rounding")
