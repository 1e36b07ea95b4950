"""What is to be learned: arrays and the truth behind them."""

from tacit.problems.classification import (
    Classification,
    separable_points,
    spiked_points,
    three_points,
    uniform_points,
)
from tacit.problems.regression import Regression, sparse_regression

__all__ = [
    "Classification",
    "Regression",
    "separable_points",
    "sparse_regression",
    "spiked_points",
    "three_points",
    "uniform_points",
]
