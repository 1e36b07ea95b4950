"""Source W: kernel and rich regimes in overparametrized models, one module per row of claims."""

from tacit.claims.woodworth import (  # noqa: I001  (the order of the paper)
    kernel,
    theorem_2,
    lemmas,
    theorem_3,
    width,
    networks,
    wide_nets,
    conv_nets,
    conv_curves,
    splines,
    kernel_bounds,
    kernel_corollary,
    kernel_lemmas,
)

__all__ = [
    "conv_curves",
    "conv_nets",
    "kernel",
    "kernel_bounds",
    "kernel_corollary",
    "kernel_lemmas",
    "lemmas",
    "networks",
    "splines",
    "theorem_2",
    "theorem_3",
    "wide_nets",
    "width",
]
