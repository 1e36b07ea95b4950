"""The explicit bounds of published theorems: from which scale on what holds."""

from penchant.namespaces import attach

__getattr__, __dir__, __all__ = attach(__name__)
