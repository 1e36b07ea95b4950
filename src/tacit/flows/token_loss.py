"""The training loss of a token net for compiled steps: over all pairs, or over shuffled batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.models.token_mlp import Tensors, TokenMLP
from tacit.models.token_net import TokenNet
from tacit.problems.arithmetic import Integers, TokenPairs

BLOCK = 36  # rows that are gathered and summed in one compiled pass

Loss = Callable[[Any, Any], Any]  # of the tensors and the number of steps taken


def training_loss(
    net: TokenNet, problem: TokenPairs, dtype: Any, batch: int | None = None, seed: int = 0
) -> Loss:
    """The mean cross-entropy over the training pairs, or over the batch of a step."""
    if batch is None or batch >= problem.samples:
        return _full_loss(net, problem, dtype)
    return _batch_loss(net, problem, dtype, batch, seed)


def _full_loss(net: TokenNet, problem: TokenPairs, dtype: Any) -> Loss:
    import jax.numpy as jnp

    pairs, labels, shares = distinct(net, problem)
    answers = jnp.asarray(np.eye(problem.classes)[labels], dtype)
    weights = jnp.asarray(shares, dtype)
    if isinstance(net, TokenMLP):
        return _loss_by_hand(net, pairs, problem.tokens, answers, weights)
    fixed = jnp.asarray(pairs, jnp.int32)
    return lambda parameters, taken: _cross_entropy(net.logits(parameters, fixed), answers, weights)


def _loss_by_hand(net: TokenMLP, pairs: Integers, tokens: int, answers: Any, weights: Any) -> Loss:
    """The loss of the MLP, with its gradient written out."""
    joined, judged = _joined(net, pairs, tokens), _judged(net, answers, weights)

    def loss(tensors: Tensors, taken: Any) -> Any:
        layers = tensors._replace(embedding=None, partner=None)
        return judged(layers, joined(tensors))

    return loss


def _batch_loss(net: TokenNet, problem: TokenPairs, dtype: Any, batch: int, seed: int) -> Loss:
    """Every pair once per epoch, in a new order each time; the last batch may be smaller."""
    import jax
    import jax.numpy as jnp

    pairs = jnp.asarray(problem.pairs[problem.train], jnp.int32)
    answers = jnp.asarray(np.eye(problem.classes)[problem.labels[problem.train]], dtype)
    samples, key = problem.samples, jax.random.key(seed)
    batches = -(-samples // batch)

    def loss(tensors: Any, taken: Any) -> Any:
        epoch, number = taken // batches, taken % batches
        order = jax.random.permutation(jax.random.fold_in(key, epoch), samples)
        order = jnp.pad(order, (0, batches * batch - samples))
        chosen = jax.lax.dynamic_slice(order, (number * batch,), (batch,))
        there = (number * batch + jnp.arange(batch) < samples).astype(dtype)
        logits = net.logits(tensors, pairs[chosen])
        return _cross_entropy(logits, answers[chosen], there / jnp.sum(there))

    return loss


def _judged(net: TokenMLP, answers: Any, weights: Any) -> Callable[[Tensors, Any], Any]:
    """The loss as a function of the layers and the joint codes, with its gradient by hand.

    What autodiff would give, in fewer passes over the logits: sums over rows and columns are
    products with ones, which run on vectors, and the hidden units tell by themselves which are on.
    Logits are taken relative to that of the first class, whose slope follows from the others'.
    """
    import jax
    import jax.numpy as jnp

    ones, due = jnp.ones_like(answers[0, 1:]), (answers * weights[:, None])[:, 1:]

    @jax.custom_vjp
    def judged(layers: Tensors, codes: Any) -> Any:
        return _cross_entropy(net.readout(layers, codes), answers, weights)

    def forward(layers: Tensors, codes: Any) -> tuple[Any, Any]:
        return judged(layers, codes), (layers, codes)

    def backward(kept: Any, slope: Any) -> tuple[Tensors, Any]:
        layers, codes = kept
        hidden, others = net.hidden_units(layers, codes), _against_the_first(layers)
        logits = net.scores(others, hidden)
        top = jnp.maximum(jnp.max(logits, axis=1), 0)  # the first class has the logit 0
        chances = jnp.exp(logits - top[:, None])
        shares = weights / (chances @ ones + jnp.exp(-top))
        outward = slope * (chances * shares[:, None] - due)
        inward = (outward @ others.outer) * jnp.sign(hidden)
        each = jnp.ones_like(weights)
        found = layers._replace(
            inner=_turned(inward) @ codes, outer=_with_the_first(_turned(outward) @ hidden)
        )
        if layers.inner_bias is not None:
            found = found._replace(inner_bias=each @ inward)
        if layers.outer_bias is not None:
            found = found._replace(outer_bias=_with_the_first(each @ outward))
        return found, inward @ layers.inner

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
    import jax.numpy as jnp

    return jnp.concatenate([-jnp.sum(slopes, axis=0, keepdims=True), slopes])


def _turned(matrix: Any) -> Any:
    """The transpose, written out: XLA multiplies slowly by a long matrix that it reads sideways."""
    import jax

    return jax.lax.optimization_barrier(matrix.T)


def _cross_entropy(logits: Any, answers: Any, weights: Any) -> Any:
    """The weighted sum of -log of the probabilities of the answers, given as one-hot rows."""
    import jax
    import jax.numpy as jnp

    return weights @ (jax.nn.logsumexp(logits, axis=1) - jnp.sum(logits * answers, axis=1))


def distinct(net: TokenNet, problem: TokenPairs) -> tuple[Integers, Integers, Array]:
    """Training pairs the net can tell apart, their labels, and their shares of all of them.

    A symmetric net sees (a, b) and (b, a) as one input, worth computing once.
    """
    pairs, labels = problem.pairs[problem.train], problem.labels[problem.train]
    pairs = np.sort(pairs, axis=1) if net.symmetric else pairs
    rows, counts = np.unique(np.column_stack([pairs, labels]), axis=0, return_counts=True)
    return rows[:, :2], rows[:, 2], counts / len(labels)


def _joined(net: TokenMLP, pairs: Integers, tokens: int) -> Callable[[Tensors], Any]:
    """The joint codes of fixed pairs; for one embedding with a backward pass that only gathers.

    The derivative of E_a o E_b adds up rows at repeated places, which is slow element by element.
    Each token knows its pairs beforehand, so their rows can be gathered and summed instead.
    """
    import jax
    import jax.numpy as jnp

    if not net.symmetric:
        fixed = jnp.asarray(pairs, jnp.int32)
        return lambda tensors: net.joined(tensors, fixed)
    left, right = (jnp.asarray(column, jnp.int32) for column in pairs.T)
    tables = tuple(jnp.asarray(table, jnp.int32) for table in incidence(pairs, tokens))

    @jax.custom_vjp
    def product(embedding: Any) -> Any:
        return _rows(embedding, left) * _rows(embedding, right)

    def backward(embedding: Any, slope: Any) -> tuple[Any]:
        padded = jnp.concatenate([embedding, jnp.zeros_like(embedding[:1])])

        def add(total: Any, block: Any) -> tuple[Any, None]:
            for numbers, others in zip(*block, strict=True):
                total = total + _rows(slope, numbers) * _rows(padded, others)
            return total, None

        return jax.lax.scan(add, jnp.zeros_like(embedding), tables)[:1]

    product.defvjp(lambda embedding: (product(embedding), embedding), backward)
    return lambda tensors: product(tensors.embedding)


def _rows(matrix: Any, numbers: Any) -> Any:
    """These rows of the matrix; their numbers were checked when the pairs were built."""
    return matrix.at[numbers].get(mode="promise_in_bounds")


def incidence(pairs: Integers, tokens: int) -> tuple[Integers, Integers]:
    """For every token the numbers of its pairs, and its partners there, in (block, place, token).

    Tokens with fewer pairs than others are filled up with the partner `tokens`, which is none of
    them. A pair (a, a) counts twice, as its derivative does.
    """
    own, others = np.concatenate([pairs, pairs[:, ::-1]]).T
    numbers = np.tile(np.arange(len(pairs)), 2)
    order = np.argsort(own, kind="stable")
    own, others, numbers = own[order], others[order], numbers[order]
    degrees = np.bincount(own, minlength=tokens)
    place = np.arange(len(own)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
    blocks = -(-degrees.max() // BLOCK)
    shape = blocks, -(-degrees.max() // blocks), tokens
    places, partners = np.zeros(shape, np.int64), np.full(shape, tokens)
    block, place = np.divmod(place, shape[1])
    places[block, place, own], partners[block, place, own] = numbers, others
    return places, partners
