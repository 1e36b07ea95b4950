"""Saved studies and verdicts from anyone: read whole, or refused with the reason."""

import json
import os
import pickle
import re

import h5py
import pytest
import xarray

from explore_study import made
from penchant import store
from penchant.explore.claims import ClaimsPage, claims_view, read_claims
from penchant.explore.state import State, read_state
from penchant.lab import door_as
from penchant.lab.studies import gathered
from penchant.store import json_checksum

read_gathered = door_as("explore")(gathered.read_gathered)


def test_a_saved_study_is_read_whole(tmp_path):
    dataset = made()
    file = store.write(dataset, tmp_path / "little.nc")
    xarray.testing.assert_identical(read_gathered(file), dataset)


class Boom:
    def __reduce__(self):
        return os.mkdir, ("boom",)


def test_what_is_no_netcdf_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = {"a.nc": pickle.dumps(Boom()), "b.nc": b"", "c.nc": b"CDF\x01", "d.nc": b"{}" * 99}
    for name, content in texts.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"explore: {name} is cut short or is no netCDF"):
            read_gathered(tmp_path / name)
    assert not (tmp_path / "boom").exists()
    with pytest.raises(ValueError, match="there is no file"):
        read_gathered(tmp_path / "nothing.nc")
    with pytest.raises(ValueError, match="there is no file"):
        read_gathered(tmp_path)


def test_a_spoiled_study_is_refused_by_its_name(tmp_path):
    """Why a file of penchant can be refused is in tests/house/test_store.py."""
    file = store.write(made(), tmp_path / "spoiled.nc")
    with h5py.File(file, "r+") as written:
        written["error"][0] = 0.5
    with pytest.raises(ValueError, match=r"^explore: spoiled\.nc .*its checksum is wrong"):
        read_gathered(file)
    with h5py.File(file, "r+") as written:
        written.create_dataset("secret", (4,), "u1", external=[("other.bin", 0, 4)])
    with pytest.raises(ValueError, match=r"^explore: spoiled\.nc keeps 'secret' in another file"):
        read_gathered(file)
    with h5py.File(file, "r+") as written:
        del written["secret"]
        texts = written.create_dataset("texts", (400,), h5py.string_dtype())
        texts[:] = ["y" * 200_000] * 400  # more than a browser shall hold
    with pytest.raises(ValueError, match=r"^explore: spoiled\.nc .*letters of text"):
        read_gathered(file)


def test_a_truncated_study_and_another_result_are_refused(tmp_path):
    file = store.write(made(), tmp_path / "short.nc")
    file.write_bytes(file.read_bytes()[:3000])
    with pytest.raises(ValueError, match=r"explore: short\.nc is cut short"):
        read_gathered(file)
    other = store.write(made().drop_vars("status"), tmp_path / "other.nc")
    with pytest.raises(ValueError, match="not a study"):
        read_gathered(other)


def test_texts_that_are_declared_too_wide_are_refused(tmp_path, monkeypatch):
    file = store.write(made(), tmp_path / "wide.nc")
    with h5py.File(file, "r+") as written:
        written.attrs[store.TYPES] = json.dumps({"status": "<U99999"})
    with pytest.raises(ValueError, match="its checksum is wrong"):
        read_gathered(file)  # 24 texts of that width fit
    monkeypatch.setattr(gathered, "MOST_BYTES", 9_000_000)
    with pytest.raises(ValueError, match="declares 9599904"):
        read_gathered(file)


def test_a_file_that_is_too_large_is_not_opened(tmp_path, monkeypatch):
    file = store.write(made(), tmp_path / "large.nc")
    monkeypatch.setattr(gathered, "MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="more than 1000"):
        read_gathered(file)


# --- claims -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    from little_papers import library
    from penchant.lab import Setting
    from penchant.lab.report.write import write_report
    from penchant.lab.verification import gather_verdicts

    folder = tmp_path_factory.mktemp("report")
    claims, setting = library.select(["A-SUM", "A-MEAN"]), Setting(pictures=True)
    write_report(gather_verdicts(claims, setting, jobs=1), folder)
    return folder


def test_claims_are_listed_and_shown_with_their_figures(report):
    verdicts = read_claims(report)
    views = {"claims": claims_view(verdicts)}
    page = ClaimsPage(verdicts, views)
    shown = page(read_state("view=claims&claim=A-SUM", views))
    assert shown.count('src="data:image/webp;base64,') == 1
    assert "Error of the partial sums" in shown
    assert "claim=A-MEAN" in shown
    assert "<script" not in shown
    assert re.findall(r'url\("([^"]{1,20})', shown) == ["/math.woff2"]
    assert "http://" not in shown.replace("http://www.w3.org", "")
    assert "Error of the partial sums" not in page(State("claims", {"claim": "A-MEAN"}))
    with pytest.raises(ValueError, match="unknown claim"):
        read_state("view=claims&claim=A-NONE", views)


def test_foreign_verdicts_are_refused(report, tmp_path):
    file = tmp_path / "verdicts.json"
    text = (report / "verdicts.json").read_text()
    none = {**json.loads(text), "verdicts": []}
    spoilt = {
        "not a complete JSON": text[:-20],
        "its checksum is wrong": json.dumps(none),
        "not a verdict file": "{}",
        "the file was edited": text.replace('"status": "holds"', '"status": "fails"', 1),
        "nested too deeply": "[" * 100_000,
        "holds no verdict": json.dumps({**none, "checksum": json_checksum(none)}),
    }
    for reason, content in spoilt.items():
        file.write_text(content)
        with pytest.raises(ValueError, match=reason):
            read_claims(tmp_path)
    with pytest.raises(ValueError, match="there is no file"):
        read_claims(tmp_path / "nowhere")
