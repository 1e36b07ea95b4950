"""The studies of the experiments: each can be made at every size, under a name of its own."""

import math
import re
from pathlib import Path

import pytest

import penchant_papers
from penchant.lab import SIZES, all_claims, read_study

STUDIES = all_claims().studies()


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_a_study_is_whole_at_every_size(name):
    cells = {size: math.prod(STUDIES[name].at(size).shape) for size in SIZES}
    assert 1 <= cells["tiny"] <= max(cells["quick"], cells["printed"])
    assert read_study(name.lower()).name == name


def test_names_are_those_of_the_experiments():
    for experiment in all_claims().experiments():
        names = [sizes.name for sizes in experiment.studies]
        assert len(set(names)) == len(names), experiment.id
        assert all(name.startswith(experiment.source + "-") for name in names), experiment.id


def test_an_id_stands_in_one_file_and_in_the_list_of_its_paper():
    paths = sorted(Path(penchant_papers.__file__).parent.glob("*/**/*.py"))
    texts = {path: path.read_text() for path in paths}
    some_id = "|".join(map(re.escape, sorted(all_claims().ids, key=len, reverse=True)))
    word = re.compile(rf"(?<![\w-])(?:{some_id})(?![\w-])")
    named = {path: set(word.findall(text)) for path, text in texts.items()}
    for id in all_claims().ids:
        found = [path for path, ids in named.items() if id in ids]
        assert [path.name == "__init__.py" for path in found].count(True) == 1, id
        assert len(found) == 2, (id, found)
