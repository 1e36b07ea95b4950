"""Regime, verdict, forecast, title and figure say the same, and what is printed is what voted."""

import math
import re

import numpy as np
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
from one_state import contradictions
from penchant.measures.curves import without_spikes
from penchant.watch import DISTANCE_LIMITS, MISSED_LIMITS, RegimeNumbers
from penchant.watch.measures import Labels, output_row
from penchant.watch.prediction import forecast_jump, verdict
from penchant.watch.regime import GAIN, findings, regime
from penchant.watch.reporting import read

ALWAYS = {"budget": None, "raise_errors": True}


# what is printed is what voted


def looks(*rows):
    """A record with these numbers at looks after the start."""
    start = RegimeNumbers(math.nan, math.nan, math.nan, math.nan, 0.0, math.nan)
    columns = zip(*(start, *rows), strict=True)
    numbers = {
        name: ("time", np.array(column, dtype=float))
        for name, column in zip(RegimeNumbers._fields, columns, strict=True)
    }
    step = ("time", np.arange(1.0 + len(rows)))
    return xarray.Dataset(numbers, {"step": step}, {"changed": ""})


SHARE = st.one_of(st.floats(0, 1), st.sampled_from([0.02, 0.1, 0.15, 0.5, 0.3, 0.6]))
NEAR = st.builds(lambda v, d: min(max(v + d, 0.0), 1.0), SHARE, st.floats(-1e-3, 1e-3))


@given(st.builds(RegimeNumbers, NEAR, NEAR, st.one_of(NEAR, st.floats(-3, 0)), NEAR, st.just(1.0)))
@settings(deadline=None, derandomize=True, max_examples=200)
def test_the_numbers_in_the_sentence_vote_for_the_regime(look):
    """The sentence is read back, and the rule is applied to the printed numbers."""
    dataset = looks(look)
    said = regime(dataset)
    if not look.learned:
        assert said.kind == "unknown"
        return
    kernel = float(re.search(r"kernel is (\S+) away", said.evidence)[1])
    percents = re.findall(r"(?:misses|which is) (\S+)%", said.evidence)
    learned, whole = (float(v) / 100 for v in percents)
    size, word = re.search(r"error that is (\S+)% (smaller|larger)", said.evidence).groups()
    gain = float(size) / 100 * (1 if word == "smaller" else -1)
    assert float(size) >= 0
    # the printed share of the whole change is what the rich vote of the function reads
    sides = [_side(kernel, DISTANCE_LIMITS), _side(learned, MISSED_LIMITS), _side(gain, GAIN)]
    if sides[1] == "rich":
        sides[1] = "rich" if whole > MISSED_LIMITS[1] else "leaving"
    high, low = sides.count("rich"), sides[:2] == ["kernel", "kernel"] and sides[2] != "rich"
    assert (said.kind == "rich") == (high >= 2)
    assert (said.kind == "kernel") == low
    assert findings([look])[0].kind == said.kind


def _side(value, limits):
    return "kernel" if value < limits[0] else "rich" if value > limits[1] else "leaving"


