"""The verb of training: one grammar for all step-by-step methods, checked by other routes."""

from __future__ import annotations

import ast
import collections
import dataclasses
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import penchant
from penchant import Adam, GradientDescent, Regression, Steps, Time, train
from penchant.lab import Kind, double_precision
from penchant.methods import SAM, Descent, HeldNorm, NormalizedDescent, Oracle, SignDescent
from penchant.record import At, LogSpaced
from penchant.stop import Accuracy, Epochs, Loss, Stop
from penchant.training.descent.compiled import Batches
from penchant.training.descent.method import plus, zeros

NET = penchant.DiagonalNet(2, alpha=0.1)
DATA = penchant.problems.sparse_regression(20, 50, sparsity=3)
LABELS = penchant.problems.separable_points(12, 5, margin=0.3, seed=1)


def by_hand(w: np.ndarray, problem: Regression, rate: float, steps: int) -> np.ndarray:
    """Gradient descent of a depth-2 diagonal net, written out in NumPy."""
    for _ in range(steps):
        plus_, minus = np.split(w, 2)
        g = 2 * (problem.X @ (plus_**2 - minus**2) - problem.y) @ problem.X
        w = w - rate * np.concatenate([2 * plus_ * g, -2 * minus * g])
    return w


def test_options_that_change_nothing_agree_to_the_bit() -> None:
    """Noise below rounding takes other code to the same steps."""
    given: list[tuple[Any, dict[str, Any]]] = [
        (GradientDescent(1e-3), {}),
        (GradientDescent(1e-3, subgradient=True), {}),
        (GradientDescent(1e-3, nesterov=True), {}),
        (GradientDescent(1e-3, label_noise=1e-300), {}),
    ]
    paths = [train(NET, DATA, method, stop=Steps(500), **more) for method, more in given]
    for path in paths[1:]:
        assert path.dataset.drop_attrs().equals(paths[0].dataset.drop_attrs())
        np.testing.assert_array_equal(path.parameters, paths[0].parameters)
    hand = by_hand(NET.start(50), DATA, 1e-3, 500)
    np.testing.assert_allclose(paths[0].parameters, hand, rtol=1e-11)


def test_half_the_loss_is_half_the_rate() -> None:
    half = dataclasses.replace(DATA, loss="half squares")
    whole_path = train(NET, DATA, GradientDescent(5e-4), stop=Steps(300))
    half_path = train(NET, half, GradientDescent(1e-3), stop=Steps(300))
    np.testing.assert_allclose(half_path.parameters, whole_path.parameters, rtol=1e-12)
    np.testing.assert_allclose(2 * half_path.dataset.loss, whole_path.dataset.loss, rtol=1e-9)
    assert half_path.t == 2 * whole_path.t


def test_time_is_the_sum_of_the_learning_rates() -> None:
    path = train(NET, DATA, GradientDescent(1e-3), stop=Time(0.25), record=At([10, 20]))
    assert path.steps == 250
    np.testing.assert_array_equal(path.dataset.step, [0, 10, 20, 250])
    np.testing.assert_array_equal(path.dataset.t, 1e-3 * np.array([0, 10, 20, 250]))


@pytest.mark.parametrize("rule", [Loss(1e-4), penchant.stop.LogLoss(float(np.log(1e-4)))])
def test_the_first_step_below_a_loss_is_found(rule: Any) -> None:
    path = train(NET, DATA, GradientDescent(1e-3), stop=[Steps(10**5), rule], record=At([1]))
    record = At(range(min(path.steps, 9999)))
    every = train(NET, DATA, GradientDescent(1e-3), stop=Steps(path.steps), record=record)
    losses = every.dataset.loss.values
    assert losses[-1] <= 1e-4 < losses[-2]
    assert path.outcome.kind is Kind.SOLVED


