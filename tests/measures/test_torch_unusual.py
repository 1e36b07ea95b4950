"""Torch modules that fused operations, torch.func or the compiler do not handle as usual ones."""

import copy
import tracemalloc
import warnings

import numpy as np
import pytest

import penchant

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn.utils import parametrizations  # noqa: E402

from penchant.measures.torch import gradients as torch_gradients  # noqa: E402
from penchant.measures.torch import plans  # noqa: E402
from penchant.watch.measures import read_labels  # noqa: E402
from support.torch_layers import CASES, Straight, packed  # noqa: E402
from support.torch_nets import make, net, parameter, read  # noqa: E402

SAMPLES = 50


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def recurrent(kind):
    parts = {"rnn": make(kind, 3, 4, batch_first=True), "head": make(nn.Linear, 4, 2)}
    return net(lambda m, x: m.head(m.rnn(x)[0][:, -1]), **parts)


def compiled():
    layer = make(nn.TransformerEncoderLayer, 4, 2, 6, batch_first=True)
    words = make(nn.Embedding, 9, 4)
    module = net(lambda m, x: read(m.layer(m.words(x))), words=words, layer=layer)()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, while it imports its compiler
        module.compile(backend="aot_eager")
    return module


def positioned(m, x):
    return read(m.words(x) + m.positions[: x.shape[1]])


def bag(**options):
    return net(lambda m, x: read(m.bag(x)), bag=make(nn.EmbeddingBag, 9, 4, **options))


def tokens(times=8):
    return lambda: torch.randint(9, (SAMPLES, times))


def normal(*shape):
    return lambda: torch.randn(SAMPLES, *shape)


def sequences():
    return torch.randn(SAMPLES, 5, 3), torch.randint(1, 6, (SAMPLES,))


UNUSUAL = {
    "lstm": (recurrent(nn.LSTM), normal(5, 3)),
    "gru": (recurrent(nn.GRU), normal(5, 3)),
    "rnn": (recurrent(nn.RNN), normal(5, 3)),
    "weight norm": (lambda: parametrizations.weight_norm(nn.Linear(30, 4)), normal(30)),
    "packed lstm": (net(packed, rnn=make(nn.LSTM, 3, 4, batch_first=True)), sequences),
    "slice of positions": (
        net(positioned, words=make(nn.Embedding, 9, 4), positions=parameter(8, 4)),
        tokens(),
    ),
    "sparse embedding": (
        net(lambda m, x: read(m.words(x)), words=make(nn.Embedding, 9, 4, sparse=True)),
        tokens(),
    ),
    "embedding bag": (bag(), tokens()),
    "sparse embedding bag": (bag(mode="sum", sparse=True), tokens()),
    "bounded embedding": (
        net(lambda m, x: read(m.words(x)), words=make(nn.Embedding, 9, 4, max_norm=0.5)),
        tokens(),
    ),
    "own backward": (net(lambda m, x: read(Straight.apply(x, m.w)), w=parameter(4)), normal(4)),
    "cdist": (net(lambda m, x: read(torch.cdist(x, m.c)), c=parameter(6, 4)), normal(4)),
    "compiled": (compiled, tokens()),
}


def jacobian(module, x):
    """(samples, outputs, parameters) by autograd in float64, one output of one sample at a time."""
    parts = [p.double() if p.is_floating_point() else p for p in (x if type(x) is tuple else (x,))]
    still = copy.deepcopy(module).double().eval()
    still._compiled_call_impl = None
    params, rows = list(still.parameters()), []
    for n in range(len(parts[0])):
        for output in still(*(part[n : n + 1] for part in parts)).reshape(-1):
            slopes = torch.autograd.grad(output, params, retain_graph=True, materialize_grads=True)
            rows.append(torch.cat([slope.to_dense().flatten() for slope in slopes]))
    return torch.stack(rows).reshape(len(parts[0]), -1, len(rows[0])).numpy()


def spoil_memory():
    """Fill freed memory with NaN, which whatever reads beyond an array then returns."""
    for power in range(4, 19):
        spoiled = [torch.full((2**power,), np.nan) for _ in range(4)]
        del spoiled


def require_alike(found, expected, share=1e-4):
    assert np.abs(found - expected).max() <= share * np.abs(expected).max()


