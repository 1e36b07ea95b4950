"""The rescaling argument: a wrong minimum, a wrong power or another activation would be caught."""

import numpy as np
import pytest

from figure_checks import assert_can_be_read
from penchant.lab.evidence.evidence import judge
from penchant_papers.notsawo2025 import rescaling


@pytest.mark.parametrize("wrong", ["a", "b", "degree", "best_scale", "least", "squared_norm"])
def test_a_wrong_number_is_caught(data_of, wrong):
    (dataset,) = data_of("N-LU")
    changed = dataset.assign({wrong: 1.01 * dataset[wrong]})
    assert judge(rescaling.check(changed))[0] == "fails"


def test_a_net_that_is_not_homogeneous_is_caught(data_of, monkeypatch):
    (dataset,) = data_of("N-LU")
    monkeypatch.setitem(rescaling.ACTIVATIONS, "relu", (1.0, np.tanh))
    cell = rescaling.cell("relu", 0, seed=0, inputs=4, hidden=7, outputs=3)
    dataset = dataset.copy(deep=True)
    dataset.change.loc[{"activation": "relu", "net": 0}] = cell["change"]
    assert judge(rescaling.check(dataset))[0] == "fails"


def test_a_norm_that_rises_twice_is_caught(data_of):
    (dataset,) = data_of("N-LU")
    assert rescaling.falls_and_rises(dataset).all()
    wavy = dataset.copy(deep=True)
    wavy.squared_norm[0, 0, 10] = 0.0
    assert not rescaling.falls_and_rises(wavy)[0]


def test_the_picture_can_be_read(data_of):
    assert_can_be_read(rescaling.experiment.picture(data_of("N-LU")))


def test_the_outputs_against_a_sum_over_units():
    A, B, x = np.array([[1.0, -1.0], [2.0, 0.5]]), np.array([[3.0, -1.0]]), np.array([[2.0, 1.0]])
    net = rescaling.Net(A, B, 2.0, lambda z: np.maximum(z, 0) ** 2)
    # A x = (1, 4.5): 3 * 1 - 4.5^2
    assert net.outputs(x, 1.0, 2.0) == pytest.approx(np.array([[-17.25]]))
    assert net.outputs(-x, 3.0, 2.0) == pytest.approx(np.array([[0.0]]))
    assert net.squared_norm(2.0) == pytest.approx(4 * 6.25 + 10 / 16)
