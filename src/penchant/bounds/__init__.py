"""The explicit bounds of published theorems: scales, radii, rates and steps as numbers."""

from penchant.namespaces import attach

__getattr__, __dir__, __all__ = attach(__name__)
