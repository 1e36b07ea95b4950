"""Training on images: against loops in NumPy, exact resumption, files, goals and bad input."""

import dataclasses
import math
import os

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.flows import image_task
from tacit.flows.image_measures import Goal, ImageGauge
from tacit.flows.image_path import load_image_path
from tacit.flows.image_steps import begin, cross_entropy, epoch_batches, models
from tacit.flows.image_task import block_starts, make_task
from tacit.flows.image_training import ImageTraining
from tacit.models.image_net import conv_net, dense_net
from tacit.problems.images import load_images
from tacit.records import Kind

COMMON = {"deadline": None, "derandomize": True, "max_examples": 30}
BATCH = 64
NET = dense_net((12,), alpha=1.5, seed=1)
UNBIASED = dense_net((12,), alpha=1.5, seed=1, unbiased=True)


@pytest.fixture(scope="module")
def digits():
    return load_images("digits", train=192, test=60)  # three batches of 64


@pytest.fixture(scope="module")
def odd():
    return load_images("digits", train=200, test=60)  # the same and one batch of 8


@pytest.fixture(scope="module")
def dark(digits):
    """Digits with a pixel that no training image has and every test image has."""
    train, test = digits.train_images.copy(), digits.test_images.copy()
    train[:, 3, 3], test[:, 3, 3] = 0, 1
    return dataclasses.replace(digits, train_images=train, test_images=test)


# ---------------------------------------------------------------- the same, written by hand


def probabilities(outputs):
    shifted = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def losses(outputs, labels):
    return -np.log(probabilities(outputs)[np.arange(len(labels)), labels])


class ByHand:
    """A net with one hidden layer, or its linearization at the start, and its gradient."""

    def __init__(self, start, kind="net", unbiased=False):
        self.start = [np.float64(part) for part in start.values()]
        self.kind, self.unbiased = kind, unbiased

    def outputs(self, weights, X):
        (A0, B0), (A, B) = self.start, weights
        hidden0 = np.maximum(X @ A0, 0)
        if self.kind == "twin":
            found = hidden0 @ B + ((X @ (A - A0)) * (X @ A0 > 0)) @ B0
        else:
            found = np.maximum(X @ A, 0) @ B
        return found - hidden0 @ B0 if self.unbiased else found

    def gradient(self, weights, X, labels):
        (A0, B0), (A, B) = self.start, weights
        error = probabilities(self.outputs(weights, X))
        error[np.arange(len(X)), labels] -= 1
        error /= len(X)
        if self.kind == "twin":
            A, B = A0, B0
        below = X @ A
        first = X.T @ ((error @ B.T) * (below > 0))
        last = np.maximum(below, 0).T @ error
        return [0 * first if self.kind == "output" else first, last]


def descend(hand, images, flow):
    """The weights after all epochs of `flow`, by formulas."""
    X = np.float64(images.train_images).reshape(len(images.train_images), -1)
    weights = [part.copy() for part in hand.start]
    memory, squares, count = [0 * w for w in weights], [0 * w for w in weights], 0
    for epoch in range(1, flow.epochs + 1):
        order = np.random.default_rng([flow.seed, epoch]).permutation(len(X))
        for at in range(0, len(X), flow.batch):
            rows, count = order[at : at + flow.batch], count + 1
            slopes = hand.gradient(weights, X[rows], images.train_labels[rows])
            for k, slope in enumerate(slopes):
                if flow.optimizer == "sgd":
                    change = slope
                elif flow.optimizer == "momentum":
                    memory[k] = change = flow.momentum * memory[k] + slope
                else:
                    memory[k] = 0.9 * memory[k] + 0.1 * slope
                    squares[k] = 0.999 * squares[k] + 0.001 * slope**2
                    root = np.sqrt(squares[k] / (1 - 0.999**count))
                    change = memory[k] / (1 - 0.9**count) / (root + 1e-8)
                weights[k] = weights[k] - flow.step * change
    return weights


def assert_close(params, weights, tolerance):
    for found, expected in zip(params.values(), weights, strict=True):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


FLOWS = {
    "sgd": ImageTraining(0.5, 3, BATCH, precision="double"),
    "momentum": ImageTraining(0.1, 3, BATCH, "momentum", 0.8, twin=True, precision="double"),
    "adam": ImageTraining(0.01, 3, BATCH, "adam", twin=True, precision="double"),
}


