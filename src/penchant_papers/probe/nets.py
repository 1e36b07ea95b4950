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

HIDDEN = 64  # units of the dense nets, and of the dense layer of the transformer
TOKENS = 8  # of the transformer: a token is a row of the image
TINY = 1e-5  # added to a variance
EMBEDDED = 0.5  # size of the entries of an embedding of pairs, times the scale


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
    """One block with one head, normalized where it has gains; the mean over tokens is read out."""
    import jax

    tokens = x.reshape(len(x), len(p["places"]), -1) @ p["e"] + p["places"]
    inner = _normal(tokens, p["g"], p["c"]) if "g" in p else tokens
    scores = (inner @ p["q"]) @ (inner @ p["k"]).transpose(0, 2, 1) / p["q"].shape[0] ** 0.5
    tokens = tokens + jax.nn.softmax(scores, -1) @ (inner @ p["v"]) @ p["o"]
    inner = _normal(tokens, p["g2"], p["c2"]) if "g2" in p else tokens
    tokens = tokens + jax.nn.relu(inner @ p["w1"]) @ p["w2"]
    return tokens.mean(1) @ p["u"]


def quadratic(p: Parameters, x: Any, base: Any) -> Any:
    return (x @ p["w1"]) ** 2 @ p["w2"]


def embedded(p: Parameters, x: Any, base: Any) -> Any:
    """Two tokens, each by its embedding, into a layer of ReLUs, normalized where it has gains."""
    import jax

    pair = (x.reshape(len(x), 2, -1) @ p["e"]).reshape(len(x), -1)
    hidden = pair @ p["w1"] + p["b1"]
    hidden = _normal(hidden, p["g"], p["c"]) if "g" in p else hidden
    return jax.nn.relu(hidden) @ p["w2"] + p["b2"]


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
    "transformer, not normalized": transformer,
    "quadratic": quadratic,
    "embedded": embedded,
    "embedded, LayerNorm": embedded,
}


def start(
    name: str,
    inputs: int,
    outputs: int,
    scale: float,
    seed: int,
    hidden: int = HIDDEN,
    tokens: int = TOKENS,
) -> Parameters:
    """Random weights times `scale`; "dense" has two opposite halves, so that its outputs are 0."""
    draw = np.random.default_rng([seed, 19])

    def normal(rows: int, columns: int) -> Any:
        return scale * draw.standard_normal((rows, columns)) / np.sqrt(rows)

    if name.startswith("transformer"):
        weights = _transformer(normal, inputs // tokens, tokens, hidden, outputs)
        if name == "transformer":
            weights |= _gains(hidden // 4)
    elif name == "quadratic":
        weights = {
            "w1": np.sqrt(inputs / 2) * normal(inputs, hidden),
            "w2": normal(hidden, outputs),
        }
    else:
        half = hidden // 2
        embedding = {}
        if name.startswith("embedded"):
            embedding = {
                "e": EMBEDDED * normal(1, half // 2 * (inputs // 2)).reshape(-1, half // 2)
            }
            inputs = half
        w1, w2 = np.sqrt(2) * normal(inputs, hidden), normal(hidden, outputs)
        if name == "dense":
            w1, w2 = np.hstack([w1[:, :half]] * 2), np.vstack([w2[:half], -w2[:half]])
        weights = {"w1": w1, "b1": np.zeros(hidden), "w2": w2, "b2": np.zeros(outputs)}
        weights |= embedding
        if name.endswith(("LayerNorm", "BatchNorm")):
            weights |= {"g": scale * np.ones(hidden)}
        if name.endswith("LayerNorm"):
            weights |= {"c": np.zeros(hidden)}
    return {key: value.astype(np.float32) for key, value in weights.items()}


def _transformer(
    normal: Callable[[int, int], Any], size: int, tokens: int, hidden: int, outputs: int
) -> Parameters:
    width = hidden // 4
    weights = {key: normal(width, width) for key in "qkvo"}
    weights |= {"e": normal(size, width), "places": 0.3 * normal(tokens, width)}
    weights |= {"w1": normal(width, hidden), "w2": normal(hidden, width)}
    return weights | {"u": normal(width, outputs)}


def _gains(width: int) -> Parameters:
    ones, zeros = np.ones(width), np.zeros(width)
    return {"g": ones, "c": zeros, "g2": ones, "c2": zeros}
