"""The watch on torch modules: the same kernels as JAX, any layer, and nothing left behind."""

import copy
import math
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from penchant import load, watch  # noqa: E402
from penchant.measures import kernel_distance  # noqa: E402
from penchant.watch.backends.backend import LookOptions  # noqa: E402
from penchant.watch.backends.jax_backend import JaxBackend  # noqa: E402
from penchant.watch.backends.torch_backend import TorchBackend  # noqa: E402

ALWAYS = {"budget": None, "raise_errors": True}


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


class Tied(nn.Module):
    """Tokens in, one embedding at both ends: integer inputs and a shared weight."""

    def __init__(self):
        super().__init__()
        self.embed, self.mix = nn.Embedding(7, 5), nn.Linear(5, 5)
        self.head = nn.Linear(5, 7, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(torch.tanh(self.mix(self.embed(x).mean(dim=1))))


class Reused(nn.Module):
    """One layer called twice, and a weight used behind the back of its layer."""

    def __init__(self):
        super().__init__()
        self.twice, self.once, self.free = nn.Linear(6, 6), nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x):
        h = torch.tanh(self.twice(torch.tanh(self.twice(x))))
        return self.free(h) * functional.linear(x, self.free.weight) + self.once(h)


class Branching(nn.Module):
    """Control flow on the data and an operation in place, which torch.func refuses to batch."""

    def __init__(self):
        super().__init__()
        self.scale, self.linear = nn.Parameter(torch.rand(6) + 0.5), nn.Linear(6, 2)

    def forward(self, x):
        rows = [row * self.scale if row.sum() > 0 else -row * self.scale**2 for row in x]
        return self.linear(torch.stack(rows))


class Mixed(nn.Module):
    """float32, float64 and bfloat16 in one model."""

    def __init__(self):
        super().__init__()
        self.single, self.wide = nn.Linear(6, 5), nn.Linear(5, 4).double()
        self.short = nn.Linear(4, 3).bfloat16()

    def forward(self, x):
        h = torch.tanh(self.wide(torch.tanh(self.single(x)).double()))
        return self.short(h.bfloat16()).float()


class Sequence(nn.Module):
    """Layers over a sequence, with its axis first or second."""

    def __init__(self, first):
        super().__init__()
        self.first, self.inner, self.outer = first, nn.Linear(6, 40), nn.Linear(40, 2)

    def forward(self, x):
        h = x.transpose(0, 1) if self.first else x
        h = self.outer(torch.tanh(self.inner(h)))
        return h.mean(dim=0 if self.first else 1)


