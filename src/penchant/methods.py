"""How parameters move: steps, exact flows, and what wraps them."""

from penchant.namespaces import attach

__getattr__, __dir__, __all__ = attach(__name__)
