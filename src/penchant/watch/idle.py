"""The watch in the other processes of a distributed run, in which only rank zero looks."""

from __future__ import annotations

import sys
from typing import Any

from penchant.watch.backends.backend import WHO


def rank() -> int:
    """The number of this process in torch.distributed, 0 without it."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available():
        return 0
    return int(torch.distributed.get_rank()) if torch.distributed.is_initialized() else 0


class Idle:
    """Accepts the calls of a Watch and does nothing."""

    failures = ()
    should_stop = False

    def __call__(self, step: float, parameters: Any = None, **metrics: Any) -> None:
        pass

    def look(self, parameters: Any = None) -> None:
        pass

    def report(self, *files: Any, to: Any = None) -> None:
        pass

    def save(self, file: Any) -> None:
        pass

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{WHO}: only rank zero of a distributed run looks, and this process has rank "
            f"{rank()}; read {name} on rank zero"
        )

    def __repr__(self) -> str:
        return f"<Watch of rank {rank()}, which does not look>"
