"""Source notsawo: what is not an experiment yet."""

from tacit.claims.notsawo import (
    contraction,
    depth,
    goldilocks,
    least_squares,
    low_rank,
    low_rank_memory,
    memorization,
    selection,
    sparsity,
    understanding,
)

__all__ = [
    "contraction",
    "depth",
    "goldilocks",
    "least_squares",
    "low_rank",
    "low_rank_memory",
    "memorization",
    "selection",
    "sparsity",
    "understanding",
]
