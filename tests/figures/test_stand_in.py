"""Figures of images that are not on the machine are drawn on digits, and say so."""

import pytest

from figure_checks import assert_captioned
from tacit.claims.woodworth.digit_images import with_images
from tacit.figures.registry import draw, figures, make
from tacit.problems.images import cache

SMALL = {
    "W-F6c": {"train": 64, "width": 12, "epochs": 3, "alphas": [1.0], "output_epochs": 2},
    "W-F6d": {"train": 40, "test": 30, "slimmer": 64, "epochs": 1, "alphas": [1.0]},
    "W-F8": {"train": 40, "test": 30, "slimmer": 64, "epochs": 1, "alphas": [1.0]},
}


@pytest.mark.parametrize("id", SMALL)
def test_by_default_digits_stand_in_and_the_caption_says_so(id, monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "empty"))
    dataset = make(id, SMALL[id])
    wanted = "mnist" if id == "W-F6c" else "cifar10"
    assert f"{wanted} is not on this machine: the small digits" in dataset.instead
    picture = draw(id, dataset)
    assert_captioned(id, picture)
    caption = " ".join(picture._supxlabel.get_text().split())
    assert caption.startswith(f"{wanted} is not on this machine: the small digits")


@pytest.mark.parametrize("id", SMALL)
def test_the_printed_size_never_falls_back(id, monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "empty"))
    paper = figures()[id].presets["paper"]
    assert with_images(paper) == (paper, "")
    with pytest.raises(FileNotFoundError, match="is not in the cache folder"):
        make(id, "paper")


def test_images_that_are_there_are_used(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    (tmp_path / "cifar10.npz").write_bytes(b"something")
    quick = figures()["W-F8"].presets["quick"]
    assert with_images(quick) == (quick, "")
    (tmp_path / "cifar10.npz").unlink()
    changed, told = with_images(quick)
    assert (changed["images"], changed["classes"], changed["train"]) == ("digits", [], 300)
    assert "300 of them" in told