def test_a_net_that_learned_everything_from_a_large_start_has_a_regime():
    """f = x (w + bias) with outputs of size 30 at the start, which end as labels of size 1."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((20, 30)), rng.choice([-1.0, 1.0], 20)
    w = 10 * rng.standard_normal(30)
    watch = penchant.watch(lambda w, x: x @ w, x, parameters=w, **ALWAYS)
    watch(1, w + np.linalg.pinv(x) @ (y - x @ w))
    assert float(watch.dataset.learned_share[-1]) < 0.05
    assert float(watch.dataset.output_share[-1]) > 0.9
    assert watch.regime.kind == "kernel"
    watch = penchant.watch(lambda w, x: x @ w, x, parameters=w, **ALWAYS)
    watch(1, 0.01 * w)  # the control: decay alone
    assert watch.regime.kind == "unknown"
    assert "nothing was learned" in watch.regime.evidence


# one state


def record(t, train, test, decay=1e-3, **metrics):
    glances = np.geomspace(1, t[-1], 60)
    named = {"train_accuracy": train, "test_accuracy": test, **metrics}
    variables = {name: ("call", np.asarray(value, dtype=float)) for name, value in named.items()}
    for name, value in {
        "norm": np.exp(-decay * glances), "turn": 20 * (1 - np.exp(-glances / 100)),
        "rate": np.full(60, decay),
    }.items():  # fmt: skip
        variables[f"glance_{name}"] = ("glance", value)
    coordinates = {"call_step": ("call", t), "glance_step": ("glance", glances)}
    attributes = {"weight_decay": decay, "start_step": 0, "level": None}
    return xarray.Dataset(variables, coordinates, attributes)


@st.composite
def curves(draw):
    """Sigmoids in log t with noise, spikes, a ceiling, a fall, and an end anywhere."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    end = 10 ** draw(st.floats(2.2, 4.5))
    t = np.unique(np.geomspace(1, end, draw(st.integers(20, 300))).round())
    if draw(st.booleans()):
        t = np.arange(1, 300) * max(round(end / 300), 1.0)
    memo, late = 10 ** draw(st.floats(1, 3)), 10 ** draw(st.floats(0, 2.5))
    top, plateau = draw(st.sampled_from([1.0, 1.0, 0.85, 0.5])), draw(st.floats(0, 0.9))
    sharp = draw(st.sampled_from([2.0, 5.0, 20.0]))
    train = 1 / (1 + (memo / 2 / t) ** 8)
    test = plateau + (max(top, plateau) - plateau) / (1 + (memo * late / t) ** sharp)
    for _ in range(draw(st.integers(0, 4))):
        at, long = draw(st.floats(0.1, 1)) * end, draw(st.floats(0.001, 0.3)) * end
        inside = (t > at) & (t < at + long)
        train, test = np.where(inside, 0.6 * train, train), np.where(inside, 0.5 * test, test)
    noise = draw(st.sampled_from([0.0, 0.01, 0.05]))
    return t, *(np.clip(c + noise * rng.standard_normal(len(t)), 0, 1) for c in (train, test))


@given(curves())
@settings(deadline=None, derandomize=True, max_examples=60)
def test_verdict_and_forecast_do_not_contradict_each_other(given):
    assert contradictions(record(*given)) == []


def spiky(every=1, long=100, depth=0.5, end=12000):
    """A grok at step 6000 of a net that memorizes at step 150, with spikes as Adam has."""
    t = np.arange(every, end + 1, every, dtype=float)
    train, test = 1 / (1 + (75 / t) ** 8), 0.05 + 0.95 / (1 + (6000 / t) ** 25)
    for at in (2000, 3500, 4800, 7700, 9100, 10400, 11650):
        dip = np.where((t >= at) & (t < at + long), 1 - depth * np.exp((at - t) / long), 1)
        train, test = train * dip, test * dip
    return t, train, test


@pytest.mark.parametrize("every", [1, 20])
@pytest.mark.parametrize("long", [60, 150])
def test_spikes_of_the_training_do_not_hide_a_grok(every, long):
    dataset = record(*spiky(every, long))
    what, then = verdict(dataset), forecast_jump(dataset)
    assert what.kind == "grok"
    assert what.t1 == pytest.approx(75 * 19 ** (1 / 8), rel=0.15)
    assert then.state == "happened"
    assert then.step == what.jump == pytest.approx(6000, rel=0.02)
    t, train, test = spiky(every, long, depth=0.0)
    plain = verdict(record(t, train, test))
    for name in ("t1", "t2", "jump"):
        assert getattr(what, name) == pytest.approx(getattr(plain, name), rel=0.02)


def test_a_fall_that_stays_is_no_spike():
    t, train, test = spiky(20, 60)
    lost = np.where(t > 8000, 0.5, 1.0)
    assert verdict(record(t, lost * train, test)).kind == "none"  # training is lost again
    assert verdict(record(t, train, np.where(t > 8000, 0.5, 1.0) * test)).kind == "misgrok"


