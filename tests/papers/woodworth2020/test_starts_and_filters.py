"""Linear convolutional nets and biased starts: wrong theories are caught, numbers by two routes."""

import numpy as np
import pytest
from scipy.optimize import linprog

from penchant import Classification, Regression, models
from penchant.lab.evidence.evidence import HOLDING, judge
from penchant.measures import kernel_machine
from penchant_papers.woodworth2020 import (
    biased_starts,
    completion_samples,
    convolutional,
    tangent_kernel,
)


@pytest.mark.parametrize("wrong", ["more", "less", "signal"])
def test_another_penalty_of_the_frequencies_is_refuted(data_of, wrong):
    (dataset,) = data_of("W-conv")
    assert judge(convolutional.check(dataset))[0] in HOLDING
    assert judge(convolutional.check(dataset.assign(own=dataset[wrong])))[0] not in HOLDING


def test_ends_far_above_the_least_penalty_are_refuted(data_of):
    (dataset,) = data_of("W-conv")
    wrong = dataset.assign(excess=dataset.excess_l1)
    assert judge(convolutional.check(wrong))[0] not in HOLDING


@pytest.mark.parametrize("depth", [2, 3])
def test_the_net_is_a_chain_of_circular_convolutions(depth):
    rng = np.random.default_rng(depth)
    w, X = rng.normal(size=(depth, 7)), rng.normal(size=(4, 7))
    beta = w[0]
    for layer in w[1:]:
        beta = np.array([sum(beta[j] * layer[(k - j) % 7] for j in range(7)) for k in range(7)])
    np.testing.assert_allclose(models.filters_predictor(w.ravel(), depth), beta, atol=1e-12)
    outputs = models.convolutional_net(depth, alpha=1.0).predict(w.ravel(), X)
    np.testing.assert_allclose(outputs, X @ beta, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("p", [1.0, 2 / 3, 2.0])
def test_the_gradient_of_a_penalty_is_stationary_for_it_alone(p):
    few = convolutional.spectrum(np.random.default_rng(1).normal(size=9))
    pull = 0.3 * np.abs(few) ** (p - 2) * few
    assert convolutional.unstationary(p, few, pull) < 1e-12
    assert convolutional.unstationary(p + 0.5, few, pull) > 0.01


def test_the_least_penalty_of_the_frequencies_against_a_linear_program():
    """min |F b|_1 with margins of at least 1, each modulus as the largest of 90 projections."""
    seed, d = 5, convolutional.DIMENSION
    excess = convolutional.cell(2, seed)["excess"]
    rng = np.random.default_rng((seed, 11))
    X = rng.normal(size=(convolutional.SAMPLES, d))
    y = rng.choice([-1.0, 1.0], convolutional.SAMPLES)
    F = np.fft.fft(np.eye(d), norm="ortho")
    turns = np.exp(-2j * np.pi * np.arange(90) / 90)
    projected = np.concatenate([(turn * F).real for turn in turns])
    below = -np.tile(np.eye(d), (len(turns), 1))
    margins = np.concatenate([-y[:, None] * X, np.zeros((len(y), d))], axis=1)
    A = np.concatenate([np.concatenate([projected, below], axis=1), margins])
    b = np.concatenate([np.zeros(len(projected)), -np.ones(len(y))])
    cost = np.concatenate([np.zeros(d), np.ones(d)])
    bounds = [(None, None)] * d + [(0, None)] * d
    solution = linprog(cost, A_ub=A, b_ub=b, bounds=bounds)
    penalty = np.abs(convolutional.spectrum(solution.x[:d])).sum()
    inner = np.cos(np.pi / 90)
    l1 = convolutional.cell(2, seed)["excess_l1"]
    # `excess` is over a lower bound; the program gives the least value up to the polygon
    assert penalty * inner <= solution.fun * (1 + 1e-9)
    from penchant import L1, max_margin

    end = max_margin(Classification(X, y), L1()).beta
    value = np.abs(convolutional.spectrum(end)).sum() / (y * (X @ end)).min()
    bound = value / (1 + l1)
    assert bound <= solution.fun / inner * (1 + 1e-9)
    assert solution.fun <= bound * (1 + excess) * (1 + 1e-9)


def test_relu_nets_far_from_the_nearest_interpolant_are_refuted(data_of):
    data = list(data_of("W-K"))
    place = next(k for k, one in enumerate(data) if "far_growing" in one)
    assert judge(tangent_kernel.check(*data))[0] in HOLDING
    data[place] = data[place].assign(far=data[place].far_zero)
    assert judge(tangent_kernel.check(*data))[0] not in HOLDING


def test_the_interpolant_nearest_to_the_start_by_its_kernel():
    rng = np.random.default_rng(3)
    X, new, y = rng.normal(size=(6, 3)), rng.normal(size=(20, 3)), rng.normal(size=6)
    model = biased_starts.biased_net(1e4, seed=2)
    start = model.start(3)
    J, K = model.jacobian(start, X), model.jacobian(start, new)
    move = np.linalg.solve(J @ J.T, y - model.predict(start, X))
    nearest = model.predict(start, new) + K @ J.T @ move
    got = kernel_machine(model, Regression(X, y)).predict(new)
    np.testing.assert_allclose(got, nearest, rtol=1e-3, atol=1e-3)


def test_the_output_of_a_biased_start_stays_while_the_scale_grows():
    X = np.random.default_rng(4).normal(size=(50, 3))
    sizes = [
        [
            np.sqrt(np.mean(net.predict(net.start(3), X) ** 2))
            for net in (biased_starts.biased_net(scale, 1, growing) for scale in (1e2, 1e4))
        ]
        for growing in (False, True)
    ]
    assert sizes[0][1] == pytest.approx(sizes[0][0], rel=0.1)
    assert sizes[1][1] == pytest.approx(100 * sizes[1][0], rel=0.1)


def test_an_error_that_does_not_fall_with_the_start_is_refuted(data_of):
    *rest, starts = data_of("W-MC")
    flat = starts.assign(error=starts.error * 0 + starts.error.isel(scale=0, drop=True))
    assert judge(completion_samples.check(*rest, starts))[0] in HOLDING
    assert judge(completion_samples.check(*rest, flat))[0] not in HOLDING
