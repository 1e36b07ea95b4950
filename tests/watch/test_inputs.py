"""Inputs and outputs as they are: mappings, several axes, many outputs, wrapped modules."""

import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import penchant  # noqa: E402
from penchant.lab import double_precision  # noqa: E402

ALWAYS = {"budget": None, "raise_errors": True}


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


class Answer(dict):
    """What models return that return several things."""

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name]


class Language(nn.Module):
    """Tokens and a mask in, logits at every place out, among other things."""

    def __init__(self, tokens=7, width=5, places=4):
        super().__init__()
        self.embed, self.place = nn.Embedding(tokens, width), nn.Embedding(places, width)
        self.head = nn.Linear(width, tokens)

    def forward(self, input_ids, mask=None, scale=1.0):
        h = torch.tanh(self.embed(input_ids) + self.place.weight * scale)
        h = h if mask is None else h * mask[..., None]
        return Answer(hidden=h, logits=self.head(h.cumsum(dim=1)))


def tokens(samples=8, places=4):
    ids = torch.randint(7, (samples, places))
    return {"input_ids": ids, "mask": (ids > 1).float(), "scale": 0.5}


def kernel_of(module, run, samples):
    """The mean kernel over all numbers of a sample, by one backward pass for each."""
    params, rows = list(module.parameters()), []
    for n in range(samples):
        for value in run(slice(n, n + 1)).reshape(-1):
            found = torch.autograd.grad(value, params, retain_graph=True, materialize_grads=True)
            rows.append(torch.cat([g.reshape(-1) for g in found]).double().numpy())
    J = np.array(rows).reshape(samples, -1, len(rows[0]))
    return np.einsum("ncp,mcp->nm", J, J) / J.shape[1]


OUTPUTS = {
    "by default the logits": (None, lambda answer: answer["logits"]),
    "by name": ("hidden", lambda answer: answer["hidden"]),
    "by a function": (lambda a: a.logits[:, -1], lambda answer: answer["logits"][:, -1]),
}


