"""What is small: norms and functions that theorems minimise and penalties add."""

from penchant.namespaces import attach

__getattr__, __dir__, __all__ = attach(__name__)
