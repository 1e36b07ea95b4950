"""
Scale and imbalance
===================

How far the tangent kernel of two linear layers turns during training; every square is one run.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import sheet, styled

rng = np.random.default_rng(0)
target = rng.standard_normal((2, 5)) / 3
problem = penchant.problems.Sensing(np.eye(10).reshape(10, 2, 5), target.ravel())
narrow = [np.linalg.qr(rng.standard_normal((side, 2)))[0] for side in (2, 5)]
starts = {
    "many hidden units:\nlarge scale or imbalance is lazy": np.split(np.eye(7), [2]),
    "2 hidden units, 2 outputs, 5 inputs:\na large first layer has to turn": narrow,
}


def turned(U, V, scale, imbalance):
    U, V = np.sqrt(scale**2 + max(imbalance, 0)) * U, np.sqrt(scale**2 - min(imbalance, 0)) * V
    net, flow = penchant.Factorization(factors=(U, V)), penchant.methods.MatrixFlow(rtol=1e-4)
    rules = {"stop": penchant.stop.Interpolated(1e-10), "record": penchant.record.LogSpaced(1)}
    path = penchant.train(net, problem, flow, **rules)
    pairs = (U, V), np.split(path.parameters.reshape(7, -1), [2])
    kernels = (np.kron(U @ U.T, np.eye(5)) + np.kron(np.eye(2), V @ V.T) for U, V in pairs)
    return max(penchant.measures.kernel_distance(*kernels), 1e-12)


scales, imbalances = np.geomspace(0.05, 3, 9), np.sinh(np.linspace(-3.2, 3.2, 13)) / 2
with styled():
    picture, panels = sheet("Lazy or rich: scale and imbalance", widths=(5.0, 5.0), height=4.8)
    for axes, (title, start) in zip(panels, starts.items(), strict=True):
        runs = [[turned(*start, s, i) for i in imbalances] for s in scales]
        mesh = axes.pcolormesh(range(13), scales, runs, norm="log", clim=(1e-4, 1))
        axes.set_xticks(range(0, 13, 3), [f"{i:.2g}" for i in imbalances[::3]])
        axes.set(yscale="log", ylabel="singular values of the smaller layer", title=title)
        axes.set_xlabel("imbalance: squared size of the second layer minus the first")
        axes.grid(visible=False)
    bar = picture.colorbar(mesh, ax=list(panels), extend="both", pad=0.01)
    bar.set_label("kernel distance from start to end\ndark: lazy, bright: rich")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "scale_and_imbalance.png")
