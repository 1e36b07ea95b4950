"""Pictures of datasets: their common style, and drawings that several papers share."""

from penchant.namespaces import attach

__getattr__, __dir__, __all__ = attach(__name__, "plane")
