"""The forecast of a watch: when the test accuracy jumps, on recorded runs and in loops."""

import contextlib
import functools
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
from jump_points import as_dataset, read_runs, truth
from penchant.forecasts import forecast_jump
from penchant.watch import Watch
from penchant.watch.optimizer import decay_rate
from penchant.watch.schedule import LookSteps, glance_spacing

RUNS = read_runs(Path(__file__).parent / "recorded_runs.npz")
GROK = [
    "transformer, LayerNorm",
    "transformer",
    "ReLU net, AdamW",
    "ReLU net, SGD",
    "ReLU net, schedule",
    "quadratic, AdamW",
    "quadratic, momentum",
    "quadratic, squared loss",
    "digits",
]
TIMES = (1.0, 1.2, 1.5, 2.0, 3.0)


def asked(name, until, **change):
    run = RUNS[name] | change
    return forecast_jump(as_dataset(run, run["rate"], float(run["decay"]), until))


@functools.cache
def moments(name):
    run = RUNS[name]
    return truth(run["step"], run["train_accuracy"], run["test_accuracy"])


def curve(name):
    return RUNS[name]["test_accuracy"]


# what is said, and when


@pytest.mark.parametrize("name", GROK)
def test_from_memorization_on_there_is_an_answer_and_it_is_near(name):
    memorized, jump = moments(name)
    for time in TIMES:
        if time * memorized < jump:
            found = asked(name, time * memorized)
            assert found.state in ("expected", "in progress"), (time, found)
            assert found.event == "test accuracy"
            assert 0.95 * time * memorized <= found.low < found.step < found.high
            assert 0.5 < found.step / jump < 2, (time, found)


def test_most_intervals_hold_the_jump():
    held = []
    for name in GROK:
        memorized, jump = moments(name)
        for time in TIMES:
            if time * memorized < jump:
                found = asked(name, time * memorized)
                held.append(found.low <= jump <= found.high)
    assert np.mean(held) >= 0.8


@pytest.mark.parametrize("name", GROK)
def test_nothing_has_happened_before_the_jump(name):
    memorized, jump = moments(name)
    steps = RUNS[name]["step"]
    for now in steps[(steps > 1) & (steps < 0.98 * jump)][::5]:
        found = asked(name, now)
        assert found.state != "happened", (now, jump, found)
        assert found.state != "none", (now, jump, found)
        if now < 0.9 * memorized:
            assert found.state == "too early"
    after = asked(name, math.inf)
    assert after.state == "happened"
    test, plateau = RUNS[name]["test_accuracy"], np.interp(memorized, steps, curve(name))
    half = steps[np.argmax((test >= (1 + plateau) / 2) & (steps > memorized))]
    assert after.step == pytest.approx(half, rel=0.05)
    assert not after.ahead
    assert math.isnan(after.row["forecast_step"])


@pytest.mark.parametrize("name", ["ReLU net, AdamW", "quadratic, momentum", "transformer"])
def test_a_rise_that_has_begun_is_in_progress(name):
    run, (_, jump) = RUNS[name], moments(name)
    now = run["step"][np.argmax((run["test_accuracy"] >= 0.35) & (run["step"] > 0.7 * jump))]
    now = min(now, 0.97 * jump)
    found = asked(name, now)
    if name != "transformer":  # most of its test pairs are known by symmetry
        assert found.state == "in progress"
        assert "has risen to" in found.sentence
    assert found.high > now


def test_runs_that_do_not_grok_get_a_sentence():
    end = math.inf
    assert "no weight decay" in asked("no decay", 1000).sentence
    assert asked("no decay", end).state == "none"
    assert asked("at once", 200).state == "none"
    assert "generalizes at once" in asked("at once", 200).sentence
    assert asked("too much decay", end).state == "too early"
    assert "train_accuracy is" in asked("too much decay", end).sentence
    memorized, jump = moments("few pairs")
    assert math.isnan(jump)
    assert asked("few pairs", 1.2 * memorized).state == "expected"  # it cannot be known yet
    assert asked("few pairs", end).state == "none"
    assert "the test loss does not fall" in asked("few pairs", end).sentence