@pytest.mark.parametrize("name", FLOWS)
def test_net_and_twin_move_as_the_formulas_say(name, request):
    flow, net = FLOWS[name], UNBIASED if name == "momentum" else NET
    digits = request.getfixturevalue({"sgd": "odd", "momentum": "dark", "adam": "digits"}[name])
    path = flow.run(net, digits)
    start = net.start(digits)
    by_hand = {kind: descend(ByHand(start, kind, net.unbiased), digits, flow)
               for kind in (("net", "twin") if flow.twin else ("net",))}  # fmt: skip
    assert_close(path.params, by_hand["net"], 1e-9)
    if flow.twin:
        assert_close(path.twin, by_hand["twin"], 1e-9)
        assert np.abs(by_hand["net"][0] - by_hand["twin"][0]).max() > 1e-4  # the control
    assert path.outcome.kind is Kind.SOLVED
    for kind, weights in by_hand.items():
        for which in ("train", "test"):
            X, y = getattr(digits, f"{which}_images"), getattr(digits, f"{which}_labels")
            outputs = ByHand(start, kind, net.unbiased).outputs(weights, X.reshape(len(X), -1))
            about = which if kind == "net" else f"twin_{which}"
            found = path.dataset.isel(epoch=-1)
            assert float(found[f"{about}_loss"]) == pytest.approx(losses(outputs, y).mean(), 1e-6)
            right = (outputs.argmax(axis=1) == y).mean()
            assert float(found[f"{about}_accuracy"]) == pytest.approx(right)
    norms = [np.linalg.norm(w) for w in by_hand["net"]]
    np.testing.assert_allclose(found.layer_norm, norms)
    away = math.dist(np.concatenate([w.ravel() for w in by_hand["net"]]),
                     np.concatenate([np.float64(w).ravel() for w in start.values()]))  # fmt: skip
    first = np.linalg.norm(path.dataset.layer_norm.values[0])
    assert float(found.moved) == pytest.approx(away / first, rel=1e-6)


def test_single_precision_is_near_and_the_default(digits):
    flow = ImageTraining(0.5, 2, BATCH)
    path = flow.run(NET, digits)
    assert {part.dtype for part in path.params.values()} == {np.dtype(np.float32)}
    assert path.twin is None
    assert_close(path.params, descend(ByHand(NET.start(digits)), digits, flow), 2e-5)
    other = descend(ByHand(NET.start(digits)), digits, dataclasses.replace(flow, seed=1))
    assert np.abs(path.params["layer 2"] - other[1]).max() > 1e-3  # the order of batches matters


@pytest.mark.parametrize("net", [NET, UNBIASED])
def test_the_output_layer_alone_is_training_with_the_other_slopes_at_zero(net, digits):
    flow = ImageTraining(0.5, 2, BATCH, part="output", precision="double")
    path = flow.run(net, digits)
    hand = ByHand(net.start(digits), "output", net.unbiased)
    weights = descend(hand, digits, flow)
    assert_close(path.params, weights, 1e-5)  # the features are those of a float32 start
    np.testing.assert_array_equal(path.params["layer 1"], net.start(digits)["layer 1"])
    X = digits.test_images.reshape(60, -1)
    expected = losses(hand.outputs(weights, X), digits.test_labels).mean()
    assert float(path.dataset.test_loss[-1]) == pytest.approx(expected, rel=1e-5)
    assert np.abs(weights[1] - hand.start[1]).max() > 0.05


def test_features_in_blocks_are_features(digits, monkeypatch):
    import jax

    monkeypatch.setattr(image_task, "BLOCK", 48)
    net = conv_net("3-M-4-FC", seed=2)
    task = make_task(net, digits, "output", np.float32)
    expected = jax.jit(net.function.features)(net.start(digits), digits.train_images)
    np.testing.assert_allclose(task.train.inputs, expected, rtol=1e-5, atol=1e-6)
    assert task.whole(task.origin).keys() == net.start(digits).keys()


def test_a_convolutional_step_follows_the_gradient(digits):
    import jax
    import jax.numpy as jnp

    net = conv_net("3-M-FC", seed=2)
    X, y, start = digits.train_images, digits.train_labels, net.start(digits)

    def loss(params):
        return -jnp.mean(jax.nn.log_softmax(net.logits(params, X))[np.arange(192), y])

    path = ImageTraining(0.1, 1, 192).run(net, digits)
    value, slope = jax.jit(jax.value_and_grad(loss))(start)
    assert_close(path.params, [start[k] - 0.1 * np.asarray(slope[k]) for k in start], 1e-6)
    assert float(path.dataset.train_loss[0]) == pytest.approx(float(value), rel=1e-5)


