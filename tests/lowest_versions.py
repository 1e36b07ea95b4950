"""The requirements of pyproject.toml at their lowest versions, one pin a line, for pip to install.

`python3 tests/lowest_versions.py dev torch` prints those of penchant and of the extras dev and
torch; without a word it is dev, whose tests they are.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def requirements(extras):
    """What penchant and these extras ask for, each once; an extra may name other extras."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    found = list(project["dependencies"])
    for extra in extras:
        for line in project["optional-dependencies"][extra]:
            own = re.fullmatch(r"penchant\[(.*)\]", line)
            found += requirements(own[1].split(",")) if own else [line]
    return list(dict.fromkeys(found))


def floor(requirement):
    """The name, with the extras it asks for, and the lowest version of a requirement."""
    found = re.fullmatch(r"([\w.-]+(?:\[[\w,-]+\])?)>=([\d.]+)(?:,<[\d.]+)?", requirement)
    if not found:
        raise ValueError(
            f"lowest_versions: a requirement reads 'name>=lowest' or 'name>=lowest,<next',"
            f" not {requirement!r}; give it a lowest version in pyproject.toml"
        )
    return found[1], found[2]


if __name__ == "__main__":
    for line in requirements(sys.argv[1:] or ["dev"]):
        print("==".join(floor(line)))
