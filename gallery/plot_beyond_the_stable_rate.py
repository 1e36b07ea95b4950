"""
Where descent ends beyond its stable rate
=========================================

Descent oscillates where the sharpness reaches 2/rate. The central flow is its average, and ends
where descent ends. Gradient flow, which has no rate, ends elsewhere.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLACK, CYCLE, sheet, styled

# The learning rate is so large that the sharpness soon reaches 2/rate. The same net is trained by
# descent, by the central flow, which has the learning rate as its argument, and by gradient flow.
# `end` is where descent is after many more steps.
problem = penchant.problems.sparse_regression(15, 40, sparsity=3, seed=2)
net, rate = penchant.DiagonalNet(2, alpha=0.03), 0.031
steps = 400
times = rate * np.arange(1, steps + 1)
descent = penchant.GradientDescent(rate, check=False)
given = {"stop": penchant.Time(rate * steps), "record": penchant.record.At(times=times)}
runs = {
    "descent": penchant.train(
        net, problem, descent, stop=given["stop"], record=penchant.record.At(steps=range(steps))
    ),
    "central flow": penchant.train(net, problem, penchant.methods.CentralFlow(rate), **given),
    "gradient flow": penchant.train(net, problem, penchant.DualFlow(), **given),
}
end = penchant.train(net, problem, descent, stop=penchant.Time(rate * 20_000)).predictor

# Each line is a distance to that end. The central flow stops between one and two per cent away from
# it, and gradient flow at a quarter. Descent itself goes on towards its end.
with styled():
    picture, (axes,) = sheet("The central flow ends near the end of descent")
    for k, (name, path) in enumerate(runs.items()):
        data = path.dataset
        far = np.linalg.norm(data.predictor - end, axis=1) / np.linalg.norm(end)
        colour = (BLACK, CYCLE[1], CYCLE[0])[k]
        width = 0.8 if name == "descent" else 2.5
        axes.plot(data.t / rate, far, color=colour, linewidth=width, label=name)
    axes.set(yscale="log", xlim=(0, steps), xlabel="training time / learning rate (steps)")
    axes.set_ylabel("relative distance to the end of descent")
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "beyond_the_stable_rate.png")
