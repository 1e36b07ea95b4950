"""Studies by name: those of the papers' experiments, those that come as files, the user's own."""

from __future__ import annotations

from pathlib import Path

from penchant.arguments import one_of
from penchant.lab.paper import papers
from penchant.lab.registry import Registry, all_claims
from penchant.lab.studies import reading
from penchant.lab.studies.reading import Trust
from penchant.lab.studies.sizes import SIZES
from penchant.lab.studies.study import Study


def read_study(
    file: str | Path, size: str = "quick", *, shift: int = 0, trust: Trust = False
) -> Study:
    """The study that a .toml or .py file describes, or one that comes with penchant, checked.

    Parameters
    ----------
    file
        The file, or the name of a study that `penchant list` shows. A .py file is run, as a script
        is.
    size
        "quick", "printed", or one of the tables [forms.NAME] of a TOML file.
    shift
        Is added to every seed.
    trust
        A TOML file runs nothing of its own, unless it names a function, whose module is
        imported here: that needs True.

    Returns
    -------
    Study
        The study.

    Examples
    --------
    >>> import penchant
    >>> first = penchant.lab.all_claims().experiments()[0].studies[0].name
    >>> study = penchant.lab.read_study(first)
    >>> study.name == first
    True
    """
    path = Path(file)
    if path.is_file() or path.suffix in (".toml", ".py") or len(path.parts) != 1:
        return reading.read_study(path, size, trust=trust).shifted(shift)
    known = all_claims().studies()
    spelled = {name.upper(): name for name in (*known, *presets())}
    name = spelled.get(path.name.upper()) or one_of("run", "study", path.name, spelled.values())
    if name in known:
        return known[name].at(size, shift)
    return reading.read_study(presets()[name], size, trust=True).shifted(shift)


def presets() -> dict[str, Path]:
    """The studies that come as files with the papers, by name."""
    return {name: file for paper in papers() for name, file in paper.tables.items()}


def named_studies(known: Registry) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Title and sizes of every study that has a name, those of experiments first."""
    own = {
        name: (str(sizes.quick.get("title", "")), tuple(s for s in SIZES if s in sizes.sizes))
        for name, sizes in known.studies().items()
    }
    files = {name: reading.title_and_forms(file) for name, file in presets().items()}
    return own | files
