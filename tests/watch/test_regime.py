"""Regimes that a watch has to name, each by the way that a run of everyday use goes there."""

import math

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penchant
from penchant.watch import DISTANCE_LIMITS, MISSED_LIMITS, RegimeNumbers, judge_regime
from penchant.watch.regime import GAIN, LEARNED, findings
from penchant_papers.probe.nets import NETS, layer_norm, quadratic, start
from penchant_papers.probe.optimizers import OPTIMIZERS, Rates
from penchant_papers.probe.runs import SETTINGS, addition, digits, rates
from penchant_papers.probe.twins import seen, train

ALWAYS = {"budget": None, "raise_errors": True}


def watched(net, first, probe, *later, base=None, **options):
    """A watch of a net with a look at each of the later parameters."""
    watch = penchant.watch(
        lambda p, x: net(p, x, base), probe, parameters=first, **ALWAYS, **options
    )
    for number, p in enumerate(later, start=1):
        watch(10**number, jax.tree.map(np.asarray, p))
    return watch


# runs


def test_adamw_on_pixels_is_not_in_the_kernel_regime():
    """The kernel, not centred, moves by less than 0.01, since most of it is the mean image."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    data = digits("pixels", 0, 300, 40)
    x, y, probe = (torch.tensor(part) for part in (data.x, data.y, data.probe))
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    watch = penchant.watch(model, probe, weight_decay=0.01, **ALWAYS)
    before = watch.start.kernel
    for _ in range(150):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    watch(150)
    assert (
        penchant.measures.kernel_distance(before, watch.backend.kernels().sum(0)) < 0.01
    )  # the control
    found = watch.regime
    assert found.kind in ("leaving", "rich"), found
    assert found.kernel_distance > DISTANCE_LIMITS[0]
    assert found.linearized_error > MISSED_LIMITS[0]


def test_a_net_that_groks_modular_addition_is_rich():
    data = addition(0, 48)
    first = start("quadratic", data.x.shape[1], data.y.shape[1], 1.0, 0)
    last, *_ = train(quadratic, False, 600, first, data, OPTIMIZERS["AdamW"], Rates(0.01, 1.0))
    new = np.asarray(quadratic(last, data.probe, None)).argmax(axis=1)
    assert np.mean(new == data.probe_y.argmax(axis=1)) > 0.9
    watch = watched(quadratic, first, data.probe, last, weight_decay=1.0)
    found, now = watch.regime, watch.backend.kernels(last).sum(0)
    apart = penchant.measures.kernel_distance(watch.start.kernel, now)
    assert apart < 0.25  # the control: the limit of rich nets for kernels that are not centred
    assert found.kind == "rich", found
    assert found.decided in ("all", "kernel and function")


def scaled(p, x, base):
    return p["size"] * (x @ p["w"])


def test_a_net_that_differs_by_its_scale_alone_is_in_the_kernel_regime():
    """On orthonormal inputs the net goes along the labels, as the kernel machine does."""
    rng = np.random.default_rng(0)
    x = np.linalg.qr(rng.standard_normal((60, 60)))[0]
    y = np.resize([2.0, -2.0], 60)
    p = first = {"size": np.array(1.0), "w": np.zeros(60)}
    for _ in range(4000):
        error = scaled(p, x, None) - y
        slope = {"size": error @ (x @ p["w"]), "w": p["size"] * (x.T @ error)}
        p = {name: p[name] - 0.005 * slope[name] for name in p}
    assert np.abs(scaled(p, x, None) - x @ np.linalg.solve(x, y)).max() < 1e-6
    watch = watched(scaled, first, x, p)
    linear = watch.dataset.linearized_output.values[-1, :, 0]
    assert np.linalg.norm(linear - y) / np.linalg.norm(y) > 0.5  # the control: without a factor
    found = watch.regime
    assert (found.kind, found.decided) == ("kernel", "kernel and function"), found


@pytest.mark.parametrize("name", ["dense, biased", "LayerNorm"])
def test_decay_without_learning_is_unknown(name):
    probe = digits("pixels", 0, 20, 40).probe
    first = start(name, 64, 10, 1.0, 0)
    smaller = [{key: size * value for key, value in first.items()} for size in (0.9, 0.5, 0.2)]
    found = watched(NETS[name], first, probe, *smaller, weight_decay=0.1).regime
    assert found.kind == "unknown", found
    assert "those of the start times a number" in found.evidence


def test_decay_of_a_net_that_has_learned_as_its_kernel_does():
    """Shrinking all weights of a homogeneous net changes neither measure; moving them does."""
    probe = digits("centred", 0, 20, 40).probe
    first = start("dense", 64, 10, 4.0, 0)
    turn = start("dense, biased", 64, 10, 1.0, 1)
    learned = {key: value + 0.05 * turn[key] for key, value in first.items()}
    small = {key: 0.3 * value for key, value in learned.items()}
    near, far = (
        watched(NETS["dense"], first, probe, p, weight_decay=0.1).dataset.isel(time=-1)
        for p in (learned, small)
    )
    for name in ("kernel_distance", "linearized_error"):
        assert float(far[name]) == pytest.approx(float(near[name]), rel=0.02)
    found = watched(NETS["dense"], first, probe, small).regime
    assert found.kind == "kernel", found
    moved = {key: 0.3 * value + 2 * turn[key] for key, value in first.items()}
    assert watched(NETS["dense"], first, probe, moved).regime.kind in ("leaving", "rich")


def test_a_run_that_was_rich_stays_rich():
    """The kernel turns back, most of the way; what was learned is not unlearned by that."""
    probe = digits("centred", 0, 20, 40).probe
    first = start("dense", 64, 10, 1.0, 0)
    other = start("dense, biased", 64, 10, 3.0, 1)
    there = [{k: first[k] + t * other[k] for k in first} for t in (0.001, 1.0, 0.01)]
    alone = watched(NETS["dense"], first, probe, there[2]).regime
    assert alone.kind == "kernel", alone
    watch = watched(NETS["dense"], first, probe, *there)
    kinds = penchant.watch.reporting.regimes(watch.dataset)
    assert kinds == ["unknown", "kernel", "rich", "rich"]
    found = watch.regime
    assert (found.kind, found.decided, found.left) == ("rich", "earlier", 100.0)
    assert "it was rich at step 100" in found.evidence


def test_outputs_that_moved_by_rounding_have_learned_nothing():
    """A constant added to all weights is orthogonal to inputs without a mean."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    last = torch.nn.Linear(16, 2)
    module = torch.nn.Sequential(torch.nn.LayerNorm(16, elementwise_affine=False), last)
    watch = penchant.watch(module, torch.randn(20, 16), budget=None, raise_errors=True)
    last.weight.data += 1
    watch(1)
    found = watch.dataset.isel(time=-1)
    assert 0 < float(found.output_change) < 1e-5
    assert np.isnan([found.linearized_error, found.learned_share, found.kernel_gain]).all()
    assert watch.regime.kind == "unknown"
    last.weight.data += 1e-3 * torch.randn(2, 16)  # the control: a small step that is none
    watch(2)
    assert watch.regime.kind == "kernel"


