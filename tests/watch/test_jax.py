"""The watch on JAX functions: its numbers, its regimes, its budget; and it never stops a run"""

import functools
import json
import math
import re
import subprocess
import sys

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import penchant
from penchant import load, watch
from penchant.forecasts import forecast_jump
from penchant.lab import double_precision
from penchant.watch import DISTANCE_LIMITS
from penchant.watch.backends.backend import LookOptions
from penchant.watch.backends.jax_backend import JaxBackend
from penchant.watch.measures import nuclear, read_labels
from penchant.watch.prediction import verdict
from penchant.watch.record import ATTRIBUTES, Log, save
from penchant.watch.regime import regime
from penchant.watch.schedule import DOUBT, HEAD, Budget, LookSteps
from penchant.watch.watcher import CLOCKED, Watch

ALWAYS = {"budget": None, "raise_errors": True}


def network(params, x):
    return jnp.tanh(x @ params["inner"] + params["shift"]) @ params["outer"]


def start(rng, inputs=4, width=6, outputs=3, dtype=np.float64):
    draw = rng.standard_normal
    made = {
        "inner": draw((inputs, width)),
        "shift": draw(width),
        "outer": draw((width, outputs)),
    }
    return {name: value.astype(dtype) for name, value in made.items()}


def moved(params, rng, size=0.3):
    return {n: v + size * rng.standard_normal(v.shape).astype(v.dtype) for n, v in params.items()}


def jacobian(params, x):
    """(samples, outputs, parameters) of `network`, by reverse differentiation of everything."""
    with double_precision():
        parts = jax.jit(jax.jacrev(network))(params, x)
    return np.concatenate(
        [np.array(parts[name]).reshape(*parts[name].shape[:2], -1) for name in params], axis=2
    )


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@functools.cache
def compiled(output=None):
    """A backend of `network` with its start, compiled once for many watches."""
    rng = np.random.default_rng(0)
    x, params = rng.standard_normal((7, 4)), start(rng)
    return JaxBackend(network, params, x, LookOptions(output)), x, params


def made(labels=None, output=None, wrapped=lambda backend: backend, **options):
    """A watch on the compiled backend, and its inputs and start."""
    backend, x, params = compiled(output)
    given = {"weight_decay": 0.0, "points_per_decade": 8, "step": 0}
    seen = Watch(
        wrapped(backend),
        params,
        lambda *shape: None if labels is None else read_labels(labels, *shape),
        **(given | ALWAYS | options),
    )
    return seen, x, params


def looked(rng, **options):
    """A watch after one look away from the start, with its ingredients."""
    seen, x, params = made(**options)
    later = moved(params, rng)
    seen(5, later)
    return seen, x, params, later


def slices(params):
    """Where the parameters of every array are among all of them, flat."""
    ends = np.cumsum([params[name].size for name in params])
    return {n: slice(end - params[n].size, end) for n, end in zip(params, ends, strict=True)}


def residual(target, *columns):
    """What least squares on the columns leaves of the target."""
    A = np.stack(columns, axis=1)
    return np.linalg.norm(target - A @ np.linalg.lstsq(A, target)[0])


def left_out(K, values):
    """The error of ridge regression, fitted anew without each sample."""
    ridge, errors = 0.01 * np.trace(K) / len(K), []
    for i in range(len(K)):
        rest = np.delete(np.arange(len(K)), i)
        inner = K[np.ix_(rest, rest)] + ridge * np.eye(len(rest))
        errors.append(values[i] - K[i, rest] @ np.linalg.solve(inner, values[rest]))
    return np.linalg.norm(errors)


