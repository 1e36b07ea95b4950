"""Several optimizers, hooks, pickles, tuples, (time, batch) inputs, and no JAX in PyTorch."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import penchant
from penchant.cli import app
from penchant.watch.measures import Start, move_row
from penchant.watch.modules import module_moves
from penchant.watch.optimizer import decay_rate, rates_of

torch = pytest.importorskip("torch")
nn = torch.nn
ALWAYS = {"budget": None, "raise_errors": True}

LOOP = """
import sys
import torch
import penchant
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.LayerNorm(5), torch.nn.Linear(5, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
x = torch.randn(12, 3)
watch = penchant.watch(model, x, labels=torch.zeros(12).long(), optimizer=optimizer, budget=1e-9)
for step in range(1, 40):
    loss = torch.nn.functional.cross_entropy(model(x), torch.zeros(12).long())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    watch(step, train_loss=loss, train_accuracy=1.0, test_accuracy=0.5)
watch.report("run.nc")
print(watch.regime.kind, watch.verdict.kind, watch.forecast.state, watch.failures)
again = penchant.load("run.nc")
watch.load_state_dict(watch.state_dict())
print(sorted(name for name in sys.modules if name.split(".")[0] in ("jax", "jaxlib", "diffrax")))
"""


def test_a_watch_of_torch_imports_no_jax(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LOOP], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    *_, said, modules = done.stdout.strip().splitlines()
    assert said.endswith("()")  # no failures
    assert modules == "[]"


# several optimizers


def two_parts():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 3))
    matrices = [p for p in model.parameters() if p.ndim == 2]
    rest = [p for p in model.parameters() if p.ndim < 2]
    return model, matrices, rest


def test_muon_and_adamw_are_one_list():
    model, matrices, rest = two_parts()
    muon = torch.optim.Muon(matrices, lr=0.02, weight_decay=0.1)
    adamw = torch.optim.AdamW(rest, lr=0.003, weight_decay=0.0)
    both = [muon, adamw]
    assert rates_of(both) == (0.02, 0.1)  # of the matrices, which are most of the net
    assert rates_of(both[::-1]) == rates_of(both)
    assert decay_rate(both) == pytest.approx(0.002)
    x = torch.randn(10, 6)
    watch = penchant.watch(model, x, optimizer=both, **ALWAYS)
    (note,) = watch.dataset.attrs["notes"]
    assert "2 groups" in note
    assert "Muon, 0.1" in note
    for step in range(1, 5):
        for optimizer in both:
            optimizer.zero_grad()
        model(x).square().mean().backward()
        for optimizer in both:
            optimizer.step()
        watch(step)
    assert float(watch.dataset.optimizer_rate[-1]) == pytest.approx(0.02)
    # without a gradient the matrices fall as the rate says
    before = matrices[0].detach().clone()
    matrices[0].grad = torch.zeros_like(before)
    state = muon.state[matrices[0]]
    for name, value in state.items():
        if torch.is_tensor(value):
            state[name] = torch.zeros_like(value)
    muon.step()
    torch.testing.assert_close(matrices[0].detach(), (1 - 0.002) * before)


def test_parameters_in_none_of_several_optimizers_are_noticed():
    model, matrices, _ = two_parts()
    watch = penchant.watch(model, torch.randn(9, 6), optimizer=[torch.optim.SGD(matrices, 0.1)])
    assert any("in no group" in note for note in watch.dataset.attrs["notes"])


def test_a_list_must_hold_optimizers():
    model, matrices, _ = two_parts()
    with pytest.raises(ValueError, match="a list of them"):
        penchant.watch(model, torch.randn(9, 6), optimizer=[torch.optim.SGD(matrices, 0.1), 3])


# hooks and pickles


def test_hooks_are_called_and_may_fail():
    seen = []

    def looked(watch):
        seen.append(float(watch.dataset.step[-1]))
        raise RuntimeError("no luck")

    model, *_ = two_parts()
    watch = penchant.watch(
        model, torch.randn(9, 6), budget=None, on_look=looked,
        stop_when=lambda watch: watch.log.steps[-1] >= 60,
    )  # fmt: skip
    stopped = None
    for step in range(1, 101):
        watch(step)
        if stopped is None and watch.should_stop:
            stopped = step
    assert seen == watch.dataset.step.values[1:].tolist()
    assert 60 <= stopped <= 66  # the next glance
    (failure,) = watch.failures
    assert failure.count == len(seen)
    assert "no luck" in failure.sentence
    with pytest.raises(ValueError, match="on_look must be a function"):
        penchant.watch(model, torch.randn(9, 6), on_look=3)


def test_a_pickle_is_the_report_of_the_run():
    model, *_ = two_parts()
    watch = penchant.watch(model, torch.randn(9, 6), learning_rate=0.1, **ALWAYS)
    with torch.no_grad():
        model[0].weight += 0.3
    watch(1, train_loss=0.5)
    again = pickle.loads(pickle.dumps(watch))
    assert str(again.regime) == str(watch.regime)
    assert again.dataset.identical(watch.dataset)
    assert again.figure().axes


# what is looked at


class Parts(nn.Module):
    """Returns (features, scores)."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(6, 4), nn.Linear(4, 3)

    def forward(self, x):
        features = torch.tanh(self.inner(x))
        return features, self.outer(features)


def test_a_number_picks_a_part_of_a_tuple():
    torch.manual_seed(0)
    model, x = Parts(), torch.randn(9, 6)
    for place in (0, 1):
        by_number = penchant.watch(model, x, output=place)
        by_function = penchant.watch(model, x, output=lambda parts: parts[place])  # noqa: B023
        np.testing.assert_allclose(by_number.start.kernel, by_function.start.kernel)
        assert by_number.start.outputs.shape == (9, 4 - place)
    with pytest.raises(ValueError, match="returns 2 parts, and output=2 counts from 0"):
        penchant.watch(model, x, output=2)
    with pytest.raises(ValueError, match="output= of the watch, picks one"):
        penchant.watch(model, x)
    single = penchant.watch(
        model[0] if isinstance(model, nn.Sequential) else model.inner, x, output=2
    )
    assert single.start.outputs.shape[1] == 4  # of an array it is the index of one output


@pytest.mark.parametrize("kind", ["LSTM", "encoder"])
def test_inputs_of_time_and_batch(kind):
    torch.manual_seed(0)
    if kind == "LSTM":
        model, other = (nn.LSTM(3, 4, batch_first=first) for first in (False, True))
    else:
        model, other = (
            nn.TransformerEncoderLayer(4, 2, 8, batch_first=first) for first in (False, True)
        )
    other.load_state_dict(model.state_dict())
    x = torch.randn(5, 7, 3 if kind == "LSTM" else 4)  # 5 times, 7 samples
    options = {"output": 0} if kind == "LSTM" else {}
    turned = penchant.watch(model, x, batch_axis=1, **options, **ALWAYS)
    plain = penchant.watch(other, x.movedim(1, 0), **options, **ALWAYS)
    np.testing.assert_allclose(turned.start.outputs, plain.start.outputs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(turned.start.kernel, plain.start.kernel, rtol=1e-4, atol=1e-5)
    for module in (model, other):
        with torch.no_grad():
            for p in module.parameters():
                p.mul_(1.1)
    for watch in (turned, plain):
        watch(1)
    for name in ("kernel_distance", "linearized_error"):
        assert float(turned.dataset[name][-1]) == pytest.approx(
            float(plain.dataset[name][-1]), rel=1e-3
        )
    last = penchant.watch(
        model, x, batch_axis=1,
        output=lambda out: (out[0] if kind == "LSTM" else out)[-1],
    )  # fmt: skip
    assert len(last.start.outputs) == 7


def test_time_and_batch_of_a_jax_function():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((5, 7, 3)), rng.standard_normal((3, 2))
    turned = penchant.watch(lambda w, x: x @ w, x, parameters=w, batch_axis=1)
    plain = penchant.watch(lambda w, x: x @ w, np.moveaxis(x, 1, 0), parameters=w)
    np.testing.assert_allclose(turned.start.kernel, plain.start.kernel, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="batch_axis must be"):
        penchant.watch(lambda w, x: x @ w, x, parameters=w, batch_axis=-1)


# arrays that begin at zero


class LowRank(nn.Module):
    """A frozen matrix plus B A with B = 0, as LoRA begins."""

    def __init__(self):
        super().__init__()
        self.base = nn.Linear(6, 8, bias=False).requires_grad_(False)
        self.a, self.b = nn.Parameter(torch.randn(2, 6)), nn.Parameter(torch.zeros(8, 2))

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T


def test_arrays_that_begin_at_zero_have_a_move():
    torch.manual_seed(0)
    model = LowRank()
    watch = penchant.watch(model, torch.randn(10, 6), **ALWAYS)
    a = model.a.detach().clone()
    with torch.no_grad():
        model.a.mul_(1.5)
        model.b.add_(0.25)
    watch(1)
    moved = dict(zip(watch.dataset.layer.values, watch.dataset.layer_moved.values[-1], strict=True))
    assert moved["a"] == pytest.approx(0.5, rel=1e-6)
    # 16 entries of 0.25, over 16 entries of the root mean square of a
    assert moved["b"] == pytest.approx(0.25 / float(a.square().mean().sqrt()), rel=1e-6)
    assert dict(zip(*[module_moves(watch.dataset).names, module_moves(watch.dataset).moved[-1]],
                    strict=True))["b"] == pytest.approx(moved["b"])  # fmt: skip
    zero = Start({"w": np.zeros(3)}, np.zeros((2, 1)), np.zeros((1, 2, 2)))
    assert np.isnan(move_row(zero, {"w": np.ones(3)})["layer_moved"][0])  # there is no size at all


# several records


def test_the_command_draws_runs_together(tmp_path):
    for name, size in (("small", 0.1), ("large", 0.5)):
        model, *_ = two_parts()
        watch = penchant.watch(model, torch.randn(9, 6), **ALWAYS)
        for step in range(1, 20):
            with torch.no_grad():
                model[0].weight += size * torch.randn(20, 6)
            watch(step, train_loss=1 / step)
        watch.save(tmp_path / f"{name}.nc")
    files = [str(tmp_path / f"{name}.nc") for name in ("small", "large")]
    target = tmp_path / "both.png"
    result = CliRunner().invoke(app, ["watch", *files, "--figure", str(target)])
    assert result.exit_code == 0, result.output
    assert target.read_bytes().startswith(b"\x89PNG")
    assert "small: " in result.output
    assert "large: " in result.output
    twice = CliRunner().invoke(app, ["watch", files[0], files[0]])
    assert twice.exit_code != 0
