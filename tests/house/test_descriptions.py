"""A description makes an equal object again: as JSON, as the text of a call, from a file."""

from __future__ import annotations

import dataclasses
import json
import sys

import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
from penchant.description import build, describe, with_recipe
from penchant.namespaces import public, public_names
from refusals import refusals

COMMON = {"deadline": None, "derandomize": True, "max_examples": 150}
NAMES = {name: public(name) for name in public_names()}

count = st.integers(1, 5)
seed = st.integers(0, 2**40)
number = st.floats(-1e3, 1e3)
positive = st.floats(1e-12, 1e12)
share = st.floats(0.0, 0.999)
log_alpha = st.one_of(st.floats(-250.0, 250.0), st.sampled_from([-5.0, -1.5, 0.0]))
scale = st.one_of(
    st.builds(lambda alpha: {"alpha": alpha}, positive),
    st.builds(lambda size: {"log_alpha": size}, log_alpha),
)
any_scale = st.one_of(
    scale,
    st.builds(lambda size: {"log_alpha": size}, st.sampled_from([-4000.0, 4000.0, -745.5])),
    st.builds(lambda mu: {"mu": mu}, positive),
)
nonzero = st.floats(0.01, 100.0)


def vectors(size, entries=nonzero):
    return st.lists(entries, min_size=size, max_size=size)


MADE = set()  # what the strategies below call


def call(make, *given, **named):
    """Strategies for the arguments of a call; None among them is left out."""
    MADE.add(make)

    def made(given, named, scale):
        return make(*given, **{k: v for k, v in named.items() if v is not None}, **scale)

    scaled = named.pop("scale", st.just({}))
    return st.builds(made, st.tuples(*given), st.fixed_dictionaries(named), scaled)


def maybe(strategy):
    return st.one_of(st.none(), strategy)