class ByName(nn.Module):
    """A layer whose input is given by name, and one whose input is not."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(6, 9), nn.Linear(9, 2)

    def forward(self, x):
        return self.outer(torch.tanh(self.inner(input=x)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.layer(x)[:, -1])


def convolutional():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 5, 2, bias=False),
        nn.GroupNorm(1, 5), nn.Tanh(), nn.Flatten(), nn.Dropout(0.5), nn.Linear(20, 3),
    )  # fmt: skip


def convolutions():
    """Strides, dilation and padding that patches know, and groups and circles that they do not."""
    return nn.Sequential(
        nn.Conv2d(2, 4, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2)), nn.Tanh(),
        nn.Conv2d(4, 4, 3, padding=1, groups=2), nn.Conv2d(4, 3, 3, padding="same"),
        nn.Conv2d(3, 3, 3, padding=1, padding_mode="circular"), nn.Conv2d(3, 2, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip


def perceptron(inputs=6, width=20, outputs=3):
    return nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, outputs))


CASES = {
    "perceptron": (perceptron, lambda: torch.randn(8, 6)),
    "one output without an axis": (
        lambda: nn.Sequential(perceptron(outputs=1), nn.Flatten(0)),
        lambda: torch.randn(8, 6),
    ),
    "convolutional": (convolutional, lambda: torch.randn(8, 2, 5, 5)),
    "convolutions": (convolutions, lambda: torch.randn(8, 2, 5, 5)),
    "tied": (Tied, lambda: torch.randint(7, (8, 4))),
    "by name": (ByName, lambda: torch.randn(8, 6)),
    "reused": (Reused, lambda: torch.randn(8, 6)),
    "branching": (Branching, lambda: torch.randn(8, 6)),
    "mixed": (Mixed, lambda: torch.randn(8, 6)),
    "sequence": (lambda: Sequence(False), lambda: torch.randn(8, 5, 6)),
    "sequence first": (lambda: Sequence(True), lambda: torch.randn(8, 8, 6)),
    "attention": (Attention, lambda: torch.randn(8, 5, 8)),
}


def jacobian(module, x):
    """(samples, outputs, parameters) by one backward pass per output of every sample."""
    module, rows = copy.deepcopy(module).eval(), []
    params = list(module.parameters())
    for sample in x:
        for output in module(sample[None]).reshape(-1):
            found = torch.autograd.grad(output, params, retain_graph=True, materialize_grads=True)
            rows.append(np.concatenate([g.double().numpy().ravel() for g in found]))
    return np.array(rows).reshape(len(x), -1, rows[0].size)


def change(module, size=0.1):
    """Moves all parameters, as training would: in place."""
    with torch.no_grad():
        for value in module.parameters():
            value += size * torch.randn_like(value)


def flat(module):
    return np.concatenate([p.detach().double().numpy().ravel() for p in module.parameters()])


@pytest.mark.parametrize("name", CASES)
def test_kernel_and_linearized_model_by_a_second_route(name):
    build, draw = CASES[name]
    module, x = build(), draw()
    change(module)
    low = 5e-3 if name == "mixed" else 2e-5  # bfloat16 rounds gradients to three digits
    backend, J0, theta0 = TorchBackend(module, x, LookOptions()), jacobian(module, x), flat(module)
    count = J0.shape[1]
    K0 = np.einsum("ncp,mcp->nm", J0, J0) / count
    np.testing.assert_allclose(backend.kernels().sum(0), K0, atol=low * np.abs(K0).max())
    f0 = backend.outputs()
    change(module, 0.02)
    tangent = f0 + J0 @ (flat(module) - theta0)
    moved = np.abs(tangent - f0).max()
    np.testing.assert_allclose(backend.linearized(), tangent, atol=max(5 * low, 1e-4) * moved)
    backend.forward = False
    np.testing.assert_allclose(backend.linearized(), tangent, atol=max(5 * low, 1e-4) * moved)
    one = TorchBackend(module, x, LookOptions(count - 1))
    J1 = jacobian(module, x)
    K1 = np.einsum("np,mp->nm", J1[:, -1], J1[:, -1])
    np.testing.assert_allclose(one.kernels().sum(0), K1, atol=low * np.abs(K1).max())
    assert np.abs(K1 - K0).max() > 10 * low * np.abs(K1).max()  # the check can fail


def test_operations_in_place_leave_the_probe_inputs_alone():
    x = torch.randn(8, 6)
    module = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(6, 9), nn.ReLU(inplace=True),
                           nn.Linear(9, 2))  # fmt: skip
    backend = TorchBackend(module, x, LookOptions())
    J = jacobian(module, x.clone())
    np.testing.assert_allclose(
        backend.kernels().sum(0), np.einsum("ncp,mcp->nm", J, J) / 2, rtol=1e-4
    )
    assert torch.equal(backend.x, x)
    assert (x < 0).any()


@pytest.mark.parametrize("name", CASES)
def test_which_gradients_torch_func_computes(name):
    """Only one that depends on a branch."""
    build, draw = CASES[name]
    backend = TorchBackend(build(), draw(), LookOptions())
    assert backend.gradients.rest == (["scale"] if name == "branching" else [])
    assert backend.gradients.together == (name != "branching")


def test_gradients_too_large_to_hold_go_output_by_output(monkeypatch):
    module, x = convolutional(), torch.randn(8, 2, 5, 5)
    backend = TorchBackend(module, x, LookOptions())
    whole, passes, asked = backend.kernels(), [], []
    block, forward = backend.gradients.block, backend.function.run
    monkeypatch.setattr(backend.function, "run", lambda *a: passes.append(0) or forward(*a))
    monkeypatch.setattr(
        backend.gradients, "block", lambda *a: asked.append(backend.gradients.selected) or block(*a)
    )
    memory = 3.5 * len(x) * backend.gradients.held
    monkeypatch.setattr("penchant.watch.backends.torch_backend.MEMORY", memory)
    np.testing.assert_allclose(backend.kernels(), whole, rtol=1e-4, atol=1e-6)
    assert asked[-3:] == [0, 1, 2]
    assert len(passes) <= 2  # one forward pass for all outputs, and one to measure the cost
    assert backend.gradients.selected is None
    assert backend.gradients.last is None


# torch and JAX


def twin(params, x):
    h = jnp.tanh(x @ params["0.weight"].T + params["0.bias"])
    return h @ params["2.weight"].T + params["2.bias"]


def convolutional_twin(params, x):
    h = jax.lax.conv(x, params["0.weight"], (1, 1), "VALID") + params["0.bias"][:, None, None]
    h = jnp.tanh(h).reshape(len(x), -1)
    return h @ params["3.weight"].T + params["3.bias"]


def arrays(module):
    return {name: value.detach().numpy().copy() for name, value in module.named_parameters()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["perceptron", "convolutional"])
def test_torch_and_jax_give_the_same_kernel_distance(kind, dtype):
    if kind == "perceptron":
        module, x, apply = perceptron(width=64).to(dtype), torch.randn(12, 6, dtype=dtype), twin
    else:
        module = nn.Sequential(nn.Conv2d(2, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(36, 3))
        module, x, apply = module.to(dtype), torch.randn(12, 2, 5, 5, dtype=dtype), None
        apply = convolutional_twin
    ours = TorchBackend(module, x, LookOptions())
    theirs = JaxBackend(apply, arrays(module), x.numpy(), LookOptions())
    first = ours.kernels().sum(0), theirs.kernels(arrays(module)).sum(0)
    for size in (1e-3, 0.1, 1.0):
        change(module, size)
        found = [
            kernel_distance(first[0], ours.kernels().sum(0)),
            kernel_distance(first[1], theirs.kernels(arrays(module)).sum(0)),
        ]
        assert found[0] == pytest.approx(found[1], abs=1e-6)
        np.testing.assert_allclose(
            ours.linearized(), theirs.linearized(arrays(module)), rtol=1e-3, atol=1e-3
        )
    assert found[0] > 1e-3
    mixed = kernel_distance(first[0], ours.kernels().sum(0) + 1e-2 * np.ones((12, 12)))
    assert mixed != pytest.approx(found[1], abs=1e-6)  # the tolerance can fail


def test_both_libraries_fill_one_record():
    module, x = perceptron(), torch.randn(12, 6)
    labels = torch.randint(3, (12,))
    ours = watch(module, x, labels=labels, **ALWAYS)
    theirs = watch(twin, x.numpy(), parameters=arrays(module), labels=labels.numpy(), **ALWAYS)
    change(module, 0.3)
    ours(1, train_loss=torch.tensor(1.5, requires_grad=True))
    theirs(1, arrays(module), train_loss=jnp.float32(1.5))
    a, b = ours.dataset, theirs.dataset
    a, b = (d.drop_vars("look_seconds").sortby("layer") for d in (a, b))
    assert set(a.variables) == set(b.variables)
    for name in a.data_vars:
        np.testing.assert_allclose(a[name], b[name], rtol=1e-4, atol=1e-4, err_msg=name)
    assert ours.regime.kind == theirs.regime.kind != "unknown"


# nothing is left behind


def states(module):
    """All that a watch could change by mistake."""
    return {
        "training": [part.training for part in module.modules()],
        "params": [p.detach().clone() for p in module.parameters()],
        "versions": [p._version for p in module.parameters()],
        "grads": [None if p.grad is None else p.grad.clone() for p in module.parameters()],
        "requires": [p.requires_grad for p in module.parameters()],
        "buffers": [b.clone() for b in module.buffers()],
        "hooks": [len(part._forward_hooks) for part in module.modules()],
        "random": [torch.get_rng_state()],
        "grad mode": torch.is_grad_enabled(),
        "fast path": torch.backends.mha.get_fastpath_enabled(),
    }


def same(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


@pytest.mark.parametrize("name", CASES)
def test_the_model_is_left_as_found(name):
    build, draw = CASES[name]
    module, x = build(), draw()
    next(module.children()).eval()  # a part that is frozen by its owner stays so
    module(x).sum().backward()
    before = states(module)
    seen = watch(module, x, **ALWAYS)
    seen(1, loss=1.0)
    after = states(module)
    assert {key for key in before if not same(before[key], after[key])} == set()
    change(module)
    torch.rand(1)
    changed = {key for key in before if not same(before[key], states(module)[key])}
    assert changed == {"params", "versions", "random"}  # so the comparison can tell


def test_a_forward_that_counts_in_its_buffers_is_undone():
    class Counting(nn.Linear):
        def __init__(self):
            super().__init__(6, 2)
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count += 1
            return super().forward(x)

    module = Counting()
    seen = watch(module, torch.randn(4, 6), **ALWAYS)
    seen(1)
    assert module.count == 0
    module(torch.randn(4, 6))
    assert module.count == 1


def trained(watching):
    """Losses of a short training with dropout and batch normalization, with or without a watch."""
    torch.manual_seed(1)
    module, x = convolutional(), torch.randn(40, 2, 5, 5)
    labels = torch.randint(3, (40,))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    seen = watch(module, x[:6], labels=labels[:6], **ALWAYS) if watching else None
    losses = []
    for step in range(12):
        at = torch.randperm(40)[:10]
        optimizer.zero_grad()
        loss = functional.cross_entropy(module(x[at]), labels[at])
        loss.backward()
        if watching == "between":
            seen(step + 1, train_loss=loss)
        optimizer.step()
        losses.append(loss.item())
        if watching == "after":
            seen(step + 1, train_loss=loss)
    return losses, seen


@pytest.mark.parametrize("where", ["between", "after"])
def test_training_is_the_same_to_the_last_bit(where):
    plain, _ = trained(None)
    watched, seen = trained(where)
    assert plain == watched
    assert seen.dataset.train_loss.values.tolist() == plain
    assert seen.dataset.sizes["time"] > 5
    assert seen.dataset.kernel_distance[-1] > 0
    assert "has dropout (7); looks are taken in eval mode" in seen.dataset.attrs["notes"][0]


@pytest.mark.parametrize(
    "mode",
    [
        torch.no_grad,
        torch.inference_mode,
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    ],
)
def test_calls_in_other_modes(mode):
    module, x = perceptron(), torch.randn(8, 6)
    kernel = TorchBackend(module, x, LookOptions()).kernels().sum(0)
    with mode():
        seen = watch(module, x, **ALWAYS)
        seen(1, loss=module(x).mean())
    np.testing.assert_allclose(seen.start.kernel, kernel, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.compile itself
def test_wrapped_modules_are_looked_into():
    module, x = perceptron(), torch.randn(8, 6)
    kernel = TorchBackend(module, x, LookOptions()).kernels().sum(0)
    for wrapped in (nn.DataParallel(module), torch.compile(module)):
        np.testing.assert_allclose(
            TorchBackend(wrapped, x, LookOptions()).kernels().sum(0), kernel, rtol=1e-6
        )


def test_frozen_layers_are_constants():
    module, x = perceptron(), torch.randn(8, 6)
    module[0].requires_grad_(False)
    seen = watch(module, x, **ALWAYS)
    assert list(seen.dataset.layer.values) == ["2.weight", "2.bias"]
    h = torch.tanh(module[0](x)).double().detach().numpy()
    np.testing.assert_allclose(seen.start.kernel, h @ h.T + 1, rtol=1e-5)
    assert "2 of 4 parameter arrays do not require gradients" in seen.dataset.attrs["notes"][0]


# bad input


class Odd(nn.Linear):
    """A linear layer with another forward pass."""

    def __init__(self, forward):
        super().__init__(6, 3)
        self.odd = forward

    def forward(self, x):
        return self.odd(super().forward, x)


ODD = {
    "two runs of the model in eval mode differ": lambda f, x: functional.dropout(f(x), 0.5),
    "must not depend on the others": lambda f, x: f(x - x.mean(dim=0)),
    "must return one tensor of real numbers, got tuple": lambda f, x: (f(x), x),
    "must return one tensor of real numbers, got torch.int64": lambda f, x: f(x).argmax(dim=1),
    r"one row of numbers per probe input, got shape \(\) for 8 inputs": lambda f, x: f(x).sum(),
}


@pytest.mark.parametrize(("rule", "forward"), ODD.items(), ids=range(len(ODD)))
def test_an_odd_forward_pass_is_refused(rule, forward):
    with pytest.raises(ValueError, match=rule):
        watch(Odd(forward), torch.randn(8, 6))


@pytest.mark.parametrize(
    ("build", "options", "rule"),
    [
        (lambda: perceptron().requires_grad_(False), {}, "no parameter of the model requires"),
        (perceptron, {"probe_inputs": torch.ones(8, 6, device="meta")}, "on meta but the model is"),
        (perceptron, {"probe_inputs": torch.ones(8, 6).double()}, r"float64 but the parameters"),
        (perceptron, {"probe_inputs": torch.ones(8, 6).half()}, r"float16 but the parameters"),
        (perceptron, {"probe_inputs": torch.ones(8, 6).int()}, "does not run on probe_inputs"),
        (perceptron, {"probe_inputs": {1, 2}}, "a tuple or mapping of such arrays, got a set"),
        (perceptron, {"probe_inputs": (torch.ones(8, 6), torch.ones(7))}, "arrays of 7, 8 rows"),
        (perceptron, {"probe_inputs": torch.ones(8, 5)}, "does not run on probe_inputs"),
        (Tied, {"probe_inputs": torch.ones(8, 4)}, "does not run on probe_inputs"),
        (lambda: nn.Linear(6, 3, dtype=torch.complex64), {}, "must be real numbers, got torch.com"),
        (perceptron, {"probe_inputs": torch.ones(0, 6)}, "one sample per row"),
        (perceptron, {"probe_inputs": torch.full((2, 6), math.nan)}, "must be finite"),
        (perceptron, {"parameters": {}}, "read from the torch module itself"),
        (perceptron, {"output": 3}, "outputs must be below 3"),
        (perceptron, {"labels": torch.ones(3)}, "need as many labels, got 3"),
        (lambda: nn.Sequential(nn.LazyLinear(3)), {}, "has no shape yet; run the model once"),
        (lambda: nn.Linear(6, 3, device="meta"), {}, "has no numbers"),
    ],
)
def test_bad_input_speaks_at_the_door(build, options, rule):
    with pytest.raises(ValueError, match=rule):
        watch(build(), **({"probe_inputs": torch.randn(8, 6)} | options))


def test_arrays_are_brought_to_the_dtype_of_the_model():
    module, x = perceptron(), np.random.default_rng(0).standard_normal((8, 6))
    seen = watch(module, x, **ALWAYS)
    same = watch(module, torch.as_tensor(x).float(), **ALWAYS)
    np.testing.assert_array_equal(seen.start.kernel, same.start.kernel)


def widened(module):
    module[2] = nn.Linear(20, 3).double()


def resized(module):
    module[0], module[2] = nn.Linear(6, 10), nn.Linear(10, 3)


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (
            lambda module: module[0].requires_grad_(False),
            r"not those of the start \(different: 0.bias, 0.weight\)",
        ),
        (widened, "parameter 2.weight has dtype torch.float64 instead of torch.float32"),
        (resized, r"parameter 0.weight has shape torch.Size\(\[10, 6\]\) instead of"),
        (lambda module: module.append(nn.Linear(3, 3)), r"different: 3.bias, 3.weight"),
        (lambda module: change(module, math.nan), "not finite any more"),
        (lambda module: module.to("meta"), r"parameter 0.weight has no numbers \(device meta\)"),
    ],
)
def test_a_changed_model_is_recorded_and_the_run_goes_on(spoil, rule):
    module, x = perceptron(), torch.randn(8, 6)
    seen, loud = (watch(module, x, budget=None, raise_errors=loud) for loud in (False, True))
    spoil(module)
    for step in (1, 2, 3):
        seen(step, loss=torch.tensor(float(step)))
    assert seen.dataset.loss.values.tolist() == [1, 2, 3]
    assert any(re.search(rule, f.sentence) and f.count == 3 for f in seen.failures)
    assert all(f.sentence.startswith("watch: ") for f in seen.failures)
    with pytest.raises(ValueError, match=rule):
        loud(1)


def test_parameters_and_odd_metrics_are_refused_in_a_sentence():
    module, x = perceptron(), torch.randn(8, 6)
    seen = watch(module, x, budget=None)
    seen(1, module.state_dict(), train_loss=torch.ones(3))
    sentences = sorted(failure.sentence for failure in seen.failures)
    assert "must be a single real number, got shape (3,)" in sentences[0]
    assert "the parameters are read from the torch module itself" in sentences[1]


class Moody(nn.Module):
    """A module whose forward pass fails when told to."""

    def __init__(self):
        super().__init__()
        self.linear, self.drop, self.mood = nn.Linear(6, 3), nn.Dropout(0.5), None

    def forward(self, x):
        if self.mood:
            raise self.mood
        return self.drop(self.linear(x))


@pytest.mark.parametrize("mood", [RuntimeError("out of memory"), MemoryError(), KeyError("x")])
def test_a_forward_pass_that_fails_leaves_training_as_it_was(mood):
    module = Moody().train()
    seen = watch(module, torch.randn(8, 6), budget=None)
    module.mood, before = mood, states(module)
    seen(1, train_loss=1.0)
    after = states(module)
    assert {key for key in before if not same(before[key], after[key])} == set()
    module.mood = None
    change(module)
    seen(2, train_loss=2.0)
    assert seen.dataset.train_loss.values.tolist() == [1, 2]
    assert np.isnan(seen.dataset.kernel_distance[1])
    assert seen.dataset.kernel_distance[2] >= 0
    assert {f.kind for f in seen.failures} == {"outputs", "tangent kernel"}
    assert all(type(mood).__name__ in f.sentence for f in seen.failures)


def test_a_training_loop_in_three_lines(tmp_path, capsys):
    """As in the README: made before the loop, called in it, asked for its report at the end."""
    module, x = perceptron(), torch.randn(60, 6)
    labels = (x[:, 0] > 0).long()
    # at this step size the linearized net, trained to the same loss, is 0.30 away: in between
    optimizer = torch.optim.SGD(module.parameters(), lr=0.2)
    seen = watch(module, x[:20], labels=labels[:20], budget=None)
    for step in range(1, 41):
        optimizer.zero_grad()
        loss = functional.cross_entropy(module(x), labels)
        loss.backward()
        optimizer.step()
        accuracy = (module(x).argmax(dim=1) == labels).float().mean()
        seen(step, train_loss=loss, train_accuracy=accuracy, test_accuracy=accuracy)
    found = seen.report(tmp_path / "run.nc")
    assert not seen.failures
    assert found.regime.kind == "leaving"
    out = " ".join(capsys.readouterr().out.split())
    assert f"regime leaving: {seen.regime.evidence}" in out
    assert load(tmp_path / "run.nc").identical(seen.dataset)
