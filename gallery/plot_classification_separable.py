"""
The margins between l2 and l1
=============================

All weights of the max margin predictor in the regularizer Q of a depth-3 net, as mu falls: from
the l2 max margin to the l1 max margin. At the dotted lines the support vectors change.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLACK, BLUE, GREY, sheet, styled

rng = np.random.default_rng(1)
X = rng.normal(size=(30, 40))
y = np.sign(X[:, :3].sum(axis=1))
mus = np.logspace(2, -7, 91)
path = penchant.solvers.max_margin_path(X, y, depth=3, mus=mus)
ends = [(mus[0], penchant.max_margin(X, y, penchant.L2()).beta)]
ends.append((mus[-1], penchant.max_margin(X, y, penchant.L1()).beta))

with styled():
    picture, (axes,) = sheet("Towards l1 three weights stand out", height=3.5)
    axes.plot(mus, path.beta[:, 3:], color=GREY, linewidth=0.6)
    axes.plot(mus, path.beta[:, :3], color=BLUE)
    axes.plot([], [], color=BLUE, label="weights that made the labels")
    axes.plot([], [], color=GREY, linewidth=0.6, label="all others")
    for mu, end in ends:
        axes.plot(np.full(3, mu), end[:3], "o", color=BLACK, clip_on=False)
    axes.plot([], [], "o", color=BLACK, label=r"$\ell_2$ (left) and $\ell_1$ (right) margin")
    for change in path.changes:
        axes.axvline(change.mu, color=GREY, linestyle=":", linewidth=0.7)
    axes.set(
        xscale="log", xlim=(mus[0], mus[-1]), xlabel=r"$\mu = \alpha^3 / \log(1/\mathrm{loss})$"
    )
    axes.set_ylabel("weights at margin 1")
    axes.legend(loc="center right", bbox_to_anchor=(1, 0.55))
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "classification_separable.png")
