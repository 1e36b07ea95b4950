"""
When will it grok?
==================

Your own net, in your own JAX loop, learns addition mod 17 under weight decay: the training pairs
early, new ones much later. `tacit.watch` predicts the time early in training, without test data.
"""

import sys

import jax
import numpy as np

import tacit
from tacit.plotting.style import BLACK, BLUE, GREEN, PALE, RED, sheet, styled

problem, decay, early, forecast = tacit.modular_addition(17, fraction=0.6), 5e-3, 2000, None
x, y, train = np.eye(17)[problem.pairs], np.eye(17)[problem.labels], problem.train
weights = {"embed": np.random.default_rng(0).normal(size=(17, 128)), "read": np.zeros((128, 17))}


def net(w, x):  # it cannot distinguish (a, b) and (b, a); of `novel` pairs neither is in training
    return (x[:, 0] @ w["embed"] * (x[:, 1] @ w["embed"])) @ w["read"]


def descend(_, w):
    slopes = jax.grad(lambda w: ((net(w, x[train]) - y[train]) ** 2).sum(axis=1).mean())(w)
    return jax.tree.map(lambda part, slope: part - 0.04 * (slope + decay * part), w, slopes)


steps = jax.jit(lambda w: jax.lax.fori_loop(0, 50, descend, w))
watch = tacit.watch(net, x[::9], parameters=weights, weight_decay=decay, budget=None)
for step in range(50, 18_001, 50):
    weights = steps(weights)
    right = np.asarray(net(weights, x)).argmax(axis=1) == problem.labels
    watch(step, weights, train_acc=right[train].mean(), test_acc=right[problem.novel].mean())
    forecast = watch.forecast if step <= early else forecast

with styled():
    picture, (axes,) = sheet("Grokking, predicted early in training", widths=(7.0,), height=3.4)
    axes.axvspan(forecast.low, forecast.high, color=PALE, zorder=0, label="interval")
    axes.axvline(forecast.step, color=GREEN, label="forecast")
    axes.axvline(early, color=BLACK, linestyle=":", label="time of the forecast")
    axes.plot(watch.dataset.call_step, watch.dataset.train_acc, color=BLUE, label="training pairs")
    axes.plot(watch.dataset.call_step, watch.dataset.test_acc, color=RED, label="new pairs")
    axes.set(xlabel="step of gradient descent", ylabel="accuracy", xlim=(0, 18_000))
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "when_will_it_grok.png")
