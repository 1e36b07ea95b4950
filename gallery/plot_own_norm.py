"""
Which norm did training choose, on a net?
=========================================

Three optimizers on one small net: how far each run is from the KKT points of three norms.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import CYCLE, sheet, styled

LAYERS = penchant.regularizers.LayerSpectral([(6, 4), (6, 1)])
LINF = penchant.regularizers.Linf()
NORMS = {"$\\ell_2$": penchant.L2(), "$\\ell_\\infty$": LINF, "spectral": LAYERS}
STEEPEST = penchant.methods.SteepestDescent
METHODS = {
    "gradient descent": STEEPEST(0.003, penchant.L2()),
    "sign descent": penchant.methods.SignDescent(0.0006),
    "Muon": STEEPEST(0.0015, LAYERS, momentum=0.9),
}
rng = np.random.default_rng(3)
problem = penchant.Classification(rng.standard_normal((6, 4)), np.where(rng.random(6) < 0.5, 1, -1))
net = penchant.models.two_layer(6, alpha=0.05, activation="quadratic", seed=3)
lengths = np.unique(np.geomspace(1000, 8000, 8).astype(int))

with styled():
    title = "Each optimizer comes nearer to the KKT points of its own norm"
    picture, axes = sheet(title, widths=(3.6,) * 3, height=3.6)
    for own, (panel, (name, method)) in enumerate(zip(axes, METHODS.items(), strict=True)):
        ends = [
            penchant.train(net, problem, method, stop=penchant.Steps(int(steps))).parameters
            for steps in lengths
        ]
        for k, (label, norm) in enumerate(NORMS.items()):
            gaps = [penchant.measures.kkt_residual(problem, net, end, norm=norm) for end in ends]
            width = 3.5 if k == own else 1.8
            panel.plot(lengths, gaps, "o^s"[k] + "-", color=CYCLE[k], lw=width, label=label)
        panel.set(xscale="log", ylim=(0, 0.5), xlabel="steps", title=name)
    axes[0].set_ylabel("missing share of the best margin")
    axes[0].legend(loc="upper right", title="gap in")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "own_norm.png")
