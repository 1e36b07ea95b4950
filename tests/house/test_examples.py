"""The docstring of every public name: each parameter is named, and its example runs."""

from __future__ import annotations

import doctest
import inspect
import re
import warnings

import pytest

import tacit

# what the base install does not bring, and whose examples need it
NEEDS = {"sklearn": {"Images", "OutputLayer", "conv_net", "dense_net", "load_images"}}


def document(name: str) -> str:
    return inspect.getdoc(getattr(tacit, name)) or ""


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


@pytest.mark.parametrize("name", tacit.__all__)
def test_the_example_runs(name):
    for module, names in NEEDS.items():
        if name in names:
            pytest.importorskip(module)
    assert section(document(name), "Examples").startswith(">>> "), f"{name} shows no example"
    finder = doctest.DocTestFinder(recurse=False)
    (example,) = finder.find(getattr(tacit, name), name, module=False, globs={})
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.FAIL_FAST)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runner.run(example, out=said.append)
    assert example.examples
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize("name", tacit.__all__)
def test_the_parameters_are_documented_one_by_one_in_their_order(name):
    assert documented(document(name)) == parameters(getattr(tacit, name))


@pytest.mark.parametrize("name", tacit.__all__)
def test_the_signature_is_readable(name):
    thing = getattr(tacit, name)
    if not getattr(thing, "_is_protocol", False):
        assert not re.search(r" at 0x|<class |<object", str(inspect.signature(thing)))


def test_the_room_watch_is_called_like_its_function():
    import tacit.watch as room

    assert inspect.signature(room) == inspect.signature(room.watch)
    assert documented(inspect.getdoc(room) or "") == parameters(room)


def test_a_wrong_output_and_a_missing_parameter_are_seen():
    text = "One.\n\nParameters\n----------\na\n    First.\n\nExamples\n--------\n>>> 1 + 1\n3\n"
    assert documented(text) == ["a"]
    wrong = doctest.DocTestParser().get_doctest(text, {}, "wrong", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(wrong, out=lambda _: None).failed == 1
