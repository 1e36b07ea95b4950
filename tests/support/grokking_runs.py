"""The real training runs of the bank of labelled curves: each a few seconds of one processor."""

from __future__ import annotations

import dataclasses

import numpy as np

import penchant
from penchant.problems.arithmetic import TokenPairs

DENSITY = penchant.record.LogSpaced(30)


def accuracies(model, problem, method, steps, **given):
    """The accuracies of a run from its first step on."""
    path = penchant.train(
        model, problem, method, stop=penchant.Steps(steps), record=DENSITY, **given
    ).dataset.isel(time=slice(1, None))
    names = {"t": "step", "train": "train_accuracy", "test": "test_accuracy"}
    return {name: path[of].values for name, of in names.items()}


def sums(modulus=23, fraction=0.6, wrong=0.0, everywhere=True, operation="+", seed=0):
    """Modular arithmetic; a share of the labels is `wrong`, `everywhere` or in training only."""
    whole = penchant.problems.modular_arithmetic(
        modulus, operation=operation, fraction=fraction, seed=seed
    )
    rng = np.random.default_rng(seed)
    drawn = rng.random(len(whole.labels)) < wrong
    labels = np.where(
        drawn & (everywhere | whole.train),
        rng.integers(0, modulus, len(whole.labels)),
        whole.labels,
    )
    return TokenPairs(whole.tokens, whole.classes, whole.pairs, labels, whole.train)


def mlp(steps=6000, rate=0.003, decay=1.0, width=64, seed=0, **data):
    net = penchant.models.TokenMLP(width, width, seed=seed)
    return accuracies(net, sums(seed=seed, **data), penchant.Adam(rate, weight_decay=decay), steps)


def quadratic(steps=20000, rate=0.01, decay=0.3, alpha=1.0, width=128, seed=0, method=None, **data):
    net = penchant.models.TokenQuadratic(width, alpha=alpha, seed=seed)
    method = method or penchant.Adam(rate, weight_decay=decay)
    return accuracies(net, sums(seed=seed, **data), method, steps)


def group(steps=10000, rate=0.003, decay=1.0, fraction=0.6, seed=0):
    problem = penchant.problems.permutation_group(4, fraction=fraction, seed=seed)
    net = penchant.models.TokenMLP(64, 64, seed=seed)
    return accuracies(net, problem, penchant.Adam(rate, weight_decay=decay), steps)


def digits(
    steps=20000,
    alpha=1.0,
    rate=0.001,
    decay=0.3,
    width=100,
    train=200,
    wrong=0.0,
    seed=0,
    batch=None,
):
    """As in Omnigrok: a ReLU net on few digits from a large start."""
    images = penchant.problems.load_images("digits", train=train, test=360, seed=seed)
    rng = np.random.default_rng(seed)
    drawn = rng.random(train) < wrong
    labels = np.where(drawn, rng.integers(0, 10, train), images.train_labels)
    images = dataclasses.replace(images, train_labels=labels.astype(images.train_labels.dtype))
    net = penchant.models.dense_net((width,), alpha=alpha, seed=seed)
    return accuracies(net, images, penchant.Adam(rate, weight_decay=decay), steps, batch=batch)


def diagonal(norm, decay, gap=0.0, samples=50, dimension=150, end=10.0, seed=0):
    """L: the flow of a diagonal net under decay; labels of three coordinates or with a gap."""
    make = penchant.problems.wide_margin if gap else penchant.problems.majority
    problem = make(samples, dimension, **({"gamma": gap} if gap else {}), seed=seed)
    net = penchant.DiagonalNet(depth=2, alpha=norm / np.sqrt(2 * dimension))
    times = np.geomspace(1e-2, end / decay, 120)
    flow = penchant.DualFlow(rtol=1e-5, weight_decay=decay)
    path = penchant.train(net, problem, flow, record=penchant.record.At(times=times)).dataset
    path = path.isel(time=slice(1, None))
    names = {"t": "t", "train": "train_accuracy", "test": "test_accuracy", "norm": "parameter_norm"}
    return {name: path[of].values for name, of in names.items()}


