"""Training on images: against loops in NumPy, exact resumption, goals and bad input."""

import dataclasses
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
from penchant import Adam, GradientDescent, Steps, load, train
from penchant.lab import Kind, double_precision
from penchant.methods import Descent, NormalizedDescent, Proximal
from penchant.models import OutputLayer, conv_net, dense_net, linearize
from penchant.problems import load_images
from penchant.record import At
from penchant.stop import Accuracy, Below, Epochs, Loss, Near
from penchant.training import images as image_loss
from penchant.training.cross_entropy import cross_entropy, log_cross_entropy
from penchant.training.images import Features, ImageLoss, ImageTask, block_starts, outputs
from penchant.training.task import Meter, Moment
from refusals import refusals, refused

COMMON = {"deadline": None, "derandomize": True, "max_examples": 30}
BATCH = 64
NET = dense_net((12,), alpha=1.5, seed=1)
UNBIASED = dense_net((12,), alpha=1.5, seed=1, unbiased=True)


def double(net):
    return dataclasses.replace(net, precision="double")


@pytest.fixture(scope="module")
def digits():
    return load_images("digits", train=192, test=60)  # three batches of 64


@pytest.fixture(scope="module")
def odd():
    return load_images("digits", train=200, test=60)  # the same and one batch of 8


@pytest.fixture(scope="module")
def dark(digits):
    """Digits with two rows of pixels that no training image has and every test image has."""
    train, test = digits.train_images.copy(), digits.test_images.copy()
    train[:, 3:5], test[:, 3:5] = 0, 1
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
        if self.kind == "linearized":
            found = hidden0 @ B + ((X @ (A - A0)) * (X @ A0 > 0)) @ B0
        else:
            found = np.maximum(X @ A, 0) @ B
        return found - hidden0 @ B0 if self.unbiased else found

    def gradient(self, weights, X, labels):
        (A0, B0), (A, B) = self.start, weights
        error = probabilities(self.outputs(weights, X))
        error[np.arange(len(X)), labels] -= 1
        error /= len(X)
        if self.kind == "linearized":
            A, B = A0, B0
        below = X @ A
        first = X.T @ ((error @ B.T) * (below > 0))
        last = np.maximum(below, 0).T @ error
        return [0 * first if self.kind == "output" else first, last]


def epoch_order(seed, epoch, count):
    """The order of the training images in an epoch, from 0."""
    import jax

    with double_precision():
        key = jax.random.fold_in(jax.random.PRNGKey(seed), epoch)
        return np.asarray(jax.random.permutation(key, count))


def descend(hand, images, method, epochs, seed=0):
    """The weights after some epochs of a method, by formulas."""
    X = np.float64(images.train_images).reshape(len(images.train_images), -1)
    weights = [part.copy() for part in hand.start]
    memory, squares, count = [0 * w for w in weights], [0 * w for w in weights], 0
    for epoch in range(epochs):
        order = epoch_order(seed, epoch, len(X))
        for at in range(0, len(X), BATCH):
            rows, count = order[at : at + BATCH], count + 1
            slopes = hand.gradient(weights, X[rows], images.train_labels[rows])
            for k, slope in enumerate(slopes):
                if isinstance(method, GradientDescent):
                    memory[k] = change = method.momentum * memory[k] + slope
                else:
                    memory[k] = 0.9 * memory[k] + 0.1 * slope
                    squares[k] = 0.999 * squares[k] + 0.001 * slope**2
                    root = np.sqrt(squares[k] / (1 - 0.999**count))
                    change = memory[k] / (1 - 0.9**count) / (root + 1e-8)
                decay = method.learning_rate * method.weight_decay
                weights[k] = (1 - decay) * weights[k] - method.learning_rate * change
    return weights


def assert_close(params, weights, tolerance):
    for found, expected in zip(params.values(), weights, strict=True):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


