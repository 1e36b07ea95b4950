"""The theorems, the place of the jump, the clock, wide starts: what checks refute, by hand."""

import math
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import penchant
from penchant import Classification, DiagonalNet, Q
from penchant.measures import kkt_residual
from penchant_papers.lyu2023 import clock, runs, sharpness, theorem_1, theorem_2, wide_starts
from penchant_papers.lyu2023.runs import points


def data_fixture(id):
    @pytest.fixture
    def data(data_of):
        return data_of(id)

    return data


t1, t2, jump, clocked, wide = map(data_fixture, ("L-T1", "L-T2", "L-sharp", "L-clock", "L-A3"))


# theorem 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (lambda d: {"to_kernel": d.to_rich}, "angle to the kernel SVM"),
        (lambda d: {"to_kernel": d.to_random}, "slope of 1/tan(angle)"),
        (lambda d: {"turn": d.turn**2}, "exponent of turn/$g$"),
        (
            lambda d: {"growth": d.growth * np.exp(0.05 * d.log_alpha)},
            r"$|\theta| e^{\mathrm{rate}\, t}",
        ),
    ],
    ids=["rich limit", "another kernel", "square of the turn", "slower decay"],
)
def test_a_wrong_law_is_refuted(t1, refuted, changed, words):
    dataset = t1[0]
    assert refuted("L-T1", (dataset.assign(changed(dataset)), *t1[1:]), words)


def test_training_with_a_faster_decay_is_refuted(faster, t1, refuted):
    faster(runs, 1.1)
    growth = t1[0].growth.copy()
    growth.loc[{"seed": 0, "depth": 2, "log_alpha": 40.0}] = theorem_1.cell(0, 2, 40.0, c=0.5)[
        "growth"
    ]
    assert refuted(
        "L-T1", (t1[0].assign(growth=growth), *t1[1:]), r"$|\theta| e^{\mathrm{rate}\, t}"
    )


def test_the_sparsest_interpolant_in_place_of_the_kernels_is_refuted(monkeypatch, t1, refuted):
    def sparse(net, problem):
        return SimpleNamespace(predictor=penchant.interpolate(problem, penchant.L1()).beta)

    monkeypatch.setattr(theorem_1, "kernel_machine", sparse)
    off = [[theorem_1.regression_cell(0, a, c=0.125)["off"]] for a in t1[1].log_alpha.values]
    wrong = t1[1].assign(off=(("log_alpha", "seed"), off))
    assert refuted("L-T1", (t1[0], wrong, *t1[2:]), "kernel interpolant")


def test_the_svm_of_another_start_is_refuted(t1, refuted):
    wrong = t1[2].assign(own=t1[2].other)
    assert refuted("L-T1", (*t1[:2], wrong, t1[3]), "small net")


def test_an_exact_flow_that_is_not_training_proves_nothing(monkeypatch, t1, judged):
    def other(problem, log_alpha, rate, z, depth):
        return runs.exact(problem, log_alpha, 1.01 * rate, z, depth)

    monkeypatch.setattr(theorem_1, "in_parameters", other)
    wrong = t1[3].assign(apart=t1[3].apart + theorem_1.flow_cell(0, 2)["apart"])
    assert judged("L-T1", (*t1[:3], wrong)).status == "inconclusive"


def test_the_svm_of_a_weighted_kernel_by_scaled_features():
    problem = runs.data_set(1)
    weights = np.exp(np.random.default_rng([0, 1]).normal(0, 1, 8))
    scaled = penchant.max_margin(problem.X / np.sqrt(weights), problem.y, penchant.L2()).beta
    found = theorem_1.random_kernel_svm(problem, 0)
    assert found == pytest.approx(scaled / np.sqrt(weights), abs=1e-8)


# theorem 2


def test_the_kernel_limit_in_place_of_the_rich_one_is_refuted(t2, refuted):
    wrong = t2[0].assign(to_rich=t2[0].to_kernel)
    assert refuted("L-T2", (wrong, *t2[1:]), r"angle to the $\ell_1$")


def computed_again(dataset, cell):
    """The dataset with what a cell now says of every seed and start."""
    found = [[cell(int(s), a) for a in dataset.log_alpha.values] for s in dataset.seed.values]
    return dataset.assign(
        {
            name: (("seed", "log_alpha"), [[row[name] for row in rows] for rows in found])
            for name in found[0][0]
        }
    )


def with_exact_cells(dataset, **arguments):
    """The dataset with its cells of the exact flow computed again."""
    return computed_again(dataset, lambda seed, a: theorem_2.cell(seed, a, **arguments))


