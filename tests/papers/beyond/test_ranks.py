"""Greedy rank and balanced layers: the premises of their problems, and whether checks can fail."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from penchant.lab import all_claims
from penchant_papers.beyond import balanced_linear, greedy_rank


def status_of(id, data):
    experiment = all_claims()[id]
    return experiment.verdict(experiment.evidence(data), "tiny").status


def flow(Y, layers, time):
    """U V^T along U' = -2 R V, V' = -2 R^T U with R = U V^T - Y."""

    def velocity(_, state):
        U, V = state.reshape(2, 3, 3)
        R = U @ V.T - Y
        return -2 * np.concatenate([(R @ V).ravel(), (R.T @ U).ravel()])

    begin = np.concatenate([layer.ravel() for layer in layers])
    found = solve_ivp(velocity, (0, time), begin, "DOP853", rtol=1e-12, atol=1e-14)
    U, V = found.y.T.reshape(-1, 2, 3, 3).swapaxes(0, 1)
    return U @ V.swapaxes(1, 2)


def test_the_determinant_of_balanced_square_layers_keeps_its_sign():
    """By a general integrator: both signs of the start, and only one of them reaches the target."""
    ends = {}
    for number in range(40):
        Y = balanced_linear.target("square", number)
        within, sizes = balanced_linear.reachable("square", number), np.linalg.svd(Y).S
        if within in ends or sizes[1] < 2 * sizes[2]:
            continue
        M = flow(Y, balanced_linear.layers("square", 0.3, 0.0, number), 5 / sizes[2])
        assert len(set(np.sign(np.linalg.det(M)))) == 1
        ends[within] = np.linalg.norm(M[-1] - Y, 2) / sizes[2]
    assert ends[True] < 0.1
    assert ends[False] > 0.98


def test_both_signs_are_drawn_and_judged(data_of):
    signs = [balanced_linear.reachable("square", number) for number in range(40)]
    assert 8 < sum(signs) < 32
    assert all(balanced_linear.reachable("funnel", number) for number in range(5))
    number, draws = balanced_linear.reached("square", 3)
    assert balanced_linear.reachable("square", number)
    assert number == 3000 + draws - 1
    data = data_of("beyond-balanced-linear")
    assert status_of("beyond-balanced-linear", data) == "holds"
    reached = data[2].assign(to_target=0 * data[2].to_target)  # as if the sign did not matter
    assert status_of("beyond-balanced-linear", (*data[:2], reached)) == "fails"
    elsewhere = data[2].assign(to_lower=1 + data[2].to_lower)
    assert status_of("beyond-balanced-linear", (*data[:2], elsewhere)) == "fails"


def test_problems_of_greedy_rank_meet_their_premises():
    of, _ = greedy_rank.sensing(5)
    ranks = greedy_rank.saddles(of)
    assert len(ranks.tau) == 3
    assert ranks.tau[2] >= 2 * ranks.tau[1]
    completion, _ = greedy_rank.completing(5)
    truth, least = completion.truth, greedy_rank.interpolate(completion, greedy_rank.Nuclear())
    norms = [np.linalg.norm(matrix, "nuc") for matrix in (truth, least.matrix)]
    assert norms[1] < norms[0] - 1e-6


@pytest.mark.parametrize(
    ("study", "wrong"),
    [
        (0, {"predicted": "restarted"}),
        (0, {"passes_by": "passes_by_truncated"}),
        (1, {"to_greedy": "to_nuclear"}),
        (2, {"to_greedy": "to_printed"}),
    ],
)
def test_a_wrong_theory_of_ranks_fails(study, wrong, data_of):
    data = list(data_of("beyond-greedy-rank"))
    data[study] = data[study].assign({old: data[study][new] for old, new in wrong.items()})
    assert status_of("beyond-greedy-rank", data) == "fails"


def test_entries_of_commuting_measurements_end_where_greedy_rank_does():
    """Two routes: the saddles of a diagonal net, and greedy rank with its invariant subspaces."""
    for seed in range(3):
        problem = greedy_rank.commuting_problem(seed)
        end = np.diag(greedy_rank.saddles(problem.of).end)
        np.testing.assert_allclose(problem.alone, end, atol=1e-6 * np.abs(end).max())
