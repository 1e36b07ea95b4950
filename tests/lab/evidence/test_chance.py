"""Shares, means and draws: bounds against exact sums, and how often a true statement misses."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant.lab import (
    RARE,
    drawn,
    exponents,
    lower_share,
    margin_of_mean,
    mean_within,
    share_at_least,
    upper_share,
)


def tail(count, total, share):
    """P(at least `count` successes), by the sum itself."""
    return sum(
        math.comb(total, k) * share**k * (1 - share) ** (total - k) for k in range(count, total + 1)
    )


@settings(deadline=None)  # the first call imports scipy.stats
@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_bounds_are_those_of_the_binomial_sum(pair):
    count, total = pair
    low, high = lower_share(count, total), upper_share(count, total)
    assert 0 <= low <= count / total <= high <= 1
    if count:
        assert tail(count, total, low) == pytest.approx(RARE / 2, rel=1e-6)
    if count < total:
        assert 1 - tail(count + 1, total, high) == pytest.approx(RARE / 2, rel=1e-6)


def test_shares_miss_where_the_count_allows_less():
    assert share_at_least(20, 20, 0.68).passes
    assert not share_at_least(19, 20, 0.68).passes
    assert (lower_share(0, 0), upper_share(0, 0)) == (0.0, 1.0)


@pytest.mark.parametrize("count", [3, 6, 20])
def test_a_true_mean_misses_once_in_a_thousand(count):
    rng = np.random.default_rng(count)
    rows = 0.5 + rng.normal(size=(4000, count))
    missed = sum(mean_within(row, 0.5).misses for row in rows)
    assert lower_share(missed, len(rows)) <= RARE <= upper_share(missed, len(rows))


def test_a_wrong_mean_misses():
    values = 1.0 + 0.01 * np.random.default_rng(0).normal(size=10)
    assert mean_within(values, 1.2).misses
    assert mean_within(values, 1.2, bias=0.2).passes


@pytest.mark.parametrize("values", [[1.0, 2.0], [1.0, 2.0, np.nan], []])
def test_too_few_values_are_refused(values):
    with pytest.raises(ValueError, match="a mean needs three finite values or more, got"):
        margin_of_mean(values)


def test_exponents_of_every_row():
    x = np.array([1.0, 2.0, 5.0])
    np.testing.assert_allclose(exponents(x, np.stack([3 * x**-2, x**0.5])), [-2, 0.5])
    assert exponents(x, x**3) == pytest.approx([3.0])


def test_instances_are_drawn_until_the_premise_is_met():
    even = lambda n: n % 2 == 0  # noqa: E731
    assert drawn(lambda seed: seed, even, 3) == (4, 2)
    assert drawn(lambda seed: seed, even, 3, number=2) == (8, 6)
    with pytest.raises(ValueError, match="1000 draws hold 0 instances that meet the premise"):
        drawn(lambda seed: seed, lambda n: False, 0)
