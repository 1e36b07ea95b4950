"""The explicit bounds of published theorems."""

from penchant.bounds.exponential_loss import largest_log_loss, largest_log_weight

__all__ = [
    "largest_log_loss",
    "largest_log_weight",
]