METHODS = {
    "sgd": (GradientDescent(0.5), "odd", NET),
    "momentum": (GradientDescent(0.1, momentum=0.8), "dark", UNBIASED),
    "decay": (GradientDescent(0.1, weight_decay=0.3), "dark", NET),
    "adam": (Adam(0.01), "digits", NET),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, "net") for name in METHODS), ("momentum", "linearized"), ("adam", "linearized")],
)
def test_nets_move_as_the_formulas_say(name, kind, request):
    method, images, net = METHODS[name]
    images, net = request.getfixturevalue(images), double(net)
    model = net if kind == "net" else linearize(net)
    path = train(model, images, method, batch=BATCH, stop=Epochs(3))
    start = net.start(images)
    hand = ByHand(start, kind, net.unbiased)
    weights = descend(hand, images, method, 3)
    assert_close(path.parameters, weights, 1e-9)
    other = descend(
        ByHand(start, "linearized" if kind == "net" else "net", net.unbiased), images, method, 3
    )
    assert np.abs(weights[0] - other[0]).max() > 1e-4  # the control
    assert path.outcome.kind is Kind.SOLVED
    last = path.dataset.isel(time=-1)
    for which, loss in (("train", "loss"), ("test", "test_loss")):
        X, y = getattr(images, f"{which}_images"), getattr(images, f"{which}_labels")
        found = hand.outputs(weights, X.reshape(len(X), -1))
        assert float(last[loss]) == pytest.approx(losses(found, y).mean(), 1e-9)
        right = (found.argmax(axis=1) == y).mean()
        assert float(last[f"{which}_accuracy"]) == pytest.approx(right)
    assert float(last.log_loss) == pytest.approx(math.log(last.loss))
    np.testing.assert_allclose(last.layer_norm, [np.linalg.norm(w) for w in weights])
    away = math.dist(
        np.concatenate([w.ravel() for w in weights]),
        np.concatenate([np.float64(w).ravel() for w in start.values()]),
    )
    first = float(path.dataset.parameter_norm[0])
    assert float(last.moved) == pytest.approx(away / first, rel=1e-6)


def test_single_precision_is_near_and_the_default(digits):
    path = train(NET, digits, GradientDescent(0.5), batch=BATCH, stop=Epochs(2))
    assert {part.dtype for part in path.parameters.values()} == {np.dtype(np.float32)}
    by_hand = ByHand(NET.start(digits))
    assert_close(path.parameters, descend(by_hand, digits, GradientDescent(0.5), 2), 2e-5)
    other = descend(by_hand, digits, GradientDescent(0.5), 2, seed=1)
    assert np.abs(path.parameters["layer 2"] - other[1]).max() > 1e-3  # the order matters


@pytest.mark.parametrize("net", [NET, UNBIASED])
def test_the_output_layer_alone_is_training_with_the_other_slopes_at_zero(net, digits):
    net = double(net)
    path = train(OutputLayer(net), digits, GradientDescent(0.5), batch=BATCH, stop=Epochs(2))
    hand = ByHand(net.start(digits), "output", net.unbiased)
    weights = descend(hand, digits, GradientDescent(0.5), 2)
    assert list(path.parameters) == ["layer 2"]
    assert_close(path.parameters, weights[1:], 1e-9)
    X = digits.test_images.reshape(60, -1)
    expected = losses(hand.outputs(weights, X), digits.test_labels).mean()
    assert float(path.dataset.test_loss[-1]) == pytest.approx(expected, rel=1e-9)
    assert np.abs(weights[1] - hand.start[1]).max() > 0.05
    assert path.dataset.layer.values.tolist() == [2]


def test_features_in_blocks_are_features(digits, monkeypatch):
    import jax

    monkeypatch.setattr(image_loss, "BLOCK", 48)
    net = conv_net("3-M-4-FC", seed=2)
    start, X = net.start(digits), jax.numpy.asarray(digits.train_images)
    found = outputs(Features(net.function), start, X)
    expected = jax.jit(net.function.features)(start, X)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_convolutional_step_follows_the_gradient(digits):
    import jax
    import jax.numpy as jnp

    net = conv_net("3-M-FC", seed=2)
    X, y, start = digits.train_images, digits.train_labels, net.start(digits)

    def loss(params):
        return -jnp.mean(jax.nn.log_softmax(net.logits(params, X))[np.arange(192), y])

    path = train(net, digits, GradientDescent(0.1), stop=Steps(1))
    value, slope = jax.jit(jax.value_and_grad(loss))(start)
    assert_close(path.parameters, [start[k] - 0.1 * np.asarray(slope[k]) for k in start], 1e-6)
    assert float(path.dataset.loss[0]) == pytest.approx(float(value), rel=1e-5)
    assert "epoch" not in path.dataset.coords


