"""Whether an image set can be loaded, and what stands in the way."""

from __future__ import annotations

import dataclasses
from typing import Literal

from tacit.problems.images import cache, digits
from tacit.problems.images.catalogue import ImageSet
from tacit.records import Record

Condition = Literal["verified", "absent", "damaged"]
WHO = "data"


@dataclasses.dataclass(frozen=True, repr=False)
class Status(Record):
    """How a set is kept: its condition, size in bytes, place, and the reason if it is not well."""

    name: str
    condition: Condition
    bytes: int
    where: str
    reason: str = ""


def status(images: ImageSet) -> Status:
    """The condition of a set, found by reading it and verifying its checksums."""
    where, size = _place(images)
    try:
        digits.read(WHO) if images.package is None else cache.read(WHO, images)
    except FileNotFoundError:
        return Status(images.name, "absent", 0, where, f"there is no file {where}")
    except ImportError:
        return Status(images.name, "absent", 0, where, "scikit-learn is not installed")
    except (ValueError, OSError) as reason:
        return Status(images.name, "damaged", size, where, str(reason).removeprefix(f"{WHO}: "))
    return Status(images.name, "verified", size, where)


def _place(images: ImageSet) -> tuple[str, int]:
    if images.package is None:
        return "inside scikit-learn", 0
    file = cache.file_of(images)
    return str(file), file.stat().st_size if file.exists() else 0
