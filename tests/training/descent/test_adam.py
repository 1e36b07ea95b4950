"""Adam, AdamW and momentum against their formulas written by hand, full batch and mini-batch."""

import dataclasses

import numpy as np
import pytest

from penchant import (
    L1,
    L2,
    Adam,
    DiagonalNet,
    FunctionModel,
    GradientDescent,
    Regression,
    Steps,
    train,
)
from penchant.lab import double_precision
from penchant.models import LinearMatrix, LinearPredictor
from penchant.problems import low_rank_completion, separable_points
from penchant.record import At
from penchant.regularizers import Custom, Nuclear
from penchant.training.descent.compiled import Batches
from refusals import refusals

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 4)) / 2
PROBLEM = Regression(X, RNG.standard_normal(6), np.ones(4), loss="half squares")
START = np.array([0.5, -1.0, 0.0, 2.0])
LINE = LinearPredictor(START)


def slope(a):
    return X.T @ (X @ a - PROBLEM.y)


def adam(a, steps, step, gradient, pull, decoupled, first=0.9, second=0.999, epsilon=1e-8):
    """Kingma and Ba's algorithm 1; decoupled as Loshchilov and Hutter's algorithm 2."""
    m, v = np.zeros_like(a), np.zeros_like(a)
    for k in range(1, steps + 1):
        g = gradient(k, a) + (0 if decoupled else pull(a))
        m = first * m + (1 - first) * g
        v = second * v + (1 - second) * g * g
        ahead = (m / (1 - first**k)) / (np.sqrt(v / (1 - second**k)) + epsilon)
        a = a - step * ahead - (step * pull(a) if decoupled else 0)
    return a


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("settings", [{}, {"mean_decay": 0.5, "square_decay": 0.9}])
def test_adam_is_the_loop_written_by_hand(decoupled, settings):
    method = Adam(0.02, decoupled=decoupled, **settings)
    path = train(LINE, PROBLEM, method, penalty=0.1 * L1(), stop=Steps(150))
    shares = dict(zip(("first", "second"), settings.values(), strict=False))

    def hand_written(which):
        pull = lambda a: 0.1 * np.sign(a)  # noqa: E731
        return adam(START, 150, 0.02, lambda k, a: slope(a), pull, which, **shares)

    hand = [hand_written(which) for which in (decoupled, not decoupled)]
    np.testing.assert_allclose(path.predictor, hand[0], atol=1e-12)
    assert np.abs(path.predictor - hand[1]).max() > 1e-3  # the two couplings differ


ROWS = np.array([[1.0, 2, 0, -1], [0, 1, 3, 1], [2, -1, 1, 0]]) / 4
SMALL = Regression(ROWS, np.array([1.0, -2.0, 0.5]), loss="half squares")


# --- a penalty of squares and weight decay


@pytest.mark.parametrize("data", [SMALL, separable_points(8, 4, seed=1, loss="logistic")])
def test_half_a_penalty_of_squares_is_weight_decay_in_plain_steps(data):
    """w - r (g + c w) = (1 - r c) w - r g, by the driver once and by the method once."""
    method = GradientDescent
    for model in (DiagonalNet(2, alpha=0.3), LINE):
        penalized = train(model, data, method(0.05), penalty=0.5 * 0.3 * L2(), stop=Steps(200))
        decayed = train(model, data, method(0.05, weight_decay=0.3), stop=Steps(200))
        plain = train(model, data, method(0.05), stop=Steps(200))
        np.testing.assert_allclose(penalized.parameters, decayed.parameters, rtol=1e-11, atol=1e-13)
        assert np.abs(plain.parameters - decayed.parameters).max() > 1e-2
    twice = train(LINE, data, method(0.05), penalty=0.3 * L2(), stop=Steps(200))
    assert np.abs(twice.parameters - decayed.parameters).max() > 1e-2  # half of it, not all


def by_torch(kind, steps, **settings):
    """The parameters after steps of a PyTorch optimizer on half the squares, in float64."""
    torch = pytest.importorskip("torch")
    w = torch.tensor(START, requires_grad=True)
    rows, labels = torch.tensor(ROWS), torch.tensor(SMALL.y)
    optimizer = getattr(torch.optim, kind)([w], lr=0.02, **settings)
    for _ in range(steps):
        optimizer.zero_grad()
        (0.5 * ((rows @ w - labels) ** 2).sum()).backward()
        optimizer.step()
    return w.detach().numpy()