@given(
    values=st.lists(st.floats(0, 1), min_size=2, max_size=60), ends=st.booleans(),
    log=st.booleans(),
)  # fmt: skip
@settings(deadline=None, derandomize=True, max_examples=100)
def test_filling_spikes_raises_and_leaves_monotone_curves(values, ends, log):
    count = len(values)
    t = np.geomspace(1, 1e4, count) if log else np.arange(1.0, count + 1)
    score = np.array(values)
    filled = without_spikes(t, score, ends)
    assert (filled >= score).all()
    assert filled.max() == score.max()
    rising = np.sort(score)
    np.testing.assert_array_equal(without_spikes(t, rising, ends), rising)


def by_hand(t, score):
    """The smallest maximum of the windows of a tenth of a decade around each record."""
    filled = []
    for i, now in enumerate(t):
        lefts = [s for s in (*t, *(t / 10**0.1)) if s <= now <= s * 10**0.1 * (1 + 1e-12)]
        inside = [(t >= s * (1 - 1e-9)) & (t <= s * 10**0.1 * (1 + 1e-9)) for s in lefts]
        filled.append(min(score[part | (np.arange(len(t)) == i)].max() for part in inside))
    return np.array(filled)


def test_the_fill_by_a_second_route():
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(100, 300, 60))
    score = np.ones(60)
    score[[10, 11, 12, 30, 50]] = rng.uniform(0, 0.5, 5)
    np.testing.assert_allclose(without_spikes(t, score), by_hand(t, score))


# the title and the figure


@pytest.mark.parametrize("end", [200, 3000, 5600, 6500, 12000])
def test_title_and_figure_have_one_half_and_no_other_claims(end):
    watch = penchant.watch(lambda w, x: x @ w, np.eye(3), parameters=np.ones(3), **ALWAYS,
                           weight_decay=0.01, learning_rate=0.1)  # fmt: skip
    t, train, test = spiky(20, 60)
    for now, a, b in zip(t, train, test, strict=True):
        if now <= end:
            watch(now, np.ones(3) * np.exp(-1e-3 * now), train_accuracy=a, test_accuracy=b)
    found = read(watch.dataset)
    for name in ("verdict", "forecast", "regime"):
        assert str(getattr(found, name)) == str(getattr(watch, name))
    assert contradictions(watch.dataset) == []
    figure = found.figure()
    texts = [t.get_text() for t in figure.findobj() if hasattr(t, "get_text")]
    assert found.headline in [" ".join(text.split()) for text in texts]
    halves = [text for text in texts if "half of the jump" in text]
    assert len(set(halves)) <= 1
    if end > 6500:
        assert "grokked" in found.headline
        assert halves
    if found.forecast.ahead:
        assert "grokked" not in found.headline
        assert not halves


def test_forecasts_are_scored_where_a_user_could_have_read_them():
    """Each is what the watch said at that step, and those before the first look count too."""
    watch = penchant.watch(lambda w, x: x @ w, np.eye(3), parameters=np.ones(3), budget=1e-9,
                           weight_decay=0.01, learning_rate=0.1)  # fmt: skip
    t, train, test = spiky(20, 60)
    said = {}
    for now, a, b in zip(t, train, test, strict=True):
        watch(now, np.ones(3) * np.exp(-1e-3 * now), train_accuracy=a, test_accuracy=b)
        if watch.log.glances[-1][0] == now and len(watch.log.glances) % 9 == 0:
            said[now] = watch.forecast
    found = read(watch.dataset)
    steps = [step for step, _ in found.forecasts]
    assert len(steps) > 10
    assert len(watch.log.rows) == 1  # there was no look at all
    both = [(step, f) for step, f in found.forecasts if step in said]
    assert len(both) >= 2
    for step, f in both:
        assert said[step].row == pytest.approx(f.row)
    held = sum(f.low <= found.forecast.step <= f.high for _, f in found.forecasts)
    assert f"which {held} of the {len(steps)} intervals contain" in dict(found.rows())["forecasts"]


# losses that are no cross-entropies


