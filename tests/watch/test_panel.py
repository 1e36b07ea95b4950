"""The measures of the panel, each against another way to the same number."""

import importlib
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penchant
from penchant import load
from penchant.watch.optimizer import rates_of
from penchant.watch.panel import edge
from penchant.watch.panel.activations import (
    dead_share,
    features_rank,
    low_rank,
    neural_collapse,
    unit_size,
)
from penchant.watch.panel.balance import conserved, conserved_units
from penchant.watch.panel.edge import largest_eigenvalue, stability, steps_of
from penchant.watch.panel.instrument import MEASURES
from penchant.watch.panel.noise import noise_scale, zero_loss
from penchant.watch.panel.updates import ball_share, rotation, spectral_norm, update_share

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional


def mlp(*sizes, activation=nn.Tanh):
    layers = [part for a, b in itertools.pairwise(sizes)
              for part in (nn.Linear(a, b), activation())]  # fmt: skip
    return nn.Sequential(*layers[:-1])


def data(n=40, d=6, classes=3, seed=0):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=random)
    return x, (x @ torch.randn(d, classes, generator=random)).argmax(1)


def trained(model, optimizer, x, y, steps, loss=F.cross_entropy, **options):
    """A watch of full-batch training with every call a look."""
    options = {"budget": None, "points_per_decade": 100, "raise_errors": True, **options}
    watch = penchant.watch(model, x, labels=y, optimizer=optimizer, **options)
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
        watch(step, train_loss=value)
    return watch


def hessian(model, x, y, loss=F.cross_entropy):
    """The whole matrix, by torch.func in double precision."""
    params = {n: p.detach().double() for n, p in model.named_parameters()}
    sizes = [p.numel() for p in params.values()]

    def value(flat):
        parts = flat.split(sizes)
        held = {n: part.view(p.shape)
                for part, (n, p) in zip(parts, params.items(), strict=True)}  # fmt: skip
        return loss(torch.func.functional_call(model, held, (x.double(),)), y)

    flat = torch.cat([p.reshape(-1) for p in params.values()])
    return torch.func.hessian(value)(flat).numpy()


# --- edge ---------------------------------------------------------------------------------------


@given(st.integers(2, 30), st.integers(0, 10**6), st.booleans())
def test_the_largest_eigenvalue_is_that_of_all_of_them(size, seed, negative):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((size, size))
    matrix = matrix + matrix.T - 5 * negative * np.eye(size)
    true = np.linalg.eigvalsh(matrix)
    start = rng.standard_normal(size)
    quick = largest_eigenvalue(lambda v: matrix @ v, start, 200)
    # a residual bounds the distance to the spectrum, and a Rayleigh quotient is below its end
    assert np.abs(true - quick.value).min() <= quick.error * abs(quick.value) + 1e-9
    assert quick.value <= true[-1] + 1e-9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge, "ENOUGH", 1e-9)
        patch.setattr(edge, "ROUNDED", 1e-12)
        pair = largest_eigenvalue(lambda v: matrix @ v, start, 2000)
    assert pair.value == pytest.approx(true[-1], abs=1e-6 * np.ptp(true))
    again = largest_eigenvalue(lambda v: matrix @ v, pair.vector, 1)
    assert again.value == pytest.approx(pair.value, rel=1e-9)


def test_an_eigenvector_and_a_zero_matrix_are_fixed_points():
    assert largest_eigenvalue(lambda v: 0 * v, np.ones(3)).value == 0
    pair = largest_eigenvalue(lambda v: np.array([2.0, 1.0]) * v, np.array([1.0, 0.0]))
    assert (pair.value, pair.error) == (2, 0)


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.03),
    "heavy ball": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.8, dampening=0.5),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.8, nesterov=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.003),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.003, amsgrad=True, weight_decay=0.02),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.003, momentum=0.3),
}