shape = st.tuples(count, count)
flag = st.booleans()
matrix = st.integers(1, 3).flatmap(lambda n: st.lists(vectors(n), min_size=2, max_size=2))
REGULARIZERS = st.one_of(
    call(penchant.L1),
    call(penchant.L2, squared=flag),
    call(penchant.L2, weights=vectors(3)),
    call(penchant.regularizers.Linf),
    call(penchant.regularizers.Lp, st.floats(1.01, 9.0)),
    call(penchant.Q, st.integers(2, 9), scale=any_scale, shape=maybe(vectors(3))),
    call(penchant.Q, st.just(2), scale=scale, shape=vectors(2), tilt=vectors(2, number)),
    call(penchant.regularizers.R, scale=any_scale, shape=maybe(vectors(3))),
    call(penchant.regularizers.Nuclear, maybe(shape)),
    call(penchant.regularizers.Spectral, maybe(shape)),
    call(penchant.regularizers.LayerSpectral, st.lists(shape, min_size=1, max_size=3)),
    call(penchant.regularizers.Frobenius),
    call(penchant.regularizers.Schatten, call(penchant.Q, st.just(2), scale=scale)),
    call(
        penchant.regularizers.DerivativeMatch,
        st.just(penchant.models.LinearPredictor()),
        st.just([[1.0, 2.0]]),
        st.just([[0.5, 0.5]]),
    ),
)
TERMS = st.recursive(
    REGULARIZERS,
    lambda inner: st.one_of(
        st.builds(lambda weight, term: weight * term, positive, inner),
        st.builds(lambda one, other: one + other, inner, inner),
        call(penchant.regularizers.Penalty, positive, inner),
        call(penchant.regularizers.PerTensor, inner),
        call(penchant.regularizers.Blocks, st.lists(st.tuples(maybe(inner), count), max_size=3)),
    ),
    max_leaves=4,
)
NETS = st.one_of(
    call(penchant.DiagonalNet, st.integers(2, 9), scale=any_scale, shape=maybe(vectors(3))),
    call(penchant.DiagonalNet, st.integers(2, 9), scale=any_scale, signed=flag),
    call(penchant.DiagonalNet, start=st.lists(vectors(3), min_size=2, max_size=2)),
    call(penchant.models.ProductNet, vectors(3), vectors(3)),
    call(penchant.models.DiagonalLayers, st.lists(vectors(3), min_size=2, max_size=4)),
    call(penchant.models.LinearPredictor, st.one_of(st.none(), number, vectors(4))),
)
PLAIN = st.one_of(
    NETS,
    call(penchant.models.relu_net, count, count, scale=scale, seed=seed, unbiased=flag),
    call(penchant.models.relu_net, st.just(2), count, scale=scale, layers=vectors(2)),
    call(
        penchant.models.two_layer, count, scale=scale, activation=maybe(st.just("tanh")), bias=flag
    ),
    call(penchant.models.attention, vectors(3), factored=flag, seed=seed),
    call(
        penchant.models.convolutional_net,
        st.integers(2, 4),
        alpha=positive,
        start=maybe(st.just("impulse")),
        seed=seed,
    ),
    call(penchant.models.student, count, count, scale=scale, seed=seed),
    call(penchant.models.univariate_relu, count, scale=scale, scaling=positive, seed=seed),
)
MODELS = st.one_of(
    PLAIN,
    call(penchant.models.LinearMatrix, maybe(shape), maybe(number)),
    call(penchant.Factorization, count, scale=scale, seed=seed, shape=maybe(shape)),
    call(
        penchant.Factorization,
        factors=st.tuples(matrix, matrix).filter(lambda f: len(f[0][0]) == len(f[1][0])),
    ),
    call(penchant.models.SymmetricFactorization, count, scale=scale, seed=seed),
    call(penchant.models.SymmetricFactorization, factors=st.tuples(matrix)),
    call(
        penchant.models.DifferenceFactorization, scale=scale, width=maybe(count), seed=maybe(seed)
    ),
    call(
        penchant.models.DeepFactorization,
        st.integers(2, 4),
        count,
        scale=scale,
        seed=seed,
        shape=maybe(shape),
    ),
    call(penchant.models.Difference, PLAIN),
    call(penchant.models.Unbiased, PLAIN),
    call(penchant.models.linearize, NETS),
    call(
        penchant.models.dense_net,
        st.lists(count, min_size=1, max_size=3),
        alpha=maybe(nonzero),
        unbiased=flag,
    ),
    call(
        penchant.models.conv_net,
        st.sampled_from(["4-M-FC", "8-8-FC"]),
        seed=seed,
        slimmer=st.sampled_from([1, 2]),
    ),
    call(
        penchant.models.linearize,
        call(penchant.models.dense_net, vectors(1, count), log_alpha=st.floats(-9, 9)),
    ),
    call(
        penchant.models.OutputLayer,
        call(penchant.models.dense_net, vectors(2, count), layers=vectors(3)),
    ),
    call(penchant.models.TokenMLP, width=count, seed=seed),
    call(penchant.models.TokenQuadratic, width=count, alpha=nonzero, shared=flag),
    call(penchant.models.TokenTransformer, width=st.sampled_from([8, 16]), seed=seed),
    call(
        penchant.models.TwoTokenNet,
        count,
        alpha=nonzero,
        seed=seed,
        precision=maybe(st.just("double")),
    ),
)
rate = st.floats(1e-6, 1.0)
STEADY = st.one_of(
    call(penchant.GradientDescent, rate, momentum=share, weight_decay=share, check=flag),
    call(penchant.GradientDescent, rate, subgradient=flag),
    call(penchant.Adam, rate, mean_decay=share, weight_decay=share),
)
METHODS = st.one_of(
    STEADY,
    call(penchant.methods.Proximal, rate, accelerated=flag),
    call(
        penchant.methods.SteepestDescent,
        rate,
        st.sampled_from([penchant.L1(), penchant.L2([1.0, 2.0])]),
        normalized=flag,
    ),
    call(penchant.methods.SignDescent, rate, momentum=share),
    call(
        penchant.methods.SAM,
        rate,
        positive,
        st.sampled_from([penchant.L2(), penchant.regularizers.Linf()]),
    ),
    call(penchant.methods.Muon, rate, call(penchant.regularizers.Spectral, maybe(shape))),
    call(penchant.methods.NormalizedDescent, rate),
    call(penchant.methods.HeldNorm, rate, size=positive, norm=st.sampled_from(["l1", "l2"])),
    call(
        penchant.methods.Scheduled,
        STEADY,
        st.just([0, 10, 10]),
        st.lists(nonzero, min_size=3, max_size=3),
    ),
    call(penchant.methods.EffectiveScale, call(penchant.GradientDescent, rate)),
    call(penchant.DualFlow, rtol=st.floats(1e-12, 1e-3), weight_decay=share),
    call(penchant.ParameterFlow, rtol=st.floats(1e-12, 1e-3)),
    call(penchant.methods.MatrixFlow, form=maybe(st.just("lifted"))),
    call(penchant.methods.TangentFlow),
    call(penchant.methods.CentralFlow, rate, oscillates=flag, finite_steps=flag),
)
RULES = st.one_of(
    call(penchant.Steps, count),
    call(penchant.stop.Epochs, count),
    call(penchant.Time, positive),
    call(penchant.stop.Loss, positive),
    call(penchant.stop.LogLoss, number),
    call(penchant.stop.Interpolated, st.floats(1e-30, 0.5)),
    call(penchant.stop.Scale, positive),
    call(penchant.stop.Accuracy, st.floats(0.1, 1.0), maybe(st.floats(0.1, 1.0))),
    call(penchant.stop.Below, st.text(max_size=5), number),
    call(penchant.stop.Near, vectors(4, number).filter(lambda v: np.linalg.norm(v) > 0), positive),
    call(penchant.record.LogSpaced, count),
    *(
        call(penchant.record.At, **{kind: st.lists(count)})
        for kind in ("steps", "epochs", "times", "margins")
    ),
)
rows = st.integers(1, 4).flatmap(lambda n: st.lists(vectors(n, number), min_size=3, max_size=3))
squares = st.sampled_from(["squares", "half squares"])
PROBLEMS = st.one_of(
    *(call(make) for make in (penchant.problems.zigzag, penchant.problems.plateau)),
    call(penchant.problems.steep_end),
    call(penchant.problems.uniform_points, count, count, seed=seed),
    call(penchant.problems.spiked_points, count, count, seed=seed),
    call(
        penchant.problems.sparse_regression,
        count,
        st.just(9),
        sparsity=count,
        noise=share,
        seed=seed,
    ),
    call(
        penchant.problems.sparse_recovery,
        count,
        st.just(9),
        sparsity=count,
        snr=positive,
        loss=squares,
    ),
    call(penchant.problems.separable_points, count, count, margin=share, seed=seed),
    call(
        penchant.problems.three_points,
        st.sampled_from(["3b", "4a"]),
        loss=st.sampled_from(["exp", "logistic"]),
    ),
    call(
        penchant.problems.majority, count, st.just(7), relevant=st.sampled_from([1, 3]), seed=seed
    ),
    call(penchant.problems.wide_margin, count, count, gamma=share, seed=seed),
    call(
        penchant.problems.low_rank_completion,
        count,
        st.just(4),
        rank=count.filter(lambda r: r < 5),
        loss=squares,
    ),
    call(penchant.problems.gaussian_sensing, count, st.just(5), rank=count, seed=seed),
    call(penchant.problems.commuting_sensing, count, st.just(5), rank=count, rotated=flag),
    call(penchant.problems.aligned_sensing, count, st.just((4, 5)), rank=st.integers(1, 4)),
    call(penchant.problems.coherent_completion, st.just(2), matrix, tau=share),
    call(
        penchant.problems.multiplication_table,
        st.integers(2, 5),
        fraction=st.floats(0.2, 1.0),
        mirrored=flag,
    ),
    call(
        penchant.problems.modular_arithmetic,
        st.integers(3, 9),
        fraction=st.just(0.9),
        seed=st.integers(0, 9),
    ),
    call(
        penchant.problems.modular_arithmetic,
        st.just(7),
        operation=st.sampled_from(["+", "x^2+y^2"]),
        fraction=st.just(0.9),
    ),
    call(penchant.problems.permutation_group, st.just(3), fraction=st.just(0.9)),
    call(penchant.problems.multiclass, rows, st.just([0, 1, 2])),
    call(penchant.problems.token_selection, count, st.just(3), st.just(4), equal_scores=flag),
    call(penchant.problems.circle_teacher, count, seed=seed, test=st.just(9)),
    call(
        penchant.problems.teacher_student, count, count, width=count, test=st.just(3), standard=flag
    ),
    st.builds(lambda seed: penchant.problems.circle_teacher(4, test=5, seed=seed).training, seed),
    st.builds(
        lambda seed: penchant.problems.teacher_student(4, 3, width=2, test=3, seed=seed).test, seed
    ),
    st.builds(lambda X, loss: penchant.Regression(X, [1.0, 2.0, 3.0], loss=loss), rows, squares),
    st.builds(lambda X: penchant.Classification(X, [1.0, -1.0, 1.0]), rows),
    st.builds(
        lambda seed: dataclasses.replace(penchant.problems.majority(9, 5, seed=seed), loss="exp"),
        seed,
    ),
    st.builds(
        lambda seed: dataclasses.replace(
            penchant.problems.wide_margin(4, 3, gamma=1.0, seed=seed), loss="exp"
        ),
        seed,
    ),
    st.builds(
        lambda seed: penchant.problems.modular_arithmetic(
            5, operation=lambda x, y: x + 2 * y, fraction=0.9
        ),
        seed,
    ),
    st.builds(lambda M: penchant.problems.Sensing([M], [1.0]), matrix),
    st.builds(lambda y: penchant.problems.Completion((2, 3), [[0, 1], [1, 2]], y), vectors(2)),
    call(
        penchant.problems.load_images,
        st.just("digits"),
        train=count,
        test=count,
        classes=st.just([3, 8]),
    ),
)
EVERY = {"terms": TERMS, "models": MODELS, "methods": METHODS, "rules": RULES, "problems": PROBLEMS}


