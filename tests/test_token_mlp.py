"""The MLP of N on token pairs: its formula, gradients, penalties, and Adam against NumPy."""

import dataclasses
import json
import math

import numpy as np
import pytest

from tacit.flows.token_adam import TokenAdam
from tacit.flows.token_loss import distinct, incidence, training_loss
from tacit.flows.token_measures import norms
from tacit.flows.token_steps import PENALTIES, begin
from tacit.models.token_mlp import Tensors, TokenMLP
from tacit.precision import double_precision
from tacit.problems.arithmetic import TokenPairs
from tacit.problems.operations import modular_arithmetic
from tacit.records import Kind

pytestmark = pytest.mark.usefixtures("kept_programs")

PROBLEM = modular_arithmetic(7, operation="+", fraction=0.6, seed=1)
LITTLE = modular_arithmetic(5, operation="+", fraction=0.6, seed=1)
SOURCE = TokenMLP(embedding=4, width=5, seed=3)
CODE = TokenMLP(embedding=4, width=5, variant="code", seed=3)
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
        for place in np.ndindex(part.shape):
            kept, sides = part[place], []
            for sign in (1, -1):
                part[place] = kept + sign * h
                sides.append(function(tensors._replace(**parts)))
            part[place] = kept
            found[name][place] = (sides[0] - sides[1]) / (2 * h)
    return tensors._replace(**found)


def training(problem):
    return problem.pairs[problem.train], problem.labels[problem.train]


def gradient(net, problem, tensors, steps=(0,), **options):
    """The compiled loss and its gradient in float64, after each number of `steps` taken."""
    import jax

    with double_precision():
        loss = jax.jit(jax.value_and_grad(training_loss(net, problem, np.float64, **options)))
        found = [loss(begin(tensors, np.float64)[0], taken) for taken in steps]
    return [(float(value), Tensors(*(None if x is None else np.asarray(x) for x in slope)))
            for value, slope in found]  # fmt: skip


def same(ours, theirs, **tolerance):
    assert ours.present().keys() == theirs.present().keys()
    for name, part in ours.present().items():
        np.testing.assert_allclose(part, getattr(theirs, name), err_msg=name, **tolerance)


# ---- the net ----


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
    large = TokenMLP(4, 5, net.variant, scale=3.0, seed=3).start(PROBLEM)
    for name, part in plain.present().items():
        factor = 3 if name in ("embedding", "partner") else 1
        np.testing.assert_array_equal(getattr(large, name), factor * part)


# ---- loss and gradients ----


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
    places, others = incidence(pairs, 5)
    found = [{(int(k), int(o)) for k, o in zip(row.flat, other.flat, strict=True) if o < 5}
             for row, other in zip(places.T, others.T, strict=True)]  # fmt: skip
    assert found == [{(0, 1), (3, 1)}, {(0, 0), (2, 3), (3, 0)}, {(1, 2)}, {(2, 1)}, set()]
    assert (others[..., 2] == 2).sum() == 2


def test_a_token_with_many_pairs_has_them_in_several_blocks():
    pairs = np.column_stack([np.zeros(100, int), np.arange(100)])
    places, others = incidence(pairs, 100)
    assert places.shape == others.shape == (3, 34, 100)  # (0, 0) counts twice
    assert sorted(places[..., 0][others[..., 0] < 100]) == sorted([0, *range(100)])


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
    assert all_of_them == whole


# ---- penalties ----


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
        penalty, parts = PENALTIES[name], begin(tensors, np.float64)[0].present()
        value = float(penalty.value(parts))
        slope = {k: np.asarray(x) for k, x in penalty.subgradient(parts).items()}
    assert value == pytest.approx(slow_penalty(name, tensors), rel=1e-9)
    slopes = differences(lambda t: slow_penalty(name, t), tensors).present()
    assert slope.keys() == slopes.keys()
    for key, part in slope.items():
        np.testing.assert_allclose(part, slopes[key], rtol=1e-5, atol=1e-7, err_msg=key)
    other = "l1" if name != "l1" else "l2"  # the control
    assert value != pytest.approx(slow_penalty(other, tensors), rel=1e-3)


