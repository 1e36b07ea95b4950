"""Inner products of the gradients of two blocks of samples, whole or as factors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.measures.kernels.factors import Factors

COLUMNS = 2**15  # columns multiplied at once; the sum over them is taken in float64


def product(left: Factors, right: Factors, full: bool, groups: Mapping[Any, int]) -> Array:
    """<grad f_c(x_n), grad f_d(x_m)> as (group, n, c, m, d), or its trace over c = d with c = 1."""
    (n, outputs), (m, _) = _sizes(left), _sizes(right)
    kept = outputs if full else 1
    kernels = np.zeros((max(groups.values()) + 1, n, kept, m, kept))
    for key, a in left.rows.items():
        part = _gram(a, right.rows[key], 2 if full else 1)
        kernels[groups[key]] += part.reshape(kernels.shape[1:])
    for key, (h, slopes) in left.layers.items():
        h2, slopes2 = right.layers[key]
        pair = _of_rows if h.dtype.kind == "i" else _of_vectors
        kernels[groups[key]] += pair(h, slopes, h2, slopes2, full)
    return kernels


def _of_vectors(h: Any, slopes: Any, h2: Any, slopes2: Any, full: bool) -> Array:
    """sum_ts <h_t, h'_s> <delta_t, delta'_s> as (n, c, m, d)."""
    n, t, c, _ = slopes.shape
    m, s = h2.shape[:2]
    kept = c if full else 1
    products = _gram(slopes, slopes2, 3 if full else 2).reshape(n, t, kept, m, s, kept)
    products *= _gram(h, h2, 2).reshape(n, t, 1, m, s, 1)
    return products.sum(axis=(1, 4))


def _of_rows(h: Any, slopes: Any, h2: Any, slopes2: Any, full: bool) -> Array:
    """The same for unit vectors h, h' given by row numbers: only equal numbers contribute."""
    kept = slopes.shape[2] if full else 1
    sums = np.zeros((len(h), len(h2), kept, kept))
    lead = 2 if full else 1
    for token in np.intersect1d(h, h2):
        here, there = h == token, h2 == token
        part = _gram(slopes[here], slopes2[there], lead)
        part = part.reshape(here.sum(), kept, there.sum(), kept).transpose(0, 2, 1, 3)
        places = np.ix_(np.nonzero(here)[0], np.nonzero(there)[0])
        np.add.at(sums, places, part)  # a sample may contain a token several times
    return sums.transpose(0, 2, 1, 3)


def _sizes(factors: Factors) -> tuple[int, int]:
    """The numbers of samples and outputs."""
    rows = [row.shape[:2] for row in factors.rows.values()]
    layers = [(len(slopes), slopes.shape[2]) for _, slopes in factors.layers.values()]
    return (rows + layers)[0]


def _gram(a: Any, b: Any, lead: int) -> Array:
    """a b^T in float64, with the first `lead` axes as rows and all others as columns."""
    left = a.reshape(math.prod(a.shape[:lead]), -1)
    right = b.reshape(math.prod(b.shape[:lead]), -1)
    gram = np.zeros((len(left), len(right)))
    for at in range(0, left.shape[1], COLUMNS):
        gram += left[:, at : at + COLUMNS] @ right[:, at : at + COLUMNS].T
    return gram
