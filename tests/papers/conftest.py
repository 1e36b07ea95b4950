"""The data of experiments, computed once in a test session, whichever worker needs them first."""

import functools
from pathlib import Path

import pytest

from penchant.lab import Setting, all_claims


@pytest.fixture(scope="session")
def cells(tmp_path_factory):
    """One folder of cells for all workers of a session."""
    base = Path(tmp_path_factory.getbasetemp())
    shared = base.parent if base.name.startswith("popen-") else base
    return shared / "penchant-studies"


@pytest.fixture(scope="session")
def data_of(cells):
    """data_of(id, size): the datasets of an experiment."""

    @functools.cache
    def found(id, size="tiny"):
        return all_claims()[id].data(Setting(size, cells))

    return found


@pytest.fixture(scope="session")
def verdict_of(data_of):
    """verdict_of(id, size): what the check says of these datasets."""

    @functools.cache
    def found(id, size="tiny"):
        experiment = all_claims()[id]
        return experiment.verdict(experiment.evidence(data_of(id, size)), size)

    return found


@pytest.fixture(scope="session")
def picture_of(data_of):
    """picture_of(id): what an experiment draws of its data at the size "tiny", drawn once."""

    @functools.lru_cache(maxsize=64)
    def drawn(id):
        return all_claims()[id].picture(data_of(id))

    return drawn
