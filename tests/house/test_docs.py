"""What the docs print: recipes and the README's example run, numbers and formulas are right."""

import dataclasses
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import penchant
from penchant_papers.moroshko2020.open_question import CLOSE
from penchant_papers.moroshko2020.ratchets import RatchetCase, random_set

ROOT = Path(__file__).resolve().parents[2]
CHANGES = (ROOT / "CHANGELOG.md").read_text()
THEORY = (ROOT / "docs" / "theory" / "classification.md").read_text()
PANEL = penchant.problems.three_points("3d")


def numbers_in(pattern):
    """The numbers in the one place of the page that matches."""
    (found,) = re.findall(pattern, THEORY)
    return [float(number) for number in (found if isinstance(found, tuple) else (found,))]


def test_the_story_of_three_points():
    (change,) = numbers_in(r"reaches the margin at \$\\mu = ([\d.]+)\$,")
    parts = numbers_in(
        r"are ([\d.]+) degrees apart at \$\\mu = ([\d.]+)\$ and ([\d.]+) at \$\\mu = ([\d.]+)\$\."
    )
    angles, mus = parts[::2], parts[1::2]
    path = penchant.solvers.max_margin_path(PANEL.X, PANEL.y, mus=[1.0, *mus])
    ratchet = penchant.solvers.ratchet_path(PANEL.X, PANEL.y, mus=[1.0, *mus])
    assert path.changes[0].mu == pytest.approx(change, rel=2e-3)
    apart = penchant.measures.angle(path.beta, ratchet.beta)
    np.testing.assert_allclose(apart[1:], angles, atol=0.06)
    assert apart[0] < 1e-9  # before the change the two are one


@pytest.mark.slow
def test_the_counts_of_the_random_data_sets():
    """By the ratchet leaving the Q path; that the flow goes with it is M-open's own check."""
    sets, changing, followed, left, steady, lost = numbers_in(
        r"took (\d+) random data sets: (\d+) have changing support vectors, and the flow"
        r" follows the \$Q_\\mu\$ path to the end in (\d+) of them and leaves it in (\d+);"
        r" of the (\d+) whose support vectors stay the same it still leaves (\d+)\."
    )
    cases = [RatchetCase(*random_set(k)) for k in range(int(sets))]
    gaps = [
        penchant.measures.angle(case.ratchet(case.depth).beta, case.q.beta).max() for case in cases
    ]
    changes = [case.changes for case in cases]
    for count, gone, side in ((changing, left, True), (steady, lost, False)):
        group = [gap for gap, changed in zip(gaps, changes, strict=True) if changed == side]
        assert len(group) == count
        assert sum(gap > CLOSE for gap in group) == gone
    assert changing - left == followed


def test_the_digits_of_the_loss():
    (zeros,) = re.findall(r"## 15\. How a loss of 10\^-([\d,]+) is computed", THEORY)
    path = penchant.train(
        penchant.DiagonalNet(depth=2, alpha=100),
        PANEL,
        penchant.DualFlow(rtol=1e-6),
        stop=penchant.stop.LogLoss(-1e7),
    )
    assert path.outcome.ok
    assert path.log_loss / np.log(10) == pytest.approx(-float(zeros.replace(",", "")), abs=1)
    assert path.dataset.loss[-1] == 0  # no float64 holds it


