"""Matrices that rank: the classes of a sample, or the tokens that attention chooses from.

How it works. A matrix W that gives class c of x the score (W x)_c is right if it prefers that class
to every other class k, and attention with the scores x_t^T W z of its tokens chooses token s if it
prefers it to every other token t. Both are inequalities <W, a b^T> > 0 of outer products,

    a = e_c - e_k, b = x          a = x_s - x_t, b = z

so that both are a `Classification` of the flat W with the label +1 throughout, and `max_margin`
with L2(), Nuclear(shape) or Spectral(shape) finds the largest margin of each norm.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import (
    Array,
    classification_data,
    entries,
    finite_array,
    flag,
    integer,
    integers,
    one_of,
    plain_array,
)
from penchant.description import with_recipe
from penchant.door import Invalid, door, door_as
from penchant.problems.classification import LOSSES, Classification
from penchant.problems.regression import frozen
from penchant.records import Record, assign

WHO = "TokenSelection"
BEST_OF_OTHERS = 0.9  # the largest score of another token, where they are random


def _wrong(right: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Every sample with each number below `count` that is not its right one."""
    samples, wrong = np.nonzero(np.arange(count) != right[:, None])
    return samples, wrong


def outer_rows(left: Array, right: Array) -> Array:
    """The matrices a b^T, flat in C order, one row for each pair of rows."""
    return np.einsum("na,nb->nab", left, right).reshape(len(left), -1)


@with_recipe
@door
def multiclass(
    X: ArrayLike, labels: ArrayLike, *, classes: int | None = None, loss: str = "exp"
) -> Classification:
    """Linear classification of several classes as one of two: rows (e_c - e_k) x^T, labels +1.

    The predictor is the matrix W of (classes, features), flat in C order. Every sample x of class
    c has a row for every other class k, whose margin <W, (e_c - e_k) x^T> is how far the score of
    the right class is ahead. The loss is the mean over these pairs.

    Parameters
    ----------
    X
        The samples, one row each.
    labels
        The class of every sample, from 0 on.
    classes
        The number of classes; by default the largest label plus one.
    loss
        "exp" or "logistic", as in Classification.

    Returns
    -------
    Classification
        The pairs, those of one sample after another.

    References
    ----------
    .. [1] Fan et al. (2025), Implicit Bias of Spectral Descent and Muon on Multiclass Separable
       Data.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.multiclass([[1.0, 0.0], [0.0, 2.0]], [0, 1])
    >>> problem.X
    array([[ 1.,  0., -1.,  0.],
           [ 0., -2.,  0.,  2.]])
    >>> spectral = penchant.regularizers.Spectral(shape=(2, 2))
    >>> penchant.max_margin(problem, spectral).beta.reshape(2, 2).round(4)
    array([[ 0.5 , -0.25],
           [-0.5 ,  0.25]])
    """
    X = finite_array("X", X, ndim=2)
    right = _classes(labels, len(X))
    count = int(right.max()) + 1 if classes is None else integer("classes", classes, least=2)
    if count < max(2, int(right.max()) + 1):
        raise Invalid(
            f"labels must name two classes or more, from 0 to {max(count, 2) - 1}, got only values"
            f" from {right.min()} to {right.max()}; give classes= if some have no sample"
        )
    samples, wrong = _wrong(right, count)
    unit = np.eye(count)
    rows = outer_rows(unit[right[samples]] - unit[wrong], X[samples])
    about = f"{len(X)} samples of {count} classes, a row for every wrong class"
    return Classification(rows, np.ones(len(rows)), loss, None, about)


