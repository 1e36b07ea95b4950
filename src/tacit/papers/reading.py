"""Studies by name: those of the papers' experiments, those that come as files, the user's own."""

from __future__ import annotations

from pathlib import Path

from tacit.arguments import one_of
from tacit.papers.registry import Registry, library
from tacit.studies import reading
from tacit.studies.reading import Trust
from tacit.studies.sizes import SIZES
from tacit.studies.study import Study

PRESETS = Path(__file__).parent / "beyond"  # studies of ours, as TOML files


def read_study(
    file: str | Path, size: str = "quick", *, shift: int = 0, trust: Trust = False
) -> Study:
    """The study that a .toml or .py file describes, or one that comes with tacit, checked.

    Parameters
    ----------
    file
        The file, or the name of a study that `tacit list` shows. A .py file is run, as a script
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
    >>> import tacit
    >>> study = tacit.read_study("W-L13")
    >>> study.name, study.dimensions
    ('W-L13', ('rows', 'ratio'))
    """
    path = Path(file)
    if path.is_file() or path.suffix in (".toml", ".py") or len(path.parts) != 1:
        return reading.read_study(path, size, trust=trust).shifted(shift)
    known = library().studies()
    spelled = {name.upper(): name for name in (*known, *presets())}
    name = spelled.get(path.name.upper()) or one_of("run", "study", path.name, spelled.values())
    if name in known:
        return known[name].at(size, shift)
    return reading.read_study(PRESETS / f"{name}.toml", size, trust=True).shifted(shift)


def presets() -> tuple[str, ...]:
    """The names of the studies that come as files."""
    return tuple(sorted(file.stem for file in PRESETS.glob("*.toml")))


def named_studies(known: Registry) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Title and sizes of every study that has a name, those of experiments first."""
    own = {
        name: (str(sizes.quick.get("title", "")), tuple(s for s in SIZES if s in sizes.sizes))
        for name, sizes in known.studies().items()
    }
    files = {name: reading.title_and_forms(PRESETS / f"{name}.toml") for name in presets()}
    return own | files
