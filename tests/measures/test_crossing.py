"""Where a curve first reaches a level."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.measures.curves import crossing


@settings(max_examples=20, deadline=None, derandomize=True)
@given(steps=st.lists(st.floats(1e-3, 1.0), min_size=3, max_size=20), place=st.floats(0.01, 0.99))
def test_crossings_of_a_rising_curve(steps, place):
    y, x = np.cumsum(steps), np.linspace(0.0, 1.0, len(steps)) ** 2
    level = y[0] + place * (y[-1] - y[0])
    assert crossing(x, y, level) == pytest.approx(np.interp(level, y, x))
    again = np.concatenate([y, y])  # the first of two crossings counts
    assert crossing(np.arange(len(again)), again, level) < len(y)


def test_there_is_none_outside():
    x, y = np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.5, 1.0])
    assert crossing(x, y, 0.75) == pytest.approx(1.5)
    for level in (1.5, -1.0, 0.0):  # never reached, and reached before the first record
        assert np.isnan(crossing(x, y, level))


@pytest.mark.parametrize("place", [0.03, 0.1])
def test_a_known_curve_is_crossed_where_its_formula_says(place):
    x = np.linspace(-4, 2, 400)
    rising = 1 / (1 + (place / 10**x) ** 2)
    # y / (1 - y) = (10^x / place)^2
    for level in (0.1, 0.5, 0.9):
        known = np.log10(place) + 0.5 * np.log10(level / (1 - level))
        assert crossing(x, rising, level) == pytest.approx(known, abs=1e-3)
        assert crossing(x, -rising, -level) == pytest.approx(known, abs=1e-3)
    assert np.isnan(crossing(x, rising, 2.0))  # never
    assert np.isnan(crossing(x[300:], rising[300:], 0.1))  # from the beginning


def test_lines_are_cut_exactly_and_the_first_cut_counts():
    assert crossing([0, 10], [2.5, 1.5], 2.0) == pytest.approx(5.0)
    assert crossing([0, 1, 2, 3], [0, 1, 0, 1], 0.25) == pytest.approx(0.25)
    assert crossing([0, 1, 2], [0, 1, 2], 1.0) == pytest.approx(1.0)
