"""Cross-entropy losses: of class labels, and of token nets on distinct pairs or batches."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.lazy import jax, jnp
from penchant.models.tokens.mlp import Tensors, TokenMLP
from penchant.models.tokens.net import TokenNet
from penchant.problems.arithmetic import Integers, TokenPairs
from penchant.training.descent.method import Objective

TAIL = 30.0  # below -TAIL log(log(1 + e^z)) is z to the last digits


def cross_entropy(outputs: Any, labels: Any) -> Any:
    """-log of the probability of the label of every row, as log(1 + sum_j exp(f_j - f_label)).

    In this form neither a tiny loss nor its gradient is lost in the rounding of 1.
    """
    return jax.nn.softplus(_excess(outputs, labels))


def log_cross_entropy(outputs: Any, labels: Any) -> Any:
    """The logarithm of `cross_entropy`, also where the loss itself underflows."""
    z = _excess(outputs, labels)
    near = jnp.log(jax.nn.softplus(jnp.maximum(z, -TAIL)))
    return jnp.where(z > -TAIL, near, z)


def _excess(outputs: Any, labels: Any) -> Any:
    """log of the sum of exp(f_j - f_label) over the other classes j, for every row."""
    own = jnp.take_along_axis(outputs, labels[:, None], axis=1)
    others = jnp.arange(outputs.shape[1]) != labels[:, None]
    return jax.nn.logsumexp(outputs - own, axis=1, where=others)


BLOCK = 6  # rows that are gathered and summed in one compiled pass; more take long to compile


class Pairs(NamedTuple):
    """Training pairs and their answers as one-hot rows, one row per pair.

    Where equivalent pairs are merged, `weights` are their shares of all training pairs; for the MLP
    with one embedding, `positions` and `partners` are the `incidence` of the tokens.
    """

    pairs: Any
    answers: Any
    weights: Any = None
    positions: Any = None
    partners: Any = None


def all_pairs(problem: TokenPairs, dtype: Any) -> Pairs:
    labels = problem.labels[problem.train]
    pairs = problem.pairs[problem.train].astype(np.int32)
    return Pairs(pairs, np.eye(problem.classes, dtype=dtype)[labels])


def distinct_pairs(net: TokenNet, problem: TokenPairs, dtype: Any) -> Pairs:
    pairs, labels, shares = distinct(net, problem)
    tables: tuple[Any, ...] = ()
    if isinstance(net, TokenMLP) and net.symmetric:
        tables = tuple(table.astype(np.int32) for table in incidence(pairs, problem.tokens))
    answers = np.eye(problem.classes, dtype=dtype)[labels]
    return Pairs(pairs.astype(np.int32), answers, shares.astype(dtype), *tables)


@dataclasses.dataclass(frozen=True, eq=False)
class TokenLoss(Objective):
    """The mean cross-entropy of a net; one per net in compiled code."""

    net: TokenNet

    @property
    def key(self) -> Any:
        try:
            hash(self.net)
        except TypeError:
            return id(self.net)
        return self.net

    def value(self, data: Pairs, parameters: Any, share: Any = None) -> Any:
        if data.weights is not None and isinstance(self.net, TokenMLP):
            layers = parameters._replace(embedding=None, partner=None)
            return _judged(self.net)(layers, self._joined(data, parameters), data)
        losses = _cross_entropies(self.net.logits(parameters, data.pairs), data.answers)
        if data.weights is not None:
            return data.weights @ losses
        if share is None:
            return jnp.mean(losses)
        weights = share.astype(losses.dtype)
        return (weights / jnp.sum(weights)) @ losses

    def log_value(self, data: Pairs, parameters: Any) -> Any:
        logits, labels = self.net.logits(parameters, data.pairs), jnp.argmax(data.answers, axis=1)
        logs = log_cross_entropy(logits, labels)
        if data.weights is not None:
            return jax.nn.logsumexp(logs, b=data.weights)
        return jax.nn.logsumexp(logs) - np.log(len(labels))

    def _joined(self, data: Pairs, tensors: Tensors) -> Any:
        assert isinstance(self.net, TokenMLP)
        if data.positions is None:
            return self.net.joined(tensors, data.pairs)
        return _product()(tensors.embedding, data.pairs, data.positions, data.partners)


@functools.lru_cache(maxsize=8)
def _judged(net: TokenMLP) -> Callable[[Tensors, Any, Pairs], Any]:
    """The loss as a function of the layers and the joint codes, with an explicit gradient.

    It equals the gradient of autodiff and needs fewer passes over the logits: sums over rows and
    columns are products with vectors of ones, and the active hidden units are those with positive
    values. Logits are relative to the logit of the first class, whose slope follows from the
    others.
    """

    @jax.custom_vjp
    def judged(layers: Tensors, codes: Any, data: Pairs) -> Any:
        return data.weights @ _cross_entropies(net.readout(layers, codes), data.answers)

    def forward(layers: Tensors, codes: Any, data: Pairs) -> tuple[Any, Any]:
        return judged(layers, codes, data), (layers, codes, data)

    def backward(saved: Any, slope: Any) -> tuple[Tensors, Any, None]:
        layers, codes, data = saved
        hidden, others = net.hidden_units(layers, codes), _against_the_first(layers)
        logits = net.scores(others, hidden)
        top = jnp.maximum(jnp.max(logits, axis=1), 0)  # the first class has the logit 0
        chances = jnp.exp(logits - top[:, None])
        ones, due = jnp.ones_like(chances[0]), (data.answers * data.weights[:, None])[:, 1:]
        shares = data.weights / (chances @ ones + jnp.exp(-top))
        outward = slope * (chances * shares[:, None] - due)
        inward = (outward @ others.outer) * jnp.sign(hidden)
        each = jnp.ones_like(data.weights)
        gradient = layers._replace(
            inner=_turned(inward) @ codes, outer=_with_the_first(_turned(outward) @ hidden)
        )
        if layers.inner_bias is not None:
            gradient = gradient._replace(inner_bias=each @ inward)
        if layers.outer_bias is not None:
            gradient = gradient._replace(outer_bias=_with_the_first(each @ outward))
        return gradient, inward @ layers.inner, None

    judged.defvjp(forward, backward)
    return judged


def _against_the_first(layers: Tensors) -> Tensors:
    """The layers whose logits are those of the other classes minus that of the first."""
    bias = layers.outer_bias
    return layers._replace(
        outer=layers.outer[1:] - layers.outer[:1],
        outer_bias=None if bias is None else bias[1:] - bias[:1],
    )


def _with_the_first(slopes: Any) -> Any:
    """Slopes of all classes: over the classes they add up to 0, as chances add up to 1."""
    return jnp.concatenate([-jnp.sum(slopes, axis=0, keepdims=True), slopes])


def _turned(matrix: Any) -> Any:
    """The transpose as a copy: XLA multiplies slowly by a long matrix that it reads by columns."""
    return jax.lax.optimization_barrier(matrix.T)


def _cross_entropies(logits: Any, answers: Any) -> Any:
    return jax.nn.logsumexp(logits, axis=1) - jnp.sum(logits * answers, axis=1)


def distinct(net: TokenNet, problem: TokenPairs) -> tuple[Integers, Integers, Array]:
    """Training pairs that differ for the net, their labels, and their shares of all pairs.

    For a symmetric net (a, b) and (b, a) are one input, which is computed once.
    """
    pairs, labels = problem.pairs[problem.train], problem.labels[problem.train]
    pairs = np.sort(pairs, axis=1) if net.symmetric else pairs
    rows, counts = np.unique(np.column_stack([pairs, labels]), axis=0, return_counts=True)
    return rows[:, :2], rows[:, 2], counts / len(labels)


@functools.lru_cache(maxsize=1)
def _product() -> Callable[[Any, Any, Any, Any], Any]:
    """E_a o E_b of all pairs, as a function of E, the pairs and their incidence.

    Its derivative adds up rows at repeated positions, which is slow element by element. The pairs
    of each token are fixed, so their rows are gathered and summed instead.
    """

    @jax.custom_vjp
    def product(embedding: Any, pairs: Any, positions: Any, partners: Any) -> Any:
        return _rows(embedding, pairs[:, 0]) * _rows(embedding, pairs[:, 1])

    def forward(embedding: Any, pairs: Any, positions: Any, partners: Any) -> tuple[Any, Any]:
        return product(embedding, pairs, positions, partners), (embedding, positions, partners)

    def backward(saved: Any, slope: Any) -> tuple[Any, None, None, None]:
        embedding, *tables = saved
        padded = jnp.concatenate([embedding, jnp.zeros_like(embedding[:1])])

        def add(total: Any, block: Any) -> tuple[Any, None]:
            for numbers, others in zip(*block, strict=True):
                total = total + _rows(slope, numbers) * _rows(padded, others)
            return total, None

        total, _ = jax.lax.scan(add, jnp.zeros_like(embedding), tuple(tables))
        return total, None, None, None

    product.defvjp(forward, backward)
    return product


def _rows(matrix: Any, numbers: Any) -> Any:
    return matrix.at[numbers].get(mode="promise_in_bounds")


def incidence(pairs: Integers, tokens: int) -> tuple[Integers, Integers]:
    """For every token the indices of its pairs, and its partners in them, as (block, slot, token).

    Tokens with fewer pairs than others are padded with the partner `tokens`, which is no token. A
    pair (a, a) counts twice, as its derivative does.
    """
    own, others = np.concatenate([pairs, pairs[:, ::-1]]).T
    numbers = np.tile(np.arange(len(pairs)), 2)
    order = np.argsort(own, kind="stable")
    own, others, numbers = own[order], others[order], numbers[order]
    degrees = np.bincount(own, minlength=tokens)
    slot = np.arange(len(own)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
    blocks = -(-degrees.max() // BLOCK)
    shape = blocks, -(-degrees.max() // blocks), tokens
    positions, partners = np.zeros(shape, np.int64), np.full(shape, tokens)
    block, slot = np.divmod(slot, shape[1])
    positions[block, slot, own], partners[block, slot, own] = numbers, others
    return positions, partners