def test_two_probe_inputs_tell_nothing():
    """Centred, their kernel has one direction, and no kernel differs from it."""
    watch = penchant.watch(lambda w, x: x @ w**2, np.eye(2), parameters=np.ones(2), **ALWAYS)
    watch(5, np.array([1.0, 3.0]))
    assert np.isnan(watch.dataset.kernel_distance).all()
    assert watch.regime.kind == "unknown"


# the rule

NUMBERS = st.one_of(st.just(math.nan), st.floats(0, 1.5))


@given(st.lists(st.builds(RegimeNumbers, NUMBERS, NUMBERS, NUMBERS, st.floats(0, 1)), max_size=6))
def test_the_rule_on_any_looks(looks):
    found = findings(looks)
    kinds = [kind for kind, _ in found]
    if "rich" in kinds:
        assert set(kinds[kinds.index("rich") :]) == {"rich"}
    limits = (DISTANCE_LIMITS, MISSED_LIMITS, GAIN)
    for look, (kind, decided) in zip(looks, found, strict=True):
        pairs = list(zip(look[:3], limits, strict=True))
        told = max(look.learned_share, look.output_share) >= LEARNED and look.output_change > 0
        told = told and math.isfinite(look.kernel_distance)
        if decided == "earlier":
            continue
        high = [v > high for v, (_, high) in pairs]
        high[1] = look.linearized_error * look.learned_share > MISSED_LIMITS[1]
        assert (kind == "rich") == (told and sum(high) >= 2)
        low = all(v < low for v, (low, _) in pairs[:2])
        assert (kind == "kernel") == (told and low and not look.kernel_gain > GAIN[1])
        if not told:
            assert kind == "unknown"


