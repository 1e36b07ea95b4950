"""Source woodworth: what is not an experiment yet."""

from tacit.claims.woodworth import (
    conv_curves,
    conv_nets,
    networks,
    splines,
    wide_nets,
)

__all__ = [
    "conv_curves",
    "conv_nets",
    "networks",
    "splines",
    "wide_nets",
]
