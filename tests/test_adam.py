"""Adam, AdamW and momentum against their formulas written by hand, full batch and mini-batch."""

import json

import numpy as np
import pytest
from tacit.flows.adam import Adam
from tacit.flows.penalized_batches import Batches
from tacit.flows.sgd import SGD
from tacit.flows.subgradient import Subgradient

from tacit.models.function import FunctionModel
from tacit.models.linear import LinearMatrix, LinearPredictor
from tacit.precision import double_precision
from tacit.problems.classification import separable_points
from tacit.problems.matrices import low_rank_completion
from tacit.problems.regression import Regression
from tacit.records import Kind
from tacit.regularizers.custom import Custom
from tacit.regularizers.norms import L1, L2
from tacit.regularizers.spectral import Nuclear

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 4)) / 2
PROBLEM = Regression(X, RNG.standard_normal(6), np.ones(4))
START = np.array([0.5, -1.0, 0.0, 2.0])
TOP = float(np.linalg.eigvalsh(X.T @ X)[-1])


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
    method = Adam(0.02, 150, L1(), 0.1, decoupled=decoupled, **settings)
    path = method.run(LinearPredictor(START), PROBLEM)
    shares = dict(zip(("first", "second"), settings.values(), strict=False))
    hand = [adam(START, 150, 0.02, lambda k, a: slope(a), lambda a: 0.1 * np.sign(a), which,
                 **shares) for which in (decoupled, not decoupled)]  # fmt: skip
    np.testing.assert_allclose(path.predictor, hand[0], atol=1e-12)
    assert np.abs(path.predictor - hand[1]).max() > 1e-3  # the two couplings differ


KNOWN = [  # PyTorch 2.13.0, 30 steps with lr=0.02, weight_decay=0.1 and, for SGD, momentum=0.9
    (Adam, {}, [1.067871852530409, -0.4337431710058126, -0.5867131190719178, 1.4148051514180064]),
    (Adam, {"decoupled": True},
     [1.0361119519123632, -0.3960981836775446, -0.5716156886547294, 1.3153257493100423]),
    (SGD, {"momentum": 0.9},
     [1.8693528690272687, 0.4041883252741875, -2.596407219195621, -0.7954511501202798]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "settings", "wanted"), KNOWN, ids=["adam", "adamw", "sgd"])
def test_pytorch_s_optimizers_end_at_the_same_place(kind, settings, wanted):
    rows = np.array([[1.0, 2, 0, -1], [0, 1, 3, 1], [2, -1, 1, 0]]) / 4
    problem = Regression(rows, np.array([1.0, -2.0, 0.5]))
    method = kind(0.02, 30, L2(), 0.05, **settings)  # their decay is 2 beta
    path = method.run(LinearPredictor(START), problem)
    np.testing.assert_allclose(path.predictor, wanted, atol=1e-12)


def test_decoupled_decay_shrinks_the_weights_by_its_own_factor():
    # without data AdamW only decays, (1 - 2 step beta)^k; coupled Adam moves by the sign of it
    nothing = Regression(np.zeros((1, 4)), np.zeros(1))
    decay = {"penalty": L2(), "beta": 0.05}
    apart = Adam(0.1, 40, decoupled=True, **decay).run(LinearPredictor(START), nothing)
    np.testing.assert_allclose(apart.predictor, START * (1 - 0.01) ** 40, rtol=1e-12)
    first = Adam(0.1, 1, **decay).run(LinearPredictor(START), nothing)
    np.testing.assert_allclose(START - first.predictor, 0.1 * np.sign(START), atol=1e-6)


def test_without_a_penalty_the_two_are_one():
    one = Adam(0.05, 30).run(LinearPredictor(START), PROBLEM)
    other = Adam(0.05, 30, decoupled=True).run(LinearPredictor(START), PROBLEM)
    np.testing.assert_allclose(one.predictor, other.predictor, atol=1e-14)


