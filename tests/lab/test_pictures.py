"""Pictures are drawn again when what they show has changed, and not otherwise."""

from __future__ import annotations

import dataclasses

import pytest

import little_papers
from penchant.lab import Setting


@pytest.fixture
def claim(monkeypatch):
    """An experiment, and how often it was drawn."""
    drawn = []
    plain = little_papers.blank

    def count(dataset):
        drawn.append(dataset.attrs["title"])
        return plain(dataset)

    count.__module__ = little_papers.__name__  # a file that penchant can find
    return little_papers.summed("T-1", "s", "p", little_papers.basel, draw=count), drawn


def test_an_equal_picture_is_drawn_once(claim, tmp_path):
    experiment, drawn = claim
    setting = Setting(folder=tmp_path, pictures=True)
    first, second = experiment.run(setting), experiment.run(setting)
    assert first.picture == second.picture != ""
    assert len(drawn) == 1
    experiment.run(Setting(pictures=True))  # nowhere to keep it
    assert len(drawn) == 2


@pytest.mark.parametrize("change", ["title", "terms", "code", "damage", "no file"])
def test_a_picture_that_may_differ_is_drawn_again(claim, tmp_path, monkeypatch, change):
    from penchant.lab import pictures

    experiment, drawn = claim
    setting = Setting(folder=tmp_path, pictures=True)
    experiment.run(setting)
    (file,) = (tmp_path / "pictures").iterdir()
    if change == "title":  # it is written into the picture
        experiment = dataclasses.replace(experiment, title="another")
    if change == "terms":
        setting = dataclasses.replace(setting, size="printed")
    if change == "code":
        own = {**pictures.own_files(edges=True), "penchant.plotting.style": "other"}
        monkeypatch.setattr(pictures, "own_files", lambda edges: own)
    if change == "damage":
        file.write_bytes(file.read_bytes()[:-1])
    if change == "no file":
        monkeypatch.setattr(experiment.draw, "__module__", "__main__")
    experiment.run(setting)
    assert len(drawn) == 2
