"""Source N: grokking beyond the Euclidean norm, one module per row of claims."""

from tacit.claims.notsawo import (  # noqa: I001  (the order of the source)
    addition,
    rescaling,
    goldilocks,
    regularizers,
    understanding,
    arithmetic,
    teacher,
    selection,
    depth,
)

__all__ = [
    "addition",
    "arithmetic",
    "depth",
    "goldilocks",
    "regularizers",
    "rescaling",
    "selection",
    "teacher",
    "understanding",
]
