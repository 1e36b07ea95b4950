"""Whether a run may go on where another one ended."""

from __future__ import annotations

import json
from typing import Any

from tacit.training.path import Path

SAME = ("problem", "model", "method", "penalty", "batch", "seed")


def check_same(who: str, before: object, told: dict[str, Any]) -> None:
    """A ValueError if the run `told` differs from that of `before` in more than stop and record."""
    if not isinstance(before, Path):
        raise ValueError(
            f"{who}: resume must be the path of an earlier run, got {type(before).__name__}"
        )
    if before.memory is None:
        raise ValueError(f"{who}: resume must be a path of steps that did not diverge")
    earlier = json.loads(before.dataset.attrs["description"])
    for part in SAME:
        old, new = earlier.get(part), told[part]
        if old != new:
            name = part
            if isinstance(old, dict) and isinstance(new, dict):
                name = next(k for k in {**new, **old} if old.get(k) != new.get(k))
                old, new = old.get(name), new.get(name)
                name = f"{name} of the {part}"
            raise ValueError(
                f"{who}: resume must have the same {name}, which was {old} and now is {new}; "
                "start afresh"
            )
