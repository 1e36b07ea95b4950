"""The table of docs/howto/estimators.md: `python docs/estimators.py` measures it again.

Three real data sets that are part of scikit-learn. Columns and labels are scaled to unit variance
on the training samples, so that an error of 1 is that of the mean. Every estimator has its defaults
but for the weight of the plain Lasso, whose default, 1, leaves no coefficient at this scale.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LassoCV, Ridge
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from penchant.sklearn import DiagonalNetRegressor, DiagonalNetRegressorCV
from penchant.threads import one_thread

PAGE = Path(__file__).resolve().parent / "howto" / "estimators.md"
SPLITS = 5
TABLE = re.compile(r"(<!-- table: begin -->\n).*?(<!-- table: end -->)", re.S)
ESTIMATORS = {
    "`Ridge()`": Ridge(),
    "`Lasso(0.1)`": Lasso(0.1),
    "`LassoCV()`": LassoCV(),
    "`DiagonalNetRegressor()`": DiagonalNetRegressor(),
    "`DiagonalNetRegressorCV()`": DiagonalNetRegressorCV(),
}


class Data(NamedTuple):
    """Samples, what is predicted, and how many samples training has."""

    X: Any
    y: Any
    train: int


def sets() -> dict[str, Data]:
    """The data sets by their names in the table."""
    diabetes, wine, digits = load_diabetes(), load_wine(), load_digits()
    return {
        "diabetes": Data(diabetes.data, diabetes.target, 300),
        "wine: alcohol": Data(wine.data[:, 1:], wine.data[:, 0], 120),
        "digits: 0 or 1": Data(*digits_of(digits, 2), 40),
    }


def digits_of(digits: Any, below: int) -> tuple[Any, Any]:
    """The images of the digits below a number, and these digits as numbers."""
    chosen = digits.target < below
    return digits.data[chosen], digits.target[chosen].astype(float)


class Measured(NamedTuple):
    """Root mean squared errors on new samples and seconds of processor time, one for each split."""

    errors: list[float]
    seconds: list[float]


def measure(estimator: Any, data: Data, splits: int = SPLITS) -> Measured:
    found = Measured([], [])
    divide = ShuffleSplit(splits, train_size=data.train, random_state=0)
    for train, test in divide.split(data.X):
        model = TransformedTargetRegressor(
            make_pipeline(StandardScaler(), clone(estimator)), transformer=StandardScaler()
        )
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of LassoCV on wide data
            model.fit(data.X[train], data.y[train])
        found.seconds.append(time.process_time() - begin)
        rest = model.predict(data.X[test]) - data.y[test]
        found.errors.append(float(np.sqrt((rest**2).mean()) / data.y[train].std()))
    return found


def error_text(found: Measured) -> str:
    """The mean error with its standard error."""
    spread = statistics.stdev(found.errors) / len(found.errors) ** 0.5
    return f"{statistics.mean(found.errors):.3f} ± {spread:.3f}"


def time_text(found: Measured) -> str:
    """The median processor time of a fit."""
    seconds = statistics.median(found.seconds)
    return f"{seconds:.2g} s" if seconds >= 1 else f"{1000 * seconds:.2g} ms"


def table() -> str:
    known = sets()
    titles = [f"{name} ({len(d.X[0])} columns, {d.train} samples)" for name, d in known.items()]
    lines = [f"| | {' | '.join(titles)} |", "|---" * (len(known) + 1) + "|"]
    for name, estimator in ESTIMATORS.items():
        cells = []
        for data in known.values():
            found = measure(estimator, data)
            cells.append(f"{error_text(found)}, {time_text(found)}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    with one_thread(xla=False):
        text = table()
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda m: f"{m[1]}{text}\n{m[2]}", page), encoding="utf-8")
    sys.stdout.write(f"{text}\n")