def by_optax(decay, steps):
    """The parameters after steps of optax.adamw on half the squares, in float64."""
    import optax

    with double_precision():
        tool, w = optax.adamw(0.02, weight_decay=decay), START
        state = tool.init(w)
        for _ in range(steps):
            change, state = tool.update(ROWS.T @ (ROWS @ w - SMALL.y), state, w)
            w = np.asarray(optax.apply_updates(w, change))
    return w


def test_a_penalty_in_adam_is_coupled_and_weight_decay_is_not():
    """PyTorch's Adam puts its decay into the moments; AdamW, there and in optax, does not."""
    c = 0.4
    coupled = train(LINE, SMALL, Adam(0.02), penalty=0.5 * c * L2(), stop=Steps(200)).parameters
    apart = train(LINE, SMALL, Adam(0.02, weight_decay=c), stop=Steps(200)).parameters
    np.testing.assert_allclose(coupled, by_torch("Adam", 200, weight_decay=c), atol=1e-11)
    np.testing.assert_allclose(apart, by_torch("AdamW", 200, weight_decay=c), atol=1e-11)
    np.testing.assert_allclose(apart, by_optax(c, 200), atol=1e-11)
    assert np.abs(coupled - apart).max() > 0.05


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("SGD", GradientDescent(0.02, momentum=0.9)),
        ("SGD", GradientDescent(0.02, momentum=0.9, nesterov=True)),
    ],
    ids=["momentum", "nesterov"],
)
def test_momentum_distinguishes_a_penalty_from_weight_decay(kind, method):
    """PyTorch's SGD puts its decay into the velocity, as a penalty is; weight_decay is not."""
    settings = {"momentum": 0.9, "nesterov": method.nesterov}
    inside = train(LINE, SMALL, method, penalty=0.5 * 0.4 * L2(), stop=Steps(100)).parameters
    wanted = by_torch(kind, 100, weight_decay=0.4, **settings)
    np.testing.assert_allclose(inside, wanted, atol=1e-12)
    outside = train(
        LINE, SMALL, dataclasses.replace(method, weight_decay=0.4), stop=Steps(100)
    ).parameters
    w, velocity = START, 0.0
    for _ in range(100):
        g = ROWS.T @ (ROWS @ w - SMALL.y)
        velocity = 0.9 * velocity + g
        ahead = g + 0.9 * velocity if method.nesterov else velocity
        w = (1 - 0.02 * 0.4) * w - 0.02 * ahead
    np.testing.assert_allclose(outside, w, atol=1e-12)
    assert np.abs(inside - outside).max() > 1e-2


def test_decoupled_decay_shrinks_the_weights_by_its_own_factor():
    # without data AdamW only decays, (1 - rate decay)^k; coupled Adam moves by the sign of it
    nothing, decay = Regression(np.zeros((1, 4)), np.zeros(1)), 0.05 * L2()
    for method, penalty in (
        (Adam(0.1, decoupled=True), decay),
        (Adam(0.1, weight_decay=0.1), None),
    ):
        apart = train(LINE, nothing, method, penalty=penalty, stop=Steps(40))
        np.testing.assert_allclose(apart.predictor, START * (1 - 0.01) ** 40, rtol=1e-12)
    first = train(LINE, nothing, Adam(0.1), penalty=decay, stop=Steps(1))
    np.testing.assert_allclose(START - first.predictor, 0.1 * np.sign(START), atol=1e-6)


def test_a_function_of_one_s_own_trains_with_a_penalty_of_one_s_own():
    import jax.numpy as jnp

    net = FunctionModel(lambda w, rows: jnp.tanh(rows @ w), START)
    penalty = Custom(lambda w: jnp.sum(w**4))

    def gradient(k, a):
        out = np.tanh(X @ a)
        return X.T @ ((out - PROBLEM.y) * (1 - out**2))

    path = train(net, PROBLEM, Adam(0.02), penalty=0.01 * penalty, stop=Steps(100))
    wanted = adam(START, 100, 0.02, gradient, lambda a: 0.04 * a**3, False)
    np.testing.assert_allclose(path.parameters, wanted, atol=1e-11)
    with pytest.raises(AttributeError, match="no linear predictor; see predictions"):
        _ = path.predictor
    assert path.dataset.predictions.dims == ("time", "sample")
    residual = np.tanh(X @ wanted) - PROBLEM.y
    assert path.dataset.loss[-1] == pytest.approx(residual @ residual / 2)


