"""The effective scale and tilt of gradient steps: the least Q of both is where they stand."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import penchant

RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 20)) / np.sqrt(8)
PROBLEM = penchant.Regression(X, X[:, :3] @ np.array([1.0, -1.0, 0.5]))
EVEN = penchant.DiagonalNet(2, alpha=0.1)
BIASED = penchant.DiagonalNet(
    2, start=(0.1 * np.exp(0.3 * RNG.standard_normal(20)), np.full(20, 0.1))
)
RUNS = {
    "full batch": (EVEN, penchant.GradientDescent(0.03), None, 4000),
    "biased start": (BIASED, penchant.GradientDescent(0.03), None, 4000),
    "one sample": (BIASED, penchant.GradientDescent(0.01), 1, 8000),
    "decay, not fitted": (BIASED, penchant.GradientDescent(0.02, weight_decay=0.05), 3, 3000),
    "scaled rates": (BIASED, penchant.GradientDescent(0.03, scaled=0.1), None, 3000),
    "momentum": (EVEN, penchant.GradientDescent(0.003, momentum=0.9), None, 3000),
    "Nesterov": (BIASED, penchant.GradientDescent(0.003, momentum=0.9, nesterov=True), 1, 3000),
    "momentum and decay": (
        BIASED,
        penchant.GradientDescent(0.003, momentum=0.8, weight_decay=0.05),
        1,
        3000,
    ),
    "depth 3": (penchant.DiagonalNet(3, alpha=0.3), penchant.GradientDescent(0.03), None, 2000),
    "depth 4, decay": (
        penchant.DiagonalNet(4, alpha=0.5),
        penchant.GradientDescent(0.01, momentum=0.5, weight_decay=0.05),
        1,
        3000,
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_run_stands_at_the_least_q_of_its_scale_and_tilt(name):
    net, method, batch, steps = RUNS[name]
    stop = penchant.Steps(steps)
    path = penchant.train(
        net, PROBLEM, penchant.methods.EffectiveScale(method), batch=batch, stop=stop
    )
    plain = penchant.train(net, PROBLEM, method, batch=batch, stop=stop)
    np.testing.assert_array_equal(path.predictor, plain.predictor)
    own = penchant.Regression(X, X @ path.predictor)
    found = penchant.interpolate(own, penchant.forecasts.effective_regularizer(path)).beta
    np.testing.assert_allclose(found, path.predictor, atol=1e-11)
    q = penchant.forecasts.effective_regularizer(path)
    without = penchant.interpolate(own, penchant.Q(net.depth, alpha=1.0, shape=q.shape)).beta
    assert np.abs(without - path.predictor).max() > 1e-4  # the tilt is needed
    start = penchant.interpolate(own, penchant.Q(net.depth, alpha=net.alpha or 0.1)).beta
    assert np.abs(start - path.predictor).max() > 1e-3  # and so is the scale


def test_a_step_that_changes_the_sign_of_a_weight_keeps_the_law():
    problem = penchant.Regression([[1.0, 0.5]], [1.0])
    net = penchant.DiagonalNet(2, start=([2.0, 0.3], [0.2, 0.1]))
    method = penchant.methods.EffectiveScale(penchant.GradientDescent(0.1, check=False))
    path = penchant.train(net, problem, method, stop=penchant.Steps(1))
    assert path.parameters[0] < 0 < net.start(2)[0]
    assert "weight of coordinate 0 changed its sign at step 0" in path.outcome.sentence
    small = penchant.methods.EffectiveScale(penchant.GradientDescent(0.01))
    assert (
        "its sign"
        not in penchant.train(net, problem, small, stop=penchant.Steps(9)).outcome.sentence
    )
    own = penchant.Regression(problem.X, problem.X @ path.predictor)
    np.testing.assert_allclose(
        penchant.interpolate(own, penchant.forecasts.effective_regularizer(path)).beta,
        path.predictor,
        atol=1e-12,
    )


def test_a_long_run_loses_nothing_to_rounding():
    """A plain sum of the gradients is off by 4e-12 after so many steps, most of them at rest."""
    problem = penchant.problems.sparse_regression(8, 20, sparsity=2, noise=0.1)
    method, stop = (
        penchant.methods.EffectiveScale(penchant.GradientDescent(0.005)),
        penchant.Steps(1_000_000),
    )
    path = penchant.train(EVEN, problem, method, batch=1, stop=stop)
    found = penchant.interpolate(problem, penchant.forecasts.effective_regularizer(path)).beta
    np.testing.assert_allclose(found, path.predictor, atol=2e-13)


def test_a_run_that_is_resumed_has_the_same_tilt_to_the_bit():
    method = penchant.methods.EffectiveScale(penchant.GradientDescent(0.01))
    whole = penchant.train(EVEN, PROBLEM, method, batch=1, stop=penchant.Steps(300))
    half = penchant.train(EVEN, PROBLEM, method, batch=1, stop=penchant.Steps(140))
    rest = penchant.train(EVEN, PROBLEM, method, batch=1, stop=penchant.Steps(300), resume=half)
    np.testing.assert_array_equal(rest.memory[-1], whole.memory[-1])


@pytest.mark.parametrize("loss", ["logistic", "exp"])
def test_labels_have_the_same_law(loss):
    problem = penchant.Classification(X, np.where(RNG.random(8) < 0.5, -1.0, 1.0), loss=loss)
    method, stop = (
        penchant.methods.EffectiveScale(penchant.GradientDescent(0.3)),
        penchant.Steps(500),
    )
    path = penchant.train(BIASED, problem, method, batch=2, stop=stop)
    q = penchant.forecasts.effective_regularizer(path)
    found = penchant.interpolate(X, X @ path.predictor, q).beta
    np.testing.assert_allclose(found, path.predictor, atol=1e-12)
    start = penchant.interpolate(X, X @ found, penchant.Q(2, alpha=0.1)).beta
    assert np.abs(start - path.predictor).max() > 1e-3


def test_the_tilt_of_momentum_is_a_sum_over_its_steps():
    """For factors f = w_(k+1)/w_k a step is f_k - 1 = m (1 - 1/f_(k-1)) -+ 2 rate g, so that
    (1 - m) sum log f_k is -+ 2 rate sum g less the sums below, of which the tilt is made."""
    rate, m, steps = 0.003, 0.9, 200
    method = penchant.methods.EffectiveScale(penchant.GradientDescent(rate, momentum=m))
    path = penchant.train(EVEN, PROBLEM, method, stop=penchant.Steps(steps))
    w, velocity, lost = EVEN.start(20).reshape(2, -1), 0.0, 0.0
    for _ in range(steps):
        g = 2 * X.T @ (X @ (w[0] ** 2 - w[1] ** 2) - PROBLEM.y)
        velocity = m * velocity + np.stack([2 * g * w[0], -2 * g * w[1]])
        f = 1 - rate * velocity / w
        grown = np.log(np.abs(f))
        lost = lost + (f - 1 - grown) + m * (grown - 1 + 1 / f)
        w = f * w
    plus, minus = (lost + m * (1 - 1 / f)) / (1 - m)
    q = penchant.forecasts.effective_regularizer(path)
    np.testing.assert_allclose(q.tilt, minus - plus, atol=1e-11)
    np.testing.assert_allclose(q.shape, np.sqrt(np.abs(w[0] * w[1])), rtol=1e-12)


def test_a_map_of_ones_own_has_an_effective_start():
    method, stop = (
        penchant.methods.EffectiveScale(penchant.GradientDescent(0.01)),
        penchant.Steps(1000),
    )
    cubic = penchant.models.Reparametrized(lambda w: w**3, start=0.3)
    ends = {}
    for net, model in ((penchant.DiagonalNet(3, alpha=0.3), None), (cubic, cubic)):
        path = penchant.train(net, PROBLEM, method, batch=1, stop=stop)
        own = penchant.Regression(X, X @ path.predictor)
        ends[model] = penchant.interpolate(
            own, penchant.forecasts.effective_regularizer(path, model)
        ).beta
        np.testing.assert_allclose(ends[model], path.predictor, atol=1e-11)
    np.testing.assert_allclose(ends[None], ends[cubic], atol=1e-11)


@pytest.mark.parametrize("signed", [True, False])
def test_maps_of_several_parameters_and_without_a_pair(signed):
    model = penchant.models.Reparametrized(
        lambda u, v: u * jnp.sinh(v), ((0.5, 0.3), (0.2, 0.3)), True
    )
    if not signed:
        model = penchant.models.Reparametrized(lambda u, v: u * jnp.sinh(v), (0.5, 0.3))
    method, stop = (
        penchant.methods.EffectiveScale(penchant.GradientDescent(0.01)),
        penchant.Steps(1000),
    )
    path = penchant.train(model, PROBLEM, method, batch=1, stop=stop)
    own = penchant.Regression(X, X @ path.predictor)
    found = penchant.interpolate(own, penchant.forecasts.effective_regularizer(path, model)).beta
    np.testing.assert_allclose(found, path.predictor, atol=1e-10)
    start = penchant.interpolate(own, penchant.derive(model.map, (0.5, 0.3), signed)).beta
    assert np.abs(start - path.predictor).max() > 1e-3


def test_a_flow_has_the_start_it_began_from():
    """Without steps nothing is made of the start: shrinking them leads back to its scale."""
    shapes = []
    for rate in (1e-3, 1e-4):
        method, stop = (
            penchant.methods.EffectiveScale(penchant.GradientDescent(rate)),
            penchant.Steps(int(2 / rate)),
        )
        path = penchant.train(penchant.DiagonalNet(3, alpha=0.3), PROBLEM, method, stop=stop)
        q = penchant.forecasts.effective_regularizer(path)
        shapes.append(np.abs(np.stack([q.shape - 0.3, q.tilt])).max())
    assert 9 < shapes[0] / shapes[1] < 11


def test_what_has_no_effective_scale_is_refused():
    with pytest.raises(ValueError, match=r"GradientDescent, .* got Adam"):
        penchant.methods.EffectiveScale(penchant.Adam(0.01))
    method, stop = (
        penchant.methods.EffectiveScale(penchant.GradientDescent(0.01)),
        penchant.Steps(2),
    )
    with pytest.raises(ValueError, match="signed DiagonalNet or a Reparametrized model"):
        penchant.train(penchant.DiagonalNet(2, alpha=0.1, signed=False), PROBLEM, method, stop=stop)
    model = penchant.models.Reparametrized(lambda w: w**3, start=0.3)
    mapped = penchant.train(model, PROBLEM, method, stop=stop)
    with pytest.raises(ValueError, match="give the model that was trained"):
        penchant.forecasts.effective_regularizer(mapped)
    wild = penchant.methods.EffectiveScale(penchant.GradientDescent(0.3))
    flipped = penchant.train(
        penchant.DiagonalNet(3, alpha=0.9), PROBLEM, wild, stop=penchant.Steps(1)
    )
    with pytest.raises(ValueError, match="changed the sign of a weight of coordinate"):
        penchant.forecasts.effective_regularizer(flipped)
    with pytest.raises(ValueError, match="takes no penalty"):
        penchant.train(EVEN, PROBLEM, method, stop=stop, penalty=0.1 * penchant.L2())
    plain = penchant.train(EVEN, PROBLEM, penchant.GradientDescent(0.01), stop=stop)
    with pytest.raises(ValueError, match=r"the path must be one of EffectiveScale\(method\)"):
        penchant.interpolate(PROBLEM, penchant.forecasts.effective_regularizer(plain))
    assert eval(repr(method), vars(penchant) | vars(penchant.methods)) == method


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_scale_and_tilt_are_the_sums_of_the_law(decay):
    """Summed in NumPy from gradients alone, by the law of one step; no parameter is looked at."""
    rate, steps = 0.01, 400
    method = penchant.methods.EffectiveScale(penchant.GradientDescent(rate, weight_decay=decay))
    path = penchant.train(EVEN, PROBLEM, method, stop=penchant.Steps(steps))
    log_scale, log_ratio, tilt = np.full(20, 2 * np.log(0.1)), np.zeros(20), np.zeros(20)
    for _ in range(steps):
        beta = 2 * np.exp(log_scale) * np.sinh(log_ratio)
        g = 2 * X.T @ (X @ beta - PROBLEM.y)
        q = 2 * rate * g / (1 - rate * decay)
        log_scale = log_scale + 2 * np.log(1 - rate * decay) + np.log1p(-q * q)
        log_ratio = log_ratio - 2 * np.arctanh(q)
        tilt = tilt - 2 * (np.arctanh(q) - q)
    found = penchant.forecasts.effective_regularizer(path)
    np.testing.assert_allclose(found.shape, np.exp(log_scale / 2), rtol=1e-11)
    np.testing.assert_allclose(found.tilt, tilt, atol=1e-11)
    assert np.abs(tilt).max() > 1e-6  # the control: without a tilt
    assert np.abs(found.shape / 0.1 - 1).max() > 1e-3  # and with the scale of the start