def test_every_number_by_a_second_route(rng):
    labels = rng.integers(3, size=7)
    seen, x, params, later = looked(rng, labels=labels)
    row = seen.dataset.isel(time=1)
    J0, J1 = jacobian(params, x), jacobian(later, x)
    K0, K1 = (np.einsum("ncp,mcp->nm", J, J) / 3 for J in (J0, J1))
    shares = np.linalg.eigvalsh(K1) / np.trace(K1)
    assert row.effective_rank == pytest.approx(np.prod(shares**-shares), rel=1e-9)
    centre = np.eye(7) - 1 / 7
    hot = centre @ np.eye(3)[labels]
    K0c, Kc, Y = centre @ K0 @ centre, centre @ K1 @ centre, hot @ hot.T
    cosine = np.sum(K0c * Kc) / np.linalg.norm(K0c) / np.linalg.norm(Kc)
    assert row.kernel_distance == pytest.approx(1 - cosine, abs=1e-12)
    aligned = np.sum(Kc * Y) / np.linalg.norm(Kc) / np.linalg.norm(Y)
    assert row.kernel_alignment == pytest.approx(aligned, rel=1e-9)
    flat0, flat1 = (np.concatenate([np.ravel(p[n]) for n in p]) for p in (params, later))
    f0, f1 = (np.tanh(x @ p["inner"] + p["shift"]) @ p["outer"] for p in (params, later))
    np.testing.assert_allclose(row.output, f1, rtol=1e-12)
    np.testing.assert_allclose(row.linearized_output, f0 + J0 @ (flat1 - flat0), rtol=1e-10)
    change, along = np.ravel(f1 - f0), np.ravel(J0 @ (flat1 - flat0))
    left = [residual(change, np.ravel(f0)), residual(change, np.ravel(f0), along)]
    assert row.learned_share == pytest.approx(left[0] / np.linalg.norm(change), rel=1e-9)
    assert row.linearized_error == pytest.approx(left[1] / left[0], rel=1e-9)
    errors = [left_out(centre @ K @ centre, centre @ (f1 - f0)) for K in (K0, K1)]
    assert row.kernel_gain == pytest.approx(1 - errors[1] / errors[0], rel=1e-9)
    assert row.output_change == pytest.approx(np.sqrt(np.mean((f1 - f0) ** 2)))
    assert row.norm_l1 == pytest.approx(np.abs(flat1).sum())
    assert row.norm_l2 == pytest.approx(math.sqrt(flat1 @ flat1))
    cosine = flat0 @ flat1 / np.linalg.norm(flat0) / np.linalg.norm(flat1)
    assert row.direction_change == pytest.approx(math.degrees(math.acos(cosine)))
    assert row.relative_move == pytest.approx(math.dist(flat0, flat1) / np.linalg.norm(flat0))
    singular = [np.linalg.norm(later[name], "nuc") for name in ("inner", "outer")]
    assert row.norm_nuclear == pytest.approx(sum(singular))
    assert list(row.layer.values) == ["inner", "outer", "shift"]
    np.testing.assert_allclose(row.layer_nuclear, [*singular, np.nan])
    for name, at in slices(params).items():
        pair = [centre @ np.einsum("ncp,mcp->nm", *[J[..., at]] * 2) @ centre for J in (J0, J1)]
        cosine = np.sum(pair[0] * pair[1]) / np.prod([np.linalg.norm(K) for K in pair])
        assert row.layer_distance.sel(layer=name) == pytest.approx(1 - cosine, abs=1e-12)
        moved = np.linalg.norm(later[name] - params[name]) / np.linalg.norm(params[name])
        assert row.layer_moved.sel(layer=name) == pytest.approx(moved, rel=1e-9)
    assert (
        np.ptp(row.layer_distance.values) > 1e-3
    )  # layers differ from one another, and from the whole
    assert np.abs(row.layer_distance - row.kernel_distance).min() > 1e-5
    margins = [f[c] - max(np.delete(f, c)) for f, c in zip(f1, labels, strict=True)]
    assert row.margin == pytest.approx(min(margins))
    row = seen.dataset.isel(time=0)  # at the start nothing has moved
    assert row.step == row.kernel_distance == row.direction_change == row.relative_move == 0
    assert math.isnan(row.linearized_error)
    assert np.array_equal(row.output, row.linearized_output)


def test_one_output_by_its_index(rng):
    _, x, params = compiled()
    later, found = moved(params, rng), []
    for output in (1, 2, None):
        seen, *_ = made(output=output)
        seen(1, later)
        found.append(float(seen.dataset.kernel_distance[1]))
    J0, J1 = jacobian(params, x), jacobian(later, x)
    centre = np.eye(7) - 1 / 7
    for c in (1, 2):
        K0, K1 = (centre @ J[:, c] @ J[:, c].T @ centre for J in (J0, J1))
        cosine = np.sum(K0 * K1) / np.linalg.norm(K0) / np.linalg.norm(K1)
        assert found[c - 1] == pytest.approx(1 - cosine, abs=1e-12)
    assert len({round(value, 6) for value in found}) == 3


def test_integers_and_low_precision(rng):
    """Tokens stay integers; bfloat16 beside float32 is raised, and integer leaves are constants."""

    def tokens(params, x):
        return jnp.mean(params["table"][x], axis=1) @ params["head"].astype(jnp.float32)

    params = {
        "table": rng.standard_normal((5, 4)).astype(np.float32),
        "head": jnp.asarray(rng.standard_normal((4, 2)), dtype=jnp.bfloat16),
        "count": np.int32(3),
    }
    x = rng.integers(5, size=(6, 3))
    seen = watch(tokens, x, parameters=params, **ALWAYS)
    assert list(seen.dataset.layer.values) == ["head", "table"]
    h = params["table"].astype(np.float64)[x].mean(axis=1)
    head = np.asarray(params["head"], dtype=np.float64)
    counts = np.array([np.bincount(row, minlength=5) / 3 for row in x])
    K = h @ h.T + counts @ counts.T * np.sum(head**2) / 2
    np.testing.assert_allclose(seen.start.kernel, K, rtol=1e-5)
    seen(1, {**params, "count": np.int32(4)})
    assert seen.dataset.kernel_distance[1] == 0