def test_normalized_descent_follows_the_gradient_of_the_log_loss(digits):
    net = double(NET)
    path = train(net, digits, NormalizedDescent(0.1), stop=Steps(1))
    hand = ByHand(net.start(digits))
    X = np.float64(digits.train_images).reshape(192, -1)
    slopes = hand.gradient(hand.start, X, digits.train_labels)
    loss = losses(hand.outputs(hand.start, X), digits.train_labels).mean()
    moved = [w - 0.1 * g / loss for w, g in zip(hand.start, slopes, strict=True)]
    assert_close(path.parameters, moved, 1e-12)
    assert path.t == pytest.approx(0.1 / loss)


def test_weights_at_black_pixels_stay_and_count_in_tests(dark, digits):
    net, pixel = double(UNBIASED), 8 * 3 + 3
    start = net.start(dark)["layer 1"]
    given = {"batch": BATCH, "stop": Epochs(3)}
    path = train(net, dark, GradientDescent(0.1, momentum=0.8), **given)  # by formulas above
    first = path.parameters["layer 1"]
    np.testing.assert_array_equal(first[pixel], start[pixel])
    assert (first[pixel - 8] != start[pixel - 8]).any()
    seen = int(dark.train_images.any(axis=0).sum())
    assert path.memory[0].shape == (16 * math.ceil(seen / 16), 12)
    assert seen < 16 * math.ceil(seen / 16) < len(first)  # some black pixels are left out, not all
    hand = ByHand(net.start(dark), unbiased=True)
    recorded = float(path.dataset.test_loss[-1])
    for images, same in ((dark, True), (digits, False)):  # without the pixel: the control
        found = hand.outputs(list(path.parameters.values()), images.test_images.reshape(60, -1))
        apart = abs(losses(found, digits.test_labels).mean() - recorded)
        assert (apart < 1e-6) == same
    decayed = train(net, dark, GradientDescent(0.1, weight_decay=0.3), **given)
    np.testing.assert_allclose(decayed.parameters["layer 1"][pixel], 0.97**9 * start[pixel])
    shared = train(net, dark, GradientDescent(0.1, scaled=1.0), stop=Steps(2))
    square = sum(np.sum(np.float64(w) ** 2) for w in net.start(dark).values())
    assert float(shared.dataset.t[1]) == pytest.approx(min(0.1, 1 / square))


def test_accelerated_proximal_steps_keep_the_precision_of_the_net(digits):
    rules = {"penalty": 1e-3 * penchant.L1(), "stop": Steps(30)}
    single = train(NET, digits, Proximal(0.1, accelerated=True), **rules)
    for part in single.parameters.values():
        assert part.dtype == np.float32
    exact = train(double(NET), digits, Proximal(0.1, accelerated=True), **rules)
    plain = train(double(NET), digits, Proximal(0.1), **rules)  # the control
    assert single.log_loss == pytest.approx(exact.log_loss, rel=1e-4)
    assert plain.log_loss != pytest.approx(exact.log_loss, rel=1e-2)


# ---------------------------------------------------------------- pieces


@settings(**COMMON)
@given(st.integers(1, 2000))
def test_blocks_cover_all_images_in_order(count):
    starts, size = block_starts(count), min(image_loss.BLOCK, count)
    assert starts == sorted(starts)
    covered = np.zeros(count, bool)
    for begins in starts:
        assert 0 <= begins <= count - size
        covered[begins : begins + size] = True
    assert covered.all()


def test_tiny_losses_are_not_rounded_away():
    import jax

    outputs = np.array([[40.0, 0, -1], [0, 3, 2.5], [50, 0, 0], [200, 0, 1]], np.float32)
    labels = np.array([0, 2, 1, 0], np.int32)
    with mpmath.workdps(120):
        expected = [
            mpmath.log(sum(mpmath.exp(float(v) - float(row[label])) for v in row))
            for row, label in zip(outputs, labels, strict=True)
        ]
        logs = [float(mpmath.log(loss)) for loss in expected]
    found = np.asarray(jax.jit(cross_entropy)(outputs, labels))
    np.testing.assert_allclose(found[:3], [float(x) for x in expected[:3]], rtol=1e-5)
    np.testing.assert_allclose(jax.jit(log_cross_entropy)(outputs, labels), logs, 1e-5, 1e-6)
    plain = -np.asarray(jax.nn.log_softmax(outputs))[0, 0]
    assert plain == 0 < found[0]  # the control: the usual formula in float32


@pytest.fixture(scope="module")
def curve(digits):
    """All epochs of a run, one by one."""
    return train(
        NET, digits, GradientDescent(0.2), batch=BATCH, stop=Epochs(30), record=At(epochs=range(31))
    )


