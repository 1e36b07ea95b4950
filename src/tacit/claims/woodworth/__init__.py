"""Source W: kernel and rich regimes in overparametrized models, one module per row of claims."""

from tacit.claims.woodworth import (  # noqa: I001  (the order of the paper)
    networks,
    wide_nets,
    conv_nets,
    conv_curves,
    splines,
)

__all__ = [
    "conv_curves",
    "conv_nets",
    "networks",
    "splines",
    "wide_nets",
]
