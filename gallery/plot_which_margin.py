"""
Which margin did your optimizer maximise?
=========================================

Four optimizers on one separable problem: each ends at the best margin of its own norm.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import CYCLE, GREY, sheet, styled

# The problem has eight samples and twelve inputs of unequal size, so that the three margins ask for
# different directions. Four optimizers train the same linear predictor.
rng = np.random.default_rng(2)
X = rng.standard_normal((8, 12)) * np.exp(0.5 * rng.standard_normal(12))
problem = penchant.Classification(X, np.where(rng.random(8) < 0.5, 1, -1))
methods = {
    "normalized gradient descent": penchant.methods.SteepestDescent(0.005, penchant.L2()),
    "the largest entry alone": penchant.methods.SteepestDescent(0.015, penchant.L1()),
    "sign descent": penchant.methods.SignDescent(0.005),
    "Adam without epsilon": penchant.Adam(0.005, square_decay=0.95, epsilon=0.0),
}
labels, marks = (r"$\ell_1$", r"$\ell_2$", r"$\ell_\infty$"), ("-", "--", ":")

# `margin_shares` divides the margin that a run has by the best possible one, in each of three
# norms. The thick line of a panel is the norm in which the run ends nearest to 100%: that is the
# bias of its optimizer.
with styled():
    picture, axes = sheet(
        "Each optimizer maximises the margin of its own norm", widths=(3.2,) * 4, height=3.6
    )
    for panel, (name, method) in zip(axes, methods.items(), strict=True):
        path = penchant.train(
            penchant.models.LinearPredictor(), problem, method, stop=penchant.Steps(40_000)
        )
        shares = 100 * penchant.measures.margin_shares(path, problem)
        best = int(shares.values[-1].argmax())
        for k, (label, mark) in enumerate(zip(labels, marks, strict=True)):
            width = 3.5 if k == best else 1.8
            panel.plot(shares.step, shares[:, k], mark, color=CYCLE[k], lw=width, label=label)
        panel.axhline(100, color=GREY, linewidth=1)
        panel.set(xscale="log", xlim=(10, 40_000), ylim=(0, 106), xlabel="steps", title=name)
        end = f"{labels[best]}: {float(shares[-1, best]):.1f}%"
        panel.text(3e4, 50, end, color=CYCLE[best], ha="right", fontsize=12)
    axes[0].set_ylabel("margin, % of the best in the norm")
    for panel in axes[1:]:
        panel.set_yticklabels([])
    axes[0].legend(loc="lower right", title="margin in")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "which_margin.png")
