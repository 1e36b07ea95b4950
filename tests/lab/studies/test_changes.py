"""`--set d=200`: a parameter of the cells, by its name or the field's name for it."""

from __future__ import annotations

import pytest

import penchant
from penchant.lab.studies.changes import changed, mark_of, read_changes, words


def plain():
    return penchant.Study(
        name="plain",
        problem={"is": "sparse_regression", "samples": 20, "dimension": 40, "sparsity": 2},
        model={"is": "DiagonalNet", "depth": 2},
        method={"is": "DualFlow"},
        grid={"model.alpha": [0.1, 1.0]},
        seeds=2,
        final=["test_error"],
    )


def test_texts_become_numbers_lists_and_words():
    texts = ["d=200", "alpha=0.1, 1e-3", "noise=0.5", "form = bare"]
    expected = {"d": 200, "alpha": [0.1, 1e-3], "noise": 0.5, "form": "bare"}
    assert read_changes(texts) == expected


@pytest.mark.parametrize("text", ["d", "=3", "d=", ""])
def test_a_text_without_a_name_or_a_value_is_refused(text):
    with pytest.raises(ValueError, match="--set needs a name and a value, such as d=200"):
        read_changes([text])


def test_parameters_are_replaced_where_they_are():
    (study,) = changed([plain()], {"d": 200, "alpha": [0.5], "depth": 3, "seeds": 4})
    told = study.describe()
    assert told["problem"]["dimension"] == 200
    assert told["model"]["depth"] == 3
    assert told["grid"] == {"model.alpha": [0.5]}
    assert len(told["seeds"]) == 4
    assert study.name == "plain-dimension-200-alpha-0.5-depth-3-seeds-4"
    assert plain().describe()["problem"]["dimension"] == 40


def test_a_single_value_of_an_axis_is_a_list_of_one():
    (study,) = changed([plain()], {"alpha": 0.5})
    assert study.shape == (1, 2)


def test_studies_without_the_parameter_stay_as_they_are():
    other = penchant.Study(name="other", function=cell, arguments={"rows": 3})
    first, second = changed([plain(), other], {"dimension": 50})
    assert first.name == "plain-dimension-50"
    assert second is other
    assert changed([other], {}) == [other]


def cell(rows):
    return {"value": float(rows)}


@pytest.mark.parametrize(
    ("name", "answer"),
    [("dimensoin", "did you mean dimension"), ("batch_size", "known: alpha"), ("is", "'is'")],
)
def test_an_unknown_parameter_is_refused_with_the_known_ones(name, answer):
    with pytest.raises(ValueError, match=f"there is no parameter '{name}'.*") as error:
        changed([plain()], {name: 3})
    assert answer in str(error.value)


def test_changes_have_words_and_a_mark():
    changes = {"d": 200, "alpha": [0.1, 1.0]}
    assert words(changes) == "d = 200, alpha = [0.1, 1.0]"
    assert mark_of(changes) == "-d-200-alpha-0.1_1.0"
