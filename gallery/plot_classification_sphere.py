"""
First the kernel, then the path
===============================

The direction of the predictor in gradient flow on three separable points in R^3. From a large start
it goes to the l2 max margin, then along the Q max margins to l1; from a small start it goes to l1
more directly.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLACK, BLUE, GREEN, GREY, ORANGE, SKY, end_label, sheet, styled

problem = penchant.problems.three_points("3b")
X, y = problem.X, problem.y
margins = penchant.solvers.max_margin_path(X, y, depth=2, mus=np.logspace(4, -8, 121))
ends = {
    "l2": penchant.max_margin(X, y, penchant.L2()),
    "l1": penchant.max_margin(X, y, penchant.L1()),
}

with styled():
    title = "Only large starts pass through the kernel regime"
    picture, (axes,) = sheet(title, widths=(6.4,), height=4.4)
    for alpha, colour in ((100, BLUE), (0.1, SKY)):
        net, flow = penchant.DiagonalNet(depth=2, alpha=alpha), penchant.DualFlow(rtol=1e-6)
        path = penchant.train(net, problem, flow, stop=penchant.stop.Scale(1e-6)).dataset
        curve = penchant.measures.azimuth_pitch(path.predictor[1:])
        axes.plot(*curve, color=colour, linewidth=3, label=rf"flow from $\alpha = {alpha:g}$")
    axes.plot(
        *penchant.measures.azimuth_pitch(margins.beta), "--", color=BLACK, label=r"$Q_\mu$ margins"
    )
    for (name, end), colour, marker in zip(ends.items(), (GREEN, ORANGE), "o*", strict=True):
        point = penchant.measures.azimuth_pitch(end.beta)
        axes.plot(*point, marker, color=colour, markersize=12)
        end_label(axes, *point, rf"$\ell_{name[1]}$", BLACK, xytext=(-8, 10), ha="right")
    start = penchant.measures.azimuth_pitch(problem.signed_rows.mean(axis=0))
    end_label(axes, *start, "start", GREY, xytext=(0, 8), ha="center")
    axes.set(xlabel="azimuth (degrees)", ylabel="pitch (degrees)", ylim=(-2, 28))
    axes.legend(loc="center left")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "classification_sphere.png")
