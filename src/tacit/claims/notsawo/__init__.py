"""Source N: grokking beyond the Euclidean norm, one module per row of claims."""

from tacit.claims.notsawo import (  # noqa: I001  (the order of the source)
    addition,
    rescaling,
    goldilocks,
    regularizers,
    arithmetic,
    teacher,
)

__all__ = [
    "addition",
    "arithmetic",
    "goldilocks",
    "regularizers",
    "rescaling",
    "teacher",
]
