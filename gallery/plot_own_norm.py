"""
Which norm did training choose, on a net?
=========================================

Three optimizers on ten small problems: how far each net ends from the KKT points of three norms.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import CYCLE, sheet, styled

LAYERS, LINF = penchant.regularizers.LayerSpectral([(6, 4), (6, 1)]), penchant.regularizers.Linf()
NORMS = {r"$\ell_2$": penchant.L2(), r"$\ell_\infty$": LINF, "spectral": LAYERS}
METHODS = {
    "gradient descent": penchant.methods.SteepestDescent(0.01, penchant.L2()),
    "sign descent": penchant.methods.SignDescent(0.002),
    "Muon": penchant.methods.SteepestDescent(0.005, LAYERS, momentum=0.9),
}
places = np.unique(np.geomspace(1, 5000, 25).astype(int))
factors = (1 + places / 400) ** (-2 / 3)  # margins grow like the cube of the weights


def gaps(method, seed):
    """What the trained net misses of the best margin of the linearized net, in every norm."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, 4))
    problem = penchant.Classification(X, np.where(rng.random(6) < 0.5, 1, -1))
    net = penchant.models.two_layer(6, alpha=0.05, activation="quadratic", seed=seed)
    slow, stop = penchant.methods.Scheduled(method, places, factors), penchant.Steps(5000)
    end = penchant.train(net, problem, slow, stop=stop).parameters
    return [penchant.measures.kkt_residual(problem, net, end, norm=n) for n in NORMS.values()]


with styled():
    title = "Each optimizer ends near the KKT points of its own norm"
    picture, axes = sheet(title, widths=(3.4,) * 3, height=3.6)
    for panel, (name, method) in zip(axes, METHODS.items(), strict=True):
        table = np.array([gaps(method, seed) for seed in range(10)])
        table = np.sort(table[np.isfinite(table[:, 0])], axis=0)  # nets that separate their data
        for k, column in enumerate(table.T):
            panel.plot(k + np.linspace(-0.2, 0.2, len(column)), column, "o^s"[k], color=CYCLE[k])
        panel.set(ylim=(0, 0.55), title=f"{name}: {len(table)} of 10 nets separate")
        panel.set_xticks(range(3), NORMS)
    axes[0].set_ylabel("missing share of the best margin")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "own_norm.png")
