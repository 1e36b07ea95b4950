"""Wrong input to the penalized methods and the problems of source N: one clear sentence each."""

import jax.numpy as jnp
import numpy as np
import pytest

from penchant import L1, L2, Adam, GradientDescent, Regression, Steps, train
from penchant.lab import Kind
from penchant.methods import Proximal
from penchant.models import LinearMatrix, LinearPredictor
from penchant.problems import (
    coherent_completion,
    gaussian_sensing,
    low_rank_completion,
    modular_arithmetic,
    permutation_group,
    sparse_recovery,
)
from penchant.problems.completions import coherence
from penchant.record import At
from penchant.regularizers import Blocks, Custom, Nuclear
from penchant.stop import Below, Loss
from refusals import refused

NAN = float("nan")
PROBLEM = sparse_recovery(10, 20, sparsity=2, seed=0)
TOP = float(np.linalg.eigvalsh(PROBLEM.X.T @ PROBLEM.X)[-1])
METHODS = (GradientDescent, Proximal, Adam)
KINKS = {"subgradient": True}  # a penalty with kinks is taken


def run(method, steps, penalty, problem=PROBLEM, model=None, **more):
    model = model or LinearPredictor(1e-6)
    return train(model, problem, method, penalty=penalty, stop=Steps(steps), **more)


def squares(theta):
    return (theta * theta).sum()


# ---- step and beta ----


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [0, -1.0, NAN, np.inf, "fast", None, True])
def test_a_learning_rate_is_a_positive_number(method, bad):
    refused(lambda: method(bad), f"^{method.__name__}: learning_rate must be ")


@pytest.mark.parametrize("bad", [-1e-9, NAN, np.inf, "strong", None])
def test_weights_and_decays_are_numbers_of_at_least_zero(bad):
    refused(lambda: bad * L1(), "^Penalty: weight must be ")
    for method in METHODS:
        sentence = f"^{method.__name__}: weight_decay must be "
        refused(lambda m=method: m(0.1, weight_decay=bad), sentence)


@pytest.mark.parametrize(
    ("method", "penalty", "settings", "bound"),
    [
        (GradientDescent, 1e-3 * L1(), KINKS, 2 / TOP),
        (GradientDescent, 3.0 * L2(), {}, 2 / (TOP + 6)),
        (GradientDescent, 1.0 * L2() + 2.0 * L2(), {}, 2 / (TOP + 6)),
        (GradientDescent, 1e-3 * L1(), KINKS | {"weight_decay": 6.0}, 2 / (TOP + 6)),
        (Proximal, 3.0 * L2(), {}, 2 / TOP),
        (Proximal, 1e-3 * L1(), {"accelerated": True}, 1 / TOP),
        (GradientDescent, 3.0 * L2(), {"momentum": 0.5}, 3 / (TOP + 6)),
    ],
)
def test_a_step_above_the_bound_is_refused_with_the_bound_and_below_it_is_stable(
    method, penalty, settings, bound
):
    refused(
        lambda: run(method(1.001 * bound, **settings), 10, penalty),
        rf"learning_rate must be (below|at most) .*curvature.* = {bound:.6g}, .*check=False",
    )
    path = run(method(0.999 * bound, **settings), 3000, penalty)
    assert path.outcome.ok
    assert path.dataset.objective.values.max() < 10 * path.dataset.objective.values[0] + 10


@pytest.mark.parametrize(
    ("beta", "momentum"), [(1.0, 0.0), (100.0, 0.0), (1.0, 0.5)], ids=["weak", "strong", "momentum"]
)
def test_the_bound_is_sharp(beta, momentum):
    bound = 2 * (1 + momentum) / (TOP + 2 * beta)
    wild = run(GradientDescent(1.001 * bound, momentum=momentum, check=False), 30_000, beta * L2())
    tame = run(GradientDescent(0.999 * bound, momentum=momentum), 30_000, beta * L2())
    assert wild.dataset.objective.values[-1] > 1e3 * wild.dataset.objective.values[0]
    assert tame.dataset.objective.values[-1] < tame.dataset.objective.values[0]


