"""Source notsawo: what is not an experiment yet."""

from tacit.claims.notsawo import (
    depth,
    goldilocks,
    selection,
    understanding,
)

__all__ = [
    "depth",
    "goldilocks",
    "selection",
    "understanding",
]