def rates(optimizer, params):
    """D / c of every parameter and the decay in the gradient, written out again for the test."""
    group = optimizer.param_groups[0]
    lr, parts = group["lr"], []
    kind = type(optimizer).__name__
    for p in params:
        state, one = optimizer.state.get(p, {}), np.ones(p.numel())
        if kind == "SGD":
            m = group["momentum"]
            c = 2 * (1 + m) if not group["nesterov"] else (2 + 2 * m) / (1 + 2 * m)
            parts.append(one * lr * (1 - group["dampening"]) / c)
        elif kind == "RMSprop":
            root = state["square_avg"].double().numpy().ravel() ** 0.5 + group["eps"]
            parts.append(lr / root / (2 * (1 + group["momentum"])))
        else:
            b1, b2 = group["betas"]
            t = float(state["step"])
            v = state["max_exp_avg_sq" if group["amsgrad"] else "exp_avg_sq"].double().numpy()
            root = np.sqrt(v.ravel() / (1 - b2**t)) + group["eps"]
            parts.append(lr / (1 - b1**t) / root * (1 - b1) / (2 * (1 + b1)))
    coupled = kind in ("SGD", "Adam", "RMSprop")
    return np.concatenate(parts), group["weight_decay"] * coupled


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_edge_is_the_largest_eigenvalue_of_the_dense_preconditioned_hessian(name):
    torch.manual_seed(1)
    model = mlp(6, 8, 3)
    x, y = data()
    optimizer = OPTIMIZERS[name](model.parameters())
    watch = trained(model, optimizer, x, y, 30, measure="edge")
    watch.look()
    D, decay = rates(optimizer, list(model.parameters()))
    H = hessian(model, x, y) + decay * np.eye(len(D))
    true = np.linalg.eigvals(D[:, None] * H).real.max()
    seen = watch.dataset
    assert float(seen.edge[-1]) == pytest.approx(true, rel=0.02)
    assert float(seen.edge_error[-1]) < 0.3
    if name == "sgd":  # one rate: the sharpness is an eigenvalue of the Hessian itself
        assert float(seen.sharpness[-1]) == pytest.approx(np.linalg.eigvalsh(H)[-1], rel=0.02)


def quadratic_end(name, ratio):
    """|theta| after many steps of an optimizer on a quadratic whose edge is `ratio`."""
    theta = nn.Parameter(torch.ones(2, dtype=torch.float64))
    optimizer = OPTIMIZERS[name]([theta])
    if name == "rmsprop":  # alpha=1: the second moment stays as it is
        optimizer.param_groups[0]["alpha"] = 1.0
        theta.grad = torch.zeros_like(theta)
        optimizer.step()
        optimizer.state[theta]["square_avg"].copy_(torch.tensor([4.0, 9.0]))
    steps = steps_of(optimizer, {id(theta): "w"})
    curvature = ratio / np.broadcast_to(steps.scale["w"], 2) - steps.decay["w"]
    curvature = torch.tensor(curvature * np.array([1.0, 0.3]))
    for _ in range(400):
        theta.grad = curvature * theta.detach()
        optimizer.step()
    return float(theta.detach().norm())


@pytest.mark.parametrize("name", ["sgd", "heavy ball", "nesterov", "rmsprop"])
def test_an_optimizer_is_stable_below_one_and_diverges_above(name):
    assert quadratic_end(name, 0.95) < 1
    assert quadratic_end(name, 1.05) > 1e2


def test_adam_with_frozen_moments_is_stable_below_one_and_diverges_above():
    """The recursion of its averages, whose matrix has an eigenvalue of modulus one at the edge."""
    optimizer = torch.optim.Adam([w := nn.Parameter(torch.ones(1))], lr=0.1, betas=(0.9, 0.99))
    w.grad = torch.ones(1)
    for _ in range(300):  # until 1 - 0.9^t is one
        optimizer.step()
    scale = float(steps_of(optimizer, {id(w): "w"}).scale["w"][0])
    root = float(optimizer.state[w]["exp_avg_sq"].sqrt() / (1 - 0.99**300) ** 0.5)
    for ratio, stable in ((0.97, True), (1.03, False)):
        h = ratio / scale  # m' = 0.9 m + 0.1 h w, w' = w - 0.1 m' / root
        matrix = np.array([[0.9, 0.1 * h], [-0.09 / root, 1 - 0.01 * h / root]])
        assert (np.abs(np.linalg.eigvals(matrix)).max() < 1) == stable


