"""Source W: kernel and rich regimes in overparametrized models, one module per row of claims."""

from tacit.claims.woodworth import (  # noqa: I001  (the order of the paper)
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
    "kernel_bounds",
    "kernel_corollary",
    "kernel_lemmas",
    "networks",
    "splines",
    "wide_nets",
    "width",
]