def test_an_unbiased_start_whose_outputs_are_rounding(rng):
    inner, outer = rng.standard_normal((4, 6)), rng.standard_normal((6, 1))
    params = {
        "inner": np.hstack([inner, inner]),
        "shift": np.zeros(12),
        "outer": np.vstack([outer, -outer]),
    }
    seen = watch(network, rng.standard_normal((30, 4)), parameters=params, **ALWAYS)
    assert np.abs(seen.start.outputs).max() < 1e-13


@pytest.mark.parametrize("shape", [(3, 5), (200, 150), (150, 200)])
def test_nuclear_norm(rng, shape):
    matrix = rng.standard_normal(shape) @ np.diag(np.logspace(0, -12, shape[1]))
    assert nuclear(matrix, 0) == pytest.approx(np.linalg.norm(matrix, "nuc"), rel=1e-6)
    tall = matrix.reshape(*shape, 1)
    assert nuclear(tall, 0) == pytest.approx(nuclear(matrix, 0))
    assert nuclear(tall, -1) == pytest.approx(np.linalg.norm(matrix))  # a single row
    assert math.isnan(nuclear(matrix[0], 0))


def test_labels():
    signs = read_labels([0, 1, 1], 3, 1)
    assert signs.signs.tolist() == [-1, 1, 1]
    assert read_labels([0.5, 1, 1], 3, 1).signs is None
    assert read_labels([[0, 1], [1, 0]], 2, 2).classes.tolist() == [1, 0]
    assert read_labels([[0.5, 1], [1, 0]], 2, 2).classes is None
    for labels, rule in (
        ([1, 2], "3 probe inputs need as many labels, got 2"),
        ([1, 2, 3], "classes from 0 to 1 or rows of 2 numbers, got 1 to 3"),
        (np.eye(3), "2 outputs per row but the labels 3"),
    ):
        with pytest.raises(ValueError, match=rule):
            read_labels(labels, 3, 2)


# regimes: models whose regime the theory knows


def descend(f, params, X, y, rate, steps, decay=0.0):
    """Descent on the sum of squares; parameters at a few log-spaced steps."""
    w, done = np.asarray(params), 0
    for step in steps:
        with double_precision():
            w, done = np.array(_descent(f, w, X, y, rate, decay, step - done)), step
        yield step, w


@functools.partial(jax.jit, static_argnums=0)
def _descent(f, w, X, y, rate, decay, count):
    def loss(w):
        return jnp.sum((f(w, X) - y) ** 2) + decay / 2 * jnp.sum(w**2)

    return jax.lax.fori_loop(0, count, lambda _, w: w - rate * jax.grad(loss)(w), w)


def diagonal(w, x):
    half = len(w) // 2
    return x @ (w[:half] ** 2 - w[half:] ** 2)


def unbiased_relu(w, x):
    half = len(w) // 2
    return _relu(w[:half], x) - _relu(w[half:], x)


def _relu(w, x):
    inner, outer = w[: 50 * 10].reshape(50, 10), w[50 * 10 :]
    return jax.nn.relu(x @ inner.T) @ outer


def sparse_data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 100))
    return X, X[:, :5].sum(axis=1) / math.sqrt(5)


def relu_data():
    rng = np.random.default_rng(0)
    X, teacher = rng.standard_normal((30, 10)), rng.standard_normal((3, 10)) / math.sqrt(10)
    half = np.concatenate([rng.standard_normal(500) / math.sqrt(10), rng.standard_normal(50) / 10])
    return X, np.maximum(X @ teacher.T, 0).sum(axis=1) - 0.5, np.concatenate([half, half])


def trained_regime(f, start, X, y, rate):
    seen = watch(f, X, parameters=start, **ALWAYS)
    for step, w in descend(f, start, X, y, rate, (100, 1000, 6000)):
        seen(step, w)
    return seen.regime, regime_of_the_twin(f, start, w, X, y)


def regime_of_the_twin(f, start, end, X, y):
    """The truth: how far the net linearized at its start, fitted to `y`, is away on new inputs."""
    new = np.random.default_rng(1).standard_normal((500, X.shape[1]))
    with double_precision():
        features, new_features = (np.array(jax.jacobian(f)(jnp.array(start), Z)) for Z in (X, new))
        outputs, before, after = (
            np.array(f(jnp.array(w), Z)) for w, Z in ((start, X), (start, new), (end, new))
        )
    twin = before + new_features @ np.linalg.lstsq(features, y - outputs, rcond=None)[0]
    distance = np.linalg.norm(after - twin) / np.linalg.norm(after - before)
    return "kernel" if distance < 0.25 else "rich" if distance > 0.4 else "leaving"


