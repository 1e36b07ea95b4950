"""Single cells of the studies that come with tacit, for tests that compare them with figures."""

from tacit.papers.reading import read_study
from tacit.studies.cells import cells_of
from tacit.studies.compute import OK, compute
from tacit.studies.sizes import merged
from tacit.studies.study import Study


def tiny(name, **changes):
    """The study of a preset with some keys changed."""
    return Study(**merged(read_study(name).describe(), changes))


def values(study, place=0):
    """What the cell at this place of the grid gives: numbers, texts and arrays by name."""
    result = compute(list(cells_of(study, "test"))[place].spec)
    assert result.status in OK, result.sentence
    return {name: value[1] if isinstance(value, tuple) else value
            for name, value in result.values.items()}  # fmt: skip
