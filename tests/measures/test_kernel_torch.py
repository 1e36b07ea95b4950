"""tangent_kernel, kernel_regression and gradient_turn of torch modules, against torch.func."""

import copy

import numpy as np
import pytest

import penchant
from penchant.measures.kernels.tangent import arguments

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def perceptron(outputs=1):
    return nn.Sequential(nn.Linear(4, 7), nn.Tanh(), nn.Linear(7, outputs))


def convolutional():
    return nn.Sequential(
        nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(27, 3)
    )


def jacobian(module, x):
    """(samples, outputs, parameters) by torch.func.jacrev of the whole batch in eval mode."""
    still = copy.deepcopy(module).double().eval()
    trained = {n: p.detach() for n, p in still.named_parameters() if p.requires_grad}

    def run(params):
        return torch.func.functional_call(still, params, (x.double(),))

    found = torch.func.jacrev(run)(trained)
    return torch.cat([part.flatten(2) for part in found.values()], dim=2).numpy()


CASES = {
    "perceptron": (lambda: perceptron(3), lambda: torch.randn(6, 4)),
    "convolutional": (convolutional, lambda: torch.randn(6, 2, 5, 5)),
    "double": (lambda: perceptron(2).double(), lambda: torch.randn(6, 4).double()),
}


@pytest.mark.parametrize("name", CASES)
def test_kernels_agree_with_torch_func(name):
    build, draw = CASES[name]
    module, x = build(), draw()
    x2 = draw()[:4]
    J, J2 = jacobian(module, x), jacobian(module, x2)
    before = copy.deepcopy(module.state_dict())
    whole = np.einsum("ncp,mdp->ncmd", J, J2)
    near = {"rtol": 0, "atol": (1e-12 if name == "double" else 1e-5) * np.abs(whole).max()}
    found = penchant.measures.tangent_kernel(module, x, x2, outputs="full")
    np.testing.assert_allclose(found, whole, **near)
    mean = penchant.measures.tangent_kernel(module, x, outputs="mean")
    np.testing.assert_allclose(mean, np.einsum("ncp,mcp->nm", J, J) / J.shape[1], **near)
    one = penchant.measures.tangent_kernel(module, x=x, outputs=1)
    np.testing.assert_allclose(one, J[:, 1] @ J[:, 1].T, **near)
    fine = penchant.measures.tangent_kernel(module, x, x2=x2, outputs="full", precision="double")
    np.testing.assert_allclose(fine, whole, rtol=1e-10, atol=1e-12 * np.abs(whole).max())
    assert module.training
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())


def test_one_output_needs_no_word_and_arrays_will_do():
    module, x = perceptron(), torch.randn(5, 4)
    J = jacobian(module, x)[:, 0]
    np.testing.assert_allclose(
        penchant.measures.tangent_kernel(module, x.numpy()), J @ J.T, rtol=1e-4
    )


def test_parameters_can_be_given_by_name():
    module, x = perceptron(), torch.randn(5, 4)
    start = copy.deepcopy(module.state_dict())
    with torch.no_grad():
        module[0].weight.mul_(3.0)
    end = copy.deepcopy(module.state_dict())
    J1 = jacobian(module, x)[:, 0]
    found = penchant.measures.tangent_kernel(module, x, precision="double")
    np.testing.assert_allclose(found, J1 @ J1.T, rtol=1e-10)
    module.load_state_dict(start)
    J0 = jacobian(module, x)[:, 0]
    at_end = penchant.measures.tangent_kernel(module, end, x, precision="double")
    np.testing.assert_allclose(at_end, J1 @ J1.T, rtol=1e-10)
    assert np.abs(J1 @ J1.T - J0 @ J0.T).max() > 0.1
    turn = penchant.measures.gradient_turn(module, start, end, x, precision="double")
    assert turn == pytest.approx(penchant.measures.gradient_distance(J0, J1), rel=1e-9)


@pytest.mark.parametrize("outputs", ["full", "mean"])
def test_regression_is_that_of_the_jacobian_and_stays_where_it_was_made(outputs):
    module, x, y = perceptron(2), torch.randn(6, 4), np.random.default_rng(0).normal(size=(6, 2))
    new = torch.randn(3, 4)
    J, J2 = jacobian(module, x), jacobian(module, new)
    with torch.no_grad():
        f = [copy.deepcopy(module).double()(part.double()).numpy() for part in (x, new)]
    machine = penchant.measures.kernel_regression(module, x, y, outputs=outputs)
    with torch.no_grad():
        module[0].weight.mul_(0.0)  # training goes on
    if outputs == "full":
        flat = J.reshape(12, -1)
        h = np.linalg.lstsq(flat, (y - f[0]).reshape(-1), rcond=None)[0]
        expected = f[1] + (J2.reshape(6, -1) @ h).reshape(3, 2)
    else:
        K, K2 = (np.einsum("ncp,mcp->nm", left, J) / 2 for left in (J, J2))
        expected = f[1] + K2 @ np.linalg.solve(K, y - f[0])
    np.testing.assert_allclose(machine.predict(new), expected, rtol=1e-6, atol=1e-8)


def test_frozen_layers_are_constants_in_double_precision_too():
    module, x = perceptron(), torch.randn(5, 4)
    module[0].requires_grad_(False)
    J = jacobian(module, x)[:, 0]
    assert J.shape[1] == 8
    found = penchant.measures.tangent_kernel(module, x, precision="double")
    np.testing.assert_allclose(found, J @ J.T, rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (
            lambda m, x: penchant.measures.tangent_kernel(m, x),
            "3 outputs; set outputs='mean', 'full'",
        ),
        (lambda m, x: penchant.measures.tangent_kernel(m, x, outputs=3), "outputs must be below 3"),
        (
            lambda m, x: penchant.measures.tangent_kernel(m, x, x, x, outputs=0),
            "must be a mapping of names",
        ),
        (lambda m, x: penchant.measures.tangent_kernel(m, {"0.weight": x}, x, outputs=0), "shape"),
        (
            lambda m, x: penchant.measures.tangent_kernel(m, {}, x, outputs=0),
            "params must hold all trained",
        ),
        (
            lambda m, x: penchant.measures.tangent_kernel(m, None, outputs=0),
            r"call tangent_kernel\(module, x",
        ),
        (
            lambda m, x: penchant.measures.tangent_kernel(m, x, x[:, :3], outputs=0),
            "must have the same shape",
        ),
        (
            lambda m, x: penchant.measures.tangent_kernel(m, x.double(), outputs=0),
            "x of torch.float64 but the",
        ),
        (
            lambda m, x: penchant.measures.tangent_kernel(m, x, outputs=0, precision="half"),
            "unknown precision",
        ),
        (
            lambda m, x: penchant.measures.kernel_regression(m, x),
            r"call kernel_regression\(module, x, y\)",
        ),
    ],
)
def test_wrong_calls_say_what_to_do(call, rule):
    with pytest.raises(ValueError, match=rule) as refused:
        call(perceptron(3), torch.randn(5, 4))
    assert "\n" not in str(refused.value)


def test_where_torch_is_missing_its_extra_is_named(monkeypatch):
    monkeypatch.delitem(__import__("sys").modules, "torch")
    with pytest.raises(ValueError, match=r"torch.nn.Module .*pip install 'penchant\[torch\]'"):
        penchant.measures.tangent_kernel(lambda x: x, np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"pip install 'penchant\[torch\]'"):
        arguments(None, lambda x: x, np.ones((3, 2)), np.ones(3), None, least=2)
