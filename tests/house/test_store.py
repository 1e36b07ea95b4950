"""Files: what goes in comes out, and nothing half-written is ever left or read."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray

from penchant import DiagonalNet, DualFlow, GradientDescent, ParameterFlow, Steps, load, save, train
from penchant.problems import sparse_regression

PROBLEM = sparse_regression(3, 6, sparsity=2)


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
            "when": (("x",), np.array(["2020-01-02", *["NaT"] * 4], dtype="datetime64[ns]")),
            "lasted": (("x",), np.arange(5).astype("timedelta64[ns]")),
        },
        coords={"x": list("pqrst"), "step": ("x", np.arange(5, dtype=np.int32))},
        attrs={"n": 3, "f": 0.1, "list": [1, 2.5, "x"], "yes": True, "nothing": None, "text": "é"},
    )
    dataset["odd"].attrs = {"units": "s", "long_name": "seconds that are no time"}
    dataset["big"].attrs = {"deep": {"a": [1, {"b": None}]}}
    dataset["small"].attrs = {"dtype": "bool", "scale_factor": 3.0, "_FillValue": 1.5}
    return dataset


def assert_same(a, b):
    """Equal down to the bits, with kinds, order of dimensions and attributes."""
    assert dict(a.sizes) == dict(b.sizes)
    assert set(a.coords) == set(b.coords)
    assert set(a.variables) == set(b.variables)
    assert a.attrs == b.attrs
    for name in a.variables:
        assert a[name].dims == b[name].dims
        assert a[name].dtype == b[name].dtype
        assert a[name].values.tobytes() == b[name].values.tobytes(), name
        assert a[name].attrs == b[name].attrs


@pytest.mark.parametrize(
    ("flow", "stop"),
    [(ParameterFlow(), None), (DualFlow(), None), (GradientDescent(1e-2), Steps(50))],
    ids=lambda given: type(given).__name__,
)
def test_a_path_comes_back_as_it_went(flow, stop, tmp_path):
    path = train(DiagonalNet(2, alpha=0.5), PROBLEM, flow, stop=stop)
    assert save(path, tmp_path / "run.nc") == tmp_path / "run.nc"
    found = load(tmp_path / "run.nc")
    assert found == path
    assert_same(found.dataset, path.dataset)
    assert np.isneginf(found.dataset.log_t[0])
    assert (found.model, found.problem, found.method) == (DiagonalNet(2, alpha=0.5), PROBLEM, flow)


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
    path = train(DiagonalNet(2, alpha=0.5), PROBLEM, DualFlow())
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
        ValueError, match=r"load: .*run\.nc is cut short or (is no netCDF|damaged)"
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
    with pytest.raises(ValueError, match=r"other\.nc is a netCDF file, but not one that penchant"):
        load(other)
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
    with pytest.raises(ValueError, match="z must hold numbers, texts or times, got complex128"):
        save(xarray.Dataset({"z": 1j}), tmp_path / "a.nc")
    with pytest.raises(ValueError, match=r"'t' is a variable on the axes .* rename one of them"):
        save(xarray.Dataset({"t": ("u", [1.0]), "z": ("t", [2.0])}), tmp_path / "a.nc")
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


def test_no_flipped_byte_gives_other_values(tmp_path):
    rng = np.random.default_rng(5)
    dataset = xarray.Dataset(
        {"x": ("a", rng.normal(size=500)), "word": ("b", ["left", "right"])}, attrs={"note": "n"}
    )
    file = save(dataset, tmp_path / "x.nc")
    content = file.read_bytes()
    refused = 0
    for at in rng.integers(0, len(content), 150):
        flipped = bytearray(content)
        flipped[at] ^= 1 << rng.integers(8)
        file.write_bytes(bytes(flipped))
        try:
            back = load(file)
        except ValueError:
            refused += 1
        else:
            assert back.identical(dataset), at  # a byte that means nothing
    assert refused > 50
    content = content.replace(b"right", b"wrong")
    file.write_bytes(content)
    with pytest.raises(ValueError, match="its checksum is wrong"):
        load(file)


def test_a_replaced_file_keeps_permissions_and_links(tmp_path):
    dataset = xarray.Dataset({"x": 1.0})
    file, link = tmp_path / "x.nc", tmp_path / "link.nc"
    save(dataset, file).chmod(0o640)
    link.symlink_to(file)
    save(xarray.Dataset({"x": 2.0}), link)
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert load(file).x == 2
    os.mkfifo(tmp_path / "pipe.nc")
    with pytest.raises(ValueError, match=r"pipe\.nc is a device or a pipe"):
        save(dataset, tmp_path / "pipe.nc")
    with pytest.raises(ValueError, match=r"pipe\.nc is not a plain file"):
        load(tmp_path / "pipe.nc")
    with pytest.raises(ValueError, match="is a device or a pipe"):
        save(dataset, "/dev/null")


def forged(tmp_path, change):
    """A result of penchant that was changed by somebody with HDF5 tools."""
    file = save(xarray.Dataset({"x": ("a", [1.0, 2.0])}, attrs={"n": "1"}), tmp_path / "f.nc")
    (tmp_path / "secret").write_bytes(b"0123456789abcdef")
    with h5py.File(file, "r+") as opened:
        change(opened, tmp_path)
    return file


def outside(opened, folder):
    del opened["x"]
    opened.create_dataset("x", (2,), "f8", external=[(str(folder / "secret"), 0, 16)])


def virtual(opened, folder):
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "x", (4,))
    opened.create_virtual_dataset("y", layout)


def opaque(opened, folder):
    opened["y"] = np.array([b"x"], dtype=h5py.opaque_dtype(np.dtype("V8")).base)


def link(name, target):
    return lambda opened, folder: opened.__setitem__(name, target)


def declared(shape, kind="f8", **more):
    return lambda opened, folder: opened.create_dataset("y", shape, kind, **more)


def attribute(name, text):
    return lambda opened, folder: opened.attrs.__setitem__(name, text)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (outside, "keeps 'x' in another file"),
        (virtual, "in another file"),
        (link("y", h5py.ExternalLink("secret", "x")), "has a link 'y' to elsewhere"),
        (link("y", h5py.SoftLink("/x")), "has a link"),
        (lambda opened, folder: opened.create_group("inner"), "has a group"),
        (opaque, "something else than numbers and texts"),
        (declared((10**12,), chunks=(10,)), "declares 8000000000.* bytes"),
        (
            declared((10**7,), h5py.string_dtype(), chunks=(10**6,)),
            "declares 10000000 texts, more than fit into its",
        ),
        (
            declared((10**9,), chunks=(10**9 // 4,), compression="gzip"),
            "declares|in pieces that do not fit",
        ),
        (
            lambda opened, folder: opened.attrs.__delitem__("penchant_format"),
            "not one that penchant",
        ),
        (attribute("penchant_attributes", "[" * 50_000), "nested too deep"),
        (attribute("penchant_attributes", "{}"), "cut short or damaged"),
        (attribute("penchant_attributes", "hello"), "cut short or damaged"),
        (attribute("penchant_dtypes", '{"x": "<U99999999"}'), "declares .* bytes of text"),
        (attribute("penchant_dtypes", '{"x": "<U9"}'), "its checksum is wrong"),
        (attribute("penchant_dtypes", '{"x": "O"}'), "gives 'x' the type 'O'"),
        (attribute("penchant_checksum", "00"), "its checksum is wrong"),
        (attribute("penchant_format", 1), "has the format 1, and this is 2"),
    ],
)
def test_a_forged_file_is_refused_before_it_is_read(tmp_path, change, reason):
    file = forged(tmp_path, change)
    with pytest.raises(ValueError, match=reason) as raised:
        load(file)
    assert str(file) in str(raised.value)


def sealed(content):
    from penchant.store import SEAL, _seal

    return content + SEAL + _seal(content)


LOAD = """
import sys, penchant
for file in sys.argv[1:]:
    try:
        penchant.load(file)
    except ValueError as reason:
        print(reason)