def test_weights_at_black_pixels_stay_and_count_in_tests(dark, digits):
    path = FLOWS["momentum"].run(UNBIASED, dark)  # the formulas for these images are above
    start = UNBIASED.start(dark)
    pixel = 8 * 3 + 3
    np.testing.assert_array_equal(path.params["layer 1"][pixel], start["layer 1"][pixel])
    assert (path.params["layer 1"][pixel + 1] != start["layer 1"][pixel + 1]).any()
    hand = ByHand(start, unbiased=True)
    told = float(path.dataset.test_loss[-1])
    for images, same in ((dark, True), (digits, False)):  # without the pixel: the control
        outputs = hand.outputs(list(path.params.values()), images.test_images.reshape(60, -1))
        apart = abs(losses(outputs, digits.test_labels).mean() - told)
        assert (apart < 1e-6) == same


# ---------------------------------------------------------------- pieces


@settings(**COMMON)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 9), st.integers(1, 9))
def test_every_sample_is_seen_once_per_epoch(samples, batch, seed, epoch):
    tables = epoch_batches(samples, min(batch, samples), seed, epoch)
    seen = np.concatenate([table.ravel() for table in tables])
    np.testing.assert_array_equal(np.sort(seen), np.arange(samples))
    assert tables[0].shape[1] == min(batch, samples)
    assert sum(len(table) for table in tables) == -(-samples // min(batch, samples))
    again = epoch_batches(samples, min(batch, samples), seed, epoch)
    assert all((a == b).all() for a, b in zip(tables, again, strict=True))


def test_epochs_and_seeds_shuffle_differently():
    orders = [epoch_batches(50, 50, seed, epoch)[0] for seed, epoch in ((0, 1), (0, 2), (1, 1))]
    assert all((a != b).any() for a in orders for b in orders if a is not b)


@settings(**COMMON)
@given(st.integers(1, 2000))
def test_blocks_cover_all_images_in_order(count):
    starts, size = block_starts(count), min(image_task.BLOCK, count)
    assert starts == sorted(starts)
    covered = np.zeros(count, bool)
    for begins in starts:
        assert 0 <= begins <= count - size
        covered[begins : begins + size] = True
    assert covered.all()


def test_tiny_losses_are_not_rounded_away():
    import jax

    outputs = np.array([[40.0, 0, -1], [0, 3, 2.5], [50, 0, 0]], np.float32)
    labels = np.array([0, 2, 1], np.int32)
    with mpmath.workdps(40):
        expected = [
            mpmath.log(sum(mpmath.exp(float(v) - float(row[label])) for v in row))
            for row, label in zip(outputs, labels, strict=True)
        ]
    found = np.asarray(jax.jit(cross_entropy)(outputs, labels))
    np.testing.assert_allclose(found, [float(x) for x in expected], rtol=1e-5)
    plain = -np.asarray(jax.nn.log_softmax(outputs))[0, 0]
    assert plain == 0 < found[0]  # the control: the usual formula in float32


@pytest.fixture(scope="module")
def curve(digits):
    """All epochs of a run, one by one."""
    return ImageTraining(0.2, 30, BATCH, record=range(31)).run(NET, digits)


@settings(**COMMON)
@given(accuracy=st.none() | st.floats(0.3, 1), loss=st.none() | st.floats(0.01, 3))
def test_a_goal_is_judged_block_by_block_as_on_all_images(accuracy, loss, digits, curve):
    row = curve.dataset.isel(epoch=-1)
    goal = Goal(accuracy, loss)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(image_task, "BLOCK", 50)
        met = _gauge(digits).meets(goal, {"net": (_trained(digits, curve), None)})
    assert met == goal.met(float(row.train_accuracy), float(row.train_loss))


def _gauge(images):
    task = make_task(NET, images, "all", np.float32)
    return ImageGauge(task, models(task, twin=False))


def _trained(images, path):
    return make_task(NET, images, "all", np.float32).trained(path.params)


@pytest.mark.parametrize("until", [{"until": 0.6}, {"until_loss": 1.2},
                                   {"until": 0.5, "until_loss": 1.2}])  # fmt: skip
def test_training_ends_at_the_first_epoch_that_meets_the_goal(until, digits, curve):
    path = ImageTraining(0.2, 30, BATCH, record=(), **until).run(NET, digits)
    goal = Goal(until.get("until"), until.get("until_loss"))
    seen = zip(curve.dataset.train_accuracy.values, curve.dataset.train_loss.values, strict=True)
    first = next(k for k, (accuracy, loss) in enumerate(seen) if goal.met(accuracy, loss))
    assert 1 < first < 30
    assert path.epochs == first
    assert path.outcome.kind is Kind.SOLVED
    assert path.dataset.epoch.values.tolist() == [0, first]
    assert path.dataset.train_loss[-1] == curve.dataset.train_loss[first]


def test_a_missed_goal_and_a_divergence_are_told(digits):
    path = ImageTraining(0.5, 2, BATCH, until=1.0, until_loss=1e-5).run(NET, digits)
    assert path.outcome.kind is Kind.BUDGET_SPENT
    assert "short of until = 1 and until_loss = 1e-05; raise epochs" in path.outcome.sentence
    wild = ImageTraining(1e30, 3, BATCH).run(NET, digits)
    assert wild.outcome.kind is Kind.DIVERGED
    assert wild.outcome.sentence == "the net was not finite in epoch 1; take a smaller step"
    assert wild.epochs == 0
    assert_close(wild.params, NET.start(digits).values(), 0)  # the last finite ones
    assert wild.dataset.attrs["outcome"] == "diverged"


def test_what_is_recorded_has_names_and_progress_is_told(digits):
    told = []
    path = ImageTraining(0.1, 15, BATCH).run(NET, digits, progress=lambda *x: told.append(x))
    assert path.dataset.epoch.values.tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 15]
    assert all({"units", "long_name"} <= v.attrs.keys() for v in path.dataset.variables.values())
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert told[-1][1].startswith("epoch 15, ")
    assert "a training accuracy of" in str(path)


