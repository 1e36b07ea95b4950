"""The training loss of a token net for compiled steps: over all pairs, or over shuffled batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.models.token_mlp import Tensors, TokenMLP
from tacit.problems.arithmetic import Integers, TokenPairs

Loss = Callable[[Tensors, Any], Any]  # of the tensors and the number of steps taken


def training_loss(
    net: TokenMLP, problem: TokenPairs, dtype: Any, batch: int | None = None, seed: int = 0
) -> Loss:
    """The mean cross-entropy over the training pairs, or over the batch of a step."""
    if batch is None or batch >= problem.samples:
        return _full_loss(net, problem, dtype)
    return _batch_loss(net, problem, dtype, batch, seed)


def _full_loss(net: TokenMLP, problem: TokenPairs, dtype: Any) -> Loss:
    import jax.numpy as jnp

    pairs, labels, shares = distinct(net, problem)
    joined = _joined(net, pairs, problem.tokens)
    answers = jnp.asarray(np.eye(problem.classes)[labels], dtype)
    judged = _judged(net, answers, jnp.asarray(shares, dtype))

    def loss(tensors: Tensors, taken: Any) -> Any:
        layers = tensors._replace(embedding=None, partner=None)
        return judged(layers, joined(tensors))

    return loss


def _batch_loss(net: TokenMLP, problem: TokenPairs, dtype: Any, batch: int, seed: int) -> Loss:
    """Every pair once per epoch, in a new order each time; the last batch may be smaller."""
    import jax
    import jax.numpy as jnp

    pairs = jnp.asarray(problem.pairs[problem.train], jnp.int32)
    answers = jnp.asarray(np.eye(problem.classes)[problem.labels[problem.train]], dtype)
    samples, key = problem.samples, jax.random.key(seed)
    batches = -(-samples // batch)

    def loss(tensors: Tensors, taken: Any) -> Any:
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
    """
    import jax
    import jax.numpy as jnp

    ones, due = jnp.ones_like(answers[0]), answers * weights[:, None]

    @jax.custom_vjp
    def judged(layers: Tensors, codes: Any) -> Any:
        return _cross_entropy(net.readout(layers, codes), answers, weights)

    def forward(layers: Tensors, codes: Any) -> tuple[Any, Any]:
        hidden = net.hidden_units(layers, codes)
        logits = net.scores(layers, hidden)
        return _cross_entropy(logits, answers, weights), (layers, codes, hidden, logits)

    def backward(kept: Any, slope: Any) -> tuple[Tensors, Any]:
        layers, codes, hidden, logits = kept
        chances = jnp.exp(logits - jnp.max(logits, axis=1, keepdims=True))
        outward = slope * (chances * (weights / (chances @ ones))[:, None] - due)
        inward = jnp.where(hidden > 0, outward @ layers.outer, 0)
        each = jnp.ones_like(weights)
        found = layers._replace(inner=inward.T @ codes, outer=outward.T @ hidden)
        if layers.inner_bias is not None:
            found = found._replace(inner_bias=each @ inward)
        if layers.outer_bias is not None:
            found = found._replace(outer_bias=each @ outward)
        return found, inward @ layers.inner

    judged.defvjp(forward, backward)
    return judged


def _cross_entropy(logits: Any, answers: Any, weights: Any) -> Any:
    """The weighted sum of -log of the probabilities of the answers, given as one-hot rows."""
    import jax
    import jax.numpy as jnp

    return weights @ (jax.nn.logsumexp(logits, axis=1) - jnp.sum(logits * answers, axis=1))


def distinct(net: TokenMLP, problem: TokenPairs) -> tuple[Integers, Integers, Array]:
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

    fixed = jnp.asarray(pairs, jnp.int32)
    if not net.symmetric:
        return lambda tensors: net.joined(tensors, fixed)
    places, others = (jnp.asarray(table, jnp.int32) for table in incidence(pairs, tokens))

    @jax.custom_vjp
    def product(embedding: Any) -> Any:
        return embedding[fixed[:, 0]] * embedding[fixed[:, 1]]

    def forward(embedding: Any) -> tuple[Any, Any]:
        return product(embedding), embedding

    def backward(embedding: Any, slope: Any) -> tuple[Any]:
        padded = jnp.concatenate([slope, jnp.zeros_like(slope[:1])])
        return (jnp.sum(padded[places] * embedding[others], axis=1),)

    product.defvjp(forward, backward)
    return lambda tensors: product(tensors.embedding)


def incidence(pairs: Integers, tokens: int) -> tuple[Integers, Integers]:
    """For every token the numbers of its pairs, and its partners there, filled up to one length.

    The filling points behind the last pair. A pair (a, a) counts twice, as its derivative does.
    """
    own, others = np.concatenate([pairs, pairs[:, ::-1]]).T
    numbers = np.tile(np.arange(len(pairs)), 2)
    order = np.argsort(own, kind="stable")
    own, others, numbers = own[order], others[order], numbers[order]
    degrees = np.bincount(own, minlength=tokens)
    column = np.arange(len(own)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
    places = np.full((tokens, degrees.max()), len(pairs))
    partners = np.zeros_like(places)
    places[own, column], partners[own, column] = numbers, others
    return places, partners
