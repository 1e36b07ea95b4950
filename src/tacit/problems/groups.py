"""Pairs of permutations with their product as the class: the symmetric groups S_n."""

from __future__ import annotations

import itertools
import math

import numpy as np

from tacit.arguments import integer, one_of
from tacit.problems.arithmetic import Integers, TokenPairs
from tacit.problems.operations import labelled_pairs

PRODUCTS = ("xy", "xyx^-1", "xyx")
LARGEST = 6  # S_6 has 518,400 pairs, S_7 25 million


def permutations(degree: int) -> Integers:
    """All permutations of 0 .. degree-1, one per row in lexicographic order: token k is row k."""
    return np.array(list(itertools.permutations(range(degree))), dtype=np.int64)


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
        The number n of what is permuted.
    operation
        "xy", the conjugation "xyx^-1" or "xyx".
    fraction
        The share of the pairs that is for training.
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
    >>> import tacit
    >>> problem = tacit.permutation_group(degree=3)
    >>> problem.tokens, len(problem.pairs)
    (6, 36)
    """
    who = "permutation_group"
    degree = integer(who, "degree", degree, least=2)
    if degree > LARGEST:
        raise ValueError(f"{who}: degree must be at most {LARGEST}, got {degree}")
    operation = one_of(who, "operation", operation, PRODUCTS)
    table = _products(degree, operation)
    pairs = np.argwhere(table >= 0)
    recipe = {"generator": who, "degree": degree, "operation": operation}
    return labelled_pairs(
        who,
        (len(table), pairs, table.ravel()),
        (f"{operation} in S_{degree}", recipe),
        (fraction, seed, ordered),
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
    places = [math.factorial(degree - 1 - i) for i in range(degree)]
    return np.stack(smaller, axis=1) @ np.array(places)