@pytest.mark.parametrize(
    ("alpha", "kind"), [(3.0, "kernel"), (0.3, "kernel"), (0.13, "leaving"), (0.01, "rich")]
)
def test_the_regime_of_a_diagonal_net(alpha, kind):
    rate = 1 / (4480 * max(alpha, 1.0) ** 2)
    found, truth = trained_regime(diagonal, np.full(200, alpha), *sparse_data(), rate)
    assert found.kind == truth == kind, found
    assert math.isnan(found.left) == (kind == "kernel")
    if kind == "kernel":
        assert found.kernel_distance < DISTANCE_LIMITS[0] / 5  # the limit is not tuned to the case
        assert found.linearized_error < 0.1
    if kind == "rich":
        assert found.kernel_distance > 1.5 * DISTANCE_LIMITS[1]
        assert found.kernel_gain > 0.8  # of equal coefficients the roots have the same direction


@pytest.mark.parametrize(("alpha", "kind"), [(2.0, "kernel"), (0.5, "leaving"), (0.03, "rich")])
def test_the_regime_of_an_unbiased_network(alpha, kind):
    X, y, unit = relu_data()
    rate = 1 / 6000 / max(alpha**2 / 2, 1.0)
    found, truth = trained_regime(unbiased_relu, alpha * unit, X, y, rate)
    assert found.kind == truth == kind, found
    assert (
        f"at step 6000 the centred tangent kernel is {found.kernel_distance:.2g}" in found.evidence
    )


def test_a_linear_model_never_leaves_the_kernel_regime(rng):
    """Control: however far its parameters go, its kernel is the same."""
    seen = watch(lambda w, x: x @ w, rng.standard_normal((6, 4)), parameters=np.ones(4), **ALWAYS)
    seen(1, rng.standard_normal(4) * 1e6)
    assert seen.regime.kind == "kernel"
    assert seen.dataset.relative_move[1] > 1e5
    assert seen.regime.linearized_error < 1e-12


def test_a_regime_needs_a_look_and_a_move():
    seen, _, params = made()
    assert seen.regime.kind == "unknown"
    assert "no look" in seen.regime.evidence
    seen(1, params)
    assert seen.regime.kind == "unknown"
    assert "not moved" in seen.regime.evidence


# schedule and budget


@given(start=st.integers(0, 1000), per_decade=st.integers(1, 40), stride=st.integers(1, 50))
@settings(deadline=None, derandomize=True, max_examples=30)
def test_steps_are_log_spaced(start, per_decade, stride):
    steps, taken = LookSteps(start, per_decade), []
    for step in range(start, start + 20000, stride):
        if steps.due(step):
            taken.append(step - start)
            steps.taken(step)
    assert 0 not in taken
    for low in (100, 1000):
        count = sum(low < step <= 10 * low for step in taken)
        assert count <= per_decade + 1
        if stride == 1 or low == 1000:
            assert count >= min(per_decade, 9 * low // stride) / 2


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@given(
    share=st.floats(0.01, 0.5),
    costs=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=40),
    step=st.floats(0.001, 1.0),
)
@settings(deadline=None, derandomize=True, max_examples=30)
def test_looks_stay_in_the_budget(share, costs, step):
    """What is spent exceeds the share only by what a look costs more than twice the last ones."""
    clock = Clock()
    budget, taken = Budget(share, clock), 0
    with budget.charged("look"):
        clock.now += costs[0]
    budget.restart()
    for _ in range(500):
        clock.now += step
        budget.seen()
        while budget.allows("look"):
            with budget.charged("look"):
                clock.now += costs[taken % len(costs)]
            budget.seen()
            taken += 1
    surprise = max(max(costs) - DOUBT * min(costs), 0.0)
    assert budget.spent <= share * max(budget.training, HEAD) + surprise + 1e-9
    # and the budget is used, not only kept
    assert budget.spent + (DOUBT + 1) * max(costs) + step >= share * max(budget.training, HEAD)


def test_a_look_waits_for_what_follows_it():
    clock = Clock()
    budget = Budget(0.1, clock)
    for kind, cost in (("look", 0.1), ("live", 1.0)):
        with budget.charged(kind):
            clock.now += cost
    budget.restart()
    for seconds, allowed in ((21.0, False), (2.0, True)):  # 2 (0.1 + 1.0) of 10% of the training
        clock.now += seconds
        budget.seen()
        assert budget.allows("look") is allowed


def test_less_important_looks_have_a_part_of_the_budget():
    clock = Clock()
    budget = Budget(0.1, clock)
    for _ in range(1000):
        clock.now += 1.0
        budget.seen()
        for kind in ("nuclear", "look"):
            if budget.allows(kind):
                with budget.charged(kind):
                    clock.now += 0.5
    room = 0.1 * budget.training
    assert 0.25 * room < budget.by_kind["nuclear"] <= 0.3 * room
    assert 0.65 * room < budget.by_kind["look"] <= room


class Slow:
    """A backend whose kernel takes a given time on the clock of the test."""

    def __init__(self, inner, clock, cost):
        self.inner, self.clock, self.cost = inner, clock, cost

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def kernels(self, params):
        self.clock.now += self.cost
        return self.inner.kernels(params)


