"""What is said about a run before it ends: where it will end, when it will generalize."""

from penchant.namespaces import attach

__getattr__, __dir__, __all__ = attach(__name__)