def losses(kind, scale=1.0):
    """A record of a net that memorizes and does not generalize, with losses and labelled probes."""
    rng = np.random.default_rng(0)
    t = np.geomspace(1, 1000, 80)
    labels, classes = rng.integers(0, 5, 40), 5
    table = record(t, 1 / (1 + (50 / t) ** 8), np.full(80, 0.2), decay=1e-4)
    columns = {name: [] for name in ("train_loss", "test_loss", "ce", "sq")}
    for now in t:
        fit = 1 / (1 + (50 / now) ** 3)
        one = np.eye(classes)[labels]
        target = one if kind == "squares" else 8 * one
        noise = rng.standard_normal(one.shape)
        train = fit * target * scale + (1 - fit) * noise
        test = fit * np.roll(target, 1, axis=1) * scale + 0.3 * noise
        row = [output_row_of(part, labels) for part in (train, test)]
        name = "probe_cross_entropy" if kind == "entropy" else "probe_squares"
        columns["train_loss"].append(row[0][name])
        columns["test_loss"].append(row[1][name])
        columns["ce"].append(row[0]["probe_cross_entropy"])
        columns["sq"].append(row[0]["probe_squares"])
    step = np.append(0.0, t)
    probes = {n: ("time", np.append(np.nan, columns[c])) for n, c in
              (("probe_cross_entropy", "ce"), ("probe_squares", "sq"))}  # fmt: skip
    return table.assign(
        train_loss=("call", columns["train_loss"]), test_loss=("call", columns["test_loss"]),
        output=(("time", "sample", "component"), np.zeros((81, 40, 5))), **probes,
    ).assign_coords(step=("time", step))  # fmt: skip


def output_row_of(outputs, labels):
    class Nothing:
        outputs = np.zeros((40, 5))

    return output_row(Nothing, outputs, Labels(np.eye(5)[labels], labels, None))


@pytest.mark.parametrize(("kind", "by"), [("squares", "the test accuracy"), ("entropy", "losses")])
def test_a_large_squared_loss_is_not_taken_for_a_cross_entropy(kind, by):
    dataset = losses(kind)
    now = forecast_jump(dataset)
    assert now.ahead, now
    assert f"by {by}" in now.sentence or f"by the {by}" in now.sentence
    if kind == "squares":  # as large as cross-entropies must be, which was all that counted
        assert float(dataset.test_loss[-1]) > math.log(2)
        unlabelled = forecast_jump(dataset.drop_vars(["probe_squares", "probe_cross_entropy"]))
        assert "taken to be cross-entropies" in unlabelled.sentence
    else:
        assert "taken to be" not in now.sentence


def test_losses_of_probes_by_a_second_route():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    f, labels = 3 * rng.standard_normal((40, 5)), rng.integers(0, 5, 40)
    row = output_row_of(f, labels)
    tensor, classes = torch.as_tensor(f), torch.as_tensor(labels)
    expected = torch.nn.functional.cross_entropy(tensor, classes)
    assert row["probe_cross_entropy"] == pytest.approx(float(expected))
    squares = ((tensor - torch.nn.functional.one_hot(classes, 5)) ** 2).sum(1).mean()
    assert row["probe_squares"] == pytest.approx(float(squares))


# who was not in the fit


def test_a_net_outside_of_the_fit_is_told_so():
    torch = pytest.importorskip("torch")
    nn = torch.nn
    plain = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    normal = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    said = []
    for module, kind in ((plain, "AdamW"), (normal, "AdamW"), (plain, "RMSprop"), (plain, "Adam")):
        optimizer = getattr(torch.optim, kind)(module.parameters(), lr=0.1, weight_decay=0.01)
        watch = penchant.watch(module, torch.randn(4, 3), optimizer=optimizer, budget=None)
        for now, a, b in zip(*spiky(20, 60, end=3000), strict=True):
            watch(now, train_accuracy=a, test_accuracy=b)
        said.append(watch.forecast.sentence)
    assert "nets of other kinds" not in said[0]
    assert "this one has normalization (LayerNorm)" in said[1]
    assert "RMSprop" in said[2] or "rate of weight decay is not known" in said[2]
    assert "pass optimizer=" not in said[3]  # it was passed
    assert "decay is in the gradient" in said[3]
