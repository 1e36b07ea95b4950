"""Source W: kernel and rich regimes in overparametrized models, one module per row of claims."""

from tacit.claims.woodworth import (  # noqa: I001  (the order of the paper)
    kernel,
    general_approach,
    theorem_2,
    lemmas,
    asymptotics,
    explicit,
    theorem_3,
    width,
    balance,
    kernel_bounds,
    kernel_corollary,
    kernel_lemmas,
)

__all__ = [
    "asymptotics",
    "balance",
    "explicit",
    "general_approach",
    "kernel",
    "kernel_bounds",
    "kernel_corollary",
    "kernel_lemmas",
    "lemmas",
    "theorem_2",
    "theorem_3",
    "width",
]
