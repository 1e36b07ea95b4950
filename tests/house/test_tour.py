"""Every public name is used on a page, as docs/names.py lists them."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def names():
    spec = importlib.util.spec_from_file_location("names", ROOT / "docs" / "names.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_is_used_on_a_page(names, capsys):
    assert names.main() == 0, capsys.readouterr().out
    assert "0 without a page" in capsys.readouterr().out


def test_a_name_without_a_page_is_noticed(names, monkeypatch, capsys):
    monkeypatch.setattr(names, "PAGES", ("README.md",))
    assert names.main() == 1
    assert "penchant.solvers.held_best" in capsys.readouterr().out


def test_what_counts_as_a_use(names):
    code = "from penchant import (\n    L1,\n    train,\n)\nproblem = penchant.problems.zigzag()\n"
    assert {"L1", "train", "zigzag"} <= names.used_by_code(code)
    assert not names.used_by_code("plateau = path.saddles(step=3)  # run") & {"saddles", "run"}
    page = "The `Saddles` of `solvers.saddles`, by `penchant run` with plot.\n"
    assert {"Saddles", "saddles"} <= names.used_by_page(page)
    assert not {"run", "plot", "step"} & names.used_by_page(page + "Give `train(step=1)`.\n")
    assert "GreedyRank" in names.used_by_page("```text\nGreedyRank\n  tau 3\n```\n")
