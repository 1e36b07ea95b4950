"""
The tangent kernel moves, or it does not
========================================

The cosine distance between the tangent kernels before and after training, for several depths.
From large starts the kernel stays where it was; from small ones it turns towards the data.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import CYCLE, sheet, styled

problem = penchant.problems.sparse_regression(samples=10, dimension=30, sparsity=2, seed=0)
scales = np.logspace(2, -3, 21)


def movement(model):
    """How far training turns the tangent kernel of a model on the training samples."""
    path = penchant.train(
        model, problem, penchant.ParameterFlow(rtol=1e-8), stop=penchant.stop.Interpolated(1e-6)
    )
    before = penchant.measures.tangent_kernel(model, model.start(problem.dimension), problem.X)
    return penchant.measures.kernel_distance(
        before, penchant.measures.tangent_kernel(model, path.parameters, problem.X)
    )


with styled():
    picture, (axes,) = sheet("Only small starts move the tangent kernel")
    for colour, depth in zip(CYCLE, (2, 3, 4), strict=False):
        moved = [movement(penchant.DiagonalNet(depth=depth, mu=mu)) for mu in scales]
        axes.plot(scales, moved, "o-", color=colour, markersize=4, label=f"depth {depth}")
    axes.set(xscale="log", xlabel=r"scale of the predictor at the start, $\alpha^D$")
    axes.set_ylabel(r"kernel distance $1 - \cos(K_0, K_\infty)$")
    axes.legend(loc="upper right")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "tangent_kernel_moves.png")