def recovery(
    penalty, beta, steps, start=1.0, samples=30, dimension=100, sparsity=5, rate=0.1, seed=0
):
    """N: linear regression with a penalty from a large start; squared errors of it."""
    problem = penchant.problems.sparse_recovery(samples, dimension, sparsity=sparsity, seed=seed)
    method = (
        penchant.GradientDescent(rate, subgradient=True)
        if penalty == "l1"
        else penchant.GradientDescent(rate)
    )
    law = {"l1": penchant.L1(), "l2": penchant.L2()}[penalty]
    path = penchant.train(
        penchant.models.LinearPredictor(start),
        problem,
        method,
        penalty=beta * law,
        stop=penchant.Steps(steps),
        record=DENSITY,
    ).dataset.isel(time=slice(1, None))
    points, size = path.predictor.values, np.sum(problem.truth**2)
    unseen = problem.truth - np.linalg.pinv(problem.X) @ problem.X @ problem.truth
    return {
        "t": path.step.values,
        "train": np.sum((points @ problem.X.T - problem.y) ** 2, axis=1) / size,
        "test": np.sum((points - problem.truth) ** 2, axis=1) / size,
        "norm": np.linalg.norm(points, axis=1),
        "floor": np.sum(unseen**2) / size,
    }


def spectrum(power, steps, samples=60, dimension=60, noise=0.0, seed=0):
    """Descent on linear regression whose features shrink as i^-power; errors as shares."""
    rng = np.random.default_rng(seed)
    scale = np.arange(1.0, dimension + 1) ** -power
    X, new = rng.standard_normal((2, samples, dimension)) * scale
    truth = rng.standard_normal(dimension) / scale * np.arange(1.0, dimension + 1) ** -0.75
    y = X @ truth + noise * rng.standard_normal(samples)
    problem = penchant.Regression(X, y, truth=truth)
    rate = 0.9 / np.linalg.norm(X, 2) ** 2
    path = penchant.train(
        penchant.models.LinearPredictor(),
        problem,
        penchant.GradientDescent(rate),
        stop=penchant.Steps(steps),
        record=DENSITY,
    ).dataset.isel(time=slice(1, None))
    points = path.predictor.values
    return {
        "t": path.step.values,
        "train": np.mean((points @ X.T - y) ** 2, axis=1) / np.mean(y**2),
        "test": np.mean((points @ new.T - new @ truth) ** 2, axis=1) / np.mean((new @ truth) ** 2),
    }


def margin(steps, samples=40, dimension=30, rate=0.5, seed=0):
    """Descent on the logistic loss of separable data: its direction turns like log t."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(dimension)
    scale = np.arange(1.0, dimension + 1) ** -1.0
    X, new = (rng.standard_normal((n, dimension)) * scale for n in (samples, 2000))
    problem = penchant.Classification(
        X,
        np.sign(X @ truth),
        loss="logistic",
        test=penchant.Classification(new, np.sign(new @ truth), loss="logistic"),
    )
    return accuracies(
        penchant.models.LinearPredictor(), problem, penchant.GradientDescent(rate), steps
    )


def sparse(alpha, decay, samples=50, dimension=60, noise=0.5, end=10.0, seed=0):
    """A diagonal net on noisy labels of a sparse truth, as many as there are features: it fits,
    overfits, and forgets its start under decay. Squared errors as shares of the truth's square.
    """
    problem = penchant.problems.sparse_regression(
        samples, dimension, sparsity=3, noise=noise, seed=seed
    )
    net = penchant.DiagonalNet(depth=2, alpha=alpha)
    times = np.geomspace(1e-6, end / decay, 130)
    flow = penchant.DualFlow(rtol=1e-5, weight_decay=decay)
    path = penchant.train(net, problem, flow, record=penchant.record.At(times=times)).dataset
    path = path.isel(time=slice(1, None))
    points, size = path.predictor.values, np.sum(problem.truth**2)
    residuals = points @ problem.X.T - problem.y
    return {
        "t": path.t.values,
        "train": np.mean(residuals**2, axis=1) / np.mean(problem.y**2),
        "test": np.sum((points - problem.truth) ** 2, axis=1) / size,
    }


def completion(beta, steps, start=1.0, samples=24, dimension=6, rate=0.1, seed=0):
    """N: matrix completion with the squared Frobenius norm from a large start; squared errors."""
    problem = penchant.problems.low_rank_completion(samples, dimension, rank=1, seed=seed)
    path = penchant.train(
        penchant.models.LinearMatrix((dimension, dimension), start),
        problem,
        penchant.GradientDescent(rate),
        penalty=beta * penchant.L2(),
        stop=penchant.Steps(steps),
        record=DENSITY,
    ).dataset.isel(time=slice(1, None))
    points, size = path.predictor.values, np.sum(problem.truth**2)
    hidden = np.ones(problem.shape, bool)
    hidden[tuple(np.transpose(problem.entries))] = False
    return {
        "t": path.step.values,
        "train": path.loss.values / size,
        "test": np.sum((points - problem.truth) ** 2, axis=(1, 2)) / size,
        "norm": path.parameter_norm.values,
        "floor": np.sum(problem.truth[hidden] ** 2) / size,
    }
