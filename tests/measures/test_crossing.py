"""Crossings of curves that are known by formula."""

import numpy as np
import pytest

from tacit.measures.crossing import crossing


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
