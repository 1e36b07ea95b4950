"""When a look is due: at log-spaced steps, while looks take a small share of the time.

The promise: the time spent in looks is at most `share` of the training time, which is all time
since the set-up ended that was not spent in looks. The share of the first HEAD seconds is there
from the beginning, because a run changes most in its first steps: in a loop shorter than that,
looks take the same seconds, which are more than the share of it. A look is taken only if the last
ones say that it will fit, with a margin; of one that does not fit the parameters are copied
(penchant.watch.postponed), and the next that fits is taken. Nuclear norms, which matter less than
the tangent kernel, have a part of the budget only. Looks that the user asks for ("asked") are
not in the budget; their seconds are counted apart.

Norms with directions (glances) follow the steps alone, so that a forecast does not depend on how
busy the machine is. They are counted, and looks get what they leave. `glance_spacing` keeps them
rare where they are dear: in the worst case they take about 0.2 ms per step.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

PARTS = {"look": 1.0, "glance": 1.0, "nuclear": 0.3, "live": 1.0}
ASKED = "asked"
HEAD = 5.0  # seconds of training whose share may be spent at any time
RECENT = 3  # the next look is expected to cost as much as the most expensive of these
DOUBT = 2.0  # and the budget must have room for this many times as much
FREQUENT = 5  # steps between two glances, at least
CHEAP = 100_000  # parameters: a glance at so many takes about 0.2 ms


def glance_spacing(parameters: int) -> int:
    """The least number of steps between two glances at so many parameters."""
    return max(FREQUENT, parameters // CHEAP)


class LookSteps:
    """Steps start + 1, ..., with about `per_decade` of them in every decade from `start`.

    They are at least `spacing` apart.
    """

    def __init__(self, start: float, per_decade: int, spacing: int = 1):
        self.start, self.per_decade, self.spacing = start, per_decade, spacing
        self.next = start + 1.0

    def due(self, step: float) -> bool:
        return step >= self.next

    def taken(self, step: float) -> None:
        """The next due step is the first of the grid after `step`."""
        passed = step - self.start
        if passed < 1:
            return
        place = math.floor(self.per_decade * math.log10(passed)) + 1
        # rounding up makes steps of whole numbers; several places may give the same one
        while (ahead := math.ceil(10 ** (place / self.per_decade) - 1e-9)) <= passed:
            place += 1
        self.next = self.start + max(ahead, passed + self.spacing)


class Budget:
    """Seconds spent in looks, held below a share of the training time; None is no limit."""

    def __init__(self, share: float | None, clock: Callable[[], float] = time.perf_counter):
        self.share, self.clock = share, clock
        self.by_kind = dict.fromkeys([*PARTS, ASKED], 0.0)
        self.recent: dict[str, list[float]] = {}
        self.began = self.until = clock()

    def restart(self) -> None:
        """Training begins now: earlier looks are not counted, but their cost is remembered."""
        self.by_kind = dict.fromkeys([*PARTS, ASKED], 0.0)
        self.began = self.until = self.clock()

    def seen(self) -> None:
        """Count the time up to now as training; time after the last call is not counted."""
        self.until = self.clock()

    @property
    def spent(self) -> float:
        """Seconds in looks of all kinds since training began, without those asked for."""
        return sum(self.by_kind[kind] for kind in PARTS)

    @property
    def asked(self) -> float:
        """Seconds in looks that the user asked for."""
        return self.by_kind[ASKED]

    @property
    def training(self) -> float:
        """Seconds from the beginning to the last call that were not spent in looks."""
        return max(self.until - self.began - self.spent - self.asked, 0.0)

    @property
    def room(self) -> float:
        """Seconds that all looks so far may take."""
        return math.inf if self.share is None else self.share * max(self.training, HEAD)

    @property
    def overhead(self) -> float:
        """Seconds spent in looks as a share of the training time, NaN before there is any."""
        return self.spent / self.training if self.training > 0 else math.nan

    def allows(self, kind: str) -> bool:
        """True if one more look of this kind is expected to fit into the budget."""
        if self.share is None:
            return True
        expected = self.expected(kind)
        own = self.by_kind[kind] + expected <= PARTS[kind] * self.room
        return own and self.spent + expected <= self.room

    def expected(self, kind: str) -> float:
        """Seconds for which there must be room before one more look of this kind."""
        kinds = (kind, "live") if kind == "look" else (kind,)  # a look is forecast and sent
        return DOUBT * sum(max(self.recent.get(part, [0.0])) for part in kinds)

    def needed(self, kind: str) -> float:
        """The share with which one more look of this kind would fit."""
        return (self.spent + self.expected(kind)) / max(self.training, HEAD)

    def state(self) -> dict[str, Any]:
        """The seconds spent so far, for a restart of the run."""
        return {"by_kind": dict(self.by_kind), "training": self.training, "recent": self.recent}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`; the time in between is not counted."""
        self.by_kind = {**dict.fromkeys([*PARTS, ASKED], 0.0), **state["by_kind"]}
        self.recent = {kind: list(costs) for kind, costs in state["recent"].items()}
        self.until = self.clock()
        self.began = self.until - self.spent - self.asked - state["training"]

    @contextlib.contextmanager
    def charged(self, kind: str) -> Iterator[None]:
        """Count the time of the block, also if it fails."""
        begun = self.clock()
        try:
            yield
        finally:
            cost = self.clock() - begun
            self.by_kind[kind] += cost
            if kind == ASKED:
                self.until += cost  # so that idle time before it does not count as training
            self.recent[kind] = [*self.recent.get(kind, []), cost][-RECENT:]