def test_matrix_problems_have_their_bound_too():
    sensed = gaussian_sensing(samples=12, dimension=4, rank=1, seed=0, loss="half squares")
    seen = low_rank_completion(samples=12, dimension=4, rank=1, seed=0, loss="half squares")
    top = float(np.linalg.eigvalsh(sensed.design.T @ sensed.design)[-1])
    for problem, bound in ((sensed, 2 / top), (seen, 2.0)):
        given = 5, 0.1 * Nuclear((4, 4)), problem, LinearMatrix((4, 4))
        assert run(GradientDescent(0.99 * bound, subgradient=True), *given).outcome.ok
        sentence = rf"below 2/\(largest curvature of the objective\) = {bound:.6g}"
        refused(
            lambda g=given, b=bound: run(GradientDescent(1.01 * b, subgradient=True), *g), sentence
        )


# ---- a penalty of one's own ----


@pytest.mark.parametrize("method", [GradientDescent(0.05, subgradient=True), Adam(0.05)])
@pytest.mark.parametrize(
    ("penalty", "sentence"),
    [
        (Custom(lambda t: jnp.nan * t.sum()), "the value of the penalty is nan at step 0"),
        (Custom(squares, lambda t: jnp.nan * t), "the subgradient .* is nan at step 0, where"),
        (
            Custom(squares, lambda t: jnp.where(abs(t).max() > 1e-2, jnp.nan, 0.0) * t),
            r"the subgradient .* is nan at step \d, where the parameters are finite",
        ),
        (Custom(lambda t: t), r"the penalty's value must have shape \(\), got \(20,\)"),
        (Custom(lambda t: None, squares), "value must be a function of the parameters .*NoneType"),
        (Custom(squares, lambda t: 1.0), r"subgradient must have shape \(20,\), got \(\)"),
        (Custom(lambda t: float(np.abs(t).sum())), "value must be a function of the parameters in"),
        (Custom(lambda t, u: t.sum()), "value must be a function of the parameters in jax.* 'u'"),
    ],
)
def test_a_penalty_that_fails_is_named_with_the_place(method, penalty, sentence):
    who = type(method).__name__
    refused(lambda: run(method, 50, 1e-3 * penalty), f"^{who}: .*{sentence}")


@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize(
    ("prox", "sentence"),
    [
        (lambda t, w: jnp.nan * t, "the proximal map of the penalty is nan at step 0, where"),
        (lambda t, w: jnp.where(abs(t).max() > 1e-2, jnp.nan, 1.0) * t, r"is nan at step [1-9], "),
        (lambda t, w: t[:3], r"the penalty's prox must have shape \(20,\), got \(3,\)"),
        (lambda t, w: 0.0, r"the penalty's prox must have shape \(20,\), got \(\)"),
        (
            lambda t: t,
            r"prox must be a function of the parameters and a length in jax.numpy, got: .* 1 ",
        ),
        (lambda t, w: np.sign(t) * w, r"prox must be a function of the parameters and a length"),
    ],
)
def test_a_proximal_map_that_fails_is_named_with_the_place(prox, accelerated, sentence):
    penalty = Custom(squares, None, prox)
    refused(lambda: run(Proximal(0.05, accelerated), 50, 1e-3 * penalty), sentence)


