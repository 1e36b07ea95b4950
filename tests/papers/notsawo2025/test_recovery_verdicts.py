"""The theorems and recovery experiments of source N: their status and their pictures."""

import pytest

from figure_checks import assert_readable
from tacit.papers.registry import library

EXPECTED = {
    "N-GWU": "holds as corrected",
    "N-F-mirage": "holds",
    "N-T21": "holds as corrected",
    "N-PL": "holds as corrected",
    "N-T31": "holds",
    "N-T33": "holds as corrected",
    "N-F-dominance": "holds",
    "N-F-scaling": "holds as corrected",
    "N-T34": "holds",
    "N-T35": "holds as corrected",
    "N-norm": "holds as corrected",
    "N-F-dominance-nuclear": "holds",
    "N-F-scaling-nuclear": "holds as corrected",
    "N-F-data": "holds",
    "N-F-depth": "holds",
}


@pytest.mark.parametrize("id", EXPECTED)
def test_the_verdict_is_decided_by_controls_that_were_computed(verdict_of, id):
    verdict = verdict_of(id)
    assert verdict.status == EXPECTED[id], str(verdict)
    assert not verdict.evidence.arithmetic


@pytest.mark.parametrize("id", EXPECTED)
def test_the_picture_names_its_axes_and_can_be_read(data_of, id):
    picture = library()[id].picture(data_of(id))
    panels = [axes for axes in picture.axes if axes.get_label() != "<colorbar>"]
    assert all(axes.get_ylabel() or axes.get_subplotspec().colspan.start for axes in panels)
    assert panels[-1].get_xlabel()
    assert_readable(picture)
