"""The MLP of N on token pairs: its formula, gradients, penalties, and Adam against NumPy."""

import dataclasses
import functools
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from penchant import L1, L2, Adam, GradientDescent, Regression, Steps, train
from penchant.lab import Kind, double_precision
from penchant.methods import NormalizedDescent, Proximal
from penchant.models import TokenMLP
from penchant.models.tokens.mlp import Tensors
from penchant.problems import modular_arithmetic
from penchant.problems.arithmetic import TokenPairs
from penchant.record import At, LogSpaced
from penchant.stop import Accuracy, Below
from penchant.training.cross_entropy import (
    TokenLoss,
    all_pairs,
    distinct,
    distinct_pairs,
    incidence,
)
from penchant.training.descent.compiled import Batches
from penchant.training.tokens import TokenTask
from penchant_papers.notsawo2025.figures import runs as token_runs
from refusals import refusals

PENALTIES = {**token_runs.PENALTIES, "l2 over all": L2(squared=False)}
PROBLEM = modular_arithmetic(7, operation="+", fraction=0.6, seed=1)
LITTLE = modular_arithmetic(5, operation="+", fraction=0.6, seed=1)
SOURCE = TokenMLP(embedding=4, width=5, seed=3, precision="double")
CODE = TokenMLP(embedding=4, width=5, variant="code", seed=3, precision="double")
SINGLE = dataclasses.replace(SOURCE, precision="single")
NETS = pytest.mark.parametrize("net", [SOURCE, CODE], ids=["source", "code"])


def slow_logits(net, tensors, a, b):
    """The net for one pair, by loops."""
    if net.variant == "source":
        code = [x * y for x, y in zip(tensors.embedding[a], tensors.embedding[b], strict=True)]
    else:
        left, right = tensors.embedding[a], tensors.partner[b]
        code = [sum(left[2 * i + k] * right[2 * k + j] for k in range(2))
                for i in range(2) for j in range(2)]  # fmt: skip
    biases = tensors.inner_bias, tensors.outer_bias
    hidden = [sum(w * c for w, c in zip(row, code, strict=True)) for row in tensors.inner]
    if biases[0] is not None:
        hidden = [h + b for h, b in zip(hidden, biases[0], strict=True)]
    scores = [sum(w * max(h, 0.0) for w, h in zip(row, hidden, strict=True))
              for row in tensors.outer]  # fmt: skip
    return np.array(scores) + (0 if biases[1] is None else biases[1])


def slow_loss(net, tensors, pairs, labels):
    """The mean cross-entropy, by other formulas than the package's."""
    left, right = tensors.embedding[pairs[:, 0]], pairs[:, 1]
    if net.variant == "source":
        codes = np.einsum("ni,ni->ni", left, tensors.embedding[right])
    else:
        squares = left.reshape(-1, 2, 2), tensors.partner[right].reshape(-1, 2, 2)
        codes = np.einsum("nik,nkj->nij", *squares).reshape(-1, 4)
    none = np.zeros(1)
    inner, outer = (none if b is None else b for b in (tensors.inner_bias, tensors.outer_bias))
    hidden = np.maximum(np.einsum("hi,ni->nh", tensors.inner, codes) + inner, 0)
    scores = np.einsum("ch,nh->nc", tensors.outer, hidden) + outer
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return float(-np.log(chances[np.arange(len(labels)), labels]).mean())


def differences(function, tensors, h=1e-6):
    """The gradient of a function of the tensors by central differences."""
    parts = {name: part.copy() for name, part in tensors.present().items()}
    found = {name: np.zeros_like(part) for name, part in parts.items()}
    for name, part in parts.items():
        for index in np.ndindex(part.shape):
            original, sides = part[index], []
            for sign in (1, -1):
                part[index] = original + sign * h
                sides.append(function(tensors._replace(**parts)))
            part[index] = original
            found[name][index] = (sides[0] - sides[1]) / (2 * h)
    return tensors._replace(**found)


def training(problem):
    return problem.pairs[problem.train], problem.labels[problem.train]


