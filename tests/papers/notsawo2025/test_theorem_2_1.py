"""Theorem 2.1: that a wrong least value or a wrong law of the delay would be caught."""

import numpy as np
import pytest
from scipy.optimize import minimize

from penchant.lab import double_precision
from penchant.lab.evidence.evidence import judge
from penchant_papers.notsawo2025 import theorem_2_1


def test_a_wrong_least_value_of_the_objective_is_caught(data_of, monkeypatch):
    dataset, *others = data_of("N-T21")
    right = theorem_2_1.radial
    monkeypatch.setattr(theorem_2_1, "radial", lambda weight, beta: 0.99 * right(weight, beta))
    place = {"example": "circle, weighted l1", "beta": 1e-3}
    found, wrong = theorem_2_1.cell(**place, step=0.1), dataset.copy(deep=True)
    assert found["h"] == float(dataset.h.sel(place))
    wrong.f.loc[place] = found["f"]
    assert judge(theorem_2_1.check(wrong, *others))[0] == "fails"


def test_a_delay_with_another_exponent_is_caught(data_of):
    dataset, *others = data_of("N-T21")
    wrong = dataset.assign(delay=dataset.delay * dataset.beta**0.1)
    assert judge(theorem_2_1.check(wrong, *others))[0] == "fails"


def test_the_run_against_a_loop_by_hand():
    x, points = np.zeros(2), []
    for _ in range(300):
        x = x - 0.1 * ((x[0] + 2 * x[1] - 2) * np.array([1.0, 2.0]) + 1e-2 * np.sign(x))
        points.append(x)
    found, g, h = theorem_2_1.descend("line, l1", 0.1, 1e-2, np.array([1, 30, 300]))
    picked = np.array(points)[[0, 29, 299]]
    np.testing.assert_allclose(found, picked, rtol=1e-12)
    np.testing.assert_allclose(h, np.abs(picked).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(g, 0.5 * (picked @ [1.0, 2.0] - 2) ** 2, rtol=1e-8)


@pytest.fixture
def exact():
    with double_precision():
        yield


def test_the_least_values_of_the_objectives_are_least(exact):
    for name, case in theorem_2_1.examples().items():
        for beta in (1e-2, 1e-3):
            best = minimize(
                lambda x, c=case, b=beta: float(c.g(x) + b * c.h(x)),
                [0.9, 0.9],
                method="Nelder-Mead",
                options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000},
            )
            assert case.f_star(beta) <= best.fun + 1e-7
            assert best.fun - case.f_star(beta) < 0.01 * beta, name


def test_the_chi_of_the_start_is_not_that_of_the_ball(data_of):
    """On the circle chi = 8 |x|^2 falls on the way, by hand 2 sqrt(g/chi) at (0.9, 0.8)."""
    circle = data_of("N-T21")[2].sel(example="circle, weighted l1")
    square = 0.9**2 + 0.8**2
    by_hand = 2 * np.sqrt(0.5 * (square - 1) ** 2 / (8 * square))
    assert float(circle.with_first_chi) == pytest.approx(by_hand, rel=1e-6)
    assert by_hand < np.sqrt(square) - 1 <= float(circle.zero_within)
