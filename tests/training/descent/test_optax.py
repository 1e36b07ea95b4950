"""Optimizers of optax as methods of `train`: their steps, and all that ours can do."""

import subprocess
import sys
from typing import Any

import numpy as np
import optax
import pytest

import penchant
from penchant import L1, L2, Adam, GradientDescent, Steps, train
from penchant.record import At, LogSpaced
from penchant.stop import Loss

DATA = penchant.problems.sparse_regression(12, 20, sparsity=2, seed=0)
NET = penchant.DiagonalNet(2, alpha=0.3)


def function(parameters: Any, X: Any) -> Any:
    import jax.numpy as jnp

    return jnp.tanh(X @ parameters["inner"]) @ parameters["outer"]


def tree() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"inner": rng.normal(size=(20, 3)), "outer": rng.normal(size=3)}


USER = penchant.FunctionModel(function, tree())


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Adam(1e-2), optax.adam(1e-2)),
        (Adam(1e-2, weight_decay=0.3), optax.adamw(1e-2, weight_decay=0.3)),
        (GradientDescent(1e-3), optax.sgd(1e-3)),
        (GradientDescent(1e-3, momentum=0.9), optax.sgd(1e-3, momentum=0.9)),
        (GradientDescent(1e-3, momentum=0.9, nesterov=True), optax.sgd(1e-3, 0.9, nesterov=True)),
        (penchant.methods.SignDescent(1e-3), optax.sign_sgd(1e-3)),
    ],
    ids=["adam", "adamw", "sgd", "momentum", "nesterov", "sign"],
)
@pytest.mark.parametrize("more", [{}, {"batch": 5, "seed": 2}], ids=["all", "batches"])
def test_ours_and_theirs_agree(ours, theirs, more):
    given = {"stop": Steps(300), "penalty": 1e-2 * L2(), **more}
    own, other = (train(NET, DATA, method, **given) for method in (ours, theirs))
    np.testing.assert_allclose(other.parameters, own.parameters, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(other.dataset.objective, own.dataset.objective, rtol=1e-10)
    np.testing.assert_array_equal(other.dataset.step, own.dataset.step)
    assert other.t == other.steps == 300  # its learning rate is not known: time counts steps


def test_a_schedule_of_optax_is_ours():
    steps, factors = [0, 50, 200], [0.0, 1.0, 0.1]
    rates = optax.join_schedules(
        [optax.linear_schedule(0.0, 1e-2, 50), optax.linear_schedule(1e-2, 1e-3, 150)], [50]
    )
    ours = train(NET, DATA, penchant.methods.Scheduled(Adam(1e-2), steps, factors), stop=Steps(200))
    theirs = train(NET, DATA, optax.adam(rates), stop=Steps(200))
    # optax makes a rate of float32 of its 32-bit count, in float64 too
    np.testing.assert_allclose(theirs.parameters, ours.parameters, rtol=1e-6)
    constant = train(NET, DATA, optax.adam(1e-2), stop=Steps(200))
    assert np.abs(constant.parameters - ours.parameters).max() > 1e-3  # the control


def test_goals_records_and_a_penalty_with_kinks():
    stop, record = [Steps(5000), Loss(1e-6)], [LogSpaced(3), At([7])]
    path = train(NET, DATA, optax.adamw(1e-2), stop=stop, record=record)
    assert path.outcome.ok
    assert path.steps < 5000
    assert 7 in path.dataset.step
    kinked = train(NET, DATA, optax.adam(1e-2), stop=Steps(50), penalty=0.1 * L1())
    ours = train(NET, DATA, Adam(1e-2), stop=Steps(50), penalty=0.1 * L1())
    np.testing.assert_allclose(kinked.parameters, ours.parameters, rtol=1e-12)
    timed = train(NET, DATA, optax.adam(1e-2), stop=penchant.Time(30))
    assert timed.steps == 30


OPTIMIZERS: dict[str, Any] = {
    "adamw": lambda: optax.adamw(1e-2, weight_decay=1e-2),
    "lbfgs": optax.lbfgs,  # needs value, grad and value_fn
    "polyak": lambda: optax.polyak_sgd(max_learning_rate=1e-2),  # needs value
    "plateau": lambda: optax.chain(optax.adam(1e-2), optax.contrib.reduce_on_plateau()),
    "noise": lambda: optax.noisy_sgd(1e-3, key=3),  # its state holds a random key
    "injected": lambda: optax.inject_hyperparams(optax.adamw)(1e-2),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_resumed_run_is_the_uninterrupted_one_to_the_bit(name, tmp_path):
    given = {"penalty": 1e-3 * L2()} | ({} if name == "lbfgs" else {"batch": 5, "seed": 1})
    whole = train(USER, DATA, OPTIMIZERS[name](), stop=Steps(12), **given)
    half = train(USER, DATA, OPTIMIZERS[name](), stop=Steps(5), **given)
    half = penchant.load(half.save(tmp_path / "half.nc"))
    rest = train(USER, DATA, OPTIMIZERS[name](), stop=Steps(12), resume=half, **given)
    for part in whole.parameters:
        np.testing.assert_array_equal(rest.parameters[part], whole.parameters[part])
        assert np.abs(whole.parameters[part] - half.parameters[part]).max() > 0


def test_a_line_search_sees_the_objective_with_its_penalty():
    """Second route: the ridge estimate in closed form."""
    ridge = np.linalg.solve(DATA.X.T @ DATA.X + 0.3 * np.eye(20), DATA.X.T @ DATA.y)
    model = penchant.models.LinearPredictor()
    path = train(model, DATA, optax.lbfgs(), stop=Steps(60), penalty=0.3 * L2())
    np.testing.assert_allclose(path.predictor, ridge, rtol=1e-7, atol=1e-9)


def test_a_model_of_the_user_is_seen_as_its_tree():
    parts = {"move": optax.sgd(1e-3), "rest": optax.set_to_zero()}
    method = optax.multi_transform(parts, {"inner": "move", "outer": "rest"})
    path = train(USER, DATA, method, stop=Steps(20))
    np.testing.assert_array_equal(path.parameters["outer"], tree()["outer"])
    assert np.abs(path.parameters["inner"] - tree()["inner"]).max() > 1e-4


@pytest.mark.parametrize("part", ["token pairs", "images"])
def test_float32_nets_keep_their_precision(part):
    if part == "images":
        rng = np.random.default_rng(0)
        arrays = rng.random((12, 8, 8, 1)), np.arange(12) % 2
        about = {"classes": ("a", "b"), "description": "noise"}
        model, problem = (
            penchant.models.dense_net(4),
            penchant.problems.Images("noise", *arrays, *arrays, **about),
        )
    else:
        model, problem = (
            penchant.models.TokenMLP(embedding=4, width=4),
            penchant.problems.modular_arithmetic(5, fraction=0.6),
        )
    given = {"stop": Steps(20), "batch": 4, "seed": 1}
    rates = optax.exponential_decay(1e-2, 10, 0.5)
    ours, theirs = (train(model, problem, m, **given) for m in (Adam(1e-2), optax.adam(1e-2)))
    falling = train(model, problem, optax.adam(rates), **given)
    import jax

    for a, b, c in zip(
        *map(jax.tree.leaves, (ours.parameters, theirs.parameters, falling.parameters)), strict=True
    ):
        assert a.dtype == b.dtype == c.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_path_tells_what_is_known_of_the_optimizer_and_resume_compares_it():
    path = train(NET, DATA, optax.adamw(1e-3, weight_decay=1e-2), stop=Steps(3))
    text = path.dataset.attrs["description"]
    for word in ("scale_by_adam(b1=0.9", "weight_decay=0.01", "step_size=-0.001", "Optax"):
        assert word in text
    others = {
        "same transformation": optax.adamw(2e-3, weight_decay=1e-2),
        "same method": Adam(1e-3),
        "step_size_fn=": optax.adamw(optax.constant_schedule(1e-3), weight_decay=1e-2),
    }
    for words, other in others.items():
        with pytest.raises(ValueError, match=f"resume must have the same .*{words}|{words}"):
            train(NET, DATA, other, stop=Steps(6), resume=path)


def test_a_memory_of_another_structure_is_refused():
    """Two functions of one name that enclose nothing cannot be told apart; their states can."""

    def make(slots):
        def init_fn(parameters):
            return [0 * parameters for _ in slots]

        def update_fn(updates, state, parameters=None):
            return updates, state

        return optax.GradientTransformation(init_fn, update_fn)

    path = train(NET, DATA, make("a"), stop=Steps(1))
    with pytest.raises(ValueError, match="resume must have the memory of this method"):
        train(NET, DATA, make("ab"), stop=Steps(2), resume=path)


def test_what_train_cannot_give_is_one_sentence():
    base = optax.sgd(1e-3)
    sharp = optax.contrib.sam(base, optax.sgd(1e-2), opaque_mode=True)
    labels = optax.multi_transform({"a": base}, {"other": "a"})
    for method in (sharp, labels):
        with pytest.raises(ValueError, match=r"^Optax: .* cannot take a step .*, got: ") as refusal:
            train(USER, DATA, method, stop=Steps(1))
        assert "\n" not in str(refusal.value)
    with pytest.raises(ValueError, match="Optax: descent never ends by itself"):
        train(NET, DATA, base)


def test_a_divergence_is_reported():
    path = train(NET, DATA, optax.sgd(1e3), stop=Steps(50))
    assert path.outcome.kind.value == "diverged"
    assert path.outcome.sentence.endswith("take smaller steps")


def test_optax_is_not_imported_unless_it_is_given():
    code = """
import sys, penchant
net, data = penchant.DiagonalNet(2, alpha=0.3), penchant.problems.three_points("3b")
penchant.train(net, data, penchant.Adam(1e-3), stop=penchant.Steps(2))
assert "optax" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
