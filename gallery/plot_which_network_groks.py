"""
Which network groks?
====================

In addition mod 31 from 60% of the pairs, all three networks learn the training pairs long before
the others. A twin is a pair (a, b) whose mirror (b, a) is in training. The MLP multiplies both
embeddings, so it learns twins together with their mirrors. A transformer learns the mirror first
and the sum later; a net with squares learns both at the same time.
"""

import sys

import penchant
from penchant.plotting import BLUE, GREY, ORANGE, RED, sheet, styled

problem = penchant.problems.modular_arithmetic(31, operation="+", fraction=0.6)
adam = penchant.Adam(5e-3, weight_decay=2.0)
stop = [penchant.Steps(3000), penchant.stop.Accuracy(test=0.99)]
nets = {
    "MLP": penchant.models.TokenMLP(embedding=64, width=64),
    "squares": penchant.models.TokenQuadratic(width=256),
    "transformer": penchant.models.TokenTransformer(width=64, heads=4, hidden=64),
}

with styled():
    picture, panels = sheet("Three networks grok, each in its way", widths=(3.3,) * 3, height=3.5)
    for axes, (name, net) in zip(panels, nets.items(), strict=True):
        path = penchant.train(net, problem, adam, stop=stop).dataset.isel(time=slice(1, None))
        seen = penchant.measures.grokking(path.step, path.train_accuracy, path.test_accuracy)
        print(f"{name}: {seen.kind}, t1 = {seen.t1:.0f}, t2 = {seen.t2:.0f} steps")
        for place in (seen.t1, seen.t2):
            axes.axvline(place, color=GREY, linewidth=1)
        axes.plot(path.step, path.train_accuracy, "--", color=BLUE, label="training")
        axes.plot(path.step, path.test_accuracy, color=RED, label="validation")
        axes.plot(path.step, path.twin_accuracy, ":", color=ORANGE, label="twins")
        axes.set_title(f"{name}: $t_1$ = {seen.t1:.0f}, $t_2$ = {seen.t2:.0f}")
        axes.set(xscale="log", xlabel="step of Adam", xlim=(10, 3000), ylim=(-0.02, 1.03))
    panels[0].set_ylabel("accuracy")
    panels[1].legend(loc="center right")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "which_network_groks.png")