def test_corners_of_the_penalties_have_the_zero_subgradient():
    with double_precision():
        zero = begin(Tensors(np.zeros((3, 2)), None, np.zeros((2, 2)), np.zeros(2), None, None),
                     np.float64)[0].present()  # fmt: skip
        for name in PENALTIES:
            slope = PENALTIES[name].subgradient(zero)
            assert all(not np.asarray(part).any() for part in slope.values()), name


def test_the_nuclear_subgradient_leaves_out_the_null_space():
    matrix = np.outer([3.0, 4.0, 0.0], [0.6, 0.8])
    with double_precision():
        slope = PENALTIES["nuclear"].subgradient(begin(Tensors(*[matrix] * 6), float)[0]
                                                      .present())  # fmt: skip
    expected = np.outer([0.6, 0.8, 0.0], [0.6, 0.8])
    np.testing.assert_allclose(slope["embedding"], expected, atol=1e-12)


def test_norms_of_known_tensors():
    found = norms({"a": np.diag([3.0, -4.0]), "b": np.array([0.0, 12.0])})
    assert found == pytest.approx({"l1": 19.0, "l2": 13.0, "nuclear": 19.0}, rel=1e-14)


# ---- Adam ----


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
    adam = TokenAdam(0.01, 4, penalty, 0.05, decoupled=decoupled, precision="double")
    ours = adam.run(net, LITTLE).tensors
    theirs = numpy_adam(net, LITTLE, 4, penalty, 0.05, 0.01, decoupled)
    same(ours, theirs, rtol=2e-5, atol=2e-6)
    other = numpy_adam(net, LITTLE, 4, penalty, 0.05, 0.01, not decoupled)
    gap = np.abs(ours.inner - other.inner).max()
    assert gap > 1e-4  # the control: coupled and decoupled decay are not the same


def test_single_precision_takes_the_same_first_steps():
    single, double = (TokenAdam(1e-3, 50, beta=1e-3, precision=name).run(SOURCE, PROBLEM).tensors
                      for name in ("single", "double"))  # fmt: skip
    assert single.inner.dtype == np.float32
    same(single, double, rtol=1e-3, atol=1e-5)


def test_the_number_of_compiled_spans_does_not_matter():
    adam = TokenAdam(0.01, 30, precision="double", batch=12)
    with double_precision():
        advance = adam.compiled(SOURCE, PROBLEM)
        whole = advance(begin(SOURCE.start(PROBLEM), np.float64), 30)
    same(adam.run(SOURCE, PROBLEM).tensors, whole[0], rtol=1e-10, atol=1e-12)
    assert int(whole[3]) == 30


@pytest.mark.parametrize("options", [{}, {"batch": 12}], ids=["all pairs", "batches"])
def test_a_resumed_run_is_the_uninterrupted_one_to_the_bit(options):
    """29 pairs in batches of 12 make epochs of 3 steps: 13 steps end within an epoch."""
    asked = {"step": 0.01, "penalty": "l1", "beta": 1e-3, **options}
    whole = TokenAdam(steps=30, record=[3, 13, 20], **asked).run(SOURCE, PROBLEM)
    early = TokenAdam(steps=13, record=[3], **asked).run(SOURCE, PROBLEM)

    def rest(path):
        adam = TokenAdam(steps=30, record=[3, 13, 20], **asked)
        return adam.run(SOURCE, PROBLEM, resume=path)

    late = rest(early)
    assert late.steps == whole.steps == 30
    assert late.dataset.identical(whole.dataset)
    for ours, theirs in zip((late.tensors, *late.moments), (whole.tensors, *whole.moments),
                            strict=True):  # fmt: skip
        assert ours.inner.dtype == np.float32
        same(ours, theirs, rtol=0)
    zeros = tuple(early.tensors._replace(**{k: 0 * x for k, x in early.tensors.present().items()})
                  for _ in range(2))  # fmt: skip
    forgot = {"steps": 12} if options else {"moments": zeros}
    assert not rest(dataclasses.replace(early, **forgot)).dataset.equals(whole.dataset)


