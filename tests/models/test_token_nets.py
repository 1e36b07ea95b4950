"""The transformer and the net with squares on token pairs: formulas, gradients, known weights."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import softmax

from penchant import L2, Adam, Steps, train
from penchant.lab import double_precision
from penchant.models import TokenNet, TokenQuadratic, TokenTransformer
from penchant.problems import modular_arithmetic
from penchant.training.cross_entropy import TokenLoss
from penchant.training.tokens import TokenTask
from refusals import refusals

LITTLE = modular_arithmetic(5, operation="+", fraction=0.6, seed=1)
PROBLEM = modular_arithmetic(7, operation="+", fraction=0.6, seed=1)
TRANSFORMER = TokenTransformer(width=6, heads=2, hidden=5, seed=3, precision="double")
NETS = {
    "transformer": TRANSFORMER,
    "one head": TokenTransformer(width=4, heads=1, hidden=3, seed=4, precision="double"),
    "no positions": TokenTransformer(6, 3, 5, positions=False, seed=5, precision="double"),
    "squares": TokenQuadratic(width=6, seed=3, precision="double"),
    "shared squares": TokenQuadratic(6, shared=True, alpha=0.7, seed=3, precision="double"),
}
ORDERED = pytest.mark.parametrize("name", ["transformer", "squares"])
EVERY = pytest.mark.parametrize("net", NETS.values(), ids=NETS.keys())


def sequence_logits(net, tensors, a, b, causal):
    """The whole transformer on the sequence "a b =", place by place, read at its last place."""
    tokens = len(tensors["embedding"]) - 1
    stream = tensors["embedding"][[a, b, tokens]] + tensors.get("position", 0)
    blocks = {name: np.split(tensors[name], net.heads) for name in ("query", "key", "value")}
    mask = np.where(np.tri(3) > 0, 0, -np.inf) if causal else np.zeros((3, 3))
    found = []
    for q, k, v in zip(*blocks.values(), strict=True):
        scores = np.einsum("ic,jc->ij", stream @ q.T, stream @ k.T) / math.sqrt(len(q))
        found.append(softmax(scores + mask, axis=1) @ (stream @ v.T))
    stream = stream + np.concatenate(found, axis=1) @ tensors["output"].T
    units = np.maximum(stream @ tensors["inner"].T + tensors["inner_bias"], 0)
    stream = stream + units @ tensors["outer"].T + tensors["outer_bias"]
    return (stream @ tensors["unembedding"].T)[-1]


def square_logits(net, tensors, a, b):
    """W2 (W1 x)^2 with the one-hot codes written out."""
    tokens = tensors["inner"].shape[1] // (1 if net.shared else 2)
    first, second = np.eye(tokens)[a], np.eye(tokens)[b]
    x = first + second if net.shared else np.concatenate([first, second])
    units = [sum(w * c for w, c in zip(row, x, strict=True)) ** 2 for row in tensors["inner"]]
    return np.array([sum(w * u for w, u in zip(row, units, strict=True))
                     for row in tensors["outer"]])  # fmt: skip


def slow_logits(net, tensors, pairs):
    if isinstance(net, TokenTransformer):
        return np.array([sequence_logits(net, tensors, a, b, causal=True) for a, b in pairs])
    return np.array([square_logits(net, tensors, a, b) for a, b in pairs])


def slow_loss(net, tensors, problem):
    """The mean cross-entropy over the training pairs, by the slow logits."""
    pairs, labels = problem.pairs[problem.train], problem.labels[problem.train]
    chances = softmax(slow_logits(net, tensors, pairs), axis=1)
    return -np.log(chances[np.arange(len(labels)), labels]).mean()


def moved(net, problem, seed=0):
    """Parameters away from the start, where biases are not zero."""
    rng = np.random.default_rng(seed)
    start = net.start(problem)
    return {name: part + 0.3 * rng.standard_normal(part.shape) for name, part in start.items()}


def mirrored(logits, tokens):
    """The logits of (b, a) in the place of (a, b), for all pairs in order."""
    return logits.reshape(tokens, tokens, -1).swapaxes(0, 1).reshape(tokens**2, -1)


@EVERY
def test_the_logits_are_the_formula_written_out(net):
    tensors = moved(net, PROBLEM)
    logits = net.logits(tensors, PROBLEM.pairs)
    np.testing.assert_allclose(
        logits, slow_logits(net, tensors, PROBLEM.pairs), rtol=1e-11, atol=1e-12
    )
    assert np.allclose(mirrored(logits, 7), logits) == net.symmetric
    other = moved(net, PROBLEM, seed=1)  # the control
    assert not np.allclose(logits, net.logits(other, PROBLEM.pairs), rtol=0.01)


@EVERY
def test_a_net_is_what_training_asks_for(net):
    assert isinstance(net, TokenNet)
    for part in net.start(PROBLEM).values():
        assert part.dtype == np.float64
        assert part.ndim in (1, 2)
    other = dataclasses.replace(net, seed=9).start(PROBLEM)
    first = next(iter(other))
    assert not np.allclose(other[first], net.start(PROBLEM)[first])


@ORDERED
def test_jax_and_numpy_give_the_same_logits_and_float32_stays(name):
    import jax
    import jax.numpy as jnp

    net, tensors = NETS[name], moved(NETS[name], PROBLEM)
    plain = net.logits(tensors, PROBLEM.pairs)
    with double_precision():
        for dtype, tolerance in ((jnp.float64, 1e-11), (jnp.float32, 1e-3)):
            parts = {name: jnp.asarray(part, dtype) for name, part in tensors.items()}
            found = jax.jit(net.logits)(parts, jnp.asarray(PROBLEM.pairs))
            assert found.dtype == dtype
            np.testing.assert_allclose(found, plain, rtol=tolerance, atol=tolerance)


def test_causal_and_full_attention_agree_where_the_answer_is_read():
    tensors = moved(TRANSFORMER, PROBLEM)
    for a, b in PROBLEM.pairs[:10]:
        causal, full = (sequence_logits(TRANSFORMER, tensors, a, b, kind) for kind in (True, False))
        np.testing.assert_allclose(causal, full, rtol=1e-12, atol=1e-13)


def test_scores_beyond_the_exponential_do_not_overflow():
    tensors = TRANSFORMER.start(PROBLEM)
    logits = TRANSFORMER.logits(tensors | {"query": 1e6 * tensors["query"]}, PROBLEM.pairs)
    assert np.isfinite(logits).all()


def test_the_start_of_the_transformer():
    net = TokenTransformer(width=64, heads=4, hidden=256, scale=3.0)
    start = net.start(modular_arithmetic(97, operation="+"))
    assert start["embedding"].shape == (98, 64)
    assert start["position"].shape == (3, 64)
    assert start["unembedding"].shape == (97, 64)
    assert not start["inner_bias"].any()
    assert not start["outer_bias"].any()
    for name in ("query", "key", "value", "output"):
        assert start[name].shape == (64, 64)
    inputs = {"query": 64, "output": 64, "inner": 64, "outer": 256, "unembedding": 64}
    for name, count in inputs.items():
        assert np.std(start[name]) == pytest.approx(1 / math.sqrt(count), rel=0.05)
    assert np.std(start["embedding"]) == pytest.approx(3 / 8, rel=0.05)


def test_the_start_of_the_squares_has_units_and_logits_of_order_one():
    problem = modular_arithmetic(31, operation="+")
    net, double = TokenQuadratic(400, seed=1), TokenQuadratic(400, alpha=2.0, seed=1)
    start = net.start(problem)
    assert start["inner"].shape == (400, 62)
    assert start["outer"].shape == (31, 400)
    units = start["inner"][:, problem.pairs[:, 0]] + start["inner"][:, 31 + problem.pairs[:, 1]]
    assert np.std(units) == pytest.approx(1, rel=0.05)
    logits = net.logits(start, problem.pairs)
    assert np.std(logits) == pytest.approx(math.sqrt(3), rel=0.1)  # E z^4 = 3
    grown = double.logits(double.start(problem), problem.pairs)
    np.testing.assert_allclose(grown, 2**net.homogeneity * logits, rtol=1e-10)


def cosines(p, frequencies, first, second, third):
    """Gromov's weights: unit k turns with its frequency, from its three phases."""
    angle = 2 * np.pi * np.outer(frequencies, np.arange(p)) / p
    inner = [np.cos(angle + phase[:, None]) for phase in (first, second)]
    return {"inner": np.hstack(inner), "outer": np.cos(angle + third[:, None]).T}