@settings(**COMMON)
@given(accuracy=st.floats(0.3, 1), loss=st.floats(0.01, 3))
def test_bounds_only_get_worse_and_end_at_the_numbers(accuracy, loss, digits, curve):
    from penchant.training.descent.plan import Goals

    with pytest.MonkeyPatch.context() as patch, double_precision():
        patch.setattr(image_loss, "BLOCK", 50)
        task = ImageTask(NET, digits)
        moment = Moment(18.0, curve.parameters, log_t=math.log(18), step=90)
        bounds = list(Meter(task, None).bounds(moment))
        exact = Meter(task, None).look(moment)
        assert len(bounds) == 4
        assert [b["log_loss"] for b in bounds] == sorted(b["log_loss"] for b in bounds)
        right = [b["train_accuracy"] for b in bounds]
        assert right == sorted(right, reverse=True)
        assert right[-1] == exact["train_accuracy"]
        assert bounds[-1]["loss"] == pytest.approx(exact["loss"], rel=1e-12)
        goals = Goals(task, [Accuracy(train=accuracy), Loss(loss)], exact, seeks=False, steady=True)
        hopeless = any(goals.met(moment, bound) is None for bound in bounds)
        assert hopeless == (goals.met(moment, exact) is None)


def test_a_look_at_a_goal_measures_no_more_than_it_must(digits, monkeypatch):
    monkeypatch.setattr(image_loss, "BLOCK", 32)
    seen = []
    judged = ImageLoss.judged

    def watched(self, part, parameters):
        for block in judged(self, part, parameters):
            seen.append("train" if len(part.labels) == len(digits.train_labels) else "test")
            yield block

    monkeypatch.setattr(ImageLoss, "judged", watched)
    path = train(
        NET,
        digits,
        GradientDescent(0.01),
        batch=BATCH,
        stop=[Epochs(10), Accuracy(train=1.0)],
        record=At(epochs=[]),
    )
    assert path.outcome.kind is Kind.BUDGET_SPENT
    assert seen.count("test") == 2 * 2  # of the start and of the end
    assert seen.count("train") == 2 * 6 + 9  # and one block after every other epoch


@pytest.mark.parametrize(
    "rules", [[Accuracy(train=0.6)], [Loss(1.2)], [Accuracy(train=0.99), Loss(1.2)]]
)
def test_training_ends_at_the_first_epoch_that_meets_a_goal(rules, digits, curve):
    stop = [Epochs(30), *rules]
    path = train(NET, digits, GradientDescent(0.2), batch=BATCH, stop=stop, record=At(epochs=[]))
    rows = curve.dataset
    enough = np.zeros(31, bool)
    for rule in rules:
        enough |= (
            rows.loss.values <= rule.value
            if isinstance(rule, Loss)
            else rows.train_accuracy.values >= rule.train
        )
    first = int(np.argmax(enough))
    assert 1 < first < 30
    assert path.outcome.kind is Kind.SOLVED
    assert path.dataset.epoch.values.tolist() == [0, first]
    assert path.dataset.step.values.tolist() == [0, 3 * first]
    assert path.dataset.loss[-1] == rows.loss[first]


def test_other_goals_are_met_too(digits, curve):
    rows = curve.dataset
    for rule, name, above in (
        (Accuracy(test=0.5), "test_accuracy", True),
        (Below("test_loss", 1.5), "test_loss", False),
    ):
        stop, record = [Epochs(30), rule], At(epochs=[])
        path = train(NET, digits, GradientDescent(0.2), batch=BATCH, stop=stop, record=record)
        values = rows[name].values
        first = np.argmax(values >= 0.5 if above else values <= 1.5)
        assert path.dataset.epoch.values.tolist() == [0, first]


def test_a_missed_goal_and_a_divergence_are_reported(digits):
    stop = [Epochs(2), Accuracy(train=1.0), Loss(1e-5)]
    path = train(NET, digits, GradientDescent(0.5), batch=BATCH, stop=stop)
    assert path.outcome.kind is Kind.BUDGET_SPENT
    assert "below 1" in path.outcome.sentence
    assert "above loss 1e-05" in path.outcome.sentence
    wild = train(NET, digits, GradientDescent(1e30), batch=BATCH, stop=Epochs(3))
    assert wild.outcome.kind is Kind.DIVERGED
    assert wild.outcome.sentence.startswith("beyond float64 after 1 steps; take a")
    assert wild.dataset.attrs["outcome"] == "diverged"


