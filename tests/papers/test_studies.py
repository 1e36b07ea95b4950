"""The studies of the experiments: each can be made at every size, under a name of its own."""

import math

import pytest

from tacit.papers.reading import read_study
from tacit.papers.registry import library
from tacit.studies.sizes import SIZES

STUDIES = library().studies()


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_a_study_is_whole_at_every_size(name):
    cells = {size: math.prod(STUDIES[name].at(size).shape) for size in SIZES}
    assert 1 <= cells["tiny"] <= max(cells["quick"], cells["full"])
    assert read_study(name.lower()).name == name


def test_names_are_those_of_the_experiments():
    for experiment in library().experiments():
        names = [sizes.name for sizes in experiment.studies]
        assert len(set(names)) == len(names), experiment.id
        assert all(name.startswith(experiment.source + "-") for name in names), experiment.id
