"""Exponents in the width: three parametrizations of one net, and the fit of a power."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penchant.watch import widths
from penchant.watch.widths import Exponent, fit_exponent, judge_limit

torch = pytest.importorskip("torch")
nn = torch.nn
SIZES = (32, 64, 128, 256)


class Scaled(nn.Module):
    """Three layers with Gaussian weights of given deviations, and factors of their outputs."""

    def __init__(self, width, deviations, factors):
        super().__init__()
        shapes = (width, 6), (width, width), (2, width)
        self.layers = nn.ModuleList(nn.Linear(b, a, bias=False) for a, b in shapes)
        self.factors = factors
        with torch.no_grad():
            for layer, deviation in zip(self.layers, deviations, strict=True):
                layer.weight.normal_(0, deviation)

    def forward(self, x):
        for number, (layer, factor) in enumerate(zip(self.layers, self.factors, strict=True)):
            x = factor * layer(x)
            x = torch.tanh(x) if number < 2 else x
        return x


def groups(model, rates):
    pairs = zip(model.layers, rates, strict=True)
    return torch.optim.SGD([{"params": [layer.weight], "lr": rate} for layer, rate in pairs], lr=1)


def standard(n):
    return Scaled(n, (6**-0.5, n**-0.5, n**-0.5), (1, 1, 1))


def tangent(n):
    return Scaled(n, (1, 1, 1), (6**-0.5, n**-0.5, n**-0.5))


def maximal(n):
    return Scaled(n, (6**-0.5, n**-0.5, 1 / n), (1, 1, 1))


# rates of Yang et al. 2022, table 3, for SGD: input ~ width, hidden ~ 1, output ~ 1 / width
CASES = {
    "standard": (standard, lambda model, n: groups(model, [0.02] * 3)),
    "NTK": (tangent, lambda model, n: groups(model, [0.3] * 3)),
    "muP": (maximal, lambda model, n: groups(model, [0.02 * n, 0.5, 8 / n])),
    "NTK, by rates": (standard, lambda model, n: groups(model, [0.3, 0.3 * 8 / n, 0.3 * 8 / n])),
}


@pytest.fixture(scope="module")
def batch():
    random = torch.Generator().manual_seed(1)
    x = torch.randn(16, 6, generator=random)
    return x, torch.stack([torch.sin(2 * x[:, 0]), x[:, 1] * x[:, 2]], dim=1)


@pytest.mark.parametrize(
    "name", [*list(CASES)[:3], pytest.param("NTK, by rates", marks=pytest.mark.slow)]
)
def test_three_parametrizations_of_one_net_are_told_apart(name, batch):
    x, y = batch
    build, optimizer = CASES[name]
    seen = widths(build, SIZES, x, optimizer, labels=y, seeds=8)
    limit = name.partition(",")[0]
    assert seen.limit == limit, seen
    others = {"muP", "NTK", "standard"} - {limit}
    assert set(seen.excluded) == others
    assert limit in repr(seen)
    if name == "standard":  # the start is known in closed form
        assert seen.exponents["weight layers.1.weight"].value == pytest.approx(-0.5, abs=0.03)
        assert seen.exponents["weight layers.0.weight"].value == pytest.approx(0, abs=0.05)
        assert seen.exponents["kernel"].value == pytest.approx(1, abs=0.15)
    if name == "NTK":
        assert seen.exponents["kernel"].value == pytest.approx(0, abs=0.15)
        assert seen.exponents["kernel change"].high < -0.2


def test_the_run_leaves_the_random_state_alone(batch):
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    widths(standard, (4, 8, 16), batch[0], CASES["standard"][1], labels=batch[1], seeds=2, steps=1)
    assert torch.equal(before, torch.random.get_rng_state())


@given(st.floats(-2, 2), st.floats(1e-3, 1e3))
def test_an_exact_power_is_found(power, factor):
    values = np.array([[factor * n**power] * 2 for n in SIZES])
    seen = fit_exponent(SIZES, values)
    assert seen.value == pytest.approx(power, abs=1e-9)
    assert seen.high - seen.low < 1e-6


def test_the_interval_holds_the_power_as_often_as_it_says():
    rng, held = np.random.default_rng(0), 0
    for _ in range(400):
        noise = np.exp(0.3 * rng.standard_normal((4, 3)))
        seen = fit_exponent(SIZES, noise * np.array(SIZES)[:, None] ** -0.5)
        held += seen.low <= -0.5 <= seen.high
    assert 0.92 <= held / 400 <= 0.98  # 95%, three standard errors


def test_numbers_that_are_zero_or_lost_have_no_exponent():
    values = np.array([[1.0, 2.0], [math.nan, 0.0], [1.0, 2.0], [0.0, math.inf]])
    assert math.isnan(fit_exponent(SIZES, values).value)


def test_intervals_that_cross_a_border_decide_nothing():
    wide, flat = Exponent(-0.2, -0.5, 0.1), Exponent(0, -0.1, 0.1)
    assert judge_limit(wide, flat) == ("unknown", ("standard",))
    assert judge_limit(flat, flat) == ("muP", ("NTK", "standard"))
    assert judge_limit(Exponent(-0.5, -0.6, -0.4), flat) == ("NTK", ("muP", "standard"))
    assert judge_limit(flat, Exponent(-1, -1.1, -0.9))[0] == "unknown"  # outputs that stand still
    assert judge_limit(Exponent(math.nan, math.nan, math.nan), flat) == ("unknown", ())


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"sizes": (8, 16)}, "sizes must hold 3 widths or more"),
        ({"sizes": (8, 16, 0)}, "sizes"),
        ({"build": 3}, "build must be a function"),
        ({"seeds": 1}, "seeds"),
        ({"labels": None}, "need a loss"),
    ],
)
def test_wrong_arguments_are_refused(change, rule, batch):
    given = {"build": standard, "sizes": (8, 16, 32), "inputs": batch[0],
             "optimizer": CASES["standard"][1], "labels": batch[1]} | change  # fmt: skip
    with pytest.raises(ValueError, match=rule) as seen:
        widths(**given)
    assert str(seen.value).startswith("widths: ")
