"""The league of forecasts: its runs by other code, its moments by hand, and its check sabotaged."""

import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import jump_points
from penchant_papers.probe import forecast_rules, forecasts
from penchant_papers.probe.forecast_rules import (
    CLOCK,
    RULES,
    SPREAD,
    Moments,
    RecordedRun,
    Said,
    moments,
    norm_separation,
    reached,
    score,
    watched,
)
from penchant_papers.probe.grokking_runs import DEVELOPMENT, LEAGUE, NEW, RUNS, random_run
from penchant_papers.probe.nets import start
from penchant_papers.probe.runs import digits
from penchant_papers.probe.trajectories import CURVES, ProbeRun, factor, record, record_steps

SMALL = ProbeRun("quadratic", 5, 0.6, "momentum", 0.02, 0.01, 40, 0.7, 8, "mse", "warm-up, cosine")
TORCH = {
    "SGD": lambda torch, p, rate, decay: torch.optim.SGD(p, rate, weight_decay=decay),
    "momentum": lambda torch, p, rate, decay: torch.optim.SGD(p, rate, 0.9, weight_decay=decay),
    "AdamW": lambda torch, p, rate, decay: torch.optim.AdamW(
        p, rate, betas=(0.9, 0.98), weight_decay=decay
    ),
    "AdamW 0.999": lambda torch, p, rate, decay: torch.optim.AdamW(p, rate, weight_decay=decay),
}


# runs


def test_momentum_by_hand():
    """Heavy ball in float64: v = 0.9 v + gradient + decay w, then w = w - rate v."""
    data = SMALL.data(3)
    x, y = data.x.astype(float), data.y.astype(float)
    w = {name: value.astype(float) for name, value in SMALL.start(data, 3).items()}
    begun = np.concatenate([part.ravel() for part in w.values()])
    v = {name: np.zeros_like(part) for name, part in w.items()}
    for k in range(40):
        inner = x @ w["w1"]
        miss = (inner**2 @ w["w2"] - y) / len(x)
        slope = {"w1": x.T @ (2 * inner * (miss @ w["w2"].T)), "w2": (inner**2).T @ miss}
        part = (k + 1) / 40
        rate = 0.02 * min(1.0, part / 0.02) * (0.1 + 0.45 * (1 + math.cos(math.pi * part)))
        for name in w:
            v[name] = 0.9 * v[name] + slope[name] + 0.01 * w[name]
            w[name] = w[name] - rate * v[name]
    end = np.concatenate([part.ravel() for part in w.values()])
    found = record(SMALL, 3)
    cosine = begun @ end / np.linalg.norm(begun) / np.linalg.norm(end)
    loss = 0.5 * np.mean(np.sum(((x @ w["w1"]) ** 2 @ w["w2"] - y) ** 2, axis=1))
    assert found["norm"][-1] == pytest.approx(np.linalg.norm(end), rel=1e-5)
    assert found["turn"][-1] == pytest.approx(np.degrees(np.arccos(cosine)), rel=1e-4)
    assert found["displacement"][-1] == pytest.approx(np.linalg.norm(end - begun), rel=1e-4)
    assert found["train_loss"][-1] == pytest.approx(loss, rel=1e-4)
    assert found["turn"][0] < 1e-5  # degrees: the rounding of float32
    assert found["learning_rate"][-1] == pytest.approx(0.002, rel=1e-5)