def test_only_the_same_run_can_be_resumed():
    early = TokenAdam(0.01, 5).run(SOURCE, PROBLEM)
    other = TokenPairs(7, 7, PROBLEM.pairs, PROBLEM.labels, ~PROBLEM.train, PROBLEM.description,
                       PROBLEM.recipe)  # fmt: skip
    for adam, net, problem, message in [
        (TokenAdam(0.01, 5), SOURCE, PROBLEM, "taken 5 steps already, which steps=5 must exceed"),
        (TokenAdam(0.02, 9), SOURCE, PROBLEM, "same flow, but its step was 0.01 and now is 0.02"),
        (TokenAdam(0.01, 9), CODE, PROBLEM, "same model, but its variant was source and now is"),
        (TokenAdam(0.01, 9), SOURCE, other, "same problem, but its fingerprint was"),
    ]:
        with pytest.raises(ValueError, match=message):
            adam.run(net, problem, resume=early)
    with pytest.raises(ValueError, match="resume must be the path of an earlier run, got int"):
        TokenAdam(0.01, 9).run(SOURCE, PROBLEM, resume=3)


# ---- any net ----


@dataclasses.dataclass(frozen=True)
class Wrapped:
    """The MLP behind a dict, for which TokenAdam knows no gradient."""

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
    adam = TokenAdam(0.01, 20, penalty, 0.01, precision="double")
    ours, theirs = adam.run(net, PROBLEM), adam.run(Wrapped(net), PROBLEM)
    assert isinstance(theirs.tensors, dict)
    for name, part in ours.tensors.present().items():
        np.testing.assert_allclose(theirs.tensors[name], part, rtol=1e-9, atol=1e-12)
    for name in ("loss", "penalty", "norm_nuclear", "novel_accuracy"):
        np.testing.assert_allclose(theirs.dataset[name], ours.dataset[name], rtol=1e-9)
    assert float(ours.dataset.loss[-1]) < 0.99 * float(ours.dataset.loss[0])  # they moved


# ---- runs ----


@pytest.fixture(scope="module")
def trained():
    problem = modular_arithmetic(11, operation="+", fraction=0.6, seed=0)
    net = TokenMLP(16, 32, seed=0)
    calls = []
    path = TokenAdam(0.01, 400, beta=1e-6).run(
        net, problem, progress=lambda share, text: calls.append(share)
    )
    return problem, net, path, calls


def test_a_symmetric_net_gets_training_and_with_it_the_twins(trained):
    problem, net, path, calls = trained
    last = path.dataset.isel(time=-1)
    right = net.logits(path.tensors, problem.pairs).argmax(axis=1) == problem.labels
    assert float(last.train_accuracy) == right[problem.train].mean() == 1
    assert float(last.twin_accuracy) == right[problem.twins].mean() == 1
    assert float(last.test_accuracy) == right[problem.test].mean() < 1
    assert float(last.novel_accuracy) == right[problem.novel].mean() < float(last.test_accuracy)
    assert calls[-1] == 1
    assert calls == sorted(calls)


def test_a_net_with_two_embeddings_has_no_free_twins(trained):
    problem, *_ = trained
    path = TokenAdam(0.01, 400, "l2", 1e-6).run(TokenMLP(16, 32, "code"), problem)
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
    tensors = Tensors(*(None if x is None else np.float64(x) for x in path.tensors))
    slow = slow_loss(net, tensors, *training(problem))
    assert float(dataset.loss[-1]) == pytest.approx(slow, rel=1e-9)
    size = slow_penalty("l2^2", tensors)
    assert float(dataset.penalty[-1]) == pytest.approx(size, rel=1e-12)
    assert float(dataset.norm_l2[-1]) == pytest.approx(math.sqrt(size), rel=1e-12)
    assert float(dataset.norm_l1[-1]) == pytest.approx(slow_penalty("l1", tensors), rel=1e-12)
    nuclear = slow_penalty("nuclear", tensors)
    assert float(dataset.norm_nuclear[-1]) == pytest.approx(nuclear, rel=1e-6)
    np.testing.assert_allclose(dataset.objective, dataset.loss + 1e-6 * dataset.penalty)
    for name, variable in dataset.variables.items():
        assert variable.attrs["long_name"], name
        assert variable.attrs["units"], name
    described = json.loads(dataset.attrs["description"])
    assert described["problem"]["recipe"] == problem.recipe
    assert described["flow"]["penalty"] == "l2^2"
    assert described["model"]["variant"] == "source"


