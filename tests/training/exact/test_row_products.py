"""Single precision inside a flow: as accurate as its tolerance, and used only where it is safe."""

import numpy as np
import pytest

import tacit
from tacit.training.exact.decay import dual as row_products
from tacit.training.exact.decay.follow import RowProducts

RNG = np.random.default_rng(0)
TIMES = [10.0, 100.0, 1000.0, 2000.0, 3000.0, 4000.0]


@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e60])
def test_products_in_single_precision_are_accurate_to_1e_6(scale, monkeypatch):
    rows = RNG.choice([-1.0, 1.0], size=(30, 20000))
    x, beta = scale * RNG.normal(size=30), scale * RNG.normal(size=20000)
    weights = np.abs(beta)
    double, near = RowProducts(rows), RowProducts(rows, 1e-5)
    assert double.single is None
    assert near.single is None  # control: the table is small
    monkeypatch.setattr(row_products, "LARGE", 0)
    assert RowProducts(rows, 1e-7).single is None  # control: the tolerance is too fine
    near = RowProducts(rows, 1e-5)
    assert near.single is not None
    for name, given, size in (
        ("pull", x, np.linalg.norm(x)),
        ("outputs", beta, np.linalg.norm(beta)),
        ("gram", weights, weights.sum()),
    ):
        exact, found = getattr(double, name)(given), getattr(near, name)(given)
        assert found.dtype == np.float64
        assert 0 < np.abs(found - exact).max() < 1e-6 * size, name


def path(rtol):
    problem = tacit.majority(60, 1500)
    net = tacit.DiagonalNet(depth=2, alpha=48 / np.sqrt(3000))
    return tacit.train(
        net, problem, tacit.DualFlow(rtol=rtol, weight_decay=0.001), record=tacit.At(times=TIMES)
    )


def test_a_path_in_single_precision_is_as_near_as_one_in_double(monkeypatch):
    exact, double = path(1e-9), path(1e-4)
    monkeypatch.setattr(row_products, "LARGE", 0)
    made = []
    monkeypatch.setattr(
        "tacit.training.exact.decay.follow.RowProducts",
        lambda rows, rtol: made.append(RowProducts(rows, rtol)) or made[-1],
    )
    single = path(1e-4)
    assert made[0].single is not None

    def error(found):
        apart = np.linalg.norm(found.dataset.predictor - exact.dataset.predictor, axis=1)
        accuracy = np.abs(found.dataset.test_accuracy - exact.dataset.test_accuracy).max()
        size = np.linalg.norm(exact.dataset.predictor, axis=1)
        return float((apart[1:] / size[1:]).max()), float(accuracy)

    assert np.ptp(exact.dataset.test_accuracy.values[1:]) > 0.1  # the curve moves
    assert max(error(double)) < 1e-4
    assert max(error(single)) < 1e-4  # the tolerance that was asked for
    assert error(single)[0] < 2 * error(double)[0]
