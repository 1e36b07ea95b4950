"""Files: what goes in comes out, and nothing half-written is ever left or read."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray

from tacit.flows import DualFlow, GradientDescent, ParameterFlow
from tacit.models import DiagonalNet
from tacit.problems import sparse_regression
from tacit.store import load, save

PROBLEM = sparse_regression(3, 6, 2)


def mixed():
    """A dataset with every kind of value that is easily lost on the way to a file and back."""
    dataset = xarray.Dataset(
        {
            "odd": (("x",), [np.nan, -np.inf, np.inf, -0.0, 5e-324]),
            "word": (("x",), np.array(["a", "grüße", "", "two words", "x"])),
            "flag": (("x",), [True, False, True, True, False]),
            "big": ((), np.int64(2**60 + 1)),
            "small": (("x",), np.arange(5, dtype=np.float32)),
            "count": (("x",), np.arange(5, dtype=np.int8)),
            "none": (("empty",), np.zeros(0)),
        },
        coords={"x": list("pqrst"), "step": ("x", np.arange(5, dtype=np.int32))},
        attrs={"n": 3, "f": 0.1, "list": [1, 2.5, "x"], "yes": True, "nothing": None, "text": "é"},
    )
    dataset["odd"].attrs = {"units": "s", "long_name": "seconds that are no time"}
    dataset["big"].attrs = {"deep": {"a": [1, {"b": None}]}}
    return dataset


def assert_same(a, b):
    """Equal down to the bits, with kinds, order of dimensions and attributes."""
    assert dict(a.sizes) == dict(b.sizes)
    assert set(a.coords) == set(b.coords)
    assert list(a.variables) == list(b.variables) or set(a.variables) == set(b.variables)
    assert a.attrs == b.attrs
    for name in a.variables:
        assert a[name].dims == b[name].dims
        assert a[name].dtype == b[name].dtype
        assert a[name].values.tobytes() == b[name].values.tobytes(), name
        assert a[name].attrs == b[name].attrs


@pytest.mark.parametrize(
    "flow",
    [ParameterFlow(), DualFlow(), GradientDescent(step=1e-2, steps=50)],
    ids=lambda flow: type(flow).__name__,
)
def test_a_path_comes_back_as_it_went(flow, tmp_path):
    path = flow.run(DiagonalNet(2, alpha=0.5), PROBLEM)
    assert save(path, tmp_path / "run.nc") == tmp_path / "run.nc"
    found = load(tmp_path / "run.nc")
    assert_same(found, path.dataset)
    assert np.isneginf(found.log_t[0])
    assert json.loads(found.attrs["description"])["flow"]["flow"] == type(flow).__name__


def test_values_of_every_kind_come_back(tmp_path):
    dataset = mixed()
    save(dataset, tmp_path / "mixed.nc")
    assert_same(load(tmp_path / "mixed.nc"), dataset)
    assert_same(dataset, mixed())  # saving did not touch what was saved
    save(load(tmp_path / "mixed.nc"), tmp_path / "again.nc")
    assert_same(load(tmp_path / "again.nc"), dataset)


def test_long_descriptions_come_back(tmp_path):
    dataset = mixed().assign_attrs(description=json.dumps(np.linspace(0, 1, 20_000).tolist()))
    assert len(dataset.attrs["description"]) > 2**17  # HDF5 keeps short attributes in 64 kB
    save(dataset, tmp_path / "long.nc")
    assert_same(load(tmp_path / "long.nc"), dataset)


def test_the_comparison_notices_one_bit():
    other = mixed()
    other["odd"].values[3] = 0.0
    with pytest.raises(AssertionError):
        assert_same(mixed(), other)


def test_other_tools_can_read_the_numbers(tmp_path):
    path = DualFlow().run(DiagonalNet(2, alpha=0.5), PROBLEM)
    save(path, tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as found:
        assert (found.predictor.values == path.dataset.predictor.values).all()
        assert found.predictor.attrs["long_name"] == path.dataset.predictor.attrs["long_name"]


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0, 7, 100, 0.5, -1])
def test_a_file_cut_short_is_refused_by_name(keep, tmp_path):
    file = tmp_path / "run.nc"
    save(mixed(), file)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(
        ValueError, match=r"load: .*run\.nc is cut short or is no netCDF"
    ) as refused:
        load(file)
    assert "\n" not in str(refused.value)
    file.write_bytes(whole)
    assert_same(load(file), mixed())


def test_files_of_others_are_refused_by_name(tmp_path):
    text = tmp_path / "notes.nc"
    text.write_text("not a dataset\n")
    with pytest.raises(ValueError, match=r"notes\.nc is cut short or is no netCDF"):
        load(text)
    other = tmp_path / "other.nc"
    xarray.Dataset({"odd": (("x",), np.ones(3))}).to_netcdf(other, engine="h5netcdf")
    with pytest.raises(ValueError, match=r"other\.nc is a netCDF file, but not one that tacit"):
        load(other)
    import h5py

    with h5py.File(tmp_path / "plain.h5", "w") as file:
        file["numbers"] = np.arange(3)
    with pytest.raises(ValueError, match=r"plain\.h5"):
        load(tmp_path / "plain.h5")
    with pytest.raises(FileNotFoundError, match=r"no file .*absent\.nc"):
        load(tmp_path / "absent.nc")
    with pytest.raises(ValueError, match="is a folder"):
        load(tmp_path)


def test_only_results_can_be_saved(tmp_path):
    with pytest.raises(ValueError, match=r"save: can write a path or an xarray\.Dataset, got list"):
        save([1, 2], tmp_path / "a.nc")
    with pytest.raises(ValueError, match="is a folder"):
        save(mixed(), tmp_path)
    with pytest.raises(ValueError, match="lies in no existing folder"):
        save(mixed(), tmp_path / "no" / "a.nc")
    with pytest.raises(ValueError, match="plain JSON values"):
        save(mixed().assign_attrs(bad=object()), tmp_path / "a.nc")
    assert list(tmp_path.iterdir()) == []


# --- all or nothing -------------------------------------------------------------------------


@pytest.mark.parametrize("reason", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("older", [True, False])
def test_a_failure_while_writing_leaves_what_was_there(reason, older, tmp_path, monkeypatch):
    file = tmp_path / "run.nc"
    if older:
        save(mixed(), file)
    write = Path.write_bytes

    def interrupted(self, content):
        write(self, content[:200])  # a part of it is on disk when the failure comes
        raise reason

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    with pytest.raises(type(reason)):
        save(mixed().drop_vars("word"), file)
    assert [found.name for found in tmp_path.iterdir()] == (["run.nc"] if older else [])
    if older:
        assert_same(load(file), mixed())


def test_a_file_is_replaced_as_a_whole(tmp_path):
    file = tmp_path / "run.nc"
    save(mixed(), file)
    save(mixed().drop_vars("word"), str(file))
    assert_same(load(str(file)), mixed().drop_vars("word"))
    assert [found.name for found in tmp_path.iterdir()] == ["run.nc"]