@pytest.mark.parametrize("case", OUTPUTS)
def test_a_mapping_goes_in_by_name_and_outputs_have_any_axes(case):
    output, pick = OUTPUTS[case]
    module, given = Language(), tokens()
    watch = penchant.watch(module, given, output=output, **ALWAYS)

    def run(at):
        return pick(module(given["input_ids"][at], given["mask"][at], scale=0.5))

    K = kernel_of(module, run, 8)
    np.testing.assert_allclose(watch.start.kernel, K, rtol=1e-5, atol=1e-5 * np.abs(K).max())
    with torch.no_grad():
        expected = run(slice(None)).reshape(8, -1).numpy()
    np.testing.assert_allclose(watch.start.outputs, expected, rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        for value in module.parameters():
            value += 0.3 * torch.randn_like(value)
    watch(1)
    assert watch.dataset.kernel_distance[-1] > 1e-3


def test_a_tuple_goes_in_by_place():
    module, given = Language(), tokens()
    named = penchant.watch(module, given, **ALWAYS)
    placed = penchant.watch(module, (given["input_ids"], given["mask"], 0.5), **ALWAYS)
    np.testing.assert_array_equal(named.start.kernel, placed.start.kernel)
    without = penchant.watch(module, (given["input_ids"],), **ALWAYS)
    assert not np.allclose(named.start.kernel, without.start.kernel)


def test_a_function_of_jax_gets_its_tree():
    random = np.random.default_rng(0)
    w = {"a": random.standard_normal((3, 2)), "b": random.standard_normal(2)}
    x = {"left": random.standard_normal((6, 3)), "right": random.standard_normal((6, 2))}

    def both(w, x):
        return {"sum": jnp.tanh(x["left"] @ w["a"]) * w["b"] + x["right"] * w["b"] ** 2}

    watch = penchant.watch(both, x, parameters=w, output="sum", **ALWAYS)
    joined = np.concatenate([x["left"], x["right"]], axis=1)
    plain = penchant.watch(
        lambda w, x: both(w, {"left": x[:, :3], "right": x[:, 3:]})["sum"],
        joined,
        parameters=w,
        **ALWAYS,
    )
    np.testing.assert_allclose(watch.start.kernel, plain.start.kernel, rtol=1e-12)
    np.testing.assert_allclose(watch.start.outputs, plain.start.outputs, rtol=1e-12)


def test_the_functions_take_mappings_too():
    module, given = Language().double(), tokens()
    given["mask"] = given["mask"].double()
    rows = {name: value[:3] if name != "scale" else value for name, value in given.items()}
    whole = penchant.measures.tangent_kernel(module, given, outputs="mean")
    part = penchant.measures.tangent_kernel(module, rows, given, outputs="mean")
    np.testing.assert_allclose(part, whole[:3], rtol=1e-10)

    def run(at):
        return module(given["input_ids"][at], given["mask"][at], scale=0.5)["logits"]

    np.testing.assert_allclose(whole, kernel_of(module, run, 8), rtol=1e-10)
    y = np.random.default_rng(0).standard_normal((3, 28))
    fit = penchant.measures.kernel_regression(module, rows, y)
    for _ in range(2):
        found = fit.predict(given)
    K = penchant.measures.tangent_kernel(module, given, rows, outputs="full")
    with torch.no_grad():
        f = run(slice(None)).reshape(8, 28).numpy()
    np.testing.assert_allclose(found, f + np.tensordot(K, fit.dual, axes=2), rtol=1e-8, atol=1e-8)
    assert len(fit.gradients.model.named_inputs) == 3


@pytest.mark.parametrize(
    ("output", "rule"),
    [
        ("prediction", r"returns no 'prediction' \(but hidden, logits\); output= must be"),
        (lambda answer: answer, "must return one tensor of real numbers, got Answer"),
        (lambda answer: answer["logits"].sum(), r"got shape \(\) for 8 inputs"),
    ],
)
def test_an_output_that_is_none_is_refused(output, rule):
    with pytest.raises(ValueError, match=rule):
        penchant.watch(Language(), tokens(), output=output)


# many outputs


class Wide(nn.Module):
    """A vocabulary of 90 at 12 places: 1080 numbers per sample."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(6, 8), nn.Linear(8, 90)

    def forward(self, x):
        return self.outer(torch.tanh(self.inner(x)))


def test_random_sums_stand_for_many_outputs_with_the_error_they_state():
    module, x = Wide(), torch.randn(10, 12, 6)
    exact = penchant.watch(module, x, projections=None, **ALWAYS).start
    seen, stated = [], []
    for count in (16, 256):
        watch = penchant.watch(module, x, projections=count, labels=torch.arange(10), **ALWAYS)
        assert watch.start.outputs.shape == (10, count)
        (note,) = watch.dataset.attrs["notes"]
        assert f"returns 1080 numbers per sample (12 x 90), which {count} random sums" in note
        stated.append(float(re.search(r"standard error of ([\d.e-]+)", note)[1]))
        apart = np.linalg.norm(watch.start.kernel - exact.kernel)
        seen.append(apart / np.linalg.norm(exact.kernel))
        assert np.isnan(watch.dataset.margin[0])
        assert watch.dataset.kernel_alignment[0] > 0
    for error, told in zip(seen, stated, strict=True):
        assert told / 4 < error < 3 * told
    assert stated[1] == pytest.approx(stated[0] / 4, rel=0.4)  # as 1/sqrt(count)
    np.testing.assert_allclose(np.mean(watch.start.outputs**2), np.mean(exact.outputs**2), rtol=0.3)


def test_random_sums_of_jax_are_the_same():
    module, x = Wide(), torch.randn(6, 12, 6)
    w = {name: value.detach().numpy() for name, value in module.named_parameters()}

    def apply(w, x):
        h = jnp.tanh(x @ w["inner.weight"].T + w["inner.bias"])
        return h @ w["outer.weight"].T + w["outer.bias"]

    ours = penchant.watch(module, x, **ALWAYS)
    theirs = penchant.watch(apply, x.numpy(), parameters=w, **ALWAYS)
    np.testing.assert_allclose(ours.start.kernel, theirs.start.kernel, rtol=1e-4)
    assert ours.dataset.attrs["notes"] == theirs.dataset.attrs["notes"]


# wrapped and spread modules


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.inner, self.outer, self.reentrant = nn.Linear(6, 9), nn.Linear(9, 2), reentrant
        self.scale = nn.Parameter(torch.rand(9))

    def forward(self, x):
        block = lambda x: torch.tanh(self.inner(x)) * self.scale  # noqa: E731
        if self.reentrant is None:
            return self.outer(block(x))
        return self.outer(checkpoint(block, x, use_reentrant=self.reentrant))


@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing_changes_nothing(reentrant):
    x = torch.randn(8, 6)
    plain, kept = Checkpointed(None), Checkpointed(reentrant)
    kept.load_state_dict(plain.state_dict())
    watches = [penchant.watch(module, x, **ALWAYS) for module in (plain, kept)]
    for value, other in zip(plain.parameters(), kept.parameters(), strict=True):
        step = 0.3 * torch.randn_like(value)
        value.data += step
        other.data += step
    for watch in watches:
        watch(1)
    a, b = (w.dataset.drop_vars("look_seconds") for w in watches)
    for name in ("kernel_distance", "linearized_error", "output", "linearized_output"):
        np.testing.assert_allclose(a[name], b[name], rtol=1e-5, err_msg=name)
    kept(x.requires_grad_()).sum().backward()  # checkpoints work again
    assert kept.inner.weight.grad is not None


CHILD = """
    import sys, torch
    from torch import nn
    import torch.distributed as dist
    import penchant
    rank, world, place = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    dist.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=world)
    torch.manual_seed(0)
    module, x = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 2)), torch.randn(8, 6)
    module = nn.parallel.DistributedDataParallel(module)
    watch = penchant.watch(module, x, budget=None, raise_errors=True)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    for step in range(1, 6):
        optimizer.zero_grad()
        module(x + rank).square().sum().backward()
        optimizer.step()
        watch(step)
    print("WATCH", repr(watch), "STATE", len(watch.state_dict()))
    try:
        print("LOOKS", watch.dataset.sizes["time"])
    except AttributeError as reason:
        print("NONE", reason)
    dist.barrier()
    dist.destroy_process_group()
