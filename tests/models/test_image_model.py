"""Nets on images: against loops written by hand, their starts, their scale, and bad input."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant.lab import double_precision
from penchant.models import conv_net, dense_net
from penchant.models.image_layers import maxima, name_of
from penchant.models.image_model import VGG
from penchant.problems import Images, load_images
from refusals import refusals

COMMON = {"deadline": None, "derandomize": True, "max_examples": 15}


def made_up(shape, classes=3, train=4, test=2, seed=0):
    rng = np.random.default_rng(seed)
    sets = [
        (rng.random((n, *shape), dtype=np.float32), rng.integers(0, classes, n))
        for n in (train, test)
    ]
    return Images("made up", *sets[0], *sets[1], tuple("abcdefghij"[:classes]), "made up")


def by_loops(image, params, plan):
    """The outputs of a convolutional net for one image, pixel by pixel."""
    x, layer = image.astype(np.float64), 0
    for part in plan[:-1]:
        if part == "M":
            height, width = x.shape[0] // 2, x.shape[1] // 2
            new = np.zeros((height, width, x.shape[2]))
            for i, j in itertools.product(range(height), range(width)):
                new[i, j] = x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max(axis=(0, 1))
        else:
            layer += 1
            weights = params[name_of(layer)].astype(np.float64)
            margin = np.pad(x, ((1, 1), (1, 1), (0, 0)))
            new = np.zeros((*x.shape[:2], part))
            for i, j in itertools.product(*map(range, x.shape[:2])):
                for k in range(part):
                    new[i, j, k] = max(0.0, np.sum(margin[i : i + 3, j : j + 3] * weights[..., k]))
        x = new
    return x.ravel() @ params[name_of(layer + 1)].astype(np.float64)


@pytest.mark.parametrize("plan", ["2-M-3-FC", "3-2-M-FC", "M-2-FC", "FC"])
def test_convolutions_are_loops_over_pixels(plan):
    images, net = made_up((5, 7, 2)), conv_net(plan, alpha=1.5, seed=3)
    params = net.start(images)
    outputs = np.asarray(net.logits(params, images.train_images))
    expected = [by_loops(x, params, net.function.plan) for x in images.train_images]
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)


def test_dense_layers_are_matrix_products():
    images, net = made_up((4, 3, 2), classes=5), dense_net((6, 7), alpha=0.7, seed=2)
    first, second, third = net.start(images).values()
    X = images.train_images.reshape(4, -1)
    expected = np.maximum(np.maximum(X @ first, 0) @ second, 0) @ third
    found = net.logits(net.start(images), images.train_images)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found.shape == (4, 5)
    assert net.homogeneity == 3


def test_gradients_of_convolutions_are_difference_quotients():
    import jax

    images, net = made_up((4, 4, 1)), conv_net("2-M-2-M-FC", alpha=2.0, seed=4)
    rng = np.random.default_rng(0)
    with double_precision():
        params = {k: np.float64(part) for k, part in net.start(images).items()}
        X = np.float64(images.train_images)
        aim = rng.normal(size=(4, 3))
        value = jax.jit(lambda p: (net.logits(p, X) * aim).sum())
        slope = jax.grad(value)(params)
        for name, part in params.items():
            way = rng.normal(size=part.shape)
            up, down = (float(value(params | {name: part + h * way})) for h in (1e-6, -1e-6))
            expected = float(np.sum(np.asarray(slope[name]) * way))
            assert (up - down) / 2e-6 == pytest.approx(expected, rel=1e-6, abs=1e-8)
            assert abs(expected) > 1e-4  # or nothing was compared


def test_equal_largest_pixels_share_the_gradient():
    import jax

    x = np.zeros((1, 2, 2, 1), np.float32)
    x[0, 0, :, 0] = 1
    slope = np.asarray(jax.grad(lambda x: maxima(x).sum())(x))
    np.testing.assert_allclose(slope[0, ..., 0], [[0.5, 0.5], [0, 0]])


@settings(**COMMON)
@given(st.floats(0.2, 4), st.sampled_from(["2-M-FC", "2-2-FC", (5,), (4, 3, 2), ()]))
def test_outputs_are_homogeneous_in_the_weights(c, plan):
    images = made_up((4, 4, 1))
    net = conv_net(plan) if isinstance(plan, str) else dense_net(plan)
    params = net.start(images)
    depth = len(params)
    assert net.homogeneity == depth
    with double_precision():
        small, large = (
            np.asarray(
                net.logits(
                    {k: scale * np.float64(w) for k, w in params.items()},
                    np.float64(images.train_images),
                )
            )
            for scale in (1.0, c)
        )
    np.testing.assert_allclose(large, c**depth * small, rtol=1e-12, atol=1e-13)


@settings(**COMMON)
@given(st.floats(-20, 20))
def test_log_alpha_scales_the_start(log_alpha):
    images = made_up((4, 4, 1))
    one, scaled = (
        dense_net((5,), seed=1).start(images),
        dense_net((5,), log_alpha=log_alpha, seed=1).start(images),
    )
    for name in one:
        np.testing.assert_allclose(scaled[name], math.exp(log_alpha) * one[name], rtol=2e-6)
    assert dense_net((5,), alpha=math.exp(log_alpha), seed=1).start(images)[name][0, 0] == (
        pytest.approx(scaled[name][0, 0], rel=1e-6)
    )


def test_a_start_in_double_precision_has_all_digits():
    images = made_up((4, 4, 1))
    single, exact = (
        dense_net((5,), seed=1, precision=p).start(images) for p in ("single", "double")
    )
    for name, part in exact.items():
        assert part.dtype == np.float64
        np.testing.assert_array_equal(part.astype(np.float32), single[name])
        assert (part != single[name]).any()
    assert dense_net(log_alpha=100, precision="double").alpha == math.exp(100)


@pytest.mark.parametrize("start", ["gaussian", "he_uniform"])
def test_starts_have_the_variance_of_he(start):
    images = made_up((8, 8, 2))
    nets = dense_net((300,), alpha=3.0, start=start), conv_net("40-40-FC", alpha=3.0, start=start)
    for net in nets:
        for name, part in net.start(images).items():
            spread = 9 * 2 / math.prod(part.shape[:-1])
            assert part.var() == pytest.approx(spread, rel=0.15), name
            assert abs(part.mean()) < 4 * math.sqrt(spread / part.size)
            bounded = np.abs(part).max() <= math.sqrt(3 * spread)
            assert bounded == (start == "he_uniform")


def test_layers_have_factors_of_their_own_and_seeds_matter():
    images = made_up((4, 4, 1))
    kinds = {"seed": 0}, {"layers": (2.0, 0.5)}, {"seed": 1}
    plain, scaled, other = (dense_net((5,), **kind).start(images) for kind in kinds)
    np.testing.assert_array_equal(scaled["layer 1"], 2 * plain["layer 1"])
    np.testing.assert_array_equal(scaled["layer 2"], plain["layer 2"] / 2)
    assert (other["layer 1"] != plain["layer 1"]).all()
    assert not plain["layer 1"].flags.writeable


@pytest.mark.parametrize(
    "make", [lambda **k: dense_net((6,), **k), lambda **k: conv_net("2-FC", **k)]
)
def test_an_unbiased_net_begins_at_zero_and_subtracts_its_start(make):
    images = made_up((4, 4, 1))
    X, net, plain = images.train_images, make(unbiased=True), make()
    start = net.start(images)
    assert not np.asarray(net.logits(start, X)).any()
    assert np.asarray(plain.logits(start, X)).any()  # the control
    moved = {name: 1.5 * part for name, part in start.items()}
    expected = np.asarray(plain.logits(moved, X)) - np.asarray(plain.logits(start, X))
    np.testing.assert_allclose(net.logits(moved, X), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(net.logits(moved, X, origin=start), net.logits(moved, X))


def test_equal_plans_are_one_function_and_nets_are_described():
    one, other = (
        dense_net((5,), alpha=2.0, seed=1),
        dense_net([5], alpha=3.0, seed=2, unbiased=True),
    )
    assert one.function == other.function
    assert len({one.function, other.function, dense_net((6,)).function}) == 2
    assert one != other
    assert dense_net(5) == dense_net((5,), alpha=1.0)
    assert one.recipe == {
        "is": "dense_net",
        "widths": [5],
        "alpha": 2.0,
        "start": "gaussian",
        "seed": 1,
        "unbiased": False,
        "precision": "single",
    }
    assert "alpha" in str(one)


def test_the_net_of_the_source_has_its_sizes():
    function = conv_net().function
    shapes = function.shapes((32, 32, 3), 10)
    channels = 3, 64, 128, 256, 256, 512, 512, 512
    assert [shape[2:] for shape in shapes[:-1]] == list(itertools.pairwise(channels))
    assert shapes[-1] == (512, 10)
    assert function.depth == 8
    slim = conv_net(slimmer=8).function
    assert slim.plan == tuple(int(p) // 8 if p.isdigit() else p for p in VGG.split("-"))


def test_ten_layers_stay_in_order():
    net = conv_net("-".join(["2"] * 10 + ["FC"]))
    images = made_up((3, 3, 1))
    assert list(net.start(images)) == [f"layer {k}" for k in range(1, 12)]
    unbiased = conv_net("-".join(["2"] * 10 + ["FC"]), unbiased=True)
    assert not np.asarray(unbiased.logits(net.start(images), images.train_images)).any()


test_bad_input_gets_one_sentence = refusals(
    (lambda: conv_net("64-Q-FC"), "conv_net: plan must not contain 'Q'"),
    (lambda: conv_net("0-FC"), "plan must not contain '0'"),
    (lambda: conv_net(""), "plan must not contain ''"),
    (lambda: conv_net("64-M"), "plan must have one FC, at its end, got '64-M'"),
    (lambda: conv_net("FC-64-FC"), "plan must have one FC, at its end"),
    (lambda: conv_net(64), "plan must be a text, got 64"),
    (lambda: conv_net("6-FC", slimmer=4), "slimmer must divide .* got 4 for 6"),
    (
        lambda: conv_net().start(load_images("digits", 2, 2)),
        "conv_net: images of 8x8 pixels are too small for 5 poolings",
    ),
    (
        lambda: conv_net("2-FC").start(load_images("digits", 2, 2, flat=True)),
        r"conv_net: convolutions need images of .* got the shape \(64,\); .* flat=False",
    ),
    (lambda: dense_net().start(3), "dense_net: the problem must be Images, got int"),
    (lambda: dense_net((0,)), "dense_net: widths must be at least 1, got 0"),
    (lambda: dense_net(start="gausian"), "unknown start 'gausian'; did you mean gaussian"),
    (lambda: dense_net(alpha=0), "alpha must be > 0"),
    (lambda: dense_net(alpha=1, log_alpha=0), "give exactly one of alpha"),
    (lambda: dense_net(log_alpha=100), "alpha must be between 1e-30 and 1e[+]30"),
    (lambda: dense_net((5,), layers=(1, 2, 3)), r"one factor per layer \(2\), got 3"),
    (lambda: dense_net(seed=-1), "seed must be at least 0, got -1"),
)
