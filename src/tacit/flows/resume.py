"""What a training run was made of, and whether another one is its continuation."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from tacit.versions import versions


def story(problem: Any, fingerprint: str, model: Any, flow: dict[str, Any]) -> dict[str, Any]:
    """What a run is made of, as plain JSON values; `fingerprint` stands for the data."""
    described = {"description": problem.description, "recipe": problem.recipe,
                 "fingerprint": fingerprint}  # fmt: skip
    told = {"problem": described, "model": model.describe(), "flow": flow, "versions": versions()}
    plain: dict[str, Any] = json.loads(json.dumps(told))
    return plain


def check_same(who: str, dataset: Any, told: dict[str, Any], free: Collection[str]) -> None:
    """A ValueError if the run that `dataset` records differs from `told` in what is not `free`."""
    before = json.loads(dataset.attrs["description"])
    for part in ("problem", "model", "flow"):
        old, new = ({k: v for k, v in tale[part].items() if k not in free}
                    for tale in (before, told))  # fmt: skip
        changed = sorted(k for k in old.keys() | new.keys() if old.get(k) != new.get(k))
        if changed:
            raise ValueError(
                f"{who}: resume must have the same {part}, but its {changed[0]} was "
                f"{old.get(changed[0])} and now is {new.get(changed[0])}; start afresh"
            )
