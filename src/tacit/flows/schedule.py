"""Which steps of a descent, or times of a flow, are recorded: log-spaced or those asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tacit.arguments import integer, real

DENSEST = 1000  # records in a decade: some 20,000 in the path of a flow


def asked_steps(who: str, record: Sequence[int] | None, steps: int) -> tuple[int, ...] | None:
    """The steps asked for, checked; None where none are."""
    if record is None:
        return None
    if isinstance(record, str) or not isinstance(record, Iterable):
        raise ValueError(f"{who}: record must list the steps to record, got {record!r}")
    asked = tuple(integer(who, "record", k, least=0) for k in record)
    if max(asked, default=0) > steps:
        raise ValueError(f"{who}: record must stay within steps={steps}, got {max(asked)}")
    return asked


def points_per_decade(who: str, value: object) -> int:
    """`value` if it is a number of records that a path can hold."""
    count = integer(who, "points_per_decade", value, least=1)
    if count > DENSEST:
        raise ValueError(
            f"{who}: points_per_decade must be at most {DENSEST}, got {count}; a path keeps every "
            "record in memory: name single times in record="
        )
    return count


def times_to_record(
    who: str, record: Sequence[float] | None, t_max: float | None
) -> tuple[float, ...] | None:
    """The times asked for, each once and in order; None where none are. The start needs no word."""
    if record is None:
        return None
    if isinstance(record, str) or not isinstance(record, Iterable):
        raise ValueError(f"{who}: record must list the times to record, got {record!r}")
    times = sorted({real(who, "record", t) for t in record})
    if times and times[0] < 0:
        raise ValueError(f"{who}: record must hold times >= 0, got {times[0]:g}")
    if t_max is not None and times and times[-1] > t_max:
        raise ValueError(f"{who}: record must stay within t_max={t_max:g}, got {times[-1]:g}")
    return tuple(times)


def schedule(record: Sequence[int] | None, steps: int, per_decade: int) -> list[int]:
    """The steps to record, from 0 to the last one."""
    if record is not None:
        return sorted({0, *record, steps})
    count = int(per_decade * math.log10(steps)) + 1
    spaced = (round(10 ** (k / per_decade)) for k in range(count))
    return sorted({0, *spaced, steps})
