"""
The shape of the start
======================

Two starts with the same scale and different shapes w0 end at different predictors in the kernel
regime (there the norm is weighted by 1/w0^2), and at the same one in the rich limit.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLACK, BLUE, sheet, styled

rng = np.random.default_rng(0)
problem = penchant.problems.sparse_regression(samples=20, dimension=60, sparsity=3, seed=0)
X, y = problem.X, problem.y
shape = rng.uniform(0.5, 2.0, size=60)
log_alphas = np.log(10) * np.linspace(1, -20, 85)
flat = penchant.solvers.interpolate_path(X, y, depth=2, log_alphas=log_alphas)
bent = penchant.solvers.interpolate_path(X, y, depth=2, log_alphas=log_alphas, shape=shape)
distance = np.linalg.norm(flat.beta - bent.beta, axis=1)
kernel = (
    penchant.interpolate(X, y, penchant.L2()),
    penchant.interpolate(X, y, penchant.L2(1 / shape**2)),
)

with styled():
    picture, (axes,) = sheet("The start's shape matters in the kernel regime only")
    axes.plot(np.exp(log_alphas), distance, color=BLUE, label="flat start and bent start")
    limit = np.linalg.norm(kernel[0].beta - kernel[1].beta)
    axes.axhline(
        limit, color=BLACK, linestyle="--", linewidth=1, label=r"$\ell_2$ and weighted $\ell_2$"
    )
    axes.set(xscale="log", ylim=(0, None), xlabel=r"initial scale $\alpha$")
    axes.set(ylabel="distance between the two predictors")
    axes.legend(loc="center left")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "shape_of_the_start.png")
