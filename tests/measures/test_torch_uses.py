"""Every way in which an operation of torch uses a parameter, against torch.func in float64."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
from penchant.measures.kernels.blocks import blocked_kernel

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from penchant.measures.torch import tape as tapes  # noqa: E402
from penchant.measures.torch.gradients import TorchGradients  # noqa: E402
from penchant.measures.torch.module import TorchFunction, torch_inputs  # noqa: E402
from penchant.measures.torch.quiet import plain_attention  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
FEW = settings(deadline=None, derandomize=True, max_examples=15)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


class Net(nn.Module):
    """A module with the parts and the forward pass given."""

    def __init__(self, run, **parts):
        super().__init__()
        self.run = run
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.run(self, x)


class Conv1D(nn.Module):
    """That of Transformers: a weight (inputs, outputs), and all vectors of all samples at once."""

    def __init__(self, outputs, inputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs))
        self.bias = nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        found = torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight)
        return found.view(*x.shape[:-1], -1)


def parameter(*shape):
    return nn.Parameter(torch.randn(shape))


def read(x):
    """Three numbers of every sample, which weigh all entries differently."""
    flat = x.flatten(1)
    weights = torch.cos(torch.arange(flat.shape[1] * 3.0, dtype=x.dtype)).reshape(-1, 3)
    return torch.tanh(flat) @ weights


def normal(*shape):
    return lambda: torch.randn(*shape)


def tokens(*shape):
    return lambda: torch.randint(9, shape)


def learned_norm(m, x):
    return read(m.scale * x / (x.square().mean(-1, keepdim=True) + m.eps).sqrt())


def vision(m, x):
    x = torch.cat([m.cls.expand(len(x), -1, -1), x], dim=1) + m.position
    return read(m.norm(x))


def positions(m, x):
    return read(m.table(x) + m.position(torch.arange(x.shape[1])[None]))


def encoder(first):
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=not first)
    turn = (lambda x: x.transpose(0, 1)) if first else (lambda x: x)
    return Net(lambda m, x: read(turn(m.layer(turn(x)))), layer=layer)


def cross(m, x):
    return read(m.attention(x, m.keys.expand(len(x), -1, -1), m.keys.expand(len(x), -1, -1))[0])


def frozen(module, *names):
    for name in names:
        module.get_parameter(name).requires_grad_(False)
    return module


def norm(module):
    return Net(lambda m, x: read(m.norm(x)), norm=module)


def tied():
    net = Net(lambda m, x: m.head(torch.tanh(m.table(x))).flatten(1),
              table=nn.Embedding(9, 5), head=nn.Linear(5, 9, bias=False))  # fmt: skip
    net.head.weight = net.table.weight
    return net


def embedded(table):
    return Net(lambda m, x: read(m.table(x)), table=table)


# name: (module, inputs, parameters whose gradients torch.func computes)
CASES = {
    "linear": (lambda: nn.Linear(5, 3), normal(6, 5), []),
    "linear of sequences": (
        lambda: Net(lambda m, x: read(m.a(x)), a=nn.Linear(4, 6)), normal(5, 3, 4), []
    ),
    "matrix product": (
        lambda: Net(lambda m, x: read(x @ m.w), w=parameter(4, 6)), normal(5, 4), []
    ),
    "conv1d of transformers": (
        lambda: Net(lambda m, x: read(m.c(x)), c=Conv1D(6, 4)), normal(5, 3, 4), []
    ),
    "times outside": (
        lambda: Net(lambda m, x: read(m.a(x.transpose(0, 1).reshape(-1, 4))
                                      .reshape(3, -1, 6).transpose(0, 1)), a=nn.Linear(4, 6)),
        normal(5, 3, 4), [],
    ),
    "layer norm": (lambda: norm(nn.LayerNorm(4)), normal(5, 3, 4), []),
    "layer norm of two axes": (lambda: norm(nn.LayerNorm((3, 4))), normal(5, 2, 3, 4), []),
    "layer norm without bias": (lambda: norm(nn.LayerNorm(4, bias=False)), normal(5, 3, 4), []),
    "layer norm without parameters": (
        lambda: Net(lambda m, x: m.a(m.norm(x)), norm=nn.LayerNorm(4, elementwise_affine=False),
                    a=nn.Linear(4, 2)),
        normal(5, 4), [],
    ),
    "rms norm": (lambda: norm(nn.RMSNorm(4)), normal(5, 3, 4), []),
    "group norm": (lambda: norm(nn.GroupNorm(2, 4)), normal(5, 4, 3), []),
    "batch norm": (lambda: norm(nn.BatchNorm2d(4)), normal(5, 4, 3, 2), []),
    "learned norm": (
        lambda: Net(learned_norm, scale=parameter(4), eps=nn.Parameter(torch.ones(1))),
        normal(5, 3, 4), [],
    ),
    "embedding": (lambda: embedded(nn.Embedding(9, 4)), tokens(6, 5), []),
    "more times than rows": (lambda: embedded(nn.Embedding(9, 4)), tokens(6, 12), []),
    "padding": (lambda: embedded(nn.Embedding(9, 4, padding_idx=2)), tokens(6, 5), []),
    "padding from the end": (
        lambda: embedded(nn.Embedding(9, 4, padding_idx=-7)), tokens(6, 5), []
    ),
    "tied weights": (tied, tokens(6, 4), []),
    "positions as an embedding": (
        lambda: Net(positions, table=nn.Embedding(9, 4), position=nn.Embedding(8, 4)),
        tokens(6, 5), [],
    ),
    "class token and positions": (
        lambda: Net(vision, cls=parameter(1, 1, 4), position=parameter(1, 4, 4),
                    norm=nn.LayerNorm(4)),
        normal(5, 3, 4), [],
    ),
    "a scale for all": (lambda: Net(lambda m, x: read(x * m.s), s=parameter()), normal(5, 4), []),
    "as many times as samples": (
        lambda: Net(lambda m, x: read(x * m.s + m.p), s=parameter(4), p=parameter(2, 4)),
        normal(6, 2, 4), [],
    ),
    "one layer three times": (
        lambda: Net(lambda m, x: read(m.a(torch.tanh(m.a(torch.tanh(m.a(x)))))), a=nn.Linear(4, 4)),
        normal(5, 3, 4), [],
    ),
    "convolution": (
        lambda: Net(lambda m, x: read(torch.relu_(m.b(torch.relu_(m.a(x))))),
                    a=nn.Conv2d(2, 3, 3, 2, 1), b=nn.Conv2d(3, 2, (2, 1), bias=False, dilation=2)),
        normal(5, 2, 7, 6), [],
    ),
    "convolution in groups": (
        lambda: Net(lambda m, x: read(m.b(torch.tanh(m.a(x)))), a=nn.Conv2d(4, 6, 3, groups=2),
                    b=nn.Conv2d(6, 6, 2, padding="same", groups=6, dilation=(1, 2))),
        normal(5, 4, 6, 5), [],
    ),
    "frozen": (
        lambda: frozen(Net(lambda m, x: read(m.norm(m.a(x))), norm=nn.LayerNorm(4),
                           a=nn.Linear(4, 4)), "a.weight", "norm.bias"),
        normal(5, 3, 4), [],
    ),
    "an unused layer": (
        lambda: Net(lambda m, x: m.a(x), a=nn.Linear(4, 2), b=nn.Linear(4, 2)), normal(5, 4), []
    ),
    "a head of zeros": (
        lambda: Net(lambda m, x: m.head(torch.tanh(m.a(x)).mean(1)), a=nn.Linear(4, 5),
                    head=nn.Linear(5, 2)),
        normal(5, 3, 4), [],
    ),
    "attention": (lambda: encoder(False), normal(5, 3, 8), []),
    "attention with times first": (lambda: encoder(True), normal(5, 3, 8), []),
    "attention to learned keys": (
        lambda: Net(cross, attention=nn.MultiheadAttention(4, 2, batch_first=True),
                    keys=parameter(1, 3, 4)),
        normal(5, 3, 4), ["attention.in_proj_weight", "attention.in_proj_bias"],
    ),
    "a transposed weight": (
        lambda: Net(lambda m, x: read(torch.einsum("nk,ok->no", x, m.w)), w=parameter(6, 4)),
        normal(5, 4), ["w"],
    ),
    "a computed weight": (
        lambda: Net(lambda m, x: read(functional.linear(x, m.w / m.w.norm(), m.b)),
                    w=parameter(6, 4), b=parameter(6)),
        normal(5, 4), [],
    ),
    "a slice of the positions": (
        lambda: Net(lambda m, x: read(x + m.p[: x.shape[1]]), p=parameter(6, 4)),
        normal(9, 3, 4), [],
    ),
    "all of the positions": (
        lambda: Net(lambda m, x: read(x + m.p[: x.shape[1]]), p=parameter(3, 4)),
        normal(9, 3, 4), [],
    ),
    "rows of positions in a slice": (
        lambda: Net(lambda m, x: read(x + m.p(torch.arange(6))[None, : x.shape[1]]),
                    p=nn.Embedding(6, 4)),
        normal(9, 3, 4), [],
    ),
    "two parameters in one value": (
        lambda: Net(lambda m, x: read(x * (m.a * m.b.exp()) + m.a), a=parameter(4), b=parameter(1)),
        normal(5, 3, 4), [],
    ),
    "times first": (
        lambda: Net(lambda m, x: read((x.transpose(0, 1) * m.s + m.p).transpose(0, 1)),
                    s=parameter(4), p=parameter(3, 1, 4)),
        normal(5, 3, 4), [],
    ),
    "all vectors in one axis": (
        lambda: Net(lambda m, x: read((x.flatten(0, 1) * m.s).reshape(x.shape)), s=parameter(4)),
        normal(5, 3, 4), [],
    ),
    "in place": (
        lambda: Net(lambda m, x: read(x.clone().mul_(m.s).add_(m.s)), s=parameter(4)),
        normal(5, 3, 4), [],
    ),
    "where and lerp": (
        lambda: Net(lambda m, x: read(torch.lerp(torch.where(x > 0, m.a, x), -x, m.b)),
                    a=parameter(4), b=parameter(3, 1)),
        normal(5, 3, 4), [],
    ),
    "a repeated token": (
        lambda: Net(lambda m, x: read(torch.cat([m.t.repeat(len(x), 2, 1), x], dim=1)),
                    t=parameter(1, 1, 4)),
        normal(5, 3, 4), [],
    ),
    "a detached value": (
        lambda: Net(lambda m, x: read(x * m.s.detach() + m.s[:1]), s=parameter(4)),
        normal(5, 3, 4), [],
    ),
    "a weight norm": (
        lambda: Net(lambda m, x: read(functional.linear(x, m.g * m.v / m.v.norm(dim=1)[:, None])),
                    g=parameter(6, 1), v=parameter(6, 4)),
        normal(9, 4), [],
    ),
    "a symmetric weight": (
        lambda: Net(lambda m, x: read(x @ (m.w + m.w.T)), w=parameter(4, 4)), normal(5, 4), []
    ),
    "parts of one array": (
        lambda: Net(lambda m, x: read(functional.linear(x, *m.w.split([4, 1], dim=1)[:1],
                                                        m.w[:, 4])), w=parameter(6, 5)),
        normal(5, 4), [],
    ),
}  # fmt: skip


def jacobians(module, x):
    """{name: (samples, outputs, size)} by torch.func.jacrev of the whole batch in float64."""
    still = copy.deepcopy(module).double().eval()
    trained = {n: p.detach() for n, p in still.named_parameters() if p.requires_grad}
    x = x.double() if x.is_floating_point() else x
    with plain_attention():
        found = torch.func.jacrev(lambda p: torch.func.functional_call(still, p, (x,)))(trained)
    return {name: part.reshape(*part.shape[:2], -1).numpy() for name, part in found.items()}


def gradients_of(module, x, **options):
    function = TorchFunction(module)
    rows = torch_inputs(function, "x", x)
    with torch.no_grad():
        outputs = module.eval()(x).shape[1]
    return TorchGradients(function, rows, outputs, None, **options), rows


@pytest.mark.parametrize("name", CASES)
def test_every_parameter_has_the_kernel_of_its_jacobian(name):
    build, draw, _ = CASES[name]
    module, x, x2 = build(), draw(), draw()[:3]
    first, second = jacobians(module, x), jacobians(module, x2)
    for outputs, form in (("full", "ncp,mdp->ncmd"), ("mean", "ncp,mcp->nm")):
        found = penchant.measures.tangent_kernel(
            module, x, x2, outputs=outputs, layers=True, precision="double"
        )
        assert list(found) == list(first)
        for part, kernel in found.items():
            expected = np.einsum(form, first[part], second[part])
            expected = expected / (first[part].shape[1] if outputs == "mean" else 1)
            atol = 1e-9 * max(np.abs(expected).max(), 1e-3)
            np.testing.assert_allclose(kernel, expected, rtol=0, atol=atol, err_msg=part)


@pytest.mark.parametrize("name", CASES)
def test_which_gradients_torch_func_computes(name):
    build, draw, left = CASES[name]
    gradients, x = gradients_of(build(), draw())
    assert gradients.rest == left
    assert gradients.block(x, len(x)).rows or gradients.block(x, len(x)).layers


@pytest.mark.parametrize("name", ["tied weights", "attention", "convolution", "padding"])
def test_outputs_in_turns_give_the_same(name):
    build, draw, _ = CASES[name]
    x = draw()
    gradients, x = gradients_of(build().double(), x.double() if x.is_floating_point() else x)
    J = np.concatenate(list(jacobians(gradients.function.module, x).values()), axis=2)
    for c, one in enumerate(gradients.singles()):
        found = blocked_kernel(one, x, None, False, 1e8)
        np.testing.assert_allclose(found, J[:, c] @ J[:, c].T, rtol=1e-9, atol=1e-9)
    assert c == J.shape[1] - 1


def test_a_head_of_zeros_hides_no_wrong_order():
    """At a start where no gradient goes below the head, later gradients are right, too."""
    build, draw, _ = CASES["a head of zeros"]
    module, x = build().double(), draw().double()
    nn.init.zeros_(module.head.weight)
    gradients, rows = gradients_of(module, x)
    assert not gradients.rest
    with torch.no_grad():
        module.head.weight.normal_()
    gradients.move(None)
    found = blocked_kernel(gradients, rows, None, False, 1e8)
    J = np.concatenate(list(jacobians(module, x).values()), axis=2)
    np.testing.assert_allclose(found, np.einsum("ncp,mcp->nm", J, J) / 2, rtol=1e-9)


def test_a_wrong_order_of_samples_would_be_seen():
    """The control: with samples and times exchanged the kernel is another one."""
    build, draw, _ = CASES["times outside"]
    module, x = build().double(), draw().double()
    gradients, rows = gradients_of(module, x)
    (step,) = gradients.plan.steps
    assert step.layout == (0, 3, True)
    right = gradients.block(rows, 5).rows["a.weight"]
    gradients.plan.steps[0] = step._replace(layout=step.layout._replace(inner=False))
    wrong = gradients.block(rows, 5).rows["a.weight"]
    J = jacobians(module, x)["a.weight"]
    np.testing.assert_allclose(right, J, rtol=1e-9, atol=1e-12)
    assert np.abs(wrong - J).max() > 0.1 * np.abs(J).max()


def test_samples_that_take_another_branch_are_computed_otherwise():
    def run(m, x):
        h = m.a(x)
        return m.b(h) if bool((x > 10).any()) else torch.tanh(h)

    module = Net(run, a=nn.Linear(3, 3), b=nn.Linear(3, 3)).double()
    x = torch.randn(4, 3).double()
    gradients, rows = gradients_of(module, x)
    assert gradients.plan.idle == ("b.bias", "b.weight")
    far = rows + 100
    found = gradients.block(far, 4)
    assert set(gradients.rest) == {"a.weight", "a.bias", "b.weight", "b.bias"}
    for name, J in jacobians(module, far).items():
        np.testing.assert_allclose(found.rows[name], J, rtol=1e-9)


def test_functions_of_torch_are_put_back():
    linear = functional.linear
    gradients_of(CASES["attention"][0](), torch.randn(5, 3, 8))
    assert functional.linear is linear

    def fails(m, x):
        m.layer(x)
        raise RuntimeError("stop")

    module = Net(fails, layer=nn.TransformerEncoderLayer(8, 2, 12, batch_first=True))
    with (
        pytest.raises(RuntimeError, match="stop"),
        tapes.ParameterTrace(dict(module.named_parameters())),
    ):
        module(torch.randn(2, 3, 8))
    assert functional.linear is linear


@FEW
@given(
    samples=st.integers(1, 5),
    times=st.integers(1, 6),
    width=st.sampled_from([2, 4]),
    rows=st.integers(2, 7),
    seed=st.integers(0, 1000),
)
def test_a_small_transformer_of_any_shape(samples, times, width, rows, seed):
    torch.manual_seed(seed)

    def run(m, x):
        h = m.table(x) + m.position[:, : x.shape[1]]
        h = m.norm(h + m.mix(torch.tanh(m.up(h))))
        return functional.linear(h, m.table.weight).mean(dim=1)

    module = Net(
        run,
        table=nn.Embedding(rows, width),
        position=parameter(1, 6, width),
        norm=nn.LayerNorm(width),
        up=nn.Linear(width, 3),
        mix=Conv1D(width, 3),
    )
    x = torch.randint(rows, (samples, times))
    found = penchant.measures.tangent_kernel(
        module, x, outputs="full", precision="double", layers=True
    )
    assert not gradients_of(module, x)[0].rest
    for name, J in jacobians(module, x).items():
        expected = np.einsum("ncp,mdp->ncmd", J, J)
        np.testing.assert_allclose(found[name], expected, rtol=1e-7, atol=1e-9, err_msg=name)


def test_positions_of_an_embedding_stay_factors():
    """Whole gradients in a long table would be mostly zeros, and take its size for every sample."""
    module = Net(positions, table=nn.Embedding(9, 4), position=nn.Embedding(500, 4))
    gradients, x = gradients_of(module, torch.randint(9, (6, 5)))
    block = gradients.block(x, len(x))
    assert set(block.layers) == {"table.weight", "position.weight"}
    assert sum(part.nbytes for pair in block.layers.values() for part in pair) < 500 * 4 * 4
