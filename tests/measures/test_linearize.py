"""Models to first order, trained or followed in closed form, against each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import penchant


def network(w, x):
    return jnp.tanh(x @ w["inner"] + w["shift"]) @ w["outer"]


@pytest.fixture
def case():
    random = np.random.default_rng(0)
    w = {
        "inner": random.standard_normal((3, 8)),
        "shift": random.standard_normal(8),
        "outer": random.standard_normal((8, 2)),
        "depth": 2,
    }
    x, y = random.standard_normal((5, 3)), random.standard_normal((5, 2))
    return w, x, y, random.standard_normal((4, 3))


def shifted(w, size, seed=1):
    random = np.random.default_rng(seed)
    return {
        name: value if name == "depth" else value + size * random.standard_normal(value.shape)
        for name, value in w.items()
    }


def test_it_is_the_tangent_of_a_function(case):
    w, x, *_ = case
    with jax.enable_x64(True):
        linear = penchant.models.linearize(network, w)
        np.testing.assert_allclose(linear(w, x), network(w, x), rtol=1e-12)
        apart = [
            np.abs(linear(shifted(w, size), x) - network(shifted(w, size), x)).max()
            for size in (1e-3, 1e-2)
        ]
        assert apart[1] / apart[0] == pytest.approx(100, rel=0.1)  # the rest is of second order
        once, twice = (linear(shifted(w, size), x) - linear(w, x) for size in (1.0, 2.0))
        np.testing.assert_allclose(twice, 2 * once, rtol=1e-10)


def descended(linear, w, x, y, rate, steps):
    """Gradient descent on the sum of squares, of which every step is small."""
    learned = {name: value for name, value in w.items() if name != "depth"}

    def loss(learned):
        return jnp.sum((linear({**learned, "depth": 2}, x) - y) ** 2)

    def step(_, learned):
        slopes = jax.grad(loss)(learned)
        return jax.tree.map(lambda a, b: a - rate * b, learned, slopes)

    return {**jax.jit(lambda w: jax.lax.fori_loop(0, steps, step, w))(learned), "depth": 2}


@pytest.mark.parametrize("time", [0.01, 0.3])
def test_the_flow_is_known_in_closed_form(case, time):
    """Descent with small steps ends there, to the first order of its step."""
    w, x, y, new = case
    fit = penchant.measures.kernel_regression(network, w, x, y)
    found = fit.at(time)
    assert fit.at(0.0).predict(new) == pytest.approx(np.asarray(network(w, new)), abs=1e-5)
    np.testing.assert_allclose(fit.at(np.inf).predict(new), fit.predict(new), rtol=1e-9)
    with jax.enable_x64(True):
        linear = penchant.models.linearize(network, w)
        errors = []
        for steps in (1000, 2000):
            end = descended(linear, w, x, y, time / steps, steps)
            errors.append(np.abs(np.asarray(linear(end, new)) - found.predict(new)).max())
    change = np.abs(found.predict(new) - fit.at(0.0).predict(new)).max()
    assert errors[1] < 2e-3 * change
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.1)
    assert found.residual > fit.residual
    assert found.outcome.sentence.startswith(f"at time {time:.4g} the relative misfit is")


def test_a_ridge_takes_part_in_the_flow(case):
    w, x, y, _ = case
    ridge, time = 0.7, 0.2
    found = penchant.measures.kernel_regression(network, w, x, y, ridge=ridge).at(time)
    K = penchant.measures.tangent_kernel(network, w, x, outputs="full", precision="double").reshape(
        10, 10
    )
    goal = (y - np.asarray(network(w, x))).reshape(-1)
    dual, steps = np.zeros(10), 20000
    for _ in range(steps):
        dual -= 2 * time / steps * (K @ dual + ridge * dual - goal)
    np.testing.assert_allclose(found.dual.reshape(-1), dual, rtol=2e-3, atol=1e-4)


def test_bad_times_and_models_are_refused(case):
    w, x, y, _ = case
    with pytest.raises(ValueError, match="time must be >= 0, got -1"):
        penchant.measures.kernel_regression(network, w, x, y).at(-1.0)
    with pytest.raises(
        ValueError, match=r"call linearize\(model\) .* linearize\(module\) .* got function"
    ):
        penchant.models.linearize(network)
    with pytest.raises(ValueError, match="have the structure of those of the expansion"):
        penchant.models.linearize(network, w)({"inner": w["inner"]}, x)


def test_a_torch_module_trains_where_its_kernel_says():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    nn = torch.nn
    module = nn.Sequential(
        nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 2)
    ).double()
    module(torch.randn(50, 3, dtype=torch.float64))  # statistics that are not fresh
    x, y, new = (torch.randn(5, n, dtype=torch.float64) for n in (3, 2, 3))
    linear = penchant.models.linearize(module)
    quiet = module.eval()
    torch.testing.assert_close(linear(x), quiet(x))
    fit = penchant.measures.kernel_regression(module, x, y)
    optimizer = torch.optim.SGD([p for p in linear.parameters() if p.requires_grad], lr=0.2 / 1000)
    for _ in range(1000):
        optimizer.zero_grad()
        ((linear(x) - y) ** 2).sum().backward()
        optimizer.step()
    moved = linear(new).detach().numpy()
    found = fit.at(0.2).predict(new.numpy())
    change = np.abs(found - quiet(new).detach().numpy()).max()
    assert np.abs(moved - found).max() < 5e-3 * change
    assert change > 0.1
    assert all(torch.equal(a, b) for a, b in zip(
        module.parameters(), linear.origin.parameters(), strict=True
    ))  # fmt: skip
    with pytest.raises(ValueError, match="expanded at its own parameters"):
        penchant.models.linearize(module, {})