def test_batch_sharpness_of_linear_regression_is_that_of_single_samples():
    """With batches of one sample Hg / g is 2 |x|^2, whatever the residual."""
    x, y = torch.randn(12, 4, dtype=torch.float64), torch.randn(12, 1, dtype=torch.float64)
    model = nn.Linear(4, 1, bias=False).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    options = {"measure": "edge", "loss": F.mse_loss}
    alone = penchant.watch(model, x, labels=y, optimizer=optimizer, batch_size=1, **options)
    mean = float((2 * (x**2).sum(1)).mean())
    assert float(alone.dataset.edge[0]) == pytest.approx(mean * 0.05 / 2, rel=1e-9)
    whole = penchant.watch(model, x, labels=y, optimizer=optimizer, **options)
    top = np.linalg.eigvalsh(2 * (x.T @ x / 12).numpy())[-1]
    assert float(whole.dataset.edge[0]) == pytest.approx(top * 0.05 / 2, rel=1e-3)
    momentum = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    heavy = penchant.watch(model, x, labels=y, optimizer=momentum, batch_size=1, **options)
    assert float(heavy.dataset.edge[0]) == pytest.approx(top * 0.05 / 3.8, rel=1e-3)


@pytest.mark.parametrize("lr", [pytest.param(0.18, marks=pytest.mark.slow), 0.2])
def test_gradient_descent_ends_at_the_edge_and_a_small_rate_below_it(lr):
    """Progressive sharpening up to 2 over the rate, on a net of tanh (Cohen et al. 2021)."""
    x = torch.linspace(-1, 1, 20)[:, None]
    y = torch.cos(4 * x) + 2 * (x > 0.3)
    for rate, says in ((lr, "at the edge"), (0.004, "stable")):
        torch.manual_seed(0)
        model = mlp(1, 24, 24, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        options = {"loss": F.mse_loss, "measure": "edge", "points_per_decade": 4}
        watch = trained(model, optimizer, x, y, 1500, **options)
        watch.look()
        assert stability(float(watch.dataset.edge[-1])) == says


# --- activations --------------------------------------------------------------------------------


def test_collapse_is_zero_where_classes_have_one_feature_and_else_as_papyan_writes_it():
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), 10)
    means = rng.standard_normal((4, 7))
    assert neural_collapse(means[classes], classes) == pytest.approx(0, abs=1e-20)
    features = means[classes] + 0.3 * rng.standard_normal((40, 7))
    own = np.array([features[classes == c].mean(axis=0) for c in range(4)])
    within = (features - own[classes]).T @ (features - own[classes]) / 40
    between = np.cov(own.T, bias=True)
    true = np.trace(within @ np.linalg.pinv(between, rcond=1e-10)) / 4
    assert neural_collapse(features, classes) == pytest.approx(true, rel=1e-8)
    assert neural_collapse(3 * features + 1, classes) == pytest.approx(true, rel=1e-8)
    assert math.isnan(neural_collapse(features[:4], np.arange(4)))
    assert math.isnan(neural_collapse(np.ones((6, 2)), np.arange(6) // 2))


def test_low_rank_is_one_minus_the_alignment_with_the_span_of_the_outputs():
    rng = np.random.default_rng(1)
    phi, f = rng.standard_normal((30, 50)), rng.standard_normal((30, 3))
    H = np.eye(30) - 1 / 30
    K, P = H @ phi @ phi.T @ H, H @ f @ np.linalg.pinv(H @ f)
    true = 1 - np.sum(K * P) / (np.linalg.norm(K) * np.linalg.norm(P))
    assert low_rank(phi, f) == pytest.approx(true, rel=1e-10)
    basis = np.linalg.qr(H @ f)[0]
    assert low_rank(basis @ rng.standard_normal((3, 3)), f) > 0.01
    assert low_rank(basis, f) == pytest.approx(0, abs=1e-12)  # collapsed on the outputs
    assert low_rank(basis + 5, f @ rng.standard_normal((3, 3))) == pytest.approx(0, abs=1e-12)
    assert math.isnan(low_rank(phi, np.ones((30, 2))))


@given(st.integers(1, 6), st.floats(1e-3, 1e3))
def test_features_with_equal_directions_have_their_number_as_rank(rank, scale):
    rows = np.vstack([np.eye(7)[:rank], -np.eye(7)[:rank]]) * scale  # mean zero
    assert features_rank(rows + 2) == pytest.approx(rank)
    assert unit_size(rows) == pytest.approx(scale / math.sqrt(7))
    assert dead_share(rows) == pytest.approx((7 - rank) / 7)


def test_hooks_see_dead_units_of_functions_and_leave_the_module_alone():
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(6, 10), nn.Linear(10, 3)

        def forward(self, x):
            return self.two(F.relu(self.one(x)))

    model, (x, y) = Net(), data()
    with torch.no_grad():
        model.one.bias[:4] = -100
    watch = penchant.watch(model, x, labels=y, measure="activations", raise_errors=True)
    seen = watch.dataset.isel(time=0)
    assert seen.module.values.tolist() == ["one", "two"]
    assert seen.dead_units.values[1] == pytest.approx(0.4)
    assert math.isnan(seen.dead_units.values[0])  # the inputs themselves
    inner = torch.relu(model.one(x)).detach()
    assert seen.unit_size.values[1] == pytest.approx(float(model.two(inner).square().mean().sqrt()))
    assert float(seen.neural_collapse) == pytest.approx(neural_collapse(inner.numpy(), y.numpy()))
    assert not model.one._forward_hooks
    assert not model._forward_pre_hooks


# --- updates ------------------------------------------------------------------------------------


def test_an_update_is_measured_as_written_by_the_optimizer():
    torch.manual_seed(0)
    model, (x, y) = mlp(6, 8, 3), data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    watch = trained(model, optimizer, x, y, 9, measure="updates")
    before = [p.detach().clone() for p in model.parameters()]
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    slopes = [p.grad.clone() for p in model.parameters()]
    optimizer.step()
    watch(10)
    seen = watch.dataset.isel(time=-1)
    for place, (w, g) in enumerate(zip(before, slopes, strict=True)):
        assert seen.update_share.values[place] == pytest.approx(
            float(0.05 * g.norm() / w.norm()), rel=1e-4
        )
        a, b = w.flatten().double(), (w - 0.05 * g).flatten().double()
        angle = math.degrees(math.acos(min(1.0, float(a @ b / a.norm() / b.norm()))))
        assert seen.rotation.values[place] == pytest.approx(angle, rel=1e-2, abs=1e-4)
        assert seen.effective_rate.values[place] == pytest.approx(
            0.05 / float((w - 0.05 * g).square().sum()), rel=1e-5
        )


@given(st.floats(1e-7, 3.1), st.floats(1e-3, 1e3))
def test_a_turn_by_an_angle_is_that_angle(angle, scale):
    w = np.array([1.0, 0.0])
    turned = scale * np.array([math.cos(angle), math.sin(angle)])
    assert rotation(w, turned) == pytest.approx(math.degrees(angle), rel=1e-6)
    assert update_share(w, (1 + angle) * w, steps=2) == pytest.approx(angle / 2, rel=1e-6)
    assert math.isnan(rotation(0 * w, w))
    assert math.isnan(update_share(0 * w, w))


@pytest.mark.parametrize("shape", [(3, 5), (40, 7), (600, 530)])
def test_the_spectral_norm_is_the_largest_singular_value(shape):
    matrix = np.random.default_rng(0).standard_normal(shape)
    true = np.linalg.svd(matrix, compute_uv=False)[0]
    assert spectral_norm(matrix) == pytest.approx(true, rel=2e-3)
    assert spectral_norm(0 * matrix) == 0


def test_a_constant_gradient_fills_the_ball_of_weight_decay():
    """AdamW ends at entries 1 / decay, Muon at singular values of its scaled update over decay."""
    for kind, options, within in (
        (torch.optim.AdamW, {}, 1e-3),
        (torch.optim.Muon, {"momentum": 0.0, "nesterov": False}, 0.3),  # not quite orthogonal
        (torch.optim.Muon, {"momentum": 0.0, "adjust_lr_fn": "match_rms_adamw"}, 0.3),
    ):
        torch.manual_seed(0)
        model = nn.Linear(6, 9, bias=False)
        optimizer = kind(model.parameters(), lr=0.1, weight_decay=0.5, **options)
        watch = penchant.watch(model, torch.randn(5, 6), optimizer=optimizer, measure="updates",
                               raise_errors=True)  # fmt: skip
        slope = torch.randn(9, 6)
        for step in range(1, 201):
            model.weight.grad = slope.clone()
            optimizer.step()
            watch(step)
        watch.look()
        assert watch.dataset.ball_share.values[-1, 0] == pytest.approx(1, abs=within)
    assert math.isnan(ball_share(np.ones((2, 2)), "SGD", 0.1))
    assert rates_of(optimizer).weight_decay == 0.5


# --- noise --------------------------------------------------------------------------------------


def test_the_noise_scale_of_gaussian_gradients():
    """tr(S) = d s^2 and |G|^2 are known; the estimate does not depend on the size of groups."""
    rng = np.random.default_rng(0)
    mean, spread, d = np.full(20, 0.5), 2.0, 20
    gradients = mean + spread * rng.standard_normal((40_000, d))
    for size in (1, 10, 100):
        groups = gradients.reshape(-1, size, d).mean(axis=1)
        total = groups.mean(axis=0)
        seen = noise_scale((groups**2).sum(axis=1), float(total @ total), size)
        assert seen == pytest.approx(d * spread**2 / float(mean @ mean), rel=0.1)
    few = mean + spread * rng.standard_normal((8, d))  # 16 samples are needed
    total = few.mean(axis=0)
    assert math.isnan(noise_scale((few**2).sum(axis=1), float(total @ total), 1))
    assert noise_scale(np.full(4, 2.0), 2.0, 3) == 0


def test_the_gradients_of_groups_are_those_of_autograd():
    torch.manual_seed(0)
    model, (x, y) = mlp(6, 8, 3), data(32)
    watch = penchant.watch(model, x, labels=y, measure="noise", raise_errors=True)
    F.cross_entropy(model(x), y).backward()
    norm = math.sqrt(sum(float(p.grad.square().sum()) for p in model.parameters()))
    assert float(watch.dataset.gradient_norm[0]) == pytest.approx(norm, rel=1e-5)


@given(st.integers(0, 10**6), st.floats(0, 3))
def test_zero_losses_are_those_of_torch_in_single_precision(seed, power):
    rng = np.random.default_rng(seed)
    outputs = (10**power * rng.standard_normal((30, 4))).astype(np.float32)
    labels = outputs.argmax(axis=1)
    terms = F.cross_entropy(torch.as_tensor(outputs), torch.as_tensor(labels), reduction="none")
    assert abs(zero_loss(outputs, labels) - float((terms == 0).double().mean())) <= 1 / 30 + 1e-9


def test_a_huge_margin_is_a_zero_and_a_small_one_is_not():
    assert zero_loss(np.array([[30.0, 0.0], [5.0, 0.0]]), np.array([0, 0])) == 0.5
    assert zero_loss(np.array([[30.0, 0.0]]), np.array([1])) == 0


# --- balance ------------------------------------------------------------------------------------


def drift(activation, rate, steps, **options):
    torch.manual_seed(3)
    model, x, y = mlp(5, 7, 6, 2, activation=activation), torch.randn(30, 5), torch.randn(30, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, **options)
    watch = trained(
        model, optimizer, x, y, steps, F.mse_loss, measure="balance", points_per_decade=1
    )
    watch.look()
    return watch.dataset


@pytest.mark.parametrize("activation", [nn.Identity, nn.ReLU])
def test_gradient_flow_conserves_the_balance_of_linear_layers_and_of_relu(activation):
    """The drift is of first order in the rate at a given time, and large with weight decay."""
    coarse, fine = drift(activation, 0.08, 50), drift(activation, 0.008, 500)
    assert coarse.pair.values.tolist() == ["0 to 2", "2 to 4"]
    assert (fine.balance_drift.values[-1] < 0.2 * coarse.balance_drift.values[-1]).all()
    assert float(fine.relative_move[-1]) > 0.1  # it did train
    decayed = drift(activation, 0.008, 500, weight_decay=0.3)
    assert (decayed.balance_drift.values[-1] > 5 * coarse.balance_drift.values[-1]).all()


def test_the_balance_is_the_matrix_for_linear_layers_and_its_diagonal_for_relu():
    torch.manual_seed(0)
    for activation, whole in ((nn.Identity, True), (nn.ReLU, False)):
        model = mlp(5, 7, 2, activation=activation)
        watch = penchant.watch(model, torch.randn(9, 5), measure="balance", raise_errors=True)
        w, b, v = (p.detach().double().numpy() for p in list(model.parameters())[:3])
        matrix = w @ w.T + np.outer(b, b) - v.T @ v
        value = matrix if whole else np.diag(matrix)
        size = sum(np.sum(part**2) for part in (w, b, v))
        assert float(watch.dataset.balance[0, 0]) == pytest.approx(np.linalg.norm(value) / size)
        np.testing.assert_allclose(np.diag(conserved(w, v, (b,))), conserved_units(w, v, (b,)))


def test_nets_without_the_symmetry_have_no_balance():
    x = torch.randn(9, 5)
    normed = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.ReLU(), nn.Linear(7, 2))
    for model in (mlp(5, 7, 2), mlp(5, 7, 2, activation=nn.GELU), normed):
        watch = penchant.watch(model, x, measure="balance")
        assert "balance" not in watch.dataset
        assert any("no two arrays" in note for note in watch.dataset.attrs["notes"])


def test_a_zero_array_at_the_start_makes_no_law_of_its_own():
    """With V = 0 every G would be a symmetry; a low-rank pair has the law of linear layers."""
    model = mlp(5, 7, 2, activation=nn.ReLU)
    nn.init.zeros_(model[2].weight)
    watch = penchant.watch(model, torch.randn(9, 5), measure="balance")
    assert watch.instruments.panel.instruments["balance"].laws[0].whole is False
    convolutions = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3), nn.Flatten())
    watch = penchant.watch(convolutions, torch.randn(5, 1, 6, 6), measure="balance")
    assert watch.dataset.sizes["pair"] == 1