def test_a_budget_that_ends_before_the_goal_is_reported() -> None:
    path = train(NET, DATA, GradientDescent(1e-3), stop=[Steps(10), penchant.stop.Interpolated()])
    assert path.outcome.kind is Kind.BUDGET_SPENT
    assert "10 steps ended" in path.outcome.sentence


def optax_steps(tool: Any, gradient: Callable[[Any], Any], w: np.ndarray, steps: int) -> np.ndarray:
    import optax

    with double_precision():
        state = tool.init(w)
        for _ in range(steps):
            change, state = tool.update(gradient(w), state, w)
            w = optax.apply_updates(w, change)
    return np.asarray(w)


@pytest.mark.parametrize(
    ("method", "tool"),
    [
        (GradientDescent(1e-3, momentum=0.9), lambda o: o.sgd(1e-3, 0.9)),
        (
            GradientDescent(1e-3, momentum=0.9, nesterov=True),
            lambda o: o.sgd(1e-3, 0.9, nesterov=True),
        ),
        (Adam(1e-2), lambda o: o.adam(1e-2)),
        (Adam(1e-2, weight_decay=0.3), lambda o: o.adamw(1e-2, weight_decay=0.3)),
    ],
    ids=["momentum", "nesterov", "adam", "adamw"],
)
def test_optimizers_take_the_steps_of_optax(method: Descent, tool: Any) -> None:
    import optax

    def gradient(w: Any) -> Any:
        plus_, minus = w[:50], w[50:]
        g = 2 * (DATA.X @ (plus_**2 - minus**2) - DATA.y) @ DATA.X
        return np.concatenate([2 * plus_ * g, -2 * minus * g])

    path = train(NET, DATA, method, stop=Steps(200))
    other = optax_steps(tool(optax), lambda w: gradient(np.asarray(w)), NET.start(50), 200)
    np.testing.assert_allclose(path.parameters, other, rtol=1e-8)


METHODS: list[tuple[Descent, dict[str, Any]]] = [
    (GradientDescent(1e-3), {}),
    (GradientDescent(1e-3, scaled=2e-3, weight_decay=0.1), {}),
    (GradientDescent(1e-4, momentum=0.9), {"batch": 6}),
    (Adam(1e-3, weight_decay=0.1), {"batch": 7}),
    (SignDescent(1e-3, momentum=0.9), {"batch": 5}),
    (SAM(1e-3, 0.05), {"batch": 5}),
    (HeldNorm(size=2.0), {}),
    (NormalizedDescent(1e-2), {}),
]