def flat(module):
    return torch.cat([value.detach().double().flatten() for value in module.parameters()]).numpy()


@pytest.mark.parametrize("name", UNUSUAL)
def test_a_watch_measures_it_in_a_loop_and_leaves_it_alone(name):
    build, draw = UNUSUAL[name]
    module, x = build(), draw()
    before = [value.detach().clone() for value in module.parameters()]
    spoil_memory()
    watch = penchant.watch(module, x, budget=None, raise_errors=True)
    assert all(map(torch.equal, before, module.parameters()))
    start, first, outputs = jacobian(module, x), flat(module), watch.start.outputs
    with torch.no_grad():
        for value in module.parameters():
            value.add_(0.1 * torch.randn_like(value))
    watch(1)
    spoil_memory()
    now = jacobian(module, x)
    expected = np.einsum("ncp,mcp->nm", now, now) / now.shape[1]
    require_alike(watch.backend.kernels().sum(axis=0), expected)
    moved = start @ (flat(module) - first)
    require_alike(watch.backend.linearized() - outputs, moved, 2e-3)  # a small difference of two


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn", "weight norm"])
def test_a_fused_operation_gets_parameters_of_their_own_shape(name, monkeypatch):
    build, draw = UNUSUAL[name]
    module, x = build(), draw()
    shapes, seen = {tuple(value.shape) for value in module.parameters()}, set()
    home, called = (torch, "_weight_norm") if name == "weight norm" else (torch._VF, None)
    for function in [called] if called else ["lstm", "gru", "rnn_tanh"]:
        fused = getattr(home, function)

        def spy(*args, fused=fused):
            for value in args:
                several = value if isinstance(value, list | tuple) else [value]
                seen.update(tuple(v.shape) for v in several[-8:] if isinstance(v, torch.Tensor))
            return fused(*args)

        monkeypatch.setattr(home, function, spy)
    penchant.measures.tangent_kernel(module, x, outputs="mean")
    assert seen & shapes
    assert max(map(len, seen)) <= 3  # the inputs of a recurrent layer have three axes


@pytest.mark.parametrize("name", ["lstm", "weight norm"])
def test_calls_give_the_same_numbers_whatever_memory_holds(name):
    build, draw = UNUSUAL[name]
    module, x = build(), draw()
    found = []
    for _ in range(4):
        spoil_memory()
        found.append(penchant.measures.tangent_kernel(module, x, outputs="mean"))
    for kernel in found[1:]:
        np.testing.assert_array_equal(kernel, found[0])


def test_any_failure_of_a_planned_pass_leads_to_the_plain_one(monkeypatch):
    module, x = nn.Linear(4, 2), torch.randn(6, 4)
    expected = penchant.measures.tangent_kernel(module, x, outputs="mean")
    run = plans.Pass.derivatives

    def fails(self, goal):
        if len(self.outputs) > 2:
            raise IndexError("not a usual error")
        return run(self, goal)

    monkeypatch.setattr(plans.Pass, "derivatives", fails)
    require_alike(penchant.measures.tangent_kernel(module, x, outputs="mean"), expected, 1e-6)


def test_later_blocks_may_need_another_way():
    """The same function by other operations, from a sample of the third block on."""

    def run(m, x):
        h = torch.tanh(m.a(x))
        return h @ m.b.weight.T if bool((x > 50).any()) else m.b(h)

    module = net(run, a=make(nn.Linear, 3, 20), b=make(nn.Linear, 20, 2, bias=False))()
    x = torch.randn(300, 3)
    x[280] = 60.0
    J = jacobian(module, x)
    for rows in (x, x.flip(0)):
        spoil_memory()
        kernel = penchant.measures.tangent_kernel(module, rows, x, outputs="mean")
        own = J if rows is x else J[::-1]
        require_alike(kernel, np.einsum("ncp,mcp->nm", own, J) / 2)
    require_alike(
        penchant.measures.tangent_kernel(module, x, outputs="mean"),
        np.einsum("ncp,mcp->nm", J, J) / 2,
    )


