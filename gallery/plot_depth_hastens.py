"""
Depth hastens the transition
============================

The excess of the l1 norm of the selected predictor over the least possible, against alpha^D.
From depth 3 on the excess is proportional to alpha^D; at depth 2 it falls like a tiny power of it.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import CYCLE, sheet, styled

problem = penchant.problems.sparse_regression(samples=25, dimension=80, sparsity=3, seed=2)
X, y = problem.X, problem.y
least = np.abs(penchant.interpolate(X, y, penchant.L1()).beta).sum()
log_mus = np.log(10) * np.linspace(2, -8, 61)

with styled():
    picture, (axes,) = sheet("The rich limit gets cheaper with every layer")
    for colour, depth in zip(CYCLE, (2, 3, 4, 10), strict=False):
        path = penchant.solvers.interpolate_path(X, y, depth=depth, log_alphas=log_mus / depth)
        excess = np.abs(path.beta).sum(axis=1) / least - 1
        axes.plot(np.exp(log_mus), excess, color=colour, label=f"depth {depth}")
    axes.set(xscale="log", yscale="log", ylim=(1e-4, None))
    axes.set(xlabel=r"scale of the predictor at the start, $\alpha^D$")
    axes.set_ylabel(r"relative excess of the $\ell_1$ norm")
    axes.legend(loc="lower right")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "depth_hastens.png")