@pytest.mark.parametrize(("method", "given_"), METHODS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("middle", [1, 300])
def test_resumed_runs_are_those_never_stopped_to_the_bit(
    method: Descent, given_: dict[str, Any], middle: int
) -> None:
    problem = LABELS if isinstance(method, NormalizedDescent) else DATA
    whole = train(NET, problem, method, stop=Steps(777), seed=3, **given_)
    part = train(NET, problem, method, stop=Steps(middle), seed=3, **given_)
    rest = train(NET, problem, method, stop=Steps(777), seed=3, resume=part, **given_)
    np.testing.assert_array_equal(rest.parameters, whole.parameters)
    assert rest.dataset.drop_attrs().equals(whole.dataset.drop_attrs())
    assert rest.outcome == whole.outcome


def test_a_run_is_resumed_by_the_same_run_only() -> None:
    part = train(NET, DATA, Adam(1e-3), stop=Steps(10), batch=5)
    for changed, word in [
        ({"method": Adam(2e-3)}, "learning_rate"),
        ({"batch": 4}, "batch"),
        ({"seed": 1}, "seed"),
        ({"model": penchant.DiagonalNet(2, alpha=0.2)}, "alpha"),
        ({"stop": Steps(10)}, "10 steps already"),
    ]:
        args = {"model": NET, "problem": DATA, "method": Adam(1e-3), "batch": 5} | changed
        stop = args.pop("stop", Steps(20))
        model, problem, method = (args.pop(name) for name in ("model", "problem", "method"))
        with pytest.raises(ValueError, match=word):
            train(model, problem, method, stop=stop, resume=part, **args)
    flow = train(NET, DATA, GradientDescent(1.0, check=False), stop=Steps(50))
    assert flow.outcome.kind is Kind.DIVERGED
    with pytest.raises(ValueError, match="diverge"):
        train(NET, DATA, GradientDescent(1.0), stop=Steps(60), resume=flow)


@dataclasses.dataclass(frozen=True, repr=False)
class LookAhead(Descent):
    """Nesterov's momentum in its own words: the gradient is taken ahead of where we are."""

    momentum: float = 0.9

    def memory(self, oracle: Oracle, parameters: Any) -> Any:
        return zeros(parameters)

    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        slope = oracle.gradient(plus(parameters, self.momentum, memory))
        velocity = plus(zeros(slope), -self.learning_rate, slope)
        velocity = plus(velocity, self.momentum, memory)
        return plus(parameters, 1.0, velocity), velocity


def test_a_new_method_is_a_few_lines_and_trains_everything() -> None:
    method = LookAhead(1e-3)
    path = train(NET, DATA, method, stop=[Steps(5000), Loss(1e-6)], batch=None)
    assert path.outcome.ok
    w, v = NET.start(50), np.zeros(100)
    for _ in range(50):
        ahead = w + 0.9 * v
        v = 0.9 * v + by_hand(ahead, DATA, 1e-3, 1) - ahead
        w = w + v
    short = train(NET, DATA, method, stop=Steps(50))
    np.testing.assert_allclose(short.parameters, w, rtol=1e-9)
    for problem, model in [
        (LABELS, NET),
        (
            penchant.problems.low_rank_completion(samples=20, dimension=6, rank=1),
            penchant.Factorization(6, alpha=0.1),
        ),
        (
            penchant.problems.gaussian_sensing(samples=8, dimension=4, rank=1),
            penchant.models.LinearMatrix(),
        ),
        (Regression(np.eye(4), np.ones(4)), penchant.models.two_layer(3, alpha=0.5)),
        (
            penchant.problems.modular_arithmetic(5, fraction=0.6),
            penchant.models.TokenMLP(embedding=4, width=4),
        ),
        (noise_images(), penchant.models.dense_net(4)),
    ]:
        given_ = {"batch": 3, "penalty": 1e-3 * penchant.L2(), "record": LogSpaced(3)}
        few = train(model, problem, method, stop=Steps(30), **given_)
        part = train(model, problem, method, stop=Steps(11), **given_)
        again = train(model, problem, method, stop=Steps(30), resume=part, **given_)
        ends = zip(jax.tree.leaves(few.parameters), jax.tree.leaves(again.parameters), strict=True)
        for one, other in ends:
            np.testing.assert_array_equal(one, other)


def noise_images() -> penchant.problems.Images:
    rng = np.random.default_rng(0)
    arrays = rng.random((12, 4, 4, 1)), np.arange(12) % 2
    return penchant.problems.Images("noise", *arrays, *arrays, ("a", "b"), "noise")


@pytest.mark.parametrize(("samples", "size"), [(1, 1), (12, 5), (12, 12), (9, 3)])
def test_every_epoch_sees_every_sample_once(samples: int, size: int) -> None:
    batches, orders = Batches(size, samples), set()
    assert batches.epoch is not None
    draw = jax.jit(batches.draw)
    for seed, first in itertools.product((0, 7, 99), (0, 3)):
        carried, seen = batches.start(seed, first * batches.epoch), []
        for k in range(first * batches.epoch, (first + 1) * batches.epoch):
            rows, share, carried = draw(np.int64(k), carried)
            counted = np.ones(size, bool) if share is None else np.asarray(share)
            seen += np.asarray(rows)[counted].tolist()
        assert sorted(seen) == list(range(samples))
        orders.add(tuple(seen))
    assert (len(orders) > 1) == (samples > 1)


def test_every_epoch_has_a_new_order() -> None:
    with double_precision():
        orders = [np.asarray(Batches(2, 12).start(3, 6 * epoch)[1]) for epoch in range(3)]
    assert (orders[0] != orders[1]).any()
    assert (orders[1] != orders[2]).any()


def test_batches_estimate_the_gradient_without_bias() -> None:
    """The mean over an epoch of equal batches, from one point, is the full gradient."""
    rate = 1e-9  # so small that the point stays where it is
    start = NET.start(50)
    full = train(NET, DATA, GradientDescent(rate), stop=Steps(4))
    parts = train(NET, DATA, GradientDescent(rate), stop=Epochs(1), batch=5)
    assert parts.steps == 4
    np.testing.assert_allclose(parts.parameters - start, full.parameters - start, rtol=1e-5)


def test_rules_stop_at_an_accuracy_a_number_and_a_direction() -> None:
    held_out = penchant.problems.separable_points(30, 5, margin=0.3, seed=1)
    problem = dataclasses.replace(LABELS, test=held_out)
    path = train(NET, problem, GradientDescent(0.1), stop=[Steps(10**4), Accuracy(train=1.0)])
    assert path.dataset.train_accuracy.values[-1] == 1.0
    assert {"test_loss", "test_accuracy"} <= set(path.dataset.data_vars)
    error = train(
        NET,
        DATA,
        GradientDescent(1e-3),
        stop=[Steps(10**4), penchant.stop.Below("test_error", 0.5)],
    )
    assert error.dataset.test_error.values[-1] <= 0.5
    goal = penchant.max_margin(LABELS.X, LABELS.y, penchant.L1()).beta
    near = train(
        NET, LABELS, NormalizedDescent(0.1), stop=[Steps(10**4), penchant.stop.Near(goal, 20)]
    )
    assert near.outcome.ok
    assert float(penchant.measures.angle(near.predictor, goal)) <= 20
    with pytest.raises(ValueError, match="not recorded here; there are log_loss"):
        train(NET, DATA, GradientDescent(1e-3), stop=[Steps(9), Accuracy(test=0.9)])


def test_what_cannot_be_is_one_sentence() -> None:
    linear = penchant.models.LinearPredictor()
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("never ends by itself", lambda: train(NET, DATA, GradientDescent(0.1))),
        (
            "at most the 20 samples",
            lambda: train(NET, DATA, GradientDescent(0.1), batch=21, stop=Steps(1)),
        ),
        (
            "works on all samples",
            lambda: train(NET, LABELS, NormalizedDescent(0.1), batch=2, stop=Steps(1)),
        ),
        ("must be below", lambda: train(linear, DATA, GradientDescent(1.0), stop=Steps(1))),
        (
            "must be below",
            lambda: train(linear, DATA, GradientDescent(1.0, momentum=0.5), stop=Steps(1)),
        ),
        (
            "needs a penalty",
            lambda: train(linear, DATA, penchant.methods.Proximal(1e-3), stop=Steps(1)),
        ),
        ("Epochs needs batch=", lambda: train(NET, DATA, GradientDescent(0.1), stop=Epochs(2))),
        ("stop must be a rule", lambda: train(NET, DATA, GradientDescent(0.1), stop=100)),  # type: ignore
        # type: ignore
        (
            "record must be",
            lambda: train(NET, DATA, GradientDescent(0.1), stop=Steps(1), record=[3]),
        ),
        (
            "cannot record at times",
            lambda: train(NET, DATA, GradientDescent(0.1), stop=Steps(9), record=At(times=[1.0])),
        ),
        (
            "must stay within the 9 steps",
            lambda: train(NET, DATA, GradientDescent(0.1), stop=Steps(9), record=At([10])),
        ),
        ("Steps twice", lambda: train(NET, DATA, GradientDescent(0.1), stop=[Steps(1), Steps(2)])),
        ("method must be one such as", lambda: train(NET, DATA, "adam", stop=Steps(1))),
        (
            "wrap the data as Regression",
            lambda: train(NET, "data", GradientDescent(0.1), stop=Steps(1)),
        ),
        ("has no direction", lambda: train(linear, DATA, HeldNorm(), stop=Steps(1))),
        ("no weight decay", lambda: NormalizedDescent(0.1, weight_decay=0.1)),
        ("must be above -1", lambda: GradientDescent(1.0, weight_decay=3.0)),
    ]
    for words, call in cases:
        with pytest.raises(ValueError, match=words) as caught:
            call()
        assert len(str(caught.value)) < 400


