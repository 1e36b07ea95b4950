"""Every `while` of the source has a bound: it counts, it empties a queue, or it asks `Turns`."""

import ast
import math
from pathlib import Path

import pytest

import penchant
from penchant.lab import Turns
from penchant.limits import Endless, TimeLimit

SOURCE = Path(penchant.__file__).parent
#: loops that wait for another process, and what ends them
WAITING = {
    "lab/studies/engines/pool.py": "no worker of the pool is busy; the parent process is gone",
}
TAKING = {"pop", "popleft", "popitem", "remove"}


def names(tree):
    return {ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.Name | ast.Attribute)}


def counts(node, known):
    """Whether a statement moves a number of the condition by a constant other than zero."""
    step = node.value.value if isinstance(node.value, ast.Constant) else 0
    return ast.unparse(node.target) in known and isinstance(step, int) and step > 0


def bounded(loop):
    if isinstance(loop.test, ast.Constant):
        return False  # `for _ in Turns(...)` says the bound at the head
    if ast.unparse(loop.body[0]).endswith(".take()"):
        return True
    known = names(loop.test)
    for node in ast.walk(ast.Module(loop.body, [])):
        if isinstance(node, ast.AugAssign) and counts(node, known):
            return True
        takes = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if takes and node.func.attr in TAKING and ast.unparse(node.func.value) in known:
            return True
    return False


def endless(source):
    """The lines of loops without a bound."""
    loops = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.While)]
    return [loop.lineno for loop in loops if not bounded(loop)]


def shared(source):
    """Functions that give one name to the turns of two loops, of which one may be in the other."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            made = [
                ast.unparse(node.targets[0])
                for node in ast.walk(function)
                if isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and ast.unparse(node.value.func) == "Turns"
            ]
            found += [function.name] * (len(made) > len(set(made)))
    return found


FILES = {str(path.relative_to(SOURCE)): path for path in sorted(SOURCE.rglob("*.py"))}


@pytest.mark.parametrize("name", [name for name in FILES if "while " in FILES[name].read_text()])
def test_every_loop_has_a_bound(name):
    source = FILES[name].read_text()
    lines = endless(source)
    assert not lines or name in WAITING, f"{name}, line {lines}: use Turns of penchant.limits"
    assert not shared(source)


def test_the_list_of_waiting_loops_is_no_longer_than_it_must_be():
    assert all(endless(FILES[name].read_text()) for name in WAITING)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("while True:\n    step()", True),
        ("while not x > 1:\n    x = f(x)", True),
        ("while x < 1:\n    x += dx", True),  # dx may be zero or not a number
        ("while k < 10:\n    k += 1", False),
        ("while todo:\n    todo.pop()", False),
        ("turns = Turns(9, 'it')\nwhile not x > 1:\n    turns.take()\n    x = f(x)", False),
        ("turns = Turns(9, 'it')\nwhile True:\n    turns.take()\n    x = f(x)", True),
    ],
)
def test_loops_without_a_bound_are_found(source, found):
    assert bool(endless(source)) is found


def test_turns_end_a_loop_that_does_not_end_by_itself():
    turns, x = Turns(100, "the search"), math.nan

    def search():
        while not x > 1:
            turns.take()

    with pytest.raises(Endless, match="the search did not end after 100 turns"):
        search()
    assert turns.taken == 101


def test_a_loop_over_turns_ends_by_itself_or_by_the_bound():
    for turn in Turns(3, "the search"):
        if turn == 2:
            break
    assert turn == 2
    with pytest.raises(Endless, match="the search did not end after 3 turns"):
        list(Turns(3, "the search"))


def test_a_time_limit_is_spent_after_its_time():
    assert TimeLimit(1e-9).spent
    assert not TimeLimit(60).spent
    assert not TimeLimit(None).spent
    with pytest.raises(ValueError, match=r"^max_seconds must be > 0"):
        TimeLimit(-1.0)
