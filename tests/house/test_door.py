"""An error of an inner check gets the name of the function that was called, at its door."""

import ast
import inspect
import pickle
import threading
import traceback
from pathlib import Path

import pytest

import penchant
from penchant import Outcome
from penchant.door import CALLER, Invalid, Nameless, NotFound, door, speaking_as
from penchant.lab import Kind, door_as
from penchant.records import Unsolved

SOURCES = sorted(Path(penchant.__file__).parents[1].glob("penchant*/**/*.py"))


def check(value):
    if value < 0:
        raise Invalid(f"value must be >= 0, got {value}")
    return value


@door
def outer(value: float, *, twice: bool = False) -> float:
    """The value, or twice the value."""
    return (1 + twice) * check(value)


@door
def around(value):
    return outer(value)


class Base:
    @door
    def __init__(self, value):
        self.value = check(value)

    @door_as(lambda base: f"the {base.value}")
    def less(self, value):
        return check(self.value - value)


class Derived(Base):
    pass


@door
def makes(value):
    return Derived(value)


def refused(call, *args, **kwargs):
    with pytest.raises(ValueError, match=r"\w") as info:
        call(*args, **kwargs)
    return info.value


@pytest.mark.parametrize(
    ("call", "name"),
    [(outer, "outer"), (around, "outer"), (Derived, "Derived"), (makes, "Derived")],
)
def test_the_innermost_door_names_the_error(call, name):
    assert str(refused(call, -1)) == f"{name}: value must be >= 0, got -1"


def test_without_a_door_there_is_no_name():
    assert str(refused(check, -1)) == "value must be >= 0, got -1"


@pytest.mark.parametrize("given", [((2,), {}), ((), {"value": 2})], ids=["by place", "by name"])
def test_a_door_may_ask_the_first_argument_for_the_name(given):
    args, kwargs = given
    assert str(refused(Base(1).less, *args, **kwargs)).startswith("the 1: value must be")


def test_what_is_no_refusal_passes_as_it_is():
    @door
    def other():
        raise ValueError("of another library")

    assert str(refused(other)) == "of another library"


def test_a_user_sees_a_plain_value_error_that_can_be_pickled():
    error = refused(outer, -1)
    assert type(error) is ValueError
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_the_traceback_leads_to_the_check_and_tells_one_story():
    text = "".join(traceback.format_exception(refused(outer, -1)))
    assert "in check" in text
    assert "During handling" not in text
    assert "direct cause" not in text
    assert text.rstrip().endswith("ValueError: outer: value must be >= 0, got -1")


def test_the_cause_of_a_refusal_stays():
    @door
    def caused():
        try:
            {}["key"]
        except KeyError as reason:
            raise Invalid("no such key") from reason

    assert isinstance(refused(caused).__cause__, KeyError)


def test_a_decorated_function_looks_like_itself():
    assert list(inspect.signature(outer).parameters) == ["value", "twice"]
    assert (outer.__name__, outer.__doc__) == ("outer", "The value, or twice the value.")
    assert pickle.loads(pickle.dumps(outer)) is outer
    assert outer(2, twice=True) == 4


def test_threads_do_not_mix_their_names():
    seen = {"outer": set(), "Derived": set()}

    def run(call, name):
        seen[name] |= {str(refused(call, -1)).partition(":")[0] for _ in range(200)}

    threads = [
        threading.Thread(target=run, args=pair) for pair in ((outer, "outer"), (makes, "Derived"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {"outer": {"outer"}, "Derived": {"Derived"}}


def test_a_block_may_speak_in_a_name_of_its_own():
    @door
    def whole():
        with speaking_as("a part"):
            check(-1)

    assert str(refused(whole)) == "a part: value must be >= 0, got -1"


@pytest.mark.parametrize(
    ("sentence", "seen"),
    [(f"{CALLER} needs more", "it needs more"), (f"call {CALLER}(x)", "it: call it(x)")],
)
def test_a_sentence_may_hold_the_name(sentence, seen):
    @door_as("it")
    def short():
        raise Invalid(sentence)

    assert str(refused(short)) == seen


def test_other_errors_keep_their_kind_and_what_they_carry():
    outcome = Outcome(Kind.STALLED, "no step")

    @door
    def absent():
        raise NotFound("there is no file")

    @door
    def stalled():
        raise Unsolved(outcome, result=3)

    with pytest.raises(FileNotFoundError, match=r"^absent: there is no file$"):
        absent()
    with pytest.raises(penchant.NumericalError, match=r"^stalled: stalled: no step$") as info:
        stalled()
    assert (info.value.outcome, info.value.result) == (outcome, 3)
    assert not isinstance(info.value, Nameless)


def test_an_error_of_a_function_of_the_user_gets_no_name():
    def rate(step):
        raise ValueError("my own")

    def follow(model, X):
        raise ValueError("my own")

    model = penchant.FunctionModel(follow, [1.0])
    problem = penchant.Regression([[1.0, 2.0]], [1.0])
    method = penchant.GradientDescent(1e-3)
    with pytest.raises(ValueError, match=r"^my own"):
        penchant.train(model, problem, method, stop=penchant.Steps(1))
    with pytest.raises(ValueError, match=r"^my own"):
        penchant.lab.drawn(rate, lambda instance: True, 0)


def parameters_named(name, source):
    """The lines of functions that take a parameter of this name."""
    return [
        argument.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if argument.arg == name
    ]


def test_no_function_takes_the_name_of_its_caller():
    assert len(SOURCES) > 400
    found = {path.name: parameters_named("who", path.read_text("utf-8")) for path in SOURCES}
    assert not {name: lines for name, lines in found.items() if lines}


@pytest.mark.parametrize("taken", ["a, who", "*, who=1", "who, /"])
def test_the_search_finds_such_a_parameter(taken):
    assert parameters_named("who", f"def f({taken}): ...") == [1]
    assert parameters_named("who", "def f(whole, whom): ...") == []