def slow_watch(cost):
    clock = Clock()
    seen, _, params = made(wrapped=lambda b: Slow(b, clock, cost), budget=0.05, clock=clock)
    return seen, clock, params


def test_slow_looks_are_rare_and_the_overhead_is_stated():
    counts = {}
    for cost in (1e-6, 0.5):
        seen, clock, params = slow_watch(cost)
        assert seen.setup_seconds == pytest.approx(2 * cost)
        for step in range(1, 1001):
            clock.now += 0.1
            seen(step, params, train_loss=1.0)
        assert seen.overhead <= CLOCKED * 0.05
        attributes = seen.dataset.attrs
        assert attributes["training_seconds"] == pytest.approx(100)
        assert attributes["look_seconds"] == pytest.approx((len(seen.log.rows) - 1) * cost)
        counts[cost] = len(seen.log.rows) - 1
    assert counts == {1e-6: 24, 0.5: 5}
    # norms are cheap and follow the steps alone: every fifth of the first, then 32 per decade
    assert len(seen.log.glances) == 53
    clock.now += 1e6  # after the last call
    assert seen.dataset.attrs["training_seconds"] == pytest.approx(100)


def test_a_last_look_is_taken_when_asked_for():
    seen, clock, params = slow_watch(1.0)
    clock.now += 0.1
    seen(17, params)
    assert len(seen.log.rows) == 1
    seen.look(params)
    seen.look(params)
    assert seen.dataset.step.values.tolist() == [0, 17]
    assert seen.overhead == 0  # what is asked for is counted apart
    assert seen.dataset.attrs["asked_seconds"] == pytest.approx(1)
    assert seen.dataset.attrs["training_seconds"] == pytest.approx(0.1)


# the run goes on


def deleted():
    gone = jnp.ones(6)
    gone.delete()
    return gone


BROKEN = {
    "the parameters are missing at this call": lambda params: None,
    "another structure than at the start": lambda params: {**params, "more": np.ones(1)},
    r"parameter shift has shape \(9,\) instead of \(6,\)": {"shift": np.ones(9)},
    "parameter shift has dtype int64, and was real at the start": {"shift": np.ones(6, int)},
    "parameter shift is gone .donated to a compiled step.": {"shift": deleted()},
    "not finite any more; training has diverged": {"shift": np.full(6, np.nan)},
}


@pytest.mark.parametrize(("rule", "change"), BROKEN.items(), ids=range(len(BROKEN)))
def test_a_broken_call_is_recorded_and_the_run_goes_on(rng, rule, change):
    seen, _, params = made(raise_errors=False)
    broken = change(params) if callable(change) else params | change
    for step in range(1, 4):
        seen(step, broken, train_loss=step)
    seen(4, moved(params, rng), train_loss=4)
    assert seen.dataset.train_loss.values.tolist() == [1, 2, 3, 4]
    assert math.isfinite(seen.dataset.kernel_distance[-1])
    assert seen.dataset.step[-1] == 4
    assert any(re.search(rule, f.sentence) and f.count == 3 for f in seen.failures)
    assert all(f.sentence.startswith("watch: ") and f.step == 1 for f in seen.failures)
    json.dumps(seen.dataset.attrs["failures"])
    loud, *_ = made()
    with pytest.raises((ValueError, RuntimeError), match=rule):
        loud(1, broken)


def test_a_call_inside_a_compiled_function_is_recorded():
    seen, _, params = made(raise_errors=False)

    @jax.jit
    def step(params):
        seen(1, params, train_loss=jnp.sum(params["shift"]))
        return params

    step(params)
    sentences = [failure.sentence for failure in seen.failures]
    assert "train_loss must be a single real number, got DynamicJaxprTracer" in sentences[0]
    assert "which was traced (inside jax.jit, grad or scan)" in sentences[1]
    assert len(sentences) == 2


class Failing:
    """A backend whose part of a given name fails."""

    def __init__(self, inner, name, error):
        self.inner, self.name, self.error = inner, name, error

    def __getattr__(self, name):
        if name == self.name and self.error:
            raise self.error
        return getattr(self.inner, name)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("out of memory"), StopIteration()])
@pytest.mark.parametrize("part", ["kernels", "outputs", "linearized", "arrays", "check"])
def test_no_error_of_the_model_ends_the_training(rng, part, error):
    """The other parts of a look stand, and the next look is whole again."""
    seen, _, params = made(wrapped=lambda b: Failing(b, part, None), raise_errors=False)
    seen.backend.error = error
    seen(1, moved(params, rng), train_loss=1.0)
    seen.backend.error = None
    seen(2, moved(params, rng), train_loss=2.0)
    found = seen.dataset
    assert found.train_loss.values.tolist() == [1, 2]
    assert np.isfinite(
        found.isel(time=-1)[["kernel_distance", "norm_l2", "linearized_error"]]
    ).all()
    assert type(error).__name__ in seen.failures[0].sentence
    stands = {"kernels": "norm_l2", "outputs": "kernel_distance", "linearized": "kernel_distance"}
    if part in stands:
        assert math.isfinite(found[stands[part]][1])


