"""
Width is a scale, too
=====================

Sixty entries of a 10 x 10 matrix of rank one are seen, and U V^T with random Gaussian factors is
trained on them. Small starts end at the matrix of rank one, which here has the least nuclear norm
too (not for every choice of the entries). Large starts do not, and wide factors are large at a
smaller alpha: what matters is alpha^2 times the width k.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLUE, GREY, RED, sheet, styled

# Sixty of a hundred entries are known. `interpolate` gives the least nuclear norm that agrees with
# them, and `seen` is the norm of the known entries with zeros elsewhere.
problem = penchant.problems.low_rank_completion(dimension=10, rank=1, samples=60, seed=0)
least = penchant.interpolate(problem, penchant.regularizers.Nuclear()).value
seen = np.linalg.norm(np.where(problem.observed, problem.truth, 0), "nuc")
scales = np.logspace(-3, 1.5, 10)  # alpha^2 k
flow = penchant.methods.MatrixFlow(rtol=1e-4)
rules = {"stop": penchant.stop.Interpolated(1e-8), "record": penchant.record.LogSpaced(1)}

# Two widths train from ten scales each. Over alpha (left) the two curves lie apart, over alpha^2 k
# (right) they fall together while the excess is small: a wider net needs a smaller start to stay
# out of the kernel regime.
with styled():
    title = "The wider the factors, the sooner the kernel regime"
    picture, panels = sheet(title, widths=(4.4, 4.4), height=3.8)
    for width, colour, marker in ((100, BLUE, "o"), (10_000, RED, "s")):
        alphas = np.sqrt(scales / width)
        nets = [penchant.Factorization(width, alpha=alpha) for alpha in alphas]
        paths = [penchant.train(net, problem, flow, **rules) for net in nets]
        norms = [path.dataset.norm_nuclear.values[-1] for path in paths]
        for axes, scale in zip(panels, (alphas, scales), strict=True):
            excess = np.array(norms) / least - 1
            axes.plot(scale, excess, f"{marker}-", color=colour, label=f"width {width}")
    names = r"standard deviation $\alpha$ of an entry", r"$\alpha^2 k$"
    for axes, name in zip(panels, names, strict=True):
        axes.axhline(seen / least - 1, color=GREY, linestyle="--", label="seen entries alone")
        axes.set(xscale="log", xlabel=name, ylim=(-0.03, 0.75))
    panels[0].set_ylabel("excess of the nuclear norm")
    panels[0].legend(loc="upper left")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "matrix_completion.png")
