"""Points on a line for univariate nets: bends of alternate sign, two of the same sign, and one."""

from __future__ import annotations

import numpy as np

from tacit.problems.regression import Regression


def zigzag() -> Regression:
    """Five points at which a linear spline bends up and down in turn.

    Their linear spline is a net of least norm, whether biases count in the norm or not.
    """
    x, y = [-1.0, -0.5, 0.1, 0.5, 1.0], [0.3, -0.6, 0.7, -0.4, 0.5]
    return _points(x, y, "five points whose linear spline bends up and down in turn")


def plateau() -> Regression:
    """The points (-1, 0), (-0.4, 1), (0.4, 1), (1, 0): two neighbouring bends of the same sign.

    The linear spline and the tent with one bend at 0 have the same total bend, 10/3. Counting
    biases, a bend at t weighs sqrt(1 + t^2), and the tent has the smaller norm.
    """
    x, y = [-1.0, -0.4, 0.4, 1.0], [0.0, 1.0, 1.0, 0.0]
    return _points(x, y, "four points whose linear spline bends down twice in a row")


def steep_end() -> Regression:
    """The points (-1, 0), (0.7, 1), (1, 0): one bend, far from 0 and near an end.

    Their linear spline is a net of least norm, biases counted, and small starts do not learn it.
    """
    return _points([-1.0, 0.7, 1.0], [0.0, 1.0, 0.0], "three points, the last two steep")


def _points(x: list[float], y: list[float], description: str) -> Regression:
    return Regression(np.array(x)[:, None], np.array(y), description=description)
