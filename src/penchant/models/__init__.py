"""Parametrizations: where training starts and what the parameters compute."""

from penchant.namespaces import attach

__getattr__, __dir__, __all__ = attach(__name__)