@pytest.mark.parametrize(("depth", "alpha"), [(2, 3.0), (3, 2.0), (5, 1.5)])
def test_the_formulas_of_the_flow(depth, alpha):
    """Sections 14 and 15: the law, growing weights, the equation of s; the bounds on g."""
    Z, g, step = PANEL.signed_rows, 50.0, 1e-3
    flow = penchant.DualFlow()
    rows = penchant.train(
        penchant.DiagonalNet(depth=depth, alpha=alpha),
        PANEL,
        flow,
        stop=penchant.stop.LogLoss(-60),
        record=[penchant.record.LogSpaced(), penchant.record.At(margins=[g - step, g, g + step])],
    ).dataset
    smoothed_margin = rows.smoothed_margin.values
    assert (rows.margin <= smoothed_margin + 1e-9).all()
    assert (smoothed_margin <= rows.margin + np.log(PANEL.samples) + 1e-9).all()
    assert np.diff(rows.dual.values, axis=0).min() > -1e-15
    before, now, after = (
        int(np.abs(smoothed_margin - at).argmin()) for at in (g - step, g, g + step)
    )
    s = rows.dual.values @ Z
    if depth == 2:
        law, slope = 2 * alpha**2 * np.sinh(s), 2 * alpha**2 * np.cosh(s[now])
    else:
        p = depth / (depth - 2)
        law = alpha**depth * ((1 - s) ** -p - (1 + s) ** -p)
        slope = alpha**depth * p * ((1 - s[now]) ** (-p - 1) + (1 + s[now]) ** (-p - 1))
    np.testing.assert_allclose(rows.predictor, law, rtol=1e-7, atol=1e-9)
    weights = np.exp(smoothed_margin[now] - rows.margins.values[now])
    v = weights / weights.sum() @ Z
    measured = (s[after] - s[before]) / (2 * step)
    np.testing.assert_allclose(measured, v / (slope @ v**2), rtol=1e-5)
    assert not np.allclose(measured, v / (v @ v), rtol=0.1)  # the control: a net is not linear


# --- recipes of CONTRIBUTING.md and the README's example -----------------------------------


def block(file, heading):
    """The first Python block below a heading of a Markdown file."""
    text = (ROOT / file).read_text().split(f"## {heading}\n")[1]
    return re.search(r"```python\n(.*?)```", text, re.S).group(1)


@pytest.fixture
def problem():
    return penchant.problems.sparse_regression(samples=3, dimension=6, sparsity=2, seed=1)


def test_one_version_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = project["version"]
    assert penchant.__version__ == version
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    (heading, day), *_ = re.findall(r"^## (\S+) \((\S+)\)$", CHANGES, re.M)
    assert heading == version
    assert f'date-released: "{day}"' in (ROOT / "CITATION.cff").read_text()


def test_the_workflow_runs_the_documented_commands():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    commands = [line.partition("run: ")[2] for line in workflow.splitlines() if "run: " in line]
    documented = (ROOT / "CONTRIBUTING.md").read_text()
    assert ".ci/run" in commands
    for command in commands:
        assert (ROOT / command).is_file() or command in documented, command
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    for version in re.findall(r"Python :: (3\.\d+)", " ".join(listed)):
        assert f'"{version}"' in workflow


def test_the_readme_is_one_screen_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text) <= 6500  # with what the examples print
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert (ROOT / target).exists(), target
    for file, anchor in re.findall(r"\]\(([^)#]+)#([^)]+)\)", text):
        titles = re.findall(r"^#+ (.+)$", (ROOT / file).read_text(encoding="utf-8"), re.M)
        assert anchor in {title.lower().replace(" ", "-") for title in titles}


def example(heading, capsys):
    """What a README example leaves behind; it prints what the page shows below it."""
    below = (ROOT / "README.md").read_text(encoding="utf-8").split(f"## {heading}\n")[1]
    exec(block("README.md", heading), space := {})
    assert capsys.readouterr().out == re.search(r"```text\n(.*?)```", below, re.S)[1]
    return space


def test_the_readme_s_five_lines(capsys):
    space = example("Five lines", capsys)
    assert len(block("README.md", "Five lines").strip().splitlines()) == 5
    assert np.abs(space["path"].predictor - space["predicted"].beta).max() < 1e-8


def test_the_readme_s_prediction(capsys):
    space = example("Predict", capsys)
    predicted, measured = space["predicted"].predictor, space["path"].predictor
    start = penchant.interpolate(space["problem"], penchant.Q(2, alpha=0.1)).beta  # the control
    assert np.abs(predicted - measured).max() < 0.05 < np.abs(start - measured).max()


