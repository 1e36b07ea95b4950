"""The files of an experiment: pictures and data side by side, all or none."""

import pytest
import xarray

import tacit.store
from tacit.papers.files import save
from tacit.papers.registry import library


@pytest.fixture
def saved(data_of):
    """saved(folder, ...): the files of Figure 2 of W in a folder."""
    return lambda folder, **given: save(library()["W-F2"], data_of("W-F2"), folder, **given)


def test_pictures_and_data_lie_side_by_side(tmp_path, saved, data_of):
    files = saved(tmp_path / "new" / "folder")
    assert [file.name for file in files] == ["W-F2-tiny.nc", "W-F2.png", "W-F2.svg"]
    assert sorted((tmp_path / "new" / "folder").iterdir()) == files
    assert files[1].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in files[2].read_bytes()[:1000]
    loaded = tacit.store.load(files[0])
    xarray.testing.assert_identical(loaded, data_of("W-F2")[0])
    assert loaded.attrs["experiment"] == "W-F2"


def test_the_same_data_give_the_same_files(tmp_path, saved):
    for folder in ("a", "b"):
        saved(tmp_path / folder)
    for name in ("W-F2.png", "W-F2.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_png_has_200_dpi(tmp_path, saved):
    from PIL import Image

    saved(tmp_path, formats=["png"])
    with Image.open(tmp_path / "W-F2.png") as picture:
        assert picture.info["dpi"] == pytest.approx((200, 200), abs=0.5)
        assert picture.width > 1500


def test_a_failure_leaves_nothing(tmp_path, saved, monkeypatch):
    def full(dataset, file):
        file.write_bytes(b"half")
        raise OSError("no space left")

    before = {tmp_path / name: b"earlier" for name in ("W-F2.png", "W-F2.svg", "W-F2-tiny.nc")}
    for file, content in before.items():
        file.write_bytes(content)
    monkeypatch.setattr(tacit.store, "save", full)
    with pytest.raises(OSError, match="no space left"):
        saved(tmp_path)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
    with pytest.raises(OSError, match="no space left"):
        saved(tmp_path / "new" / "folder")
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_a_file_is_refused(tmp_path, saved):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="is a file; name a directory"):
        saved(tmp_path / "file")
    (tmp_path / "W-F2.png").mkdir()
    with pytest.raises(ValueError, match=r"W-F2\.png in .* is a directory; move it"):
        saved(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["W-F2.png", "file"]
