"""Public names: documented with an example that runs, called by the same words, and the only ones
that an error text recommends.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import penchant
from penchant.namespaces import NAMESPACES, public_names
from penchant.namespaces import public as value_of


def public(name: str) -> object:
    """What a name stands for; `watch` is a module that can be called like its function."""
    value = value_of(name)
    return getattr(value, name) if inspect.ismodule(value) else value


# what the base install does not bring, and whose examples need it
NEEDS = {"sklearn": {"Images", "OutputLayer", "conv_net", "dense_net", "load_images"}}


# names for authors of papers, in lab and plotting, need a sentence each, not an example
AUTHORS = ("penchant.lab.", "penchant.plotting.")
THINGS = {name: public(name) for name in public_names()}
NAMED = [n for n, thing in THINGS.items() if inspect.isclass(thing) or inspect.isroutine(thing)]
CALLABLE = [
    name
    for name in NAMED
    if not public_names()[name].startswith(AUTHORS)
    or "Examples\n---" in (public(name).__doc__ or "")
]


def document(name: str) -> str:
    return inspect.getdoc(public(name)) or ""


def section(text: str, title: str) -> str:
    """What stands under a numpydoc heading, "" where there is none."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[\w ]*\n--+\n|\Z)", text, re.M | re.S)
    return found[1] if found else ""


def documented(text: str) -> list[str]:
    """The names under Parameters, or under Attributes of a result, in their order."""
    lines = (section(text, "Parameters") + section(text, "Attributes")).splitlines()
    return [line.strip() for line in lines if re.match(r"\w", line)]


def parameters(thing: object) -> list[str]:
    """Those of the signature; a protocol is not called."""
    protocol = getattr(thing, "_is_protocol", False)
    return [] if protocol else list(inspect.signature(thing).parameters)


@pytest.mark.parametrize("name", CALLABLE)
def test_the_example_runs(name):
    for module, names in NEEDS.items():
        if name in names:
            pytest.importorskip(module)
    assert section(document(name), "Examples").startswith(">>> "), f"{name} shows no example"
    finder = doctest.DocTestFinder(recurse=False)
    (example,) = finder.find(public(name), name, module=False, globs={})
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.FAIL_FAST)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runner.run(example, out=output.append)
    assert example.examples
    assert runner.failures == 0, "".join(output)


@pytest.mark.parametrize("name", CALLABLE)
def test_the_parameters_are_documented_one_by_one_in_their_order(name):
    assert documented(document(name)) == parameters(public(name))


@pytest.mark.parametrize("name", CALLABLE)
def test_the_signature_is_readable(name):
    thing = public(name)
    if not getattr(thing, "_is_protocol", False):
        assert not re.search(r" at 0x|<class |<object", str(inspect.signature(thing)))


@pytest.mark.parametrize("name", NAMED)
def test_every_public_name_says_what_it_is(name):
    assert document(name).strip(), name


def test_a_name_stands_once():
    """The same name in two namespaces is the same thing."""
    for module in ("penchant", *(f"penchant.{name}" for name in NAMESPACES)):
        space = importlib.import_module(module)
        for name in space.__all__:
            assert getattr(space, name) is value_of(name), f"{module}.{name}"
    assert len(penchant.__all__) <= 35


def test_the_room_watch_is_called_like_its_function():
    room = importlib.import_module("penchant.watch")  # not the function, which has its name
    assert inspect.signature(room) == inspect.signature(room.watch)
    assert documented(inspect.getdoc(room) or "") == parameters(room)