def test_a_penalty_that_does_not_fail_runs_as_the_built_in_one():
    own = Custom(squares, lambda t: 2 * t, lambda t, w: t / (1 + 2 * w))
    for method in (GradientDescent(0.05, subgradient=True), Proximal(0.05), Adam(0.05)):
        mine, ours = (run(method, 50, 0.1 * h) for h in (own, L2()))
        np.testing.assert_allclose(mine.predictor, ours.predictor, rtol=1e-12)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (None, "parts must be pairs .*, got None"),
        ("abc", "parts must be pairs .*, got 'abc'"),
        ([L1()], "parts must be pairs"),
        ([("l1", 20)], "parts must be pairs .*, got 'l1' for a regularizer"),
        ([(L1(), 20.5)], "number of parameters must be an integer >= 0, got 20.5"),
        ([(L1(), 25), (None, -5)], "number of parameters must be at least 0, got -5"),
    ],
)
def test_blocks_are_pairs_of_a_penalty_and_a_size(parts, sentence):
    refused(lambda: Blocks(parts), f"^Blocks: (the )?{sentence}")
    method = GradientDescent(0.05, subgradient=True)
    refused(lambda: run(method, 5, 0.1 * Blocks([(None, 7)])), "7 parameters in blocks")
    assert run(method, 5, 0.1 * Blocks([(L1(), 7), (None, 13)])).outcome.ok


# ---- a run that diverges ----


@pytest.mark.parametrize(
    ("method", "settings", "more"),
    [
        (GradientDescent, KINKS, {}),
        (Proximal, {}, {}),
        (Proximal, {"accelerated": True}, {}),
        (GradientDescent, KINKS, {"batch": 3, "seed": 1}),
    ],
)
def test_a_run_that_diverges_says_so_and_keeps_what_it_recorded(method, settings, more):
    wild, last = method(20 / TOP, check=False, **settings), 5000
    path = run(wild, last, 1e-3 * L1(), **more)
    assert path.outcome.kind == Kind.DIVERGED
    assert "beyond float64 after" in path.outcome.sentence
    assert "take a smaller learning rate than" in path.outcome.sentence
    recorded = path.dataset.step.values
    assert len(recorded) > 5
    assert recorded[-1] < last
    assert np.isfinite(path.dataset.predictor.values).all()
    short = run(wild, int(recorded[5]), 1e-3 * L1(), **more)
    assert short.outcome.ok
    np.testing.assert_allclose(path.dataset.loss.values[:6], short.dataset.loss.values[:6])
    slow = run(method(0.5 / TOP, **settings), 500, 1e-3 * L1(), **more)
    assert slow.outcome.ok  # the control


def test_adam_with_a_huge_step_keeps_its_first_records():
    path = run(Adam(1e308), 50, 1e-3 * L1())
    assert path.outcome.kind == Kind.DIVERGED
    assert path.dataset.step.values[0] == 0
    assert np.isfinite(path.dataset.loss.values[0])


@pytest.mark.parametrize(
    ("method", "weight", "more"),
    [
        (Adam(1e300), 1e-3, {}),
        (GradientDescent(0.01, subgradient=True), 1e308, {}),
        (GradientDescent(1e3, subgradient=True), 1e-3, {"batch": 3}),
    ],
)
def test_a_loss_beyond_float64_is_no_success(method, weight, more):
    path = run(method, 500, weight * L1(), **more)
    assert path.outcome.kind == Kind.DIVERGED
    assert np.isfinite(path.dataset.loss.values).all()


def test_a_start_beyond_float64_that_comes_back_is_no_failure():
    problem = Regression(np.eye(2), [1.0, 2.0], loss="half squares")
    path = run(GradientDescent(0.5, subgradient=True), 2000, None, problem, LinearPredictor(1e160))
    assert path.outcome.ok
    assert path.dataset.loss.values[-1] < 1e-20
    assert path.dataset.parameter_norm.values[0] == pytest.approx(np.sqrt(2) * 1e160)


@pytest.mark.parametrize("bad", [5, "12", [3, -1], [1.5], [None]])
def test_what_to_record_is_a_list_of_steps(bad):
    refused(lambda: At(bad), "^At: steps must")
    refused(lambda: run(Adam(0.1), 10, None, record=bad), "^train: record must be LogSpaced")