def adam(net, problem, rate, steps, penalty="l2^2", beta=1e-6, **more):
    """A run of Adam; `until` is a test accuracy, `per_decade` the records of a decade."""
    until, dense = more.pop("until", None), more.pop("per_decade", 40)
    stop = Steps(steps) if until is None else [Steps(steps), Accuracy(test=until)]
    method = Adam(rate, decoupled=more.pop("decoupled", False))
    given = {
        "record": LogSpaced(dense),
        "penalty": beta * PENALTIES[penalty] if beta else None,
    } | more
    return train(net, problem, method, stop=stop, **given)


@functools.cache
def value_and_slope(net):
    return jax.jit(jax.value_and_grad(TokenLoss(net).value, argnums=1))


@functools.cache
def drawing(batches):
    return jax.jit(batches.draw)


def gradient(net, problem, tensors, steps=(0,), batch=None, seed=0):
    """The compiled loss and its gradient in float64, after each number of `steps` taken."""
    task, batches = TokenTask(net, problem), Batches(batch, problem.samples)
    both, draw, found = value_and_slope(net), drawing(batches), []
    with double_precision():
        start = jax.tree.map(jnp.asarray, tensors)
        for taken in steps:
            data, share = task.full_data(), None
            if batch is not None:
                rows, share, _ = draw(taken, batches.start(seed, taken))
                rows = np.asarray(rows)
                data = jax.tree.map(lambda part, rows=rows: np.asarray(part)[rows], task.data)
            found.append(both(data, start, share))
    return [
        (float(value), Tensors(*(None if x is None else np.asarray(x) for x in slope)))
        for value, slope in found
    ]


def same(ours, theirs, **tolerance):
    assert ours.present().keys() == theirs.present().keys()
    for name, part in ours.present().items():
        np.testing.assert_allclose(part, getattr(theirs, name), err_msg=name, **tolerance)


@NETS
def test_the_logits_are_the_printed_formula(net):
    tensors = net.start(PROBLEM)
    slow = [slow_logits(net, tensors, a, b) for a, b in PROBLEM.pairs]
    logits = net.logits(tensors, PROBLEM.pairs)
    np.testing.assert_allclose(logits, slow, rtol=1e-12, atol=1e-14)
    mirrored = logits.reshape(7, 7, 7).swapaxes(0, 1).reshape(49, 7)
    assert np.allclose(mirrored, logits) == net.symmetric == (net.variant == "source")


def test_the_start_of_the_source_is_pytorch_s():
    start = TokenMLP(64, 400, seed=1).start(modular_arithmetic(97, operation="+"))
    assert start.partner is None
    assert np.std(start.embedding) == pytest.approx(1, rel=0.03)
    assert np.mean(np.abs(start.embedding) > 2) == pytest.approx(0.0455, abs=0.01)  # normal
    for part, inputs in ((start.inner, 64), (start.inner_bias, 64), (start.outer, 400),
                         (start.outer_bias, 400)):  # fmt: skip
        assert 0.95 / math.sqrt(inputs) < np.abs(part).max() <= 1 / math.sqrt(inputs)
        assert np.std(part) == pytest.approx(1 / math.sqrt(3 * inputs), rel=0.1)  # uniform


def test_the_start_of_the_code():
    start = TokenMLP(64, 100, variant="code", seed=1).start(modular_arithmetic(97, operation="+"))
    assert start.inner_bias is None
    assert start.outer_bias is None
    for part in (start.embedding, start.partner):
        assert 0.99 / math.sqrt(97) < np.abs(part).max() <= 1 / math.sqrt(97)
    assert not np.allclose(start.embedding, start.partner)
    assert np.std(start.inner) == pytest.approx(0.1, rel=0.05)
    assert np.std(start.outer) == pytest.approx(1 / math.sqrt(97), rel=0.05)


@NETS
def test_the_scale_multiplies_only_the_embeddings(net):
    plain = net.start(PROBLEM)
    large = dataclasses.replace(net, scale=3.0).start(PROBLEM)
    for name, part in plain.present().items():
        factor = 3 if name in ("embedding", "partner") else 1
        np.testing.assert_array_equal(getattr(large, name), factor * part)