# --- the panel as a whole -----------------------------------------------------------------------


def test_all_measures_are_recorded_saved_and_drawn_and_change_nothing(tmp_path, capsys):
    x, y = data()
    ends = []
    for measure in (None, "all"):
        torch.manual_seed(0)
        model = mlp(6, 8, 8, 3, activation=nn.ReLU)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
        watch = trained(model, optimizer, x, y, 40, measure=measure, points_per_decade=4)
        ends.append([p.detach().clone() for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))
    report = watch.report(tmp_path / "run.nc", tmp_path / "run.json", tmp_path / "run.png")
    assert watch.failures == ()
    said = dict(report.rows())
    assert set(MEASURES) <= set(said)
    assert all(f"{name} " in said["measures"] for name in MEASURES)
    assert list(watch.panel) == list(MEASURES)
    first, second = (load(tmp_path / f"run.{kind}") for kind in ("nc", "json"))
    for name in ("edge", "unit_size", "update_share", "zero_loss", "balance_drift"):
        assert np.isfinite(first[name].values[1:3]).all(), name
        np.testing.assert_array_equal(first[name], second[name])
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_looks_that_were_postponed_have_the_panel_of_their_step():
    torch.manual_seed(0)
    x, y = data()
    records = []
    for budget in (None, 1e-9):
        torch.manual_seed(0)
        model = mlp(6, 8, 3, activation=nn.ReLU)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
        watch = trained(model, optimizer, x, y, 10, measure="all", budget=budget,
                        points_per_decade=8)  # fmt: skip
        watch.look()
        records.append(watch.dataset)
    full, late = records
    shared = sorted({*full.step.values} & {*late.step.values} - {0.0})[:-1]
    assert len(shared) >= 4
    for name in ("update_share", "ball_share", "unit_size", "balance_drift", "gradient_norm"):
        pair = [record.set_index(time="step").sel(time=shared)[name] for record in records]
        np.testing.assert_allclose(*pair, rtol=1e-5, err_msg=name)
    edges = [record.set_index(time="step").sel(time=shared).edge for record in records]
    np.testing.assert_allclose(*edges, rtol=0.05)


