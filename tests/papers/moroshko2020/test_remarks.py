"""The remarks of the text: verdicts, wrong theories, and two of them by a second route."""

import numpy as np
import pytest

import tacit
from tacit.papers.moroshko2020 import equal_layers, separating, squared_loss
from tacit.papers.moroshko2020.nets import SquareMinusProduct
from tacit.problems.classification import separable_points

EXPECTED = {
    "M-squared": "holds",
    "M-layers": "holds",
    "M-l1": "holds",
    "M-area": "holds as corrected",
}


@pytest.mark.parametrize("id", EXPECTED)
def test_the_verdict(id, verdict_of):
    verdict = verdict_of(id)
    assert verdict.status == EXPECTED[id], str(verdict)
    assert not verdict.evidence.arithmetic


WRONG = {
    "a twin of another start": ("M-squared", {"off": 1.01}),
    "layers that do not start equal": ("M-layers", {"unequal": 1e-9}),
}


@pytest.mark.parametrize("theory", WRONG)
def test_a_wrong_theory_is_refuted(theory, verdict_with):
    id, arguments = WRONG[theory]
    assert verdict_with(id, **arguments).status == "fails"


def test_descent_on_separate_layers_by_automatic_differentiation():
    jax = pytest.importorskip("jax")
    Z = separable_points(5, 4, margin=0.3, seed=0).signed_rows
    u = np.random.default_rng(1).uniform(0.5, 1.5, (3, 8))

    def loss(layers):
        product = layers.prod(axis=0)
        return jax.numpy.exp(-Z @ (product[:4] - product[4:])).mean()

    pull = np.asarray(jax.grad(loss)(jax.numpy.asarray(u)))
    rate = 1e-6
    layers, _ = equal_layers.descend(Z, u, rate, equal_layers.EVERY)
    moved = (layers[-1] - layers[0]) / (rate * equal_layers.EVERY)
    np.testing.assert_allclose(moved, -pull, atol=1e-3)
    assert np.abs(pull).max() > 0.1


def test_the_end_with_squared_loss_is_the_least_norm_of_the_features():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4, 6)), rng.normal(size=4)
    net = SquareMinusProduct(8.0)
    twin, misfit = squared_loss.followed(net, X, y, squared_loss.times_of(net, X), linear=True)
    assert misfit < 1e-8
    np.testing.assert_allclose(twin[-1], np.linalg.pinv(X) @ y, atol=1e-8)
    real, _ = squared_loss.followed(net, X, y, squared_loss.times_of(net, X), linear=False)
    assert 1e-6 < np.abs(real[-1] - twin[-1]).max() < 0.1


def test_a_trajectory_outside_the_separating_directions_by_another_flow(data_of):
    """The counterexample of the verdict, trained in the parameters."""
    dataset = data_of("M-area")[0].drop_sel(points=separating.PANELS)
    where = np.unravel_index(dataset.least.values.argmin(), dataset.least.shape)
    row = dataset.isel(points=where[0], alpha=where[1])
    problem = separable_points(5, 4, margin=0.1, seed=int(str(row.points.values).split()[1]))
    place = int(row.smallest.values.argmin())
    path = tacit.train(
        tacit.DiagonalNet(2, alpha=float(row.alpha)),
        problem,
        tacit.ParameterFlow(),
        stop=tacit.LogLoss(-float(row.margin[max(place, 1)])),
    )
    beta = path.predictor
    smallest = (problem.signed_rows @ beta).min() / np.linalg.norm(beta)
    assert smallest == pytest.approx(float(row.smallest[max(place, 1)]), abs=1e-3)
    assert smallest < 0