@pytest.mark.parametrize("kind", EVERY)
@settings(**COMMON)
@given(data=st.data())
def test_a_description_makes_an_equal_object_again(kind, data):
    thing = data.draw(EVERY[kind])
    for arrays in (None, {}):
        again = build(json.loads(json.dumps(describe(thing, arrays))), arrays)
        assert again == thing
        assert type(again) is type(thing)
        assert describe(again) == describe(thing)
        assert repr(again) == repr(thing)
    if "<" not in repr(thing):  # a large array or a long list
        assert eval(repr(thing), NAMES) == thing


# abstract, results, made by functions that are drawn, or around a function of the user
ABSTRACT = {"Descent", "Model", "Observer", "Regularizer", "Separable", "SpectralFunction", "Stop"}
ABSTRACT |= {"Term", "TokenNet"}
RESULTS = {"GreedyRank", "HeldSweep", "Oracle", "Path", "FactorTwin", "FrequencyNet", "TangentTwin"}
MADE_BY = {"Derived", "ImageModel"}
OF_FUNCTIONS = {"Custom", "FunctionModel", "Reparametrized"}


def makes(thing):
    """Whether it is a function that leaves its call in what it makes."""
    return getattr(thing, "__code__", None) is with_recipe(len).__code__


def test_every_public_noun_is_drawn():
    homes = {name: getattr(NAMES[name], "__module__", "") for name in public_names()}
    rooms = {name: home.split(".")[1] for name, home in homes.items() if "." in home}
    public = {
        name
        for name, thing in ((name, NAMES[name]) for name in rooms)
        if (isinstance(thing, type) and rooms[name] in ("models", "regularizers", "training"))
        or (makes(thing) and rooms[name] in ("models", "problems"))
    }
    drawn = {make.__name__ for make in MADE}
    assert public - drawn == ABSTRACT | RESULTS | MADE_BY | OF_FUNCTIONS


