"""State that no optimizer changes, such as the running statistics of BatchNorm.

Every look uses this state as it was at the start, so that only trained parameters move the tangent
kernel. Fresh statistics (mean 0, variance 1) do not come from data: a batch given as `warm_batch`
replaces them once, at the start.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penchant.arguments import Array
from penchant.watch.backends.backend import WHO

State = dict[str, Array]
FIXED = 1e-3  # largest relative difference of a running average from its prediction by the momentum


def warmed(run: Callable[[State], State], state: State) -> State:
    """The running averages of one batch; `run` returns the state after a pass in training mode.

    A pass changes an average from s to m s + (1 - m) b, with a momentum m. Two passes, from s = 0
    and s = 1, give m and b. State that a pass does not change is returned unchanged.
    """
    after = run(state)
    moving = [name for name, value in state.items() if not np.array_equal(value, after[name])]
    if not moving:
        raise ValueError(
            f"{WHO}: a pass over warm_batch in training mode changes no state of the model; leave "
            "warm_batch= out"
        )
    low, high = (
        run(state | {name: np.full_like(state[name], value) for name in moving})
        for value in (0.0, 1.0)
    )
    shares = {name: high[name] - low[name] for name in moving}
    averages = dict(state)
    for name, share in shares.items():
        averages[name] = (low[name] / (1 - share)).astype(state[name].dtype)
    again = run(averages)
    for name, share in shares.items():
        first = np.abs(share * state[name] + low[name] - after[name]).max()
        apart = max(first, np.abs(again[name] - averages[name]).max())
        if not apart <= FIXED * np.abs(after[name]).max():
            raise ValueError(
                f"{WHO}: {name} is not a running average (passes over warm_batch differ from one "
                f"by {apart:.3g}), so warm_batch= cannot replace it; leave warm_batch= out"
            )
    return averages


def state_note(names: list[str], warm: bool) -> str:
    """The note in a report about state with these names."""
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    held = "of warm_batch" if warm else "of the start"
    hint = "" if warm else "; if these are fresh, give a training batch as warm_batch="
    return (
        f"no optimizer moves {shown}: every look uses the values {held}, so that only trained "
        f"parameters move the kernel{hint}"
    )
