"""The bench of forecasts: its training by PyTorch, its file, its rules and its scores by hand."""

import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from penchant_papers.probe import nets, open_bench
from penchant_papers.probe.bench import recorded, scores
from penchant_papers.probe.bench.recipe import SPARSE, BenchRun, drawn, parity, taught
from penchant_papers.probe.bench.rules import MAKERS, constants, cut
from penchant_papers.probe.bench.scores import RuleAnswer, answers, calibrated, quantile, tally
from penchant_papers.probe.forecast_rules import Moments, RecordedRun, Said
from penchant_papers.probe.trajectories import record

RUNS = recorded.runs()
SMALL = BenchRun(
    1, "addition", "embedded", 5, 0.6, "Muon", 0.02, 0.1, 25, 1.0, 16
)  # fmt: skip


# training


def test_a_run_with_muon_is_that_of_pytorch():
    """Embeddings and read-out by AdamW, the hidden matrix by torch.optim.Muon."""
    torch = pytest.importorskip("torch")
    data = SMALL.data(1)
    w = {k: torch.tensor(v, requires_grad=True) for k, v in SMALL.start(data, 1).items()}
    others = [part for name, part in w.items() if name != "w1"]
    steppers = [
        torch.optim.Muon([w["w1"]], 0.02, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, 0.02, betas=(0.9, 0.98), weight_decay=0.1),
    ]

    def loss(x, y):
        pair = (torch.tensor(x).reshape(len(x), 2, -1) @ w["e"]).flatten(1)
        outputs = torch.relu(pair @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"]
        return torch.nn.functional.cross_entropy(outputs, torch.tensor(y).argmax(1))

    for _ in range(25):
        for stepper in steppers:
            stepper.zero_grad()
        loss(data.x, data.y).backward()
        for stepper in steppers:
            stepper.step()
    kept = record(SMALL, 1, (0.5,))
    assert kept["train_loss"][-1] == pytest.approx(loss(data.x, data.y).item(), rel=0.02)
    norm = math.sqrt(sum(float(part.detach().norm()) ** 2 for part in w.values()))
    assert kept["norm"][-1] == pytest.approx(norm, rel=2e-3)  # torch.optim.Muon works in bfloat16
    plain = record(SMALL._replace(optimizer="AdamW"), 1)  # the control
    assert abs(plain["norm"][-1] / norm - 1) > 0.02


def test_the_embedded_net_by_hand():
    data = SMALL.data(1)
    for net in ("embedded", "embedded, LayerNorm"):
        p = SMALL._replace(net=net).start(data, 1)
        out = np.asarray(nets.NETS[net](p, data.x, None))
        for row, x in zip(out, data.x, strict=True):
            a, b = (int(part.argmax()) for part in np.split(x, 2))
            hidden = np.concatenate([p["e"][a], p["e"][b]]) @ p["w1"] + p["b1"]
            if "g" in p:
                hidden = (hidden - hidden.mean()) / np.sqrt(hidden.var() + 1e-5) * p["g"] + p["c"]
            np.testing.assert_allclose(row, np.maximum(hidden, 0) @ p["w2"] + p["b2"], atol=1e-4)


def test_the_data_have_the_labels_that_they_say():
    one, other = parity(3, 50), taught(3, 400)
    odd = (one.x[:, :SPARSE] < 0).sum(1) % 2 == 1
    np.testing.assert_array_equal(one.y.argmax(1), 1 - odd)
    assert 0.3 < other.y[:, 0].mean() < 0.7
    x, y = other.x, 2 * other.y[:, 1] - 1  # a product of two directions: no linear signal
    assert np.abs(x.T @ y / len(x)).max() < 0.25
    quadratic = (x.T * y) @ x / len(x)
    assert np.abs(np.linalg.eigvalsh(quadratic)).max() > 0.4


def test_settings_are_drawn_from_the_seed():
    settings = [drawn(seed) for seed in range(300)]
    assert len({setting[1:] for setting in settings}) == 300
    assert drawn(5) == settings[5]
    assert {setting.optimizer for setting in settings} == {
        "AdamW",
        "Adam",
        "Muon",
        "SGD",
        "momentum",
    }
    names = {"addition", "digits", "parity", "teacher"}
    assert {setting.task for setting in settings} == names
    still = np.mean([setting.weight_decay == 0 for setting in settings])
    assert 0.04 < still < 0.13


# the file


def test_a_run_of_the_file_is_what_its_seed_trains():
    shortest = min(RUNS, key=lambda r: r.run.steps * (1 + 9 * (r.run.task != "digits")))
    again = recorded.trained(shortest.run.seed)
    np.testing.assert_array_equal(again["step"], shortest.curves["step"])
    early = shortest.curves["step"] <= 100  # rounding grows with the steps
    for name in ("norm", "train_loss", "test_loss", "train_accuracy", "q2"):
        np.testing.assert_allclose(again[name][early], shortest.curves[name][early], rtol=0.02)


def test_the_file_holds_what_was_asked_for():
    assert len(RUNS) >= 120
    assert recorded.FILE.stat().st_size < 1.5e6
    assert [r.run.seed for r in RUNS] == list(range(len(RUNS)))
    share = np.mean([r.moments.groks for r in RUNS])
    assert 0.5 < share < 0.8  # about a third does not grok
    fit, judged = (recorded.half_of(name) for name in recorded.HALVES)
    assert len(fit) + len(judged) == len(RUNS)
    assert min(len(fit), len(judged)) > 0.4 * len(RUNS)
    for run in RUNS:
        assert run.curves["step"][-1] == run.run.steps
        assert (np.diff(run.curves["step"]) > 0).all()


# rules


@pytest.mark.parametrize("name", MAKERS)
def test_a_rule_sees_nothing_of_the_future(name):
    fit = recorded.half_of("fit")
    rule = MAKERS[name](fit)
    run = next(r for r in recorded.half_of("judged") if r.moments.groks and r.run.decay_rate > 0)
    now = 1.2 * run.moments.t_mem
    later = run.curves["step"] > now
    spoiled = {k: np.where(later, 0.5, v) for k, v in run.curves.items() if k != "step"}
    other = RecordedRun(run.run, {"step": run.curves["step"]} | spoiled, run.moments)
    np.testing.assert_equal(rule(cut(other, now), now), rule(cut(run, now), now))


def test_published_laws_are_exact_where_they_hold():
    """Norms that decay by exp(-rate t) and grok at one norm: three laws say the step."""
    made = [made_up(seed, norm) for seed, norm in enumerate((5.0, 6.0, 7.0, 8.0, 9.0))]
    known = constants(made)[""]
    assert known.norm == pytest.approx(2.0, rel=0.02)
    assert known.kappa == pytest.approx(1.0, rel=0.05)
    for name in ("first passage", "critical norm"):
        rule = MAKERS[name](made)
        for run in made:
            now = 1.2 * run.moments.t_mem
            said = rule(cut(run, now), now)
            assert said.step == pytest.approx(run.moments.t_half, rel=0.05), name
    clock = MAKERS["clock"](made)(cut(made[2], 300.0), 300.0)
    assert clock.step == pytest.approx(constants(made)[""].clock * made[2].moments.t_mem)


def made_up(seed, norm, rate=1e-3):
    """A run whose norm falls from `norm` at step 200 on, and that groks when it is 2."""
    run = drawn(0)._replace(
        seed=seed, task="addition", net="quadratic", optimizer="AdamW",
        learning_rate=rate, weight_decay=1.0, steps=4000, scale=1.0,
    )  # fmt: skip
    t = np.arange(0, 4001, 5.0)
    half = 200 + math.log(norm / 2) / rate
    train, test = (1 / (1 + np.exp(-(t - mid) / 5)) for mid in (177.0, half))
    norms = norm * np.exp(-rate * np.maximum(t - 200, 0))
    zeros = {name: np.zeros_like(t) for name in ("turn", *recorded.LEVELS)}
    columns = {"step": t, "norm": norms, "train_accuracy": train, "test_accuracy": test}
    losses = {"train_loss": 1.01 - train, "test_loss": 3 - 2 * test}
    curves = {**columns, **losses, **zeros, "learning_rate": 0 * t + rate}
    return RecordedRun(run, curves, recorded.moments(t, train, test))


# scores


def test_the_area_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    groks, ranks = rng.random(60) < 0.6, rng.integers(0, 9, 60).astype(float)
    assert scores.area(ranks, groks) == pytest.approx(roc_auc_score(groks, ranks))
    assert math.isnan(scores.area(ranks, np.ones(60, bool)))


def test_quantiles_with_weights_are_those_of_repeated_values():
    rng = np.random.default_rng(1)
    values, counts = rng.standard_normal(30), rng.integers(1, 6, 30)
    repeated = np.repeat(values, counts)
    for share in (0.1, 0.5, 0.83):
        expected = np.quantile(repeated, share, method="inverted_cdf")
        assert quantile(values, counts.astype(float), share) == pytest.approx(expected)


def test_a_tally_by_hand():
    run = made_up(1, 6.0)
    half = run.moments.t_half
    quiet = RecordedRun(run.run._replace(seed=2), run.curves, Moments(200.0, *[math.nan] * 4))
    given = [
        RuleAnswer(run, 1.0, 200.0, Said()),
        RuleAnswer(run, 1.2, 240.0, Said(1.5 * half, 0.9 * half, 2 * half)),
        RuleAnswer(quiet, 1.2, 240.0, Said(3000.0, 2000.0, 4000.0)),
    ]
    made = tally(given)
    assert (made.grok, made.quiet) == (1, 1)
    assert made.error == pytest.approx(0.5)
    assert (made.coverage, made.refused, made.alarms) == (1.0, 0.5, 1.0)
    sooner = math.log(1.5 * half / 240) < math.log(3000 / 240)
    assert made.auroc == float(sooner)


def test_calibrated_intervals_hold_80_percent_of_other_runs():
    """Jumps off by a log-normal factor: fitted on 100 runs, judged on 200 others."""
    rng = np.random.default_rng(2)
    made = [made_up(seed, 6.0) for seed in range(300)]
    off = np.exp(0.6 * rng.standard_normal(300))

    def rule(seen, now):
        return Said(made[0].moments.t_half * off[seen.run.seed])

    bounded = calibrated(rule, made[:100])
    inside = tally(answers(bounded, made[100:])).coverage
    assert 0.72 < inside < 0.88
    narrow = calibrated(lambda s, now: Said(made[0].moments.t_half), made[:100])
    assert tally(answers(narrow, made[100:])).coverage == 1.0


def test_every_question_comes_after_the_memorization_and_before_the_jump():
    for answer in answers(lambda seen, now: Said(2 * now), RUNS):
        assert answer.now >= answer.run.moments.t_mem
        if answer.run.moments.groks:
            assert answer.now < answer.truth


def test_halves_of_the_claim_share_no_run():
    first, second = open_bench.halves(3)
    seeds = {r.run.seed for r in first}, {r.run.seed for r in second}
    assert not seeds[0] & seeds[1]
    assert len(seeds[0] | seeds[1]) == len(RUNS)
    assert [r.run.seed for r in open_bench.halves(4)[0]] != [r.run.seed for r in first]


@pytest.mark.slow
def test_the_tables_of_the_page_are_those_of_the_file(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "docs"))
    import bench_tables

    text = bench_tables.PAGE.read_text(encoding="utf-8")
    assert bench_tables.page(text) == text
