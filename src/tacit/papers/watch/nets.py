"""Small nets to be watched: their functions of parameters and inputs, and their starts.

`base` is what a net uses in addition to its parameters and inputs: the training inputs, from which
batch normalization takes its statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Parameters = dict[str, Any]
Net = Callable[[Parameters, Any, Any], Any]

HIDDEN = 64  # units of the dense nets
TOKENS, PIXELS, WIDTH = 8, 8, 16  # of the transformer: a token is a row of the image
TINY = 1e-5  # added to a variance


def dense(p: Parameters, x: Any, base: Any) -> Any:
    import jax

    return jax.nn.relu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


def layer_norm(p: Parameters, x: Any, base: Any) -> Any:
    import jax

    return jax.nn.relu(_normal(x @ p["w1"] + p["b1"], p["g"], p["c"])) @ p["w2"] + p["b2"]


def batch_norm(p: Parameters, x: Any, base: Any) -> Any:
    import jax
    import jax.numpy as jnp

    seen = base @ p["w1"]
    hidden = (x @ p["w1"] - seen.mean(0)) / jnp.sqrt(seen.var(0) + TINY)
    return jax.nn.relu(hidden * p["g"] + p["b1"]) @ p["w2"] + p["b2"]


def transformer(p: Parameters, x: Any, base: Any) -> Any:
    """One block with one head; its mean over the tokens is read out."""
    import jax

    tokens = x.reshape(len(x), TOKENS, PIXELS) @ p["e"] + p["places"]
    inner = _normal(tokens, p["g"], p["c"])
    scores = (inner @ p["q"]) @ (inner @ p["k"]).transpose(0, 2, 1) / WIDTH**0.5
    tokens = tokens + jax.nn.softmax(scores, -1) @ (inner @ p["v"]) @ p["o"]
    inner = _normal(tokens, p["g2"], p["c2"])
    tokens = tokens + jax.nn.relu(inner @ p["w1"]) @ p["w2"]
    return tokens.mean(1) @ p["u"]


def quadratic(p: Parameters, x: Any, base: Any) -> Any:
    return (x @ p["w1"]) ** 2 @ p["w2"]


def _normal(hidden: Any, gain: Any, shift: Any) -> Any:
    import jax.numpy as jnp

    spread = jnp.sqrt(hidden.var(-1, keepdims=True) + TINY)
    return (hidden - hidden.mean(-1, keepdims=True)) / spread * gain + shift


NETS: dict[str, Net] = {
    "dense": dense,
    "dense, biased": dense,
    "LayerNorm": layer_norm,
    "BatchNorm": batch_norm,
    "transformer": transformer,
    "quadratic": quadratic,
}


def start(name: str, inputs: int, outputs: int, scale: float, seed: int) -> Parameters:
    """Random weights times `scale`; "dense" has two opposite halves, so that its outputs are 0."""
    draw = np.random.default_rng([seed, 19])

    def normal(rows: int, columns: int) -> Any:
        return scale * draw.standard_normal((rows, columns)) / np.sqrt(rows)

    if name == "transformer":
        found = _transformer(normal, outputs)
    elif name == "quadratic":
        found = {"w1": np.sqrt(inputs / 2) * normal(inputs, HIDDEN), "w2": normal(HIDDEN, outputs)}
    else:
        half = HIDDEN // 2
        w1, w2 = np.sqrt(2) * normal(inputs, HIDDEN), normal(HIDDEN, outputs)
        if name == "dense":
            w1, w2 = np.hstack([w1[:, :half]] * 2), np.vstack([w2[:half], -w2[:half]])
        found = {"w1": w1, "b1": np.zeros(HIDDEN), "w2": w2, "b2": np.zeros(outputs)}
        if name in ("LayerNorm", "BatchNorm"):
            found |= {"g": scale * np.ones(HIDDEN)}
        if name == "LayerNorm":
            found |= {"c": np.zeros(HIDDEN)}
    return {key: value.astype(np.float32) for key, value in found.items()}


def _transformer(normal: Callable[[int, int], Any], outputs: int) -> Parameters:
    found = {key: normal(WIDTH, WIDTH) for key in "qkvo"}
    found |= {"e": normal(PIXELS, WIDTH), "places": 0.3 * normal(TOKENS, WIDTH)}
    found |= {"w1": normal(WIDTH, 4 * WIDTH), "w2": normal(4 * WIDTH, WIDTH)}
    found |= {"u": normal(WIDTH, outputs)}
    for gain, shift in (("g", "c"), ("g2", "c2")):
        found |= {gain: np.ones(WIDTH), shift: np.zeros(WIDTH)}
    return found
