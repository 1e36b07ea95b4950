"""
Explicit distance against implicit bias
=======================================

Gradient flow (Q) does not choose the interpolating weights nearest to its start (R). At moderate
scales R is close to l1, and Q is not.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLUE, RED, sheet, styled

problem = penchant.problems.sparse_regression(samples=15, dimension=50, sparsity=3, seed=0)
X, y = problem.X, problem.y
least = np.abs(penchant.interpolate(X, y, penchant.L1()).beta).sum()
alphas = np.logspace(1, -3, 33)


def excess(regularizer):
    """Relative excess of the l1 norm of the predictor that a regularizer selects."""
    return np.abs(penchant.interpolate(X, y, regularizer).beta).sum() / least - 1


with styled():
    picture, (axes,) = sheet("The flow does not end nearest to its start")
    implicit = [excess(penchant.Q(depth=2, alpha=alpha)) for alpha in alphas]
    explicit = [excess(penchant.regularizers.R(alpha=alpha)) for alpha in alphas]
    axes.plot(alphas, implicit, color=BLUE, label="Q: gradient flow")
    axes.plot(alphas, explicit, color=RED, label="R: least distance from the start")
    axes.set(xscale="log", yscale="log", xlabel=r"initial scale $\alpha$")
    axes.set_ylabel(r"relative excess of the $\ell_1$ norm")
    axes.legend(loc="lower right")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "explicit_and_implicit.png")
