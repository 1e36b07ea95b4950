"""What is to be learned: arrays and the truth behind them."""

from tacit.problems.regression import Regression, sparse_regression

__all__ = ["Regression", "sparse_regression"]
