"""The characters of the font of formulas, as the list beside it says."""

import functools

from penchant.lab.report.math_font import FOLDER


def ranges():
    """The first and the last number of every run."""
    lines = (FOLDER / "characters.txt").read_text(encoding="utf-8").splitlines()
    words = " ".join(line for line in lines if not line.startswith("#")).split(",")
    ends = [word.strip().split("-") for word in words if word.strip()]
    return [(int(end[0], 16), int(end[-1], 16)) for end in ends]


@functools.cache
def covered():
    return {chr(number) for low, high in ranges() for number in range(low, high + 1)}