@NETS
@pytest.mark.parametrize("operation", ["+", "-"])
def test_gradients_follow_finite_differences(net, operation):
    problem = modular_arithmetic(5, operation=operation, fraction=0.6, seed=1)
    tensors = net.start(problem)
    [(value, slope)] = gradient(net, problem, tensors)
    pairs, labels = training(problem)
    assert (pairs[:, 0] == pairs[:, 1]).any()  # a squared row of the embedding is among them
    assert value == pytest.approx(slow_loss(net, tensors, pairs, labels), rel=1e-12)
    slopes = differences(lambda t: slow_loss(net, t, pairs, labels), tensors)
    same(slope, slopes, rtol=1e-6, atol=1e-9)
    fewer = differences(lambda t: slow_loss(net, t, pairs[1:], labels[1:]), tensors)
    assert not np.allclose(slope.embedding, fewer.embedding, rtol=1e-3)  # the control


def test_only_a_symmetric_net_sees_mirrored_pairs_as_one():
    pairs, _, shares = distinct(SOURCE, PROBLEM)
    assert len(pairs) == len({(min(p), max(p)) for p in training(PROBLEM)[0].tolist()})
    assert shares.sum() == pytest.approx(1, rel=1e-14)
    assert len(distinct(CODE, PROBLEM)[0]) == PROBLEM.samples > len(pairs)
    # mirrored pairs with other labels stay apart
    minus = modular_arithmetic(7, operation="-", fraction=0.6, seed=1)
    assert len(distinct(SOURCE, minus)[0]) > len(pairs)


def test_the_incidence_lists_every_pair_at_both_tokens():
    pairs = np.array([[0, 1], [2, 2], [1, 3], [1, 0]])
    positions, others = incidence(pairs, 5)
    found = [{(int(k), int(o)) for k, o in zip(row.flat, other.flat, strict=True) if o < 5}
             for row, other in zip(positions.T, others.T, strict=True)]  # fmt: skip
    assert found == [{(0, 1), (3, 1)}, {(0, 0), (2, 3), (3, 0)}, {(1, 2)}, {(2, 1)}, set()]
    assert (others[..., 2] == 2).sum() == 2


def test_a_token_with_many_pairs_has_them_in_several_blocks():
    pairs = np.column_stack([np.zeros(100, int), np.arange(100)])
    positions, others = incidence(pairs, 100)
    assert positions.shape == others.shape == (17, 6, 100)  # (0, 0) counts twice
    assert sorted(positions[..., 0][others[..., 0] < 100]) == sorted([0, *range(100)])


def test_batches_visit_every_pair_once_per_epoch_in_a_new_order():
    """Epochs of batches of 12, 12 and 5: their weighted mean is the full loss."""
    tensors = SOURCE.start(PROBLEM)
    assert PROBLEM.samples == 29
    [(whole, slope)] = gradient(SOURCE, PROBLEM, tensors)
    found = gradient(SOURCE, PROBLEM, tensors, range(6), batch=12, seed=5)
    for epoch in (found[:3], found[3:]):
        values, slopes = zip(*epoch, strict=True)
        assert np.average(values, weights=[12, 12, 5]) == pytest.approx(whole, rel=1e-12)
        for number, part in enumerate(slope):
            if part is not None:
                parts = [one[number] for one in slopes]
                mean = np.average(parts, axis=0, weights=[12, 12, 5])
                np.testing.assert_allclose(mean, part, rtol=1e-9, atol=1e-13)
    assert not np.allclose([v for v, _ in found[:3]], [v for v, _ in found[3:]])
    [(other, _)] = gradient(SOURCE, PROBLEM, tensors, batch=12, seed=6)
    assert other != found[0][0]
    [(all_of_them, _)] = gradient(SOURCE, PROBLEM, tensors, batch=29)
    assert all_of_them == pytest.approx(whole, rel=1e-12)


