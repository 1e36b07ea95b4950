"""A visitor's table and the record of a run as views of the page, and a page for everybody."""

import re

import numpy as np
import pytest

pytest.importorskip("bokeh")

from typer.testing import CliRunner

import penchant
from penchant.cli import app
from penchant.explore import tables
from penchant.explore.server import check_binding
from penchant.explore.views import own_data, watched


def csv_of(values, names=None):
    rows = [",".join(f"{value:.17g}" for value in row) for row in values]
    return "\n".join([*([",".join(names)] if names else []), *rows]).encode()


@pytest.fixture
def wide():
    """A table with more columns than rows, one of them constant."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(8, 13))
    values[:, 4] = 2.0
    return values


@pytest.mark.parametrize("depth", ["2", "3"])
def test_the_coefficients_are_those_of_the_printed_code(wide, depth, tmp_path, monkeypatch, capsys):
    names = [*(f"c{k}" for k in range(12)), "y"]
    keeps = np.delete(wide, 4, axis=1)  # the code of the page divides by the spread of each column
    content = csv_of(keeps, [*names[:4], *names[5:]])
    key = tables.keep(content, "mine.csv")
    values = {"table": key, "depth": depth, "log10_alpha": -1.0}
    (tmp_path / "mine.csv").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    exec(own_data.python(values), {})
    printed = np.array(re.findall(r"-?\d[\d.e+-]*", capsys.readouterr().out), float)
    path, _, shown, many = own_data.computed(key, int(depth))
    here = np.argmin(abs(own_data.LOG10_ALPHAS + 1))
    np.testing.assert_allclose(path[here], printed, atol=1e-7)
    assert len(shown) == 11
    assert many
    assert own_data.computed(tables.keep(csv_of(wide, names), "w"), int(depth))[2] == shown


def test_the_error_is_that_of_rows_that_training_has_not_seen(wide):
    key = tables.keep(csv_of(wide), "mine.csv")
    _, errors, _, _ = own_data.computed(key, 2)
    X, y, _ = own_data.standardized(tables.table_of(key))
    rest = np.arange(8) != 4
    beta = penchant.interpolate(X[rest], y[rest], penchant.Q(2, alpha=1e-5)).beta
    assert errors[-1] == pytest.approx((X[4] @ beta - y[4]) ** 2, rel=1e-6)


def test_of_a_tall_table_one_predictor_fits_best():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, 0.0, -1.0] + rng.normal(size=40)
    key = tables.keep(csv_of(np.column_stack([X, y])), "tall.csv")
    picture = own_data.picture({"table": key, "depth": "2", "log10_alpha": 0.0})
    assert "One predictor alone fits these rows best" in picture.sentence
    path = own_data.computed(key, 2)[0]
    standard, target, _ = own_data.standardized(tables.table_of(key))
    best = np.linalg.lstsq(standard, target, rcond=None)[0]
    np.testing.assert_allclose(path, np.tile(best, (len(path), 1)), atol=1e-7)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "0 of its 0 lines are numbers"),
        (b"a,b\n1,2\n3,x\n5,6\n", "2 of its 4 lines are numbers"),
        (b"1,2\n3,4,5\n6,7\n", "all of one length"),
        (b"1,2\n3,nan\n5,6\n", "2 of its 3 lines are numbers"),
        (b"\xff\xfe\x00", "is no table of numbers"),
        (b"1,2\n3,4\n", "must have 3 to 2000 rows"),
        (b"1\n2\n3\n", "2 to 300 columns, got 3 and 1"),
        (b"1,2\n" * 200_000, "more than 700000"),
    ],
)
def test_a_wrong_table_is_refused_in_a_sentence(content, rule):
    with pytest.raises(ValueError, match=re.escape(rule)):
        tables.keep(content, "mine.csv")


def test_a_constant_target_is_refused():
    key = tables.keep(b"1,2\n3,2\n5,2\n", "flat.csv")
    with pytest.raises(
        ValueError, match=r"last column of 'flat\.csv', or all others, are constant"
    ):
        own_data.picture({"table": key, "depth": "2", "log10_alpha": 0.0})


def test_old_tables_make_room():
    first = tables.keep(b"1,2\n3,4\n5,7\n", "first.csv")
    for number in range(tables.KEPT):
        tables.keep(f"1,2\n3,4\n5,{number}.5\n".encode(), "later.csv")
    with pytest.raises(ValueError, match="drop the file again"):
        tables.table_of(first)


def test_the_record_of_a_run_is_read_again_when_it_changes(tmp_path):
    start = np.ones((3, 2)) / 2
    watch = penchant.watch(
        lambda w, x: (x @ w**2).sum(axis=1), np.eye(3), parameters=start, budget=None
    )
    view = None
    for step in range(1, 60):
        watch(step, start * (1 + step / 20), train_loss=1 / step)
        if step in (20, 59):
            file = watch.save(tmp_path / "run.nc")
            view = view or watched.watch_view(file)
            shown = {axis: view.picture({"axis": axis}) for axis in ("log", "linear")}
            (loss,) = shown["linear"].panels[0].curves
            assert loss.name == "train_loss"
            assert shown["linear"].values["step"] == loss.x[-1] == step
            np.testing.assert_allclose(loss.y, 1 / np.arange(1, step + 1))
            np.testing.assert_allclose(10 ** shown["log"].panels[0].curves[0].x, loss.x)
    with pytest.raises(ValueError, match=r"`watch\.save` writes one"):
        watched.watch_view(tmp_path / "none.nc")


def test_a_page_for_everybody_is_asked_for_by_name():
    with pytest.raises(ValueError, match="is started with --public"):
        check_binding("0.0.0.0", 7860, None)
    check_binding("0.0.0.0", 7860, None, public=True)
    with pytest.raises(ValueError, match="a public page has no token"):
        check_binding("0.0.0.0", 7860, "x" * 20, public=True)


def test_the_command_takes_a_record_where_a_study_stands(tmp_path, monkeypatch):
    """`penchant explore run.nc` follows a run; a study and a missing file stay what they were."""
    watch = penchant.watch(lambda w, x: x @ w, np.eye(2), parameters=np.ones(2))
    file, asked = watch.save(tmp_path / "run.nc"), []

    def prepared(*files, **options):
        asked.append(files)
        raise ValueError("explore: enough")

    monkeypatch.setattr("penchant.explore.start.prepared", prepared)
    for name in (file, tmp_path / "study.nc"):
        result = CliRunner().invoke(app, ["explore", str(name)])
        assert result.exit_code != 0
    assert asked == [(None, None, None, file), (tmp_path / "study.nc", None, None, None)]
