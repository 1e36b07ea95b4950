"""How many cells to hand out at once: many tiny ones, or one long one."""

from __future__ import annotations

TARGET = 0.2  # seconds of work in one portion
MOST = 200
COST = 5e-4  # seconds that a cell takes beside its computation


class ChunkSize:
    """The mean time of a cell, recent ones counting more."""

    def __init__(self) -> None:
        self.mean: float | None = None

    def took(self, seconds: float) -> None:
        fresh = seconds + COST
        self.mean = fresh if self.mean is None else 0.9 * self.mean + 0.1 * fresh

    def portion(self, waiting: int, workers: int) -> int:
        """Cells for one worker: one until times are known, few when few are left."""
        if self.mean is None:
            return 1
        share = -(-waiting // max(2 * workers, 1))
        return max(1, min(int(TARGET / self.mean), share, MOST))
