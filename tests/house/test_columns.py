"""The names of a table's columns travel to problems, results, files and pictures."""

import numpy as np
import pandas as pd
import pytest

import penchant
from penchant.columns import names_in

NAMES = ["age", "size_in_m", "cost in $", "place"]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(3, 4)), columns=NAMES), np.array([1.0, -1.0, 1.0])


def solved(name, X, y):
    solvers, mus = penchant.solvers, [1.0, 0.1]
    calls = {
        "interpolate": lambda: penchant.interpolate(X, y, penchant.L1()),
        "max_margin": lambda: penchant.max_margin(X, y, penchant.L2()),
        "interpolate_path": lambda: solvers.interpolate_path(X, y, log_alphas=[0.0, -2.0]),
        "max_margin_path": lambda: solvers.max_margin_path(X, y, mus=mus),
        "ratchet_path": lambda: solvers.ratchet_path(X, y, mus=mus),
        "saddles": lambda: solvers.saddles(X, y),
        "slow_flow": lambda: solvers.slow_flow(X, np.eye(4)[0]),
    }
    return calls[name]()


@pytest.mark.parametrize(
    "name",
    [
        "interpolate",
        "max_margin",
        "interpolate_path",
        "max_margin_path",
        "ratchet_path",
        "saddles",
        "slow_flow",
    ],
)
def test_results_keep_the_names(name, table, tmp_path):
    X, y = table
    result = solved(name, X, y)
    assert result.features == tuple(NAMES)
    assert result.dataset.feature.values.tolist() == NAMES
    file = result.save(tmp_path / "result.nc")
    assert penchant.load(file).feature.values.tolist() == NAMES
    plain = solved(name, X.to_numpy(), y)
    assert plain.features == ()
    unnamed = result.dataset.drop_vars("feature")
    assert unnamed.identical(plain.dataset.drop_vars("feature", errors="ignore"))  # only names


def words_of(figure):
    legends = [axes.get_legend() for axes in figure.axes if axes.get_legend()]
    texts = [text.get_text() for legend in legends for text in legend.get_texts()]
    ticks = [t.get_text() for axes in figure.axes for t in axes.get_xticklabels()]
    return [text.replace("\\$", "$") for text in texts + ticks]


@pytest.mark.parametrize("name", ["interpolate", "interpolate_path", "max_margin_path", "saddles"])
def test_pictures_show_the_names(name, table):
    figure = solved(name, *table).plot()
    assert set(NAMES) <= set(words_of(figure))
    figure.canvas.draw()  # a dollar is no formula


def test_a_path_of_training_keeps_the_names(table, tmp_path):
    X, y = table
    problem = penchant.Regression(X, y)
    assert problem.features == tuple(NAMES)
    path = penchant.train(penchant.DiagonalNet(2, alpha=0.1), problem, penchant.DualFlow())
    steps = penchant.train(
        penchant.DiagonalNet(2, alpha=0.1),
        problem,
        penchant.GradientDescent(1e-2),
        stop=penchant.Steps(50),
    )
    for one in (path, steps):
        assert one.dataset.feature.values.tolist() == NAMES
        assert set(NAMES) <= set(words_of(one.plot("predictor")))
        again = penchant.load(one.save(tmp_path / "path.nc"))
        assert again.dataset.identical(one.dataset)
        assert again.arguments["problem"].features == tuple(NAMES)


def test_names_given_by_hand_and_those_of_a_test():
    X, y = np.eye(2), [1.0, -1.0]
    problem = penchant.Classification(X, y, features=["left", "right"])
    assert penchant.max_margin(problem, penchant.L2()).features == ("left", "right")
    assert eval(repr(problem), {"Classification": penchant.Classification}) == problem
    swapped = penchant.Classification(X, y, features=["right", "left"])
    with pytest.raises(ValueError, match="Classification: test must have the columns"):
        penchant.Classification(X, y, features=["left", "right"], test=swapped)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["one"], r"must have one name per column of X \(2\), got 1"),
        (["one", "one"], "must be different texts"),
        ([1, 2], "must be different texts"),
        ("ab", "must be the names of the columns of X, got 'ab'"),
        (3, "must be the names of the columns of X, got 3"),
    ],
)
def test_wrong_names(names, sentence):
    with pytest.raises(ValueError, match=f"Regression: features {sentence}"):
        penchant.Regression(np.eye(2), [1.0, 2.0], features=names)


def test_columns_without_names():
    assert names_in(pd.DataFrame(np.eye(2))) == ()  # numbers
    assert names_in(pd.DataFrame(np.eye(2), columns=["a", "a"])) == ()
    assert names_in(np.eye(2)) == ()
    assert names_in(None) == ()
