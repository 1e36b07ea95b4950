"""Which moments of training are recorded."""

from penchant.training.record import At, LogSpaced, log_spaced

__all__ = ["At", "LogSpaced", "log_spaced"]
