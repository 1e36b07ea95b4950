"""How the figures of source N name variables and print numbers of steps."""

from __future__ import annotations

from typing import Any


def about(text: str, units: str = "1") -> dict[str, str]:
    """What a variable says of itself."""
    return {"units": units, "long_name": text}


def count(steps: Any) -> str:
    """A number of steps as the figures print it."""
    return f"{float(steps):,.0f}".replace(",", " ")