@pytest.mark.parametrize(
    ("look", "kind", "decided"),
    [
        (RegimeNumbers(0.001, 0.05, 0.0), "kernel", "all"),
        (RegimeNumbers(0.001, 0.05), "kernel", "kernel and function"),
        (RegimeNumbers(0.05, 0.05, 0.0), "leaving", "kernel"),
        (RegimeNumbers(0.001, 0.3, 0.0), "leaving", "function"),
        (RegimeNumbers(0.001, 0.05, 0.5), "kernel", "kernel and function"),
        (RegimeNumbers(0.001, 0.05, 0.9), "unknown", "none"),
        (RegimeNumbers(0.5, 0.3, 0.0), "leaving", "function"),
        (RegimeNumbers(0.05, 0.3, 0.5), "leaving", "all"),
        (RegimeNumbers(0.5, 0.9, 0.9), "rich", "all"),
        (RegimeNumbers(0.5, 0.9, 0.0), "rich", "kernel and function"),
        (RegimeNumbers(0.5, 0.9, 0.0, 0.4), "leaving", "function"),
        (RegimeNumbers(0.5, 0.05, 0.9), "rich", "kernel and gain"),
        (RegimeNumbers(0.5, 0.05, 0.0), "unknown", "none"),
        (RegimeNumbers(0.5, 0.05, 0.5), "leaving", "gain"),
        (RegimeNumbers(0.001, 0.9, 0.0), "unknown", "none"),
        (RegimeNumbers(0.001, math.nan, 0.0), "unknown", "none"),
        (RegimeNumbers(0.5, math.nan), "leaving", "kernel"),
        (RegimeNumbers(math.nan, 0.05, 0.0), "unknown", "none"),
        (RegimeNumbers(0.001, 0.05, 0.0, LEARNED / 2), "unknown", "none"),
        (RegimeNumbers(0.001, 0.05, 0.0, 1.0, 0.0), "unknown", "none"),
    ],
)
def test_who_decides(look, kind, decided):
    assert judge_regime(look) == (kind, decided)


# the calibration


def test_the_calibration_sees_what_a_watch_sees():
    of = SETTINGS["LayerNorm x 1, AdamW, pixels, decay"]
    data = digits(of.inputs, 3, 60, 20)
    first = start(of.net, 64, 10, of.scale, 3)
    at = rates(of, first, data, 50)
    last, *_ = train(layer_norm, False, 50, first, data, OPTIMIZERS[of.optimizer], at)
    row = seen(layer_norm, first, last, data)
    found = watched(layer_norm, first, data.probe, last, base=data.x).dataset.isel(time=-1)
    for name in ("kernel_distance", "linearized_error", "learned_share", "kernel_gain"):
        assert row[name] == pytest.approx(float(found[name]), rel=1e-3), name
