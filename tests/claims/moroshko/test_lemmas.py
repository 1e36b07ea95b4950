"""The numbers of source M: statuses, and that wrong constants are seen."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest

import tacit
from tacit.claims.moroshko import numbers
from tacit.problems.classification import three_points


@pytest.mark.parametrize("tampered", ["digits", "direction"])
def test_wrong_numbers_are_refuted(tampered, monkeypatch):
    if tampered == "digits":
        monkeypatch.setitem(numbers.PRINTED, (100.0, 0.5), (8600.0, 50.0))
    else:
        true = numbers.Q
        monkeypatch.setattr(numbers, "Q", lambda depth, mu: true(depth, mu=0.95 * mu))
    assert tacit.verify("M-num").status == "fails"


def test_the_digits_are_those_of_the_trained_loss():
    """-log10 of the loss of the predictor where alpha = 1 is as near to l1 as the last square."""
    problem = three_points("M-F3b")
    l1 = tacit.max_margin(problem.X, problem.y, tacit.L1()).beta
    square = tacit.max_margin(problem.X, problem.y, tacit.Q(2, mu=0.001)).beta
    g = numbers.trained(problem, 1.0, np.geomspace(900, 1250, 40).tolist()).reaches(
        l1, numbers.angle(square, l1)
    )
    run = numbers.trained(problem, 1.0, [g], flow=tacit.ParameterFlow)
    margins = [mpmath.mpf(m) for m in problem.signed_rows @ run.at(g)]
    loss = sum(mpmath.exp(-m) for m in margins) / 3
    assert float(-mpmath.log10(loss)) == pytest.approx(481.93, abs=0.01)
    assert numbers.angle(run.at(g), l1) == pytest.approx(numbers.angle(square, l1), abs=1e-4)
    # the definition of mu gives another number, and another direction
    assert 1000 / np.log(10) == pytest.approx(434.3, abs=0.01)
    there = numbers.trained(problem, 1.0, [1000.0]).at(1000.0)
    assert numbers.angle(there, l1) - numbers.angle(square, l1) > 0.25


def test_where_an_angle_is_reached():
    g = np.geomspace(1, 100, 20)
    beta = np.stack([np.ones(20), np.tan(np.radians(30 / g))], axis=1)
    run = numbers.Run(three_points("M-F3b"), 1.0, g, beta)
    assert run.reaches(np.array([1.0, 0.0]), 2.0) == pytest.approx(15.0, rel=1e-9)
    with pytest.raises(RuntimeError, match="not reached"):
        run.reaches(np.array([1.0, 0.0]), 0.1)


def test_the_nearest_point_lies_inside_the_run():
    """The parabola finds a minimum between records, and an end is refused."""
    g = np.geomspace(1, 100, 20)
    turn = np.log(g / 7.3)
    beta = np.stack([np.cos(1e-3 * turn), np.sin(1e-3 * turn)], axis=1)
    run = numbers.Run(three_points("M-F3b"), 1.0, g, beta)
    assert run.nearest(np.array([1.0, 0.0]))[0] == pytest.approx(7.3, rel=1e-6)
    with pytest.raises(RuntimeError, match="at an end"):
        replace(run, smoothed_margin=g[-4:], predictor=beta[-4:]).nearest(np.array([1.0, 0.0]))
    with pytest.raises(RuntimeError, match="not recorded"):
        run.at(2.0)
