"""L-relu and L-units: wrong runs are caught, and the gradients by a second route."""

import numpy as np
import pytest

from penchant.lab.evidence.evidence import judge
from penchant_papers.lyu2023 import quadratic_units, relu_nets


@pytest.mark.parametrize("wrong", ["own", "after"])
def test_a_distance_that_does_not_fall_is_caught(data_of, wrong):
    (dataset,) = data_of("L-relu")
    first = dataset[wrong].isel(log_alpha=0, drop=True)
    changed = dataset.assign({wrong: dataset[wrong] * 0 + first})
    assert judge(relu_nets.check(changed))[0] == "fails"


def test_features_and_slope_of_relu_nets_against_differences():
    nets, new, start, _ = relu_nets.drawn_nets(2, 5, seed=4)
    assert np.abs(nets.outputs(start, new)).max() < 1e-12
    rng = np.random.default_rng(1)
    theta = start + 0.3 * rng.normal(size=start.shape)
    move, eps = rng.normal(size=theta.shape), 1e-6

    def loss(at):
        return np.logaddexp(0, -nets.y * nets.outputs(at, nets.X)).sum(axis=1)

    change = (loss(theta + eps * move) - loss(theta - eps * move)) / (2 * eps)
    np.testing.assert_allclose(np.sum(nets.slope(theta) * move, axis=(1, 2)), change, atol=1e-6)
    moved = nets.outputs(theta + eps * move, new) - nets.outputs(theta - eps * move, new)
    along = np.einsum("knp,kp->kn", nets.features(theta, new), move.reshape(2, -1))
    np.testing.assert_allclose(along, moved / (2 * eps), atol=1e-5)


@pytest.mark.parametrize("wrong", ["to_kernel", "to_nuclear"])
def test_another_matrix_is_caught(data_of, wrong):
    dataset, links = data_of("L-units")
    changed = dataset.assign({wrong: dataset[wrong] + 0.2})
    assert judge(quadratic_units.check(changed, links))[0] == "fails"


def test_units_compute_the_quadratic_form():
    rng = np.random.default_rng(0)
    U, V, X = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), rng.normal(size=(5, 3))
    outputs = quadratic_units.units(np.concatenate([U, V]).ravel(), X)
    form = [x @ (U @ U.T - V @ V.T) @ x for x in X]
    np.testing.assert_allclose(outputs, form, rtol=1e-12)
