"""The recipes of CONTRIBUTING.md and the README's example run as printed."""

import re
from pathlib import Path

import numpy as np
import pytest

import tacit

ROOT = Path(__file__).parents[2]


def block(file, heading):
    """The first Python block below a heading of a Markdown file."""
    text = (ROOT / file).read_text().split(f"## {heading}\n")[1]
    return re.search(r"```python\n(.*?)```", text, re.S).group(1)


@pytest.fixture
def problem():
    return tacit.sparse_regression(samples=3, dimension=6, sparsity=2, seed=1)


def test_the_readme_s_five_lines(capsys):
    code = block("README.md", "Five lines")
    assert len(code.strip().splitlines()) == 5
    exec(code, {})
    assert all(float(number) < 1e-8 for number in capsys.readouterr().out.split())


def test_the_model_recipe(problem):
    from tacit.models.model import Separable

    space = {"np": np, "Separable": Separable}
    exec(block("CONTRIBUTING.md", "A model"), space)
    model, w = space["Cubic"](), np.linspace(0.1, 1, 6)
    step = 1e-6 * np.eye(6)
    slopes = [(model.predictor(w + s) - model.predictor(w - s)) / 2e-6 for s in step]
    np.testing.assert_allclose(np.diag(slopes), model.slopes(w)[0], rtol=1e-6)
    path = tacit.train(
        model, problem, tacit.ParameterFlow(), stop=[tacit.Interpolated(), tacit.Time(1.0)]
    )
    assert path.log_loss < path.dataset["log_loss"].values[0]


def test_the_method_recipe(problem):
    import dataclasses

    from tacit.training.descent.method import Descent, plus, zeros

    space = {"dataclasses": dataclasses, "Descent": Descent, "plus": plus, "zeros": zeros}
    exec(block("CONTRIBUTING.md", "A method that goes step by step"), space)
    method, start = space["LookAhead"](1e-2), np.full(6, 0.5)
    path = tacit.train(tacit.LinearPredictor(start), problem, method, stop=tacit.Steps(20))
    w, v = start, np.zeros(6)
    for _ in range(20):
        slope = 2 * (problem.X @ (w + 0.9 * v) - problem.y) @ problem.X
        v = 0.9 * v - 1e-2 * slope
        w = w + v
    np.testing.assert_allclose(path.parameters, w, rtol=1e-10)


def test_the_regularizer_recipe(problem):
    import dataclasses

    space = {"np": np, "Regularizer": tacit.Regularizer, "dataclasses": dataclasses}
    exec(block("CONTRIBUTING.md", "A regularizer"), space)
    found = tacit.interpolate(problem.X, problem.y, space["Quartic"]())
    reference = tacit.interpolate(problem.X, problem.y, tacit.Lp(4.0))
    np.testing.assert_allclose(found.beta, reference.beta, atol=1e-7)


def test_the_data_recipe():
    space = {"np": np, "Classification": tacit.Classification}
    exec(block("CONTRIBUTING.md", "A data set"), space)
    problem = space["two_clusters"](6, 8, seed=2)  # no weight of its Q path falls down to mu = 0.1
    assert tacit.separation(problem.X, problem.y).separable
    flow = tacit.DualFlow(rtol=1e-6)
    end = tacit.train(
        tacit.DiagonalNet(depth=2, alpha=300), problem, flow, stop=tacit.Scale(0.1)
    ).predictor
    at, elsewhere = (
        tacit.max_margin(problem.X, problem.y, tacit.Q(depth=2, mu=mu)).beta for mu in (0.1, 1.0)
    )
    assert tacit.angle(end, at) < 0.01
    assert tacit.angle(end, elsewhere) > 1  # the control


HEAD = """
import numpy as np
from tacit import DiagonalNet, L1, L2, ParameterFlow, interpolate, sparse_regression, train
from tacit.evidence.evidence import Check, Evidence
from tacit.papers.experiment import Experiment
from tacit.plotting.style import caption_of, sheet
from tacit.studies.sizes import sized
"""


def test_the_experiment_recipe(tmp_path, monkeypatch):
    from tacit.papers.experiment import Setting
    from tacit.papers.registry import Registry

    code = block("CONTRIBUTING.md", "An experiment")
    assert len(code.splitlines()) < 45  # one screen
    (tmp_path / "recipe_of_test.py").write_text(HEAD + code)
    monkeypatch.syspath_prepend(tmp_path)
    experiment = Registry({"W-XX": "recipe_of_test"})["W-XX"]
    data = experiment.data(Setting("tiny", tmp_path / "cells"))
    assert experiment.verdict(experiment.evidence(data), "tiny").status == "holds"
    assert experiment.picture(data).axes[0].get_xlabel() == "initial scale alpha"
    assert (tmp_path / "cells" / "W-XX-tiny.nc").exists()