def test_the_interval_shrinks_as_the_run_goes_on():
    for name in ("ReLU net, AdamW", "quadratic, AdamW"):
        memorized, jump = moments(name)
        early, late = (asked(name, now) for now in (memorized, 0.9 * jump))
        assert late.high / late.low < 0.8 * early.high / early.low


def test_a_schedule_changes_the_clock_of_the_decay():
    """With a fifth of the learning rate from now on, what is left takes five times as long."""
    name = "quadratic, AdamW"
    memorized, _ = moments(name)
    run, now = RUNS[name], 2 * memorized
    slower = np.where(run["step"] > 0.999 * now, 0.2, 1.0) * run["rate"]
    slower[np.flatnonzero(run["step"] <= now)[-1]] = 0.2 * run["rate"][-1]
    plain, changed = asked(name, now), asked(name, now, rate=slower)
    assert (changed.step - now) / (plain.step - now) == pytest.approx(5, rel=0.1)


# how it is computed


@given(factor=st.floats(0.01, 1000), name=st.sampled_from(GROK), time=st.sampled_from(TIMES))
@settings(deadline=None, derandomize=True, max_examples=25)
def test_the_forecast_has_no_unit_of_time(factor, name, time):
    run, (memorized, _) = RUNS[name], moments(name)
    plain = asked(name, time * memorized)
    change = {"step": factor * run["step"], "rate": run["rate"] / factor}
    other = asked(name, factor * time * memorized * (1 + 1e-12), **change)
    assert other.state == plain.state
    for a, b in zip(plain.row.values(), other.row.values(), strict=True):
        assert b == pytest.approx(factor * a, rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("name", GROK)
def test_other_times_of_the_glances_give_the_same_answer(name):
    run, (memorized, _) = RUNS[name], moments(name)
    now = 1.5 * memorized
    whole = as_dataset(run, run["rate"], float(run["decay"]), now)
    count = whole.sizes["glance"]
    plain = forecast_jump(whole)
    for chosen in (np.r_[0, np.arange(1, count, 4)], np.r_[0 : count // 2, count // 2 : count : 7]):
        other = forecast_jump(whole.isel(glance=chosen))
        assert other.state == plain.state
        assert other.step == pytest.approx(plain.step, rel=0.05, nan_ok=True)


def test_without_losses_and_with_another_loss_there_is_the_second_law():
    name = "quadratic, AdamW"
    memorized, _ = moments(name)
    run = {part: values for part, values in RUNS[name].items() if not part.endswith("loss")}
    found = forecast_jump(as_dataset(run, run["rate"], 0.5, 1.2 * memorized))
    assert "by the test accuracy and the weights" in found.sentence
    assert "by the losses" in asked(name, 1.2 * memorized).sentence
    squared = moments("quadratic, squared loss")[0]
    found = asked("quadratic, squared loss", 1.2 * squared)
    assert "by the test accuracy and the weights" in found.sentence  # it is no cross-entropy


def test_without_test_accuracies_the_turn_of_the_weights_is_forecast():
    name = "quadratic, squared loss"
    memorized, _ = moments(name)
    run = {part: values for part, values in RUNS[name].items() if part != "test_accuracy"}
    found = forecast_jump(as_dataset(run, run["rate"], 0.003, 2 * memorized))
    assert found.event == "weights"
    assert "pass train_accuracy= and test_accuracy=" in found.sentence
    unknown = asked(name, 2 * memorized, rate=np.full(len(RUNS[name]["step"]), np.nan))
    assert unknown.event == "weights"
    assert "pass optimizer= or learning_rate=" in unknown.sentence


# bad records


def test_odd_records_get_a_sentence():
    name = "quadratic, AdamW"
    memorized, _ = moments(name)
    now, run = 2 * memorized, RUNS[name]
    ones, nothing = np.ones(len(run["step"])), np.full(len(run["step"]), np.nan)
    percent = asked(name, now, test_accuracy=100 * run["test_accuracy"] + 2)
    assert not percent.known
    assert "divide percentages by 100" in percent.sentence
    assert "is known at 0 calls" in asked(name, now, train_accuracy=nothing).sentence
    assert asked(name, -1.0).state == "too early"
    assert asked(name, 3.0).state == "too early"
    constant = asked(name, now, train_accuracy=ones, test_accuracy=ones)
    assert constant.state == "none"
    flat = asked(name, now, test_accuracy=0 * ones, test_loss=ones, train_loss=ones, turn=0 * ones)
    assert flat.state in ("expected", "none")
    assert asked(name, now, rate=0 * ones).state == "none"
    for loss in (nothing, 0 * ones, -ones, math.inf * ones):
        found = asked(name, now, train_loss=loss)
        assert found.state == "expected"
        assert "by the test accuracy and the weights" in found.sentence


def test_gaps_in_the_record_do_not_matter_much():
    name = "ReLU net, AdamW"
    memorized, _ = moments(name)
    run, now = RUNS[name], 3 * memorized
    rng = np.random.default_rng(0)
    lost = (rng.random(len(run["step"])) < 0.5) & (run["step"] < 2.9 * memorized)
    holes = {part: np.where(lost, np.nan, run[part]) for part in ("test_accuracy", "train_loss")}
    assert asked(name, now, **holes).step == pytest.approx(asked(name, now).step, rel=0.05)


def test_a_loss_of_the_training_accuracy_long_after_is_no_new_memorization():
    name = "quadratic, AdamW"
    memorized, _ = moments(name)
    run = RUNS[name]
    spike = np.where(np.abs(run["step"] / (4 * memorized) - 1) < 0.05, 0.6, run["train_accuracy"])
    assert (spike < run["train_accuracy"]).sum() == 3
    plain, other = (
        asked(name, 6 * memorized, **change) for change in ({}, {"train_accuracy": spike})
    )
    assert other == plain


# the watch


class Toy:
    """A backend in plain NumPy, f = x w, that has next to no kernel."""

    names, out_axis, notes = ("w",), -1, ()
    count, projected, digest, groups = 1, False, "toy", (0,)
    x = np.random.default_rng(0).standard_normal((4, 3))

    def check(self, params):
        pass

    @contextlib.contextmanager
    def at(self, arrays):
        yield arrays["w"]

    def arrays(self, params):
        return {"w": params}

    def outputs(self, params):
        return (self.x @ params)[:, None]

    def kernels(self, params):
        return (self.x @ self.x.T)[None]

    def linearized(self, params):
        return self.outputs(params)


def replayed(name, until, pause, budget=0.05, **options):
    """A watch of a run with the norms, turns and metrics of a recorded one.

    `pause` is a function of the step: the seconds that pass until its call.
    """
    run, now = RUNS[name], SimpleNamespace(seconds=0.0)

    def ticking():
        now.seconds += 1e-4
        return now.seconds

    first = np.array([1.0, 0.0, 0.0])
    options = {"points_per_decade": 8, "step": 0, "raise_errors": True} | options
    watch = Watch(
        Toy(),
        first,
        lambda *shape: None,
        weight_decay=float(run["decay"]),
        learning_rate=lambda step: np.interp(step, run["step"], run["rate"]) / float(run["decay"]),
        budget=budget,
        clock=ticking,
        **options,
    )
    metrics = ("train_accuracy", "test_accuracy", "train_loss", "test_loss")
    for i, step in enumerate(run["step"]):
        if not 0 < step <= until:
            continue
        now.seconds += pause(step)
        angle = math.radians(run["turn"][i])
        params = run["norm"][i] / run["norm"][0] * np.array([math.cos(angle), math.sin(angle), 0])
        watch(step, params, **{part: run[part][i] for part in metrics})
    return watch


def test_the_forecast_does_not_depend_on_the_load_of_the_machine():
    name = "quadratic, AdamW"
    memorized, _ = moments(name)
    idle = replayed(name, 3 * memorized, lambda step: 10.0)
    busy = replayed(name, 3 * memorized, lambda step: 1e-5 * (1 + step % 7), 1e-4)
    assert len(busy.log.rows) < len(idle.log.rows)  # looks wait for the budget
    assert busy.forecast.ahead
    assert busy.forecast == idle.forecast
    assert busy.log.glances == idle.log.glances


def test_the_watch_says_what_the_recorded_curves_say():
    for name in ("transformer", "ReLU net, schedule"):
        memorized, _ = moments(name)
        for time in (1.2, 3.0):
            watch = replayed(name, time * memorized, lambda step: 10.0)
            plain = asked(name, time * memorized)
            assert watch.forecast.state == plain.state
            assert watch.forecast.step == pytest.approx(plain.step, rel=0.05)


def test_every_look_records_the_forecast_that_was_made():
    name = "quadratic, AdamW"
    memorized, jump = moments(name)
    watch = replayed(name, 2 * jump, lambda step: 10.0)
    table = watch.dataset
    made = np.isfinite(table.forecast_step.values)
    steps = table.step.values
    assert not made[steps < memorized].any()
    assert made[(steps > 1.2 * memorized) & (steps < 0.95 * jump)].all()
    assert not made[steps > 1.05 * jump].any()
    i = int(np.flatnonzero(made)[3])
    again = replayed(name, steps[i], lambda step: 10.0).forecast
    row = tuple(float(table[part][i]) for part in again.row)
    assert row == pytest.approx(tuple(again.row.values()))
    assert ((table.forecast_low <= table.forecast_step) | ~made).all()
    assert ((table.forecast_step <= table.forecast_high) | ~made).all()


def test_the_first_forecast_is_made_in_the_set_up():
    # its imports took 0.36 s, 4% of a loop of ten seconds
    watch = penchant.watch(lambda w, x: x @ w, np.eye(3), parameters=np.ones(3))
    assert "forecast_step" in watch.log.rows[0]


def test_a_resumed_watch_goes_on_with_its_forecasts():
    name = "quadratic, AdamW"
    memorized, jump = moments(name)
    whole = replayed(name, jump, lambda step: 10.0)
    half = replayed(name, 3 * memorized, lambda step: 10.0)
    other = replayed(name, 0, lambda step: 10.0)
    _restore(other, _state(half))
    assert other.forecast == half.forecast
    assert other.dataset.forecast_step.equals(half.dataset.forecast_step)
    assert other.glances.next == half.glances.next
    assert whole.dataset.forecast_step[: len(half.log.rows)].equals(half.dataset.forecast_step)


def _state(watch):
    watch.backend.state = dict
    return watch.state_dict()


def _restore(watch, state):
    watch.backend.restore = lambda arrays, state: None
    watch.load_state_dict(state)


@pytest.mark.parametrize(("parameters", "spacing"), [(100, 5), (10**6, 10), (10**9, 10_000)])
def test_glances_are_rare_where_they_are_dear(parameters, spacing):
    assert glance_spacing(parameters) == spacing
    steps, taken = LookSteps(0, 32, spacing), []
    for step in range(1, 100 * spacing):
        if steps.due(step):
            taken.append(step)
            steps.taken(step)
    assert np.diff(taken).min() >= spacing
    assert np.diff(taken)[-1] <= 0.1 * taken[-1] + spacing


def test_a_torch_run_with_adamw_is_forecast_from_memorization_on():
    """A quadratic net on addition mod 23 whose learning rate warms up; not a run of the fit."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(7)
    a, b = (part.ravel() for part in torch.meshgrid(*[torch.arange(23)] * 2, indexing="ij"))
    one, order = torch.eye(23), torch.randperm(23 * 23)
    x, y = torch.hstack([one[a], one[b]])[order], ((a + b) % 23)[order]
    train, test = slice(0, 330), slice(330, None)

    class Quadratic(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Parameter(torch.randn(46, 128) / 2**0.5)
            self.outer = torch.nn.Parameter(torch.randn(128, 23) / 128**0.5)

        def forward(self, x):
            return (x @ self.inner) ** 2 @ self.outer

    net = Quadratic()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.006, weight_decay=0.5, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=20)
    watch = penchant.watch(net, x[:8], optimizer=optimizer, raise_errors=True)
    said = []
    for step in range(1, 1101):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x[train]), y[train]).backward()
        optimizer.step()
        schedule.step()
        if step % 5 == 0:
            with torch.no_grad():
                out = net(x)
            right = (out.argmax(1) == y).double()
            losses = torch.nn.functional.cross_entropy(out, y, reduction="none")
            watch(
                step,
                train_accuracy=right[train].mean(),
                test_accuracy=right[test].mean(),
                train_loss=losses[train].mean(),
                test_loss=losses[test].mean(),
            )
        if step % 25 == 0:
            said.append((step, watch.forecast))
    happened = watch.forecast
    assert happened.state == "happened", happened
    assert happened.step > 10 * next(step for step, found in said if found.ahead)
    ahead = [(step, found) for step, found in said if found.ahead]
    assert np.mean([f.low <= happened.step <= f.high for _, f in ahead]) >= 0.8
    assert all(0.5 < f.step / happened.step < 2 for _, f in ahead)
    assert all(f.state != "happened" for step, f in said if step < happened.step)
    assert watch.dataset.glance_rate[-1] == pytest.approx(0.003)
    assert watch.dataset.glance_rate[0] == pytest.approx(0.0003)


# the rate of the decay


def of_torch(kind, **group):
    parameter = SimpleNamespace(numel=lambda: 3)
    return type(kind, (), {"param_groups": [{"params": [parameter], **group}]})()


@pytest.mark.parametrize(
    ("optimizer", "rate"),
    [
        (of_torch("SGD", lr=0.1, weight_decay=0.01, momentum=0, dampening=0), 1e-3),
        (of_torch("SGD", lr=0.1, weight_decay=0.01, momentum=0.9, dampening=0), 1e-2),
        (of_torch("SGD", lr=0.1, weight_decay=0.01, momentum=0.9, dampening=0.9), 1e-3),
        (of_torch("AdamW", lr=0.1, weight_decay=0.01), 1e-3),
        (of_torch("Adam", lr=0.1, weight_decay=0.01, decoupled_weight_decay=True), 1e-3),
        (of_torch("Adam", lr=0.1, weight_decay=0.01), math.nan),
        (of_torch("Adam", lr=0.1, weight_decay=0.0), 0.0),
    ],
)
def test_the_rate_of_an_optimizer(optimizer, rate):
    assert decay_rate(optimizer) == pytest.approx(rate, nan_ok=True)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_rate_of_torch_is_what_parameters_do_without_a_loss(momentum):
    torch = pytest.importorskip("torch")
    for kind, more in ((torch.optim.SGD, {"momentum": momentum}), (torch.optim.AdamW, {})):
        weight = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
        optimizer = kind([weight], lr=0.001, weight_decay=0.05, **more)
        for _ in range(2000):
            weight.grad = torch.zeros_like(weight)
            optimizer.step()
        seen = -math.log(float(weight.detach()[0])) / 2000
        assert decay_rate(optimizer) == pytest.approx(seen, rel=0.01)


def test_a_learning_rate_is_given_or_read():

    def watch(**more):
        more |= {"parameters": np.ones(2), "weight_decay": 0.5}
        return penchant.watch(lambda w, x: x @ w, np.eye(2), **more)

    for learning_rate in (0.1, lambda step: 0.1):
        assert watch(learning_rate=learning_rate).dataset.glance_rate[0] == pytest.approx(0.05)
    assert np.isnan(watch().dataset.glance_rate[0])
    with pytest.raises(ValueError, match="learning_rate must be > 0"):
        watch(learning_rate=-1.0)
