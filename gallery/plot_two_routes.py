"""
Two routes along one flow
=========================

Gradient flow from a tiny start, integrated once in the parameters (two per weight) and once in
the dual (one variable per sample). Weights switch on one after the other, largest first.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import CYCLE, GREY, sheet, styled

truth = np.zeros(40)
truth[:4] = 2.0, 1.0, -0.6, 0.3
X = np.random.default_rng(0).normal(size=(32, 40)) / np.sqrt(32)
problem = penchant.Regression(X, X @ truth, truth=truth)
model = penchant.DiagonalNet(depth=2, alpha=1e-6)
dual, parameters = (
    penchant.train(
        model, problem, flow, stop=penchant.stop.Interpolated(1e-6), record=record
    ).dataset
    for flow, record in (
        (penchant.DualFlow(), penchant.record.LogSpaced(60)),
        (penchant.ParameterFlow(), penchant.record.LogSpaced(10)),
    )
)

with styled():
    picture, (axes,) = sheet("One flow, two routes: the weights grow one by one", widths=(7.0,))
    axes.plot(dual.t, dual.predictor[:, 4:], color=GREY, linewidth=0.7)
    for colour, i in zip(CYCLE, range(4), strict=False):
        label = rf"$\beta_{i + 1}$, truth {truth[i]:g}"
        axes.plot(dual.t, dual.predictor[:, i], color=colour, label=label)
        axes.plot(parameters.t, parameters.predictor[:, i], "o", color=colour, markersize=3)
    axes.plot([], [], color=GREY, linewidth=0.7, label="all others")
    axes.set(
        xscale="log", xlim=(0.3, None), xlabel="training time $t$", ylabel=r"weights $\beta_i$"
    )
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), title="line: dual\ndots: parameters")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "two_routes.png")