def test_the_first_failure_of_a_kind_is_said_at_once(caplog):
    seen, _, params = made(raise_errors=False)
    for step in (1, 2, 3):
        seen(step, params, optimizer={"rate": 0.1})
    (said,) = caplog.messages
    assert "the metric optimizer must be a single real number, got dict (at step 1)" in said


def test_broken_metrics_and_steps_are_recorded():
    seen, _, params = made(step=100, raise_errors=False)
    seen(101, params, train_loss=jnp.float32(2.5), rate=np.array([3.0]), good=True)
    seen(102, params, train_loss=np.ones(3), margin=1.0, rate=None, good=math.nan)
    seen(101, params, train_loss=7)
    seen(99, params)
    seen("now", params)
    seen(103, params, train_loss=math.inf)
    found = seen.dataset
    assert found.call_step.values.tolist() == [101, 102, 103]
    np.testing.assert_array_equal(found.train_loss, [2.5, np.nan, np.inf])
    np.testing.assert_array_equal(found.rate, [3, np.nan, np.nan])
    sentences = [failure.sentence for failure in seen.failures]
    expected = (
        "train_loss must be a single real number, got shape (3,)",
        "the watch itself records margin",
        "rate must be a single real number, got NoneType",
        "the step fell from 102 to 101",
        "step 99 is before the start, step 100",
        "step must be a single real number, got str",
    )
    for text in expected:
        assert sum(text in sentence for sentence in sentences) == 1, text
    assert len(sentences) == len(expected)


def test_calls_at_one_step_are_one():
    seen, _, params = made()
    seen(1, params, train_loss=1)
    seen(1, params, test_loss=2)
    assert seen.dataset.sizes["call"] == 1
    assert seen.dataset.test_loss[0] == 2


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"parameters": None}, "needs its parameters"),
        (
            {"parameters": {"inner": np.ones((4, 2), int)}, "model": lambda p, x: x @ p["inner"]},
            "no floating-point array",
        ),
        (
            {"parameters": {"inner": np.ones(4)}},
            r"does not run as apply\(params, probe_inputs\) \(Key",
        ),
        (
            {"probe_inputs": np.ones((5, 3))},
            r"does not run as apply\(params, probe_inputs\) \(Type",
        ),
        ({"probe_inputs": np.ones((5, 4)) + 1j}, "must hold real numbers, got complex"),
        ({"probe_inputs": (np.ones(4), np.ones(3))}, "one row per sample each, got arrays of 3, 4"),
        ({"probe_inputs": {"x": 1.0}}, "one row per sample each, got no array"),
        ({"probe_inputs": {1, 2}}, "a tuple or mapping of such arrays, got a set"),
        ({"model": lambda p, x: (network(p, x), 1)}, "one row of numbers per probe input, got tup"),
        ({"model": lambda p, x: network(p, x)[None]}, r"got shape \(1, 5, 3\) for 5 inputs"),
        ({"model": 3}, r"torch.nn.Module \(which needs torch: pip install 'penchant\[torch\]'\)"),
        ({"probe_inputs": np.full((2, 4), np.nan)}, "probe_inputs must be finite"),
        ({"weight_decay": -1}, "weight_decay must be >= 0"),
        ({"budget": 0}, "budget must be > 0"),
        ({"output": "full"}, "the model returns no 'full'"),
        ({"output": 1.5}, "output must be a name, an index or a function"),
        ({"output": 3}, "outputs must be below 3"),
        ({"points_per_decade": 0}, "points_per_decade must be at least 1"),
        ({"labels": [1, 2]}, "need as many labels"),
        ({"model": lambda p, x: (x - x.mean(axis=0)) @ p["inner"]}, "depend on the other rows"),
    ],
)
def test_bad_input_speaks_at_the_door(rng, change, rule):
    given = {
        "model": network,
        "probe_inputs": rng.standard_normal((5, 4)),
        "parameters": start(rng),
    }
    with pytest.raises(ValueError, match=rule):
        watch(**(given | change))


# verdicts


def curves(level=None, **metrics):
    """The dataset of a record with these metrics and nothing to look at."""
    log = Log(("w",))
    shape = {"output": np.zeros((1, 1)), "linearized_output": np.zeros((1, 1))}
    log.rows.append({"step": 0.0, **shape})
    for step in range(1, 1 + len(next(iter(metrics.values())))):
        log.call(step)
        for name, values in metrics.items():
            log.metric(name, values[step - 1])
    known = {"weight_decay": 0.0, "start_step": 0.0, "notes": [], "failures": [], "level": level}
    known |= {"changed": ""}
    return log.dataset(dict.fromkeys(ATTRIBUTES, 1.0) | known)