@pytest.mark.parametrize("optimizer", TORCH)
def test_a_run_is_that_of_pytorch(optimizer):
    torch = pytest.importorskip("torch")
    run = ProbeRun("dense, biased", 5, 0.6, optimizer, 0.02, 0.1, 30, hidden=8)
    data = run.data(1)
    w = {k: torch.tensor(v, requires_grad=True) for k, v in run.start(data, 1).items()}
    stepper = TORCH[optimizer](torch, list(w.values()), 0.02, 0.1)

    def loss(x, y):
        outputs = torch.relu(torch.tensor(x) @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"]
        return torch.nn.functional.cross_entropy(outputs, torch.tensor(y).argmax(1))

    for _ in range(30):
        stepper.zero_grad()
        loss(data.x, data.y).backward()
        stepper.step()
    found = record(run, 1)
    assert found["train_loss"][-1] == pytest.approx(loss(data.x, data.y).item(), rel=1e-4)
    assert found["test_loss"][-1] == pytest.approx(loss(data.probe, data.probe_y).item(), rel=1e-4)
    norm = math.sqrt(sum(float(part.detach().norm()) ** 2 for part in w.values()))
    assert found["norm"][-1] == pytest.approx(norm, rel=1e-4)


@pytest.mark.parametrize("optimizer", TORCH)
def test_the_share_that_decay_takes_is_that_of_the_watch(optimizer):
    torch = pytest.importorskip("torch")
    from penchant.watch.optimizer import decay_rate

    run = ProbeRun("quadratic", 5, 0.6, optimizer, 0.02, 0.1, 30)
    stepper = TORCH[optimizer](torch, [torch.zeros(3, requires_grad=True)], 0.02, 0.1)
    assert run.decay_rate == pytest.approx(decay_rate(stepper))


def test_a_transformer_is_normalized_or_not():
    first = start("transformer, not normalized", 10, 5, 1.0, 0, hidden=16, tokens=2)
    assert not {"g", "g2"} & set(first)
    assert {"g", "g2"} < set(start("transformer", 10, 5, 1.0, 0, hidden=16, tokens=2))
    assert first["e"].shape == (5, 4)


def test_images_plus_one():
    plain, shifted = (digits(inputs, 1, 20, 5) for inputs in ("pixels", "pixels + 1"))
    assert plain.x.min() == 0
    np.testing.assert_array_equal(shifted.x, plain.x + 1)
    np.testing.assert_array_equal(shifted.probe, plain.probe + 1)


@pytest.mark.parametrize("total", [30, 2400, 20000])
def test_records_are_dense(total):
    steps = record_steps(total)
    assert steps[0] == 0
    assert steps[-1] == total
    gaps = np.diff(steps)
    assert gaps.min() >= 1
    assert gaps.max() <= math.ceil(total / 300)
    assert (gaps <= np.maximum(1, 0.021 * steps[1:] + 1)).all()


def test_a_schedule_that_is_not_known():
    with pytest.raises(ValueError, match="schedule must be"):
        factor("linear", 0, 10)


def test_league_and_development():
    assert len(LEAGUE) == 40
    assert len({run.name for run in LEAGUE}) == 40
    assert not set(NEW) & set(DEVELOPMENT)
    assert len(NEW) >= 10
    for run in NEW:  # not the same but for the length, either
        assert all(run._replace(steps=0) != other._replace(steps=0) for other in DEVELOPMENT)
    assert set(RUNS.values()) == set(LEAGUE)
    assert not {run[:6] for run in NEW} & {tuple(run[:6]) for run in jump_points.MORE}
    seeds = {run[8] for run in jump_points.MORE} | {1}  # of all runs that rules were fitted on
    assert not seeds & set(forecasts.league.at().describe()["seeds"])


# moments


def logistic(t, middle, width, low=0.0, high=1.0):
    return low + (high - low) / (1 + np.exp(-(t - middle) / width))


def test_moments_of_curves_that_are_known():
    t = np.arange(0, 20001, 10.0)
    found = moments(t, logistic(t, 500, 20), logistic(t, 4000, 200, 0.1, 0.9))
    assert found.t_mem == pytest.approx(500 + 20 * math.log(99), abs=10)
    assert found.t_half == pytest.approx(4000, abs=10)
    at = (0.95 * 0.9 - 0.1) / 0.8  # of the logistic
    assert found.t2 == pytest.approx(4000 + 200 * math.log(at / (1 - at)), abs=10)
    assert (found.plateau, found.ceiling) == (pytest.approx(0.1), pytest.approx(0.9))


def test_runs_that_do_not_grok_have_no_half():
    t = np.arange(0, 2001, 10.0)
    never = moments(t, logistic(t, 500, 20), 0.1 + 0 * t)
    at_once = moments(t, logistic(t, 500, 20), logistic(t, 300, 20))
    unsolved = moments(t, 0.5 + 0 * t, logistic(t, 300, 20))
    assert not any(found.groks for found in (never, at_once, unsolved))
    assert math.isfinite(at_once.t_mem)
    assert math.isnan(unsolved.t_mem)


def test_a_level_is_reached_where_the_curve_stays():
    """Beside it the definition, place by place."""
    rng = np.random.default_rng(0)
    t = np.unique(np.rint(np.geomspace(1, 500, 80)))
    for _ in range(200):
        curve = np.linspace(0, 1, len(t)) + 0.3 * rng.standard_normal(len(t))
        stays = [
            now
            for now in t
            if all(curve[place] >= 0.5 for place in range(len(t)) if now <= t[place] <= 1.2 * now)
        ]
        np.testing.assert_equal(reached(t, curve, 0.5), min(stays, default=math.nan))


# rules


def made_up(run=None):
    """A run whose norm falls from memorization on by exp(-rate t) until it groks."""
    run = run or ProbeRun("quadratic", 23, 0.6, "SGD", 0.1, 0.01, 4000)
    t = np.arange(0, 4001, 10.0)
    train, test = logistic(t, 200, 10), logistic(t, 2000, 50)
    zeros = np.zeros_like(t)
    columns = (t, zeros + run.learning_rate, 5 * np.exp(-1e-3 * t), zeros + 1, zeros, zeros)
    curves = dict(zip(CURVES, (*columns, train, test), strict=True))
    return RecordedRun(run, curves, moments(t, train, test))


def test_the_clock_is_the_mean_of_the_runs_that_the_law_was_fitted_on():
    points = jump_points.read(Path(__file__).parents[2] / "measures" / "jump_points.npz")
    first = points["asked"] == 1
    ratios = points["jump"][first] / points["now"][first]
    assert scipy.stats.gmean(ratios) == pytest.approx(CLOCK, abs=0.005)
    assert math.log(scipy.stats.gstd(ratios, ddof=0)) == pytest.approx(SPREAD, abs=0.005)


def test_norm_separation():
    """The norm falls by exp(-rate t): the formula, with the square, is late by a factor of two."""
    run = made_up()
    said = norm_separation(run, 400.0)
    t_mem, t2 = run.moments.t_mem, run.moments.t2
    assert said.step == pytest.approx(t_mem + 2 * (t2 - t_mem), rel=1e-6)
    none = run.run._replace(weight_decay=0.0)
    assert math.isnan(norm_separation(made_up(none), 400.0).step)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_sees_nothing_of_the_future(name):
    """All but norm separation, which is given one norm of the future."""
    run = made_up()
    now = run.asked(1.5)
    later = {k: np.where(run.curves["step"] > now, np.nan, v) for k, v in run.curves.items()}
    later["step"] = run.curves["step"]
    if name == "norm separation":
        later["norm"] = run.curves["norm"]
    np.testing.assert_equal(
        RULES[name](RecordedRun(run.run, later, run.moments), now), RULES[name](run, now)
    )


def test_the_record_of_a_watch_has_these_names():
    """What the forecast reads is what a watch writes."""
    import penchant

    inputs = np.eye(3)
    watch = penchant.watch(
        lambda p, x: x @ p["w"], inputs, parameters={"w": np.ones((3, 2))}, weight_decay=0.1
    )
    for step in range(1, 4):
        watch(step, {"w": np.ones((3, 2)) / step}, train_accuracy=0.5, test_accuracy=0.1)
    found = watched(made_up(), 500.0)
    assert set(found.data_vars) - {"train_loss", "test_loss"} <= set(watch.dataset.variables)
    assert set(found.attrs) <= set(watch.dataset.attrs)


def test_a_score_by_hand():
    run = made_up()
    half = run.moments.t_half
    quiet = RecordedRun(run.run, run.curves, Moments(200.0, math.nan, math.nan, 0.0, 0.0))
    steps = iter([1.5 * half, math.nan, half, 100.0, 900.0])
    runs = [run, run, run, quiet, quiet]
    found = score(runs, lambda r, now: Said(step := next(steps), 0.9 * step, 1.1 * step), 1.2)
    assert found.errors == pytest.approx([0.5, 0.0])
    assert found.error == pytest.approx(0.25)
    assert found.coverage == pytest.approx(1 / 3)  # a refusal is a miss
    assert found.near(1.6) == pytest.approx(2 / 3)
    assert found.near(1.4) == pytest.approx(1 / 3)
    assert found.width == pytest.approx(1.1 / 0.9)
    assert (found.refused, found.asked) == (1, 3)
    assert (found.alarms, found.quiet) == (1, 2)
    assert score(runs[:1], lambda r, now: Said(), 20.0).refused == 0  # it has grokked before


# the check


def off_by(factor, width=0.1):
    """A rule that knows the truth, times a factor; nothing for runs that do not grok."""

    def rule(recorded, now):
        step = factor * recorded.moments.t_half
        return Said(step, step * (1 - width), step * (1 + width))

    return rule


@pytest.mark.parametrize(
    ("rule", "misses"),
    [
        (off_by(1.0), False),
        (off_by(1.8), False),
        (off_by(2.2), True),
        (off_by(0.4), True),
        (lambda recorded, now: Said(), True),
    ],
    ids=["right", "late by 80%", "late by 120%", "early by 60%", "silent"],
)
def test_the_check_finds_a_wrong_forecast(rule, misses, data_of, monkeypatch):
    monkeypatch.setitem(forecast_rules.RULES, "the watch", rule)
    evidence = forecasts.check(*data_of("watch-forecast"))
    assert [check.misses for check in evidence.checks.values()] == [misses]


def test_settings_are_drawn_at_random_and_were_not_used_in_development():
    """Of the old league 28 of 40 settings were settings of development."""
    runs = [random_run(seed, 3000) for seed in range(200)]
    assert len(set(runs)) == 200
    assert {run.net for run in runs} == {"quadratic", "dense, biased"}
    assert {run.p for run in runs[::2]} == set(range(17, 28))
    assert {run.p for run in runs[1::2]} == set(range(17, 32))
    known = {run[:6] for run in DEVELOPMENT} | {tuple(run[:6]) for run in jump_points.MORE}
    assert not {run[:6] for run in runs} & known
    assert all(random_run(seed, 9, ("quadratic",)).net == "quadratic" for seed in range(20))


def test_shifted_seeds_draw_other_settings():
    seeds = [forecasts.study.at("quick", shift).describe()["grid"]["seed"] for shift in (0, 1000)]
    first, second = ({forecasts.drawn_run(s, 9, False) for s in some} for some in seeds)
    assert not first & second
