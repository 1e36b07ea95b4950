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
    wide_nets,
    conv_nets,
    conv_curves,
    splines,
    balance,
    kernel_bounds,
    kernel_corollary,
    kernel_lemmas,
)

__all__ = [
    "asymptotics",
    "balance",
    "conv_curves",
    "conv_nets",
    "explicit",
    "general_approach",
    "kernel",
    "kernel_bounds",
    "kernel_corollary",
    "kernel_lemmas",
    "lemmas",
    "splines",
    "theorem_2",
    "theorem_3",
    "wide_nets",
    "width",
]
