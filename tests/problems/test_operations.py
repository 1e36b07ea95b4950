"""Operations over Z/p and products of permutations by brute force; twins; what is refused."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant.problems import modular_arithmetic, permutation_group
from penchant.problems.operations import permutations
from refusals import refusals

SLOW = {
    "+": lambda x, y, p: (x + y) % p,
    "-": lambda x, y, p: (x - y) % p,
    "*": lambda x, y, p: (x * y) % p,
    "/": lambda x, y, p: next(z for z in range(p) if z * y % p == x),
    "x^2+y^2": lambda x, y, p: (x * x + y * y) % p,
    "x^2+xy+y^2": lambda x, y, p: (x * x + x * y + y * y) % p,
    "x^3+xy": lambda x, y, p: (x * x * x + x * y) % p,
}


def table(problem):
    return {tuple(pair): label for pair, label in zip(problem.pairs.tolist(), problem.labels,
                                                      strict=True)}  # fmt: skip


@pytest.mark.parametrize("operation", SLOW)
def test_operations_are_those_of_counting(operation):
    found = table(modular_arithmetic(13, operation=operation, fraction=0.6, seed=2))
    pairs = [(x, y) for x, y in itertools.product(range(13), repeat=2) if operation != "/" or y]
    assert list(found) == pairs
    assert all(found[x, y] == SLOW[operation](x, y, 13) for x, y in pairs)
    others = [name for name in SLOW if name != operation]  # the control: no two are the same
    assert all(any(found[pair] != SLOW[name](*pair, 13) for pair in pairs if pair[1])
               for name in others)  # fmt: skip


@settings(deadline=None, derandomize=True, max_examples=20)
@given(st.sampled_from([5, 7, 13, 29]), st.integers(0, 50))
def test_division_undoes_multiplication_and_is_that_of_fractions(p, seed):
    found = table(modular_arithmetic(p, operation="/", fraction=0.9, seed=seed))
    for (x, y), z in found.items():
        assert z * y % p == x
        assert (Fraction(x, y) - z).numerator % p == 0


def test_the_operation_is_addition_unless_another_is_named():
    problem = modular_arithmetic(13, fraction=0.5, seed=4)
    assert all(label == (x + y) % 13 for (x, y), label in table(problem).items())
    assert json.loads(json.dumps(problem.recipe)) == {
        "is": "modular_arithmetic", "operation": "+", "modulus": 13, "fraction": 0.5,
        "seed": 4, "ordered": True,
    }  # fmt: skip


def test_a_polynomial_may_be_a_function():
    problem = modular_arithmetic(13, operation=lambda x, y: 3 * x**2 - y - 5, fraction=0.6)
    assert all(label == (3 * x * x - y - 5) % 13 for (x, y), label in table(problem).items())
    assert problem.recipe is None  # it cannot be made again from its name
    named = modular_arithmetic(13, operation="x^2+y^2", fraction=0.6)
    same = modular_arithmetic(13, operation=lambda x, y: x**2 + y**2, fraction=0.6)
    np.testing.assert_array_equal(named.labels, same.labels)


def test_a_class_of_one_pair_may_be_left_out():
    """x^2 + y^2 = 0 has only the solution (0, 0) where -1 is no square, as mod 7."""
    with pytest.raises(ValueError, match=r"leaves 1 of 7 classes .* \(class 0 first\)"):
        modular_arithmetic(7, operation="x^2+y^2", fraction=0.6, seed=0)
    problem = modular_arithmetic(7, operation="x^2+y^2", fraction=0.6, seed=1)
    assert problem.train[0]
    assert np.bincount(problem.labels)[0] == 1


@pytest.mark.parametrize(("operation", "share"), [("+", 0.5), ("*", 0.5), ("-", 0.0)])
def test_twins_are_counted_pair_by_pair(operation, share):
    problem = modular_arithmetic(17, operation=operation, fraction=0.5, seed=1)
    known = {pair for pair, train in zip(table(problem), problem.train, strict=True) if train}
    labels = table(problem)
    slow = [(x, y) not in known and (y, x) in known and labels[y, x] == labels[x, y]
            for x, y in labels]  # fmt: skip
    np.testing.assert_array_equal(problem.twins, slow)
    assert problem.twins.sum() / problem.test.sum() == pytest.approx(share, abs=0.06)


def test_unordered_pairs_have_no_twins_and_the_same_labels():
    unordered, whole = (
        modular_arithmetic(11, operation="+", fraction=0.6, ordered=False),
        modular_arithmetic(11),
    )
    assert len(unordered.pairs) == 66
    assert (unordered.pairs[:, 0] <= unordered.pairs[:, 1]).all()
    assert all(table(whole)[pair] == label for pair, label in table(unordered).items())
    assert not unordered.twins.any()
    assert modular_arithmetic(11, operation="+", fraction=0.6).twins.any()  # the control
    assert "unordered" in unordered.description


def compose(x, y):
    return tuple(x[i] for i in y)


def inverse(x):
    return tuple(sorted(range(len(x)), key=lambda i: x[i]))


@pytest.mark.parametrize(
    ("operation", "slow"),
    [
        ("xy", compose),
        ("xyx^-1", lambda x, y: compose(compose(x, y), inverse(x))),
        ("xyx", lambda x, y: compose(compose(x, y), x)),
    ],
)
@pytest.mark.parametrize("degree", [3, 4])
def test_products_of_permutations(operation, slow, degree):
    problem = permutation_group(degree, operation=operation, fraction=0.7, seed=1)
    elements = list(itertools.permutations(range(degree)))
    np.testing.assert_array_equal(permutations(degree), elements)
    assert problem.tokens == problem.classes == math.factorial(degree)
    for (a, b), label in table(problem).items():
        assert elements[label] == slow(elements[a], elements[b])


def test_the_table_of_a_group_is_a_latin_square_and_conjugation_is_not():
    def rows(operation):
        return permutation_group(4, operation=operation, fraction=0.9).labels.reshape(24, 24)

    square = rows("xy")
    assert all(len(set(line)) == 24 for line in [*square, *square.T])
    np.testing.assert_array_equal(square[0], np.arange(24))  # the identity is token 0
    assert not all(len(set(line)) == 24 for line in rows("xyx^-1").T)


def test_twins_of_a_group_commute():
    problem = permutation_group(4, operation="xy", fraction=0.6, seed=3)
    elements = list(itertools.permutations(range(4)))
    twins = problem.pairs[problem.twins].tolist()
    assert twins
    assert all(compose(elements[a], elements[b]) == compose(elements[b], elements[a])
               for a, b in twins)  # fmt: skip
    share = problem.twins.sum() / problem.test.sum()
    assert share < 0.2 < modular_arithmetic(24, fraction=0.6).twins.sum() / (0.4 * 576)


def halves(x, y):
    return (x + y) / 2


test_wrong_input_is_refused_in_one_sentence = refusals(
    (lambda: modular_arithmetic(91, operation="/"), r"prime modulus, got 91 = 7 \* 13.*no inverse"),
    (lambda: modular_arithmetic(11, operation="^"), r"unknown operation '\^'; "),
    (lambda: modular_arithmetic(11, operation="x^2+y^3"), r"did you mean .*x\^2\+y\^2"),
    (
        lambda: modular_arithmetic(97, operation="+", fraction=0.005),
        r"fraction 0.005 leaves \d+ of 97 classes out of training \(class \d+ first\); raise",
    ),
    (lambda: modular_arithmetic(1, operation="+"), "modulus must be at least 2, got 1"),
    (lambda: modular_arithmetic(10**6, operation="+"), "modulus must be at most 2048, got 1000000"),
    (
        lambda: modular_arithmetic(7, operation="+", fraction=1.0),
        "leave training and test pairs among 49",
    ),
    (
        lambda: modular_arithmetic(7, operation="+", fraction=math.nan),
        "fraction must be a number between 0 and 1",
    ),
    (
        lambda: modular_arithmetic(7, operation="-", fraction=0.5, ordered=False),
        r"commutative operation, but \(0, 1\) and \(1, 0\) have different classes",
    ),
    (
        lambda: modular_arithmetic(7, operation="+", fraction=0.5, ordered=2),
        "ordered must be True or False",
    ),
    (lambda: modular_arithmetic(7, operation=halves), "one integer for every pair, got float64"),
    (lambda: modular_arithmetic(7, operation=lambda x, y: 3), r"got int64 of shape \(\)"),
    (lambda: permutation_group(1), "degree must be at least 2, got 1"),
    (lambda: permutation_group(7), "degree must be at most 6, got 7"),
    (lambda: permutation_group(3, operation="yx"), "unknown operation 'yx'"),
    (lambda: permutation_group(4, fraction=0.02), "leaves .* of 24 classes out of training"),
    (lambda: permutation_group(3, ordered=False), "needs a commutative operation"),
)