T = np.arange(1, 1001)
EARLY, LATE, RISING = (1 / (1 + (T / t) ** -6.0) for t in (20, 300, 1000))


@pytest.mark.parametrize(
    ("train", "test", "kind"),
    [
        (EARLY, LATE, "grok"),
        (EARLY, 0.5 * LATE, "grok"),
        (EARLY, RISING, "in progress"),
        (EARLY, EARLY - 0.7 * LATE, "misgrok"),
        (EARLY, EARLY, "none"),
    ],
)
def test_verdicts_on_curves(train, test, kind):
    test = np.clip(test, 0, 1)
    for names in (("train_accuracy", "test_accuracy"), ("training_acc", "val_acc")):
        found = verdict(curves(**dict(zip(names, (train, test), strict=True))))
        assert found.kind == kind, found
        assert f"by {names[0]} and {names[1]}" in found.sentence
    losses = verdict(curves(train_loss=3 * (1 - train), test_loss=3 * (1 - test)))
    assert losses.kind == kind
    mixed = verdict(curves(train_loss=math.log(2) * (1 - train), test_accuracy=test))
    assert mixed.kind == kind
    assert "train_loss / log 2" in mixed.sentence
    if kind == "grok":
        assert found.t1 < 50 < 300 < found.t2
        assert 250 < found.jump < 350


@pytest.mark.parametrize("size", [0.0, 0.02])
def test_a_task_that_allows_no_more_can_be_grokked(size):
    """A test accuracy that rises late from 1/2 to 0.84 and stays: 0.95 is not to be had."""
    noise = size * np.random.default_rng(3).standard_normal((2, 1000))
    train, test = np.clip(np.stack([EARLY, 0.5 + 0.34 * LATE]) + noise, 0, 1)
    found = verdict(curves(train_accuracy=train, test_accuracy=test))
    assert found.kind == "grok"
    assert "best test value is taken to be 0.8" in found.sentence
    # where the curve is 0.05 below what it reaches: 0.34 (1 - LATE) = 0.05
    there = 300 * (0.34 / 0.05 - 1) ** (1 / 6)
    assert found.t2 == pytest.approx(there, rel=0.01 if size == 0 else 0.15)
    assert 250 < found.jump < 350
    losses = verdict(curves(train_loss=3 * (1 - train), test_loss=1.5 - 1.02 * LATE + noise[1] / 9))
    assert losses.kind == "grok"
    # a level that is not reached changes nothing, one that is reached counts
    held = verdict(curves(level=0.95, train_accuracy=train, test_accuracy=test))
    assert (held.kind, held.t2) == ("grok", found.t2)
    reached = verdict(curves(level=0.8, train_accuracy=train, test_accuracy=test))
    assert (reached.kind, "taken to be 0.85" in reached.sentence) == ("grok", True)
    low = verdict(curves(train_accuracy=train, test_accuracy=0.5 + 0.2 * LATE))
    assert (low.kind, "taken to be 0.7" in low.sentence) == ("grok", True)
    # controls: what rises with training or not at all is still nothing
    for other in (0.5 + 0.34 * EARLY, 0.84 + 0 * EARLY):
        assert verdict(curves(train_accuracy=train, test_accuracy=other)).kind == "none"
    falls = verdict(curves(train_accuracy=train, test_accuracy=0.84 * EARLY - 0.3 * LATE))
    assert falls.kind == "misgrok"


def test_the_level_of_a_watch_is_kept_in_its_record(rng, tmp_path):
    given = {
        "model": network,
        "probe_inputs": rng.standard_normal((5, 4)),
        "parameters": start(rng),
    }
    seen = watch(**given, level=0.8, **ALWAYS)
    for step in T[:500]:
        seen(int(step), given["parameters"], train_accuracy=EARLY[step - 1],
             test_accuracy=0.5 + 0.34 * LATE[step - 1])  # fmt: skip
    assert seen.verdict.kind == "grok"
    seen.report(tmp_path / "run.json", tmp_path / "run.nc")
    for name in ("run.json", "run.nc"):
        again = load(tmp_path / name)
        assert again.attrs["level"] == 0.8
        assert verdict(again).rows() == seen.verdict.rows()
    with pytest.raises(ValueError, match="level must be > 0"):
        watch(**given, level=0.0)


def test_without_curves_there_is_no_verdict():
    for metrics in (
        {"train_loss": T},
        {"test_accuracy": EARLY},
        {"train_error": T, "test_loss": T},
    ):
        assert verdict(curves(**metrics)).kind == "unknown"
    percent = verdict(curves(train_accuracy=100 * EARLY, test_accuracy=100 * LATE))
    assert percent.kind == "unknown"
    assert "divide percentages by 100" in percent.sentence
    gaps = [math.nan] * 1000
    assert "fewer than 2 calls" in verdict(curves(train_loss=T, test_loss=gaps)).sentence