class Alarm(Stop):
    """A reason of the user's own that says nothing of what a step records."""

    words = "the alarm"


class Fitted(Stop):
    """One that steps can follow: it names a recorded number."""

    words, levels = "a fit", {"loss": 0.5}  # type: ignore[assignment]

    def missed(self, numbers: Any) -> str | None:
        return None if numbers["loss"] <= 0.5 else "no fit"


@dataclasses.dataclass(frozen=True)
class Patience(Stop):
    budget, words, seconds = True, "patience", 3


@pytest.mark.parametrize("rule", [Alarm(), Patience()], ids=["goal", "budget"])
def test_a_rule_of_one_s_own_is_followed_or_refused(rule: Stop) -> None:
    sentence = f"{type(rule).__name__} has no log_level, levels or gap to stop at, which steps"
    for stop in (rule, [Steps(5), rule]):
        with pytest.raises(ValueError, match=f"^GradientDescent: {sentence}"):
            train(NET, DATA, GradientDescent(1e-3), stop=stop)
    with pytest.raises(ValueError, match=f"DualFlow: {type(rule).__name__} does not apply here"):
        train(NET, DATA, penchant.DualFlow(), stop=rule)
    path = train(NET, DATA, GradientDescent(1e-3), stop=[Steps(10**4), Fitted()])
    assert path.outcome.kind is Kind.SOLVED
    assert path.dataset.loss[-1] <= 0.5 < path.dataset.loss[-2]


