"""What a model has that the nets of the forecast's law did not have, in words.

The law of penchant.forecasts.jump was fitted on quadratic nets, ReLU nets and transformers of one
block without normalization, trained by SGD, momentum or AdamW.
"""

from __future__ import annotations

import re
from typing import Any

from penchant.watch.optimizer import DECOUPLED, groups_of

LAYERS = {
    "normalization": re.compile(r"norm", re.IGNORECASE),
    "convolutions": re.compile(r"conv", re.IGNORECASE),
    "recurrent layers": re.compile(r"^(LSTM|GRU|RNN)"),
}
ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
EMBEDDING = re.compile(r"embed|attention|attn", re.IGNORECASE)
FITTED = {"SGD", "AdamW"}


def family(backend: Any, optimizer: Any) -> dict[str, str]:
    """What the record says of the model: "unfitted" and "embeddings"."""
    return {"unfitted": unfitted(backend, optimizer), "embeddings": embeddings(backend)}


def unfitted(backend: Any, optimizer: Any) -> str:
    """What sets a model apart, such as "normalization (LayerNorm)"; empty if nothing is known."""
    kinds = _kinds(backend)
    parts = []
    for what, pattern in LAYERS.items():
        if names := sorted({kind for kind in kinds if pattern.search(kind)}):
            parts.append(f"{what} ({', '.join(names[:3])})")
    if sum(bool(ATTENTION.search(kind)) for kind in kinds) > 1:
        parts.append("more than one block of attention")
    return ", ".join([*parts, *_methods(optimizer)])


def embeddings(backend: Any) -> str:
    """The classes of the model that embed tokens or attend to them; empty if none is known."""
    kinds = _kinds(backend)
    return ", ".join(sorted({kind for kind in kinds if EMBEDDING.search(kind)})[:3])


def _kinds(backend: Any) -> list[str]:
    """The class of every module of torch, or for JAX the modules in the names of the arrays."""
    function = getattr(backend, "function", None)
    if function is not None:
        return [type(part).__name__ for part in function.module.modules()]
    modules = {name.rpartition(".")[0] for name in backend.names}
    return [name.rpartition(".")[2] for name in sorted(modules) if name]


def _methods(optimizer: Any) -> list[str]:
    """The optimizers of torch that had no part in the fit."""
    others = []
    for owner, group in groups_of(optimizer):
        names = {kind.__name__ for kind in type(owner).__mro__}
        plain = names & FITTED or (names & {"Adam"} and group.get("decoupled_weight_decay"))
        if not plain and names & {*DECOUPLED, "Adam", "Optimizer"}:
            others.append(type(owner).__name__)
    return sorted(set(others))