def test_a_function_of_one_s_own_trains_with_a_penalty_of_one_s_own():
    import jax.numpy as jnp

    net = FunctionModel(lambda w, rows: jnp.tanh(rows @ w), START)
    penalty = Custom(lambda w: jnp.sum(w**4))

    def gradient(k, a):
        out = np.tanh(X @ a)
        return X.T @ ((out - PROBLEM.y) * (1 - out**2))

    path = Adam(0.02, 100, penalty, 0.01).run(net, PROBLEM)
    wanted = adam(START, 100, 0.02, gradient, lambda a: 0.04 * a**3, False)
    np.testing.assert_allclose(path.parameters, wanted, atol=1e-11)
    assert path.predictor is None
    assert path.dataset.predictions.dims == ("time", "sample")
    residual = np.tanh(X @ wanted) - PROBLEM.y
    assert path.dataset.loss[-1] == pytest.approx(residual @ residual / 2)


def batches_of(seed, size, steps, samples=6):
    """The samples of every step, drawn one by one outside of any loop."""
    import jax

    draws = Batches(size, samples, mean=False)
    draw = jax.jit(draws._draw)
    with double_precision():
        state, picked = draws.start(seed), []
        for k in range(steps):
            rows, state = draw(k, state)
            picked.append(np.asarray(rows))
    return picked


def test_an_epoch_sees_every_sample_once_and_the_next_is_shuffled_anew():
    picked = batches_of(seed=3, size=2, steps=9)
    epochs = [np.concatenate(picked[k : k + 3]) for k in (0, 3, 6)]
    assert all(sorted(epoch) == list(range(6)) for epoch in epochs)
    assert any((epochs[0] != epoch).any() for epoch in epochs[1:])
    uneven = batches_of(seed=3, size=4, steps=5)
    assert all(len(set(rows)) == 4 for rows in uneven)


@pytest.mark.parametrize("method", [
    lambda: Adam(0.02, 50, L1(), 0.1, batch=2, seed=3),
    lambda: SGD(0.02, 50, L1(), 0.1, momentum=0.8, batch=2, seed=3),
], ids=["adam", "sgd"])  # fmt: skip
def test_mini_batches_are_the_loop_written_by_hand(method):
    picked = batches_of(seed=3, size=2, steps=50)

    def gradient(k, a):
        rows = picked[k - 1]
        return 3 * X[rows].T @ (X[rows] @ a - PROBLEM.y[rows])  # 6/2: unbiased for the sum

    path = method().run(LinearPredictor(START), PROBLEM)
    wanted, velocity = START, 0.0
    if isinstance(method(), Adam):
        wanted = adam(START, 50, 0.02, gradient, lambda a: 0.1 * np.sign(a), False)
    else:
        for k in range(1, 51):
            velocity = 0.8 * velocity + gradient(k, wanted) + 0.1 * np.sign(wanted)
            wanted = wanted - 0.02 * velocity
    np.testing.assert_allclose(path.predictor, wanted, atol=1e-12)


def test_seeds_repeat_and_differ_and_records_do_not_disturb_the_draws():
    def end(seed, **more):
        method = SGD(0.05, 40, batch=2, seed=seed, **more)
        return method.run(LinearPredictor(START), PROBLEM).predictor

    np.testing.assert_array_equal(end(1), end(1))
    np.testing.assert_array_equal(end(1), end(1, record=(4, 17)))
    assert np.abs(end(1) - end(2)).max() > 1e-6


def test_a_batch_of_all_samples_is_the_full_batch():
    full = SGD(0.1, 60, momentum=0.5).run(LinearPredictor(START), PROBLEM)
    all_ = SGD(0.1, 60, momentum=0.5, batch=6, seed=9).run(LinearPredictor(START), PROBLEM)
    np.testing.assert_allclose(full.predictor, all_.predictor, atol=1e-12)