def test_the_readme_s_test_error_before_the_data(capsys):
    space = example("Before the data", capsys)
    low, high = space["before"].low, space["before"].high
    inside = [low < error < high for error in space["errors"]]
    assert 15 <= sum(inside) <= 20  # nine of ten are expected


def test_the_readme_s_watch(capsys):
    pytest.importorskip("torch")
    example("Watch your own model", capsys)


def test_the_model_recipe(problem):
    from penchant.models import Separable

    space = {"np": np, "Separable": Separable}
    exec(block("CONTRIBUTING.md", "A model"), space)
    model, w = space["Cubic"](), np.linspace(0.1, 1, 6)
    step = 1e-6 * np.eye(6)
    slopes = [(model.predictor(w + s) - model.predictor(w - s)) / 2e-6 for s in step]
    np.testing.assert_allclose(np.diag(slopes), model.slopes(w)[0], rtol=1e-6)
    path = penchant.train(
        model,
        problem,
        penchant.ParameterFlow(),
        stop=[penchant.stop.Interpolated(), penchant.Time(1.0)],
    )
    assert path.log_loss < path.dataset["log_loss"].values[0]


def test_the_method_recipe(problem):
    from penchant.methods import Descent
    from penchant.training.descent.method import plus, zeros

    space = {"dataclasses": dataclasses, "Descent": Descent, "plus": plus, "zeros": zeros}
    exec(block("CONTRIBUTING.md", "A method that takes steps"), space)
    method, start = space["LookAhead"](1e-2), np.full(6, 0.5)
    path = penchant.train(
        penchant.models.LinearPredictor(start), problem, method, stop=penchant.Steps(20)
    )
    w, v = start, np.zeros(6)
    for _ in range(20):
        slope = 2 * (problem.X @ (w + 0.9 * v) - problem.y) @ problem.X
        v = 0.9 * v - 1e-2 * slope
        w = w + v
    np.testing.assert_allclose(path.parameters, w, rtol=1e-10)


def test_the_regularizer_recipe(problem):
    space = {"np": np, "Regularizer": penchant.regularizers.Regularizer, "dataclasses": dataclasses}
    exec(block("CONTRIBUTING.md", "A regularizer"), space)
    found = penchant.interpolate(problem.X, problem.y, space["Quartic"]())
    reference = penchant.interpolate(problem.X, problem.y, penchant.regularizers.Lp(4.0))
    np.testing.assert_allclose(found.beta, reference.beta, atol=1e-7)


def test_the_data_recipe():
    space = {"np": np, "Classification": penchant.Classification}
    space["with_recipe"] = penchant.description.with_recipe
    exec(block("CONTRIBUTING.md", "A data set"), space)
    problem = space["two_clusters"](6, 8, seed=2)  # no weight of its Q path falls down to mu = 0.1
    assert penchant.solvers.separation(problem.X, problem.y).separable
    flow = penchant.DualFlow(rtol=1e-6)
    end = penchant.train(
        penchant.DiagonalNet(depth=2, alpha=300), problem, flow, stop=penchant.stop.Scale(0.1)
    ).predictor
    at, elsewhere = (
        penchant.max_margin(problem.X, problem.y, penchant.Q(depth=2, mu=mu)).beta
        for mu in (0.1, 1.0)
    )
    assert penchant.measures.angle(end, at) < 0.01
    assert penchant.measures.angle(end, elsewhere) > 1  # the control


def test_the_experiment_recipe(tmp_path, monkeypatch):
    from penchant.lab import Registry, Setting

    code = block("CONTRIBUTING.md", "An experiment")
    assert len(code.splitlines()) < 45  # one screen
    (tmp_path / "recipe_of_test.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    experiment = Registry({"W-XX": "recipe_of_test"})["W-XX"]
    data = experiment.data(Setting("tiny", tmp_path / "cells"))
    assert experiment.verdict(experiment.evidence(data), "tiny").status == "holds"
    assert experiment.picture(data).axes[0].get_xlabel() == r"initial scale $\alpha$"
    assert list((tmp_path / "cells" / "W-XX-tiny.cells").rglob("*.cell"))
