"""What is to be learned: arrays and the truth behind them."""

from penchant.namespaces import attach

__getattr__, __dir__, __all__ = attach(__name__)
