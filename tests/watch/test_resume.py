"""Resumed runs, state that no optimizer moves, changed models and last looks."""

import copy
import io
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import penchant  # noqa: E402
from penchant.watch import postponed, record  # noqa: E402
from penchant.watch.metrics import unread  # noqa: E402
from penchant.watch.regime import regime  # noqa: E402

ALWAYS = {"budget": None, "raise_errors": True}
STEPS, HALF = 60, 30


def data(samples=40, features=6):
    random = torch.Generator().manual_seed(1)
    x = torch.randn(samples, features, generator=random)
    return x, (x[:, 0] * x[:, 1] > 0).long()


def perceptron():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 30), nn.Tanh(), nn.Linear(30, 2))


def normalized():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Linear(30, 2))


def run(module, optimizer, watch, steps):
    x, y = data()
    for step in steps:
        optimizer.zero_grad()
        loss = functional.cross_entropy(module(x), y)
        loss.backward()
        optimizer.step()
        watch(step, train_loss=loss)


def made(build, **options):
    module = build()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5, momentum=0.9)
    x, y = data()
    watch = penchant.watch(module, x[:12], labels=y[:12], optimizer=optimizer, **ALWAYS, **options)
    return module, optimizer, watch


def through_a_file(state):
    """As a checkpoint is read without trust in what it runs."""
    held = io.BytesIO()
    torch.save(state, held)
    held.seek(0)
    return torch.load(held, weights_only=True)


@pytest.mark.parametrize("build", [perceptron, normalized])
def test_a_resumed_run_keeps_its_origin(build):
    module, optimizer, whole = made(build)
    run(module, optimizer, whole, range(1, HALF + 1))
    saved = through_a_file(
        {
            "model": module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "watch": whole.state_dict(),
        }
    )
    run(module, optimizer, whole, range(HALF + 1, STEPS + 1))

    module = build()
    module.load_state_dict(saved["model"])
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5, momentum=0.9)
    optimizer.load_state_dict(saved["optimizer"])
    x, y = data()
    given = {"labels": y[:12], "optimizer": optimizer, **ALWAYS}
    fresh = penchant.watch(module, x[:12], step=HALF, **given)
    resumed = penchant.watch(module, x[:12], step=HALF, **given)
    resumed.load_state_dict(saved["watch"])
    both = lambda *args, **metrics: [w(*args, **metrics) for w in (resumed, fresh)]  # noqa: E731
    run(module, optimizer, both, range(HALF + 1, STEPS + 1))

    timed = ["look_seconds"]
    a, b = (w.dataset.drop_vars(timed) for w in (whole, resumed))
    assert set(a.variables) == set(b.variables)
    for name in a.variables:
        assert a[name].dtype.kind == "U" or np.allclose(
            a[name], b[name], rtol=1e-5, atol=1e-7, equal_nan=True
        ), name
    assert resumed.regime == whole.regime
    assert resumed.first == 0
    short, long = (float(w.dataset.kernel_distance[-1]) for w in (fresh, whole))
    assert short < 0.5 * long  # without the state the origin moves


def test_schedule_and_costs_go_on():
    module, optimizer, whole = made(perceptron)
    run(module, optimizer, whole, range(1, HALF + 1))
    state = whole.state_dict()
    _, _, other = made(perceptron)
    other.load_state_dict(state)
    assert (other.looks.next, other.glances.next) == (whole.looks.next, whole.glances.next)
    assert other.budget.spent == pytest.approx(whole.budget.spent)
    assert other.budget.training == pytest.approx(whole.budget.training)
    assert other.looks.next > 1 + other.first


def test_jax_states_hold_arrays():
    def apply(w, x):
        return np.tanh(1.0) * x @ w**2

    x, random = np.eye(4), np.random.default_rng(0)
    w = [random.standard_normal(4) + step for step in range(4)]
    whole = penchant.watch(apply, x, parameters=w[0], **ALWAYS)
    whole(1, w[1], loss=3.0)
    state = pickle.loads(pickle.dumps(whole.state_dict()))
    whole(2, w[2])
    resumed = penchant.watch(apply, x, parameters=w[1], step=1, **ALWAYS)
    resumed.load_state_dict(state)
    resumed(2, w[2])
    assert resumed.dataset.drop_vars("look_seconds").equals(whole.dataset.drop_vars("look_seconds"))
    assert resumed.dataset.linearized_output[-1].values == pytest.approx(
        np.tanh(1.0) * (w[0] ** 2 + 2 * w[0] * (w[2] - w[0]))[:, None]
    )


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda state: {}, "not the state of a watch"),
        (lambda state: state | {"probe_inputs": "other"}, "probe inputs are not those of the stat"),
        (
            lambda state: state | {"start": state["start"] | {"arrays": {"w": np.ones(2)}}},
            "state belongs to another model .different: 0.weight",
        ),
    ],
)
def test_a_wrong_state_is_refused(change, rule):
    *_, watch = made(perceptron)
    with pytest.raises(ValueError, match=rule):
        watch.load_state_dict(change(watch.state_dict()))


