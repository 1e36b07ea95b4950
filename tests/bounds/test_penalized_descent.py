"""Bounds on penalized descent, against the worst steps and runs that a search finds."""

import math

import numpy as np
import pytest

from penchant import bounds


@pytest.mark.parametrize(("step", "share"), [(0.2, 0.0), (0.3, 0.5), (0.9, 0.2), (1.4, 0.3)])
def test_contraction_is_the_worst_factor_over_all_directions_of_the_penalty(step, share):
    """On (L/2)|x|^2 from (1, 0), over a grid of lengths and angles of beta H."""
    L = 2.5
    angles, lengths = np.meshgrid(np.linspace(0, np.pi, 181), np.linspace(0, share, 21))
    G = L * np.array([1.0, 0.0])
    push = L * lengths[..., None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    after = np.array([1.0, 0.0]) - step / L * (G + push)
    worst = (after**2).sum(axis=-1).max()
    assert 1 - bounds.contraction(mu=L, L=L, learning_rate=step / L, share=share) == pytest.approx(
        worst, rel=1e-12
    )


def test_contraction_is_proportional_to_mu():
    assert bounds.contraction(mu=0.1, L=1.0, learning_rate=0.5, share=0.3) == pytest.approx(
        0.1 * bounds.contraction(mu=1.0, L=1.0, learning_rate=0.5, share=0.3)
    )


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_at_the_largest_step_a_loss_no_longer_falls(share):
    most = bounds.largest_step(4.0, share)
    assert bounds.contraction(
        mu=4.0, L=4.0, learning_rate=most * (1 - 1e-9), share=share
    ) == pytest.approx(0, abs=1e-7)
    x = 1.0
    for _ in range(10):
        x -= most * (1 + share) * 4.0 * x
    assert abs(x) == pytest.approx(1.0)


@pytest.mark.parametrize("share", [0.3, 0.8, 0.95])
def test_the_ball_is_filled_by_a_penalty_orthogonal_to_the_motion(share):
    """The flow of (1/2) e^2 with beta H of length share |G| orthogonal to G + beta H."""
    step, e, gone = 1e-3, 1.0, 0.0
    for _ in range(100_000):
        # G = e, its part along the motion is sqrt(1 - share^2) e
        speed = math.sqrt(1 - share**2) * e
        e -= step * (1 - share**2) * e
        gone += step * speed
    radius = bounds.ball_radius(0.5, 2.0, 1.0, 1e-9, share)
    assert gone == pytest.approx(radius, rel=2e-2)
    assert gone > 1.02 * bounds.ball_radius(0.5, 2.0, 1.0, 1e-9)


def test_dominated_steps_on_the_loss_where_the_gradient_falls_fastest():
    """On x^2/2 with h = |x| and H along G, counted by a loop."""
    step, share, beta = 0.1, 0.5, 1e-3
    steps = bounds.dominated_steps(1.0, 1.0, step, share, beta)
    x, lasted = 1.0, 0
    while share * x >= beta and lasted < 10_000:
        x -= step * (x + beta)
        lasted += 1
    assert steps <= lasted
    assert share * (1 - (1 + share) * step) ** steps >= beta
    assert share * (1 - (1 + share) * step) ** (steps + 1) < beta
    assert bounds.dominated_steps(1.0, 1.0, step, share, beta=1.0) == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bounds.largest_step(-1.0), "largest_step: L must be"),
        (lambda: bounds.largest_step(1.0, 1.0), "share must be at least 0 and below 1"),
        (lambda: bounds.contraction(mu=2.0, L=1.0, learning_rate=0.1), "mu must be at most L=1"),
        (
            lambda: bounds.contraction(mu=1.0, L=1.0, learning_rate=1.5, share=0.5),
            r"below 2/\(L \(1 \+ share\)\)",
        ),
        (lambda: bounds.ball_radius(1.0, 1.0, 1.0, 1.0, 0.9), "ball_radius: learning_rate must be"),
        (lambda: bounds.ball_radius(-1.0, 1.0, 1.0, 0.1), "loss must be"),
        (
            lambda: bounds.dominated_steps(1.0, 1.0, 0.9, 0.5, 1e-3),
            "dominated_steps: learning_rate",
        ),
        (lambda: bounds.dominated_steps(1.0, 1.0, 0.1, 0.5, 0.0), "beta must be"),
    ],
)
def test_wrong_input_is_refused_in_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()
