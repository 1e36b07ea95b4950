"""Directions, margins and the stability condition, on arrays whose answer is known."""

import math

import mpmath
import numpy as np
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
from penchant.measures import stability
from penchant.problems import three_points
from refusals import refusals


def path_of(margins, clock):
    return xarray.Dataset({"margins": (("time", "sample"), np.asarray(margins, float)),
                           "smoothed_margin": (("time",), np.asarray(clock, float))})  # fmt: skip


def test_since_is_where_the_last_sample_leaves_the_margin():
    # sample 1 crosses the ratio 1.5 between clocks 2 and 4, sample 2 is always far
    margins = [[1, 1, 9], [2, 2, 9], [4, 8, 30], [8, 17, 60]]
    found = stability(path_of(margins, [1, 2, 4, 8]), [1, 2, 7])
    assert found.rho == 1.5
    assert found.watched == (1, 2)
    assert found.sample == 1
    assert found.since == pytest.approx(3.0)
    assert stability(path_of(margins, [1, 2, 4, 8]), [1, 2, 7], rho=1.01).since < 3
    never = stability(path_of(margins, [1, 2, 4, 8]), [1, 2, 7], rho=3.0)
    assert not never.holds
    assert never.since == math.inf


def test_a_start_at_zero_has_no_say_and_all_on_the_margin_is_stable():
    margins = [[0, 0], [1, 3]]
    assert stability(path_of(margins, [0, 1]), [1, 3]).since == 0
    assert stability(path_of(margins, [0, 1]), [1, 1]).watched == ()


def test_on_a_trained_path_it_tells_panel_b_from_panel_d():
    found = {}
    for name in ("3b", "3d"):
        problem = three_points(name)
        path = penchant.train(
            penchant.DiagonalNet(alpha=30.0),
            problem,
            penchant.DualFlow(rtol=1e-8),
            stop=penchant.stop.Scale(0.001),
        )
        limit = problem.signed_rows @ path.predictor
        found[name] = stability(path, limit).since
    assert found["3b"] < 1
    assert 10 < found["3d"] / 900 < 1000


test_wrong_input_of_stability = refusals(
    (lambda: stability(path_of([[1, 2, 3]], [1]), [1, 2]), "one margin per sample"),
    (lambda: stability(path_of([[1, 2, 3]], [1]), [1, -2, 3]), "must separate"),
    (lambda: stability(path_of([[1, 2, 3]], [1]), [1, 2, 3], 1.0), "rho must be > 1"),
    (lambda: stability(xarray.Dataset(), [1.0]), "Classification"),
)


@given(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3), st.floats(1e-12, 3.0),
       st.integers(-200, 200))  # fmt: skip
@settings(max_examples=60, deadline=None, derandomize=True)
def test_angle_against_mpmath(vector, turn, exponent):
    a = np.array(vector)
    if np.linalg.norm(a) < 1e-3:
        a = a + np.array([1.0, 0.0, 0.0])
    side = np.cross(a, [0.3, -0.8, 0.52])
    b = math.cos(turn) * a / np.linalg.norm(a) + math.sin(turn) * side / np.linalg.norm(side)
    found = float(penchant.measures.angle(a * 10.0**exponent, b))
    with mpmath.workdps(50):
        x, y = [mpmath.mpf(float(v)) for v in a], [mpmath.mpf(float(v)) for v in b]
        dot = mpmath.fsum(p * q for p, q in zip(x, y, strict=True))
        size = mpmath.sqrt(mpmath.fsum(p * p for p in x) * mpmath.fsum(q * q for q in y))
        cross = mpmath.sqrt(max(size**2 - dot**2, mpmath.mpf(0)))
        exact = float(mpmath.degrees(mpmath.atan2(cross, dot)))
    assert found == pytest.approx(exact, rel=1e-9, abs=1e-13)


def test_azimuth_and_pitch_of_known_directions():
    azimuth, pitch = penchant.measures.azimuth_pitch([[1, 0, 0], [0, 2, 0], [1, 1, math.sqrt(2)]])
    assert azimuth == pytest.approx([0, 90, 45])
    assert pitch == pytest.approx([0, 0, 45])
    with pytest.raises(ValueError, match="3 coordinates"):
        penchant.measures.azimuth_pitch([1.0, 2.0])
    with pytest.raises(ValueError, match="no direction"):
        penchant.measures.angle([0.0, 0.0], [1.0, 0.0])


def test_margins_and_support_vectors():
    X, y = [[1.0, 2.0], [3.0, -1.0]], [1, -1]
    assert penchant.measures.margins(X, y, [1.0, 1.0]) == pytest.approx([3.0, -2.0])
    assert penchant.measures.support_vectors([1.0, 1.0005, 1.1]).tolist() == [True, True, False]
    with pytest.raises(ValueError, match="one entry per feature"):
        penchant.measures.margins(X, y, [1.0])