class Fourth(penchant.regularizers.Term):
    """A penalty of the user's own class."""

    smooth = True

    def value(self, theta):
        return (theta**4).sum()

    def subgradient(self, theta):
        return 4 * theta**3


def test_a_penalty_of_a_class_of_the_user_is_described():
    described = describe(0.5 * Fourth())
    assert described["weight"] == 0.5
    assert described["regularizer"]["is"].endswith(".Fourth")


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (penchant.DiagonalNet(log_alpha=-4000), "DiagonalNet(log_alpha=-4000.0)"),
        (penchant.DiagonalNet(3, alpha=0.1), "DiagonalNet(depth=3, alpha=0.1)"),
        (penchant.problems.circle_teacher(seed=3).training, "circle_teacher(seed=3).training"),
        (0.1 * penchant.L1() + penchant.L2(), "0.1 * L1() + 1.0 * L2()"),
        (penchant.models.dense_net(), "dense_net()"),
    ],
)
def test_what_a_description_reads_like(thing, text):
    assert repr(thing) == text
    assert build(describe(thing)) == eval(text, NAMES) == thing


def test_a_description_is_a_table_of_a_study():
    table = describe(1e-3 * penchant.L1())
    assert table == {"is": "L1", "times": 1e-3}
    parts = {
        "problem": penchant.problems.sparse_regression(6, 9, sparsity=1),
        "model": penchant.models.LinearPredictor(),
        "method": penchant.methods.Proximal(1e-3),
    }
    told = {name: describe(part) for name, part in parts.items()}
    study = penchant.Study(
        name="s", **told, penalty=table, stop=describe(penchant.Steps(3)), final=["loss"], grid={}
    )
    path = penchant.train(**parts, penalty=1e-3 * penchant.L1(), stop=penchant.Steps(3))
    assert {name: path.description[name] for name in told} == told
    assert study.penalty == path.description["penalty"]