"""


def test_texts_whose_sizes_lead_nowhere_are_refused(tmp_path):
    """In a process of its own, which is killed: HDF5 does not return from the first."""
    sizes, files = {"nowhere": (0, 0), "back": (1, 2**64 - 24), "beyond": (1, 10**6)}, []
    for way, (index, size) in sizes.items():
        files.append(save(mixed(), tmp_path / f"{way}.nc"))
        content = bytearray(files[-1].read_bytes().rpartition(b"penchant-seal")[0])
        struct.pack_into("<HHIQ", content, content.index(b"GCOL") + 16, index, 0, 0, size)
        files[-1].write_bytes(sealed(bytes(content)))
    command = [sys.executable, "-c", LOAD, *map(str, files)]
    output = subprocess.run(command, capture_output=True, text=True, timeout=30).stdout
    for way in sizes:
        assert f"{way}.nc is cut short or damaged: the sizes of its texts lead nowhere" in output


def test_a_heap_within_a_heap_is_refused(tmp_path):
    """Otherwise a file of nothing but beginnings is looked through once for each of them."""
    from penchant.inspection import ENTRY, HEAP, Refusal, refuse_endless_heaps

    count = 1000
    begin = HEAP + bytes(3) + (16 + 32 * count).to_bytes(8, "little")
    with pytest.raises(Refusal, match="lie within other texts"):
        refuse_endless_heaps(begin + count * (ENTRY.pack(1, 0, 0, 16) + begin))
    dataset = xarray.Dataset({"word": ("a", ["GCOL", "GCOL1", "x" * 5000] * 40)})
    assert load(save(dataset, tmp_path / "f.nc")).identical(dataset)
