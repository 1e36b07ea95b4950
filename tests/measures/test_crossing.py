"""Where a curve first reaches a level."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.measures.crossing import crossing


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