def test_a_resumed_run_keeps_the_panel():
    torch.manual_seed(0)
    model, (x, y) = mlp(6, 8, 3, activation=nn.ReLU), data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    watch = trained(model, optimizer, x, y, 5, measure="all")
    again = penchant.watch(model, x, labels=y, optimizer=optimizer, measure="all",
                           raise_errors=True)  # fmt: skip
    again.load_state_dict(watch.state_dict())
    np.testing.assert_array_equal(again.dataset.edge, watch.dataset.edge)
    np.testing.assert_array_equal(again.dataset.unit_size, watch.dataset.unit_size)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"measure": "sharpness"}, "measure .*edge"),
        ({"measure": 3}, "measure must be a name or a list"),
        ({"measure": "edge", "labels": None}, "need a loss"),
        ({"measure": "edge", "loss": "mse"}, "loss must be a function"),
        (
            {"measure": "edge", "loss": lambda a, b: a, "learning_rate": 1.0},
            "must return one number",
        ),
        ({"measure": "edge"}, "edge needs the learning rate"),
        ({"measure": "edge", "optimizer": "muon"}, "no threshold of stability is known for Muon"),
        ({"measure": "noise", "batch_size": 0}, "batch_size"),
    ],
)
def test_what_cannot_be_measured_is_said_at_once(options, rule):
    model, (x, y) = nn.Linear(6, 3, bias=False), data()
    if options.get("optimizer") == "muon":
        options = {**options, "optimizer": torch.optim.Muon(model.parameters())}
    with pytest.raises(ValueError, match=rule) as seen:
        penchant.watch(model, x, **{"labels": y, **options})
    assert str(seen.value).startswith("watch: ")