# --- a changed copy, a stranger of one name -------------------------------------------------


def test_a_changed_copy_of_a_generated_problem_has_no_recipe():
    made = penchant.problems.sparse_regression(4, 6, sparsity=1)
    changed = dataclasses.replace(made, y=-made.y)
    assert made.recipe is not None
    assert changed.recipe is None
    assert build(describe(changed)) == changed != made


class Steps(penchant.Steps):
    """A rule of the user with the name of one of ours."""


def test_a_class_of_the_user_is_not_taken_for_ours():
    told = describe(Steps(4))
    assert told == {"is": f"{__name__}.Steps", "count": 4}
    with pytest.raises(ValueError, match=r"build: unknown name in the description.is .*Steps"):
        build(told)


def cube(w, X):
    return X @ w**3


OWN = {
    "a function": (penchant.FunctionModel(cube, [1.0, 2.0]), r"the description.function .*cube"),
    "a lambda": (penchant.regularizers.Custom(lambda w: w @ w), r"the description.value .*lambda"),
    "a map": (penchant.models.Reparametrized(lambda w: w**3, 0.1), r"the description.map .*lambda"),
    "inside": (
        penchant.models.Unbiased(penchant.FunctionModel(cube, [1.0])),
        r"the description.model.function .*cube",
    ),
    "a penalty": (0.1 * penchant.derive(lambda w: w**2, start=1.0), "the description.line"),
}


@pytest.mark.parametrize("name", OWN)
def test_a_function_of_the_user_is_said_to_be_missing(name):
    thing, words = OWN[name]
    told = json.loads(json.dumps(describe(thing)))
    with pytest.raises(ValueError, match=rf"build: {words}.*make it yourself"):
        build(told)


# --- paths from files -----------------------------------------------------------------------

