"""What an answer may be called, by its certified error."""

from __future__ import annotations

import math

import pytest

from penchant import Outcome
from penchant.lab import Kind
from penchant.solvers.certificate import Certificate, judge

CLAIM = Outcome(Kind.SOLVED, "the optimality conditions hold to rounding")


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (1e-15, Kind.SOLVED, "hold to rounding"),
        (1e-12, Kind.SOLVED, "hold; relative error of the predictor at most 1e-12"),
        (1e-5, Kind.APPROXIMATE, "error of the predictor at most 1e-05, above the tolerance 1e-07"),
        (math.nan, Kind.STALLED, "not known"),
        (math.inf, Kind.STALLED, "not known"),
    ],
)
def test_the_error_decides_what_is_said(error, kind, words):
    outcome = judge(CLAIM, Certificate(error))
    assert outcome.kind is kind
    assert outcome.ok == (kind is Kind.SOLVED)
    assert words in outcome.sentence
    assert ("to rounding" in outcome.sentence) == (error < 1e-13)


def test_a_failure_stays_the_failure_it_is():
    failure = Outcome(Kind.INFEASIBLE, "no beta fits y")
    assert judge(failure, Certificate(0.0)) is failure


def test_an_estimate_says_that_it_is_one():
    assert "about 2e-09" in judge(CLAIM, Certificate(2e-9, "estimate")).sentence
