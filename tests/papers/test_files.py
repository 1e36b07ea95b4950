"""The files of an experiment: its picture and its data appear together, or not at all."""

import pytest
import xarray
from PIL import Image

import penchant.store
from penchant.lab import Setting, all_claims
from penchant.lab.figure_files import save_figure


@pytest.fixture
def diagram(data_of):
    """A small experiment and its data."""
    return all_claims()["W-F9"], data_of("W-F9")


def test_picture_and_data_lie_side_by_side(diagram, tmp_path):
    experiment, data = diagram
    files = save_figure(experiment, data, tmp_path / "new" / "folder")
    names = [file.name for file in files]
    assert {"W-F9.png", "W-F9.svg"} < set(names)
    assert sorted((tmp_path / "new" / "folder").iterdir()) == sorted(files)
    for dataset in data:
        loaded = penchant.store.read(tmp_path / "new" / "folder" / f"{dataset.study}.nc")
        xarray.testing.assert_identical(loaded, dataset)
        assert loaded.attrs["experiment"] == "W-F9"
    with Image.open(tmp_path / "new" / "folder" / "W-F9.png") as picture:
        assert picture.info["dpi"] == pytest.approx((200, 200), abs=0.5)


def test_the_same_data_give_the_same_files(diagram, tmp_path):
    for folder in ("a", "b"):
        save_figure(*diagram, tmp_path / folder)
    for name in ("W-F9.png", "W-F9.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_failure_leaves_nothing(diagram, tmp_path, monkeypatch):
    def full(dataset, file):
        file.write_bytes(b"half")
        raise OSError("no space left")

    before = {tmp_path / f"W-F9.{kind}": b"earlier" for kind in ("png", "svg", "nc")}
    for file, content in before.items():
        file.write_bytes(content)
    monkeypatch.setattr(penchant.store, "write", full)
    with pytest.raises(OSError, match="no space left"):
        save_figure(*diagram, tmp_path)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
    with pytest.raises(OSError, match="no space left"):
        save_figure(*diagram, tmp_path / "new" / "folder")
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_a_file_is_refused(diagram, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="is a file; name a directory"):
        save_figure(*diagram, tmp_path / "file")
    (tmp_path / "W-F9.png").mkdir()
    with pytest.raises(ValueError, match=r"W-F9\.png in .* is a directory; move it"):
        save_figure(*diagram, tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["W-F9.png", "file"]


def test_datasets_say_what_they_are(data_of):
    (dataset, *_), known = data_of("W-F2"), all_claims()["W-F2"]
    assert dataset.attrs["source"] == f"Woodworth et al. 2020, {known.place}"
    assert (dataset.attrs["size"], dataset.attrs["experiment"]) == ("tiny", "W-F2")
    assert dataset.attrs["ours"] == known.ours != ""


def test_an_unknown_size_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"unknown size 'print'; did you mean printed\?"):
        all_claims()["W-T1"].data(Setting("print"))
