"""Probabilities from counts."""

from __future__ import annotations


def upper_limit(hits: int, draws: int, confidence: float = 0.999) -> float:
    """The probability that `hits` of `draws` exclude with this confidence, and all above it."""
    from scipy.special import betaincinv

    return 1.0 if hits == draws else float(betaincinv(hits + 1, draws - hits, confidence))