def accuracy(net, tensors, problem):
    return (net.logits(tensors, problem.pairs).argmax(axis=1) == problem.labels).mean()


@pytest.mark.parametrize("p", [11, 17, 23])
def test_cosines_with_random_phases_add(p):
    problem, rng, width = modular_arithmetic(p, operation="+"), np.random.default_rng(p), 1500
    frequencies = rng.integers(1, (p + 1) // 2, width)
    first, second, other = rng.uniform(0, 2 * np.pi, (3, width))
    net = TokenQuadratic(width)
    right = cosines(p, frequencies, first, second, first + second)
    assert accuracy(net, right, problem) == 1
    wrong = cosines(p, frequencies, first, second, other)  # the control: phases that do not add up
    assert accuracy(net, wrong, problem) < 0.3


@pytest.mark.parametrize("p", [11, 13, 19])
def test_seven_units_per_frequency_add_exactly(p):
    """Phases 2 pi j/7 and 3 times that: all sums over j vanish but that of the answer.

    What remains is (7/2) sum_k cos(2 pi k (a + b - c)/p) = (7/4) (p [c = a + b] - 1).
    """
    problem = modular_arithmetic(p, operation="+")
    frequencies = np.repeat(np.arange(1, (p + 1) // 2), 7)
    phase = 2 * np.pi * np.tile(np.arange(7), (p - 1) // 2) / 7
    net = TokenQuadratic(len(frequencies))
    tensors = cosines(p, frequencies, phase, 3 * phase, 4 * phase)
    expected = 7 / 4 * (p * np.eye(p)[problem.labels] - 1)
    np.testing.assert_allclose(net.logits(tensors, problem.pairs), expected, atol=1e-11 * p)
    one = cosines(p, np.full(7, 2), phase[:7], 3 * phase[:7], 4 * phase[:7])
    assert accuracy(TokenQuadratic(7), one, problem) == 1  # a single frequency is enough
    five = np.arange(5) * 2 * np.pi / 5  # the control: 1 + 4 = 5 turns, the answer has no phase
    few = cosines(p, np.full(5, 2), five, 4 * five, 5 * five)
    assert accuracy(TokenQuadratic(5), few, problem) < 0.9


def test_rescaling_leaves_the_function_and_changes_the_norm_as_in_n_lu():
    """N-LU with L = 2: |theta|^2 is a l^2 + b/l^4, least at l^6 = 2 b/a, for one function."""
    net = TokenQuadratic(20, seed=2, precision="double")
    tensors = net.start(PROBLEM)
    a, b = (float((tensors[name] ** 2).sum()) for name in ("inner", "outer"))

    def rescaled(scale, power=2):
        return {"inner": scale * tensors["inner"], "outer": tensors["outer"] / scale**power}

    def size(scale):
        return sum((part**2).sum() for part in rescaled(scale).values())

    logits = net.logits(tensors, PROBLEM.pairs)
    for scale in (0.01, 0.5, 3.0, 100.0):
        same = net.logits(rescaled(scale), PROBLEM.pairs)
        np.testing.assert_allclose(same, logits, rtol=1e-11, atol=1e-12)
        assert size(scale) == pytest.approx(a * scale**2 + b / scale**4, rel=1e-12)
        relu = net.logits(rescaled(scale, power=1), PROBLEM.pairs)  # the control: L = 1
        assert not np.allclose(relu, logits, rtol=0.1)
    best = (2 * b / a) ** (1 / 6)
    least = (2 ** (1 / 3) + 2 ** (-2 / 3)) * (a**2 * b) ** (1 / 3)
    assert size(best) == pytest.approx(least, rel=1e-12)
    assert size(best) < min(size(0.99 * best), size(1.01 * best))


@pytest.mark.parametrize("name", ["transformer", "squares", "shared squares"])
def test_gradients_follow_finite_differences(name):
    import jax
    import jax.numpy as jnp

    net, tensors = NETS[name], moved(NETS[name], LITTLE)
    with double_precision():
        data = TokenTask(net, LITTLE).full_data()
        parts = {name: jnp.asarray(part) for name, part in tensors.items()}
        value, slope = jax.jit(jax.value_and_grad(TokenLoss(net).value, argnums=1))(data, parts)
    assert float(value) == pytest.approx(slow_loss(net, tensors, LITTLE), rel=1e-11)
    rng = np.random.default_rng(0)
    for key, part in tensors.items():
        for direction in rng.standard_normal((4, *part.shape)):
            sides = [slow_loss(net, tensors | {key: part + h * direction}, LITTLE)
                     for h in (1e-5, -1e-5)]  # fmt: skip
            along = float(np.sum(np.asarray(slope[key]) * direction))
            assert along == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-5, abs=1e-8), key


ELEVEN = modular_arithmetic(11, operation="+", fraction=0.7, seed=0)


@pytest.mark.parametrize("positions", [True, False])
def test_a_transformer_learns_its_pairs_and_has_twins_free_only_without_positions(positions):
    net = TokenTransformer(16, 2, 32, positions=positions)
    path = train(net, ELEVEN, Adam(0.01), penalty=1e-3 * L2(), stop=Steps(400))
    last = path.dataset.isel(time=-1)
    assert float(last.train_accuracy) == 1
    assert (float(last.twin_accuracy) == 1) == (not positions)
    logits = slow_logits(net, path.parameters, ELEVEN.pairs)
    right = logits.argmax(axis=1) == ELEVEN.labels
    assert float(last.test_accuracy) == pytest.approx(right[ELEVEN.test].mean(), rel=1e-12)


@pytest.mark.parametrize("decay", [1.0, 0.0])
def test_the_net_with_squares_finds_the_rule_if_and_only_if_it_decays(decay):
    problem = modular_arithmetic(23, operation="+", fraction=0.7, seed=0)
    adam = Adam(5e-3, weight_decay=2 * decay)
    dataset = train(TokenQuadratic(128), problem, adam, stop=Steps(500)).dataset
    assert float(dataset.train_accuracy[-1]) == 1
    early = dataset.isel(time=int(np.argmax(dataset.train_accuracy.values >= 0.99)))
    assert float(early.novel_accuracy) < 0.1  # training is solved before
    novel = float(dataset.novel_accuracy[-1])
    assert novel > 0.9 if decay else novel < 0.1


test_wrong_input_is_refused_in_one_sentence = refusals(
    (lambda: TokenTransformer(10, 4), "multiple of heads.* width 10 and heads 4; take width 1"),
    (lambda: TokenTransformer(0), "width must be at least 1, got 0"),
    (lambda: TokenTransformer(heads=0), "heads must be at least 1, got 0"),
    (lambda: TokenTransformer(hidden=2.5), "hidden must be"),
    (lambda: TokenTransformer(scale=0), "scale must be > 0"),
    (lambda: TokenTransformer(positions="yes"), "positions must be True or False, got 'yes'"),
    (lambda: TokenTransformer(seed=-1), "seed must be at least 0"),
    (lambda: TokenTransformer(precision="half"), "unknown precision 'half'"),
    (lambda: TokenQuadratic(precision="half"), "unknown precision 'half'"),
    (lambda: TokenQuadratic(0), "width must be at least 1, got 0"),
    (lambda: TokenQuadratic(alpha=-1), "alpha must be > 0"),
    (lambda: TokenQuadratic(alpha=math.inf), "alpha must be"),
    (lambda: TokenQuadratic(shared=2), "shared must be True or False, got 2"),
)
