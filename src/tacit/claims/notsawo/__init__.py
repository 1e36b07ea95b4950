"""Source notsawo: what is not an experiment yet."""

from tacit.claims.notsawo import (
    depth,
    selection,
    understanding,
)

__all__ = [
    "depth",
    "selection",
    "understanding",
]
