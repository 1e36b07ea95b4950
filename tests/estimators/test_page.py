"""The table of docs/howto/estimators.md, as far as it can be measured again in seconds."""

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("estimators", DOCS / "estimators.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cells(script):
    """{(estimator, data set): what the page says}."""
    text = script.TABLE.search(script.PAGE.read_text())[0]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines()[1:-1]]
    titles = [title.partition(" (")[0] for title in rows[0]]
    return {
        (row[0], title): cell
        for row in rows[2:]
        for title, cell in zip(titles[1:], row[1:], strict=True)
    }


@pytest.mark.parametrize("name", ["diabetes", "wine: alcohol", "digits: 0 or 1"])
@pytest.mark.parametrize("estimator", ["`Ridge()`", "`Lasso(0.1)`", "`DiagonalNetRegressor()`"])
def test_the_errors_of_the_table(script, estimator, name):
    found = script.measure(script.ESTIMATORS[estimator], script.sets()[name])
    assert cells(script)[estimator, name].startswith(script.error_text(found))


def test_the_table_is_whole(script):
    known = cells(script)
    assert set(known) == {(e, name) for e in script.ESTIMATORS for name in script.sets()}
    assert all(re.fullmatch(r"[\d.]+ ± [\d.]+, [\d.]+ m?s", cell) for cell in known.values())
    for name, data in script.sets().items():
        shape = f"{name} ({data.X.shape[1]} columns, {data.train} samples)"
        assert shape in script.PAGE.read_text()