def slow_penalty(name, tensors):
    """h by other means: the entries one by one, and roots of eigenvalues for the nuclear norm."""
    parts = tensors.present().values()
    if name == "l1":
        return math.fsum(abs(x) for part in parts for x in part.ravel().tolist())
    squares = [math.fsum(x * x for x in part.ravel().tolist()) for part in parts]
    if name == "nuclear":
        matrices = [part.reshape(len(part), -1) for part in parts]
        return sum(np.sqrt(np.linalg.eigvalsh(m.T @ m).clip(0)).sum() for m in matrices)
    return {"l2^2": sum(squares), "l2": sum(map(math.sqrt, squares)),
            "l2 over all": math.sqrt(sum(squares))}[name]  # fmt: skip


@pytest.mark.parametrize("name", PENALTIES)
def test_penalties_and_their_gradients(name):
    tensors = SOURCE.start(PROBLEM)
    with double_precision():
        value = float(PENALTIES[name].value(tensors))
        slope = jax.tree.map(np.asarray, PENALTIES[name].subgradient(tensors))
    assert value == pytest.approx(slow_penalty(name, tensors), rel=1e-9)
    slopes = differences(lambda t: slow_penalty(name, t), tensors)
    same(slope, slopes, rtol=1e-5, atol=1e-7)
    other = "l1" if name != "l1" else "l2"  # the control
    assert value != pytest.approx(slow_penalty(other, tensors), rel=1e-3)


def numpy_adam(net, problem, steps, penalty, beta, rate, decoupled=False):
    """Adam as in the paper of Kingma and Ba, with gradients by finite differences."""
    pairs, labels = training(problem)
    tensors = net.start(problem)
    flat = {name: [part.copy(), np.zeros_like(part), np.zeros_like(part)]
            for name, part in tensors.present().items()}  # fmt: skip
    for k in range(1, steps + 1):
        now = tensors._replace(**{name: state[0] for name, state in flat.items()})
        slope = differences(lambda t: slow_loss(net, t, pairs, labels), now).present()
        pull = differences(lambda t: slow_penalty(penalty, t), now).present()
        for name, state in flat.items():
            g = slope[name] + (0 if decoupled else beta * pull[name])
            state[1] = 0.9 * state[1] + 0.1 * g
            state[2] = 0.999 * state[2] + 0.001 * g**2
            ahead = (state[1] / (1 - 0.9**k)) / (np.sqrt(state[2] / (1 - 0.999**k)) + 1e-8)
            state[0] = state[0] - rate * ahead - (rate * beta * pull[name] if decoupled else 0)
    return tensors._replace(**{name: state[0] for name, state in flat.items()})


@pytest.mark.parametrize(
    ("net", "penalty", "decoupled"),
    [(SOURCE, "l2^2", False), (SOURCE, "l1", True), (CODE, "l2", False), (CODE, "nuclear", False)],
)
def test_several_steps_are_those_of_numpy(net, penalty, decoupled):
    ours = adam(net, LITTLE, 0.01, 4, penalty, 0.05, decoupled=decoupled).parameters
    theirs = numpy_adam(net, LITTLE, 4, penalty, 0.05, 0.01, decoupled)
    same(ours, theirs, rtol=2e-5, atol=2e-6)
    other = numpy_adam(net, LITTLE, 4, penalty, 0.05, 0.01, not decoupled)
    gap = np.abs(ours.inner - other.inner).max()
    assert gap > 1e-4  # the control: coupled and decoupled decay are not the same


def test_the_net_s_precision_is_that_of_training():
    single, double = (adam(net, PROBLEM, 1e-3, 50, beta=1e-3) for net in (SINGLE, SOURCE))
    assert single.parameters.inner.dtype == np.float32
    assert double.parameters.inner.dtype == np.float64
    assert {leaf.dtype for leaf in single.memory} == {np.dtype(np.float32)}
    same(single.parameters, double.parameters, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"batch": 12}], ids=["all pairs", "batches"])
