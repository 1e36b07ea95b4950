"""Did you mean: names and arguments that others use lead to ours, in one sentence."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

import penchant
from penchant.namespaces import public, public_names
from penchant.suggestions import ARGUMENTS, NAMES, refuse_unknown

AUTHORS = ("penchant.lab.", "penchant.plotting.")  # read by those who write claims
# abstract, or a class of which users get instances only
OTHERS = {"Model", "Separable", "TokenNet", "Difference", "Unbiased", "MatrixProblem", "Oracle"}
OTHERS |= {"Stop", "Term", "Regularizer", "SpectralFunction", "NumericalError"}
CALLED = sorted(
    name
    for name, path in public_names().items()
    if not path.startswith(AUTHORS) and name not in OTHERS and callable(public(name))
)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("lasso", "penchant.L1"),
        ("Lasso", "penchant.L1"),
        ("AdamW", "penchant.Adam"),
        ("SGD", "penchant.GradientDescent"),
        ("ntk", "penchant.measures.tangent_kernel"),
        ("NTK", "penchant.measures.tangent_kernel"),
        ("basis_pursuit", "penchant.L1 or penchant.interpolate"),
        ("Diagonalnet", "penchant.DiagonalNet"),
        ("tangent_kernel", "penchant.measures.tangent_kernel"),
        ("sparse_regresion", "penchant.problems.sparse_regression"),
    ],
)
def test_an_unknown_name_leads_to_ours(name, answer):
    for module in (penchant, penchant.regularizers):
        if not hasattr(module, name):
            with pytest.raises(AttributeError) as error:
                getattr(module, name)
            assert f"did you mean {answer}" in str(error.value)


@pytest.mark.parametrize("name", ["zzqqxxkk", "_repr_png_", "__wrapped__"])
def test_a_name_that_is_like_none_gets_no_advice(name):
    with pytest.raises(AttributeError) as error:
        getattr(penchant, name)
    assert str(error.value) == f"module 'penchant' has no attribute {name!r}"


def problem():
    return penchant.problems.sparse_regression(10, 20, sparsity=2)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: penchant.GradientDescent(lr=0.1), "GradientDescent: … 'lr'; … learning_rate?"),
        (lambda: penchant.Adam(0.1, betas=1), "Adam: … 'betas'; … mean_decay or square_decay?"),
        (lambda: penchant.DiagonalNet(layers=2), "DiagonalNet: … 'layers'; … depth?"),
        (lambda: penchant.DiagonalNet(2, alhpa=1), "DiagonalNet: … 'alhpa'; … alpha"),
        (lambda: penchant.interpolate(problem(), penalty=1), "interpolate: … 'penalty'; … reg"),
        (lambda: penchant.train(1, problem(), 2, epochs=3), "train: … 'epochs'; … stop?"),
        (lambda: penchant.train(1, problem(), 2, lr=3), "train: … 'lr'; … method?"),
        (lambda: penchant.plot(problem(), titel=3), "plot: … 'titel'; "),
        (lambda: penchant.L1(weight=3), "L1: … 'weight'; it takes none"),
    ],
)
def test_an_unknown_argument_leads_to_ours(call, sentence):
    with pytest.raises(TypeError) as error:
        call()
    told = sentence.replace("'; … ", "'; did you mean ").replace("…", "unexpected keyword argument")
    assert str(error.value).startswith(told)


@pytest.mark.parametrize("name", CALLED)
def test_every_public_callable_says_which_arguments_it_takes(name):
    called = public(name)
    if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(called).parameters.values()):
        pytest.skip("it passes on all arguments")
    with pytest.raises(TypeError, match=r"'zzqqxxkk'; (it takes|did you mean)"):
        called(**{"zzqqxxkk": 1})


def test_errors_inside_a_call_are_left_as_they_are():
    def broken(samples):
        return samples + "text"

    with pytest.raises(TypeError, match="unsupported operand"):
        penchant.lab.door_as("caller")(broken)(samples=1)
    refuse_unknown(broken, ["samples"])  # the control: nothing to refuse


def test_the_tables_lead_to_names_that_exist():
    paths = public_names()
    assert {name for names in NAMES.values() for name in names} <= set(paths)
    parameters = {
        parameter
        for name in paths
        if callable(public(name)) and not inspect.isabstract(public(name))
        for parameter in _parameters(public(name))
    }
    assert {name for names in ARGUMENTS.values() for name in names} <= parameters
    for table in (NAMES, ARGUMENTS):
        assert all(word == word.lower().replace("_", "") for word in table)


def _parameters(called):
    try:
        return inspect.signature(called).parameters
    except (TypeError, ValueError):
        return ()


def test_records_are_copied_pickled_and_described_as_before():
    method = penchant.GradientDescent(0.1, momentum=0.5)
    for other in (copy.deepcopy(method), pickle.loads(pickle.dumps(method))):
        assert other == method
    assert "learning_rate" in inspect.signature(penchant.GradientDescent).parameters
    assert "args" not in inspect.signature(penchant.DiagonalNet).parameters