# ---------------------------------------------------------------- resuming


LONG = dataclasses.replace(FLOWS["adam"], epochs=7)
SHORT = dataclasses.replace(LONG, epochs=5, until=1.0)


@pytest.fixture(scope="module")
def runs(digits):
    return LONG.run(UNBIASED, digits), SHORT.run(UNBIASED, digits)


def assert_same_bits(one, other):
    assert one.epochs == other.epochs
    for part in ("params", "twin"):
        arrays, same = getattr(one, part) or {}, getattr(other, part) or {}
        assert list(arrays) == list(same)
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, same[name])
            assert array.dtype == same[name].dtype
    for name, leaves in one.kept.items():
        for leaf, same in zip(leaves, other.kept[name], strict=True):
            np.testing.assert_array_equal(leaf, same)
            assert leaf.dtype == same.dtype
    assert one.dataset.identical(other.dataset)


def test_a_resumed_run_is_the_uninterrupted_one_to_the_bit(runs, digits):
    whole, half = runs
    assert half.outcome.kind is Kind.BUDGET_SPENT
    assert_same_bits(LONG.run(UNBIASED, digits, resume=half), whole)
    with pytest.raises(AssertionError):
        assert_same_bits(half, whole)  # the control


def test_a_run_resumes_from_a_file(runs, digits, tmp_path):
    whole, half = runs
    file = half.save(tmp_path / "half.npz")
    loaded = load_image_path(file)
    assert_same_bits(loaded, half)
    assert loaded.outcome == half.outcome
    assert list(loaded.params) == list(half.params)
    assert_same_bits(LONG.run(UNBIASED, digits, resume=loaded), whole)


def test_a_run_in_single_precision_without_twin_resumes_as_well(curve, digits, tmp_path):
    half = ImageTraining(0.2, 10, BATCH, record=range(11)).run(NET, digits)
    loaded = load_image_path(half.save(tmp_path / "half.npz"))
    assert loaded.twin is None
    assert loaded.kept == {"net": ()}
    flow = ImageTraining(0.2, 30, BATCH, record=range(31))
    assert_same_bits(flow.run(NET, digits, resume=loaded), curve)


def test_an_interrupted_save_leaves_the_older_file(runs, tmp_path, monkeypatch):
    whole, half = runs
    file = half.save(tmp_path / "run.npz")

    def broken(*_):
        raise KeyboardInterrupt

    for call in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, broken)
            with pytest.raises(KeyboardInterrupt):
                whole.save(file)
        assert_same_bits(load_image_path(file), half)
        assert os.listdir(tmp_path) == ["run.npz"]
    whole.save(file)
    assert_same_bits(load_image_path(file), whole)


