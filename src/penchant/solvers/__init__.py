"""What theory selects, and its limits."""

from penchant.namespaces import attach

__getattr__, __dir__, __all__ = attach(__name__)