class Growing(Descent):
    """Weights that grow a thousandfold in every step; those of float32 end after twelve."""

    def step(self, oracle, parameters, memory, k):
        return {name: 1e3 * part for name, part in parameters.items()}, memory


def test_the_last_finite_weights_of_a_divergence_are_recorded(digits):
    stop = [Epochs(30), Accuracy(train=1.0)]
    wild = train(NET, digits, Growing(1.0), batch=BATCH, stop=stop, record=At(epochs=[]))
    assert wild.outcome.kind is Kind.DIVERGED
    assert wild.outcome.sentence.startswith("beyond float64 after 13 steps")
    assert wild.dataset.epoch.values.tolist() == [0, 4]
    norm = math.sqrt(sum(np.sum(np.float64(w) ** 2) for w in wild.parameters.values()))
    assert float(wild.dataset.parameter_norm[-1]) == pytest.approx(norm)


def test_records_have_names_and_progress_is_reported(digits):
    reports = []
    given = {"batch": BATCH, "stop": Epochs(200), "record": At(epochs=[])}
    path = train(NET, digits, GradientDescent(0.1), progress=lambda *x: reports.append(x), **given)
    assert all({"units", "long_name"} <= v.attrs.keys() for v in path.dataset.variables.values())
    shares = [share for share, _ in reports]
    assert shares == sorted(shares)
    assert 40 <= len(shares) < 100  # also between two looks, and rarely, as a flow tells it
    assert shares[-1] == 1
    silent = train(NET, digits, GradientDescent(0.1), **given)
    assert_close(silent.parameters, path.parameters.values(), 0)


# ---------------------------------------------------------------- resuming


GIVEN = {"batch": BATCH, "record": At(epochs=[1, 3])}
LONG, SHORT = Epochs(7), [Epochs(5), Accuracy(train=1.0)]


@pytest.fixture(scope="module")
def runs(dark):
    return [train(UNBIASED, dark, Adam(0.01), stop=stop, **GIVEN) for stop in (LONG, SHORT)]


def assert_same_bits(one, other):
    assert list(one.parameters) == list(other.parameters)
    for name, array in one.parameters.items():
        np.testing.assert_array_equal(array, other.parameters[name])
        assert array.dtype == other.parameters[name].dtype
    for leaf, same in zip(one.memory, other.memory, strict=True):
        np.testing.assert_array_equal(leaf, same)
        assert leaf.dtype == same.dtype
    assert one.dataset.identical(other.dataset)


def test_a_resumed_run_is_the_uninterrupted_one_to_the_bit(runs, dark, tmp_path):
    whole, half = runs
    assert half.outcome.kind is Kind.BUDGET_SPENT
    for before in (half, load(half.save(tmp_path / "half.nc"))):
        again = train(UNBIASED, dark, Adam(0.01), stop=LONG, resume=before, **GIVEN)
        assert_same_bits(again, whole)
    with pytest.raises(AssertionError):
        assert_same_bits(half, whole)  # the control


@pytest.mark.parametrize("model", [linearize(NET), OutputLayer(NET), conv_net("2-M-FC")])
def test_other_models_resume_to_the_bit(model, odd, tmp_path):
    given = {"batch": BATCH, "record": At(epochs=[])}
    method = GradientDescent(0.2, momentum=0.5)
    whole = train(model, odd, method, stop=Epochs(3), **given)
    half = train(model, odd, method, stop=Epochs(2), **given)
    loaded = load(half.save(tmp_path / "half.nc"))
    assert_same_bits(train(model, odd, method, stop=Epochs(3), resume=loaded, **given), whole)


def test_only_the_same_run_is_resumed(runs, dark, digits):
    half, method = runs[1], Adam(0.01)
    wrong = {
        "the same problem, which was": (UNBIASED, digits, method, LONG),
        "the same seed of the model, which was 1 and now is 2": (
            dense_net((12,), alpha=1.5, seed=2, unbiased=True),
            dark,
            method,
            LONG,
        ),
        "the same learning_rate of the method, which was 0.01 and now is 0.03": (
            UNBIASED,
            dark,
            Adam(0.03),
            LONG,
        ),
        "has taken 15 steps already": (UNBIASED, dark, method, Epochs(5)),
    }
    for sentence, (net, images, method, stop) in wrong.items():
        with pytest.raises(ValueError, match=f"train: resume .*{sentence}"):
            train(net, images, method, stop=stop, resume=half, **GIVEN)