def test_a_resumed_run_is_the_uninterrupted_one_to_the_bit(options):
    """29 pairs in batches of 12 make epochs of 3 steps: 13 steps end within an epoch."""
    arguments = {"penalty": "l1", "beta": 1e-3, **options}
    record = At(steps=[3, 13, 20])
    whole = adam(SINGLE, PROBLEM, 0.01, 30, record=record, **arguments)
    early = adam(SINGLE, PROBLEM, 0.01, 13, record=At(steps=[3]), **arguments)

    def rest(path):
        return adam(SINGLE, PROBLEM, 0.01, 30, record=record, resume=path, **arguments)

    late = rest(early)
    assert late.steps == whole.steps == 30
    assert late.dataset.identical(whole.dataset)
    same(late.parameters, whole.parameters, rtol=0)
    for ours, theirs in zip(late.memory, whole.memory, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    forgot = dataclasses.replace(early, memory=tuple(0 * leaf for leaf in early.memory))
    assert not rest(forgot).dataset.equals(whole.dataset)


def test_plain_descent_takes_the_gradient_s_steps():
    """Second route: the same steps in NumPy, with gradients by finite differences."""
    pairs, labels = training(LITTLE)
    tensors = CODE.start(LITTLE)
    for _ in range(3):
        slope = differences(lambda t: slow_loss(CODE, t, pairs, labels), tensors).present()
        moved = {name: part - 0.5 * slope[name] for name, part in tensors.present().items()}
        tensors = tensors._replace(**moved)
    path = train(CODE, LITTLE, GradientDescent(0.5), stop=Steps(3))
    same(path.parameters, tensors, rtol=1e-6, atol=1e-8)


def test_proximal_steps_under_l1_end_with_zeros_and_subgradients_do_not():
    sparse = train(SOURCE, PROBLEM, Proximal(0.1), penalty=0.03 * L1(), stop=Steps(200))
    smooth = adam(SOURCE, PROBLEM, 0.01, 200, "l1", 0.03)
    zeros = [np.mean(path.parameters.embedding == 0) for path in (sparse, smooth)]
    assert zeros[0] > 0.1
    assert zeros[1] == 0


@pytest.mark.parametrize(
    "data", [all_pairs, functools.partial(distinct_pairs, SOURCE)], ids=["pairs", "distinct"]
)
def test_the_logarithm_of_the_loss_holds_where_the_loss_is_zero(data):
    tensors, loss = SOURCE.start(PROBLEM), TokenLoss(SOURCE)
    both = jax.jit(lambda rows, at: (loss.value(rows, at), loss.log_value(rows, at)))
    # outputs on one class only: those of other labels lose by 1e4, those of it win by it
    one = dataclasses.replace(PROBLEM, labels=np.zeros_like(PROBLEM.labels))
    far = tensors._replace(outer_bias=np.array([1e4] + 6 * [0.0]), outer=0 * tensors.outer)
    with double_precision():
        value, near = both(data(PROBLEM, float), tensors)
        zero, below = both(data(one, float), far)
    assert float(near) == pytest.approx(math.log(value), rel=1e-12)
    assert float(zero) == 0
    assert float(below) == pytest.approx(math.log(6) - 1e4, rel=1e-12)


def test_a_normalized_step_is_the_gradient_over_the_loss():
    path = train(SOURCE, PROBLEM, NormalizedDescent(0.02), stop=Steps(1))
    tensors = SOURCE.start(PROBLEM)
    [(value, slope)] = gradient(SOURCE, PROBLEM, tensors)
    assert path.t == pytest.approx(0.02 / value, rel=1e-12)
    for old, new, part in zip(tensors, path.parameters, slope, strict=True):
        if old is not None:
            np.testing.assert_allclose(new, old - 0.02 * part / value, rtol=1e-9, atol=1e-12)


@dataclasses.dataclass(frozen=True)
class Wrapped:
    """The MLP behind a dict, whose gradient is left to JAX."""

    net: TokenMLP

    @property
    def symmetric(self):
        return self.net.symmetric

    def describe(self):
        return {"model": "Wrapped"}

    def start(self, problem):
        return self.net.start(problem).present()

    def logits(self, parameters, pairs):
        tensors = Tensors(*(parameters.get(name) for name in Tensors._fields))
        return self.net.logits(tensors, pairs)


@pytest.mark.parametrize(("net", "penalty"), [(SOURCE, "nuclear"), (CODE, "l2")])
def test_any_net_is_trained_by_autodiff(net, penalty):
    ours, theirs = (adam(n, PROBLEM, 0.01, 20, penalty, 0.01) for n in (net, Wrapped(net)))
    assert isinstance(theirs.parameters, dict)
    for name, part in ours.parameters.present().items():
        np.testing.assert_allclose(theirs.parameters[name], part, rtol=1e-9, atol=1e-12)
    for name in ("loss", "penalty", "norm_nuclear", "novel_accuracy"):
        np.testing.assert_allclose(theirs.dataset[name], ours.dataset[name], rtol=1e-9)
    assert float(ours.dataset.loss[-1]) < 0.99 * float(ours.dataset.loss[0])  # they moved


@dataclasses.dataclass
class Odd:
    """A net of a user's own that is wrong in one way; it cannot be hashed, as it is not frozen."""

    start_: object = None
    logits_: object = None
    symmetric: bool = False

    def describe(self):
        return {"model": "Odd"}

    def start(self, problem):
        return {"table": np.zeros((7, 7))} if self.start_ is None else self.start_

    def logits(self, parameters, pairs):
        if self.logits_ is not None:
            return self.logits_(parameters, pairs)
        return parameters["table"][pairs[:, 0]] + parameters["table"][pairs[:, 1]]


def test_a_net_that_cannot_be_hashed_is_trained_and_wrong_ones_are_refused():
    path = train(Odd(), PROBLEM, Adam(0.1), stop=Steps(30))
    assert path.log_loss < float(path.dataset.log_loss[0]) - 0.1
    assert np.isnan(path.dataset.turn).all()  # it starts at zero, which has no direction
    for net, message in [
        (Odd(start_={"table": np.zeros((7, 7), int)}), "floating-point numbers, got int64"),
        (Odd(start_={}), "has no parameters"),
        (Odd(logits_=lambda p, pairs: p["table"]), r"column per class, \(29, 7\), got \(7, 7\)"),
        (Odd(logits_=lambda p, pairs: np.sort(p["table"])), "logits must work on JAX arrays"),
    ]:
        with pytest.raises(ValueError, match=message):
            train(net, PROBLEM, Adam(0.1), stop=Steps(3))


@pytest.fixture(scope="module")
def trained():
    problem = modular_arithmetic(11, operation="+", fraction=0.6, seed=0)
    net = TokenMLP(16, 32, seed=0)
    calls = []
    path = adam(net, problem, 0.01, 400, progress=lambda share, text: calls.append(share))
    return problem, net, path, calls


def test_a_symmetric_net_gets_training_and_with_it_the_twins(trained):
    problem, net, path, calls = trained
    last = path.dataset.isel(time=-1)
    right = net.logits(path.parameters, problem.pairs).argmax(axis=1) == problem.labels
    assert float(last.train_accuracy) == right[problem.train].mean() == 1
    assert float(last.twin_accuracy) == right[problem.twins].mean() == 1
    assert float(last.test_accuracy) == right[problem.test].mean() < 1
    assert float(last.novel_accuracy) == right[problem.novel].mean() < float(last.test_accuracy)
    assert calls[-1] == 1
    assert calls == sorted(calls)


def test_a_net_with_two_embeddings_has_no_free_twins(trained):
    problem, *_ = trained
    path = adam(TokenMLP(16, 32, "code"), problem, 0.01, 400, "l2")
    last = path.dataset.isel(time=-1)
    assert float(last.train_accuracy) == 1
    assert float(last.twin_accuracy) < 0.9


def test_the_records_of_a_run(trained):
    problem, net, path, _ = trained
    dataset = path.dataset
    assert path.outcome.kind is Kind.SOLVED
    assert int(dataset.step[0]) == 0
    assert int(dataset.step[-1]) == path.steps == 400
    np.testing.assert_allclose(dataset.t, 0.01 * dataset.step, rtol=1e-14)
    tensors = Tensors(*(None if x is None else np.float64(x) for x in path.parameters))
    slow = slow_loss(net, tensors, *training(problem))
    assert float(dataset.loss[-1]) == pytest.approx(slow, rel=1e-9)
    size = slow_penalty("l2^2", tensors)
    assert float(dataset.penalty[-1]) == pytest.approx(1e-6 * size, rel=1e-12)
    assert float(dataset.norm_l2[-1]) == pytest.approx(math.sqrt(size), rel=1e-12)
    assert float(dataset.norm_l1[-1]) == pytest.approx(slow_penalty("l1", tensors), rel=1e-12)
    nuclear = slow_penalty("nuclear", tensors)
    assert float(dataset.norm_nuclear[-1]) == pytest.approx(nuclear, rel=1e-6)
    assert float(dataset.parameter_norm[-1]) == float(dataset.norm_l2[-1])
    np.testing.assert_allclose(dataset.objective, dataset.loss + dataset.penalty)
    for name, variable in dataset.variables.items():
        assert variable.attrs["long_name"], name
        assert variable.attrs["units"], name
    described = json.loads(dataset.attrs["description"])
    assert described["problem"] == problem.recipe
    assert described["penalty"] == {"is": "L2", "squared": True, "times": 1e-6}
    assert described["model"]["variant"] == "source"


def test_equal_seeds_give_equal_runs_and_an_accuracy_ends_them(trained):
    problem, net, path, _ = trained
    half = float(path.dataset.test_accuracy.max()) / 2
    first = int(np.argmax(path.dataset.test_accuracy.values >= half))
    early = adam(net, problem, 0.01, 400, until=half)
    assert early.steps == int(path.dataset.step[first]) < 400
    assert early.dataset.equals(path.dataset.isel(time=slice(0, first + 1)))
    late = adam(net, problem, 0.01, 20, until=1.0)
    assert late.outcome.kind is Kind.BUDGET_SPENT
    assert "test accuracy" in late.outcome.sentence


def test_a_run_that_diverges_keeps_what_it_recorded():
    path = adam(SINGLE, PROBLEM, 1e30, 50)
    assert path.outcome.kind is Kind.DIVERGED
    assert "take a smaller learning rate" in path.outcome.sentence
    assert path.dataset.sizes["time"] >= 1
    assert all(np.isfinite(part).all() for part in path.parameters.present().values())


def test_a_problem_without_twins_has_no_accuracy_on_them():
    problem = modular_arithmetic(7, operation="+", fraction=0.6, seed=1, ordered=False)
    path = adam(SOURCE, problem, 0.01, 3)
    assert np.isnan(path.dataset.twin_accuracy).all()
    np.testing.assert_array_equal(path.dataset.novel_accuracy, path.dataset.test_accuracy)


LINE = Regression(np.eye(2), np.ones(2))


def run(net, problem, **more):
    return train(net, problem, Adam(0.01), **({"stop": Steps(5)} | more))


test_wrong_input_is_refused_in_one_sentence = refusals(
    (lambda: TokenMLP(0), "embedding must be at least 1, got 0"),
    (lambda: TokenMLP(width=0), "width must be at least 1"),
    (lambda: TokenMLP(scale=0), "scale must be > 0"),
    (lambda: TokenMLP(variant="paper"), "unknown variant 'paper'"),
    (lambda: TokenMLP(10, variant="code"), "must be a square number, got 10; take 9"),
    (lambda: TokenMLP(precision="half"), "unknown precision 'half'"),
    (lambda: run(3, PROBLEM), "must be a net on token pairs, got int; use TokenMLP"),
    (lambda: run(TokenMLP, PROBLEM), "must be a net on token pairs, got"),
    (lambda: run(SOURCE, TokenPairs), "TokenMLP answers pairs of tokens, got the class Token"),
    (lambda: run(SOURCE, LINE), "TokenMLP answers pairs of tokens, got Regression; use modul"),
    (lambda: run(SOURCE, PROBLEM, batch=0), "batch must be at least 1"),
    (lambda: run(SOURCE, PROBLEM, batch=30), "batch must be at most the 29 samples"),
    (lambda: run(SOURCE, PROBLEM, record=At(steps=[9])), "stay within the 5 steps"),
    (lambda: run(SOURCE, PROBLEM, penalty="l1"), "a number times a regularizer, .* got 'l1'"),
    (lambda: run(SOURCE, PROBLEM, stop=Below("margin", 1)), "uses margin, .* there are"),
)