def test_runs_that_differ_in_numbers_share_their_compiled_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import jax

    def end(rate: float, weight: float, start: float) -> None:
        given: dict[str, Any] = {"penalty": weight * penchant.L1(), "stop": Steps(30)}
        method = penchant.GradientDescent(rate, subgradient=True)
        train(penchant.models.LinearPredictor(start), DATA, method, **given)
        path = train(
            penchant.DiagonalNet(2, alpha=start),
            DATA,
            penchant.GradientDescent(rate),
            stop=Steps(3),
        )
        assert path.dataset.loss[0] == pytest.approx(np.sum(DATA.y**2))

    compiled = []
    end(1e-3, 0.1, 0.5)
    monkeypatch.setattr(jax, "jit", lambda function: compiled.append(function))
    end(2e-3, 0.2, 0.7)
    assert compiled == []


def test_descriptions_hold_the_whole_run() -> None:
    rules: dict[str, Any] = {"stop": [Steps(5), Loss(1e-9)], "record": LogSpaced(5)}
    path = train(NET, DATA, GradientDescent(1e-3, momentum=0.5), batch=4, seed=2, **rules)
    description = json.loads(path.dataset.attrs["description"])
    assert description["method"]["momentum"] == 0.5
    assert description["stop"] == [{"is": "Steps", "count": 5}, {"is": "Loss", "value": 1e-9}]
    assert description["record"] == [{"is": "LogSpaced", "per_decade": 5}]
    assert (description["batch"], description["seed"]) == (4, 2)
    assert description["problem"] == DATA.recipe


