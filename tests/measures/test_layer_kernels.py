"""The tangent kernel layer by layer: of functions of JAX and modules of torch, and in a record."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import penchant
from penchant.lab import double_precision
from penchant.measures.kernels.layers import layer_groups
from penchant.watch.backends import backend
from refusals import refusals


def net(params, x):
    for layer in params["layers"]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ params["out"]


def net_params(seed=0):
    normal = np.random.default_rng(seed).standard_normal
    layers = [{"w": normal((4, 5)), "b": normal(5)}, {"w": normal((5, 6)), "b": normal(6)}]
    return {"layers": layers, "out": normal((6, 3))}


X = np.random.default_rng(1).standard_normal((7, 4))
NAMES = ["layers.0.b", "layers.0.w", "layers.1.b", "layers.1.w", "out"]


@functools.cache
def kernels_by_name():
    """The kernel of every array from its own Jacobian."""
    with double_precision():
        found = jax.jit(jax.jacrev(net))(net_params(), X)
    parts = [np.asarray(leaf).reshape(7, 3, -1) for leaf in jax.tree.leaves(found)]
    return dict(zip(NAMES, (np.einsum("ncp,mdp->ncmd", J, J) for J in parts), strict=True))


def test_every_array_has_the_kernel_of_its_own_gradients():
    found = penchant.measures.tangent_kernel(net, net_params(), X, outputs="full", layers=True)
    expected = kernels_by_name()
    assert list(found) == NAMES
    for name, kernel in expected.items():
        np.testing.assert_allclose(found[name], kernel, rtol=1e-9, atol=1e-11)
    whole = penchant.measures.tangent_kernel(net, net_params(), X, outputs="full")
    np.testing.assert_allclose(sum(found.values()), whole, rtol=1e-12, atol=1e-12)
    assert np.abs(found["layers.0.w"] - found["layers.1.w"]).max() > 0.1  # not one for all


def test_a_function_of_the_names_makes_groups():
    parts = penchant.measures.tangent_kernel(
        net, net_params(), X[:4], X, outputs="mean", layers=lambda name: name.rsplit(".", 1)[0]
    )
    assert list(parts) == ["layers.0", "layers.1", "out"]
    expected = kernels_by_name()
    inner = expected["layers.0.b"] + expected["layers.0.w"]
    np.testing.assert_allclose(
        parts["layers.0"], np.einsum("ncmc->nm", inner)[:4] / 3, rtol=1e-9, atol=1e-11
    )


def test_a_model_is_one_layer():
    model, x = penchant.DiagonalNet(alpha=1.0), np.eye(3)
    found = penchant.measures.tangent_kernel(model, model.start(3), x, layers=True)
    np.testing.assert_allclose(
        found["parameters"], penchant.measures.tangent_kernel(model, model.start(3), x), rtol=1e-14
    )


def test_groups_are_as_fine_as_there_is_room():
    names = ["cls", "blocks.0.norm.w", "blocks.0.norm.b", "blocks.1.norm.w", "head.w", "head.b"]
    assert layer_groups(names, 6) == names
    modules = ["cls", "blocks.0.norm", "blocks.0.norm", "blocks.1.norm", "head.w", "head.b"]
    assert layer_groups(names, 5) == modules
    assert layer_groups(names, 4) == ["cls", *["blocks"] * 3, "head", "head"]
    assert layer_groups(names, 2) == ["all"] * 6


def moving(room, monkeypatch):
    """The second look of a watch with this many bytes for kernels of layers."""
    monkeypatch.setattr(backend, "ROOM", room)
    params = net_params()
    watch = penchant.watch(net, X, parameters=params, budget=None, raise_errors=True)
    params["out"] = params["out"] * np.linspace(1, 2, 3)
    params["layers"][0]["w"] = params["layers"][0]["w"] * 1.5
    watch(1, params)
    return watch


def test_layers_that_share_a_kernel_share_its_distance_and_the_report_says_so(monkeypatch):
    fine = moving(2**20, monkeypatch)
    coarse = moving(8 * 49 * 2, monkeypatch)
    assert fine.start.kernels.shape == (5, 7, 7)
    assert coarse.start.kernels.shape == (2, 7, 7)
    row = coarse.dataset.isel(time=1)
    assert list(row.layer.values) == NAMES
    assert len(set(row.layer_distance.values[:4])) == 1
    assert len(set(fine.dataset.layer_distance.values[1])) == 5
    np.testing.assert_allclose(row.layer_moved, fine.dataset.layer_moved[1], rtol=1e-12)
    np.testing.assert_allclose(row.layer_moved, [0, 0.5, 0, 0, row.layer_moved[4]], rtol=1e-9)
    distances = [float(watch.dataset.kernel_distance[1]) for watch in (fine, coarse)]
    assert distances[0] == pytest.approx(distances[1], rel=1e-9)
    assert any("5 parameter arrays are in 2 groups" in note for note in coarse.backend.notes)
    assert not any("groups" in note for note in fine.backend.notes)


def test_a_layer_that_began_at_zero_has_moved_by_its_norm():
    w = {"a": np.ones(4), "b": np.zeros(())}

    def line(w, x):
        return x @ w["a"] + w["b"]

    watch = penchant.watch(line, X, parameters=w, budget=None, raise_errors=True)
    watch(1, {"a": 2 * np.ones(4), "b": np.ones(())})
    row = watch.dataset.isel(time=1)
    np.testing.assert_array_equal(row.layer_moved, [1, 1])  # over an average scalar's size, one
    np.testing.assert_allclose(row.layer_distance, [0, np.nan], atol=1e-12)  # that of b is constant


test_wrong_layers_are_told = refusals(
    (
        lambda: penchant.measures.tangent_kernel(net, net_params(), X, outputs=0, layers=2),
        "layers must be Tr",
    ),
    (
        lambda: penchant.measures.tangent_kernel(net, net_params(), X, outputs=0, layers=len),
        "layers must return a name, got 10 for layers.0.b",
    ),
)


def test_modules_of_torch_have_layers_too():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    module, x = module.double(), torch.as_tensor(X)
    found = penchant.measures.tangent_kernel(module, x, outputs="mean", layers=True)
    params = {name: value.detach() for name, value in module.named_parameters()}
    jacobian = torch.func.jacrev(lambda p: torch.func.functional_call(module, p, (x,)))(params)
    assert list(found) == list(params)
    for name, part in jacobian.items():
        J = part.flatten(2).numpy()
        np.testing.assert_allclose(found[name], np.einsum("ncp,mcp->nm", J, J) / 2, rtol=1e-10)
