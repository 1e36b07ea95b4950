"""Numbers read off arrays, nets and curves."""

from penchant.namespaces import attach

__getattr__, __dir__, __all__ = attach(__name__)