def test_files_that_are_no_runs_are_refused(runs, tmp_path):
    file = runs[1].save(tmp_path / "run.npz")
    data = file.read_bytes()
    cut, bent, foreign, pickled = (tmp_path / f"{name}.npz"
                                   for name in ("cut", "bent", "foreign", "pickled"))  # fmt: skip
    cut.write_bytes(data[: len(data) // 2])
    middle = len(data) // 3
    bent.write_bytes(data[:middle] + bytes(64) + data[middle + 64 :])
    np.savez(foreign, x=np.arange(3))
    np.savez(pickled, header=np.array([{"a": 1}], dtype=object))
    for wrong in (cut, bent, foreign, pickled):
        with pytest.raises(ValueError, match=r"load_image_path: .* no file of ImagePath\.save"):
            load_image_path(wrong)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_image_path(tmp_path / "none.npz")
    with pytest.raises(ValueError, match="is a folder; give the name of a file"):
        load_image_path(tmp_path)
    with pytest.raises(ValueError, match="lies in no existing folder"):
        runs[1].save(tmp_path / "nowhere" / "run.npz")
    with pytest.raises(ValueError, match="is a folder"):
        runs[1].save(tmp_path)


def test_only_the_same_run_is_resumed(runs, digits):
    half = runs[1]
    other = load_images("digits", train=192, test=60, seed=1)
    darker = dataclasses.replace(digits, train_images=digits.train_images * np.float32(0.5))
    wrong = {
        "same problem, but its .* was": (LONG, UNBIASED, other),
        "same problem, but its fingerprint was": (LONG, UNBIASED, darker),
        "same model, but its seed was 1 and now is 2": (
            LONG, dense_net((12,), alpha=1.5, seed=2, unbiased=True), digits),
        "same model, but its plan was 12-FC and now is 13-FC": (
            LONG, dense_net((13,), alpha=1.5, seed=1, unbiased=True), digits),
        "same flow, but its step was 0.01 and now is 0.03": (
            dataclasses.replace(LONG, step=0.03), UNBIASED, digits),
        "resume has had 5 epochs already, which epochs=5 must exceed": (SHORT, UNBIASED, digits),
    }  # fmt: skip
    for sentence, (flow, net, images) in wrong.items():
        with pytest.raises(ValueError, match=f"ImageTraining: .*{sentence}"):
            flow.run(net, images, resume=half)
    with pytest.raises(ValueError, match="resume must be an ImagePath, got str"):
        LONG.run(UNBIASED, digits, resume="half.npz")


# ---------------------------------------------------------------- bad input


SETTINGS = {
    "optimizer": ({"optimizer": "sdg"}, "unknown optimizer 'sdg'; did you mean sgd"),
    "step": ({"step": 0}, "step must be > 0"),
    "epochs": ({"epochs": 0}, "epochs must be at least 1, got 0"),
    "batch": ({"batch": 0}, "batch must be at least 1, got 0"),
    "momentum": ({"momentum": 1}, "momentum must be >= 0 and below 1, got 1"),
    "until": ({"until": 1.5}, "until must be an accuracy above 0 and at most 1, got 1.5"),
    "until percent": ({"until": 0}, "until must be an accuracy above 0 and at most 1, got 0"),
    "until_loss": ({"until_loss": 0}, "until_loss must be > 0"),
    "part": ({"part": "first"}, "unknown part 'first'"),
    "precision": ({"precision": "half"}, "unknown precision 'half'; known: single, double"),
    "record": ({"record": [6]}, "record must stay within epochs=5, got 6"),
    "twin": ({"part": "output", "twin": True}, "twin must be False with part='output'"),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_bad_settings_get_one_sentence(case):
    wrong, sentence = SETTINGS[case]
    with pytest.raises(ValueError, match=sentence) as caught:
        ImageTraining(**({"step": 0.1, "epochs": 5} | wrong))
    assert str(caught.value).startswith("ImageTraining: ")
    assert "\n" not in str(caught.value)


def test_bad_problems_get_one_sentence(digits):
    flow = ImageTraining(0.1, 5)
    nan = np.full_like(digits.test_images, np.nan)
    wrong = {
        "batch must be at most 192, the training images there are, got 256": (NET, digits),
        "the model must be an ImageNet, got str": ("net", digits),
        "the problem must be Images, got int": (NET, 3),
        "train labels must be between 0 and 4, got 0 to 9": (
            NET, dataclasses.replace(digits, classes=digits.classes[:5])),
        "test images must be finite": (NET, dataclasses.replace(digits, test_images=nan)),
        "as many test images as labels and at least one, got 60 and 0": (
            NET, dataclasses.replace(digits, test_labels=digits.test_labels[:0])),
    }  # fmt: skip
    for sentence, (net, images) in wrong.items():
        small = flow if "batch" in sentence else dataclasses.replace(flow, batch=8)
        with pytest.raises(ValueError, match=sentence):
            small.run(net, images)


def test_states_begin_at_the_start(digits):
    task = make_task(NET, digits, "all", np.float32)
    state = begin(task, LONG.rule, ("net", "twin"))
    assert_close(task.whole(state["twin"][0]), NET.start(digits).values(), 0)