"""


def processes(tmp_path, world):
    place = tmp_path / "meeting"
    call = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(CHILD)]
    room = os.environ | {"OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [*call, str(rank), str(world), str(place)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=room,
        )
        for rank in range(world)
    ]
    ended = [process.communicate(timeout=120) for process in started]
    assert all(process.returncode == 0 for process in started), ended
    return [out for out, _ in ended]


@pytest.mark.slow
def test_rank_zero_looks_in_a_distributed_run(tmp_path):
    first, second = processes(tmp_path, 2)
    assert "WATCH <Watch of 83 parameters: 6 looks, 5 calls> STATE" in first
    assert "LOOKS 6" in first
    assert "WATCH <Watch of rank 1, which does not look> STATE 0" in second
    assert "NONE watch: only rank zero of a distributed run looks" in second


@pytest.fixture
def group(tmp_path):
    """A distributed run of one process, this one."""
    place = tmp_path / "meeting"
    dist.init_process_group("gloo", init_method=f"file://{place}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def whole(module):
    return nn.parallel.DistributedDataParallel(module)


def fsdp(module):
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel(module, device_id=torch.device("cpu"))


def fsdp2(module):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    return fully_shard(module, mesh=init_device_mesh("cpu", (1,)))


@pytest.mark.filterwarnings("ignore")  # of torch, which shards nothing over one process
@pytest.mark.parametrize("spread", [fsdp, fsdp2])
def test_parameters_spread_over_processes_are_refused_in_a_sentence(spread, group):
    plain, x = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 2)), torch.randn(8, 6)
    assert penchant.watch(whole(plain), x, **ALWAYS).start.parameters == 83  # DDP is not refused
    module = spread(plain)
    with pytest.raises(ValueError, match="the parameters are spread over processes") as refused:
        penchant.watch(module, x)
    assert "full_state_dict=True" in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    module(x).square().sum().backward()  # and training goes on
    assert all(value.grad is not None for value in module.parameters())


def test_functions_of_jax_take_mappings_outside_of_a_watch():
    random = np.random.default_rng(0)
    w = {"a": random.standard_normal((3, 2)), "table": random.standard_normal((5, 2))}
    x = {
        "left": random.standard_normal((6, 3)),
        "token": random.integers(5, size=(6, 2)),
        "deep": (random.random((6, 1, 2)) > 0.5, 2.0),
    }

    def both(w, x):
        mask, scale = x["deep"]
        seen = jnp.tanh(x["left"] @ w["a"]) + w["table"][x["token"]].sum(1)
        return scale * seen * jnp.where(mask[:, 0], 1.0, 0.5)

    def rows(at):
        return {name: x[name][at] for name in ("left", "token")} | {"deep": (x["deep"][0][at], 2.0)}

    with double_precision():
        found = jax.jit(jax.jacrev(both))(w, x)
    J = np.concatenate([np.asarray(found[name]).reshape(6, 2, -1) for name in w], axis=2)
    K = np.einsum("ncp,mdp->ncmd", J, J)
    whole = penchant.measures.tangent_kernel(both, w, x, outputs="full")
    np.testing.assert_allclose(whole, K, rtol=1e-10, atol=1e-12)
    part = penchant.measures.tangent_kernel(
        both, w, rows(slice(2)), rows(slice(2, 6)), outputs="full"
    )
    np.testing.assert_allclose(part, K[:2, :, 2:], rtol=1e-10, atol=1e-12)
    fit = penchant.measures.kernel_regression(both, w, rows(slice(3)), np.ones((3, 2)))
    f = np.asarray(both(w, x))
    expected = f + np.tensordot(K[:, :, :3], fit.dual, axes=2)
    np.testing.assert_allclose(fit.predict(x), expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="x2 must have the structure of the first inputs"):
        penchant.measures.tangent_kernel(both, w, x, {"left": x["left"]}, outputs="full")
    with pytest.raises(ValueError, match="integers of x must not exceed"):
        penchant.measures.tangent_kernel(both, w, x | {"token": x["token"] + 2**25}, outputs="full")