def test_a_wrong_plan_is_noticed(monkeypatch):
    module, x = nn.Linear(4, 2), torch.randn(6, 4)
    expected = penchant.measures.tangent_kernel(module, x, outputs="mean")
    row = torch_gradients.TorchGradients._row
    monkeypatch.setattr(torch_gradients.TorchGradients, "_row", lambda *a: 1.01 * row(*a))
    require_alike(penchant.measures.tangent_kernel(module, x, outputs="mean"), expected, 1e-6)


def test_a_wrong_derivative_of_torch_func_is_noticed(monkeypatch):
    module, x = nn.Conv1d(2, 3, 2), torch.randn(6, 2, 4)
    wrapped = net(lambda m, x: read(m.layer(x)), layer=lambda: module)()
    expected = penchant.measures.tangent_kernel(wrapped, x, outputs="mean")
    right = torch.func.jacrev

    def wrong(run):
        return lambda *args: {n: 1.01 * part for n, part in right(run)(*args).items()}

    monkeypatch.setattr(torch.func, "jacrev", wrong)
    require_alike(penchant.measures.tangent_kernel(wrapped, x, outputs="mean"), expected, 1e-6)


class Unsteady(torch.autograd.Function):
    """A backward pass that is different in every call."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, slope):
        Unsteady.calls += 1
        return slope * (1 + Unsteady.calls)


class Missing(torch.autograd.Function):
    """No backward pass."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Unsteady, "autograd gives two different gradients of one sample in"),
        (Missing, "autograd has no gradients of the module"),
    ],
)
def test_a_module_without_steady_gradients_is_refused(kind, sentence):
    module = net(lambda m, x: kind.apply(m.layer(x)), layer=make(nn.Linear, 3, 2))()
    x = torch.randn(5, 3)
    with pytest.raises(ValueError, match=f"tangent_kernel: {sentence}"):
        penchant.measures.tangent_kernel(module, x, outputs="mean")
    with pytest.raises(ValueError, match=f"watch: {sentence}"):
        penchant.watch(module, x)


def test_hooks_that_set_weights_leave_the_module_as_it_was():
    module = nn.Linear(4, 3)
    nn.utils.prune.random_unstructured(module, "weight", amount=0.4)
    held = module.weight
    penchant.measures.tangent_kernel(module, torch.randn(6, 4), outputs="mean")
    assert module.weight is held


def peak_of(run):
    """What `run` returns, and the largest number of bytes that NumPy held meanwhile."""
    tracemalloc.start()
    try:
        return run(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_labels_of_fifty_thousand_classes_take_little_memory():
    classes = np.arange(SAMPLES) * 999
    labels, peak = peak_of(lambda: read_labels(classes, SAMPLES, 50_000))
    assert peak < 2**20
    np.testing.assert_array_equal(labels.classes, classes)
    kernel = penchant.measures.tangent_kernel(
        nn.Linear(3, 2), torch.randn(SAMPLES, 3), outputs="mean"
    )
    rows = np.zeros((SAMPLES, 50_000))
    rows[np.arange(SAMPLES), classes] = 1
    for centred in (False, True):
        few = penchant.measures.kernel_alignment(kernel, labels.values, centred=centred)
        many, peak = peak_of(
            lambda: penchant.measures.kernel_alignment(kernel, rows, centred=centred)  # noqa: B023
        )
        assert many == pytest.approx(few)
        assert peak < 8 * rows.nbytes


def test_a_watch_of_fifty_thousand_classes_takes_little_memory():
    module, x = nn.Linear(3, 50_000, bias=False), torch.randn(SAMPLES, 3)
    labels = torch.randint(50_000, (SAMPLES,))
    _, peak = peak_of(lambda: penchant.watch(module, x, labels=labels, budget=None))
    assert peak < 20 * SAMPLES * 50_000 * 8


@pytest.mark.parametrize("wrong", [-1, 7, 0.5])
def test_labels_that_are_no_classes_are_refused(wrong):
    with pytest.raises(ValueError, match="labels must be classes from 0 to 6"):
        read_labels([0, 1, wrong], 3, 7)


def test_linearize_refuses_in_a_sentence():
    build, draw = CASES["cdist"]
    module, x = build().double(), draw()
    with pytest.raises(ValueError, match="linearize: torch has neither forward nor second deriv"):
        penchant.models.linearize(module)(x)
    module = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True)
    x = torch.randn(5, 3, 4)
    torch.testing.assert_close(penchant.models.linearize(module)(x), module.eval()(x))