def test_half_precision_is_measured_in_its_own():
    torch.manual_seed(0)
    model, (x, y) = mlp(6, 8, 3, activation=nn.ReLU), data()
    half = mlp(6, 8, 3, activation=nn.ReLU).bfloat16()
    half.load_state_dict(model.state_dict())
    seen = []
    for net, inputs in ((model, x), (half, x.bfloat16())):
        watch = penchant.watch(net, inputs, labels=y, learning_rate=0.1, measure="all")
        assert watch.failures == ()
        seen.append(watch.dataset.isel(time=0))
    for name in ("edge", "gradient_norm", "unit_size"):
        np.testing.assert_allclose(seen[1][name], seen[0][name], rtol=0.1, err_msg=name)


@pytest.mark.filterwarnings("ignore:.*overflow.*")
def test_a_run_that_diverges_has_no_numbers_of_the_panel_and_one_reason():
    torch.manual_seed(0)
    model, (x, y) = mlp(6, 8, 3, activation=nn.ReLU), data()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e30)
    watch = trained(model, optimizer, x, y, 4, lambda out, y: F.cross_entropy(1e10 * out, y),
                    measure="all", raise_errors=False)  # fmt: skip
    assert not [f for f in watch.failures if f.kind in MEASURES]
    assert any("diverged" in f.sentence for f in watch.failures)
    assert np.isnan(watch.dataset.unit_size.values[-1]).all()


