"""Studies by name: those of the papers' experiments, those that come as files, the user's own."""

from __future__ import annotations

from pathlib import Path

from tacit.papers.registry import library
from tacit.studies import reading
from tacit.studies.reading import Trust
from tacit.studies.study import Study


def read_study(file: str | Path, size: str = "quick", *, trust: Trust = False) -> Study:
    """The study that a .toml or .py file describes, or one that comes with tacit, checked.

    Parameters
    ----------
    file
        The file, or the name of a study that `tacit list` shows. A .py file is run, as a script
        is.
    size
        "quick", "full", or one of the tables [forms.NAME] of a TOML file.
    trust
        A TOML file runs nothing of its own, unless it names a function, whose module is
        imported here: that needs True.

    Returns
    -------
    Study
        The study.

    Examples
    --------
    >>> import tacit
    >>> study = tacit.read_study("W-F5")
    >>> study.name, study.dimensions
    ('W-F5', ('alpha', 'k', 'seed'))
    """
    if not Path(file).is_file():
        known = {name.upper(): sizes for name, sizes in library().studies().items()}
        if str(file).upper() in known:
            return known[str(file).upper()].at(size)
    return reading.read_study(file, size, trust=trust)
