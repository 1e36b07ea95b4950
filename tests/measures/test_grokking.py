"""penchant.measures.grokking: known curves are recovered, and what must not matter does not."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penchant.measures import Grokking, grokking
from penchant.measures import crossing as level_crossing
from penchant.measures.curves import smoothed
from refusals import refusals

LOG_ODDS = math.log(9)  # of the 95% level for a rise from 1/2 to 1: share 0.9, odds 9


def rise(t, middle, scale=0.03, low=0.5, high=1.0):
    """A sigmoid in log10 time, half done at `middle`."""
    return low + (high - low) / (1 + (middle / np.asarray(t)) ** (1 / (scale * math.log(10))))


def crossing(middle, scale=0.03):
    """Where `rise` from 1/2 to 1 passes 0.95, in closed form."""
    return middle * 10 ** (scale * LOG_ODDS)


def fall(t, middle):
    """A rise from 0 to 0.4, to be taken away."""
    return rise(t, middle, low=0.0, high=0.4)


def noisy(curve, size, seed):
    return np.clip(curve + size * np.random.default_rng(seed).standard_normal(len(curve)), 0, 1)


def grid(per_decade=50, decades=6):
    return np.logspace(0, decades, per_decade * decades + 1)


def same(a: Grokking, b: Grokking, rtol=1e-9):
    for field in dataclasses.fields(a):
        if field.name not in ("reason", "level"):
            one, two = getattr(a, field.name), getattr(b, field.name)
            assert (
                one == two
                if field.name == "kind"
                else one == pytest.approx(two, rel=rtol, abs=1e-12, nan_ok=True)
            )


def test_clean_sigmoids_are_recovered_in_closed_form():
    t = grid()
    found = grokking(t, rise(t, 100), rise(t, 3e4))
    assert found.kind == "grok"
    assert found.t1 == pytest.approx(crossing(100), rel=5e-3)
    assert found.t2 == pytest.approx(crossing(3e4), rel=5e-3)
    assert found.jump == pytest.approx(3e4, rel=5e-3)
    assert found.delay == found.t2 - found.t1
    assert found.log_ratio == pytest.approx(math.log10(300), abs=5e-3)
    # from odds 1/9 to odds 9
    assert found.sharpness == pytest.approx(0.03 * 2 * LOG_ODDS, rel=0.03)
    assert (found.plateau, found.final) == pytest.approx((0.5, 1.0), abs=1e-6)


@pytest.mark.parametrize(("size", "typical", "most"), [(0.02, 0.02, 0.05), (0.05, 0.06, 0.12)])
def test_noise_moves_the_times_by_a_few_percent(size, typical, most):
    t = grid(per_decade=200)
    misses = []
    for seed in range(20):
        train, test = noisy(rise(t, 100), size, seed), noisy(rise(t, 3e4), size, seed + 100)
        found = grokking(t, train, test)
        assert found.kind == "grok"
        misses += [found.t1 / crossing(100) - 1, found.t2 / crossing(3e4) - 1]
        assert found.jump == pytest.approx(3e4, rel=0.05)
    # the level is one (0.05) or two and a half (0.02) standard deviations below the plateau
    assert np.median(np.abs(misses)) < typical
    assert np.quantile(np.abs(misses), 0.9) < most


@pytest.mark.parametrize("size", [0.0, 0.02, 0.05])
def test_each_kind_on_its_curve(size):
    t = grid()
    train = noisy(rise(t, 50), size, 1)
    curves = {
        "grok": rise(t, 2e4),
        "misgrok": 0.47 + rise(t, 50) - rise(t, 2e4, low=0.5, high=0.75),
        "double descent": rise(t, 50) - fall(t, 1e3) + rise(t, 2e4, low=0.0, high=0.4),
        "slow": np.interp(np.log10(t), [3, 6], [0.2, 1.0]),
        "in progress": rise(t, 1e6, 0.1, low=0.2),
        "none": rise(t, 55),
    }
    seen = {kind: grokking(t, train, noisy(test, size, 2)) for kind, test in curves.items()}
    assert [found.kind for found in seen.values()] == list(curves)
    for kind in ("grok", "misgrok", "double descent"):
        assert seen[kind].jump == pytest.approx(2e4, rel=0.08)
    for kind in ("misgrok", "in progress"):
        assert math.isinf(seen[kind].t2)
    assert math.isnan(seen["none"].jump)


@pytest.mark.parametrize("size", [0.0, 0.02, 0.05])
@pytest.mark.parametrize("high", [0.65, 0.8, 0.9])
def test_a_rise_that_levels_off_below_the_level_is_a_grok_to_its_ceiling(high, size):
    t = grid()
    found = grokking(t, rise(t, 50), noisy(rise(t, 2e4, low=0.2, high=high), size, 3))
    assert (found.kind, found.ceiling) == ("grok", pytest.approx(high, abs=0.001 + size))
    assert found.ceiling == found.final
    assert "ceiling" in found.reason
    # 0.05 below the ceiling, in closed form
    odds = (high - 0.25) / 0.05
    assert found.t2 == pytest.approx(2e4 * odds ** (0.03 * math.log(10)), rel=0.01 + 10 * size)
    # control: a curve that reaches the level has the ceiling of its task
    assert grokking(t, rise(t, 50), rise(t, 2e4)).ceiling == 1.0


def test_a_rise_is_in_progress_until_it_levels_off():
    """The middle of the jump is at 1e4; the record ends earlier and earlier."""
    t = grid()
    curves = rise(t, 50), rise(t, 1e4, 0.05, low=0.1, high=0.9)
    kinds = [grokking(*(c[: n + 1] for c in (t, *curves))).kind for n in (300, 225, 204, 200, 197)]
    assert kinds == ["grok", "grok", "in progress", "in progress", "in progress"]
    assert grokking(*(c[:151] for c in (t, *curves))).kind == "none"


def test_what_has_one_time_scale_is_no_slow_rise_and_what_has_many_is():
    t = grid()
    one = 1 - 0.9 * np.exp(-t / 2e4)
    many = 1 - 0.9 * (1 + t / 1e3) ** -0.5
    two = rise(t, 1e3, low=0.1, high=0.55) + rise(t, 1e5, low=0.0, high=0.45)  # steps
    kinds = [grokking(t, rise(t, 50), curve).kind for curve in (one, many, two)]
    assert kinds == ["grok", "slow", "grok"]


def test_a_fall_is_a_detail_of_a_rise_more_than_twice_as_large():
    t = grid()
    for lost, kind in ((0.3, "grok"), (0.5, "double descent")):
        test = rise(t, 10, low=0.05, high=0.1 + lost) - lost * fall(t, 200) / 0.4
        found = grokking(t, rise(t, 50), test + rise(t, 2e4, low=0.0, high=0.85))
        assert found.kind == kind, found
    # control: a loss that was never low rises while training is solved, and falls: no first descent
    loss = 3 + 4 * fall(t, 60) / 0.4 - rise(t, 2e4, low=0.0, high=6.99)
    assert grokking(t, 1 - rise(t, 50, low=0.0), loss, 0.05, error=True).kind == "grok"


def test_a_fall_from_below_the_level_is_misgrokking_too():
    t = grid()
    test = 0.35 + rise(t, 50) - rise(t, 2e4, low=0.5, high=0.75)
    found = grokking(t, rise(t, 50), test)
    assert (found.kind, found.t2) == ("misgrok", math.inf)
    assert "better" in found.reason
    # control: the same fall before training is solved is plain overfitting
    assert grokking(t, rise(t, 4e4), test).kind == "none"


def test_what_comes_and_goes_is_judged_by_its_end():
    t = grid()
    train = rise(t, 50)
    visit = rise(t, 1e3) - rise(t, 1e5, low=0.0, high=0.5)
    assert grokking(t, train, visit).kind == "misgrok"
    dip = rise(t, 50) - rise(t, 1e3, low=0.0, high=0.4) + rise(t, 1e5, low=0.0, high=0.4)
    found = grokking(t, train, dip)
    assert found.kind == "double descent"
    assert found.t2 > 1e5


def test_spikes_are_ignored_and_long_losses_are_not():
    t = grid()
    train, test = rise(t, 100), rise(t, 3e4)
    clean = grokking(t, train, test)
    spiked = train.copy()
    spiked[[150, 200, 201, 260]] = 0.1
    same(grokking(t, spiked, test), clean)
    lost = train.copy()
    lost[150:190] = 0.1
    assert grokking(t, lost, test).t1 == pytest.approx(t[190], rel=0.05)
    # control: a lone good record is not a solved task
    lucky = np.full(len(t), 0.5)
    lucky[200] = 1.0
    assert math.isinf(grokking(t, train, lucky).t2)


def test_crossings_are_linear_in_log_time():
    step = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    t = np.logspace(0, 7, 8)
    assert grokking(t, step, step).t1 == pytest.approx(10**2.95)
    # no logarithm of the first interval when the record starts at zero
    early = [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert grokking([0, *t[:-1]], early, early).t1 == pytest.approx(0.95)


def test_a_dip_shorter_than_the_window_vanishes_however_fine_the_grid():
    t = grid(per_decade=200)
    train, dipped = rise(t, 100), rise(t, 100)
    dipped[800:816] = 0.2
    same(grokking(t, dipped, train), grokking(t, train, train))


def test_a_plateau_just_above_the_level_stays_solved_under_noise():
    t = grid()
    times = [
        grokking(t, c, c).t1 for c in (noisy(rise(t, 100), 0.05, s) * 0.985 for s in range(20))
    ]
    assert np.median(times) == pytest.approx(100, rel=0.5)
    assert max(times) < 1e3


def test_a_rise_that_sags_a_little_is_still_a_rise():
    t = grid()
    sag = rise(t, 1e3, low=0.3, high=0.8) - rise(t, 1e5, low=0.0, high=0.15)
    found = grokking(t, rise(t, 50), sag)
    assert (found.kind, found.ceiling) == ("grok", pytest.approx(0.65, abs=1e-3))
    # control: the same sag without the rise
    flat = 0.8 - rise(t, 1e5, low=0.0, high=0.15)
    assert grokking(t, rise(t, 50), flat).kind == "misgrok"


def test_curves_that_start_solved_and_curves_never_solved():
    t, ones = grid(), np.ones(301)
    found = grokking(t, ones, rise(t, 3e4))
    assert (found.kind, found.t1) == ("grok", 1.0)
    assert grokking(t, ones, ones).kind == "none"
    assert grokking(t, ones, ones, level=1.0).kind == "none"
    never = grokking(t, 0.5 * ones, rise(t, 3e4))
    assert (never.kind, never.t1) == ("none", math.inf)
    assert math.isnan(never.delay)
    assert "never" in never.reason
    lost = grokking(t, 1.5 - rise(t, 1e5), rise(t, 3e4))
    assert lost.kind == "none"
    assert "lost" in lost.reason
    silent = grokking(t, rise(t, 100), 0.5 * ones)
    assert (silent.kind, silent.t2, silent.delay) == ("none", math.inf, math.inf)


def test_a_record_that_ends_too_early_says_so():
    t = grid()
    found = grokking(t, rise(t, 6e5), rise(t, 3e4))
    assert found.kind == "none"
    assert "too early" in found.reason
    assert grokking([1.0, 2.0], [1.0, 1.0], [0.0, 1.0]).kind in ("grok", "none")


def test_times_from_zero_and_before_zero():
    steps = np.arange(4000.0)
    train, test = np.minimum(1, steps / 50), np.where(steps < 2000, 0.5, 1.0)
    found = grokking(steps, train, test)
    assert found.kind == "grok"
    assert found.t1 == pytest.approx(47.5, abs=0.02)
    assert 1999 <= found.t2 <= 2000
    early = grokking(steps - 10, train, test)
    assert (early.kind, early.t1) == ("grok", pytest.approx(37.5, abs=1e-9))
    assert math.isnan(early.log_ratio)
    assert grokking(steps, np.ones(4000), test).log_ratio == math.inf


@pytest.mark.parametrize(
    "t",
    [np.logspace(0, 3, 3 * n + 1) for n in (4, 8, 16, 30, 100)] + [np.arange(50.0, 1001.0, 50.0)],
    ids=["4 a decade", "8 a decade", "16 a decade", "30 a decade", "100 a decade", "20 in all"],
)
def test_the_end_of_a_record_is_not_smoothed_away(t):
    """A noise-free curve that passes the level at t = 870 and ends at 0.967 is a grok."""
    power = math.log(0.967 / 0.033 / 19) / math.log(1000 / 870)
    train, test = np.minimum(1.0, t / 60), 1 / (1 + (870 / t) ** power / 19)
    found = grokking(t, train, test)
    assert (found.kind, found.final) == ("grok", pytest.approx(0.967))
    assert abs(found.t2 - 870) < 0.3 * (1000 - t[-2])
    # controls: a curve that ends below the level, and a lone record above it
    short = grokking(t, train, np.minimum(test, 0.949))
    assert short.kind == "in progress" or short.ceiling == pytest.approx(0.949)
    lucky = np.minimum(test, 0.4)
    lucky[-1] = 1.0
    assert grokking(t, train, lucky).ceiling == 0.4


@pytest.mark.parametrize("size", [0.0, 0.003])
@pytest.mark.parametrize("scale", [0.02, 0.05, 0.1])
@pytest.mark.parametrize(
    "t",
    [np.arange(1.0, 1001), np.arange(10.0, 1001, 10), np.arange(50.0, 1001, 50), grid(30, 3)],
    ids=["1000 records", "100 records", "20 records", "30 a decade"],
)
def test_a_level_passed_near_the_end_is_passed_at_its_time(t, scale, size):
    """At 898 of 1000: found within the spacing of the records, with a little noise too."""
    test = noisy(rise(t, 898 / 10 ** (scale * LOG_ODDS), scale), size, 0)
    found = grokking(t, np.minimum(1.0, t / 60), test)
    assert found.kind == "grok"
    assert abs(found.t2 - 898) < max(1000 - t[-2], 0.01 * 898)
    assert found.final == pytest.approx(test[-5:].max(), abs=0.001 + 2 * size)


@pytest.mark.parametrize("size", [0.02, 0.05])
def test_noise_at_the_end_of_a_record_is_still_smoothed(size):
    """The last smoothed value is not the last record: noise decides on no verdict."""
    t = grid(per_decade=200)
    final = []
    for seed in range(20):
        found = grokking(t, rise(t, 100), noisy(rise(t, 3e4, high=0.9), size, seed))
        assert (found.kind, found.ceiling) == ("grok", found.final)
        final.append(found.final)
    assert np.std(final) < size / 3


def test_a_curve_is_held_to_the_best_that_its_task_allows():
    t = grid()
    train, test = rise(t, 100), rise(t, 3e4, high=0.84)
    found = grokking(t, train, test, best=0.84)
    assert (found.kind, found.ceiling) == ("grok", 0.84)
    assert found.final == pytest.approx(0.84, abs=1e-6)
    # 0.05 below the best, which is share 0.29/0.34 of the rise: odds 5.8
    assert found.t2 == pytest.approx(3e4 * 5.8 ** (0.03 * math.log(10)), rel=5e-3)
    # controls: a best that is not reached, and a curve that fell from it
    assert grokking(t, train, test, best=0.92).ceiling == pytest.approx(0.84, abs=1e-6)
    falls = 0.84 * rise(t, 50, low=0.0) - rise(t, 2e4, low=0.0, high=0.3)
    found = grokking(t, train, falls, best=0.84)
    assert found.kind == "misgrok"
    assert "solved" in found.reason


def test_a_rise_that_ends_on_the_floor_is_a_mirage_even_past_the_level():
    t = grid()
    train, test = 1 - rise(t, 100, low=0.0), 1 - rise(t, 3e4, low=0.0, high=0.8)
    assert grokking(t, train, test, 0.25, error=True).kind == "grok"
    found = grokking(t, train, test, 0.25, floor=0.2, error=True)
    assert found.kind == "mirage"
    assert "floor 0.2" in found.reason
    # control: a floor that the curve leaves behind explains nothing
    assert grokking(t, train, test, 0.25, floor=0.24, error=True).kind == "grok"
    assert grokking(t, train, test, 0.25, floor=0.0, error=True).kind == "grok"


def test_a_rise_that_only_follows_the_norm_is_a_mirage():
    t = grid()
    train = 1 - rise(t, 100, low=0.0)
    norm = 0.02 + 10 / (1 + (t / 3e4) ** 4)
    test = 0.1 * norm
    assert grokking(t, train, test, 0.05, error=True).kind == "grok"
    found = grokking(t, train, test, 0.05, norm=norm, error=True)
    assert found.kind == "mirage"
    assert "norm" in found.reason
    # controls: a norm that stays, one that falls at another time, an error that falls further
    for other in (np.ones(301), 0.02 + 10 / (1 + (t / 1e3) ** 4), norm**0.25):
        assert grokking(t, train, test, 0.05, norm=other, error=True).kind == "grok"


def test_grokking_without_understanding_from_ridge_descent():
    """N theorem 3.6: l2 decay makes the error fall late, down to the part no sample sees."""
    rng = np.random.default_rng(0)
    n, samples, step, decay = 100, 30, 0.1, 1e-5
    X = rng.standard_normal((samples, n)) / math.sqrt(samples)
    truth = np.zeros(n)
    truth[:5] = 1 / math.sqrt(5)
    start = rng.standard_normal(n)
    start *= 10 / np.linalg.norm(start)
    values, basis = np.linalg.eigh(X.T @ X)
    steps = np.unique(np.round(np.logspace(0, 7.5, 400)))
    # gradient descent on |Xa - y|^2 / 2 + decay |a|^2 / 2, one geometric series per direction
    ridge = basis.T @ np.linalg.solve(X.T @ X + decay * np.eye(n), X.T @ X @ truth)
    shrink = (1 - step * (values + decay)) ** steps[:, None]
    path = (ridge + shrink * (basis.T @ start - ridge)) @ basis.T
    test = ((path - truth) ** 2).sum(1)
    train = ((path @ X.T - X @ truth) ** 2).mean(1)
    unseen = truth - np.linalg.pinv(X) @ X @ truth
    found = grokking(steps, train, test, 0.01, floor=float(unseen @ unseen), error=True)
    assert found.kind == "mirage"
    assert "floor" in found.reason
    # |a|^2 decays as exp(-2 step decay steps), so it is half done at log 2 / 2 of that
    assert found.jump == pytest.approx(math.log(2) / 2 / (step * decay), rel=0.03)
    assert found.final == pytest.approx(float(unseen @ unseen), rel=0.01)


cases = st.tuples(
    st.floats(1.2, 2.5),  # log10 t1
    st.floats(0.8, 2.5),  # decades from t1 to t2
    st.sampled_from([0.02, 0.05, 0.1]),
    st.sampled_from([0.65, 0.8, 1.0]),
    st.sampled_from([0.0, 0.02]),
    st.integers(0, 1000),
)
often = settings(max_examples=40, deadline=None, derandomize=True)


def curves(case, t):
    first, decades, scale, high, size, seed = case
    train, test = rise(t, 10**first, 0.03), rise(t, 10 ** (first + decades), scale, high=high)
    return noisy(train, size, seed), noisy(test, size, seed + 1)


@given(cases, st.floats(1e-6, 1e6))
@often
def test_scaling_time_scales_the_times(case, factor):
    t = grid()
    train, test = curves(case, t)
    one, two = grokking(t, train, test), grokking(factor * t, train, test)
    names = ("t1", "t2", "delay", "begins", "jump", "ends")
    same(dataclasses.replace(one, **{n: factor * getattr(one, n) for n in names}), two)


FAMILIES = {
    "grok": lambda t: rise(t, 1e4, 0.05, low=0.2, high=0.8),
    "slow": lambda t: np.interp(np.log10(t), [2.5, 5.0], [0.2, 0.8]),
    "double descent": lambda t: rise(t, 50) - fall(t, 500) + rise(t, 1e4, low=0, high=0.4),
    "misgrok": lambda t: rise(t, 50) - fall(t, 1e4),
    "in progress": lambda t: rise(t, 1e6, 0.1, low=0.2),
    "none": lambda t: rise(t, 60, high=0.8),
}
families = st.sampled_from(list(FAMILIES.items()))


@given(families, st.sampled_from([0.0, 0.01]), st.integers(0, 1000), st.floats(1e-6, 1e6))
@often
def test_no_kind_depends_on_the_unit_of_time(family, size, seed, factor):
    kind, shape = family
    t = grid()
    test = noisy(shape(t), size, seed)
    one, two = (grokking(scale * t, rise(t, 50), test) for scale in (1.0, factor))
    names = ("t1", "t2", "delay", "begins", "jump", "ends")
    same(dataclasses.replace(one, **{n: factor * getattr(one, n) for n in names}), two)
    assert one.kind == kind


@given(families, st.integers(12, 150))
@often
def test_no_kind_depends_on_the_spacing_of_the_records(family, per_decade):
    kind, shape = family
    t = grid(per_decade)
    assert grokking(t, rise(t, 50), shape(t)).kind == kind


@given(families, st.sampled_from([0.0, 0.01]), st.integers(0, 1000), st.integers(1, 200))
@often
def test_records_after_the_end_of_a_plateau_change_no_kind(family, size, seed, extra):
    kind, shape = family
    assume(kind != "in progress")
    t = np.concatenate([grid(), 1e6 * np.logspace(0.02, 2, 200)[:extra]])
    test = noisy(shape(np.minimum(t, 1e6)), size, seed)
    short = grokking(t[:301], rise(t[:301], 50), test[:301])
    assert (short.kind, grokking(t, rise(t, 50), test).kind) == (kind, kind)


@given(cases)
@often
def test_errors_give_the_same_answer_as_accuracies(case):
    t = grid()
    train, test = curves(case, t)
    one, two = grokking(t, train, test), grokking(t, 1 - train, 1 - test, 0.05, error=True)
    values = {name: 1 - getattr(two, name) for name in ("plateau", "final", "ceiling")}
    same(one, dataclasses.replace(two, **values), rtol=1e-6)


@given(cases, st.integers(17, 120))
@often
def test_resampling_moves_the_times_by_less_than_the_spacing(case, per_decade):
    case = (*case[:4], 0.0, 0)
    fine, coarse = grid(200), grid(per_decade)
    one, two = grokking(fine, *curves(case, fine)), grokking(coarse, *curves(case, coarse))
    assert one.kind == two.kind == "grok"
    for name in ("t1", "t2", "jump"):
        a, b = getattr(one, name), getattr(two, name)
        assert a == b or abs(math.log10(a / b)) < 1 / per_decade


@given(cases, st.integers(1, 200))
@often
def test_a_longer_last_plateau_changes_nothing(case, extra):
    t = grid(decades=9)
    train, test = curves((*case[:4], 0.0, 0), t)
    more = np.concatenate([t, t[-1] * np.logspace(0.02, 2, 200)[:extra]])
    longer = [np.concatenate([c, np.full(extra, c[-1])]) for c in (train, test)]
    same(grokking(t, train, test), grokking(more, *longer), rtol=1e-6)


@given(cases)
@often
def test_swapped_curves_never_grok(case):
    t = grid()
    train, test = curves(case, t)
    found = grokking(t, train, test)
    assert found.kind == "grok"
    assert found.delay > 0
    assert grokking(t, test, train).kind == "none"


@given(st.integers(0, 10**6), st.floats(0.1, 0.9), st.sampled_from([0.01, 0.05, 0.2]))
@often
def test_noise_alone_is_nothing(seed, mean, size):
    t = grid()
    train, test = noisy(np.full(301, mean), size, seed), noisy(np.full(301, mean), size, seed + 1)
    assert grokking(t, train, test).kind == "none"
    assert grokking(t, rise(t, 30), test).kind == "none"


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_any_curve_gets_an_ordered_answer(rows):
    train, test = np.array(rows).T
    for t in (np.arange(len(rows)) - 1.0, np.arange(len(rows)) + 0.0, 2.0 ** np.arange(len(rows))):
        found = grokking(t, train, test, level=0.5)
        assert found.reason
        for time in (found.t1, found.t2):
            assert math.isinf(time) or t[0] <= time <= t[-1]
        if found.kind == "none":
            assert math.isnan(found.jump)
        else:
            assert found.t1 <= found.begins <= found.jump <= found.ends <= t[-1]
        if found.kind == "grok":
            assert found.delay > 0
        if found.kind == "misgrok":
            assert found.final < found.plateau


steps = st.lists(st.floats(0, 1), min_size=12, max_size=80)


@given(steps, st.sampled_from(["log", "linear"]), st.floats(0.05, 0.95))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_a_monotone_curve_passes_unchanged_and_is_solved_where_it_crosses(steps, clock, level):
    curve = np.minimum(np.cumsum(steps) / max(np.sum(steps), 1e-9), 1.0)
    curve = np.append(curve, [curve[-1], curve[-1]])  # the last record is borne out
    t = np.arange(1.0, 1 + len(curve)) if clock == "linear" else 1.3 ** np.arange(len(curve))
    smooth = smoothed(t, curve - 1)
    np.testing.assert_allclose(smooth.score, curve - 1, atol=1e-12)
    assert smooth.noise < 1e-12
    found = grokking(t, curve, curve, level)
    # by hand, linear in log t
    first = int(np.argmax(curve >= level - 1e-12))
    if curve[first] < level - 1e-12:
        assert math.isinf(found.t1)
    elif first == 0:
        assert found.t1 == t[0]
    else:
        share = (level - curve[first - 1]) / (curve[first] - curve[first - 1])
        by_hand = t[first - 1] * (t[first] / t[first - 1]) ** min(share, 1.0)
        assert found.t1 == pytest.approx(by_hand, rel=1e-6)


@given(steps)
@often
def test_the_last_record_of_a_monotone_curve_is_believed_as_far_as_it_is_borne_out(steps):
    curve = np.cumsum(steps) / max(np.sum(steps), 1e-9)
    score = smoothed(np.arange(1.0, 1 + len(curve)), curve).score
    np.testing.assert_allclose(score[:-1], curve[:-1], atol=1e-12)
    assert curve[-2] - 1e-12 <= score[-1] <= curve[-1] + 1e-12
    if curve[-1] - curve[-2] <= 2 * (curve[-2] - curve[-3]):
        assert score[-1] == pytest.approx(curve[-1], abs=1e-12)


@given(cases, st.integers(3, 400))
@often
def test_what_was_seen_stays_seen_wherever_the_record_ends(case, more):
    """A clean rise through the level is a grok from three records on, and at the same time."""
    first, decades, scale, *_ = case
    t = grid(per_decade=50, decades=7)
    train, test = curves((first, decades, scale, 1.0, 0.0, 0), t)
    after = int(np.argmax(test >= 0.95))
    whole = grokking(t, train, test)
    end = after + more
    cut = grokking(t[:end], train[:end], test[:end])
    assert (whole.kind, cut.kind) == ("grok", "grok")
    assert cut.t2 == pytest.approx(whole.t2, rel=1e-9)
    assert cut.final == pytest.approx(test[min(end, len(t)) - 1], abs=1e-9)


@given(cases, st.floats(0.01, 10.0))
@often
def test_a_best_is_a_shift_of_the_errors(case, best):
    t = grid()
    train, test = (1 - curve for curve in curves((*case[:4], 0.0, 0), t))
    one = grokking(t, train, test, 0.05, error=True)
    two = grokking(t, train, test + best, 0.05, best=best, error=True)
    values = {name: getattr(one, name) + best for name in ("plateau", "final", "ceiling")}
    shifted = dataclasses.replace(one, **values)
    same(shifted, two, rtol=1e-6)


good = {"t": [1.0, 2.0, 3.0], "train": [0.1, 0.9, 1.0], "test": [0.1, 0.2, 0.3]}


def refused(changes, sentence):
    return lambda: grokking(**{**good, **changes}), "^grokking: " + sentence


test_wrong_input_is_refused_in_one_sentence = refusals(
    refused(
        {"t": [1.0, 3.0, 2.0]}, r"t must increase, but it falls at index 2 \(3, then 2\); sort"
    ),
    refused({"t": [1.0, 2.0, 2.0]}, r"t must increase, but it repeats at index 2"),
    refused({"t": [1.0, math.nan, 2.0]}, r"t must be finite, got nan at index \(1,\)"),
    refused({"t": []}, "t must not be empty"),
    refused({"t": [1.0], "train": [1.0], "test": [1.0]}, "t must hold at least 2 times"),
    refused({"t": [[1.0, 2.0]]}, r"t must have 1 dimension\(s\)"),
    refused({"train": [0.1, 0.2]}, r"train must have one value per time \(3\), got 2"),
    refused({"test": [0.1, math.nan, 0.2]}, "test must be finite, got nan"),
    refused(
        {"test": [10.0, 50.0, 90.0]}, "test must hold accuracies between 0 and 1, got 10; pass"
    ),
    refused({"train": [-0.1, 0.5, 1.0]}, r"train must hold accuracies between 0 and 1, got -0\.1"),
    refused({"train": [-0.1, 0.5, 1.0], "error": True}, r"train must hold errors >= 0, got -0\.1"),
    refused({"level": 95}, "level must be an accuracy of at most 1, got 95"),
    refused({"level": 0.0}, "level must be > 0"),
    refused({"level": math.nan}, "level must be a finite number"),
    refused({"best": 1.2}, r"best must be an accuracy between 0 and 1, got 1\.2"),
    refused({"best": -0.1, "error": True}, r"best must be an error >= 0, got -0\.1"),
    refused({"floor": -0.1}, r"floor must be an error >= 0, got -0\.1"),
    refused({"norm": [1.0, 2.0]}, r"norm must have one value per time \(3\), got 2"),
    refused({"norm": [1.0, 0.0, 1.0]}, "norm must be > 0 at every time, got 0"),
    refused({"norm": [1.0, math.inf, 1.0]}, "norm must be finite"),
)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(steps=st.lists(st.floats(1e-3, 1.0), min_size=3, max_size=20), place=st.floats(0.01, 0.99))
def test_crossings_of_a_rising_curve(steps, place):
    y, x = np.cumsum(steps), np.linspace(0.0, 1.0, len(steps)) ** 2
    level = y[0] + place * (y[-1] - y[0])
    assert level_crossing(x, y, level) == pytest.approx(np.interp(level, y, x))
    again = np.concatenate([y, y])  # the first of two crossings counts
    assert level_crossing(np.arange(len(again)), again, level) < len(y)


def test_there_is_none_outside():
    x, y = np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.5, 1.0])
    assert level_crossing(x, y, 0.75) == pytest.approx(1.5)
    for level in (1.5, -1.0, 0.0):  # never reached, and reached before the first record
        assert np.isnan(level_crossing(x, y, level))


@pytest.mark.parametrize("place", [0.03, 0.1])
def test_a_known_curve_is_crossed_where_its_formula_says(place):
    x = np.linspace(-4, 2, 400)
    rising = 1 / (1 + (place / 10**x) ** 2)
    # y / (1 - y) = (10^x / place)^2
    for level in (0.1, 0.5, 0.9):
        known = np.log10(place) + 0.5 * np.log10(level / (1 - level))
        assert level_crossing(x, rising, level) == pytest.approx(known, abs=1e-3)
        assert level_crossing(x, -rising, -level) == pytest.approx(known, abs=1e-3)
    assert np.isnan(level_crossing(x, rising, 2.0))  # never
    assert np.isnan(level_crossing(x[300:], rising[300:], 0.1))  # from the beginning


def test_lines_are_cut_exactly_and_the_first_cut_counts():
    assert level_crossing([0, 10], [2.5, 1.5], 2.0) == pytest.approx(5.0)
    assert level_crossing([0, 1, 2, 3], [0, 1, 0, 1], 0.25) == pytest.approx(0.25)
    assert level_crossing([0, 1, 2], [0, 1, 2], 1.0) == pytest.approx(1.0)
