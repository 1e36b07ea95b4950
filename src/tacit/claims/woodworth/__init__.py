"""Source woodworth: what is not an experiment yet."""

from tacit.claims.woodworth import (
    splines,
)

__all__ = [
    "splines",
]