def _classes(labels: ArrayLike, samples: int) -> np.ndarray:
    given = entries("labels", labels, samples, "one class per sample")
    if (given != np.round(given)).any() or given.min() < 0:
        wrong = given[(given != np.round(given)) | (given < 0)][0]
        raise Invalid(f"labels must be whole numbers from 0 on, got {wrong:g}")
    return given.astype(int)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TokenSelection(Record):
    """Samples of several tokens and a query, for `penchant.models.attention` to choose from.

    The score of token x_t of a sample with the label y is y <head, x_t>: attention has the least
    loss where it gives all its weight to the token of the best score.

    Parameters
    ----------
    tokens
        An array (samples, tokens, dimension).
    queries
        One query z of the same dimension per sample.
    y
        The labels, -1 or +1.
    head
        The vector v that reads the chosen token.
    loss
        "exp" or "logistic", as in Classification.

    References
    ----------
    .. [1] Tarzanagh et al. (2023), Transformers as Support Vector Machines.

    Examples
    --------
    >>> import penchant
    >>> tokens, queries = [[[1.0, 0.0], [0.0, 2.0]]], [[1.0, 1.0]]
    >>> data = penchant.problems.TokenSelection(tokens, queries, [1], head=[1.0, 0.0])
    >>> data.scores, data.best, data.separation().X
    (array([[1., 0.]]), array([0]), array([[ 1.,  1., -2., -2.]]))
    """

    recipe_parts: ClassVar = ("training",)

    tokens: Array
    queries: Array
    y: Array
    head: Array
    loss: str = "exp"

    @door
    def __post_init__(self) -> None:
        tokens = finite_array("tokens", self.tokens, ndim=3)
        if tokens.shape[1] < 2:
            raise Invalid(f"a sample must have two tokens or more, got {tokens.shape[1]}")
        queries, y = classification_data(self.queries, self.y)
        if queries.shape != (len(tokens), tokens.shape[2]):
            rule = f"queries must have the shape {(len(tokens), tokens.shape[2])}, one per sample"
            raise Invalid(f"{rule}, got {queries.shape}")
        head = entries("head", self.head, tokens.shape[2], "one entry per entry of a token")
        one_of("loss", self.loss, LOSSES)
        given = {"tokens": tokens, "queries": queries, "y": y, "head": head}
        assign(self, **{name: frozen(value) for name, value in given.items()})

    @functools.cached_property
    def training(self) -> Classification:
        """What `train` takes: every row holds the tokens of a sample and then its query."""
        rows = np.hstack([self.tokens.reshape(len(self.y), -1), self.queries])
        about = f"{len(self.y)} samples of {self.tokens.shape[1]} tokens and a query"
        return Classification(rows, self.y, self.loss, None, about)

    @property
    def scores(self) -> Array:
        """y <head, x_t> for every token of every sample."""
        return np.asarray(self.y[:, None] * (self.tokens @ self.head))

    @property
    def best(self) -> np.ndarray:
        """The token of the best score of every sample, the first where several have it."""
        return np.asarray(self.scores.argmax(axis=1))

    @door_as(WHO)
    def selected(self, W: ArrayLike) -> np.ndarray:
        """The token of every sample that gets the most attention from W, flat or a matrix."""
        size = self.tokens.shape[2]
        flat = entries("W", np.ravel(plain_array("W", W)), size**2, "one per pair of entries")
        logits = np.einsum(
            "ntd,de,ne->nt", self.tokens, flat.reshape(size, size), self.queries, optimize=True
        )
        return np.asarray(logits.argmax(axis=1))

    @door_as(WHO)
    def separation(self, selected: ArrayLike | None = None) -> Classification:
        """The tokens selected, the best ones by default, against the others: (x_s - x_t) z^T.

        The predictor is the matrix W, flat in C order. `max_margin` of it is where training ends
        in direction, and it refuses tokens that no W selects.
        """
        chosen = self.best if selected is None else self._indices(selected)
        pairs = [
            (n, t) for n, s in enumerate(chosen) for t in range(self.scores.shape[1]) if t != s
        ]
        samples, others = np.array(pairs).T
        ahead = self.tokens[samples, chosen[samples]] - self.tokens[samples, others]
        rows = outer_rows(ahead, self.queries[samples])
        for n, t in zip(samples[~rows.any(axis=1)], others[~rows.any(axis=1)], strict=True):
            raise Invalid(
                f"no W prefers token {chosen[n]} of sample {n} to its token {t}: they are equal, or"
                " the query is zero; drop one of them"
            )
        about = f"the selected tokens of {len(chosen)} samples against the others"
        return Classification(rows, np.ones(len(rows)), self.loss, None, about)

    def _indices(self, selected: ArrayLike) -> np.ndarray:
        count = self.tokens.shape[1]
        given = entries("selected", selected, len(self.y), "one token per sample")
        if not np.isin(given, np.arange(count)).all():
            raise Invalid(f"selected must hold whole numbers from 0 to {count - 1}, got {given}")
        return given.astype(int)


@with_recipe
@door
def token_selection(
    samples: int,
    tokens: int,
    dimension: int,
    *,
    equal_scores: bool = True,
    loss: str = "exp",
    seed: int = 0,
) -> TokenSelection:
    """Gaussian tokens and queries, one random token of every sample with the best score, 1.

    The head is the first unit vector, so that the first entry of a token is its score, up to the
    label; a rotation of tokens, queries and head would change nothing else.

    Parameters
    ----------
    samples
        The number of samples.
    tokens
        The tokens of a sample.
    dimension
        The entries of a token, and of a query.
    equal_scores
        True gives all other tokens the score 0, so that from W = 0 every run selects the best
        ones; False draws their scores between 0 and 0.9.
    loss
        "exp" or "logistic", as in Classification.
    seed
        The seed of all random numbers.

    Returns
    -------
    TokenSelection
        The samples.

    References
    ----------
    .. [1] Tarzanagh et al. (2023), Transformers as Support Vector Machines.

    Examples
    --------
    >>> import penchant
    >>> data = penchant.problems.token_selection(samples=2, tokens=3, dimension=4)
    >>> data.scores[[0, 1], data.best], data.training.X.shape
    (array([1., 1.]), (2, 16))
    """
    samples, dimension = integers(samples=samples, dimension=dimension)
    tokens, seed = integer("tokens", tokens, least=2), integer("seed", seed, least=0)
    flag("equal_scores", equal_scores)
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal((samples, tokens, dimension))
    queries = rng.standard_normal((samples, dimension))
    y = np.where(rng.random(samples) < 0.5, 1.0, -1.0)
    best, scores = rng.integers(0, tokens, samples), np.zeros((samples, tokens))
    if not equal_scores:
        scores = rng.uniform(0.0, BEST_OF_OTHERS, (samples, tokens))
    scores[np.arange(samples), best] = 1.0
    drawn[:, :, 0] = y[:, None] * scores
    return TokenSelection(drawn, queries, y, np.eye(dimension)[0], loss)
