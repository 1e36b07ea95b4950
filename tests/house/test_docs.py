"""What docs/theory.md says of classification in numbers and formulas."""

import re
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.papers.moroshko2020.open_question import CLOSE, MUS, Case, study

ROOT = Path(__file__).resolve().parents[2]
THEORY = (ROOT / "docs" / "theory.md").read_text()
PANEL = tacit.three_points("3d")


def told(pattern):
    """The numbers in the one place of the page that matches."""
    (found,) = re.findall(pattern, THEORY)
    return [float(number) for number in (found if isinstance(found, tuple) else (found,))]


def test_the_story_of_three_points():
    (change,) = told(r"reaches the margin at mu = ([\d.]+),")
    parts = told(r"are ([\d.]+) degrees apart at mu = ([\d.]+) and ([\d.]+) at mu = ([\d.]+)\.")
    angles, mus = parts[::2], parts[1::2]
    path = tacit.max_margin_path(PANEL.X, PANEL.y, mus=[1.0, *mus])
    ratchet = tacit.ratchet_path(PANEL.X, PANEL.y, mus=[1.0, *mus])
    assert path.changes[0].mu == pytest.approx(change, rel=2e-3)
    apart = tacit.angle(path.beta, ratchet.beta)
    np.testing.assert_allclose(apart[1:], angles, atol=0.06)
    assert apart[0] < 1e-9  # before the change the two are one


@pytest.mark.slow
def test_the_counts_of_the_random_data_sets():
    """By the ratchet leaving the Q path; that the flow goes with it is M-open's own check."""
    sets, changing, followed, left, steady, lost = told(
        r"takes (\d+) random data sets: (\d+) have changing support vectors, and the flow follows"
        r" the Q_mu path to the end in (\d+) of them and leaves it in (\d+); of the (\d+) whose"
        r" support vectors stay the same it still leaves (\d+)\."
    )
    (axis,) = study.at("full").axes
    cases = [Case(points) for points in axis.values if points.startswith("seed")]
    assert len(cases) == sets
    gaps = [tacit.angle(case.ratchet(case.depth).beta, case.q.beta).max() for case in cases]
    changes = [any(MUS[-1] < c.mu < MUS[0] for c in case.q.changes) for case in cases]
    for count, gone, side in ((changing, left, True), (steady, lost, False)):
        group = [gap for gap, changed in zip(gaps, changes, strict=True) if changed == side]
        assert len(group) == count
        assert sum(gap > CLOSE for gap in group) == gone
    assert changing - left == followed


def test_the_digits_of_the_loss():
    (zeros,) = re.findall(r"## 15\. How a loss of 10\^-([\d,]+) is computed", THEORY)
    path = tacit.train(
        tacit.DiagonalNet(depth=2, alpha=100),
        PANEL,
        tacit.DualFlow(rtol=1e-6),
        stop=tacit.LogLoss(-1e7),
    )
    assert path.outcome.ok
    assert path.log_loss / np.log(10) == pytest.approx(-float(zeros.replace(",", "")), abs=1)
    assert path.dataset.loss[-1].isnull()  # no float64 holds it


@pytest.mark.parametrize(("depth", "alpha"), [(2, 3.0), (3, 2.0), (5, 1.5)])
def test_the_formulas_of_the_flow(depth, alpha):
    """Sections 14 and 15: the law, growing weights, the equation of s; the bounds on g."""
    Z, g, step = PANEL.signed_rows, 50.0, 1e-3
    flow = tacit.DualFlow()
    rows = tacit.train(
        tacit.DiagonalNet(depth=depth, alpha=alpha),
        PANEL,
        flow,
        stop=tacit.LogLoss(-60),
        record=[tacit.LogSpaced(), tacit.At(margins=[g - step, g, g + step])],
    ).dataset
    clock = rows.smoothed_margin.values
    assert (rows.margin <= clock + 1e-9).all()
    assert (clock <= rows.margin + np.log(PANEL.samples) + 1e-9).all()
    assert np.diff(rows.dual.values, axis=0).min() > -1e-15
    before, now, after = (int(np.abs(clock - at).argmin()) for at in (g - step, g, g + step))
    s = rows.dual.values @ Z
    if depth == 2:
        law, slope = 2 * alpha**2 * np.sinh(s), 2 * alpha**2 * np.cosh(s[now])
    else:
        p = depth / (depth - 2)
        law = alpha**depth * ((1 - s) ** -p - (1 + s) ** -p)
        slope = alpha**depth * p * ((1 - s[now]) ** (-p - 1) + (1 + s[now]) ** (-p - 1))
    np.testing.assert_allclose(rows.predictor, law, rtol=1e-7, atol=1e-9)
    weights = np.exp(clock[now] - rows.margins.values[now])
    v = weights / weights.sum() @ Z
    measured = (s[after] - s[before]) / (2 * step)
    np.testing.assert_allclose(measured, v / (slope @ v**2), rtol=1e-5)
    assert not np.allclose(measured, v / (v @ v), rtol=0.1)  # the control: a net is not linear