def test_ten_layers_stay_in_order(digits):
    net = dense_net((3,) * 10)
    path = train(net, digits, GradientDescent(0.1), batch=BATCH, stop=Steps(1))
    assert list(path.parameters) == list(net.start(digits))
    norms = [np.linalg.norm(part) for part in path.parameters.values()]
    np.testing.assert_allclose(path.dataset.layer_norm[-1], norms, rtol=1e-6)


# ---------------------------------------------------------------- bad input


def test_bad_problems_get_one_sentence(digits):
    nan = np.full_like(digits.test_images, np.nan)
    epochs = {"stop": Epochs(2), "batch": 8}
    wrong = {
        "batch must be at most the 192 samples": (NET, digits, {**epochs, "batch": 256}),
        "the model must be a net on images, got DiagonalNet; use dense_net": (
            penchant.DiagonalNet(alpha=1.0),
            digits,
            epochs,
        ),
        "train labels must be between 0 and 4, got 0 to 9": (
            NET,
            dataclasses.replace(digits, classes=digits.classes[:5]),
            epochs,
        ),
        "test images must be finite": (NET, dataclasses.replace(digits, test_images=nan), epochs),
        "as many test images as labels and at least one, got 60 and 0": (
            NET,
            dataclasses.replace(digits, test_labels=digits.test_labels[:0]),
            epochs,
        ),
        "Near needs a linear predictor": (
            NET,
            digits,
            {**epochs, "stop": [Epochs(2), Near([1.0, 0.0], 3.0)]},
        ),
        "Below uses layer_norm, which is not recorded here": (
            NET,
            digits,
            {**epochs, "stop": [Epochs(2), Below("layer_norm", 0.1)]},
        ),
        "Below uses test_error, which is not recorded here; there are loss, log_loss": (
            NET,
            digits,
            {**epochs, "stop": [Epochs(2), Below("test_error", 0.1)]},
        ),
        r"At\(epochs=...\) must stay within the 2 epochs of this run, got 6": (
            NET,
            digits,
            {**epochs, "record": At(epochs=[6])},
        ),
        "Epochs needs batch=": (NET, digits, {"stop": Epochs(2)}),
    }
    for sentence, (net, images, more) in wrong.items():
        refused(lambda n=net, i=images, m=more: train(n, i, GradientDescent(0.1), **m), sentence)


test_bad_nets_get_one_sentence = refusals(
    (lambda: OutputLayer("net"), "OutputLayer: the net must be one on images, got str"),
    (lambda: linearize("net"), "or a net on images,.* got str"),
    (lambda: dense_net(precision="half"), "unknown precision 'half'; known: single, double"),
)


# ---------------------------------------------------------------- penalties


def test_a_quadratic_penalty_is_weight_decay_also_at_black_pixels(dark):
    net, given = double(NET), {"batch": BATCH, "stop": Epochs(2)}
    path = train(net, dark, GradientDescent(0.1), penalty=0.15 * penchant.L2(), **given)
    decayed = train(net, dark, GradientDescent(0.1, weight_decay=0.3), **given)
    assert_close(path.parameters, decayed.parameters.values(), 1e-12)
    square = sum(np.sum(part**2) for part in path.parameters.values())
    last = path.dataset.isel(time=-1)
    assert float(last.penalty) == pytest.approx(0.15 * square)
    assert float(last.objective) == pytest.approx(float(last.loss) + 0.15 * square)
    assert "penalty" not in decayed.dataset


def test_a_proximal_step_on_a_net_sets_weights_to_zero(dark):
    net, rate, weight = double(NET), 0.05, 2.0
    path = train(net, dark, Proximal(rate), penalty=weight * penchant.L1(), stop=Steps(1))
    hand = ByHand(net.start(dark))
    X = np.float64(dark.train_images).reshape(192, -1)
    slopes = hand.gradient(hand.start, X, dark.train_labels)
    for found, w, slope in zip(path.parameters.values(), hand.start, slopes, strict=True):
        moved = w - rate * slope
        shrunk = np.sign(moved) * np.maximum(np.abs(moved) - rate * weight, 0)
        np.testing.assert_allclose(found, shrunk, rtol=1e-12, atol=1e-12)
        assert (found == 0).any()