def test_a_path_and_several_paths_are_drawn() -> None:
    paths = [train(NET, DATA, GradientDescent(rate), stop=Steps(50)) for rate in (1e-4, 1e-3)]
    figure = paths[0].plot()
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "coefficients of the predictor",
        "natural logarithm of the training loss",
        "test error",
    ]
    together = penchant.plot(paths)
    assert "coefficients of the predictor" not in [axes.get_ylabel() for axes in together.axes]
    both = penchant.plot({"slow": paths[0], "fast": paths[1]}, "loss", x="step")
    (axes,) = both.axes
    assert axes.get_xlabel() == "step"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["slow", "fast"]
    for line, path in zip(axes.lines, paths, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), path.dataset.loss.values[1:])
    with pytest.raises(ValueError, match="'speed' is not a number recorded along these results"):
        paths[0].plot("speed")
    with pytest.raises(ValueError, match="a mapping from labels to results"):
        penchant.plot([])


def test_a_run_of_variable_steps_that_diverges_records_no_step_twice():
    problem = penchant.problems.sparse_regression(8, 16, sparsity=2, noise=0.1, seed=1)
    net, method = penchant.DiagonalNet(2, alpha=0.3), GradientDescent(1.0, scaled=50.0)
    path = train(net, problem, method, stop=Time(100.0))
    assert path.outcome.kind is Kind.DIVERGED
    assert path.dataset.sizes["time"] > 1
    assert (np.diff(path.dataset.step.values) > 0).all()


@pytest.mark.parametrize(
    "options",
    [
        {"method": GradientDescent(1e-3)},
        {"method": Adam(1e-3), "batch": 2, "penalty": 1e-3 * penchant.L2()},
    ],
    ids=["plain", "batches and penalty"],
)
def test_constant_data_are_trained_on_inside_jit_too(options):
    problem, seen = penchant.problems.sparse_regression(5, 8, sparsity=2), []

    def trained():
        return train(
            penchant.models.LinearPredictor(), problem, stop=Steps(50), **options
        ).predictor

    @jax.jit
    def shifted(x):
        seen.append(trained())
        return x + seen[0].sum()

    assert float(shifted(1.0)) == pytest.approx(1.0 + trained().sum(), rel=1e-6)
    np.testing.assert_array_equal(seen[0], trained())  # bit for bit as outside


def test_traced_data_are_refused_by_a_sentence():
    @jax.jit
    def traced(y):
        return train(
            penchant.models.LinearPredictor(), Regression(np.eye(2), y), GradientDescent(0.1)
        ).predictor

    with pytest.raises(ValueError, match="Regression: y must be an array of numbers, got"):
        traced(np.ones(2))


def test_throw_raises_what_did_not_end_well_and_keeps_the_path() -> None:
    missed: dict[str, Any] = {"stop": [Steps(10), Loss(1e-9)]}
    cases: list[tuple[Any, dict[str, Any], Kind]] = [
        (GradientDescent(1e-3), missed, Kind.BUDGET_SPENT),
        (GradientDescent(1.0), {"stop": Steps(50)}, Kind.DIVERGED),
        (penchant.ParameterFlow(max_steps=5), {}, Kind.BUDGET_SPENT),
        (penchant.ParameterFlow(), {"stop": Loss(1e-300)}, Kind.STALLED),
    ]
    for method, given, kind in cases:
        path = train(NET, DATA, method, **given)
        assert path.outcome.kind is kind
        with pytest.raises(penchant.NumericalError, match=f"^train: {kind.value}: ") as raised:
            train(NET, DATA, method, **given, throw=True)
        assert raised.value.outcome == path.outcome
        np.testing.assert_array_equal(raised.value.result.parameters, path.parameters)
    fine = train(NET, DATA, GradientDescent(1e-3), stop=Steps(10), throw=True)
    assert fine.outcome.ok
    with pytest.raises(ValueError, match="never ends by itself"):  # wrong input always raises
        train(NET, DATA, GradientDescent(1e-3), throw=False)


def test_no_class_name_stands_twice_in_training() -> None:
    folder = Path(str(penchant.__file__)).parent / "training"
    nodes = (
        node for file in folder.rglob("*.py") for node in ast.walk(ast.parse(file.read_text()))
    )
    names = collections.Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert names["SampleTask"] == 1
    assert not [name for name, count in names.items() if count > 1]
