"""
The largest scale that generalises
==================================

Population error along the scale for several sample sizes. Where a curve is below the level,
the start is small enough. With fewer samples it has to be much smaller, or no scale is enough.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLACK, CYCLE, sheet, styled

problem = penchant.problems.sparse_regression(samples=120, dimension=300, sparsity=3, seed=0)
log_alphas = np.log(10) * np.linspace(0.5, -12, 51)
level = 0.025

with styled():
    picture, (axes,) = sheet("A few more samples allow a much larger start")
    for colour, n in zip(CYCLE, (20, 30, 40, 60, 120), strict=False):
        path = penchant.solvers.interpolate_path(
            problem.X[:n], problem.y[:n], log_alphas=log_alphas
        )
        error = ((path.beta - problem.truth) ** 2).sum(axis=1)
        axes.plot(np.exp(log_alphas), error, color=colour, label=f"$N = {n}$")
    axes.axhline(level, color=BLACK, linestyle="--", linewidth=1, label=f"level {level}")
    axes.set(xscale="log", yscale="log", xlabel=r"initial scale $\alpha$")
    axes.set_ylabel(r"population error $\|\beta-\beta^*\|_2^2$")
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "largest_scale.png")
