"""Modules of Flax (Linen and NNX) and Equinox in optax loops, with the libraries themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import penchant

nnx = pytest.importorskip("flax.nnx", reason="needs flax: pip install 'penchant[stacks]'")
linen = pytest.importorskip("flax.linen", reason="needs flax: pip install 'penchant[stacks]'")
equinox = pytest.importorskip("equinox", reason="needs equinox: pip install 'penchant[stacks]'")

ALWAYS = {"budget": None, "raise_errors": True}
WIDTH = 16


def data():
    x = np.random.default_rng(0).standard_normal((30, 6)).astype(np.float32)
    return x, (x[:, 0] * x[:, 1] > 0).astype(int)


class Linen(linen.Module):
    """A net with batch normalization and dropout, told by `train` what to do."""

    @linen.compact
    def __call__(self, x, train):
        h = linen.Dense(WIDTH)(x)
        h = linen.BatchNorm(use_running_average=not train, momentum=0.9)(h)
        h = linen.Dropout(0.2, deterministic=not train)(jnp.tanh(h))
        return linen.Dense(2)(h)


class Nnx(nnx.Module):
    """The same, live."""

    def __init__(self):
        rngs = nnx.Rngs(0)
        self.inner, self.outer = nnx.Linear(6, WIDTH, rngs=rngs), nnx.Linear(WIDTH, 2, rngs=rngs)
        self.norm = nnx.BatchNorm(WIDTH, momentum=0.9, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)

    def __call__(self, x):
        return self.outer(self.drop(jnp.tanh(self.norm(self.inner(x)))))


def loss_of(logits, y):
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def plain(params, x, mean, var):
    """The net in prediction, written out."""
    h = x @ params["inner"]["kernel"] + params["inner"]["bias"]
    h = (h - mean) / jnp.sqrt(var + 1e-5) * params["norm"]["scale"] + params["norm"]["bias"]
    return jnp.tanh(h) @ params["outer"]["kernel"] + params["outer"]["bias"]


def jacobian(run, params):
    """(samples, outputs, parameters)."""
    found = jax.jacrev(run)(params)
    parts = [np.asarray(part) for part in jax.tree.leaves(found)]
    return np.concatenate([part.reshape(*part.shape[:2], -1) for part in parts], axis=2)


def centred_cosine(a, b):
    centre = np.eye(len(a)) - 1 / len(a)
    a, b = centre @ a @ centre, centre @ b @ centre
    return np.sum(a * b) / np.linalg.norm(a) / np.linalg.norm(b)


def kernel(run, params):
    J = jacobian(run, params).astype(np.float64)
    return np.einsum("ncp,mcp->nm", J, J) / J.shape[1]


@pytest.fixture
def linen_model():
    model = Linen()
    return model, model.init(jax.random.key(0), data()[0], train=False)


def test_a_linen_module_in_an_optax_loop(linen_model):
    model, variables = linen_model
    x, y = data()
    optimizer = optax.inject_hyperparams(optax.adamw)(0.05, weight_decay=0.02)
    state = optimizer.init(variables["params"])
    watch = penchant.watch(
        model, x[:12], parameters=variables, labels=y[:12], optimizer=state, **ALWAYS
    )
    start = variables

    @jax.jit
    def train(variables, state, key):
        def loss(params):
            given = {**variables, "params": params}
            keys = {"dropout": key}
            out = model.apply(given, x, train=True, mutable=["batch_stats"], rngs=keys)
            return loss_of(out[0], y), out[1]

        gradients, moved = jax.grad(loss, has_aux=True)(variables["params"])
        updates, state = optimizer.update(gradients, state, variables["params"])
        return {"params": optax.apply_updates(variables["params"], updates), **moved}, state

    for step in range(1, 9):
        variables, state = train(variables, state, jax.random.key(step))
        watch(step, variables)
    assert watch.weight_decay == pytest.approx(0.02)
    assert not watch.failures

    def run(params):
        given = {"params": params, "batch_stats": start["batch_stats"]}
        return model.apply(given, x[:12], train=False)

    first, last = kernel(run, start["params"]), kernel(run, variables["params"])
    np.testing.assert_allclose(watch.start.kernel, first, rtol=1e-4)
    cosine = centred_cosine(first, last)
    assert float(watch.dataset.kernel_distance[-1]) == pytest.approx(1 - cosine, rel=1e-3)
    assert "Dense_0.kernel" in watch.dataset.layer.values
    assert not any("BatchNorm_0.mean" in name for name in watch.dataset.layer.values)


def test_linen_takes_apply_and_bare_params_as_well(linen_model):
    model, variables = linen_model
    x, _ = data()
    whole = penchant.watch(model, x[:12], parameters=variables, **ALWAYS)
    bound = penchant.watch(model.apply, x[:12], parameters=variables, **ALWAYS)
    bound(1, variables["params"])
    np.testing.assert_array_equal(whole.start.kernel, bound.start.kernel)
    named = penchant.watch(model, {"x": x[:12], "train": False}, parameters=variables, **ALWAYS)
    np.testing.assert_allclose(named.start.kernel, whole.start.kernel, rtol=1e-6)
    with pytest.raises(ValueError, match="a Linen module needs its variables"):
        penchant.watch(model, x)


def test_running_statistics_alone_move_nothing(linen_model):
    """One rule for both kinds of Flax modules, as for those of torch."""
    model, variables = linen_model
    x, _ = data()
    live = Nnx()
    first = penchant.watch(model, x[:12], parameters=variables, **ALWAYS)
    second = penchant.watch(live, x[:12], **ALWAYS)
    for step in range(1, 6):
        _, moved = model.apply(
            variables, 3 * x + 1, train=True, mutable=["batch_stats"],
            rngs={"dropout": jax.random.key(step)},
        )  # fmt: skip
        variables = {**variables, **moved}
        live(3 * x + 1)
        first(step, variables)
        second(step)
    assert float(jnp.abs(live.norm.mean[...]).max()) > 0.1
    for watch in (first, second):
        assert watch.dataset.kernel_distance.values.max() == 0
        assert watch.dataset.output_change.values.max() == 0
        assert watch.regime.kind == "unknown"
        (note,) = watch.dataset.attrs["notes"]
        assert note.startswith("no optimizer moves ")
        assert "every look uses the values of the start" in note


def test_a_warm_batch_gives_its_own_statistics(linen_model):
    model, variables = linen_model
    x, _ = data()
    params = variables["params"]
    hidden = x @ params["Dense_0"]["kernel"] + params["Dense_0"]["bias"]
    watch = penchant.watch(model, x[:12], parameters=variables, warm_batch=x, **ALWAYS)
    held = watch.backend.state()
    np.testing.assert_allclose(
        held["batch_stats.BatchNorm_0.mean"], hidden.mean(axis=0), rtol=1e-3, atol=1e-4
    )
    np.testing.assert_allclose(
        held["batch_stats.BatchNorm_0.var"], hidden.var(axis=0), rtol=1e-3, atol=1e-4
    )
    live = Nnx()
    hidden = np.asarray(live.inner(x))
    seen = penchant.watch(live, x[:12], warm_batch=x, **ALWAYS)
    held = seen.backend.state()
    np.testing.assert_allclose(held["norm.mean"], hidden.mean(axis=0), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(held["norm.var"], hidden.var(axis=0), rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(live.norm.mean[...], 0)  # the module keeps its own
    assert not live.norm.use_running_average
    run = lambda p: plain(p, x[:12], hidden.mean(axis=0), hidden.var(axis=0))  # noqa: E731
    tree = nnx.to_pure_dict(nnx.state(live, nnx.Param))
    np.testing.assert_allclose(seen.start.kernel, kernel(run, tree), rtol=1e-3)


def test_an_nnx_module_is_read_as_it_is_now():
    x, y = data()
    model = Nnx()
    transform = optax.inject_hyperparams(optax.adamw)(0.05, weight_decay=0.02)
    optimizer = nnx.Optimizer(model, transform, wrt=nnx.Param)
    watch = penchant.watch(model, x[:12], labels=y[:12], optimizer=optimizer, **ALWAYS)
    first = nnx.to_pure_dict(nnx.state(model, nnx.Param))
    first = jax.tree.map(np.array, first)

    @nnx.jit
    def train(model, optimizer, x, y):
        loss, gradients = nnx.value_and_grad(lambda m: loss_of(m(x), y))(model)
        optimizer.update(model, gradients)
        return loss

    for step in range(1, 9):
        loss = train(model, optimizer, x, y)
        watch(step, train_loss=loss)
    last = nnx.to_pure_dict(nnx.state(model, nnx.Param))
    run = lambda p: plain(p, x[:12], 0.0, 1.0)  # noqa: E731
    a, b = kernel(run, first), kernel(run, last)
    np.testing.assert_allclose(watch.start.kernel, a, rtol=1e-4)
    cosine = centred_cosine(a, b)
    assert float(watch.dataset.kernel_distance[-1]) == pytest.approx(1 - cosine, rel=1e-3)
    assert watch.weight_decay == pytest.approx(0.02)
    assert watch.dataset.optimizer_rate.values == pytest.approx(0.05)
    assert not model.drop.deterministic
    assert sorted(watch.dataset.layer.values)[:2] == ["inner.bias", "inner.kernel"]
    state = watch.state_dict()
    again = penchant.watch(model, x[:12], labels=y[:12], optimizer=optimizer, step=8, **ALWAYS)
    again.load_state_dict(state)
    train(model, optimizer, x, y)
    for one in (watch, again):
        one(9)
        one.look()
    np.testing.assert_allclose(
        again.dataset.kernel_distance, watch.dataset.kernel_distance, rtol=1e-5, atol=1e-7
    )


def test_an_equinox_module_in_an_optax_loop():
    x, y = data()
    inner = equinox.nn.MLP(6, 2, WIDTH, 1, key=jax.random.key(0))
    model = equinox.nn.Sequential([inner, equinox.nn.Dropout(0.3)])
    optimizer = optax.sgd(0.5)
    state = optimizer.init(equinox.filter(model, equinox.is_inexact_array))
    watch = penchant.watch(model, x[:12], labels=y[:12], **ALWAYS)
    first = inner

    @equinox.filter_jit
    def train(model, state, key):
        def loss(model):
            keys = jax.random.split(key, len(x))
            return loss_of(jax.vmap(lambda row, key: model(row, key=key))(x, keys), y)

        gradients = equinox.filter_grad(loss)(model)
        updates, state = optimizer.update(gradients, state)
        return equinox.apply_updates(model, updates), state

    for step in range(1, 6):
        model, state = train(model, state, jax.random.key(step))
        watch(step, model)
    watch.report()
    assert not watch.failures

    def weights(net):
        return [layer for part in net.layers for layer in (part.weight, part.bias)]

    def run(p):
        h = jax.nn.relu(x[:12] @ p[0].T + p[1])
        return h @ p[2].T + p[3]

    a, b = kernel(run, weights(first)), kernel(run, weights(model.layers[0]))
    np.testing.assert_allclose(watch.start.kernel, a, rtol=1e-4)
    cosine = centred_cosine(a, b)
    assert float(watch.dataset.kernel_distance[-1]) == pytest.approx(1 - cosine, rel=1e-3)
    watch.budget.share = None
    with pytest.raises(ValueError, match="the module is missing at this call"):
        watch(30)


def test_an_equinox_module_with_state_is_refused_with_a_way_out():
    made = equinox.nn.make_with_state(equinox.nn.Sequential)
    linear = equinox.nn.Linear(6, 3, key=jax.random.key(0))
    model, state = made([linear, equinox.nn.BatchNorm(3, "batch", mode="ema")])
    x, _ = data()
    with pytest.raises(ValueError, match=r"the Equinox module keeps state .* closes over that"):
        penchant.watch(model, x)

    def apply(model, x):
        quiet = equinox.nn.inference_mode(model)
        return jax.vmap(quiet, in_axes=(0, None), out_axes=(0, None))(x, state)[0]

    watch = penchant.watch(apply, x[:8], parameters=model, **ALWAYS)
    moved = equinox.tree_at(lambda m: m.layers[0].weight, model, linear.weight + 0.5)
    watch(1, moved)
    np.testing.assert_allclose(watch.dataset.output[-1], apply(moved, x[:8]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("spoil", [lambda m: m, lambda m: optax.adamw(0.1)])
def test_an_optimizer_that_says_nothing_is_refused(spoil):
    with pytest.raises(ValueError, match=r"not have a weight decay to read; .*inject_hyper"):
        penchant.watch(Nnx(), data()[0], optimizer=spoil(object()))
