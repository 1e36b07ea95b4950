"""Pairs of tokens labelled by an operation: arithmetic over Z/p, products of permutations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from penchant.arguments import flag, integer, one_of, real
from penchant.description import with_recipe
from penchant.door import Invalid, door
from penchant.problems.arithmetic import Integers, Mask, TokenPairs, all_pairs, split

Operation = Callable[[Integers, Integers], Any]  # of two integer arrays, before "mod p"

OPERATIONS: dict[str, Operation] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "x^2+y^2": lambda x, y: x**2 + y**2,
    "x^2+xy+y^2": lambda x, y: x**2 + x * y + y**2,
    "x^3+xy": lambda x, y: x**3 + x * y,
}
DIVISION = "/"
LARGEST = 2**11  # pairs are stored one by one, and cubes must stay exact


@with_recipe
@door
def modular_arithmetic(
    modulus: int,
    *,
    operation: str | Operation = "+",
    fraction: float = 0.4,
    ordered: bool = True,
    seed: int = 0,
) -> TokenPairs:
    """Pairs (x, y) over Z/p with the class x operation y mod p, a random `fraction` for training.

    Addition modulo 97 with fraction 0.4 is the usual case (Lyu et al. 2023, Notsawo et al. 2025);
    about that fraction of its test pairs are twins of training pairs.

    Parameters
    ----------
    modulus
        The number p of tokens.
    operation
        "+", "-", "*", "/" (p prime, y not 0), "x^2+y^2", "x^2+xy+y^2", "x^3+xy" or a function
        of two integer arrays.
    fraction
        The share of the pairs that are used for training.
    ordered
        (x, y) and (y, x) are two pairs, and the second may be the twin of the first. With False
        only x <= y occurs, which needs a commutative operation and leaves no twins.
    seed
        The seed of all random numbers.

    Returns
    -------
    TokenPairs
        The pairs and their classes.

    References
    ----------
    .. [1] Notsawo et al. (2025), Grokking Beyond the Euclidean Norm of Model Parameters.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.modular_arithmetic(7)
    >>> problem.tokens, problem.classes, problem.samples
    (7, 7, 20)
    >>> problem = penchant.problems.modular_arithmetic(7, operation="x^2+y^2", fraction=0.7)
    >>> a, b = problem.pairs.T
    >>> bool((problem.labels == (a**2 + b**2) % 7).all())
    True
    """
    modulus = integer("modulus", modulus, least=2)
    if modulus > LARGEST:
        raise Invalid(f"modulus must be at most {LARGEST}, got {modulus}")
    name, pairs, labels = _table(operation, modulus)
    name = f"{name} mod {modulus}"
    return _split_pairs(
        pairs, labels, name, tokens=modulus, fraction=fraction, ordered=ordered, seed=seed
    )


def _split_pairs(
    pairs: Integers,
    labels: Integers,
    name: str,
    *,
    tokens: int,
    fraction: float,
    ordered: bool,
    seed: int,
) -> TokenPairs:
    """The pairs, of which a random `fraction` is for training; every class must be there."""
    fraction = real("fraction", fraction, rule="a number between 0 and 1")
    seed = integer("seed", seed, least=0)
    if not flag("ordered", ordered):
        pairs, labels = _unordered(tokens, pairs, labels)
    train = split(len(pairs), fraction, seed)
    _every_class(labels, train, fraction)
    kind = "pairs" if ordered else "unordered pairs"
    text = f"{name}, {train.sum()} of {len(pairs)} {kind} for training, seed {seed}"
    return TokenPairs(tokens, tokens, pairs, labels, train, text)


def _table(operation: str | Operation, p: int) -> tuple[str, Integers, Integers]:
    """(name, pairs, labels) of an operation."""
    pairs = all_pairs(p)
    if callable(operation):
        name = getattr(operation, "__name__", "a function")
        return name, pairs, _labels(operation, pairs, p)
    name = one_of("operation", operation, [*OPERATIONS, DIVISION])
    if name != DIVISION:
        return name, pairs, _labels(OPERATIONS[name], pairs, p)
    pairs = pairs[pairs[:, 1] != 0]
    return name, pairs, pairs[:, 0] * _inverses(p)[pairs[:, 1]] % p


def _labels(operation: Operation, pairs: Integers, p: int) -> Integers:
    labels = np.asarray(operation(pairs[:, 0], pairs[:, 1]))
    if labels.dtype.kind not in "iu" or labels.shape != (len(pairs),):
        raise Invalid(
            f"operation must give one integer for every pair, got {labels.dtype} of shape "
            f"{labels.shape} for {len(pairs)} pairs; write it with +, -, * and ** of its arguments"
        )
    return (labels % p).astype(np.int64)


def _inverses(p: int) -> Integers:
    """1/y mod p for y = 0 .. p-1, with 0 for y = 0."""
    factor = next((q for q in range(2, int(p**0.5) + 1) if p % q == 0), None)
    if factor is not None:
        raise Invalid(
            f"division needs a prime modulus, got {p} = {factor} * {p // factor}, where "
            f"{factor} has no inverse; take a prime"
        )
    return np.array([0, *(pow(y, -1, p) for y in range(1, p))], dtype=np.int64)


def _unordered(tokens: int, pairs: Integers, labels: Integers) -> tuple[Integers, Integers]:
    """The pairs x <= y and their labels."""
    whole = np.full((tokens, tokens), -1)
    whole[pairs[:, 0], pairs[:, 1]] = labels
    differ = np.argwhere(whole != whole.T)
    if len(differ):
        x, y = differ[0]
        raise Invalid(
            f"ordered=False needs a commutative operation, but ({x}, {y}) and ({y}, {x}) "
            "have different classes; keep ordered=True"
        )
    unordered = pairs[:, 0] <= pairs[:, 1]
    return pairs[unordered], labels[unordered]


def _every_class(labels: Integers, train: Mask, fraction: float) -> None:
    missing = np.setdiff1d(labels, labels[train])
    if len(missing):
        raise Invalid(
            f"fraction {fraction:g} leaves {len(missing)} of {len(np.unique(labels))} "
            f"classes out of training (class {missing[0]} first); raise it or change the seed"
        )


PRODUCTS = ("xy", "xyx^-1", "xyx")
LARGEST_DEGREE = 6  # S_6 has 518,400 pairs, S_7 25 million


def permutations(degree: int) -> Integers:
    """All permutations of 0 .. degree-1, one per row in lexicographic order: token k is row k."""
    return np.array(list(itertools.permutations(range(degree))), dtype=np.int64)


@with_recipe
@door
def permutation_group(
    degree: int,
    *,
    operation: str = "xy",
    fraction: float = 0.5,
    ordered: bool = True,
    seed: int = 0,
) -> TokenPairs:
    """Pairs (x, y) of S_n, n = `degree`, with their product as the class, split at random.

    (xy)(i) = x(y(i)). Tokens number the rows of `permutations(degree)`. Twins of "xy" are the
    pairs that commute.

    Parameters
    ----------
    degree
        The number n of permuted elements.
    operation
        "xy", the conjugation "xyx^-1" or "xyx".
    fraction
        The share of the pairs that are used for training.
    ordered
        (x, y) and (y, x) are two pairs; with False only x <= y occurs.
    seed
        The seed of all random numbers.

    Returns
    -------
    TokenPairs
        The pairs and their classes.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.permutation_group(degree=3)
    >>> problem.tokens, len(problem.pairs)
    (6, 36)
    """
    degree = integer("degree", degree, least=2)
    if degree > LARGEST_DEGREE:
        raise Invalid(f"degree must be at most {LARGEST_DEGREE}, got {degree}")
    operation = one_of("operation", operation, PRODUCTS)
    table = _products(degree, operation)
    pairs, name = np.argwhere(table >= 0), f"{operation} in S_{degree}"
    labels, tokens = table.ravel(), len(table)
    return _split_pairs(
        pairs, labels, name, tokens=tokens, fraction=fraction, ordered=ordered, seed=seed
    )


def _products(degree: int, operation: str) -> Integers:
    """The number of x y, x y x^-1 or x y x in row x and column y."""
    rows = permutations(degree)
    table = np.empty((len(rows), len(rows)), dtype=np.int64)
    for number, x in enumerate(rows):
        product = x[rows]  # row y holds i -> x(y(i))
        if operation != "xy":
            product = product[:, np.argsort(x) if operation == "xyx^-1" else x]
        table[number] = _numbers(product)
    return table


def _numbers(rows: Integers) -> Integers:
    """The lexicographic number of every row, from its Lehmer code."""
    degree = rows.shape[1]
    smaller = [(rows[:, i + 1 :] < rows[:, [i]]).sum(axis=1) for i in range(degree)]
    place_values = [math.factorial(degree - 1 - i) for i in range(degree)]
    return np.stack(smaller, axis=1) @ np.array(place_values)
