"""Damaged copies of a file, and whether the one who reads them says so in a sentence."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from typer.testing import CliRunner

from outcomes import TimeSpent, bounded

SECONDS = 20.0  # of processor time for one file
LONGEST = 600  # letters of a sentence
ESC = "\x1b"


Found = list[tuple[str, str]]  # (case, what is wrong or nothing)
ODD = (  # what nobody expects at the place of an attribute or of an entry in JSON
    f"{ESC}[2J{ESC}]0;owned\x07",
    "",
    "[" * 20_000,
    "\x00",
    "é" * 5000,
    0,
    -1,
    1e308,
    10**400,
    float("nan"),
    None,
    True,
    [],
    [[[]]],
    {},
    {"$float": "nan"},
    "{}",
    "null",
    "[1, 2",
)


def chosen(every: Iterable[Any], count: int) -> list[Any]:
    """At most `count` of them, at random, in their order."""
    listed = list(every)
    indices = np.random.default_rng(len(listed)).permutation(len(listed))[:count]
    return [listed[index] for index in sorted(indices)]


def damaged(content: bytes, count: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """`count` copies with a flipped bit, a changed run of bytes, a cut, an insertion or a swap."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        copy = bytearray(content)
        at = int(rng.integers(len(copy)))
        kind = ("flip", "flip", "flip", "noise", "zeros", "cut", "insert", "move")[number % 8]
        if kind == "flip":
            copy[at] ^= 1 << int(rng.integers(8))
        elif kind in ("noise", "zeros"):
            size = int(rng.integers(1, 64))
            copy[at : at + size] = rng.bytes(size) if kind == "noise" else bytes(size)
        elif kind == "cut":
            del copy[at:]
        elif kind == "insert":
            copy[at:at] = rng.bytes(int(rng.integers(1, 9)))
        else:
            size = int(rng.integers(1, 64))
            copy[at:at] = copy[at // 2 : at // 2 + size]
        yield f"{kind} at {at}", bytes(copy)


def fault(read: Callable[[], Any], same: Callable[[Any], bool]) -> str:
    """What is wrong with what `read` does; empty if it gives the same, or one sentence."""
    try:
        with bounded(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("error")
            found = read()
    except TimeSpent as reason:
        return f"no end: {reason}"
    except (ValueError, OSError) as reason:
        return no_sentence(str(reason))
    except Exception as reason:
        return f"{type(reason).__name__}: {str(reason)[:200]}"
    return "" if same(found) else "other values without a word"


def no_sentence(text: str) -> str:
    """Why a text is not one sentence to show to a user; empty if it is."""
    if not text.strip() or len(text) > LONGEST or "\n" in text:
        return f"no sentence: {text[:200]!r}"
    return "" if text.isprintable() else f"control characters: {text[:200]!r}"


def command_fault(*words: str) -> str:
    """What is wrong with how a command of penchant ends: a traceback, an order to the terminal."""
    from penchant.cli import app

    try:
        with bounded(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("error")
            result = CliRunner().invoke(app, words)
    except TimeSpent as reason:
        return f"no end: {reason}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"traceback of {type(result.exception).__name__}: {str(result.exception)[:200]}"
    if result.exit_code not in (0, 1, 2):
        return f"exit code {result.exit_code}"
    if result.exit_code == 2 and not result.output.startswith("error: "):
        return f"no error is printed: {result.output[:200]!r}"
    return "ESC reaches the terminal" if ESC in result.output else ""