def test_a_language_model_gives_its_own_loss():
    """Random sums replace 630 outputs, and the loss is one of all of them, without labels."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(90, 4), nn.Linear(4, 90))
    ids = torch.randint(90, (10, 7))

    def loss(logits):
        return F.cross_entropy(logits[:, :6].flatten(0, 1), ids[: len(logits), 1:].flatten())

    watch = penchant.watch(model, ids, measure="edge", loss=loss, learning_rate=0.1,
                           raise_errors=True)  # fmt: skip
    params = {n: p.detach() for n, p in model.named_parameters()}

    def flat_loss(flat):
        parts = flat.split([p.numel() for p in params.values()])
        held = {n: v.view_as(p) for v, (n, p) in zip(parts, params.items(), strict=True)}
        return loss(torch.func.functional_call(model, held, (ids,)))

    flat = torch.cat([p.reshape(-1) for p in params.values()])
    top = np.linalg.eigvalsh(torch.func.hessian(flat_loss)(flat).double().numpy())[-1]
    assert float(watch.dataset.edge[0]) == pytest.approx(0.05 * top, rel=0.02)


def test_jax_has_all_but_the_hooks():
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((24, 5)), rng.standard_normal(24)
    w = {"inner": rng.standard_normal((5, 6)), "outer": rng.standard_normal((6, 1))}

    def net(w, x):
        return (jax.numpy.maximum(x @ w["inner"], 0) @ w["outer"])[:, 0]

    names = ["edge", "updates", "noise", "balance"]
    watch = penchant.watch(net, x, parameters=w, labels=y, measure=names, learning_rate=0.02,
                           raise_errors=True, budget=None)  # fmt: skip
    slope = jax.grad(lambda w: jax.numpy.mean((net(w, x) - y) ** 2))
    step = {name: value - 0.02 * slope(w)[name] for name, value in w.items()}
    watch(1, step)
    seen = watch.dataset
    flat, back = importlib.import_module("jax.flatten_util").ravel_pytree(w)
    H = jax.hessian(lambda v: jax.numpy.mean((net(back(v), x) - y) ** 2))(flat)
    assert float(seen.edge[0]) == pytest.approx(0.01 * np.linalg.eigvalsh(H)[-1], rel=0.01)
    change = np.linalg.norm(step["outer"] - w["outer"]) / np.linalg.norm(w["outer"])
    assert float(seen.update_share[1, 1]) == pytest.approx(float(change), rel=1e-4)
    assert seen.sizes["pair"] == 1
    assert float(seen.balance_drift[1, 0]) > 0
    with pytest.raises(ValueError, match="forward hooks"):
        penchant.watch(net, x, parameters=w, labels=y, measure="activations")