def test_a_level_that_is_never_met_is_refused():
    for bad in (-1, 0, NAN):
        refused(lambda b=bad: Loss(b), "^Loss: value must be ")
    refused(lambda: Below(3, 1.0), "^Below: name must be that of a recorded number, got 3")
    refused(lambda: Below("loss", NAN), "^Below: value must be a finite number")


# ---- problems ----


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: sparse_recovery(10, 20, sparsity=21),
            "sparse_recovery: sparsity must be at most dimension=20, .* got 21; lower it",
        ),
        (
            lambda: modular_arithmetic(6, operation="/"),
            r"division needs a prime modulus, got 6 = 2 \* 3, where 2 has no inverse; take a prime",
        ),
        (lambda: modular_arithmetic(7, operation="%"), "unknown operation '%'; known: "),
        (lambda: modular_arithmetic(7, operation=None), "unknown operation None; known: "),
        (
            lambda: modular_arithmetic(7, operation="+", fraction=0.02),
            "leaves 6 of 7 classes out of training",
        ),
        (lambda: permutation_group(4, fraction=0.01), "classes out of training .* raise it"),
        (lambda: permutation_group(3.5), "degree must be an integer >= 2, got 3.5"),
        (lambda: coherence(np.zeros((3, 3))), "matrix must not be all zero"),
        (lambda: coherence([]), r"matrix must have 2 dimension\(s\), got shape \(0,\)"),
        (lambda: coherence(np.zeros((0, 3))), "matrix must not be empty"),
        (lambda: coherence([[1, NAN]]), r"matrix must be finite, got nan at index \(0, 1\)"),
        (lambda: coherence([[1, 2], [3]]), "rectangular array, got ragged rows"),
        (
            lambda: coherent_completion(samples=10, truth=np.eye(3), tau=0.5),
            "samples must be at most 9",
        ),
        (
            lambda: coherent_completion(samples=3, truth=np.eye(3), tau=1.5),
            "tau must be between 0 and 1, got 1.5",
        ),
        (
            lambda: coherent_completion(samples=3, truth=np.eye(3), tau=NAN),
            "tau must be a finite number, got nan",
        ),
        (
            lambda: coherent_completion(samples=3, truth=np.eye(3), tau=0.5, least="yes"),
            "least must be True or False, got 'yes'",
        ),
        (
            lambda: low_rank_completion(samples=10, dimension=5, rank=6),
            "rank must be at most dimension=5, got 6",
        ),
        (lambda: Regression(np.zeros((0, 3)), []), "X must not be empty"),
        (lambda: Regression(np.eye(3), [1, NAN, 2]), r"y must be finite, got nan at index \(1,\)"),
        (lambda: Regression(np.eye(3), [1, 2]), "3 rows but y has 2 entries"),
        (lambda: Regression(np.eye(3), [1, 2, 3], [1, 2]), "truth must have one entry per feature"),
        (lambda: LinearPredictor([1, NAN]), "start must be finite"),
        (lambda: LinearPredictor([]), "start must not be empty"),
    ],
)
def test_problems_refuse_in_one_sentence(call, sentence):
    refused(call, sentence)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("model", "problem", "sentence"),
    [
        (LinearPredictor(), np.eye(3), "got ndarray; wrap the data as Regression"),
        (LinearPredictor(), None, "must be a Regression, .* got NoneType"),
        (LinearPredictor, PROBLEM, "the model must be a Model such as"),
        (LinearPredictor([1.0, 2.0]), PROBLEM, r"start must have shape \(20,\), got \(2,\)"),
        (LinearMatrix((3, 5)), PROBLEM, r"shape \(3, 5\) has 15 entries but the data have 20"),
        (LinearMatrix(), PROBLEM, "20 entries do not make a square matrix; give shape="),
    ],
)
def test_models_and_problems_that_do_not_fit(method, model, problem, sentence):
    refused(lambda: train(model, problem, method(0.05), penalty=0.1 * L1()), sentence)
