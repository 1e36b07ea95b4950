"""The kernel machine of a fine-tuned net, against the linearized net trained in its parameters."""

import numpy as np
import pytest
import scipy.optimize

import penchant
from penchant.watch import kernel_rival

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional


class LowRank(nn.Module):
    """A frozen layer with a trained product of two small matrices, which begins at zero."""

    def __init__(self, layer, rank=2):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) / 3)
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + x @ self.down.T @ self.up.T


@pytest.fixture
def tuned():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 3))
    net[0], net[2] = LowRank(net[0]), LowRank(net[2])
    return net


def jacobian(model, x):
    """Rows of gradients in the trained parameters, by autograd, in double precision."""
    model = model.double()
    trained = [p for p in model.parameters() if p.requires_grad]
    rows = [
        torch.cat([g.reshape(-1) for g in torch.autograd.grad(value, trained, retain_graph=True)])
        for value in model(x.double()).reshape(-1)
    ]
    return torch.stack(rows).numpy()


def test_it_is_the_linearized_net_trained_in_its_parameters(tuned):
    x, y, others = torch.randn(14, 5), torch.randint(3, (14,)), torch.randn(6, 5)
    seen = kernel_rival(tuned, x, y, others, ridge=0.05)
    J, start = jacobian(tuned, x), tuned(x.double()).detach().numpy()
    weight = 0.05 * np.trace(J @ J.T) / len(J) / 14

    def objective(h):  # another minimizer, in the space of the parameters
        logits = torch.tensor(start + (J @ h).reshape(start.shape), requires_grad=True)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        slope = J.T @ logits.grad.numpy().ravel() + weight * h
        return float(loss) + weight / 2 * h @ h, slope

    h = scipy.optimize.minimize(objective, np.zeros(J.shape[1]), jac=True, method="BFGS",
                                options={"gtol": 1e-9, "maxiter": 5000}).x  # fmt: skip
    true = tuned(others.double()).detach().numpy() + (jacobian(tuned, others) @ h).reshape(6, 3)
    np.testing.assert_allclose(seen.outputs, true, atol=1e-4)
    assert seen.error < 1e-2
    # an adapter that begins at zero: only its second factor has gradients
    ups = sum(p.numel() for n, p in tuned.named_parameters() if n.endswith("up"))
    assert np.count_nonzero(np.abs(J).max(axis=0)) == ups


def test_fine_tuning_in_small_steps_is_the_linearized_net(tuned):
    """The watch of an adapter: the kernel of what is trained, and arrays that begin at zero."""
    x, y = torch.randn(20, 5), torch.randint(3, (20,))
    optimizer = torch.optim.SGD([p for p in tuned.parameters() if p.requires_grad], lr=1e-3)
    watch = penchant.watch(tuned, x[:10], labels=y[:10], optimizer=optimizer, raise_errors=True)
    J = jacobian(tuned, x[:10])
    tuned.float()
    blocks = np.einsum("icp,jcp->ij", *[J.reshape(10, 3, -1)] * 2) / 3
    np.testing.assert_allclose(watch.start.kernel, blocks, rtol=1e-4, atol=1e-5)
    for step in range(1, 11):
        optimizer.zero_grad()
        F.cross_entropy(tuned(x), y).backward()
        optimizer.step()
        watch(step)
    assert watch.regime.kind == "kernel"
    assert np.isfinite(watch.dataset.layer_moved.values[-1]).all()


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"ridge": 0.0}, "ridge"),
        ({"labels": torch.full((8,), 7)}, "labels must be classes"),
        ({"model": nn.Linear(5, 1)}, "2 outputs or more"),
        ({"labels": torch.zeros(5).long()}, "as many labels"),
    ],
)
def test_wrong_arguments_are_refused(change, rule, tuned):
    x = torch.randn(8, 5)
    given = {"model": tuned, "inputs": x, "labels": torch.arange(8) % 3, "others": x} | change
    with pytest.raises(ValueError, match=rule):
        kernel_rival(**given)


def test_a_fit_that_does_not_end_is_no_answer(tuned, monkeypatch):
    monkeypatch.setattr("penchant.watch.rival.TURNS", 1)
    x = torch.randn(8, 5)
    with pytest.raises(penchant.NumericalError, match=r"kernel_rival: .*relative error") as seen:
        kernel_rival(tuned, x, torch.arange(8) % 3, x, ridge=1e-3)
    assert seen.value.result.error > 1e-2
