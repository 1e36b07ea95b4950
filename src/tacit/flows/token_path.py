"""Where the training of a token net went, and whether another run may go on from there."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

from tacit.flows.resume import check_same
from tacit.problems.arithmetic import TokenPairs
from tacit.records import Outcome, Record

FREE = ("steps", "record", "points_per_decade", "until")  # what a resumed run may change


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TokenPath(Record):
    """Where training went; `dataset` holds what was recorded, `tensors` are the last ones.

    With `moments`, the running means of the slope and of its square, training can be resumed.
    """

    outcome: Outcome
    steps: int
    tensors: Any = dataclasses.field(repr=False)
    moments: tuple[Any, Any] = dataclasses.field(repr=False)
    dataset: Any = dataclasses.field(repr=False)


def fingerprint(problem: TokenPairs) -> str:
    """A short text that another split, other labels or other pairs would change."""
    parts = [problem.pairs, problem.labels, problem.train]
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]


def check_resume(who: str, path: object, told: dict[str, Any], steps: int) -> None:
    """A ValueError if `path` is not the beginning of the run `told`."""
    if not isinstance(path, TokenPath):
        raise ValueError(
            f"{who}: resume must be the path of an earlier run, got {type(path).__name__}"
        )
    check_same(who, path.dataset, told, FREE)
    if steps <= path.steps:
        raise ValueError(
            f"{who}: resume has taken {path.steps} steps already, which steps={steps} must exceed"
        )
