"""Studies by name or file: of experiments, of TOML tables, of Python modules that make one."""

from __future__ import annotations

import dataclasses
import importlib
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penchant.arguments import one_of
from penchant.door import Invalid, door_as, speaking_as
from penchant.inspection import Refusal, read_text
from penchant.lab.paper import papers
from penchant.lab.registry import Registry, all_claims
from penchant.lab.studies.sizes import FORMS, QUICK, SIZES, formed, read_forms
from penchant.lab.studies.study import Study

KEYS = tuple(
    field.name for field in dataclasses.fields(Study) if field.init and field.name != "source"
)
Trust = bool | Callable[[Path, str], bool]  # whether to run the function that a file names


@door_as("run")
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
        return _from_file(path, size, trust).shifted(shift)
    known = all_claims().studies()
    spelled = {name.upper(): name for name in (*known, *presets())}
    name = spelled.get(path.name.upper()) or one_of("study", path.name, spelled.values())
    if name in known:
        return known[name].at(size, shift)
    return _from_file(presets()[name], size, True).shifted(shift)


def presets() -> dict[str, Path]:
    """The studies that come as files with the papers, by name."""
    return {name: file for paper in papers() for name, file in paper.tables.items()}


def named_studies(known: Registry) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Title and sizes of every study that has a name, those of experiments first."""
    own = {
        name: (str(sizes.quick.get("title", "")), tuple(s for s in SIZES if s in sizes.sizes))
        for name, sizes in known.studies().items()
    }
    files = {name: _title_and_forms(file) for name, file in presets().items()}
    return own | files


def _from_file(path: Path, form: str, trust: Trust) -> Study:
    """The study of a .toml or .py file; `form` is a table [forms.NAME] of the former."""
    if not path.is_file():
        raise Invalid(f"there is no study file {str(path)!r}")
    if path.suffix == ".toml":
        return _from_toml(path, form, trust)
    if path.suffix == ".py":
        with speaking_as(f"run: {path.name} (forms are for TOML)"):
            one_of("form", form, (QUICK,))
        return _from_python(path)
    raise Invalid(f"a study is a .toml or a .py file, got {path.name!r}")


def _title_and_forms(path: Path) -> tuple[str, tuple[str, ...]]:
    """The title of a TOML study, and the names of its forms."""
    table = _table(path)
    return str(table.get("title", "")), (QUICK, *read_forms(path.stem, table, KEYS))


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except Refusal as reason:
        raise ValueError(f"{path.name} {reason}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise ValueError(f"{path.name} is not TOML ({reason})") from None
    except RecursionError:
        raise ValueError(f"{path.name}: tables or lists are nested too deeply") from None


@door_as(lambda path: path.name)
def _from_toml(path: Path, form: str, trust: Trust) -> Study:
    table = {"name": path.stem, **_table(path)}
    for key in table:
        one_of("key", key, (*KEYS, FORMS))
    source = path.name if form == QUICK else f"{path.name}, form {form}"
    chosen = formed(path.name, table, form, KEYS)
    if "function" in chosen:
        _refuse_untrusted(path, str(chosen["function"]), trust)
        _reachable(path.parent)
    return Study(**chosen, source=source)


def _refuse_untrusted(path: Path, function: str, trust: Trust) -> None:
    if not (trust(path.resolve(), function) if callable(trust) else trust):
        raise ValueError(
            f"{path.name}: the study runs the code of the function {function!r}; "
            "if you trust it, pass --trust (in Python: trust=True)"
        )


def _from_python(path: Path) -> Study:
    """The one Study that a module makes, or the one it calls `study`."""
    if not path.stem.isidentifier():
        raise Invalid(f"{path.name!r} cannot be imported; use letters, digits and _")
    _reachable(path.parent)
    try:
        module = importlib.import_module(path.stem)
    except SystemExit as reason:
        raise Invalid(
            f"{path.name} calls sys.exit({reason}) when it is imported; put that under "
            'if __name__ == "__main__"'
        ) from None
    if Path(str(module.__file__)).resolve() != path.resolve():
        raise Invalid(f"{path.stem!r} is already a module of Python; rename the file")
    studies = {name: value for name, value in vars(module).items() if isinstance(value, Study)}
    if "study" in studies:
        return studies["study"]
    if len(studies) != 1:
        names = ", ".join(studies) or "none"
        raise Invalid(f"{path.name} must make one penchant.Study, or call it study; {names}")
    return next(iter(studies.values()))


def _reachable(folder: Path) -> None:
    """Let Python import from a folder, here and in the workers, which get our sys.path."""
    entry = str(folder.resolve())
    if entry not in sys.path:
        sys.path.append(entry)
