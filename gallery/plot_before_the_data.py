"""
The test error before the data
==============================

Two scalar equations give the population error of the predictor that training selects, and the
interval that holds nine of ten draws, at every scale. The points are solved on data.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLACK, CYCLE, sheet, styled

# Four of 300 weights are not zero. No data exist yet: the law of the data, its noise and the number
# of samples are enough for what comes.
truth = np.zeros(300)
truth[:4] = 0.5
alphas = np.geomspace(1e-4, 3, 19)

# For each number of samples the line is the predicted error, and the band is to hold nine of ten
# draws of the data. Then three data sets are drawn, and each point is the error of the predictor
# solved on one of them. Nothing was fitted between the line and the points.
with styled():
    picture, (axes,) = sheet("The test error is known before the data")
    for colour, n in zip(CYCLE, (40, 60, 100), strict=False):
        laws = [penchant.Q(2, alpha=alpha) for alpha in alphas]
        before = [
            penchant.forecasts.population_error(
                law, samples=n, dimension=300, truth=truth, noise=0.1
            )
            for law in laws
        ]
        axes.plot(alphas, [one.error for one in before], color=colour, label=f"$N = {n}$")
        axes.fill_between(
            alphas, [b.low for b in before], [b.high for b in before], color=colour, alpha=0.2
        )
        for seed in range(3):
            rng = np.random.default_rng([seed, n])
            X = rng.normal(size=(n, 300))
            y = X @ truth + 0.1 * rng.normal(size=n)
            betas = [penchant.interpolate(X, y, law).beta for law in laws[::3]]
            measured = [((beta - truth) ** 2).sum() for beta in betas]
            axes.plot(alphas[::3], measured, "o", color=colour, markersize=4)
    axes.plot([], [], "o", color=BLACK, markersize=4, label="three draws of the data")
    axes.set(xscale="log", yscale="log", xlabel=r"initial scale $\alpha$")
    axes.set_ylabel(r"population error $\|\beta-\beta^*\|_2^2$")
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "before_the_data.png")