def test_a_mean_over_labels_is_not_scaled_by_the_batch():
    problem = separable_points(8, 3, seed=1, loss="logistic")
    full = SGD(0.1, 60).run(LinearPredictor(), problem)
    all_ = SGD(0.1, 60, batch=8).run(LinearPredictor(), problem)
    np.testing.assert_allclose(full.predictor, all_.predictor, atol=1e-12)


def test_matrix_entries_come_in_batches_too():
    problem = low_rank_completion(samples=12, dimension=4, rank=1, seed=0)
    method = SGD(0.1, 3000, Nuclear((4, 4)), 1e-3, batch=4)
    path = method.run(LinearMatrix(), problem)
    assert path.dataset.loss[-1] < 1e-3 * path.dataset.loss[0]


def test_momentum_is_the_loop_written_by_hand_and_zero_momentum_is_plain_descent():
    a, velocity = START, 0.0
    for _ in range(80):
        velocity = 0.9 * velocity + slope(a) + 0.1 * np.sign(a)
        a = a - 0.05 * velocity
    heavy = SGD(0.05, 80, L1(), 0.1, momentum=0.9).run(LinearPredictor(START), PROBLEM)
    np.testing.assert_allclose(heavy.predictor, a, atol=1e-12)
    plain = SGD(0.05, 80, L1(), 0.1).run(LinearPredictor(START), PROBLEM)
    wanted = Subgradient(0.05, 80, L1(), 0.1).run(LinearPredictor(START), PROBLEM)
    np.testing.assert_allclose(plain.predictor, wanted.predictor, atol=1e-14)
    assert np.abs(heavy.predictor - plain.predictor).max() > 1e-3


def test_momentum_s_bound_is_where_it_starts_to_diverge():
    bound = 2 * 1.5 / TOP
    with pytest.raises(ValueError, match=rf"2 \(1 \+ momentum\).* = {bound:.6g}"):
        SGD(1.01 * bound, 10, momentum=0.5).run(LinearPredictor(START), PROBLEM)
    below = SGD(0.99 * bound, 5000, momentum=0.5).run(LinearPredictor(START), PROBLEM)
    assert below.dataset.gradient_norm[-1] < 1e-9
    above = SGD(1.01 * bound, 100_000, momentum=0.5, check=False)
    assert above.run(LinearPredictor(START), PROBLEM).outcome.kind is Kind.DIVERGED


def test_a_nan_of_the_penalty_is_named_before_it_hides_in_the_moments():
    import jax.numpy as jnp

    broken = Custom(lambda w: jnp.where(w[3] < 1.9, jnp.nan, 1.0) * jnp.sum(w))
    with pytest.raises(ValueError, match=r"Adam: the subgradient of the penalty .* at step 6,"):
        # Adam's first steps are of size `step`: 2.0 - 6 * 0.02 is the first below 1.9
        Adam(0.02, 50, broken, 1e-9, record=(50,)).run(LinearPredictor(START), FLAT)


FLAT = Regression(np.array([[0.0, 0.0, 0.0, 1.0]]), np.array([-1e6]))


def test_wrong_input_speaks():
    cases = [
        (lambda: Adam(0.1, 10, mean_decay=1.0), r"mean_decay must be in \[0, 1\), got 1"),
        (lambda: Adam(0.1, 10, epsilon=0), "epsilon must be > 0"),
        (lambda: Adam(0.1, 10, L2(), 10.0, decoupled=True), "unless step beta is below 1"),
        (lambda: Adam(0.1, 10, batch=0), "batch must be at least 1"),
        (lambda: Adam(0.1, 10, batch=7).run(LinearPredictor(), PROBLEM), "at most the 6 samples"),
        (lambda: SGD(0.1, 10, momentum=1.0), r"momentum must be in \[0, 1\)"),
        (lambda: SGD(0.1, 10, seed=-1), "seed must be at least 0"),
    ]
    for call, sentence in cases:
        with pytest.raises(ValueError, match=sentence):
            call()
    json.dumps(Adam(0.1, 10, L1(), 0.1).describe())
    json.dumps(SGD(0.1, 10).describe())
