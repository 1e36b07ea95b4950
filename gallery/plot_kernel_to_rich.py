"""
From the kernel to the rich regime
==================================

All weights of the predictor that gradient flow selects, as the scale of its start shrinks.
A path over sixty scales takes a few hundredths of a second.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLUE, GREY, sheet, styled

# Thirty samples of a hundred inputs leave many predictors that fit; the true one has four weights.
# `interpolate_path` solves for the predictor that gradient flow of depth 2 selects, at 91 scales of
# its start from 10 to 1e-8, without training.
problem = penchant.problems.sparse_regression(samples=30, dimension=100, sparsity=4, seed=1)
log_alphas = np.log(10) * np.linspace(1, -8, 91)
path = penchant.solvers.interpolate_path(problem.X, problem.y, depth=2, log_alphas=log_alphas)
planted = problem.truth != 0

# Each line is one weight. At large scales (right) all weights take part, as in the solution of
# least $\ell_2$ norm. Towards the left the others shrink, and the planted ones come near the truth.
with styled():
    picture, (axes,) = sheet("Shrink the start: only planted weights survive")
    alphas = np.exp(log_alphas)
    axes.plot(alphas, path.beta[:, ~planted], color=GREY, linewidth=0.6, alpha=0.6)
    axes.plot(alphas, path.beta[:, planted], color=BLUE)
    axes.plot([], [], color=BLUE, label="planted weights")
    axes.plot([], [], color=GREY, label="all others")
    axes.axhline(problem.truth.max(), color="black", linestyle="--", linewidth=1, label="truth")
    axes.set(xscale="log", xlabel=r"initial scale $\alpha$", ylabel=r"selected weights $\beta_i$")
    axes.legend(loc="center left")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "kernel_to_rich.png")