rng = np.random.default_rng(0)
LARGE = penchant.Regression(rng.normal(size=(12, 30)), rng.normal(size=12), truth=np.ones(30))
TESTED = dataclasses.replace(
    LARGE, test=penchant.Regression(rng.normal(size=(40, 30)), rng.normal(size=40))
)
steps, batch = penchant.Steps(20), {"batch": 5, "seed": 3}
RUNS = {
    "steps": (
        penchant.DiagonalNet(alpha=0.1),
        LARGE,
        penchant.Adam(0.01),
        {"stop": steps, **batch},
    ),
    "flow": (penchant.DiagonalNet(log_alpha=-4000), LARGE, penchant.DualFlow(), {}),
    "test data": (
        *(
            penchant.models.LinearPredictor(rng.normal(size=30)),
            TESTED,
            penchant.methods.Proximal(1e-3),
        ),
        {"stop": steps, "penalty": 0.1 * penchant.L1(), "record": penchant.record.LogSpaced(3)},
    ),
    "recipe": (
        *(penchant.models.two_layer(4, alpha=1.0), penchant.problems.majority(20, 9)),
        *(penchant.GradientDescent(0.01), {"stop": [steps, penchant.stop.Accuracy(train=1.0)]}),
    ),
    "arrays": (
        *(penchant.DiagonalNet(alpha=0.1, shape=np.linspace(1, 2, 100)),),
        penchant.problems.sparse_regression(9, 100, sparsity=2),
        penchant.methods.Scheduled(penchant.GradientDescent(1e-3), [0, 10], [0.0, 1.0]),
        {"stop": [steps, penchant.stop.Near(rng.normal(size=100), 0.1)]},
    ),
    "matrix": (
        *(
            penchant.models.LinearMatrix((4, 4)),
            penchant.problems.low_rank_completion(9, 4, rank=1),
        ),
        *(penchant.GradientDescent(0.01, subgradient=True),),
        {"stop": steps, "penalty": 0.1 * penchant.regularizers.Nuclear()},
    ),
    "tokens": (
        *(
            penchant.models.TokenQuadratic(width=6),
            penchant.problems.modular_arithmetic(5, fraction=0.8),
        ),
        *(penchant.Adam(0.01), {"stop": steps}),
    ),
    "images": (
        *(
            penchant.models.dense_net((5,)),
            penchant.problems.load_images("digits", train=20, test=10),
        ),
        *(penchant.GradientDescent(0.1), {"stop": steps}),
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_path_is_trained_again_from_its_file_alone(name, tmp_path):
    model, problem, method, more = RUNS[name]
    path = penchant.train(model, problem, method, **more)
    found = penchant.load(penchant.save(path, tmp_path / "run.nc"))
    assert found == path
    assert (found.model, found.problem, found.method) == (model, problem, method)
    again = penchant.train(**found.arguments)
    assert again.dataset.identical(path.dataset)
    assert again.outcome == path.outcome
    if path.memory is not None:
        more = {**found.arguments, "stop": penchant.Steps(40)}
        longer = penchant.train(**more, resume=found)
        assert longer == penchant.train(**more)
        assert longer.steps == 40


def test_data_are_stored_once(tmp_path):
    path = penchant.train(*RUNS["steps"][:3], stop=steps)
    twice = path.dataset.assign(again=(("a", "b"), LARGE.X + 1.0))
    sizes = [
        penchant.save(thing, tmp_path / "run.nc").stat().st_size
        for thing in (path, path.dataset, twice)
    ]
    assert sizes[2] - sizes[1] > LARGE.X.nbytes  # the control
    assert sizes[0] - sizes[1] < LARGE.X.nbytes + 12_000
    assert list(penchant.load(penchant.save(path, tmp_path / "run.nc")).arrays.values())


def test_a_path_without_its_function_or_optimizer_says_so(tmp_path):
    model = penchant.FunctionModel(cube, np.full(9, 0.1))
    problem = penchant.problems.sparse_regression(6, 9, sparsity=1)
    path = penchant.train(model, problem, optax.adam(1e-3), stop=steps)
    found = penchant.load(penchant.save(path, tmp_path / "run.nc"))
    assert found.problem == problem
    with pytest.raises(ValueError, match=r"the model of the path: .*cube.* make it yourself"):
        found.model  # noqa: B018
    with pytest.raises(
        ValueError, match=r"the method of the path: .*scale_by_adam.*make it yourself"
    ):
        found.method  # noqa: B018
    given = (model, problem, optax.adam(1e-3))
    more = penchant.train(*given, stop=penchant.Steps(40), resume=found)
    assert more == penchant.train(*given, stop=penchant.Steps(40))


# --- wrong and hostile descriptions ---------------------------------------------------------


def deep(levels):
    told = {"is": "L1"}
    for _ in range(levels):
        told = {"is": "PerTensor", "regularizer": told}
    return told


test_wrong_descriptions_are_refused_in_one_sentence = refusals(
    (
        lambda: build({"is": 3}),
        "build: the description.is must be a public name of penchant, got 3",
    ),
    (lambda: build({"is": "DiagonalNett"}), "did you mean DiagonalNet"),
    (lambda: build({"is": "DiagonalNet", "depht": 2}), "unknown key in the description 'depht'"),
    (lambda: build({"is": "Factorization"}), "Factorization: give exactly one of"),
    (lambda: build({"is": "Steps"}), "the description lacks 'count', which Steps needs"),
    (lambda: build({"is": "Steps", "count": "x"}), "Steps: count must be an integer"),
    (lambda: build({"is": "Scheduled", "method": 1, "steps": 2, "factors": 3}), "Scheduled"),
    (lambda: build({"is": "L1", "times": "x"}), "times of the description must be"),
    (lambda: build({"is": "Steps", "count": 3, "times": 2.0}), "but Steps is no regularizer"),
    (lambda: build({"is": "L1", "part": "value"}), "unknown part of the description 'value'"),
    (
        lambda: build({"is": "circle_teacher", "part": "__class__"}),
        "unknown part of the description '__class__'",
    ),
    (lambda: build({"array": "abc"}), "the array 'abc' of the description is not in the file"),
    (lambda: build({"array": [1, [2]]}), "is no array of numbers"),
    (lambda: build({"array": [1], "dtype": "O", "shape": [1]}), "is no array of numbers"),
    (lambda: build({"array": [1], "dtype": "f8", "shape": [9**9, 9**9]}), "is no array of numbers"),
    (lambda: build({"words": "f()"}), r"known by words alone, 'f\(\)'"),
    (lambda: build({"is": "PenaltySum", "parts": [3]}), "expected a regularizer such as L1"),
    (lambda: build({"is": "PenaltySum", "parts": 3}), "cannot be made"),
    (lambda: build(deep(5000)), "nested too deeply"),
)


@pytest.mark.parametrize(
    "name",
    [
        *("train", "verify", "run", "read_study", "save", "load", "Study", "watch", "plot"),
        *(
            "import_images",
            "os.system",
            "builtins.exec",
            "eval",
            "store",
            "penchant.save",
            "this:d",
        ),
        *("__class__", "", "INNER", "_inner"),
    ],
)
def test_only_names_that_compute_are_built(name):
    with pytest.raises(ValueError, match=r"^build: (unknown name in the description|the descri)"):
        build({"is": name, "file": "victim.txt"})
    assert "this" not in sys.modules


@pytest.mark.parametrize(
    "told",
    [
        "[]",
        "3",
        "null",
        "{}",
        '{"model": {"is": "train"}}',
        '{"model": {"is": "DiagonalNet", "alpha": {"is": "save"}}}',
        '{"model": ' + '{"is": "PerTensor", "regularizer": ' * 900 + "1" + "}" * 901,
        '{"model": ' + "[" * 3000 + "]" * 3000 + "}",
    ],
)
def test_a_hostile_file_is_loaded_and_its_model_refused(told, tmp_path):
    path = penchant.train(*RUNS["steps"][:3], stop=penchant.Steps(2))
    odd = dataclasses.replace(path, dataset=path.dataset.assign_attrs(description=told))
    found = penchant.load(penchant.save(odd, tmp_path / "odd.nc"))
    with pytest.raises(ValueError, match=r"the model of the path: |Path: the d"):
        found.model  # noqa: B018
