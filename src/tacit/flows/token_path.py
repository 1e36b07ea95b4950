"""Where the training of a token net went, and whether another run may go on from there."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

from tacit.models.token_net import TokenNet
from tacit.problems.arithmetic import TokenPairs
from tacit.records import Outcome, Record
from tacit.versions import versions

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


def story(net: TokenNet, problem: TokenPairs, flow: dict[str, Any]) -> dict[str, Any]:
    """What a run was made of, as plain JSON values."""
    described = {"description": problem.description, "recipe": problem.recipe,
                 "fingerprint": fingerprint(problem)}  # fmt: skip
    told = {"problem": described, "model": net.describe(), "flow": flow, "versions": versions()}
    plain: dict[str, Any] = json.loads(json.dumps(told))
    return plain


def fingerprint(problem: TokenPairs) -> str:
    """A short text that another split, other labels or other pairs would change."""
    parts = [problem.pairs, problem.labels, problem.train]
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]


def check_resume(who: str, path: object, told: dict[str, Any], steps: int) -> None:
    """A ValueError if `path` is not the beginning of the run `told`."""
    if not isinstance(path, TokenPath):
        raise ValueError(f"{who}: resume must be a TokenPath, got {type(path).__name__}")
    before = json.loads(path.dataset.attrs["description"])
    for part in ("problem", "model", "flow"):
        old, new = ({k: v for k, v in tale[part].items() if k not in FREE}
                    for tale in (before, told))  # fmt: skip
        changed = sorted(k for k in old.keys() | new.keys() if old.get(k) != new.get(k))
        if changed:
            raise ValueError(
                f"{who}: resume must have the same {part}, but its {changed[0]} was "
                f"{old.get(changed[0])} and now is {new.get(changed[0])}; start afresh"
            )
    if steps <= path.steps:
        raise ValueError(
            f"{who}: resume has taken {path.steps} steps already, which steps={steps} must exceed"
        )