def batches_of(seed, size, steps, samples=6):
    """The samples of every step, drawn one by one outside of any loop."""
    import jax

    draws = Batches(size, samples)
    draw = jax.jit(draws.draw)
    with double_precision():
        carried, picked = draws.start(seed, 0), []
        for k in range(steps):
            rows, share, carried = draw(k, carried)
            rows = np.asarray(rows)
            picked.append(rows if share is None else rows[np.asarray(share)])
    return picked


@pytest.mark.parametrize(
    "method",
    [Adam(0.02), GradientDescent(0.02, momentum=0.8, subgradient=True)],
    ids=["adam", "momentum"],
)
@pytest.mark.parametrize("size", [2, 4])
def test_mini_batches_are_the_loop_written_by_hand(method, size):
    picked = batches_of(seed=3, size=size, steps=50)

    def gradient(k, a):
        rows = picked[k - 1]
        scale = 6 / len(rows)  # unbiased for the sum
        return scale * X[rows].T @ (X[rows] @ a - PROBLEM.y[rows])

    path = train(LINE, PROBLEM, method, penalty=0.1 * L1(), stop=Steps(50), batch=size, seed=3)
    wanted, velocity = START, 0.0
    if isinstance(method, Adam):
        wanted = adam(START, 50, 0.02, gradient, lambda a: 0.1 * np.sign(a), False)
    else:
        for k in range(1, 51):
            velocity = 0.8 * velocity + gradient(k, wanted) + 0.1 * np.sign(wanted)
            wanted = wanted - 0.02 * velocity
    np.testing.assert_allclose(path.predictor, wanted, atol=1e-12)


def test_seeds_repeat_and_differ_and_records_do_not_disturb_the_draws():
    def end(seed, **more):
        return train(
            LINE, PROBLEM, GradientDescent(0.05), stop=Steps(40), batch=2, seed=seed, **more
        ).predictor

    np.testing.assert_array_equal(end(1), end(1))
    np.testing.assert_array_equal(end(1), end(1, record=At([4, 17])))
    assert np.abs(end(1) - end(2)).max() > 1e-6


def test_a_mean_over_labels_is_not_scaled_by_the_batch():
    problem = separable_points(8, 3, seed=1, loss="logistic")
    full = train(LinearPredictor(), problem, GradientDescent(0.1), stop=Steps(60))
    all_ = train(LinearPredictor(), problem, GradientDescent(0.1), stop=Steps(60), batch=8)
    np.testing.assert_allclose(full.predictor, all_.predictor, atol=1e-12)


def test_matrix_entries_come_in_batches_too():
    problem = low_rank_completion(samples=12, dimension=4, rank=1, seed=0, loss="half squares")
    given = {"penalty": 1e-3 * Nuclear((4, 4)), "stop": Steps(3000), "batch": 4}
    path = train(LinearMatrix(), problem, GradientDescent(0.1, subgradient=True), **given)
    assert path.dataset.loss[-1] < 1e-3 * path.dataset.loss[0]


def run(method=GradientDescent(0.1), **more):  # noqa: B008
    return train(LINE, PROBLEM, method, stop=Steps(1), **more)


test_wrong_input_is_refused = refusals(
    (lambda: Adam(0.1, mean_decay=1.0), r"mean_decay must be in \[0, 1\), got 1"),
    (lambda: Adam(0.1, epsilon=-1), "epsilon must be >= 0"),
    (
        lambda: run(Adam(0.1, decoupled=True), penalty=10.0 * L2()),
        r"below 2/\(curvature of the decoupled penalty\) = 0.1",
    ),
    (lambda: run(batch=0), "batch must be at least"),
    (lambda: run(batch=7), "at most the 6 samples"),
    *((lambda bad=bad: run(batch=bad), "batch must be an int") for bad in ("2", 2.5, True)),
    (lambda: GradientDescent(0.1, momentum=1.0), r"momentum must be in \[0, 1\)"),
    (lambda: run(seed=-1), "seed must be at least 0"),
    *((lambda bad=bad: run(seed=bad), "seed must be an int") for bad in (None, 0.5)),
)


def test_large_seeds_differ_in_every_digit():
    first, second = (
        train(LINE, PROBLEM, GradientDescent(0.05), stop=Steps(9), batch=2, seed=seed).parameters
        for seed in (2**53, np.int64(2**53 + 1))  # the same as floats
    )
    assert np.abs(first - second).max() > 0
    with pytest.raises(ValueError, match=r"seed must be below 2\^63"):
        train(LINE, PROBLEM, GradientDescent(0.05), stop=Steps(9), batch=2, seed=2**70)