def test_the_time_before_the_jump_is_refuted(t2, refuted):
    assert refuted("L-T2", (with_exact_cells(t2[0], z=0.5), *t2[1:]), r"angle to the $\ell_1$")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda beta, a, z: np.concatenate([np.maximum(beta, 0), np.maximum(-beta, 0)]),
        lambda beta, a, z, right=theorem_2.parameters_of: right(beta, 0.0, -1.0),
    ],
    ids=["no root", "a start that never decays"],
)
def test_the_kkt_residual_of_other_parameters_is_refuted(monkeypatch, t2, refuted, wrong):
    monkeypatch.setattr(theorem_2, "parameters_of", wrong)
    changed = with_exact_cells(t2[0], z=1.5), *t2[1:]
    assert refuted("L-T2", changed, "exponent of the KKT residual")


@pytest.mark.parametrize(("place", "words"), [(1, "trained parameters"), (2, "quadratic units")])
def test_parameters_trained_for_too_short_are_refuted(t2, refuted, place, words):
    early = t2[place].isel(moment=[theorem_2.BEFORE, theorem_2.BEFORE])
    assert refuted("L-T2", (*t2[:place], early, *t2[place + 1 :]), words)


@pytest.mark.parametrize("z", [0.5, 3.0, 5.0])
def test_parameters_follow_from_the_predictor(z):
    problem = runs.data_set(0)
    net = DiagonalNet(2, log_alpha=3.0)
    theta = runs.trained(problem, net, 3.0, z / 3.0)
    beta = net.predictor(theta)
    assert theorem_2.parameters_of(beta, 3.0, z) == pytest.approx(theta, rel=1e-4, abs=1e-6)
    assert theorem_2.parameters_of(beta, 3.0, z + 0.1) != pytest.approx(theta, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_the_kkt_residual_vanishes_where_one_multiplier_serves_all(depth):
    """Orthogonal rows of one length share their multiplier, so that equal margins are KKT."""
    signs = np.array([1.0, -1.0, 1.0])
    problem = Classification(np.diag([2.0, 2.0, 2.0]), signs, "logistic")
    net, root = DiagonalNet(depth, alpha=1.0), 3 ** (1 / depth)
    theta = root * np.concatenate([signs > 0, signs < 0])
    assert kkt_residual(problem, net, theta) == pytest.approx(0, abs=1e-14)
    assert kkt_residual(problem, net, 1.5 * theta) == pytest.approx(0, abs=1e-14)
    for n in range(3):
        off = np.where(np.arange(6) == n + 3 * (signs[n] < 0), 1.1, 1.0) * theta
        assert kkt_residual(problem, net, off) > 0.01
    assert kkt_residual(problem, net, theta + 0.3) > 0.05
    assert kkt_residual(problem, net, np.roll(theta, 3)) == math.inf


# sharpness

DEPTH_2 = {"depth": 2, "first": -4.0, "last": 9.0, "log_rate": None}


def with_jumps(dataset, **arguments):
    """The dataset of depth 2 with its cells computed again."""
    given = {**sharpness.DEPTH_2, **arguments}
    return computed_again(dataset, lambda seed, a: sharpness.cell(seed, a, **given))


def test_log_alpha_alone_does_not_follow_the_jump(jump, refuted):
    naive = jump[0].assign(forecast=jump[0].forecast * 0 + jump[0].log_alpha)
    assert refuted("L-sharp", (naive, *jump[1:]), "drift")


def test_a_jump_of_another_decay_is_refuted(faster, jump, refuted):
    faster(runs, 1.04)
    wrong = with_jumps(jump[0], first=-40.0)
    assert refuted("L-sharp", (wrong, *jump[1:]), r"\mathrm{rate}\,t_{\mathrm{half}} / \log \alpha")


def test_a_rate_that_stays_does_not_give_the_norm_at_the_jump(jump, refuted):
    wrong = with_jumps(jump[0], log_rate=math.log(1e-9))
    assert refuted("L-sharp", (wrong, *jump[1:]), r"$|\theta|$ at the jump")


def test_the_jump_of_depth_3_by_two_flows(monkeypatch):
    """Trained in the parameters, the jump is where the exact flow has it; depth 2 has another."""
    depth_3 = {**DEPTH_2, "depth": 3}
    one, shallow = sharpness.cell(0, 10.0, **depth_3), sharpness.cell(0, 10.0, **DEPTH_2)
    monkeypatch.setattr(sharpness, "exact", runs.in_parameters)
    two = sharpness.cell(0, 10.0, **depth_3)
    for name in ("begins", "half", "ends", "log_norm"):
        assert one[name] == pytest.approx(two[name], rel=1e-4)
    assert abs(shallow["half"] - one["half"]) > 0.1


def test_the_norm_at_the_jump_of_depth_3_has_the_exponent_one_third(jump):
    first, last = jump[1].log_norm.median("seed").values
    assert (last - first) / math.log(4) == pytest.approx(1 / 3, abs=0.02)


# clock

CLOCK = {"log_alpha": 2.0, "z": [0.5, 3.5]}


def with_clock(dataset):
    """The regressions with the cell of depth 2 at the smallest rate computed again."""
    off = dataset.off.copy()
    off.loc[{"depth": 2, "rate": 1e-5, "seed": 0}] = clock.cell(2, 1e-5, 0, **CLOCK)["off"]
    return dataset.assign(off=off)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda depth, log_alpha: Q(depth, log_alpha=log_alpha + math.log(1.1)),
        lambda depth, log_alpha: Q(depth + 1, log_alpha=log_alpha),
        lambda depth, log_alpha: Q(depth, log_alpha=2 * log_alpha),
    ],
    ids=["scale", "depth", "square"],
)
def test_another_q_is_refuted(monkeypatch, clocked, refuted, wrong):
    monkeypatch.setattr(clock, "Q", wrong)
    assert refuted(
        "L-clock", (with_clock(clocked[0]), clocked[1]), r"distance to $\operatorname{argmin} Q$"
    )


