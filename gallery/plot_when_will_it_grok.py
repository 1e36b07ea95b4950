"""
When will it grok?
==================

Your own net, in your own JAX loop, learns addition mod 17 under weight decay: the training pairs
early, new ones much later. `penchant.watch` forecasts when at every look, and records it.
"""

import sys

import jax
import numpy as np

import penchant
from penchant.plotting import BLACK, BLUE, GREEN, PALE, RED, sheet, styled

# The data are all pairs (a, b) and a + b mod 17. Sixty per cent of the pairs are for training. The
# weights are an embedding and a layer that reads the sum.
problem, rate, decay = penchant.problems.modular_arithmetic(17, fraction=0.6), 0.04, 5e-3
x, y, train = np.eye(17)[problem.pairs], np.eye(17)[problem.labels], problem.train
weights = {"embed": np.random.default_rng(0).normal(size=(17, 128)), "read": np.zeros((128, 17))}


# The net and its step of descent are plain JAX; penchant knows nothing of them.
def net(w, x):  # it cannot distinguish (a, b) and (b, a); of `novel` pairs neither is in training
    return (x[:, 0] @ w["embed"] * (x[:, 1] @ w["embed"])) @ w["read"]


def descend(_, w):
    slopes = jax.grad(lambda w: ((net(w, x[train]) - y[train]) ** 2).sum(axis=1).mean())(w)
    return jax.tree.map(lambda part, slope: part - rate * (slope + decay * part), w, slopes)


# `watch` takes the function and the weights, the learning rate and the decay. It is called every 50
# steps with the weights and the two accuracies, and makes a forecast from what it has seen so far.
steps = jax.jit(lambda w: jax.lax.fori_loop(0, 50, descend, w))
how = {"learning_rate": rate, "weight_decay": decay, "budget": None}
watch = penchant.watch(net, x[::9], parameters=weights, **how)
for step in range(50, 18_001, 50):
    right = np.asarray(net(weights := steps(weights), x)).argmax(axis=1) == problem.labels
    watch(step, weights, train_acc=right[train].mean(), test_acc=right[problem.novel].mean())
# Left: the training pairs are known long before the new ones. Right: every forecast at the step at
# which it was made, with its interval; the black line is the step of the jump, which came later.
with styled():
    seen, jump = watch.dataset, watch.verdict.jump
    picture, (curves, made) = sheet("Forecasts of a grok, as they were made", widths=(4.3, 4.7))
    curves.plot(seen.call_step, seen.train_acc, color=BLUE, label="training pairs")
    curves.plot(seen.call_step, seen.test_acc, color=RED, label="new pairs")
    made.fill_between(seen.step, seen.forecast_low, seen.forecast_high, color=PALE, label="80%")
    made.plot(seen.step, seen.forecast_step, "o-", color=GREEN, label="forecast")
    made.axhline(jump, color=BLACK, label="the jump")
    curves.set(xscale="log", xlabel="step of gradient descent", ylabel="accuracy")
    made.set(xscale="log", xlabel="step at which it was made", ylabel="step", ylim=(0, 20_000))
    curves.legend(loc="center left"), made.legend(loc="lower left")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "when_will_it_grok.png")
