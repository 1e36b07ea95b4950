"""
How accurate must training be?
==============================

Train a depth-2 net on your own separable data until its direction is within ten, five and two
degrees of the l1 max margin, and look at the loss. From large starts the number of its leading
zeros grows like alpha^2; from small starts some weights of the l1 solution grow late.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import CYCLE, GREY, sheet, styled

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 30))
problem = penchant.Classification(X, np.sign(X[:, 0] - X[:, 1]))
sparse = penchant.max_margin(problem.X, problem.y, penchant.L1()).beta
alphas = np.logspace(-1, 2, 7)


def zeros(alpha, nearness):
    """The number of leading zeros of the loss when the flow is first this near to l1."""
    net, stop = (
        penchant.DiagonalNet(depth=2, alpha=alpha),
        penchant.stop.Near(sparse, min(nearness)),
    )
    path = penchant.train(net, problem, penchant.DualFlow(rtol=1e-6), stop=stop)
    path = path.dataset.isel(time=slice(1, None))
    away = penchant.measures.angle(path.predictor, sparse)
    first = [np.argmax(away <= 1.0001 * degrees) for degrees in nearness]
    return path.smoothed_margin.values[first] / np.log(10)


with styled():
    picture, (axes,) = sheet("Starts of moderate size come near l1 soonest")
    needed = np.array([zeros(alpha, (10, 5, 2)) for alpha in alphas])
    for colour, degrees, row in zip(CYCLE, (10, 5, 2), needed.T, strict=False):
        axes.plot(alphas, row, "o-", color=colour, label=f"within {degrees} degrees")
    axes.plot(alphas, needed[-1, 2] * (alphas / 100) ** 2, "--", color=GREY, label=r"$\alpha^2$")
    axes.set(xscale="log", yscale="log", xlabel=r"initial scale $\alpha$")
    axes.set_ylabel("zeros of the loss needed")
    axes.legend(loc="upper center")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "classification_accuracy.png")