# state that no optimizer moves


def test_running_statistics_alone_move_nothing():
    """Without a step of the optimizer the regime is not known, and no kernel has turned."""
    module, _, watch = made(normalized)
    x, _ = data()
    for step in range(1, 21):
        module(3 * x + 1)
        watch(step)
    assert float(module[1].running_mean.abs().max()) > 0.1
    assert watch.dataset.kernel_distance.values.max() == 0
    assert watch.dataset.relative_move.values.max() == 0
    assert watch.regime.kind == "unknown"
    (note,) = watch.dataset.attrs["notes"]
    assert note.startswith("no optimizer moves 1.running_mean and running_var: every look uses")
    assert "warm_batch=" in note


@pytest.mark.parametrize("momentum", [0.1, 0.01, None])
def test_a_warm_batch_gives_its_own_statistics(momentum):
    module, x = normalized(), data()[0]
    module[1].momentum = momentum
    module.insert(2, nn.Dropout(0.5))
    before = copy.deepcopy(module.state_dict())
    watch = penchant.watch(module, x[:12], warm_batch=x, **ALWAYS)
    assert all(torch.equal(module.state_dict()[name], value) for name, value in before.items())
    assert module.training
    hidden = module[0](x).detach()
    held = watch.backend.state()
    torch.testing.assert_close(held["1.running_mean"], hidden.mean(dim=0), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(held["1.running_var"], hidden.var(dim=0), rtol=1e-4, atol=1e-5)
    assert held["1.running_var"].sub(before["1.running_var"]).abs().max() > 0.1
    assert "uses the values of warm_batch" in watch.dataset.attrs["notes"][-1]


def test_state_that_is_no_average_is_not_warmed():
    module = nn.Sequential(nn.utils.spectral_norm(nn.Linear(6, 3)))
    with pytest.raises(ValueError, match="weight_u is not a running average"):
        penchant.watch(module, data()[0], warm_batch=data()[0])
    with pytest.raises(ValueError, match="changes no state of the model; leave warm_batch= out"):
        penchant.watch(perceptron(), data()[0], warm_batch=data()[0])


# a model that changes


def replaced(module):
    module[2] = nn.Linear(30, 2)


def unfrozen(module):
    module[0].requires_grad_(True)


@pytest.mark.parametrize(
    ("change", "words"),
    [(replaced, "2.weight, 2.bias is not the tensor"), (unfrozen, "different: 0.bias, 0.weight")],
)
def test_after_a_change_the_regime_is_not_what_it_was(change, words):
    module = perceptron()
    module[0].requires_grad_(False)
    optimizer = torch.optim.SGD([p for p in module.parameters() if p.requires_grad], lr=0.5)
    watch = penchant.watch(module, data()[0][:12], budget=None)
    run(module, optimizer, watch, range(1, 6))
    assert watch.regime.kind == "kernel"  # of a last layer
    change(module)
    run(module, optimizer, watch, range(6, 11))
    assert watch.regime.kind == "unknown"
    assert words in watch.regime.evidence
    assert any(words in failure.sentence for failure in watch.failures)


def test_parameters_outside_of_the_optimizer_are_noticed():
    module = perceptron()
    optimizer = torch.optim.SGD(module[0].parameters(), lr=0.5)
    watch = penchant.watch(module, data()[0][:12], optimizer=optimizer, **ALWAYS)
    (note,) = watch.dataset.attrs["notes"]
    assert note.startswith("2 trained parameters (2.weight, 2.bias) are in no group")


# the optimizer, metrics and the last look


def test_rates_are_read_from_the_optimizer():
    module = perceptron()
    groups = [
        {"params": [p for p in module.parameters() if p.ndim > 1], "weight_decay": 0.02},
        {"params": [p for p in module.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    watch = penchant.watch(module, data()[0][:12], optimizer=optimizer, **ALWAYS)
    for step in (1, 2):
        optimizer.step()
        schedule.step()
        watch(step)
    assert watch.weight_decay == watch.dataset.attrs["weight_decay"] == 0.02
    assert watch.dataset.optimizer_rate.values.tolist() == pytest.approx([0.1, 0.05, 0.025])
    assert watch.dataset.optimizer_decay.values.tolist() == [0.02] * 3
    assert "weight decays 0.02, 0;" in watch.dataset.attrs["notes"][0]
    with pytest.raises(ValueError, match=r"weight_decay=0.1 was given, but the optimizer has 0.02"):
        penchant.watch(module, data()[0], optimizer=optimizer, weight_decay=0.1)
    with pytest.raises(ValueError, match="a Linear does not have a weight decay to read"):
        penchant.watch(module, data()[0], optimizer=module[0])


class Counted(torch.Tensor):
    """A tensor that says it is on a device, and counts how often it is read."""

    reads = 0
    device = torch.device("cuda:0")

    def item(self):
        Counted.reads += 1
        return super().item()


def test_metrics_stay_on_their_device_until_a_look():
    module = perceptron()
    watch = penchant.watch(module, data()[0][:12], **ALWAYS)
    for step in range(1, 200):
        watch(step)
    Counted.reads = 0
    value = torch.zeros(()).as_subclass(Counted)
    for step in range(200, 230):
        value += 1  # in place: what was handed over before does not change
        watch(step, train_loss=value)
    assert Counted.reads == 0
    found = watch.dataset.train_loss.values
    assert found[-30:].tolist() == list(range(1, 31))
    assert Counted.reads == 30


def test_metrics_of_jax_are_not_waited_for():
    jnp = pytest.importorskip("jax.numpy")
    value = jnp.float32(0.25)
    assert unread("loss", value) is value
    log = record.Log(("w",))
    for step in range(record.PENDING):
        assert not log.full
        log.call(step)
        log.metric("loss", value + step)
    assert log.full
    log.read()
    assert log.curve("loss").tolist() == [0.25 + step for step in range(record.PENDING)]
    assert not log.pending


def test_the_regime_of_a_run_without_looks_is_that_of_a_look_now():
    """The budget allows none, and is exceeded once."""
    module = perceptron()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    watch = penchant.watch(module, data()[0][:12], budget=1e-9)
    assert watch.regime.kind == "unknown"  # before the first call there is nothing to look at
    assert watch.dataset.step.values.tolist() == [0]
    run(module, optimizer, watch, range(1, 278))
    assert regime(watch.dataset).kind == "unknown"
    assert watch.regime.kind == "rich"
    steps = watch.dataset.step.values.tolist()
    assert (len(steps), steps[0], steps[-1]) == (2 + postponed.MOST, 0, 277)
    run(module, optimizer, watch, range(278, 300))
    assert watch.regime.evidence.startswith("at step 277 ")  # from now on the budget counts
    assert watch.dataset.step.values.tolist() == steps


def test_a_report_takes_a_last_look(capsys):
    """A budget that allows no look at all: without the last one the regime is not known."""
    module = perceptron()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    watch = penchant.watch(module, data()[0][:12], budget=1e-9)
    run(module, optimizer, watch, range(1, 278))
    assert watch.dataset.step.values.tolist() == [0]
    assert regime(watch.dataset).kind == "unknown"
    found = watch.report()
    steps = watch.dataset.step.values
    assert len(steps) == 2 + postponed.MOST
    assert (steps[0], steps[1], steps[-1]) == (0, 1, 277)
    assert found.regime.kind == "rich"
    assert found.regime.evidence.startswith("at step 277 ")
    assert "at step 277 " in capsys.readouterr().out
    assert not watch.failures


def test_the_last_look_at_a_function_is_at_its_last_parameters():
    watch = penchant.watch(lambda w, x: x @ w**2, np.eye(3), parameters=np.ones(3), budget=1e-9)
    watch(5, np.array([1.0, 1.0, 3.0]))
    assert watch.dataset.sizes["time"] == 1
    watch.report()
    centre = np.eye(3) - 1 / 3
    now = centre @ np.diag([1.0, 1.0, 9.0]) @ centre
    cosine = np.sum(centre * now) / np.linalg.norm(centre) / np.linalg.norm(now)
    assert float(watch.dataset.kernel_distance[-1]) == pytest.approx(1 - cosine)
    assert not watch.failures