def test_a_wrong_output_and_a_missing_parameter_are_seen():
    text = "One.\n\nParameters\n----------\na\n    First.\n\nExamples\n--------\n>>> 1 + 1\n3\n"
    assert documented(text) == ["a"]
    wrong = doctest.DocTestParser().get_doctest(text, {}, "wrong", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(wrong, out=lambda _: None).failed == 1


# --- one word for one thing, scales by name, one order of data ----------------------------

SCALES = ("alpha", "mu", "log_alpha")
# where a scale is no choice among three: a stop rule has one number
SCALE_IS_ALL = {"Scale"}

OLD_WORDS = {
    "step": "learning_rate",
    "step_size": "learning_rate",
    "lr": "learning_rate",
    "pace": "learning_rate",
    "rate": "weight_decay",
    "decay": "weight_decay",
    "until": "stop",
    "t_max": "stop",
    "n_steps": "steps",
    "points_per_decade": "record",
    "inputs": "dimension",
    "hidden": "width",
}
ALLOWED = {
    ("Study", "inputs"): "the data files that its cells read",
    ("watch", "step"): "the number of the step at which a user's loop begins",
    ("watch", "points_per_decade"): "there is no record rule: the loop belongs to the user",
    ("TokenTransformer", "hidden"): "its width is that of the stream, hidden that of the MLP",
}

# makers of problems, by what they need first
MAKERS = {
    "commuting_sensing": ["samples", "dimension"],
    "gaussian_sensing": ["samples", "dimension"],
    "low_rank_completion": ["samples", "dimension"],
    "majority": ["samples", "dimension"],
    "separable_points": ["samples", "dimension"],
    "sparse_recovery": ["samples", "dimension"],
    "sparse_regression": ["samples", "dimension"],
    "teacher_student": ["samples", "dimension"],
    "wide_margin": ["samples", "dimension"],
    "circle_teacher": ["samples"],  # the points lie in the plane
    "opposed_units": ["samples", "dimension"],
    "spiked_points": ["samples", "dimension"],
    "uniform_points": ["samples", "dimension"],
    "multiclass": ["X", "labels"],
    "token_selection": ["samples", "tokens", "dimension"],
    "plateau": [],  # given points
    "steep_end": [],
    "zigzag": [],
    "aligned_sensing": ["samples", "shape"],  # of two sides
    "coherent_completion": ["samples", "truth"],  # the matrix has the dimension
    "modular_arithmetic": ["modulus"],
    "multiplication_table": ["dimension"],
    "permutation_group": ["degree"],
    "three_points": ["name"],
}
DATA = {"has_images", "import_images", "load_images"}  # these read files


def signatures() -> Iterator[tuple[str, inspect.Signature]]:
    """Every public callable and every public method of a public class."""
    for name in CALLABLE:
        thing = public(name)
        yield name, inspect.signature(thing)
        if inspect.isclass(thing):
            for method in vars(thing):
                function = inspect.getattr_static(thing, method)
                if inspect.isfunction(function) and (method == "__call__" or method[0] != "_"):
                    yield f"{name}.{method}", inspect.signature(function)


def positional(signature: inspect.Signature) -> list[str]:
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [name for name, one in signature.parameters.items() if one.kind in kinds]


def test_a_scale_is_given_by_its_name():
    for name, signature in signatures():
        found = [word for word in positional(signature) if word in SCALES]
        assert not found or name in SCALE_IS_ALL, f"{name}: {found} must be keyword-only"


def test_every_scale_that_can_be_given_as_alpha_can_be_given_as_its_logarithm():
    """Scales beyond float64 need it; the nets on tokens and images are float32."""
    single = {"ImageModel", "TokenQuadratic"}
    for name, signature in signatures():
        if "alpha" in signature.parameters and name not in single:
            assert "log_alpha" in signature.parameters, name


def test_one_word_for_one_thing():
    used = set()
    for name, signature in signatures():
        for word in signature.parameters.keys() & OLD_WORDS.keys():
            assert (name, word) in ALLOWED, f"{name}: {word} is called {OLD_WORDS[word]} here"
            used.add((name, word))
    assert used == ALLOWED.keys(), f"no longer needed: {ALLOWED.keys() - used}"


def test_every_maker_of_a_problem_is_listed():
    found = {
        name
        for name in CALLABLE
        if public_names()[name].startswith("penchant.problems.")
        and inspect.isfunction(public(name))
    }
    assert found == MAKERS.keys() | DATA


@pytest.mark.parametrize("name", MAKERS)
def test_makers_take_samples_and_dimension_and_then_names(name):
    signature = inspect.signature(public(name))
    assert positional(signature) == MAKERS[name]
    words = list(signature.parameters)
    if "seed" in words:
        assert words[-1] == "seed"
    for noise in {"noise", "snr"} & set(words):
        assert words[-2:] == [noise, "seed"]


# --- error texts ---------------------------------------------------------------------------

SOURCE = Path(penchant.__file__).parent
# two capitals as in DiagonalNet, or a call as in Steps(100)
CODE = re.compile(r"\b([A-Z][a-z0-9]+[A-Z]\w*)\b|\b([A-Z]\w+)\(")
OTHERS = {"PyTorch", "NumPy", "SciPy", "TensorBoard", "NaN"}  # names of other people's things


def texts(tree):
    """(line, text) of everything that is raised, or is the sentence of an Outcome."""
    for node in ast.walk(tree):
        called = node.exc if isinstance(node, ast.Raise) else node
        is_outcome = isinstance(called, ast.Call) and getattr(called.func, "id", "") == "Outcome"
        if called is not None and (isinstance(node, ast.Raise) or is_outcome):
            for part in ast.walk(called):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def named(text):
    """Names that look like code, without the one that complains, as in 'Name.method: must be'."""
    message = re.sub(r"^[A-Z]\w+(\.\w+)?: ", "", text)
    return {one or other for one, other in CODE.findall(message)} - OTHERS


def test_error_texts_recommend_public_names_only():
    hidden = []
    for file in sorted(SOURCE.rglob("*.py")):
        for line, text in texts(ast.parse(file.read_text())):
            hidden += [f"{file.name}:{line} {name}" for name in named(text) - set(public_names())]
    assert not hidden, "\n".join(hidden)


def test_the_search_can_fail():
    source = 'raise ValueError(f"{who}: must be TokenPairs, got {x}; give Steps(3) or a Model")'
    found = [name for _, text in texts(ast.parse(source)) for name in named(text)]
    assert sorted(found) == ["Steps", "TokenPairs"]
    sentence = 'Outcome(Kind.STALLED, "use ParameterFlow")'
    assert [named(text) for _, text in texts(ast.parse(sentence))] == [{"ParameterFlow"}]
