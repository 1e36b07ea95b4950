"""Source W: kernel and rich regimes in overparametrized models, one module per row of claims."""

from tacit.claims.woodworth import (  # noqa: I001  (the order of the paper)
    kernel,
    theorem_1,
    general_approach,
    theorem_2,
    lemmas,
    asymptotics,
    explicit,
    theorem_3,
    balance,
)

__all__ = [
    "asymptotics",
    "balance",
    "explicit",
    "general_approach",
    "kernel",
    "lemmas",
    "theorem_1",
    "theorem_2",
    "theorem_3",
]