@pytest.mark.parametrize(("name", "beta"), [("l1", 0.05), ("nuclear", 0.05), ("nuclear", 0.0)])
def test_a_strong_penalty_shrinks_what_it_measures(name, beta):
    path = TokenAdam(0.01, 200, name, beta, points_per_decade=2).run(SOURCE, PROBLEM)
    shrunk = float(path.dataset.penalty[-1]) < 0.8 * float(path.dataset.penalty[0])
    assert shrunk == (beta > 0)


def test_equal_seeds_give_equal_runs_and_until_ends_them(trained):
    problem, net, path, _ = trained
    half = float(path.dataset.test_accuracy.max()) / 2
    first = int(np.argmax(path.dataset.test_accuracy.values >= half))
    early = TokenAdam(0.01, 400, beta=1e-6, until=half).run(net, problem)
    assert early.steps == int(path.dataset.step[first]) < 400
    assert early.dataset.equals(path.dataset.isel(time=slice(0, first + 1)))
    late = TokenAdam(0.01, 20, beta=1e-6, until=1.0).run(net, problem)
    assert late.outcome.kind is Kind.BUDGET_SPENT
    assert "raise steps" in late.outcome.sentence


def test_asked_steps_are_recorded():
    path = TokenAdam(0.01, 30, record=[3, 17]).run(SOURCE, PROBLEM)
    assert path.dataset.step.values.tolist() == [0, 3, 17, 30]


def test_a_run_that_diverges_keeps_what_it_recorded():
    path = TokenAdam(1e30, 50).run(SOURCE, PROBLEM)
    assert path.outcome.kind is Kind.DIVERGED
    assert "take a smaller step" in path.outcome.sentence
    assert path.dataset.sizes["time"] >= 1
    assert all(np.isfinite(part).all() for part in path.tensors.present().values())


def test_a_problem_without_twins_has_no_accuracy_on_them():
    problem = modular_arithmetic(7, operation="+", fraction=0.6, seed=1, ordered=False)
    path = TokenAdam(0.01, 3).run(SOURCE, problem)
    assert np.isnan(path.dataset.twin_accuracy).all()
    np.testing.assert_array_equal(path.dataset.novel_accuracy, path.dataset.test_accuracy)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TokenMLP(0), "embedding must be at least 1, got 0"),
        (lambda: TokenMLP(width=0), "width must be at least 1"),
        (lambda: TokenMLP(scale=0), "scale must be > 0"),
        (lambda: TokenMLP(variant="paper"), "unknown variant 'paper'"),
        (lambda: TokenMLP(10, variant="code"), "must be a square number, got 10; take 9"),
        (lambda: TokenAdam(0), "step must be > 0"),
        (lambda: TokenAdam(steps=0), "steps must be at least 1"),
        (lambda: TokenAdam(penalty="l3"), "unknown penalty 'l3'"),
        (lambda: TokenAdam(beta=-1e-6), "beta must be >= 0, got -1e-06"),
        (lambda: TokenAdam(beta=math.nan), "beta must be a finite number >= 0"),
        (lambda: TokenAdam(batch=0), "batch must be at least 1"),
        (lambda: TokenAdam(until=1.5), "until must be an accuracy of at most 1, got 1.5"),
        (lambda: TokenAdam(1.0, beta=0.6, decoupled=True), r"step \* beta below 1/2, got 0.6"),
        (lambda: TokenAdam(steps=5, record=[9]), "record must stay within steps=5, got 9"),
        (lambda: TokenAdam().run(3, PROBLEM), "must be a net on token pairs, got int"),
        (lambda: TokenAdam().run(SOURCE, TokenPairs), "must be pairs of tokens, got type"),
    ],
)
def test_wrong_input_is_refused_in_one_sentence(build, message):
    with pytest.raises(ValueError, match=message):
        build()
