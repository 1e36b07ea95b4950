"""Source N: grokking beyond the Euclidean norm, one module per row of claims."""

from tacit.claims.notsawo import (  # noqa: I001  (the order of the source)
    goldilocks,
    regularizers,
    understanding,
    memorization,
    contraction,
    least_squares,
    sparsity,
    low_rank_memory,
    low_rank,
    arithmetic,
    teacher,
    selection,
    depth,
)

__all__ = [
    "arithmetic",
    "contraction",
    "depth",
    "goldilocks",
    "least_squares",
    "low_rank",
    "low_rank_memory",
    "memorization",
    "regularizers",
    "selection",
    "sparsity",
    "teacher",
    "understanding",
]
