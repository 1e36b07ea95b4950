"""Copies of the parameters at steps whose look did not fit into the budget, for a look later.

A copy costs as much as a glance, a look a hundred times more. A run of five minutes whose looks
take two seconds each has room for five of them, all late; the copies have the logarithmic steps
that the schedule asked for. When there are too many, the one whose neighbours are nearest in the
logarithm of the steps goes, so that those that stay cover the run.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from penchant.watch.schedule import Budget, LookSteps

MOST = 12  # copies
ROOM = 2**28  # bytes of all copies


class Postponed(NamedTuple):
    """A step, the parameters at it, the numbers that are known, and what the panel stored."""

    step: float
    arrays: dict[str, Any]
    row: dict[str, Any]
    panel: Mapping[str, Any] = types.MappingProxyType({})


class PostponedLooks:
    """The copies of a run that starts at a step; `size` is the bytes of one."""

    def __init__(self, start: float, per_decade: int, size: int):
        self.start = start
        self.steps = LookSteps(start, per_decade)
        self.most = min(MOST, ROOM // max(size, 1))
        self.copies: list[Postponed] = []
        self.note = ""  # on the first look that did not fit

    def keep(self, copy: Postponed, looked: Iterable[float]) -> None:
        """Add a copy; `looked` are the steps of the looks so far."""
        self.copies.append(copy)
        if len(self.copies) > self.most:
            known = list(looked)
            self.copies.remove(min(self.copies[:-1], key=lambda held: self._gap(held, known)))

    def forget(self, step: float) -> None:
        """A look is taken at this step."""
        self.steps.taken(step)
        self.copies = [held for held in self.copies if held.step < step]

    def take(self) -> list[Postponed]:
        """Remove all copies, and return them."""
        taken, self.copies = self.copies, []
        return taken

    def skipping(self, step: float, budget: Budget, share: float, needed: float) -> str:
        """Why the look at a step is not taken, and that budget=`needed` would change it."""
        unit = 10 ** math.floor(math.log10(needed) - 1)  # rounded up to two digits
        needed = unit * math.ceil(needed / unit)
        kept = (
            "the parameters were copied, and look() or report() at the end takes it"
            if self.most
            else "the parameters are too many to be copied for later"
        )
        return (
            f"the look due at step {step:g} did not fit into the budget: looks had taken "
            f"{budget.spent:.2g} s of the {budget.room:.2g} s that budget={share:g} allows by "
            f"then, and one more needs room for {budget.expected('look'):.2g} s; {kept}. "
            f"budget={needed:.2g} would have allowed it, and fewer probe inputs make a look cheaper"
        )

    def _gap(self, held: Postponed, looked: list[float]) -> float:
        """The decades between the neighbours of a copy."""
        steps = [*looked, *(other.step for other in self.copies if other is not held)]
        before = max((step for step in steps if step < held.step), default=self.start)
        after = min((step for step in steps if step > held.step), default=held.step)
        return self._decade(after) - self._decade(before)

    def _decade(self, step: float) -> float:
        return math.log10(max(step - self.start, 0.5))  # the start is as far from step 1 as step 2