def test_a_clock_ten_percent_fast_is_refuted(faster, clocked, refuted):
    faster(runs, 1.1)
    assert refuted(
        "L-clock", (with_clock(clocked[0]), clocked[1]), r"distance to $\operatorname{argmin} Q$"
    )


def test_a_wrong_power_of_mu_is_refuted(monkeypatch, clocked, refuted):
    real = clock.ratchet_path
    wrong = lambda X, y, depth, mus: real(X, y, depth=depth, mus=np.sqrt(mus))  # noqa: E731
    monkeypatch.setattr(clock, "ratchet_path", wrong)
    around = [-2.0, 0.0, 2.0]
    changed = computed_again(clocked[1], lambda s, a: clock.direction_cell(s, a, around=around))
    assert refuted("L-clock", (clocked[0], changed), r"$Q_\mu$ path")


# wide starts


def test_width_alone_does_not_give_a_start_of_zero_output(verdict_of):
    verdict = verdict_of("L-A3")
    assert verdict.status == "holds as corrected"
    assert verdict.evidence.counterexample["at the largest"] > 1


def test_an_output_that_vanishes_would_hold_as_printed(wide, judged):
    """The check of the printed sentence can pass: with 1/width in place of 1/sqrt(width)."""
    starts, after = wide
    mean_field = starts.assign(output=starts.output / np.sqrt(starts.width))
    (printed,) = judged("L-A3", (mean_field, after)).evidence.checks.values()
    assert printed.passes


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda s, a: (s.assign(relative=s.by_gradient), a), r"$f / (|\nabla f| |\theta|)$"),
        (lambda s, a: (s, a.assign(off=a.off + 60)), "with the difference trick"),
        (lambda s, a: (s, a.assign(size=a["size"] / 10)), "outputs of the wide net"),
    ],
    ids=["not relative to the norm", "no kernel SVM", "outputs that vanish"],
)
def test_a_wrong_correction_fails(wide, judged, wrong, words):
    verdict = judged("L-A3", wrong(*wide))
    assert verdict.status in ("fails", "inconclusive")
    assert any(words in name for name, check in verdict.evidence.corrected.items() if check.misses)


def test_output_and_gradient_by_automatic_differentiation():
    width, X = 5, points(3)[0].X
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    rng = np.random.default_rng((3, 1))
    W, v = rng.standard_normal((width, 6)), rng.standard_normal(width)
    found = wide_starts.cell(width, 3, starts=1)

    def output(W, v, x):
        return jnp.sum(v * (W @ x) ** 2) / math.sqrt(width)

    outputs = np.array([output(W, v, x) for x in X])
    slopes = [jax.grad(output, argnums=(0, 1))(W, v, x) for x in X]
    sizes = np.array([math.sqrt(float(jnp.sum(a**2) + jnp.sum(b**2))) for a, b in slopes])
    norm = math.sqrt(np.sum(W**2) + np.sum(v**2))
    assert found["output"] == pytest.approx(np.sqrt(np.mean(outputs**2)), rel=1e-5)
    relative = np.sqrt(np.mean((outputs / sizes / norm) ** 2))
    assert found["relative"] == pytest.approx(relative, rel=1e-5)
    assert found["by_gradient"] == pytest.approx(relative * norm, rel=1e-5)