@functools.cache
def decaying_run():
    """The record of an unbiased net from a large start under decay, and when it has turned by 45
    degrees, where displacement and decayed start are equal.
    """
    X, y, unit = relu_data()
    seen = watch(unbiased_relu, X, parameters=4 * unit, weight_decay=2.0, **ALWAYS)
    steps = sorted({round(10 ** (k / 40)) for k in range(186)})
    when = math.inf
    for step, w in descend(unbiased_relu, 4 * unit, X, y, 5e-5, steps, decay=2.0):
        cosine = w @ unit / np.linalg.norm(w) / np.linalg.norm(unit)
        when = min(when, step) if cosine < math.cos(math.pi / 4) else when
        seen(step, w)
    return seen.dataset, when


def until(dataset, step):
    """The record as it was at a step."""
    times, glances = dataset.step.values <= step, dataset.glance_step.values <= step
    return dataset.isel(time=times, glance=glances)


def test_the_forecast_of_a_run_under_decay():
    """Made before half of the time, with the parameters turned by 8 degrees, it holds the truth."""
    dataset, when = decaying_run()
    early = until(dataset, 16_000)
    assert early.glance_turn.max() < 8
    found = forecast_jump(early)
    assert found.known, found
    assert 1.2 * 16_000 < found.low < when < found.high < 2 * when, (found, when)
    assert found.event == "weights"
    assert found.state == "expected"
    assert regime(early).kind == "kernel"
    assert f"between {found.low:.4g} and {found.high:.4g}" in found.sentence


def test_the_interval_holds_the_truth_from_early_on():
    """Asked at any time of the kernel phase; the straight line of forecast(run) comes too early."""
    dataset, when = decaying_run()
    misses = 0
    for share in (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.95):
        early = until(dataset, share * when)
        found = forecast_jump(early)
        assert found.low < when < found.high < 1.7 * when, (share, found)
        assert abs(found.step - when) < 0.1 * when
        names = {"t": "glance_step", "parameter_norm": "glance_norm", "turn": "glance_turn"}
        plain = penchant.forecast({name: early[there].values for name, there in names.items()})
        misses += not plain.low < when < plain.high
    assert misses >= 3


def test_a_transition_that_has_happened_and_one_too_early_to_tell():
    dataset, when = decaying_run()
    whole = forecast_jump(dataset)
    assert whole.state == "happened"
    assert "whether the test accuracy has risen is not known" in whole.sentence
    assert when / 10 ** (1 / 40) <= whole.step <= when
    assert whole.low < whole.step < whole.high
    for share, sentence in (
        (0.0001, "at least 4 times"),
        (0.001, "too early for a forecast: weight decay has removed 0.3"),
        (0.01, "too early for a forecast: weight decay has removed 3."),
    ):
        early = forecast_jump(until(dataset, share * when))
        assert not early.known
        assert sentence in early.sentence, early


def test_no_forecast_without_decay(rng):
    seen, *_ = looked(rng)
    assert not seen.forecast.known
    assert "no weight decay" in seen.forecast.sentence
    seen, *_ = looked(rng, weight_decay=0.1)
    assert "second half of the record" in seen.forecast.sentence


# records


@pytest.mark.parametrize("suffix", [".nc", ".json"])
def test_a_record_comes_back(rng, tmp_path, suffix):
    seen, *_ = looked(rng, labels=rng.integers(3, size=7))
    held = seen.dataset
    file = seen.save(tmp_path / f"run{suffix}")
    again = load(file)
    assert again.identical(held)
    assert regime(again).rows() == seen.regime.rows()
    assert verdict(again).rows() == seen.verdict.rows()
    assert forecast_jump(again).rows() == seen.forecast.rows()
    assert [entry.name for entry in tmp_path.iterdir()] == [file.name]


def test_infinite_metrics_survive_json(tmp_path):
    held = curves(train_loss=[1.0, math.inf, -math.inf, math.nan])
    file = save(held, tmp_path / "run.json")
    json.loads(file.read_text(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert load(file).identical(held)


def test_a_record_is_saved_as_nc_or_json_in_an_existing_folder(tmp_path):
    """What is refused on the way back is told by the command (tests/watch/test_report.py)."""
    seen, *_ = made()
    with pytest.raises(ValueError, match=r"as \.nc or \.json, got 'run.txt'"):
        seen.save(tmp_path / "run.txt")
    with pytest.raises(ValueError, match="no existing folder"):
        seen.save(tmp_path / "none" / "run.json")


def test_the_room_can_be_called_and_is_light():
    probe = (
        "import sys, penchant, penchant.watch; from penchant.watch import watch; "
        "heavy = {'jax', 'torch', 'xarray', 'matplotlib'} & set(sys.modules); "
        "assert not heavy, heavy; "
        "penchant.watch(3, 4)"
    )
    found = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert found.stderr.splitlines()[-1].startswith("ValueError: watch: model must be")
