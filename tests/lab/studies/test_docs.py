"""What docs/scale.md shows can be run as it stands."""

import re
from pathlib import Path

import pytest

import penchant
from penchant import Study
from penchant.lab import read_study

PAGE = (Path(__file__).parents[3] / "docs" / "scale.md").read_text(encoding="utf-8")
TOML, THRESHOLD, REFINE = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
(PYTHON,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)


def written(tmp_path, text):
    file = tmp_path / "scale.toml"
    file.write_text(text)
    return read_study(file)


def test_the_study_of_the_page(tmp_path):
    study = written(tmp_path, TOML)
    assert "5 x 3 x 4 seeds = 60 cells" in TOML
    assert study.shape == (5, 3, 4)
    small = TOML.replace("seeds = 4", "seeds = 1").replace("[-3, 1, 5]", "[-2, 0, 2]")
    dataset = penchant.run(written(tmp_path, small.replace("[20, 40, 60]", "[60]")), tmp_path)
    assert (dataset.status == "solved").all()
    small_start, large_start = dataset.test_error.values.ravel()
    assert small_start < large_start  # the title's claim
    assert "time" in dataset.trajectory_test_error.dims


def test_the_sentence_of_the_page(tmp_path):
    (sentence,) = re.findall(r"`scale\.toml: (unknown key in model 'alhpa'.*?)`", PAGE)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        written(tmp_path, TOML.replace("model.alpha", "model.alhpa"))


def test_the_adaptive_studies_of_the_page(tmp_path):
    line = re.search(r"model\.alpha = .*\n", TOML).group(0)
    bisected = written(tmp_path, TOML.replace(line, "") + THRESHOLD)
    assert bisected.dimensions == ("samples", "seed")
    refined = written(tmp_path, TOML + REFINE)
    assert refined.refine["rounds"] == 3


def test_the_python_study_of_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(penchant, "Study", Study, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "sweep_of_the_page.py"
    file.write_text(PYTHON)
    dataset = penchant.run(read_study(file), tmp_path)
    assert dataset.beta.dims == ("alpha", "seed", "feature")
    assert (dataset.error.isel(alpha=0) < dataset.error.isel(alpha=-1)).all()
