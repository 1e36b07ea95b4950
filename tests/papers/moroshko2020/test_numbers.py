"""The digits that M quotes: the verdict, wrong constants, and where angles are reached."""

import mpmath
import numpy as np
import pytest

import tacit
from tacit.papers.moroshko2020 import numbers
from tacit.problems.classification import three_points


def test_the_verdict(verdict_of):
    assert verdict_of("M-num").status == "holds as corrected"


def test_wrong_digits_are_refuted(data_of, monkeypatch):
    monkeypatch.setitem(numbers.PRINTED, (100.0, 0.5), (8600.0, 50.0))
    found = numbers.experiment.evidence(data_of("M-num"))
    assert numbers.experiment.verdict(found, "tiny").status == "fails"


def test_a_wrong_square_is_refuted(verdict_with):
    assert verdict_with("M-num", stretch=0.95).status == "fails"


def test_the_digits_are_those_of_the_trained_loss():
    """-log10 of the loss of the predictor where alpha = 1 is as near to l1 as the last square."""
    problem = three_points("3b")
    l1 = tacit.max_margin(problem.X, problem.y, tacit.L1()).beta
    near = numbers.square(problem, 0.001)
    g, beta = numbers.followed(problem, 1.0, np.geomspace(900, 1250, 40).tolist())
    needed = numbers.reaches(g, tacit.angle(beta, l1), near)
    there = numbers.followed(problem, 1.0, [needed], "parameters")[1][-1]
    margins = [mpmath.mpf(m) for m in problem.signed_rows @ there]
    loss = sum(mpmath.exp(-m) for m in margins) / 3
    assert float(-mpmath.log10(loss)) == pytest.approx(481.93, abs=0.01)
    assert tacit.angle(there, l1) == pytest.approx(near, abs=1e-4)
    # the definition of mu gives another number, and another direction
    assert 1000 / np.log(10) == pytest.approx(434.3, abs=0.01)
    assert tacit.angle(numbers.followed(problem, 1.0, [1000.0])[1][-1], l1) - near > 0.25


def test_where_an_angle_is_reached_and_where_it_is_least():
    g = np.geomspace(1, 100, 20)
    assert numbers.reaches(g, 30 / g, 2.0) == pytest.approx(15.0, rel=1e-9)
    assert np.isnan(numbers.reaches(g, 30 / g, 0.1))
    angles = np.abs(np.log(g / 7.3))
    assert numbers.nearest(g, angles)[0] == pytest.approx(7.3, rel=1e-6)
    with pytest.raises(RuntimeError, match="at an end"):
        numbers.nearest(g[-4:], angles[-4:])
    with pytest.raises(RuntimeError, match="not recorded"):
        numbers.at(g, angles, 2.0)
