"""
Minor features first
====================

SAM on one sample with a diagonal net of two layers. Gradient descent grows the largest feature
first. SAM in l2 begins with minor ones, SAM in l_inf with those that start above rho alone.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import CYCLE, GREY, sheet, styled

mu, rho = np.array([0.5, 0.8, 1.2, 1.8]), 0.1
problem = penchant.Classification(mu[None], [1.0])
equal = np.full(4, 0.05)
mixed = np.array([0.13, 0.08, 0.12, 0.07])
runs = {
    "gradient descent": (penchant.GradientDescent(0.01), equal),
    r"SAM in $\ell_2$": (penchant.methods.SAM(0.01, rho), equal),
    r"SAM in $\ell_\infty$": (penchant.methods.SAM(0.01, rho, penchant.regularizers.Linf()), mixed),
}

with styled():
    picture, panels = sheet("SAM grows minor features first", widths=(4.0,) * 3)
    for axes, (name, (method, start)) in zip(panels, runs.items(), strict=True):
        net = penchant.models.ProductNet(start, start)
        record = penchant.record.LogSpaced(60)
        path = penchant.train(net, problem, method, stop=penchant.Steps(60_000), record=record)
        weights = np.sqrt(np.maximum(path.dataset.predictor, 1e-9))
        for feature, colour, row in zip(mu, CYCLE, weights.T, strict=False):
            axes.plot(path.dataset.step, row, color=colour, label=f"{feature:g}")
        axes.set(xscale="log", yscale="log", xlim=(20, 60_000), ylim=(0.01, 4), title=name)
        axes.set_xlabel("steps")
    panels[2].axhline(rho, color=GREY, linestyle="--")
    panels[2].text(3e4, 1.1 * rho, r"$\rho$")
    panels[0].set_ylabel(r"weights $\sqrt{\beta_i}$")
    panels[0].legend(title=r"feature $\mu_i$")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "minor_features_first.png")
